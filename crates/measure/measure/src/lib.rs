//! Measures the capability of a target: what decides a first verdict in about 12 s, all of it in about a minute.
//!
//! ```text
//! measure(target, plan, watch)  =  both passes of a Measurement, then its capability
//!   measure_first   points of 0.5 s that decide: random reads at rest, on the plateau, at the knee; appends and syncs;
//!                   then mixes, writes, and one point for each further size            -> a preliminary capability
//!   complete        for each shape of the plan
//!     sweep           N = 1, 2, 4, ... until throughput stops rising, then points around the knee
//!       point           load::run until steady, then until the confidence interval is narrow
//!     find_knee
//!                   maxima of further sizes and mixes, one point each -> CostModel::fit, some of them held out
//!                                                                                      -> a complete capability
//! ```
//!
//! Between the passes the caller may do something else: `check` runs its workload there and gives a first answer. The second
//! pass keeps points of the first that are as precise as its plan wants, and replaces the others. A measurement that is ended
//! during the second pass is preliminary: its effort says so, and verdicts from it have wider intervals.
//!
//! A point counts from the moment it is *steady*: over the last five slices the range is within 20 % of their mean and
//! the least-squares line moves by at most 10 % (the rule of SNIA's SSS Performance Test Specification, with slices of
//! 50 ms instead of rounds of a minute). It ends when the 95 % confidence interval of the mean, by Student's t over the
//! slices as batch means (Law and Kelton), is narrower than the plan's precision, or when its time is up.
//!
//! Reads run before writes, small blocks before large ones: a device's write cache must not be full of the previous
//! point. This crate opens nothing; it overwrites the region it is given if the plan writes.

mod first;
mod measurement;
mod plan;
mod point;
mod refresh;
mod sweep;

pub use measurement::{Measurement, Stage};
pub use plan::Plan;
pub use refresh::refresh;
pub use sweep::next_step;

use capability::{Capability, StorageLimits};
use std::ops::ControlFlow;
use std::time::Duration;
use storage::Region;
use workload::TargetFacts;

/// Progress of a measurement.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasureProgress {
    /// The point that runs: "random read 8 KiB, 16 outstanding".
    pub doing: String,
    /// Time since the measurement began.
    pub elapsed: Duration,
    /// Estimated time until it ends.
    pub left: Duration,
    /// I/Os a second of that point so far.
    pub iops: f64,
}

/// Why there is no capability.
#[derive(Debug, thiserror::Error)]
pub enum MeasureError {
    /// The load could not run.
    #[error(transparent)]
    Load(#[from] load::LoadError),
    /// It ended before the first point was known.
    #[error("nothing was measured: it was ended before the first point was known")]
    Nothing,
}

/// Target of a measurement.
#[derive(Clone, Copy, Debug)]
pub struct MeasuredTarget<'a> {
    /// The region that I/Os run on.
    pub region: &'a Region,
    /// For commits: an empty file on the same storage, opened through the page cache. Its size limits its growth.
    pub log: Option<&'a Region>,
    /// The facts of the target.
    pub facts: &'a TargetFacts,
    /// I/Os a second of other processes on its device before.
    pub foreign_iops: Option<f64>,
}

/// Measures a target. `watch` is called about every 20 ms; its break ends the measurement, and what was measured is kept.
///
/// # Errors
/// Where the load cannot run, or it was stopped before the first point was known.
pub fn measure(
    target: MeasuredTarget<'_>,
    plan: &Plan,
    watch: &mut dyn FnMut(&MeasureProgress) -> ControlFlow<()>,
) -> Result<Capability, MeasureError> {
    let mut measurement = Measurement::new(plan.clone());
    measurement.measure_first(target, watch)?;
    if measurement.stage() == Stage::Preliminary {
        measurement.complete(target, watch)?;
    }
    measurement.capability()
}

/// The facts of a target that are needed to name the reason of a knee.
pub fn knee_context(facts: &TargetFacts) -> StorageLimits {
    let requests_max = facts
        .devices
        .first()
        .and_then(|device| Some(device.requests_max? * device.queues.unwrap_or(1).max(1)));
    StorageLimits { caps: facts.caps.clone(), requests_max }
}
