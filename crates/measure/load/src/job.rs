use std::time::Duration;
use storage::{Region, RegionState};
use workload::{Phase, Pool, RunLength, TargetChange, Trace, Workload};

/// A workload and the region it runs on.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    /// The target.
    pub region: &'a Region,
    /// The I/Os to issue.
    pub workload: &'a Workload,
    /// Share in a pool with shared outstanding I/Os; at least 1.
    pub weight: u32,
    /// I/Os to replay instead of chosen ones: at their recorded times where the workload's arrival is recorded,
    /// otherwise as fast as a closed loop allows.
    pub trace: Option<&'a Trace>,
}

impl Job<'_> {
    /// Whether it writes to its region.
    pub(crate) fn writes(&self) -> bool {
        self.trace.map_or(self.workload.shape.writes(), Trace::writes)
    }

    /// Changes of its region by other programs since.
    pub(crate) fn changes_since(&self, before: &RegionState) -> Vec<TargetChange> {
        self.region.changes_since(before, self.writes())
    }
}

/// How several jobs run at once.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// Warm-up, measured part, cool-down and the largest number of I/Os.
    pub length: RunLength,
    /// Width of a row of the results' series.
    pub slice: Duration,
    /// Whether results hold a series for each thread as well.
    pub thread_series: bool,
    /// Threads that each serve all jobs, instead of threads for each job.
    pub pool: Option<Pool>,
    /// The cores that threads run on.
    pub affinity: Affinity,
    /// For each job the best-effort I/O priority of its threads, 0 (highest) to 7 (lowest); `None`, and a job that
    /// is not listed, keeps the program's. In a pool all jobs have the same.
    pub priorities: Vec<Option<u8>>,
    /// For each job whether its buffers are allocated in reserved huge pages; a job that is not listed has ordinary
    /// buffers.
    pub huge_pages: Vec<bool>,
}

/// The cores that threads run on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Affinity {
    /// The scheduler's choice.
    #[default]
    None,
    /// The cores that this program may use, in turn.
    RoundRobin,
    /// These cores, in turn.
    Cores(Vec<u32>),
}

/// Decision of a run's watcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunControl {
    /// Continue as planned.
    Continue,
    /// End the warm-up now.
    EndWarmUp,
    /// End the run now because the user wants it: the result is marked as interrupted.
    Interrupt,
    /// End the run now because enough is known.
    Finish,
}

/// Most threads of all jobs together.
pub const THREADS_MAX: u64 = 8192;

impl From<RunLength> for RunOptions {
    /// One row a second, threads for each job, on any core.
    fn from(length: RunLength) -> RunOptions {
        RunOptions {
            length,
            slice: Phase::SLICE,
            thread_series: false,
            pool: None,
            affinity: Affinity::None,
            priorities: Vec::new(),
            huge_pages: Vec::new(),
        }
    }
}
