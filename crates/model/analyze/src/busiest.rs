//! Which files were waited for, and what their I/O was like: size beside latency.

use crate::analyzer::SourceCase;
use crate::limits::{BUSY_OUTSTANDING, BUSY_SHARE};
use crate::{Analysis, Direction, Finding, FindingKind};
use filestats::{
    Counters, Figure, FileIdentity, FileKind, FileSeries, Latencies, LatencyBuckets, Meaning, Ops,
};
use findings::{Fact, Weight, words};
use serde::{Deserialize, Serialize};

/// One file over the whole stretch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BusyFile {
    /// Which.
    pub file: FileIdentity,
    /// What its counters stand for.
    pub meaning: Meaning,
    /// What it did in the intervals that are known.
    pub counters: Counters,
    /// Time waited for it, all operations together.
    pub stall_ns: Figure<u64>,
    /// Of all files' time waited; `None` where that is not known.
    pub share: Option<f64>,
    /// Bytes on disk, as last told.
    pub size_bytes: Figure<u64>,
    /// Time that these figures are of.
    pub known_ns: u64,
    /// What 99 of 100 operations did not exceed, where the source keeps histograms.
    pub p99_at_most_ns: AtMost,
}

/// Latencies that a percentile does not exceed, up to a quarter above it: the upper ends of histogram buckets. `None`
/// without a histogram, or an operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AtMost {
    /// Of reads.
    pub read_ns: Option<u64>,
    /// Of writes.
    pub write_ns: Option<u64>,
    /// Of syncs.
    pub sync_ns: Option<u64>,
}

impl AtMost {
    /// Of one direction.
    pub fn of(&self, direction: Direction) -> Option<u64> {
        match direction {
            Direction::Read => self.read_ns,
            Direction::Write => self.write_ns,
            Direction::Sync => self.sync_ns,
        }
    }
}

impl Analysis {
    /// Takes the histograms of one of the busiest files over the stretch; findings of it have the p99 as a fact.
    pub fn add_latencies(&mut self, at: usize, latencies: &Latencies) {
        let Some(busy) = self.busiest.get_mut(at) else { return };
        let p99 = |buckets: &LatencyBuckets| buckets.at_most_ns(99.0);
        let (read_ns, write_ns, sync_ns) =
            (p99(&latencies.read), p99(&latencies.write), p99(&latencies.sync));
        busy.p99_at_most_ns = AtMost { read_ns, write_ns, sync_ns };
        for finding in &mut self.findings {
            let of_it = finding.instance.as_ref() == Some(&busy.file.instance)
                && finding.path.as_ref() == Some(&busy.file.path);
            let at_most = finding.direction.and_then(|direction| busy.p99_at_most_ns.of(direction));
            if let Some(ns) = at_most.filter(|_| of_it) {
                let (what, unit) = ("p99 of the whole stretch, at most".into(), "ns".into());
                finding.facts.push(Fact { what, value: ns as f64, unit });
            }
        }
    }
}

impl BusyFile {
    pub(crate) fn of(course: &FileSeries) -> Option<BusyFile> {
        let known = course.steps.iter().filter_map(|step| step.added.known());
        let counters = known.reduce(Counters::followed_by)?;
        Some(BusyFile {
            file: course.file.clone(),
            meaning: course.meaning,
            counters,
            stall_ns: counters.stall_ns(),
            share: None,
            size_bytes: course.size_bytes,
            known_ns: course.known_ns,
            p99_at_most_ns: AtMost::default(),
        })
    }

    /// Time waited; 0 where that is not known, so that it comes last.
    pub fn stall_known_ns(&self) -> u64 {
        self.stall_ns.known().unwrap_or(0)
    }

    /// Mean operations outstanding.
    pub fn outstanding(&self) -> Figure<f64> {
        self.stall_ns.map(|stall| stall as f64 / self.known_ns.max(1) as f64)
    }
}

/// One of several files has most of the time waited.
pub(crate) fn one_file(case: &SourceCase) -> Vec<Finding> {
    let Some(first) = case.busiest.first() else { return Vec::new() };
    let (Some(share), Figure::Known(stall_ns)) = (first.share, first.stall_ns) else { return Vec::new() };
    let outstanding = stall_ns as f64 / first.known_ns.max(1) as f64;
    if case.files_waited < 2 || share < BUSY_SHARE || outstanding < BUSY_OUTSTANDING {
        return Vec::new();
    }
    let Counters { read, write, sync, .. } = first.counters;
    let stall = |ops: Ops| ops.stall_ns.known().unwrap_or(0);
    let sync = sync.known().unwrap_or(Ops::ZERO);
    let all = [(Direction::Read, read), (Direction::Write, write), (Direction::Sync, sync)];
    let Some((most, ops)) = all.into_iter().max_by_key(|(_, ops)| stall(*ops)) else { return Vec::new() };
    let (Figure::Known(latency_ns), Figure::Known(bytes)) = (ops.latency_ns(), ops.average_bytes()) else {
        return Vec::new();
    };
    let size = match most {
        Direction::Sync => String::new(),
        _ => format!(" and {} each", words::bytes(bytes as u64)),
    };
    let text = format!(
        "{} of all time waited for files goes to {}, {} of that to its {}: {} of them, {}{size}",
        words::share(share),
        first.file.path,
        words::share(stall(ops) as f64 / stall_ns.max(1) as f64),
        most.plural(),
        words::rate(ops.count as f64),
        words::time(latency_ns),
    );
    let next = match (first.file.kind, most) {
        (FileKind::Log | FileKind::Journal, _) => {
            "commits: their number, batches, group commit; the log's own storage"
        }
        (FileKind::Temp, _) => "sorts and hashes that spill: their memory setting and plans",
        (_, Direction::Read) => "the tables and indexes in it: which statements read them, by which plans",
        _ => {
            "the tables and indexes in it: what changes them, which indexes are not needed; checkpoint settings"
        }
    };
    let finding = Finding::new(FindingKind::Busiest, Weight::Note, text)
        .of(&first.file, Some(most))
        .fact("share of all time waited", share, "share")
        .fact("mean outstanding", outstanding, "I/Os")
        .fact("mean latency", latency_ns, "ns");
    let finding = if most == Direction::Sync { finding } else { finding.fact("mean size", bytes, "B") };
    vec![finding.stall(stall_ns).next(next)]
}
