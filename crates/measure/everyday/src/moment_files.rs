//! The files of a moment that is kept for a window. A server has thousands of files, and a window has many moments: those that
//! were not used are left out, and only the busiest are kept by name. The others are summed by what they are for and how they
//! are counted, so that every figure of a verdict stays the same.

use filestats::{Cache, FileInterval, FileKind};
use std::cmp::Reverse;
use verdict::{Moment, is_log, sum_files};

/// Files of a moment that are kept by name.
const NAMED_MAX: usize = 32;

/// Reduces the files of a moment.
pub(crate) fn reduce_files(moment: &mut Moment) {
    let mut files: Vec<FileInterval> = std::mem::take(&mut moment.files).into();
    leave_out_unused(&mut files);
    if files.len() > NAMED_MAX {
        sum_others(&mut files);
    }
    moment.files = files.into();
}

/// Keeps one unused file where the database used none, so that the moment counts as known.
fn leave_out_unused(files: &mut Vec<FileInterval>) {
    let is_unused =
        |file: &FileInterval| file.interval.known().is_some_and(|delta| delta.counters.operations() == 0);
    let is_own =
        |file: &FileInterval| file.file.kind != FileKind::Device && file.meaning.cache != Cache::Below;
    let known = files.iter().filter(|file| is_own(file) && file.interval.known().is_some());
    let mut unused_left = usize::from(known.into_iter().all(is_unused));
    files.retain(|file| {
        let stays = !is_unused(file) || is_log(file) || unused_left > 0 && is_own(file);
        unused_left = unused_left.saturating_sub(usize::from(stays && is_unused(file)));
        stays
    });
}

/// Sums the files that are not among the busiest. Those whose interval is unknown stay: each has its reason.
fn sum_others(files: &mut Vec<FileInterval>) {
    let time_and_count = |file: &FileInterval| {
        let counters = file.interval.known().map(|delta| delta.counters);
        counters.map_or((u64::MAX, 0), |all| (all.stall_ns().known().unwrap_or(0), all.operations()))
    };
    // Of unknown intervals first, then the busiest.
    files.sort_by_cached_key(|file| Reverse(time_and_count(file)));
    let named = files.iter().filter(|file| file.interval.known().is_none()).count() + NAMED_MAX;
    let others = files.split_off(named.min(files.len()));
    files.extend(sum_files(others));
}

#[cfg(test)]
mod tests {
    use super::*;
    use filestats::{Counters, Delta, Figure, FileIdentity, Interval, Meaning, Ops, Reason};

    fn file(number: u64, kind: FileKind, reads: u64) -> FileInterval {
        let counters = Counters {
            read: Ops::timed(reads, reads * 8192, reads * 100_000),
            write: Ops::timed(1, 8192, 50_000),
            sync: Figure::unknown(Reason::NotCounted),
            busy_ns: Figure::unknown(Reason::NotCounted),
        };
        FileInterval {
            file: FileIdentity {
                instance: "pid 812 (postgres)".into(),
                kind,
                path: format!("/data/{number}"),
                ..FileIdentity::default()
            }
            .into(),
            meaning: Meaning::REQUESTS,
            ended_unix_ns: 7,
            interval: Interval::Known(Delta { elapsed_ns: 1_000_000_000, counters, latencies: None }),
        }
    }

    fn moment(files: Vec<FileInterval>) -> Moment {
        Moment { ended_unix_ns: 7, files: files.into(), ..Moment::default() }
    }

    #[test]
    fn the_busiest_files_keep_their_names_and_the_sum_stays() {
        let data = (0..500).map(|number| file(number, FileKind::Data, number));
        let logs = (500..540).map(|number| file(number, FileKind::Log, 0));
        let unknown =
            FileInterval { interval: Interval::Unknown(Reason::Restart), ..file(9999, FileKind::Data, 1) };
        let mut moment = moment(data.chain(logs).chain([unknown.clone()]).collect());
        let before = moment.database();
        reduce_files(&mut moment);
        assert_eq!(moment.database(), before);
        assert_eq!(moment.files[0], unknown, "each unknown one has its reason");
        assert_eq!(moment.files[1].file.path, "/data/499");
        assert_eq!(moment.files.len(), 1 + NAMED_MAX + 2, "others: data, logs");
        let of_logs = moment.files.iter().filter(|file| is_log(file));
        let writes = of_logs.map(|file| file.interval.known().unwrap().counters.write.count);
        assert_eq!(writes.collect::<Vec<_>>(), [40]);
    }

    #[test]
    fn a_moment_in_which_the_database_does_nothing_is_known() {
        let idle = |cache| {
            let mut file = file(1, FileKind::Data, 0);
            file.meaning.cache = cache;
            let Interval::Known(delta) = &mut file.interval else { unreachable!() };
            delta.counters.write = Ops::ZERO;
            file
        };
        // The block layer's row of the file is first.
        let mut moment = moment(vec![idle(Cache::Below), idle(Meaning::REQUESTS.cache)]);
        reduce_files(&mut moment);
        assert_eq!(moment.database().unwrap().counters.operations(), 0);
        assert_eq!(moment.files.len(), 1);
    }

    #[test]
    fn few_files_stay_as_they_are() {
        let mut moment = moment(vec![file(1, FileKind::Data, 3)]);
        let before = moment.clone();
        reduce_files(&mut moment);
        assert_eq!(moment, before);
    }
}
