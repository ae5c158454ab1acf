//! One interval of a source as `headroom watch` shows it: the files, the devices below, the waits.

use filestats::waits::{Reconciled, reconcile};
use filestats::{
    Band, Cache, Delta, Figure, FileInterval, FileKind, Interval, IoClass, Profile, Rules, Snapshot, Time,
    WaitInterval, intervals, wait_intervals,
};
use std::collections::HashMap;

/// What happened between two snapshots of a source.
#[derive(Clone, Debug, PartialEq)]
pub struct WatchedInterval {
    /// The source.
    pub source: String,
    /// When the interval ended, nanoseconds since 1970.
    pub ended_unix_ns: u64,
    /// How long it was; `None` where the source's clock went back.
    pub elapsed_ns: Option<u64>,
    /// The files, in the source's order.
    pub files: Vec<WatchedFile>,
    /// The part of the I/O below the page cache, where the source counts it: misses, block I/O. It is in `files` already
    /// and is never added to it.
    pub below: Vec<WatchedFile>,
    /// The devices that the files lie on.
    pub devices: Vec<FileInterval>,
    /// The waits of sessions.
    pub waits: Vec<WaitInterval>,
    /// The waits compared with the times of the files.
    pub reconciled: Vec<Reconciled>,
    /// Notes of the source.
    pub notes: Vec<String>,
}

/// One file's interval.
#[derive(Clone, Debug, PartialEq)]
pub struct WatchedFile {
    /// What happened, or why that cannot be known.
    pub row: FileInterval,
    /// Bytes on disk at its end.
    pub size_bytes: Figure<u64>,
}

impl WatchedInterval {
    /// The interval between two snapshots of one source, without devices.
    pub fn between(earlier: &Snapshot, later: &Snapshot) -> WatchedInterval {
        let at_end: HashMap<_, _> =
            later.samples.iter().chain(&earlier.samples).map(|sample| (sample.file.key(), sample)).collect();
        let rows = intervals(earlier, later, Rules::default());
        let waits = wait_intervals(earlier, later, Rules::default());
        let watched = |row: FileInterval| {
            let sample = at_end.get(&row.file.key());
            WatchedFile {
                size_bytes: sample
                    .map_or(Figure::unknown(filestats::Reason::Gone), |sample| sample.size_bytes),
                row,
            }
        };
        let is_below = |file: &WatchedFile| file.row.meaning.cache == Cache::Below;
        let (below, files): (Vec<WatchedFile>, Vec<_>) = rows.into_iter().map(watched).partition(is_below);
        // Sessions wait for the requests to files, not for block I/O.
        let seen: Vec<FileInterval> = files.iter().map(|file| file.row.clone()).collect();
        let reconciled = reconcile(&waits, &seen);
        WatchedInterval {
            source: later.source.clone(),
            ended_unix_ns: later.taken_unix_ns,
            elapsed_ns: later.clock_ns.checked_sub(earlier.clock_ns),
            files,
            below,
            devices: Vec::new(),
            waits,
            reconciled,
            notes: later.notes.clone(),
        }
    }
}

impl WatchedFile {
    /// Its path and the object in it, where that is known. The object is last: narrow columns cut the beginning.
    pub fn name(&self) -> String {
        match &self.row.file.object {
            Some(object) => format!("{} {object}", self.row.file.path),
            None => self.row.file.path.clone(),
        }
    }

    /// What happened, where it is known.
    pub fn delta(&self) -> Option<&Delta> {
        self.row.interval.known()
    }

    /// Whether it did anything, or may have: an unknown interval counts.
    pub fn is_active(&self) -> bool {
        match &self.row.interval {
            Interval::Known(delta) => delta.counters.operations() > 0,
            Interval::Unknown(_) => true,
        }
    }

    /// The longest of its mean latencies: of reads, of writes, of syncs.
    pub fn latency_ns(&self) -> Option<f64> {
        self.worst().map(|(_, latency_ns)| latency_ns)
    }

    /// The worst band of its latencies.
    pub fn band(&self, profile: &Profile) -> Option<Band> {
        self.worst().map(|(class, latency_ns)| profile.band(class, latency_ns))
    }

    /// Its stall; 0 where that is not known.
    pub fn stall_ns(&self) -> u64 {
        self.delta().and_then(|delta| delta.counters.stall_ns().known()).unwrap_or(0)
    }

    /// The longest mean latency and the class it is graded by. A time to the submission only is no latency.
    fn worst(&self) -> Option<(IoClass, f64)> {
        let delta = self.delta()?;
        let is_log = matches!(self.row.file.kind, FileKind::Log | FileKind::Journal);
        let written = if is_log { IoClass::LogWrite } else { IoClass::Write };
        let all = [
            (IoClass::Read, self.row.meaning.read_time, delta.read_latency_ns()),
            (written, self.row.meaning.write_time, delta.write_latency_ns()),
            (written, Time::ToCompletion, delta.sync_latency_ns()),
        ];
        let known = all.into_iter().filter(|(_, time, _)| *time != Time::ToSubmission);
        let known = known.filter_map(|(class, _, latency)| Some((class, latency.known()?)));
        known.max_by(|a, b| a.1.total_cmp(&b.1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use filestats::{Counters, FileIdentity, Meaning, Ops};

    fn data_file(meaning: Meaning) -> WatchedFile {
        let file = FileIdentity {
            instance: "engine".into(),
            database: None,
            database_id: None,
            file_id: "1".into(),
            kind: FileKind::Data,
            path: "/data/shop.ibd".into(),
            drive: None,
            handle: None,
            object: None,
        };
        let counters = Counters {
            read: Ops::timed(10, 81_920, 30_000_000),
            write: Ops::timed(10, 81_920, 9_000_000_000),
            ..Counters::ZERO
        };
        let interval = Interval::Known(Delta { elapsed_ns: 1_000_000_000, counters, latencies: None });
        let row = FileInterval { file, meaning, ended_unix_ns: 0, interval };
        WatchedFile { row, size_bytes: Figure::Known(1) }
    }

    #[test]
    fn a_file_is_graded_by_its_longest_latency() {
        let file = data_file(Meaning::REQUESTS);
        assert_eq!(file.latency_ns(), Some(9e8));
        assert_eq!(file.band(&Profile::default()).unwrap().name, "awful");
    }

    #[test]
    fn the_time_of_a_submission_is_no_latency() {
        let file = data_file(Meaning { write_time: Time::ToSubmission, ..Meaning::REQUESTS });
        assert_eq!(file.latency_ns(), Some(3e6));
        assert_eq!(file.band(&Profile::default()).unwrap().name, "very good");
    }
}
