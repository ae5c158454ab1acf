//! The crash laboratory: runs a workload on the simulated disk, crashes it at every write and sync, recovers and asks the
//! oracle. A recovered store is the start of another run, whose recovery is crashed, too.

use crate::indices;
use crate::kind::Kind;
use crate::run::{Run, perform};
use crate::shrink::{Fell, Then};
use crate::workload::Change;
#[cfg(test)]
use crate::workload::Model;
use crate::{Chance, Fault, SimDisk, Step};
use pagestore::Recovery;
use std::cell::Cell;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

/// Bounds the attempts to reproduce a failure with fewer steps or changes.
const TRIES_MAX: u32 = 150;

/// The stages of a test, in order.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Workload,
    Crashes,
    Faults,
    Rot,
    All,
}

/// Lost ends of virtual log files per seed.
const LOST_ENDS_MAX: usize = 4;
/// Lost commits right before the pages of a checkpoint, per seed.
const LOST_UNDER_PAGES_MAX: usize = 4;

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
    /// Damage that was reported as damage.
    pub damage_reported: u64,
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
        self.damage_reported += other.damage_reported;
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
    pub then: Vec<Then>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {} with {} steps: {}", self.seed, self.steps, self.what)?;
        writeln!(f, "needed for a failure, {} of its steps:", self.needed.len())?;
        let list = |f: &mut fmt::Formatter<'_>, steps: &[Step]| {
            let mut numbered = steps.iter().enumerate();
            numbered.try_for_each(|(index, step)| writeln!(f, "  {}. {step}", index + 1))
        };
        list(f, &self.needed)?;
        for then in &self.then {
            writeln!(f, "{then}")?;
            list(f, &then.steps)?;
        }
        write!(f, "again: headroom lab crash --seed {}", self.seed)?;
        if self.steps != Lab::default().steps {
            write!(f, " --steps {}", self.steps)?;
        }
        writeln!(f)
    }
}

impl Lab {
    /// Tests one seed; returns the totals, or the first failure, reduced.
    ///
    /// # Errors
    /// The failure.
    pub fn run(&self) -> Result<Outcome, Box<Failure>> {
        let mut all = Outcome::default();
        for (kind, steps) in self.workloads() {
            match self.run_steps(kind, &steps, Stage::All) {
                Ok(done) => all.add(&done),
                Err((stage, fell)) => return Err(Box::new(self.failure(kind, steps, stage, fell))),
            }
        }
        Ok(all)
    }

    /// The failure as it is reported, reduced if `minimise` is set.
    fn failure(&self, kind: Kind, steps: Vec<Step>, stage: Stage, fell: Fell) -> Failure {
        let failure = |what, needed, then| Failure { seed: self.seed, steps: self.steps, what, needed, then };
        if !fell.way.is_empty() {
            let (what, needed, then) = self.along(kind, &steps, fell);
            failure(what, needed, then)
        } else if self.minimise {
            let (needed, what) = self.minimise(kind, steps, stage, fell.what);
            failure(what, needed, Vec::new())
        } else {
            failure(fell.what, steps, Vec::new())
        }
    }

    /// Leaves out what a failure does not need: steps, in ever smaller pieces, and then changes of the steps that are left.
    fn minimise(&self, kind: Kind, steps: Vec<Step>, stage: Stage, what: String) -> (Vec<Step>, String) {
        let mut tries = TRIES_MAX;
        let mut newest = what;
        let mut fails = |steps: &[Step]| {
            tries = tries.saturating_sub(1);
            let failure = (tries > 0).then(|| self.run_steps(kind, steps, stage).err()).flatten();
            // A failure after more crashes is a different one.
            let same = failure.filter(|(_, fell)| fell.way.is_empty());
            same.map(|(_, fell)| newest = fell.what).is_some()
        };
        let mut steps = without(steps, &mut fails);
        for at in 0..steps.len() {
            let lists = steps[at].changes_mut().len();
            for list in 0..lists {
                let changes = steps[at].changes_mut()[list].clone();
                let fewer = without(changes, &mut |fewer: &[Change]| {
                    let mut steps = steps.clone();
                    *steps[at].changes_mut()[list] = fewer.to_vec();
                    fails(&steps)
                });
                *steps[at].changes_mut()[list] = fewer;
            }
        }
        (steps, newest)
    }

    /// Runs the stages on these steps; `only` selects one.
    fn run_steps(&self, kind: Kind, steps: &[Step], only: Stage) -> Result<Outcome, (Stage, Fell)> {
        let mut stage = Stage::Workload;
        let judged = self.judge_steps(kind, steps, only, &mut stage);
        judged.map_err(|fell| (stage, fell))
    }

    fn judge_steps(
        &self,
        kind: Kind,
        steps: &[Step],
        only: Stage,
        stage: &mut Stage,
    ) -> Result<Outcome, Fell> {
        let (setting, mut chance) = self.setting(kind);
        let mut outcome = Outcome { runs: 1, ..Outcome::default() };
        let run = caught(|| perform(setting, SimDisk::new(), None, steps)).map_err(Fell::of)?;
        outcome.survived += run.met.survived();
        if kind == Kind::Snapshots {
            return Ok(outcome);
        }
        if kind == Kind::Round {
            *stage = Stage::Faults;
            let over = indices::writes_over_indices(&run.trace, setting.layout.vlf_bytes);
            for at in over.into_iter().take(LOST_ENDS_MAX) {
                let judged = || self.judge_one_fault(&run, Fault::Lost, at, steps, &mut chance, &mut outcome);
                caught(judged).map_err(Fell::of)?;
            }
            *stage = Stage::Rot;
            let mut chance = Chance::new(self.seed ^ 0x1d78);
            caught(|| self.judge_misled(&run, &mut chance, &mut outcome)).map_err(Fell::of)?;
            return Ok(outcome);
        }
        if matches!(only, Stage::Crashes | Stage::All) {
            *stage = Stage::Crashes;
            self.judge_run(&run, &mut chance, &mut outcome, 0)?;
        }
        if kind == Kind::Troubled {
            return Ok(outcome);
        }
        if matches!(only, Stage::Faults | Stage::All) {
            *stage = Stage::Faults;
            // Each stage has its own generator, so that it can run alone.
            let mut chance = Chance::new(self.seed ^ 0xfa17);
            caught(|| self.judge_faults(&run, steps, &mut chance, &mut outcome)).map_err(Fell::of)?;
            let mut chance = Chance::new(self.seed ^ 0x1057);
            caught(|| self.judge_lost_commits(&run, steps, &mut chance, &mut outcome)).map_err(Fell::of)?;
        }
        if matches!(only, Stage::Rot | Stage::All) {
            *stage = Stage::Rot;
            let mut chance = Chance::new(self.seed ^ 0x0b17);
            caught(|| self.judge_rot(&run, &mut chance, &mut outcome)).map_err(Fell::of)?;
            caught(|| self.judge_misled(&run, &mut chance, &mut outcome)).map_err(Fell::of)?;
        }
        Ok(outcome)
    }

    /// Runs the same steps on disks with random faults.
    fn judge_faults(
        &self,
        run: &Run,
        steps: &[Step],
        chance: &mut Chance,
        outcome: &mut Outcome,
    ) -> Result<(), String> {
        for _ in 0..self.faults {
            let fault = Fault::ALL[chance.below(Fault::ALL.len() as u64) as usize];
            let mut at = chance.below(run.trace.len() as u64) as usize;
            if chance.once_in(4) {
                at = indices::write_of_index(&run.trace, chance).unwrap_or(at);
            }
            self.judge_one_fault(run, fault, at, steps, chance, outcome)?;
        }
        Ok(())
    }

    /// Runs the same steps on a disk that loses a commit right before pages of it are written, and crashes there.
    fn judge_lost_commits(
        &self,
        run: &Run,
        steps: &[Step],
        chance: &mut Chance,
        outcome: &mut Outcome,
    ) -> Result<(), String> {
        let under = indices::commits_right_under_pages(&run.trace);
        for (at, synced) in under.into_iter().take(LOST_UNDER_PAGES_MAX) {
            let run = self.run_with_fault(run, Fault::Lost, at, steps)?;
            outcome.runs += 1;
            self.judge_fault(&run, at..=synced, chance, outcome)?;
        }
        Ok(())
    }

    fn judge_one_fault(
        &self,
        run: &Run,
        fault: Fault,
        at: usize,
        steps: &[Step],
        chance: &mut Chance,
        outcome: &mut Outcome,
    ) -> Result<(), String> {
        let run = self.run_with_fault(run, fault, at, steps)?;
        outcome.runs += 1;
        let last = run.trace.len();
        self.judge_fault(&run, last..=last, chance, outcome)
    }

    fn run_with_fault(&self, run: &Run, fault: Fault, at: usize, steps: &[Step]) -> Result<Run, String> {
        let mut setting = run.setting;
        if !fault.is_told() {
            // Only reading back finds a page that a device has lost; recovery does not.
            setting.options.verify_writes = true;
            setting.options.recovery = Recovery::Instant;
        }
        perform(setting, SimDisk::new().with_fault(at, fault), Some((fault, at)), steps)
    }
}

/// Turns a panic of the engine into a failure.
pub(crate) fn caught<T>(work: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
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

/// Removes parts of `all`, in ever smaller pieces, as long as the rest still fails.
pub(crate) fn without<T: Clone>(mut all: Vec<T>, fails: &mut impl FnMut(&[T]) -> bool) -> Vec<T> {
    let mut piece = all.len().div_ceil(2);
    while piece > 0 {
        let mut at = 0;
        while at < all.len() {
            let mut fewer = all.clone();
            fewer.drain(at..(at + piece).min(all.len()));
            if fails(&fewer) {
                all = fewer;
            } else {
                at += piece;
            }
        }
        piece /= 2;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::draw_round;
    use crate::workload;

    /// The part that runs with every test; `examples/crash.rs` runs any number of seeds.
    #[test]
    fn every_acknowledged_commit_survives_a_crash_at_any_point() {
        let mut outcome = Outcome::default();
        for seed in 0..16 {
            match (Lab { seed, steps: 24, images: 2, continued: 1, faults: 6, ..Lab::default() }).run() {
                Ok(done) => outcome.add(&done),
                Err(failure) => panic!("{failure}"),
            }
        }
        println!("{outcome:?}");
        assert!(
            outcome.crash_points >= 1000
                && outcome.in_recovery > 0
                && outcome.damage_reported > 0
                && outcome.survived > 0,
            "{outcome:?}"
        );
    }

    #[test]
    fn a_log_that_goes_round_loses_ends_under_which_a_whole_index_lies() {
        let lost: u64 = (0..4)
            .map(|seed| {
                let lab = Lab { seed, ..Lab::default() };
                let steps = draw_round(&mut Chance::new(seed));
                let outcome = lab.run_steps(Kind::Round, &steps, Stage::All);
                outcome.map_err(|(_, what)| what).expect("it holds").runs - 1
            })
            .sum();
        assert!(lost > 0, "no end of a virtual log file was written over a whole index");
    }

    #[test]
    fn commits_are_lost_right_under_the_pages_of_a_checkpoint() {
        let met: usize = (0..8)
            .map(|seed| {
                let (setting, _) = Lab { seed, ..Lab::default() }.setting(Kind::Any);
                let steps = workload::draw(&mut Chance::new(seed), Lab::default().steps);
                let run = perform(setting, SimDisk::new(), None, &steps).expect("it works");
                indices::commits_right_under_pages(&run.trace).len()
            })
            .sum();
        assert!(met > 0, "every commit had a later block before a page of it was written");
    }

    #[test]
    fn what_a_failure_does_not_need_is_left_out() {
        let mut tries = 0;
        let mut fails = |numbers: &[u32]| {
            tries += 1;
            numbers.contains(&7) && numbers.contains(&23)
        };
        assert_eq!(without((0..30).collect(), &mut fails), [7, 23]);
        assert!(tries < 60, "{tries} tries");
    }
}
