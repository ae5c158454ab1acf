//! One file over the whole stretch: what it did and how long it took.

use crate::Analysis;
use crate::case::Direction;
use filestats::{Counters, Figure, FileIdentity, FileSeries, Latencies, LatencyBuckets, Meaning};
use findings::Fact;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use workload::Unit;

/// One file over the whole stretch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BusyFile {
    /// The file.
    pub file: Arc<FileIdentity>,
    /// Meaning of its counters.
    pub meaning: Meaning,
    /// Its I/O in the intervals that are known.
    pub counters: Counters,
    /// Time waited for it, all operations together.
    pub stall_ns: Figure<u64>,
    /// Of all files' time waited; `None` where that is not known.
    pub share: Option<f64>,
    /// Bytes on disk, as last reported.
    pub size_bytes: Figure<u64>,
    /// Time that these figures are of.
    pub known_ns: u64,
    /// Latencies that 99 of 100 operations did not exceed, where the source keeps histograms.
    pub p99_at_most_ns: AtMost,
}

/// Latencies that a percentile does not exceed, up to a quarter above it: the upper ends of histogram buckets. `None`
/// without a histogram, or an operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
    pub fn get(&self, direction: Direction) -> Option<u64> {
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
            let at_most = finding.direction.and_then(|direction| busy.p99_at_most_ns.get(direction));
            if let Some(ns) = at_most.filter(|_| of_it) {
                let what = "p99 of the whole stretch, at most".into();
                finding.facts.push(Fact { what, value: ns as f64, unit: Unit::Ns });
            }
        }
    }
}

impl BusyFile {
    pub(crate) fn from_series(series: &FileSeries) -> Option<BusyFile> {
        let known = series.steps.iter().filter_map(|step| step.added.known());
        let counters = known.reduce(Counters::followed_by)?;
        Some(BusyFile {
            file: series.file.clone(),
            meaning: series.meaning,
            counters,
            stall_ns: counters.stall_ns(),
            share: None,
            size_bytes: series.size_bytes,
            known_ns: series.known_ns,
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
