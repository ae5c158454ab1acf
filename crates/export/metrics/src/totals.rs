use crate::pushed::Dropped;
use filestats::{
    Cache, FileIdentity, FileInterval, FileKind, Interval, Ops, Reason, Rules, Snapshot, WaitClass,
    intervals, wait_intervals,
};
use std::collections::BTreeMap;

/// The most classes of files with series of their own, and the most devices; further ones are summed under [`OTHERS`].
const CLASSES_MAX: usize = 500;
/// The most wait events with series of their own, and the most throttled files: a server may have thousands. Further ones
/// are summed under [`OTHERS`].
const WAITS_MAX: usize = 500;
/// The database or event of all further classes.
pub(crate) const OTHERS: &str = "(others)";

/// Sums since the program started; they never fall.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    pub(crate) classes: BTreeMap<Class, Sums>,
    pub(crate) waits: BTreeMap<Wait, u128>,
    pub(crate) sources: BTreeMap<String, Health>,
    /// Unknown intervals of files, by source and reason.
    pub(crate) unknown: BTreeMap<(String, Reason), u64>,
    /// Lost pushes, by server and reason.
    pub(crate) dropped: BTreeMap<(String, Dropped), u64>,
}

/// A class of files: one kind, one database, one drive.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Class {
    pub source: String,
    /// The database of the files, or the name of a device.
    pub name: String,
    pub kind: FileKind,
    pub drive: String,
    /// Counted below the page cache: the same I/O a second time.
    pub below: bool,
}

/// The I/O of the files of a class.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sums {
    pub read: Summed,
    pub write: Summed,
    pub sync: Summed,
}

/// Operations of one kind.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Summed {
    pub count: u64,
    pub bytes: u64,
    /// Operations with a time.
    pub timed: u64,
    pub time_ns: u128,
}

/// A wait event of a source.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Wait {
    pub source: String,
    pub class: WaitClass,
    pub event: String,
}

/// Whether a source can be read.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Health {
    pub up: bool,
    pub failures: u64,
}

impl Totals {
    /// Adds the interval between two snapshots of a source.
    pub fn add(&mut self, source: &str, earlier: &Snapshot, later: &Snapshot) {
        self.sources.entry(source.into()).or_default().up = true;
        let below =
            |row: &FileInterval| row.file.kind != FileKind::Device && row.meaning.cache == Cache::Below;
        for row in intervals(earlier, later, Rules::default()) {
            match &row.interval {
                Interval::Known(delta) => {
                    let sums = self.class(source, &row.file, below(&row));
                    sums.read.add(&delta.counters.read);
                    sums.write.add(&delta.counters.write);
                    if let Some(sync) = delta.counters.sync.known() {
                        sums.sync.add(&sync);
                    }
                }
                // A new file is not a lost interval.
                Interval::Unknown(Reason::FirstSight | Reason::Gone) => {}
                Interval::Unknown(reason) => {
                    let count = self.unknown.entry((source.into(), *reason)).or_default();
                    *count = count.saturating_add(1);
                }
            }
        }
        for wait in wait_intervals(earlier, later, Rules::default()) {
            let waited = wait.interval.known().and_then(|delta| delta.wait_ns.known());
            if let Some(waited) = waited {
                let key = Wait { source: source.into(), class: wait.class, event: wait.event };
                *self.wait(key) += u128::from(waited);
            }
        }
    }

    /// Notes the first snapshot of a source.
    pub fn began(&mut self, source: &str) {
        self.sources.entry(source.into()).or_default().up = true;
    }

    /// Notes that a source failed.
    pub fn failed(&mut self, source: &str) {
        let health = self.sources.entry(source.into()).or_default();
        health.up = false;
        health.failures = health.failures.saturating_add(1);
    }

    /// Throttled files and wait events have separate limits.
    fn wait(&mut self, mut wait: Wait) -> &mut u128 {
        let throttled = wait.class == WaitClass::Throttled;
        let alike = |other: &&Wait| (other.class == WaitClass::Throttled) == throttled;
        if !self.waits.contains_key(&wait) && self.waits.keys().filter(alike).count() >= WAITS_MAX {
            wait.event = OTHERS.into();
        }
        self.waits.entry(wait).or_default()
    }

    fn class(&mut self, source: &str, file: &FileIdentity, below: bool) -> &mut Sums {
        let name = match file.kind {
            FileKind::Device => file.path.clone(),
            _ => file.database.clone().unwrap_or_default(),
        };
        let mut class = Class {
            source: source.into(),
            name,
            kind: file.kind,
            drive: file.drive.clone().unwrap_or_default(),
            below,
        };
        let device = file.kind == FileKind::Device;
        let alike = |other: &&Class| (other.kind == FileKind::Device) == device;
        if !self.classes.contains_key(&class) && self.classes.keys().filter(alike).count() >= CLASSES_MAX {
            class.name = OTHERS.into();
        }
        self.classes.entry(class).or_default()
    }
}

impl Summed {
    fn add(&mut self, ops: &Ops) {
        self.count = self.count.saturating_add(ops.count);
        self.bytes = self.bytes.saturating_add(ops.bytes);
        if let Some(ns) = ops.stall_ns.known() {
            self.timed = self.timed.saturating_add(ops.count);
            self.time_ns += u128::from(ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Exposition, Format};
    use filestats::{Counters, Epoch, Figure, Meaning, Sample, WaitSample};

    fn sample(path: &str, database: &str, run: &str, read: Ops) -> Sample {
        Sample {
            file: FileIdentity {
                instance: "engine".into(),
                database: Some(database.into()),
                database_id: None,
                file_id: "1".into(),
                kind: FileKind::Data,
                path: path.into(),
                drive: Some("/data".into()),
                handle: None,
                object: None,
            },
            epoch: Epoch::for_run(run),
            meaning: Meaning::REQUESTS,
            counters: Counters { read, ..Counters::ZERO },
            size_bytes: Figure::Known(1),
            latencies: None,
        }
    }

    fn snapshot(at_s: u64, samples: Vec<Sample>) -> Snapshot {
        Snapshot {
            source: "engine".into(),
            taken_unix_ns: at_s * 1_000_000_000,
            clock_ns: at_s * 1_000_000_000,
            complete: None,
            samples,
            waits: vec![],
            notes: vec![],
        }
    }

    fn value(text: &str, line: &str) -> f64 {
        let found = text.lines().find_map(|each| each.strip_prefix(line)).expect(text);
        found.trim().parse().expect(found)
    }

    const SHOP: &str = "{source=\"engine\",database=\"shop\",kind=\"data\",drive=\"/data\",layer=\"file\"}";

    #[test]
    fn files_of_a_class_are_summed_and_a_file_that_goes_takes_nothing_away() {
        let mut totals = Totals::default();
        let one = |count| sample("/data/1", "shop", "1", Ops::timed(count, count * 8192, count * 2_000_000));
        let two = |count| sample("/data/2", "shop", "1", Ops::timed(count, count * 8192, count * 4_000_000));
        totals.add("engine", &snapshot(0, vec![one(5), two(5)]), &snapshot(15, vec![one(15), two(15)]));
        totals.add("engine", &snapshot(15, vec![one(15), two(15)]), &snapshot(30, vec![one(25)]));
        let text = totals.text(Format::OpenMetrics);
        assert_eq!(value(&text, &format!("headroom_file_reads_total{SHOP}")), 30.0);
        assert_eq!(value(&text, &format!("headroom_file_read_bytes_total{SHOP}")), 30.0 * 8192.0);
        let seconds = value(&text, &format!("headroom_file_read_time_seconds_sum{SHOP}"));
        let count = value(&text, &format!("headroom_file_read_time_seconds_count{SHOP}"));
        assert!((seconds - 0.080).abs() < 1e-12 && count == 30.0, "{text}");
    }

    #[test]
    fn what_is_not_timed_makes_no_latency_shorter() {
        let mut totals = Totals::default();
        let untimed = |count| Ops { count, bytes: 0, stall_ns: Figure::unknown(Reason::TimingOff) };
        let timed = |count| Ops::timed(count, 0, count * 1_000_000);
        let at = |at_s, ops| snapshot(at_s, vec![sample("/data/1", "shop", "1", ops)]);
        totals.add("engine", &at(0, timed(0)), &at(15, timed(10)));
        totals.add("engine", &at(15, timed(10)), &at(30, untimed(1000)));
        let text = totals.text(Format::OpenMetrics);
        assert_eq!(value(&text, &format!("headroom_file_reads_total{SHOP}")), 1000.0);
        assert_eq!(value(&text, &format!("headroom_file_read_time_seconds_count{SHOP}")), 10.0);
    }

    #[test]
    fn a_restart_adds_nothing_and_is_counted() {
        let mut totals = Totals::default();
        let at =
            |at_s, run, count| snapshot(at_s, vec![sample("/data/1", "shop", run, Ops::timed(count, 0, 1))]);
        totals.add("engine", &at(0, "1", 900), &at(15, "2", 3));
        totals.failed("other");
        let text = totals.text(Format::OpenMetrics);
        assert!(!text.contains("headroom_file_reads_total{"), "{text}");
        assert_eq!(
            value(
                &text,
                "headroom_intervals_unknown_total{source=\"engine\",reason=\"the engine restarted\"}"
            ),
            1.0
        );
        assert_eq!(value(&text, "headroom_source_up{source=\"engine\"}"), 1.0);
        assert_eq!(value(&text, "headroom_source_up{source=\"other\"}"), 0.0);
    }

    #[test]
    fn a_million_databases_are_a_bounded_number_of_lines() {
        let mut totals = Totals::default();
        let many = |count| -> Vec<Sample> {
            let of = |at: u64| {
                sample(&format!("/data/{at}"), &format!("tenant{at}"), "1", Ops::timed(count, 0, 1))
            };
            (0..3000).map(of).collect()
        };
        totals.add("engine", &snapshot(0, many(0)), &snapshot(15, many(2)));
        let text = totals.text(Format::OpenMetrics);
        let reads: Vec<f64> = text
            .lines()
            .filter(|line| line.starts_with("headroom_file_reads_total{"))
            .map(|line| line.rsplit(' ').next().unwrap().parse().unwrap())
            .collect();
        assert_eq!(reads.len(), CLASSES_MAX + 1);
        assert_eq!(reads.iter().sum::<f64>(), 6000.0);
    }

    #[test]
    fn thousands_of_throttled_files_leave_room_for_what_sessions_wait_for() {
        let mut totals = Totals::default();
        let wait = |event: String, class, wait_ns| WaitSample {
            instance: "engine".into(),
            event,
            class,
            epoch: Epoch::for_run("1"),
            count: Figure::Known(1),
            wait_ns: Figure::Known(wait_ns),
        };
        let at = |at_s, ns| {
            let throttled = |file| wait(format!("queued of {file}"), WaitClass::Throttled, ns);
            let mut waits: Vec<WaitSample> = (0..3000).map(throttled).collect();
            waits.extend((0..600).map(|event| wait(format!("event {event}"), WaitClass::DataRead, ns)));
            Snapshot { waits, ..snapshot(at_s, vec![]) }
        };
        totals.add("engine", &at(0, 0), &at(15, 1_000_000_000));
        let text = totals.text(Format::OpenMetrics);
        let seconds = |class: &str| -> Vec<f64> {
            let of_class = format!("class=\"{class}\"");
            let lines = text.lines().filter(|line| line.starts_with("headroom_wait_time_seconds_total{"));
            let lines = lines.filter(|line| line.contains(&of_class));
            lines.map(|line| line.rsplit(' ').next().unwrap().parse().unwrap()).collect()
        };
        for (class, all) in [("throttled", 3000.0), ("data read", 600.0)] {
            let of_class = seconds(class);
            assert_eq!((of_class.len(), of_class.iter().sum::<f64>()), (WAITS_MAX + 1, all), "{class}");
        }
    }
}
