//! The parameters, the totals and the failures of the crash laboratory.

use crate::Step;
use crate::path::AfterCrash;
use crate::trace_text::ThreadedFailure;
#[cfg(test)]
use crate::workload::Model;
use std::cell::Cell;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

/// The parameters of a test.
#[derive(Clone, Debug)]
pub struct Lab {
    /// Determines all draws.
    pub seed: u64,
    /// Steps of a workload.
    pub steps: usize,
    /// Crash images at every write and sync.
    pub images: u64,
    /// Runs that go on from a crash, for every run.
    pub continued: u64,
    /// Faults for every first run.
    pub faults: u64,
    /// Whether the creation of a store and a store with its threads are crashed too.
    pub creation_and_threads: bool,
    /// Whether a failure is reduced to the steps that it needs.
    pub minimise: bool,
    /// A broken oracle for tests: rejects some states of some generations.
    #[cfg(test)]
    pub(crate) broken: Option<fn(u32, &Model) -> bool>,
}

impl Default for Lab {
    fn default() -> Self {
        Self {
            seed: 0,
            steps: 30,
            images: 3,
            continued: 2,
            faults: 12,
            creation_and_threads: true,
            minimise: true,
            #[cfg(test)]
            broken: None,
        }
    }
}

/// The totals of a test.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Workloads that ran.
    pub runs: u64,
    /// Crashes that were recovered and judged.
    pub crash_points: u64,
    /// Those of them during recovery.
    pub in_recovery: u64,
    /// Those of them after a fault of the disk.
    pub after_faults: u64,
    /// Crashes while threads ran.
    pub with_threads: u64,
    /// Those of them with several operations of the disk in flight.
    pub overlapping: u64,
    /// Processes that were killed, after which the page cache had what was not durable.
    pub kills: u64,
    /// Damage that was reported as damage.
    pub damage_reported: u64,
    /// Pages of different ages after a sync that a device acknowledged and did not do, which nothing reveals.
    pub unnoticed: u64,
    /// Errors and panics after which callers went on.
    pub survived: u64,
}

impl Outcome {
    /// Adds another test's totals.
    pub fn add(&mut self, other: &Self) {
        self.runs += other.runs;
        self.crash_points += other.crash_points;
        self.in_recovery += other.in_recovery;
        self.after_faults += other.after_faults;
        self.with_threads += other.with_threads;
        self.overlapping += other.overlapping;
        self.kills += other.kills;
        self.damage_reported += other.damage_reported;
        self.unnoticed += other.unnoticed;
        self.survived += other.survived;
    }
}

/// A violation that the oracle has found.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The seed; the same parameters give the same failure.
    pub seed: u64,
    /// The number of steps that were drawn.
    pub steps: usize,
    /// The place and the violation.
    pub what: String,
    /// The steps that it needs, after reduction.
    pub needed: Vec<Step>,
    /// For a failure after several crashes: each crash but the last, and the run after it.
    pub crashes: Vec<AfterCrash>,
    /// For a failure of threads: their trace.
    pub threads: Option<Box<ThreadedFailure>>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(threads) = &self.threads {
            return write!(f, "{threads}");
        }
        writeln!(f, "seed {} with {} steps: {}", self.seed, self.steps, self.what)?;
        writeln!(f, "needed for a failure, {} of its steps:", self.needed.len())?;
        let list = |f: &mut fmt::Formatter<'_>, steps: &[Step]| {
            let mut numbered = steps.iter().enumerate();
            numbered.try_for_each(|(index, step)| writeln!(f, "  {}. {step}", index + 1))
        };
        list(f, &self.needed)?;
        for crash in &self.crashes {
            writeln!(f, "{crash}")?;
            list(f, &crash.steps)?;
        }
        write!(f, "again: headroom lab crash --seed {}", self.seed)?;
        if self.steps != Lab::default().steps {
            write!(f, " --steps {}", self.steps)?;
        }
        writeln!(f)
    }
}

/// Turns a panic of the engine into a failure.
pub(crate) fn catch_panic<T>(work: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    let _quiet = Quiet::begin();
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or(panic.downcast_ref::<&str>().copied());
        Err(format!("panicked: {}", text.unwrap_or("without a message")))
    })
}

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// While it lives, a panic of this thread prints nothing, since the failure is printed.
struct Quiet;

impl Quiet {
    fn begin() -> Self {
        static ONCE: Once = Once::new();
        ONCE.call_once(|| {
            let otherwise = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                if !QUIET.get() {
                    otherwise(panic);
                }
            }));
        });
        QUIET.set(true);
        Self
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        QUIET.set(false);
    }
}
