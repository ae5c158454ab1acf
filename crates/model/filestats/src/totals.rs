//! Totals of a source since Headroom began to watch it, by class of file and of wait: sums of known intervals, so that they
//! never fall. The sum of a source's own counters falls when a file is removed.

use crate::{
    Cache, FileInterval, FileKind, Interval, Latencies, LatencyBuckets, Ops, WaitClass, WaitInterval,
};
use std::collections::BTreeMap;

/// Mount points of one source: those that come and go add no further ones.
const MOUNTS_MAX: usize = 64;

/// The totals of one source. An interval that is unknown adds nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceTotals {
    /// By mount point.
    pub files: BTreeMap<String, BTreeMap<FileClass, FileTotals>>,
    /// Waits of its sessions.
    pub waits: BTreeMap<WaitClass, WaitTotals>,
}

/// Properties that files of one total share. There are few classes, however many files there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileClass {
    /// Purpose of the files.
    pub kind: FileKind,
    /// They are counted below the page cache: the same I/O a second time.
    pub below_cache: bool,
}

/// Totals of the files of a class.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileTotals {
    /// When all of it was zero, nanoseconds since 1970.
    pub since_unix_ns: u64,
    /// Reads.
    pub read: OpTotals,
    /// Writes.
    pub write: OpTotals,
    /// Syncs; `None` where the source does not count them.
    pub sync: Option<OpTotals>,
}

/// Operations of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpTotals {
    /// Number of operations.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Those with a time: others must make no latency shorter.
    pub timed: u64,
    /// The time of those, nanoseconds.
    pub time_ns: u64,
    /// Where the source keeps them.
    pub latencies: Option<LatencyTotals>,
}

/// The latencies of operations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LatencyTotals {
    /// When there was none, nanoseconds since 1970.
    pub since_unix_ns: u64,
    /// Their number in each bucket.
    pub buckets: LatencyBuckets,
    /// Their sum, nanoseconds.
    pub time_ns: u64,
}

/// Waits of one class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WaitTotals {
    /// When it was zero, nanoseconds since 1970.
    pub since_unix_ns: u64,
    /// Time that sessions waited, nanoseconds.
    pub time_ns: u64,
}

impl SourceTotals {
    /// Adds intervals of files at a mount point that began then, by the wall clock.
    pub fn add_files(&mut self, mount: &str, files: &[FileInterval], began_unix_ns: u64) {
        let is_full = self.files.len() >= MOUNTS_MAX && !self.files.contains_key(mount);
        if files.is_empty() || is_full {
            return;
        }
        if !self.files.contains_key(mount) {
            self.files.insert(mount.to_owned(), BTreeMap::new());
        }
        let Some(classes) = self.files.get_mut(mount) else { return };
        for file in files {
            let class = FileClass { kind: file.file.kind, below_cache: file.meaning.cache == Cache::Below };
            let new = || FileTotals { since_unix_ns: began_unix_ns, ..FileTotals::default() };
            classes.entry(class).or_insert_with(new).add(&file.interval, began_unix_ns);
        }
    }

    /// Adds waits of an interval that began then.
    pub fn add_waits(&mut self, waits: &[WaitInterval], began_unix_ns: u64) {
        for wait in waits {
            let new = || WaitTotals { since_unix_ns: began_unix_ns, time_ns: 0 };
            let totals = self.waits.entry(wait.class).or_insert_with(new);
            let waited = wait.interval.known().and_then(|delta| delta.wait_ns.known());
            totals.time_ns = totals.time_ns.saturating_add(waited.unwrap_or(0));
        }
    }
}

impl FileTotals {
    fn add(&mut self, interval: &Interval, began_unix_ns: u64) {
        let Interval::Known(delta) = interval else { return };
        let counters = &delta.counters;
        let buckets = |of: fn(&Latencies) -> &LatencyBuckets| {
            delta.latencies.as_ref().map(|latencies| (of(latencies), began_unix_ns))
        };
        self.read.add(&counters.read, buckets(|latencies| &latencies.read));
        self.write.add(&counters.write, buckets(|latencies| &latencies.write));
        if let Some(sync) = counters.sync.known() {
            self.sync.get_or_insert_default().add(&sync, buckets(|latencies| &latencies.sync));
        }
    }
}

impl OpTotals {
    /// Whether the time of any is known; that of none is.
    pub fn is_timed(&self) -> bool {
        self.timed > 0 || self.count == 0
    }

    fn add(&mut self, ops: &Ops, latencies: Option<(&LatencyBuckets, u64)>) {
        self.count = self.count.saturating_add(ops.count);
        self.bytes = self.bytes.saturating_add(ops.bytes);
        let Some(time_ns) = ops.stall_ns.known() else { return };
        self.timed = self.timed.saturating_add(ops.count);
        self.time_ns = self.time_ns.saturating_add(time_ns);
        if let Some((buckets, began_unix_ns)) = latencies.filter(|(buckets, _)| buckets.count() > 0) {
            let new = || LatencyTotals { since_unix_ns: began_unix_ns, ..LatencyTotals::default() };
            let totals = self.latencies.get_or_insert_with(new);
            totals.buckets.merge(buckets);
            totals.time_ns = totals.time_ns.saturating_add(time_ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Counters, Delta, Figure, FileIdentity, Meaning, Reason, WaitDelta};

    fn interval(file: FileIdentity, counters: Counters, latencies: Option<Latencies>) -> FileInterval {
        FileInterval {
            file: file.into(),
            meaning: Meaning::REQUESTS,
            ended_unix_ns: 0,
            interval: Interval::Known(Delta { elapsed_ns: 1_000_000_000, counters, latencies }),
        }
    }

    fn reads(path: &str, read: Ops) -> FileInterval {
        let file = FileIdentity { path: path.into(), kind: FileKind::Data, ..FileIdentity::default() };
        interval(file, Counters::without_syncs(read, Ops::ZERO), None)
    }

    fn data(totals: &SourceTotals) -> &FileTotals {
        &totals.files["/data"][&FileClass { kind: FileKind::Data, below_cache: false }]
    }

    #[test]
    fn files_of_a_class_are_summed_and_a_restart_or_a_file_that_goes_takes_nothing_away() {
        let mut totals = SourceTotals::default();
        let both = [
            reads("/data/1", Ops::timed(10, 81_920, 20_000_000)),
            reads("/data/2", Ops::timed(5, 40_960, 5_000_000)),
        ];
        totals.add_files("/data", &both, 7);
        for reason in [Reason::Gone, Reason::Restart, Reason::FirstSight] {
            let unknown = FileInterval { interval: Interval::Unknown(reason), ..both[1].clone() };
            totals.add_files("/data", &[both[0].clone(), unknown], 8);
        }
        let found = data(&totals);
        assert_eq!((found.since_unix_ns, found.sync.is_none()), (7, true));
        assert_eq!((found.read.count, found.read.bytes, found.read.time_ns), (45, 368_640, 85_000_000));
        assert_eq!(totals.files["/data"].len(), 1);
    }

    #[test]
    fn mounts_that_come_and_go_are_bounded() {
        let mut totals = SourceTotals::default();
        for number in 0..100 {
            totals.add_files(&format!("/run/{number}"), &[reads("/1", Ops::timed(1, 1, 1))], 0);
        }
        assert_eq!(totals.files.len(), MOUNTS_MAX);
        totals.add_files("/run/0", &[reads("/1", Ops::timed(1, 1, 1))], 0);
        let class = FileClass { kind: FileKind::Data, below_cache: false };
        assert_eq!(totals.files["/run/0"][&class].read.count, 2);
    }

    #[test]
    fn a_class_begins_at_zero_with_the_first_file_that_is_seen() {
        let mut totals = SourceTotals::default();
        let first = FileInterval {
            interval: Interval::Unknown(Reason::FirstSight),
            ..reads("/data/1", Ops::timed(9, 9, 9))
        };
        totals.add_files("/data", &[first], 7);
        assert_eq!(*data(&totals), FileTotals { since_unix_ns: 7, ..FileTotals::default() });
    }

    #[test]
    fn what_is_not_timed_makes_no_latency_shorter() {
        let mut totals = SourceTotals::default();
        let untimed = Ops { count: 1000, bytes: 0, stall_ns: Figure::unknown(Reason::TimingOff) };
        for ops in [Ops::timed(10, 0, 20_000_000), untimed] {
            totals.add_files("/data", &[reads("/data/1", ops)], 0);
        }
        let read = &data(&totals).read;
        assert_eq!((read.count, read.timed, read.time_ns), (1010, 10, 20_000_000));
    }

    #[test]
    fn histograms_are_summed_with_the_time_of_what_is_in_them() {
        let mut totals = SourceTotals::default();
        let mut latencies = Latencies::default();
        latencies.read.record(100_000);
        let ops = Ops::timed(1, 8192, 100_000);
        let with = FileInterval {
            interval: Interval::Known(Delta {
                elapsed_ns: 1,
                counters: Counters::without_syncs(ops, Ops::ZERO),
                latencies: Some(latencies),
            }),
            ..reads("/data/1", ops)
        };
        totals.add_files("/data", &[reads("/data/2", ops)], 1);
        totals.add_files("/data", &[with.clone(), with], 2);
        let found = data(&totals);
        let latencies = found.read.latencies.as_ref().unwrap();
        assert_eq!((latencies.since_unix_ns, latencies.buckets.count(), latencies.time_ns), (2, 2, 200_000));
        assert_eq!((found.read.timed, &found.write.latencies), (3, &None));
    }

    #[test]
    fn thousands_of_events_are_a_few_classes_of_waits() {
        let mut totals = SourceTotals::default();
        let wait = |number: u64| WaitInterval {
            instance: "engine".into(),
            event: format!("event {number}"),
            class: WaitClass::ALL[number as usize % WaitClass::ALL.len()],
            interval: Figure::Known(WaitDelta {
                elapsed_ns: 1,
                count: Figure::Known(1),
                wait_ns: Figure::Known(3),
            }),
        };
        totals.add_waits(&(0..5000).map(wait).collect::<Vec<_>>(), 7);
        assert_eq!(totals.waits.len(), WaitClass::ALL.len());
        assert_eq!(totals.waits.values().map(|wait| wait.time_ns).sum::<u64>(), 15_000);
    }
}
