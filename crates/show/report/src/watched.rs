//! One interval of a source as `headroom watch` shows it: the files, the devices below, the waits.

use filestats::waits::{Reconciled, reconcile};
use filestats::{
    Band, Cache, Counters, Delta, Figure, FileInterval, FileKind, Interval, IoClass, Ops, Profile, Rules,
    Snapshot, Time, WaitInterval, intervals, wait_intervals,
};
use std::collections::HashMap;

/// Changes between two snapshots of a source.
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
    /// The devices that the files lie on, or that the source counts.
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
    /// Its changes, or why they cannot be known.
    pub row: FileInterval,
    /// Bytes on disk at its end.
    pub size_bytes: Figure<u64>,
}

/// One device's interval.
#[derive(Clone, Debug, PartialEq)]
pub struct WatchedDevice {
    /// Its changes, or why they cannot be known.
    pub row: FileInterval,
    /// Comparison with its capability; `None` where that is not known.
    pub load: Option<DeviceLoad>,
}

/// An interval of a device beside its capability.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DeviceLoad {
    /// Share of the storage in use, 1 = all.
    pub utilisation: Option<f64>,
    /// The multiple of this load that can be carried; `None` where there is too little I/O.
    pub headroom: Option<f64>,
    /// Latency of reads that the capability predicts at this load, nanoseconds.
    pub read_expected_ns: Option<f64>,
    /// Latency of writes that the capability predicts at this load, nanoseconds.
    pub write_expected_ns: Option<f64>,
}

/// Rows that are shown as one.
#[derive(Clone, Debug, PartialEq)]
pub struct FoldedFiles<'a> {
    /// The first of them.
    pub file: &'a WatchedFile,
    /// Number of others that show equal figures.
    pub others: usize,
    /// The process that used it, where the files are of several: "mysqld 812".
    pub process: Option<String>,
}

/// Folds shared libraries with the same figures into one row each: a program that starts reads dozens of them alike.
pub fn fold_libraries(files: Vec<&WatchedFile>) -> Vec<FoldedFiles<'_>> {
    let mut folded: Vec<FoldedFiles<'_>> = Vec::new();
    let of_several = files.windows(2).any(|two| two[0].row.file.instance != two[1].row.file.instance);
    for file in files {
        let same = |known: &&mut FoldedFiles<'_>| {
            known.file.is_library()
                && known.file.row.interval == file.row.interval
                && known.file.row.file.instance == file.row.file.instance
        };
        match folded.iter_mut().filter(|_| file.is_library()).find(same) {
            Some(known) => known.others += 1,
            None => {
                let process = if of_several { file.process() } else { None };
                folded.push(FoldedFiles { file, others: 0, process });
            }
        }
    }
    folded
}

impl FoldedFiles<'_> {
    /// The name of the row: "/usr/lib/libc.so.6 and 12 libraries alike (mysqld 812)". The process is last: narrow columns
    /// cut the beginning.
    pub fn name(&self) -> String {
        let file = match self.others {
            0 => self.file.name(),
            1 => format!("{} and 1 library alike", self.file.name()),
            others => format!("{} and {others} libraries alike", self.file.name()),
        };
        self.process.as_ref().map_or(file.clone(), |process| format!("{file} ({process})"))
    }
}

/// How the names of sources of devices begin.
const DEVICES: &str = "devices:";

impl WatchedInterval {
    /// The devices that are shown: those below files, and of a source of devices those that did anything.
    pub fn devices_shown(&self) -> impl Iterator<Item = &WatchedDevice> {
        self.devices.iter().filter(|device| !self.files.is_empty() || device.is_active())
    }

    /// The sum over all files, with the syncs of those that count them; `None` where nothing is known of any.
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

    /// The interval between two snapshots of one source. Its devices are those that the source itself counts.
    pub fn between(earlier: &Snapshot, later: &Snapshot) -> WatchedInterval {
        let at_end: HashMap<_, _> =
            later.samples.iter().chain(&earlier.samples).map(|sample| (sample.file.key(), sample)).collect();
        let rows = intervals(earlier, later, Rules::default());
        // A device that a process uses is a file of the process.
        let counts_devices = later.source.starts_with(DEVICES);
        let is_device = |row: &FileInterval| counts_devices && row.file.kind == FileKind::Device;
        let (devices, rows): (Vec<FileInterval>, Vec<_>) = rows.into_iter().partition(is_device);
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
            devices: devices.into_iter().map(|row| WatchedDevice { row, load: None }).collect(),
            waits,
            reconciled,
            notes: later.notes.clone(),
        }
    }
}

impl WatchedDevice {
    /// Whether it did anything, or may have: an unknown interval counts.
    fn is_active(&self) -> bool {
        self.row.interval.known().is_none_or(|delta| delta.counters.operations() > 0)
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

    /// The process that used it, of an instance such as "pid 812 (mysqld)": "mysqld 812".
    fn process(&self) -> Option<String> {
        let (pid, rest) = self.row.file.instance.strip_prefix("pid ")?.split_once(" (")?;
        let (command, _) = rest.rsplit_once(')')?;
        Some(format!("{command} {pid}"))
    }

    /// Whether it is a shared library: "libc.so.6".
    fn is_library(&self) -> bool {
        let name = self.row.file.path.rsplit('/').next().unwrap_or_default();
        name.ends_with(".so") || name.contains(".so.")
    }

    /// Its changes, where they are known.
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
        let row = FileInterval { file: file.into(), meaning, ended_unix_ns: 0, interval };
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
            file.row.file_mut().path = path.into();
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
    fn files_of_several_processes_have_the_names_of_the_processes() {
        let of = |instance: &str| {
            let mut file = data_file(Meaning::REQUESTS);
            file.row.file_mut().instance = instance.into();
            file
        };
        let names = |files: &[WatchedFile]| -> Vec<String> {
            fold_libraries(files.iter().collect()).iter().map(FoldedFiles::name).collect()
        };
        let several = [of("pid 812 (mysqld)"), of("pid 90 (a (b)), page faults"), of("block layer")];
        let expected = ["/data/shop.ibd (mysqld 812)", "/data/shop.ibd (a (b) 90)", "/data/shop.ibd"];
        assert_eq!(names(&several), expected);
        assert_eq!(names(&several[..1]), ["/data/shop.ibd"], "one process is named above the table");
    }

    #[test]
    fn the_devices_of_a_source_of_devices_are_no_files() {
        let sample = |kind, reads| filestats::Sample {
            file: FileIdentity { kind, ..FileIdentity::clone(&data_file(Meaning::REQUESTS).row.file) }.into(),
            size_bytes: Figure::Known(1),
            epoch: filestats::Epoch::for_run("boot"),
            meaning: Meaning { cache: Cache::Below, ..Meaning::REQUESTS },
            counters: Counters { read: Ops::timed(reads, 4096, 1), ..Counters::ZERO },
            latencies: None,
        };
        let at_source = |source: &str, clock_ns, reads| Snapshot {
            clock_ns,
            samples: vec![sample(FileKind::Device, reads)],
            source: source.into(),
            ..Snapshot::default()
        };
        let at = |clock_ns, reads| at_source("devices:", clock_ns, reads);
        let interval = WatchedInterval::between(&at(1, 1), &at(2, 5));
        assert_eq!((interval.files.len(), interval.below.len(), interval.devices.len()), (0, 0, 1));
        let [earlier, later] = [(1, 1), (2, 5)].map(|(ns, reads)| at_source("process:812", ns, reads));
        assert_eq!(WatchedInterval::between(&earlier, &later).devices.len(), 0, "a process used it");
        assert_eq!(interval.devices_shown().count(), 1);
        let idle = WatchedInterval::between(&at(1, 1), &at(2, 1));
        assert_eq!((idle.devices.len(), idle.devices_shown().count()), (1, 0));
    }

    #[test]
    fn the_time_of_a_submission_is_no_latency() {
        let file = data_file(Meaning { write_time: Time::ToSubmission, ..Meaning::REQUESTS });
        assert_eq!(file.latency_ns(), Some(3e6));
        assert_eq!(file.band(&Profile::default()).unwrap().name, "very good");
    }
}
