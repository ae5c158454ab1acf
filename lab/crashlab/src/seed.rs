//! The test of one seed: its workloads, crashed at every write and sync, on faulty disks and with damaged files.

use crate::crashes::Judge;
use crate::creation::{CreationTotals, judge_creation};
use crate::lab::{Failure, Lab, Outcome, catch_panic};
use crate::path::Counterexample;
use crate::reduce::reduce;
use crate::run::{Run, perform};
use crate::workload::{Change, WorkloadKind};
use crate::{Chance, Fault, SimDisk, Step, indices};
use pagestore::Recovery;

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

/// Beside this many faults there is one of a rarer type.
const RARE_ONE_IN: u64 = 3;

/// Lost ends of virtual log files per seed.
const LOST_ENDS_MAX: usize = 4;

/// Lost commits right before the pages of a checkpoint, per seed.
const LOST_UNDER_PAGES_MAX: usize = 4;

impl Lab {
    /// Tests one seed; returns the totals, or the first failure, reduced.
    ///
    /// # Errors
    /// The failure.
    pub fn run(&self) -> Result<Outcome, Box<Failure>> {
        let mut all = Outcome::default();
        if self.creation_and_threads {
            all.add(&self.run_creation_and_threads()?);
        }
        for (kind, steps) in self.workloads() {
            match self.run_steps(kind, &steps, Stage::All) {
                Ok(done) => all.add(&done),
                Err((stage, found)) => return Err(Box::new(self.failure(kind, steps, stage, found))),
            }
        }
        Ok(all)
    }

    /// Crashes the creation of a store, and one with its threads.
    fn run_creation_and_threads(&self) -> Result<Outcome, Box<Failure>> {
        let (setting, mut chance) = self.setting(WorkloadKind::Random);
        let created = catch_panic(|| judge_creation(setting.options, &mut chance));
        let mut all = Outcome::from(created.map_err(|what| Box::new(self.plain_failure(what)))?);
        let done = self.run_threads().map_err(|threads| {
            let failure = self.plain_failure(threads.what.clone());
            Box::new(Failure { threads: Some(threads), ..failure })
        });
        all.add(&done?);
        Ok(all)
    }

    /// A failure that needs no steps.
    fn plain_failure(&self, what: String) -> Failure {
        let (needed, crashes, threads) = Default::default();
        Failure { seed: self.seed, steps: self.steps, what, needed, crashes, threads }
    }

    /// The failure as it is reported, reduced if `minimise` is set.
    fn failure(&self, kind: WorkloadKind, steps: Vec<Step>, stage: Stage, found: Counterexample) -> Failure {
        let failure = |what, needed, crashes| Failure { needed, crashes, ..self.plain_failure(what) };
        if !found.path.is_empty() {
            let (what, needed, crashes) = self.shrink_path(kind, &steps, found);
            failure(what, needed, crashes)
        } else if self.minimise {
            let (needed, what) = self.minimise(kind, steps, stage, found.what);
            failure(what, needed, Vec::new())
        } else {
            failure(found.what, steps, Vec::new())
        }
    }

    /// Leaves out what a failure does not need: steps, in ever smaller pieces, and then changes of the steps that are left.
    fn minimise(
        &self,
        kind: WorkloadKind,
        steps: Vec<Step>,
        stage: Stage,
        what: String,
    ) -> (Vec<Step>, String) {
        let mut tries = TRIES_MAX;
        let mut newest = what;
        let mut fails = |steps: &[Step]| {
            tries = tries.saturating_sub(1);
            let failure = (tries > 0).then(|| self.run_steps(kind, steps, stage).err()).flatten();
            // A failure after more crashes is a different one.
            let same = failure.filter(|(_, found)| found.path.is_empty());
            same.map(|(_, found)| newest = found.what).is_some()
        };
        let mut steps = reduce(steps, &mut fails);
        for at in 0..steps.len() {
            let lists = steps[at].changes_mut().len();
            for list in 0..lists {
                let changes = steps[at].changes_mut()[list].clone();
                let fewer = reduce(changes, &mut |fewer: &[Change]| {
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
    fn run_steps(
        &self,
        kind: WorkloadKind,
        steps: &[Step],
        only: Stage,
    ) -> Result<Outcome, (Stage, Counterexample)> {
        let mut stage = Stage::Workload;
        let mut judge = Judge { lab: self, outcome: Outcome { runs: 1, ..Outcome::default() } };
        match judge.judge_steps(kind, steps, only, &mut stage) {
            Ok(()) => Ok(judge.outcome),
            Err(found) => Err((stage, found)),
        }
    }
}

impl From<CreationTotals> for Outcome {
    fn from(CreationTotals { crash_points, kills }: CreationTotals) -> Self {
        Self { runs: 1, crash_points, kills, ..Self::default() }
    }
}

impl Judge<'_> {
    fn judge_steps(
        &mut self,
        kind: WorkloadKind,
        steps: &[Step],
        only: Stage,
        stage: &mut Stage,
    ) -> Result<(), Counterexample> {
        // Each stage has its own generator, so that it can run alone.
        let own = |salt: u64| Chance::new(self.lab.seed ^ salt);
        let [mut faults, mut lost, mut rot, mut misled] = [0xfa17, 0x1057, 0x0b17, 0x1d78].map(own);
        let [mut rare, mut newer] = [0x2a2e, 0x2e3e].map(own);
        let (setting, mut chance) = self.lab.setting(kind);
        let run = catch_panic(|| perform(setting, SimDisk::new(), None, steps))?;
        self.outcome.survived += run.survived.total();
        if kind == WorkloadKind::Snapshots {
            return Ok(());
        }
        if kind == WorkloadKind::LogReuse {
            *stage = Stage::Faults;
            let over = indices::writes_over_indices(&run.trace, setting.layout.vlf_bytes);
            for at in over.into_iter().take(LOST_ENDS_MAX) {
                catch_panic(|| self.judge_one_fault(&run, (Fault::Lost, at), steps, &mut chance))?;
            }
            *stage = Stage::Rot;
            return Ok(catch_panic(|| self.judge_misled(&run, &mut misled))?);
        }
        if matches!(only, Stage::Crashes | Stage::All) {
            *stage = Stage::Crashes;
            self.judge_run(&run, &mut chance, 0)?;
        }
        if kind == WorkloadKind::Errors {
            return Ok(());
        }
        if matches!(only, Stage::Faults | Stage::All) {
            *stage = Stage::Faults;
            catch_panic(|| self.judge_faults(&run, steps, &mut faults))?;
            catch_panic(|| self.judge_lost_commits(&run, steps, &mut lost))?;
            catch_panic(|| self.judge_rare_faults(&run, steps, &mut rare))?;
        }
        if matches!(only, Stage::Rot | Stage::All) {
            *stage = Stage::Rot;
            catch_panic(|| self.judge_rot(&run, &mut rot))?;
            catch_panic(|| self.judge_newer_pages(&run, &mut newer))?;
            // It continues with the stage's generator.
            catch_panic(|| self.judge_misled(&run, &mut rot))?;
        }
        Ok(())
    }

    /// Runs the same steps on disks with random faults.
    fn judge_faults(&mut self, run: &Run, steps: &[Step], chance: &mut Chance) -> Result<(), String> {
        for _ in 0..self.lab.faults {
            let fault = Fault::ALL[chance.below(Fault::ALL.len() as u64) as usize];
            let mut at = chance.below(run.trace.len() as u64) as usize;
            if chance.once_in(4) {
                at = indices::write_of_index(&run.trace, chance).unwrap_or(at);
            }
            self.judge_one_fault(run, (fault, at), steps, chance)?;
        }
        Ok(())
    }

    /// Runs the same steps on disks that misdirect writes to other files or lie about what is durable.
    fn judge_rare_faults(&mut self, run: &Run, steps: &[Step], chance: &mut Chance) -> Result<(), String> {
        for _ in 0..self.lab.faults.div_ceil(RARE_ONE_IN) {
            let fault = Fault::RARE[chance.below(Fault::RARE.len() as u64) as usize];
            let fitting: Vec<usize> = (0..run.trace.len()).filter(|at| fault.fits(&run.trace[*at])).collect();
            let at = fitting[chance.below(fitting.len() as u64) as usize];
            self.judge_one_fault(run, (fault, at), steps, chance)?;
        }
        Ok(())
    }

    /// Runs the same steps on a disk that loses a commit right before pages of it are written, and crashes there.
    fn judge_lost_commits(&mut self, run: &Run, steps: &[Step], chance: &mut Chance) -> Result<(), String> {
        let under = indices::commits_right_under_pages(&run.trace);
        for (at, synced) in under.into_iter().take(LOST_UNDER_PAGES_MAX) {
            let run = run_with_fault(run, (Fault::Lost, at), steps)?;
            self.outcome.runs += 1;
            self.judge_fault(&run, at..=synced, chance)?;
        }
        Ok(())
    }

    fn judge_one_fault(
        &mut self,
        run: &Run,
        fault: (Fault, usize),
        steps: &[Step],
        chance: &mut Chance,
    ) -> Result<(), String> {
        let run = run_with_fault(run, fault, steps)?;
        self.outcome.runs += 1;
        let last = run.trace.len();
        self.judge_fault(&run, last..=last, chance)
    }
}

fn run_with_fault(run: &Run, (fault, at): (Fault, usize), steps: &[Step]) -> Result<Run, String> {
    let mut setting = run.setting;
    if !fault.is_reported() {
        // Only reading back finds a page that a device has lost; recovery does not.
        setting.options.verify_writes = true;
        setting.options.recovery = Recovery::Instant;
    }
    perform(setting, SimDisk::new().with_fault(at, fault), Some((fault, at)), steps)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::draw_log_reuse;
    use crate::workload;

    /// Seeds of every test: enough for each kind of crash, and as fast as 16 without creations and threads.
    const SEEDS: u64 = 9;

    /// The part that runs with every test; `examples/crash.rs` runs any number of seeds.
    #[test]
    fn every_acknowledged_commit_survives_a_crash_at_any_point() {
        let mut outcome = Outcome::default();
        for seed in 0..SEEDS {
            match (Lab { seed, steps: 24, images: 2, continued: 1, faults: 6, ..Lab::default() }).run() {
                Ok(done) => outcome.add(&done),
                Err(failure) => panic!("{failure}"),
            }
        }
        println!("{outcome:?}");
        let Outcome { in_recovery, damage_reported, survived, kills, with_threads, .. } = outcome;
        assert!(
            outcome.crash_points >= 1000
                && [in_recovery, damage_reported, survived, kills, with_threads]
                    .iter()
                    .all(|count| *count > 0),
            "{outcome:?}"
        );
    }

    #[test]
    fn disks_that_lie_and_misdirect_lose_nothing_silently_but_what_no_engine_can_keep() {
        let lab = Lab { seed: 3, steps: 24, faults: 0, ..Lab::default() };
        let steps = workload::draw(&mut Chance::new(lab.seed), lab.steps);
        let (setting, mut chance) = lab.setting(WorkloadKind::Random);
        let run = perform(setting, SimDisk::new(), None, &steps).unwrap();
        let mut judge = Judge { lab: &lab, outcome: Outcome::default() };
        for fault in Fault::RARE {
            for nth in 0..4 {
                let fitting: Vec<usize> =
                    (0..run.trace.len()).filter(|at| fault.fits(&run.trace[*at])).collect();
                let at = fitting[fitting.len() * nth / 4];
                judge.judge_one_fault(&run, (fault, at), &steps, &mut chance).unwrap();
            }
        }
        assert!(judge.outcome.damage_reported > 0 && judge.outcome.after_faults > 20, "{:?}", judge.outcome);
    }

    #[test]
    fn a_reused_log_loses_ends_that_overwrite_a_whole_index() {
        let lost: u64 = (0..4)
            .map(|seed| {
                let lab = Lab { seed, ..Lab::default() };
                let steps = draw_log_reuse(&mut Chance::new(seed));
                let outcome = lab.run_steps(WorkloadKind::LogReuse, &steps, Stage::All);
                outcome.map_err(|(_, what)| what).expect("it holds").runs - 1
            })
            .sum();
        assert!(lost > 0, "no end of a virtual log file was written over a whole index");
    }

    #[test]
    fn commits_are_lost_right_before_the_pages_of_a_checkpoint() {
        let lost: usize = (0..8)
            .map(|seed| {
                let (setting, _) = Lab { seed, ..Lab::default() }.setting(WorkloadKind::Random);
                let steps = workload::draw(&mut Chance::new(seed), Lab::default().steps);
                let run = perform(setting, SimDisk::new(), None, &steps).expect("it works");
                indices::commits_right_under_pages(&run.trace).len()
            })
            .sum();
        assert!(lost > 0, "every commit had a later block before a page of it was written");
    }
}
