//! One interval of a source as `headroom watch` shows it: the files, the devices below, the waits.

use filestats::waits::{Reconciled, reconcile};
use filestats::{
    Band, Cache, Counters, Delta, Figure, FileInterval, FileKind, Interval, IoClass, Ops, Profile, Rules,
    Snapshot, Time, WaitInterval, intervals, wait_intervals,
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
    pub devices: Vec<WatchedDevice>,
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

/// One device's interval.
#[derive(Clone, Debug, PartialEq)]
pub struct WatchedDevice {
    /// What happened, or why that cannot be known.
    pub row: FileInterval,
    /// How that compares with what it can give; `None` where that is not known.
    pub load: Option<DeviceLoad>,
}

/// An interval of a device beside its capability.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DeviceLoad {
    /// Share of the storage in use, 1 = all.
    pub utilisation: Option<f64>,
    /// How many times this load can be carried; `None` where there is too little I/O.
    pub headroom: Option<f64>,
    /// Latency of reads that the capability lets one expect at this load, nanoseconds.
    pub read_expected_ns: Option<f64>,
    /// The same of writes.
    pub write_expected_ns: Option<f64>,
}

/// Rows that are shown as one.
#[derive(Clone, Debug, PartialEq)]
pub struct FoldedFiles<'a> {
    /// The first of them.
    pub file: &'a WatchedFile,
    /// How many others show the same figures.
    pub others: usize,
}

/// Folds shared libraries with the same figures into one row each: a program that starts reads dozens of them alike.
pub fn fold_libraries(files: Vec<&WatchedFile>) -> Vec<FoldedFiles<'_>> {
    let mut folded: Vec<FoldedFiles<'_>> = Vec::new();
    for file in files {
        let same = |known: &&mut FoldedFiles<'_>| {
            known.file.is_library()
                && known.file.row.interval == file.row.interval
                && known.file.row.file.instance == file.row.file.instance
        };
        match folded.iter_mut().filter(|_| file.is_library()).find(same) {
            Some(known) => known.others += 1,
            None => folded.push(FoldedFiles { file, others: 0 }),
        }
    }
    folded
}

impl FoldedFiles<'_> {
    /// The name of the row: "/usr/lib/libc.so.6 and 12 libraries alike".
    pub fn name(&self) -> String {
        match self.others {
            0 => self.file.name(),
            1 => format!("{} and 1 library alike", self.file.name()),
            others => format!("{} and {others} libraries alike", self.file.name()),
        }
    }
}

impl WatchedInterval {
    /// What all files did together, with the syncs of those that count them; `None` where nothing is known of any.
    pub fn total<'a>(files: impl Iterator<Item = &'a WatchedFile>) -> Option<Delta> {
        let known: Vec<&Delta> = files.filter_map(WatchedFile::delta).collect();
        let elapsed_ns = known.iter().map(|delta| delta.elapsed_ns).max()?;
        let mut counters = known.iter().map(|delta| delta.counters).reduce(Counters::beside)?;
        let syncs = known.iter().filter_map(|delta| delta.counters.sync.known());
        if let Some(syncs) = syncs.reduce(Ops::plus) {
            counters.sync = Figure::Known(syncs);
        }
        Some(Delta { elapsed_ns, counters, latencies: None })
    }

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

    /// Whether it is a shared library: "libc.so.6".
    fn is_library(&self) -> bool {
        let name = self.row.file.path.rsplit('/').next().unwrap_or_default();
        name.ends_with(".so") || name.contains(".so.")
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
    use filestats::{FileIdentity, Meaning};

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
    fn libraries_with_the_same_figures_are_one_row() {
        let named = |path: &str| {
            let mut file = data_file(Meaning::REQUESTS);
            file.row.file.path = path.into();
            file
        };
        let mut busier = named("/usr/lib/libz.so.1");
        busier.row.interval = Interval::Unknown(filestats::Reason::Restart);
        let files = ["/usr/lib/libc.so.6", "/data/shop.ibd", "/usr/lib/libm.so", "/data/copy.ibd"].map(named);
        let folded = fold_libraries(files.iter().chain([&busier]).collect());
        let names: Vec<String> = folded.iter().map(FoldedFiles::name).collect();
        let expected = [
            "/usr/lib/libc.so.6 and 1 library alike",
            "/data/shop.ibd",
            "/data/copy.ibd",
            "/usr/lib/libz.so.1",
        ];
        assert_eq!(names, expected);
    }

    #[test]
    fn the_time_of_a_submission_is_no_latency() {
        let file = data_file(Meaning { write_time: Time::ToSubmission, ..Meaning::REQUESTS });
        assert_eq!(file.latency_ns(), Some(3e6));
        assert_eq!(file.band(&Profile::default()).unwrap().name, "very good");
    }
}
