use crate::{Layout, RunLength, Workload};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;

/// A run: consecutive phases, each with one or more workloads at once.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Targets of the workloads.
    pub targets: Vec<PlanTarget>,
    /// In this order.
    pub phases: Vec<Phase>,
}

/// A target of a plan.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PlanTarget {
    /// Directory, regular file or block device.
    pub path: PathBuf,
    /// Size of the test file made in a directory, or of a file made at `path`; `None`: what is there is used.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub create_bytes: Option<u64>,
    /// Files or devices that make one target with `path`.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub laid: Option<PlanLayout>,
}

/// How the members of a target lie.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanLayout {
    /// Span or stripe.
    pub layout: Layout,
    /// The members after the target's own path, which is the first; in this order.
    pub others: Vec<PathBuf>,
}

/// Workloads that run at once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// For people: "load", "checkpoint burst".
    pub name: String,
    /// How long.
    #[serde(flatten)]
    pub length: RunLength,
    /// Width of a row of the result's series.
    pub slice: Duration,
    /// Threads that serve all workloads together, instead of threads for each.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub pool: Option<Pool>,
    /// The workloads.
    pub workloads: Vec<Placed>,
}

/// Threads that each serve all workloads of a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Pool {
    /// Number of threads.
    pub threads: u32,
    /// Outstanding I/Os of a thread, shared by the workloads by their weights; `None`: each workload has its
    /// own `outstanding` in every thread.
    pub outstanding: Option<u32>,
}

/// A workload on one of the plan's targets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Placed {
    /// Index of the target in the plan.
    pub target: usize,
    /// Share in a pool with shared outstanding I/Os.
    pub weight: u32,
    /// The load on it.
    pub workload: Workload,
    /// The file of a recorded trace whose I/Os are replayed, in place of chosen ones.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub replay: Option<PathBuf>,
}

/// The results of one phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PhaseResult {
    /// The phase's name.
    pub name: String,
    /// One result for each of its workloads, in their order.
    pub results: Vec<crate::RunResult>,
}

impl PlanTarget {
    /// All its members, in their order; only its own path where it is one file or device.
    pub fn members(&self) -> impl Iterator<Item = &PathBuf> {
        std::iter::once(&self.path).chain(self.laid.iter().flat_map(|laid| &laid.others))
    }
}

impl Phase {
    /// Default width of a row of the series.
    pub const SLICE: Duration = Duration::from_secs(1);

    /// One workload on the first target.
    pub fn single(workload: Workload, length: RunLength) -> Phase {
        let placed = Placed { target: 0, weight: 1, workload, replay: None };
        Phase { name: String::new(), length, slice: Phase::SLICE, pool: None, workloads: vec![placed] }
    }
}
