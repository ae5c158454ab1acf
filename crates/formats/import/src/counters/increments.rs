//! Differences summed to cumulative counters, so that the interval between any two captures is known where all rows between
//! them are present.
//!
//! ```text
//! rows of a file     |--a--|--b--|     |--c--|        a row ends at its time and began its elapsed time before
//! captures          t0    t1    t2    t3    t4
//! its counters       0     a    a+b    0'    c'       '  another epoch: between t2 and t3 there is no row
//! ```
//!
//! A missing row may mean no I/O, a reset of the counters, or a failed collection: the interval is unknown, not zero.

use filestats::{Counters, Epoch, Figure, FileIdentity, Ops, Reason, Sample, Snapshot};
use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::capture::{Capture, sample};

/// The I/O of one file in one interval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Increment {
    /// When the interval ended, nanoseconds since 1970.
    pub ended_unix_ns: u64,
    /// The length of the interval.
    pub elapsed_ns: u64,
    /// The file.
    pub file: FileIdentity,
    /// Reads in it.
    pub read: Ops,
    /// Writes in it.
    pub write: Ops,
    /// Bytes on disk at its end.
    pub size_bytes: u64,
}

const NOTE: &str =
    "from DBA Dash, which keeps no row of an interval without I/O or with a reset: those are unknown";
/// The tolerance between the start of a row and the end of the one before (or a twentieth of the interval, if longer): times
/// are kept to 10 ms, and the elapsed time comes from another clock.
const OFF_NS_MAX: u64 = 2_000_000_000;

/// Sorts rows by time; of two rows of one file and time the first is kept.
pub(super) fn sort(rows: &mut Vec<Increment>) {
    rows.sort_by(|a, b| (a.ended_unix_ns, a.file.key()).cmp(&(b.ended_unix_ns, b.file.key())));
    rows.dedup_by(|b, a| a.ended_unix_ns == b.ended_unix_ns && a.file.key() == b.file.key());
}

/// The captures between which the sorted rows lie; `last` is the newest kept snapshot.
pub(super) fn captures(source: &str, rows: &[Increment], last: Option<&Snapshot>) -> Vec<Capture> {
    let after_unix_ns = last.map(|last| last.taken_unix_ns);
    let mut instants: BTreeSet<u64> = rows.iter().map(|row| row.ended_unix_ns).chain(after_unix_ns).collect();
    let mut ending: BTreeMap<u64, Vec<(u64, &Increment)>> = BTreeMap::new();
    let mut starting: BTreeMap<u64, Vec<&Increment>> = BTreeMap::new();
    for row in rows {
        let began = row.ended_unix_ns.saturating_sub(row.elapsed_ns);
        let began = match nearest(&instants, began, row) {
            Some(instant) => instant,
            // Kept captures do not change.
            None if after_unix_ns.is_some_and(|after| began <= after) => continue,
            None => {
                instants.insert(began);
                began
            }
        };
        ending.entry(row.ended_unix_ns).or_default().push((began, row));
        starting.entry(began).or_default().push(row);
    }
    let mut files: HashMap<(String, String), (u64, Sample)> = HashMap::new();
    for sample in last.iter().flat_map(|last| &last.samples) {
        files.insert(key(&sample.file), (last.map_or(0, |last| last.taken_unix_ns), sample.clone()));
    }
    let capture = |at: u64| {
        let mut samples: Vec<Sample> = Vec::new();
        let mut here: BTreeSet<(String, String)> = BTreeSet::new();
        for (began, row) in ending.get(&at).into_iter().flatten() {
            let then =
                files.get(&key(&row.file)).filter(|(seen, then)| seen == began && *then.file == row.file);
            let sum = then.and_then(|(_, then)| sum(then, row));
            samples.push(sum.unwrap_or_else(|| first_sample(row, at, Figure::Known(row.size_bytes))));
            here.insert(key(&row.file));
        }
        for row in starting.get(&at).into_iter().flatten() {
            if here.insert(key(&row.file)) {
                samples.push(first_sample(row, at, Figure::unknown(Reason::FirstSight)));
            }
        }
        for sample in &samples {
            files.insert(key(&sample.file), (at, sample.clone()));
        }
        Capture::without_clock(source, at, samples, NOTE)
    };
    let new = instants.iter().copied().filter(|at| Some(*at) != after_unix_ns);
    new.map(capture).filter(|capture| !capture.snapshot.samples.is_empty()).collect()
}

/// The instant before its end at which a row began.
fn nearest(instants: &BTreeSet<u64>, began: u64, row: &Increment) -> Option<u64> {
    let off_ns_max = OFF_NS_MAX.max(row.elapsed_ns / 20);
    let (from, until) = (began.saturating_sub(off_ns_max), began.saturating_add(off_ns_max));
    let before = instants.range(from..=until.min(row.ended_unix_ns.saturating_sub(1)).max(from));
    before.copied().filter(|at| *at < row.ended_unix_ns).min_by_key(|at| at.abs_diff(began))
}

fn key(file: &FileIdentity) -> (String, String) {
    (file.instance.clone(), file.path.clone())
}

/// The counters with a row added; `None` where they would overflow 64 bits.
fn sum(then: &Sample, row: &Increment) -> Option<Sample> {
    let add = |a: Ops, b: Ops| {
        let stall_ns = match (a.stall_ns, b.stall_ns) {
            (Figure::Known(a), Figure::Known(b)) => Figure::Known(a.checked_add(b)?),
            _ => Figure::unknown(Reason::NotCounted),
        };
        Some(Ops { count: a.count.checked_add(b.count)?, bytes: a.bytes.checked_add(b.bytes)?, stall_ns })
    };
    let Counters { read, write, .. } = then.counters;
    let counters = Counters { read: add(read, row.read)?, write: add(write, row.write)?, ..then.counters };
    Some(Sample { counters, size_bytes: Figure::Known(row.size_bytes), ..then.clone() })
}

/// A file whose rows begin at an instant.
fn first_sample(row: &Increment, at: u64, size_bytes: Figure<u64>) -> Sample {
    let began = jiff::Timestamp::from_nanosecond(i128::from(at)).unwrap_or_default();
    let epoch = Epoch { run: "DBA Dash".into(), reset: format!("no row until {began}") };
    sample(row.file.clone(), epoch, [Ops::ZERO; 2], size_bytes)
}
