use crate::sum_files;
use filestats::FileInterval;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, OnceLock};

/// The files of a moment. A clone shares them until one of both changes: a window of moments is judged every few seconds, and
/// each judgement has its own list of moments.
#[derive(Clone, Debug, Default)]
pub struct SharedFiles(Arc<Files>);

#[derive(Clone, Debug, Default)]
struct Files {
    all: Vec<FileInterval>,
    /// Result of [`SharedFiles::sums`].
    sums: OnceLock<Vec<FileInterval>>,
}

/// Fewer files are not worth summing.
const SUMMED_MIN: usize = 8;

impl SharedFiles {
    /// The files, or sums of them, from which the same figures of a verdict follow: a moment is judged again and again.
    pub(crate) fn sums(&self) -> &[FileInterval] {
        let all = &self.0.all;
        if all.len() < SUMMED_MIN { all } else { self.0.sums.get_or_init(|| sum_files(all.iter().cloned())) }
    }
}

impl PartialEq for SharedFiles {
    fn eq(&self, other: &SharedFiles) -> bool {
        self.0.all == other.0.all
    }
}

impl Deref for SharedFiles {
    type Target = Vec<FileInterval>;

    fn deref(&self) -> &Vec<FileInterval> {
        &self.0.all
    }
}

impl DerefMut for SharedFiles {
    fn deref_mut(&mut self) -> &mut Vec<FileInterval> {
        let files = Arc::make_mut(&mut self.0);
        files.sums.take();
        &mut files.all
    }
}

impl From<Vec<FileInterval>> for SharedFiles {
    fn from(all: Vec<FileInterval>) -> SharedFiles {
        SharedFiles(Arc::new(Files { all, sums: OnceLock::new() }))
    }
}

impl From<SharedFiles> for Vec<FileInterval> {
    fn from(files: SharedFiles) -> Vec<FileInterval> {
        Arc::unwrap_or_clone(files.0).all
    }
}

impl<'a> IntoIterator for &'a SharedFiles {
    type Item = &'a FileInterval;
    type IntoIter = std::slice::Iter<'a, FileInterval>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'a> IntoIterator for &'a mut SharedFiles {
    type Item = &'a mut FileInterval;
    type IntoIter = std::slice::IterMut<'a, FileInterval>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter_mut()
    }
}

impl Serialize for SharedFiles {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.all.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for SharedFiles {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::deserialize(deserializer).map(SharedFiles::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Figures, Moment};
    use filestats::{
        Counters, Delta, Figure, FileIdentity, FileKind, Interval, Latencies, Meaning, Ops, Reason, Time,
    };
    use proptest::prelude::*;

    fn file(number: usize, kind: FileKind, waiting: bool, [reads, writes, syncs]: [u64; 3]) -> FileInterval {
        let ops = |count: u64| Ops::timed(count, count * 8192, count * 100_000);
        let sync = if waiting { Figure::unknown(Reason::NotCounted) } else { Figure::Known(ops(syncs)) };
        let mut latencies = Latencies::default();
        (0..reads).for_each(|_| latencies.read.record(100_000));
        let counters = Counters { read: ops(reads), write: ops(writes), sync, ..Counters::ZERO };
        let read_time = if waiting { Time::Waiting } else { Time::ToCompletion };
        FileInterval {
            file: FileIdentity { path: format!("/data/{number}"), kind, ..FileIdentity::default() }.into(),
            meaning: Meaning { read_time, ..Meaning::REQUESTS },
            ended_unix_ns: 7,
            interval: Interval::Known(Delta {
                elapsed_ns: 1_000_000_000,
                counters,
                latencies: (!waiting).then_some(latencies),
            }),
        }
    }

    proptest! {
        #[test]
        fn sums_have_the_figures_of_all_files(
            files in prop::collection::vec(
                (prop::sample::select(vec![FileKind::Data, FileKind::Log, FileKind::Journal, FileKind::Other]),
                any::<bool>(), prop::array::uniform3(0_u64..4)), 8..40),
        ) {
            let files: Vec<FileInterval> = files
                .into_iter()
                .enumerate()
                .map(|(at, (kind, waiting, counts))| file(at, kind, waiting, counts))
                .collect();
            let moment = |files: Vec<FileInterval>| Moment {
                ended_unix_ns: 7,
                files: files.into(),
                ..Moment::default()
            };
            let sums = sum_files(files.clone());
            prop_assert!(sums.len() <= files.len());
            // Too few to be summed again: as they are.
            let few: Vec<Figures> =
                files.chunks(SUMMED_MIN - 1).map(|few| Figures::from_moments(&[moment(few.to_vec())], None)).collect();
            let all = Figures::from_moments(&[moment(files)], None);
            // A sum with files whose syncs are not counted has those of the others.
            let syncs = |of: &Figures| {
                let sync = of.database.as_ref().and_then(|delta| delta.counters.sync.known());
                sync.map_or(0, |sync| sync.count)
            };
            prop_assert_eq!(syncs(&all), few.iter().map(syncs).sum::<u64>());
            let transfers = |of: &Figures| of.database.as_ref().map(|delta| delta.counters.transfers()).unwrap();
            prop_assert_eq!(transfers(&all), few.iter().map(transfers).reduce(Ops::plus).unwrap());
            let reads = few.iter().map(|few| few.storage_reads).reduce(Ops::plus).unwrap();
            prop_assert_eq!(all.storage_reads, reads);
        }
    }
}
