//! The crash laboratory: a workload on the simulated disk, a crash at every write and sync of it, recovery, and the
//! oracle's question. What was recovered is the beginning of another run, whose own recovery crashes too.
//!
//! The oracle: (a) every commit that was acknowledged as durable is there; (b) what is there is the state after one
//! commit, with everything before it and nothing after; (c) of delayed commits only those may be missing whose log
//! was within its bound; (d) a crash during recovery leads to the same state; (e) damage is an error, never data.

use super::indices;
use super::workload::{self, Model, Step, contents, transact};
use super::{Chance, Fault, Files, Medium, Op, Setting, SimDisk};
use crate::disk::FileId;
use crate::error::{Error, Result};
use crate::{Durability, Recovery, Store};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// How often a run continues from what a crash left.
const GENERATIONS_MAX: u32 = 3;

/// What to do.
#[derive(Clone, Debug)]
pub struct Lab {
    /// Everything is drawn from it.
    pub seed: u64,
    /// Steps of a workload.
    pub steps: usize,
    /// Crash images at every write and sync.
    pub images: u64,
    /// Runs that go on from a crash, for every run.
    pub continued: u64,
    /// Faults that are tried, for every first run.
    pub faults: u64,
    /// Whether a failure is tried again with fewer steps, to show only those that it needs.
    pub minimise: bool,
}

impl Default for Lab {
    fn default() -> Self {
        Self { seed: 0, steps: 30, images: 3, continued: 2, faults: 12, minimise: true }
    }
}

/// What was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Workloads that ran.
    pub runs: u64,
    /// Crashes that were recovered from and judged.
    pub crash_points: u64,
    /// Of them, crashes during recovery.
    pub in_recovery: u64,
    /// Of them, after a fault of the disk.
    pub after_faults: u64,
    /// Damage that was reported as damage.
    pub damage_reported: u64,
}

impl Outcome {
    /// Adds another's counts.
    pub fn add(&mut self, other: &Self) {
        self.runs += other.runs;
        self.crash_points += other.crash_points;
        self.in_recovery += other.in_recovery;
        self.after_faults += other.after_faults;
        self.damage_reported += other.damage_reported;
    }
}

/// An answer of the oracle that it must not give.
#[derive(Clone, Debug)]
pub struct Failure {
    /// What it was run with: the same again gives the same failure.
    pub seed: u64,
    /// The number of steps.
    pub steps: usize,
    /// Where and what.
    pub what: String,
    /// The steps that are needed for it, after minimising.
    pub needed: Vec<Step>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {} with {} steps: {}", self.seed, self.steps, self.what)?;
        writeln!(f, "needed for a failure:")?;
        self.needed.iter().try_for_each(|step| writeln!(f, "  {step:?}"))
    }
}

/// Something that happened after so many operations of the disk.
enum Event {
    /// There is a store.
    Created,
    /// A commit of this number, which leads to this state, is about to begin.
    Attempt(u64, Box<Model>),
    /// Everything up to this commit is durable, as the engine says.
    Durable(u64),
}

struct Run {
    setting: Setting,
    start: Files,
    trace: Vec<Op>,
    events: Vec<(usize, Event)>,
    /// The operations of opening.
    opened: usize,
    fault: Option<(Fault, usize)>,
}

/// What must be there, and what may.
#[derive(Clone, Copy, Debug)]
struct Expected {
    created: bool,
    least: u64,
    most: u64,
}

impl Lab {
    /// One seed: how many crash points held, or the first that did not, minimised.
    ///
    /// # Errors
    /// The failure.
    pub fn run(&self) -> std::result::Result<Outcome, Box<Failure>> {
        let steps = workload::draw(&mut Chance::new(self.seed), self.steps);
        self.run_steps(&steps).map_err(|what| {
            let needed = if self.minimise { self.minimise(steps) } else { steps };
            let what = self.run_steps(&needed).err().unwrap_or(what);
            Box::new(Failure { seed: self.seed, steps: self.steps, what, needed })
        })
    }

    /// Leaves out what is not needed for a failure, in ever smaller pieces.
    fn minimise(&self, mut steps: Vec<Step>) -> Vec<Step> {
        let mut piece = steps.len() / 2;
        while piece > 0 {
            let mut at = 0;
            while at < steps.len() {
                let mut fewer = steps.clone();
                fewer.drain(at..(at + piece).min(steps.len()));
                if self.run_steps(&fewer).is_err() {
                    steps = fewer;
                } else {
                    at += piece;
                }
            }
            piece /= 2;
        }
        steps
    }

    /// A panic of the engine is a failure as any other.
    fn run_steps(&self, steps: &[Step]) -> std::result::Result<Outcome, String> {
        catch_unwind(AssertUnwindSafe(|| self.judge_steps(steps))).unwrap_or_else(|panic| {
            let text =
                panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
            Err(format!("panicked: {}", text.unwrap_or("without a message")))
        })
    }

    fn judge_steps(&self, steps: &[Step]) -> std::result::Result<Outcome, String> {
        let mut chance = Chance::new(self.seed ^ 0x5eed);
        let setting = Setting::draw(&mut chance);
        let mut outcome = Outcome::default();
        let run = perform(setting, SimDisk::new(), None, steps)?;
        outcome.runs += 1;
        let ops = run.trace.len();
        self.judge_run(&run, &mut chance, &mut outcome, 0)?;
        for _ in 0..self.faults {
            let fault = Fault::ALL[chance.below(Fault::ALL.len() as u64) as usize];
            let mut at = chance.below(ops as u64) as usize;
            if chance.once_in(4) {
                at = indices::write_of_index(&run.trace, &mut chance).unwrap_or(at);
            }
            let mut setting = setting;
            if !fault.is_told() {
                // A page that a device has lost is found by reading it back, or not at all; recovery does not.
                setting.options.verify_writes = true;
                setting.options.recovery = Recovery::Instant;
            }
            let run = perform(setting, SimDisk::new().with_fault(at, fault), Some((fault, at)), steps)?;
            outcome.runs += 1;
            self.judge_fault(&run, &mut chance, &mut outcome)?;
        }
        self.judge_rot(&run, &mut chance, &mut outcome)?;
        Ok(outcome)
    }

    /// Crashes at every operation.
    fn judge_run(
        &self,
        run: &Run,
        chance: &mut Chance,
        outcome: &mut Outcome,
        generation: u32,
    ) -> std::result::Result<(), String> {
        let mut medium = Medium::holding(run.start.clone());
        let go_on: Vec<usize> =
            (0..self.continued).map(|_| chance.below(run.trace.len() as u64 + 1) as usize).collect();
        for at in 0..=run.trace.len() {
            let in_flight = run.trace.get(at);
            let expected = run.expected(at);
            for image in 0..self.images {
                let files = medium.crash(in_flight, chance);
                let sequence = judge(run, &files, expected, chance, Tolerance::None).map_err(|what| {
                    format!("generation {generation}, crash at operation {at} ({}): {what}", show(in_flight))
                })?;
                outcome.crash_points += 1;
                outcome.in_recovery += u64::from(generation > 0 && at < run.opened);
                if let Some((sequence, model)) = sequence
                    && image == 0
                    && generation < GENERATIONS_MAX
                    && go_on.contains(&at)
                {
                    self.go_on(run, files, sequence, model, chance, outcome, generation + 1)?;
                }
            }
            if let Some(op) = in_flight {
                medium.apply(op);
            }
        }
        Ok(())
    }

    /// Opens what a crash left, with every operation of that another place to crash, and works on.
    #[expect(clippy::too_many_arguments, reason = "one call, of what a run hands to the next")]
    fn go_on(
        &self,
        before: &Run,
        files: Files,
        sequence: u64,
        model: Model,
        chance: &mut Chance,
        outcome: &mut Outcome,
        generation: u32,
    ) -> std::result::Result<(), String> {
        let mut setting = before.setting;
        setting.options.recovery = Setting::draw_recovery(chance);
        let steps = workload::draw(chance, self.steps / 3);
        let start = Start { files, sequence, model };
        let run = perform_from(setting, start, &steps)?;
        outcome.runs += 1;
        self.judge_run(&run, chance, outcome, generation)
    }

    /// Crashes after a disk has failed or lied.
    fn judge_fault(
        &self,
        run: &Run,
        chance: &mut Chance,
        outcome: &mut Outcome,
    ) -> std::result::Result<(), String> {
        let (fault, fault_at) = run.fault.expect("a run with a fault");
        let tolerance = if fault.is_told() { Tolerance::None } else { Tolerance::Reported };
        let mut medium = Medium::holding(run.start.clone());
        for at in 0..=run.trace.len() {
            let in_flight = run.trace.get(at);
            let last = at == run.trace.len();
            // Before the fault it is the run without one.
            if at >= fault_at && (last || chance.once_in(4)) {
                let mut expected = run.expected(at);
                if tolerance == Tolerance::Reported {
                    expected.least = expected.least.min(run.witnessed(fault_at, at));
                }
                let files = medium.crash(in_flight, chance);
                let judged = judge(run, &files, expected, chance, tolerance).map_err(|what| {
                    format!(
                        "{fault:?} at operation {fault_at} ({}), crash at {at} ({}): {what}",
                        show(run.trace.get(fault_at)),
                        show(in_flight)
                    )
                })?;
                outcome.damage_reported += u64::from(judged.is_none());
                outcome.after_faults += 1;
                outcome.crash_points += 1;
            }
            if let Some(op) = in_flight {
                medium.apply(op);
            }
        }
        Ok(())
    }

    /// Flips bits of what was durable at the end.
    fn judge_rot(
        &self,
        run: &Run,
        chance: &mut Chance,
        outcome: &mut Outcome,
    ) -> std::result::Result<(), String> {
        let mut medium = Medium::holding(run.start.clone());
        for op in &run.trace {
            medium.apply(op);
        }
        let mut expected = run.expected(run.trace.len());
        // The last block has no later one to witness it: damage there cannot be told from a torn end.
        expected.least = expected.least.min(run.before_last_log_write());
        for _ in 0..self.images * 8 {
            let mut files = medium.crash(None, chance);
            let file = FileId::ALL[chance.below(3) as usize];
            let bytes = &mut files[file as usize];
            if bytes.is_empty() {
                continue;
            }
            let mut at = chance.below(bytes.len() as u64) as usize;
            if file == FileId::Log && chance.once_in(2) {
                at = indices::byte_of_index(bytes, chance).unwrap_or(at);
            }
            bytes[at] ^= 1 << chance.below(8);
            let judged = judge(run, &files, expected, chance, Tolerance::Reported)
                .map_err(|what| format!("bit rot at {at} of the {file} file: {what}"))?;
            outcome.damage_reported += u64::from(judged.is_none());
            outcome.crash_points += 1;
        }
        Ok(())
    }
}

fn show(op: Option<&Op>) -> String {
    match op {
        None => "after the last".into(),
        Some(Op::Write { file, offset, bytes, through }) => {
            format!("write{} {file} {offset}+{}", if *through { " through" } else { "" }, bytes.len())
        }
        Some(Op::FailedWrite { file, offset, bytes }) => {
            format!("failed write {file} {offset}+{}", bytes.len())
        }
        Some(Op::Sync { file }) => format!("sync {file}"),
        Some(Op::FailedSync { file }) => format!("failed sync {file}"),
        Some(Op::Lost { file, offset, bytes }) => format!("lost write {file} {offset}+{bytes}"),
    }
}

impl Run {
    /// What a crash during operation `at` must leave.
    fn expected(&self, at: usize) -> Expected {
        let mut expected = Expected { created: false, least: 0, most: 0 };
        for (_, event) in self.events.iter().take_while(|(when, _)| *when <= at) {
            match event {
                Event::Created => expected.created = true,
                Event::Attempt(sequence, _) => expected.most = expected.most.max(*sequence),
                Event::Durable(sequence) => expected.least = expected.least.max(*sequence),
            }
        }
        expected
    }

    fn state(&self, sequence: u64) -> Option<&Model> {
        // An attempt that came to nothing leaves its number to the next.
        self.events.iter().rev().find_map(|(_, event)| match event {
            Event::Attempt(own, model) if *own == sequence => Some(&**model),
            _ => None,
        })
    }

    /// What must be there although operation `fault_at` did not do what it said, at a crash during `at`: all, once
    /// another log write after it can bear witness, and where it was no log write. Until then a lost one takes what
    /// it held itself. A misplaced one takes the blocks that it went over too, acknowledged as they were: of a
    /// damaged end of the log nothing is left that could tell it from a torn one. It may have gone over several,
    /// so it is what was durable before the oldest of them.
    fn witnessed(&self, fault_at: usize, at: usize) -> u64 {
        // Another way of recovery may have come to fewer operations: then there was no fault.
        let Some(own) = self.trace.get(fault_at) else { return self.expected(at).least };
        let was_log_write = is_log_write(own) || matches!(own, Op::Lost { file: FileId::Log, .. });
        let after = self.trace[fault_at..at.max(fault_at)].iter().skip(1).any(is_log_write);
        if after || !was_log_write {
            return self.expected(at).least;
        }
        self.expected(self.overwritten(fault_at).unwrap_or(fault_at)).least
    }

    /// The oldest log write that still held one of the sectors that operation `at` went over.
    fn overwritten(&self, at: usize) -> Option<usize> {
        let Op::Write { offset, bytes, .. } = &self.trace[at] else { return None };
        let holder = |sector: u64| {
            self.trace[..at].iter().rposition(|op| match op {
                Op::Write { file: FileId::Log, offset, bytes, through: true } => {
                    (*offset..*offset + bytes.len() as u64).contains(&sector)
                }
                _ => false,
            })
        };
        (*offset..*offset + bytes.len() as u64).step_by(512).filter_map(holder).min()
    }

    fn before_last_log_write(&self) -> u64 {
        self.expected(self.trace.iter().rposition(is_log_write).unwrap_or(0)).least
    }
}

fn is_log_write(op: &Op) -> bool {
    matches!(op, Op::Write { file: FileId::Log, through: true, .. })
}

struct Start {
    files: Files,
    sequence: u64,
    model: Model,
}

/// A workload on an empty disk. An error of the engine ends it where the disk was told to fail.
fn perform(
    setting: Setting,
    disk: SimDisk,
    fault: Option<(Fault, usize)>,
    steps: &[Step],
) -> std::result::Result<Run, String> {
    let disk = Arc::new(disk);
    let mut events = vec![(0, Event::Attempt(1, Box::default())), (0, Event::Attempt(2, Box::default()))];
    let mut model = Model::new();
    let result = (|| {
        let store = Store::create_on(disk.clone(), setting.layout, setting.options, 0xfeed_beef)?;
        events.push((disk.ops(), Event::Created));
        events.push((disk.ops(), Event::Durable(1)));
        workload::prepare(&store)?;
        work(store, &disk, setting, &mut model, 2, steps, &mut events)
    })();
    finish(setting, Files::default(), &disk, events, 0, fault, result)
}

fn perform_from(setting: Setting, start: Start, steps: &[Step]) -> std::result::Result<Run, String> {
    let disk = Arc::new(SimDisk::holding(start.files.clone()));
    let mut model = start.model;
    let mut events = vec![
        (0, Event::Created),
        (0, Event::Attempt(start.sequence, Box::new(model.clone()))),
        // Whatever happens on the way to open it again: what was found once is found.
        (0, Event::Durable(start.sequence)),
    ];
    let mut opened = 0;
    let result = Store::open_on(disk.clone(), setting.options).and_then(|store| {
        opened = disk.ops();
        if store.read()?.sequence() < 2 {
            events.push((disk.ops(), Event::Attempt(2, Box::default())));
            workload::prepare(&store)?;
        }
        let sequence = store.stats().last_sequence;
        work(store, &disk, setting, &mut model, sequence, steps, &mut events)
    });
    finish(setting, start.files, &disk, events, opened, None, result)
}

fn finish(
    setting: Setting,
    start: Files,
    disk: &SimDisk,
    events: Vec<(usize, Event)>,
    opened: usize,
    fault: Option<(Fault, usize)>,
    result: std::result::Result<(), Error>,
) -> std::result::Result<Run, String> {
    if let Err(error) = result {
        let excused = fault.is_some() && disk.fault_met().is_some();
        if !excused {
            return Err(format!("the workload failed without a fault: {error}"));
        }
    }
    Ok(Run { setting, start, trace: disk.take_trace(), events, opened, fault })
}

fn work(
    mut store: Store,
    disk: &Arc<SimDisk>,
    setting: Setting,
    model: &mut Model,
    mut sequence: u64,
    steps: &[Step],
    events: &mut Vec<(usize, Event)>,
) -> Result<()> {
    events.push((disk.ops(), Event::Durable(sequence)));
    for step in steps {
        match step {
            Step::Transaction { changes, commit } => {
                // A full log refuses a transaction and harms nothing.
                let done = transact(&store, model, changes, *commit, |after| {
                    events.push((disk.ops(), Event::Attempt(sequence + 1, Box::new(after.clone()))));
                });
                let committed = match done {
                    Err(Error::LogFull { .. }) => None,
                    other => other?,
                };
                if let Some(own) = committed {
                    assert_eq!(own, sequence + 1, "commits are numbered one after the other");
                    sequence = own;
                    if *commit == Some(Durability::Full) {
                        events.push((disk.ops(), Event::Durable(own)));
                    }
                }
                bounded(&store, setting)?;
            }
            Step::Checkpoint => {
                store.checkpoint()?;
            }
            Step::Flush => {
                store.flush()?;
                events.push((disk.ops(), Event::Durable(sequence)));
            }
            Step::Reopen => {
                store.close()?;
                events.push((disk.ops(), Event::Durable(sequence)));
                store = Store::open_on(disk.clone(), setting.options)?;
                assert_eq!(
                    contents(&store.read()?)?.as_ref(),
                    Some(&*model),
                    "a closed store opens as it was"
                );
            }
            Step::Snapshot => snapshot(&store, model)?,
        }
    }
    // Dropped without closing: as a process that ends.
    Ok(())
}

/// A delayed commit's log is never longer than its bound.
fn bounded(store: &Store, setting: Setting) -> Result<()> {
    let waiting = store.stats().log_waiting_bytes;
    assert!(
        waiting < setting.options.delayed_bytes as u64 + 64,
        "{waiting} bytes of delayed commits wait, more than {}",
        setting.options.delayed_bytes
    );
    Ok(())
}

fn snapshot(store: &Store, model: &Model) -> Result<()> {
    let snapshot = store.read()?;
    if snapshot.sequence() == store.stats().last_sequence {
        match contents(&snapshot) {
            Ok(found) => assert_eq!(found.as_ref(), Some(model), "a snapshot is the last commit"),
            Err(Error::SnapshotTooOld) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Whether damage may be reported instead of the contents.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tolerance {
    None,
    Reported,
}

/// Recovers a crash image and asks the oracle. `Ok(None)`: there is no store yet, or damage was reported where it
/// may be.
fn judge(
    run: &Run,
    files: &Files,
    expected: Expected,
    chance: &mut Chance,
    tolerance: Tolerance,
) -> std::result::Result<Option<(u64, Model)>, String> {
    let disk = Arc::new(SimDisk::holding(files.clone()));
    let mut options = run.setting.options;
    options.recovery = Setting::draw_recovery(chance);
    let recovered = Store::open_on(disk, options).and_then(|store| {
        let before = contents(&store.read()?)?;
        if chance.once_in(4) {
            store.checkpoint()?;
            let after = contents(&store.read()?)?;
            assert_eq!(before, after, "a checkpoint changes nothing that is read");
        }
        Ok((store.stats().last_sequence, before))
    });
    let (sequence, found) = match recovered {
        Ok(recovered) => recovered,
        Err(Error::NotAStore { .. }) if !expected.created => return Ok(None),
        Err(
            Error::CorruptLog { .. }
            | Error::CorruptPage { .. }
            | Error::CorruptTree { .. }
            | Error::NotAStore { .. },
        ) if tolerance == Tolerance::Reported => return Ok(None),
        Err(error) => return Err(format!("{:?} recovery: it cannot be opened: {error}", options.recovery)),
    };
    let why = |what: String| Err(format!("{:?} recovery: {what}", options.recovery));
    if sequence < expected.least {
        return why(format!(
            "commit {} was acknowledged, and {sequence} is the last one there",
            expected.least
        ));
    }
    if sequence > expected.most {
        return why(format!("commit {sequence} is there, and {} was the last one begun", expected.most));
    }
    let model = run.state(sequence).cloned().unwrap_or_default();
    let found = found.unwrap_or_default();
    if found != model {
        let differs = model
            .iter()
            .find(|(key, value)| found.get(key) != Some(value))
            .map(|(key, _)| *key)
            .or_else(|| found.keys().find(|key| !model.contains_key(key)).copied());
        return why(format!(
            "what is there is not the state after commit {sequence}: table and key {differs:?} differ"
        ));
    }
    Ok(Some((sequence, model)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The part that runs with every test; `examples/crash.rs` runs any number of seeds.
    #[test]
    fn every_acknowledged_commit_survives_a_crash_at_any_point() {
        let mut outcome = Outcome::default();
        for seed in 0..16 {
            match (Lab { seed, steps: 24, images: 2, continued: 1, faults: 6, minimise: true }).run() {
                Ok(done) => outcome.add(&done),
                Err(failure) => panic!("{failure}"),
            }
        }
        println!("{outcome:?}");
        assert!(
            outcome.crash_points >= 1000 && outcome.in_recovery > 0 && outcome.damage_reported > 0,
            "{outcome:?}"
        );
    }
}
