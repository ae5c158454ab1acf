//! One workload on a simulated disk: the operations of the disk, and the acknowledgements of the engine between them.

use crate::caller::{Caller, Survived};
use crate::workload::{self, Change, End, Model, OnError, assert_state, contents};
use crate::{Fault, Files, Medium, Op, Setting, SimDisk, Step};
use pagestore::internals::READ_BACK;
use pagestore::{CompactionHolder, Durability, Error, ReadTx, Result, Store};
use pagestore_disk::FileId;
use std::collections::VecDeque;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// Snapshots that are held at once.
const HELD_MAX: usize = 3;

/// Bounds the steps of a compaction.
const COMPACTION_STEPS_MAX: usize = 300;
/// Pages that a step of it may change.
const PAGES_PER_STEP: usize = 4;

/// A cache of this size is never full.
const ROOMY_BYTES: usize = 4 << 20;

/// An event after a number of operations of the disk.
pub(crate) enum Event {
    /// The store was created.
    Created,
    /// A commit of this number, which leads to this state, begins.
    Attempt(u64, Box<Model>),
    /// That commit failed, and the store goes on.
    Refused(u64),
    /// The engine has acknowledged everything up to this commit as durable.
    Durable(u64),
}

/// The state after a commit of this number; a refused attempt leaves its number to the next one.
pub(crate) fn state_of(events: &[(usize, Event)], sequence: u64) -> Option<&Model> {
    events.iter().rev().find_map(|(_, event)| match event {
        Event::Attempt(own, model) if *own == sequence => Some(&**model),
        _ => None,
    })
}

/// A finished run.
pub(crate) struct Run {
    pub setting: Setting,
    /// The medium before the first operation.
    pub start: Medium,
    pub trace: Vec<Op>,
    pub events: Vec<(usize, Event)>,
    /// The number of operations of opening the store.
    pub opened: usize,
    /// The number of operations before each step.
    pub begins: Vec<usize>,
    pub fault: Option<(Fault, usize)>,
    /// The operation that had the fault, as the engine issued it.
    pub fault_met: Option<Op>,
    pub survived: Survived,
}

/// An operation by the step that issued it: stable when other steps are left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The index of the step; `None`: before the first.
    pub step: Option<usize>,
    /// The operation's number within the step.
    pub op: usize,
}

impl Run {
    /// The state after a commit of this number.
    pub(crate) fn state(&self, sequence: u64) -> Option<&Model> {
        state_of(&self.events, sequence)
    }

    /// The place of operation `at`.
    pub(crate) fn place(&self, at: usize) -> Place {
        // A step without operations begins where the next one does.
        match self.begins.iter().rposition(|begin| *begin <= at) {
            Some(step) => Place { step: Some(step), op: at - self.begins[step] },
            None => Place { step: None, op: at },
        }
    }

    /// The operation at a place, or the last one of its step if that has fewer now.
    pub(crate) fn at(&self, place: Place) -> usize {
        let step = place.step.map_or(0, |step| step + 1);
        let begin = step.checked_sub(1).and_then(|step| self.begins.get(step)).copied().unwrap_or(0);
        match self.begins.get(step) {
            Some(end) => (begin + place.op).min(end.saturating_sub(1).max(begin)),
            // At the end nothing is in flight.
            None => (begin + place.op).min(self.trace.len()),
        }
    }
}

/// The image that a run starts from.
pub(crate) struct Start {
    pub medium: Medium,
    /// The states that recovery may find, by the number of their last commit.
    pub states: Vec<(u64, Model)>,
    /// The least of them that recovery must find.
    pub least: u64,
    /// Whether there must be a store.
    pub created: bool,
    /// A copy of the control file was damaged: recovery may report damage if the other copy is too old.
    pub rotten: bool,
}

impl Start {
    /// The files that a power failure left, and what recovery found there: it must always be found there.
    pub(crate) fn after_power_failure(files: Files, (sequence, model): (u64, Model)) -> Self {
        let states = vec![(sequence, model)];
        Self { medium: Medium::holding(files), states, least: sequence, created: true, rotten: false }
    }

    /// The medium of a killed process: recovery finds the last of these commits, of which the first had been acknowledged.
    /// Until recovery has ended, a power failure may lose the others.
    pub(crate) fn after_kill(medium: Medium, run: &Run, created: bool, commits: RangeInclusive<u64>) -> Self {
        let least = *commits.start();
        let states = commits.map(|own| (own, run.state(own).cloned().unwrap_or_default())).collect();
        Self { medium, states, least, created, rotten: false }
    }
}

/// Whether the operation wrote blocks of the log.
pub(crate) fn is_log_write(op: &Op) -> bool {
    matches!(op, Op::Write { file: FileId::Log, through: true, .. })
}

/// Runs a workload on an empty disk. It ends early when the store becomes read-only by an injected fault.
pub(crate) fn perform(
    setting: Setting,
    disk: SimDisk,
    fault: Option<(Fault, usize)>,
    steps: &[Step],
) -> std::result::Result<Run, String> {
    let mut worker = Worker::new(setting, disk, Model::new(), 2);
    worker.is_reported = fault.is_some_and(|(fault, _)| fault.is_reported());
    worker.event(Event::Attempt(1, Box::default()));
    worker.event(Event::Attempt(2, Box::default()));
    let created = Store::create_on(worker.disk.clone(), setting.layout, setting.options, 0xfeed_beef)
        .and_then(|store| {
            worker.event(Event::Created);
            worker.event(Event::Durable(1));
            workload::prepare(&store)?;
            Ok(store)
        });
    let result = created.and_then(|store| worker.work(store, steps));
    if let Err(error) = result
        && (fault.is_none() || worker.disk.fault_met().is_none())
        && !worker.is_end_by_trouble(&error)
    {
        return Err(worker.failed(&error));
    }
    Ok(worker.into_run(Medium::default(), 0, fault))
}

/// Opens a crash image and runs a workload on it. `None`: damage was reported, and may be.
pub(crate) fn perform_from(
    setting: Setting,
    start: Start,
    steps: &[Step],
) -> std::result::Result<Option<Run>, String> {
    let Start { medium, states, least, created, rotten } = start;
    let (sequence, model) = states.last().cloned().ok_or("nothing is to be recovered")?;
    let mut worker = Worker::new(setting, SimDisk::caching(&medium), model, sequence);
    if created {
        worker.event(Event::Created);
    }
    states.into_iter().for_each(|(own, model)| worker.event(Event::Attempt(own, Box::new(model))));
    // Whatever happens while it is opened again, what was acknowledged must stay.
    worker.event(Event::Durable(least));
    let store = match Store::open_on(worker.disk.clone(), setting.options) {
        Err(Error::CorruptLog { .. } | Error::CorruptPage { .. }) if rotten => return Ok(None),
        other => other.map_err(|error| {
            format!("{:?} recovery: it cannot be opened: {error}", setting.options.recovery)
        })?,
    };
    let opened = worker.disk.ops();
    worker.event(Event::Created);
    let result = (|| {
        if store.read()?.sequence() < 2 {
            worker.event(Event::Attempt(2, Box::default()));
            workload::prepare(&store)?;
        }
        worker.sequence = store.stats().last_sequence;
        worker.work(store, steps)
    })();
    if let Err(error) = result
        && !worker.is_end_by_trouble(&error)
    {
        return Err(worker.failed(&error));
    }
    Ok(Some(worker.into_run(medium, opened, None)))
}

/// Performs the steps and records the acknowledgements.
struct Worker {
    setting: Setting,
    disk: Arc<SimDisk>,
    model: Model,
    /// The newest commit.
    sequence: u64,
    events: Vec<(usize, Event)>,
    begins: Vec<usize>,
    survived: Survived,
    /// The current step, for errors.
    doing: String,
    /// The fault of the disk is an error that the engine gets.
    is_reported: bool,
}

/// A snapshot that is read repeatedly while others commit.
struct Held<'a> {
    reader: ReadTx<'a>,
    model: Model,
}

impl Worker {
    fn new(setting: Setting, disk: SimDisk, model: Model, sequence: u64) -> Self {
        let (events, begins, survived) = Default::default();
        let (doing, is_reported) = (String::new(), false);
        Self { setting, disk: Arc::new(disk), model, sequence, events, begins, survived, doing, is_reported }
    }

    fn event(&mut self, event: Event) {
        self.events.push((self.disk.ops(), event));
    }

    fn failed(&self, error: &Error) -> String {
        format!("the workload failed without a fault: {error}; at: {}", self.doing)
    }

    fn into_run(self, start: Medium, opened: usize, fault: Option<(Fault, usize)>) -> Run {
        Run {
            setting: self.setting,
            start,
            fault_met: self.disk.fault_met(),
            trace: self.disk.take_trace(),
            events: self.events,
            opened,
            begins: self.begins,
            fault,
            survived: self.survived,
        }
    }

    /// Whether a temporary error has legitimately made the store read-only, which ends the workload. Only two reads may do
    /// that: a checkpoint that reads back its pages, and a due checkpoint that reads the log, whose failure no caller would
    /// see otherwise.
    fn is_end_by_trouble(&self, error: &Error) -> bool {
        let verifies = self.setting.options.verify_writes;
        let is_of_checkpoint = match error {
            Error::Io { action, .. } => verifies && *action == READ_BACK,
            Error::ReadOnly { cause } => {
                verifies && cause.starts_with(READ_BACK) || cause.starts_with("read log: ")
            }
            _ => false,
        };
        is_of_checkpoint && self.disk.was_in_trouble()
    }

    /// Whether an error was expected and the store still accepts writes.
    fn is_survived(&self, store: &Store, error: &Error) -> bool {
        let is_expected = match error {
            // A full log refuses a transaction.
            Error::LogFull { .. } => true,
            Error::Io { .. } => self.disk.reported_an_error(),
            _ => false,
        };
        is_expected && self.disk.without_trouble(|| store.write().is_ok())
    }

    /// Performs the steps, opening by opening. At the end the store is dropped without closing, as when a process ends.
    fn work(&mut self, mut store: Store, mut steps: &[Step]) -> Result<()> {
        self.event(Event::Durable(self.sequence));
        loop {
            let end = steps.iter().position(Step::ends_opening).unwrap_or(steps.len());
            self.work_open(&store, &steps[..end]).inspect_err(|_| self.assert_readable(&store))?;
            let Some(step) = steps.get(end) else { return Ok(()) };
            self.doing = step.to_string();
            self.begins.push(self.disk.ops());
            store = self.open_again(store, step)?;
            steps = &steps[end + 1..];
        }
    }

    fn open_again(&mut self, store: Store, step: &Step) -> Result<Store> {
        let mut store = match step {
            Step::Reopen => {
                match store.close() {
                    // Pages that were not written are in the log.
                    Err(Error::Io { .. }) if self.disk.end_trouble() => {}
                    closed => closed?,
                }
                self.open()?
            }
            _ => {
                drop(store);
                self.open()?
            }
        };
        self.event(Event::Durable(self.sequence));
        if let Step::Die { times } = step {
            for _ in 1..*times {
                drop(store);
                store = self.open()?;
            }
        }
        self.disk.end_trouble();
        self.check_contents(&store)?;
        Ok(store)
    }

    /// Opens the store; retries after a temporary error.
    fn open(&self) -> Result<Store> {
        match Store::open_on(self.disk.clone(), self.setting.options) {
            Err(Error::Io { .. }) if self.disk.end_trouble() => {
                Store::open_on(self.disk.clone(), self.setting.options)
            }
            opened => opened,
        }
    }

    /// Checks that exactly what was committed can be read.
    fn check_contents(&self, store: &Store) -> Result<()> {
        assert_state(contents(&store.read()?)?, &self.model, "what is read is not what was committed");
        Ok(())
    }

    /// After any failure, a new reader must see what was acknowledged.
    fn assert_readable(&self, store: &Store) {
        if self.is_reported && self.disk.fault_met().is_some() {
            let read = || store.read().and_then(|reader| Ok((reader.sequence(), contents(&reader)?)));
            let found = self.disk.without_trouble(read);
            let (sequence, found) = found.expect("what was acknowledged can be read after a failure");
            assert_eq!(found.as_ref(), Some(self.state(sequence)), "commit {sequence} after a failure");
        }
    }

    fn work_open(&mut self, store: &Store, steps: &[Step]) -> Result<()> {
        let mut held: VecDeque<Held<'_>> = VecDeque::new();
        for step in steps {
            self.doing = step.to_string();
            self.begins.push(self.disk.ops());
            let mut failed = false;
            match self.step(store, step, &mut held) {
                Err(error) if self.is_survived(store, &error) => failed = true,
                done => done?,
            }
            if matches!(step, Step::Trouble(_)) {
                continue;
            }
            let panicked = matches!(step, Step::Transaction { end: End::Panic, .. });
            if self.disk.end_trouble() || failed || panicked {
                self.check_contents(store)?;
            }
            self.doing = format!("reading {} snapshots after: {step}", held.len());
            check_snapshots(&mut held, self.setting)?;
        }
        Ok(())
    }

    fn step<'a>(&mut self, store: &'a Store, step: &Step, held: &mut VecDeque<Held<'a>>) -> Result<()> {
        match step {
            Step::Transaction { changes, end, on_error } => self.transact(store, changes, *end, *on_error),
            Step::Checkpoint { during } => self.checkpoint(store, during),
            Step::Compact { during } => self.compact(store, during),
            Step::Flush => {
                store.flush()?;
                self.event(Event::Durable(self.sequence));
                Ok(())
            }
            Step::Hold if held.len() < HELD_MAX => {
                let reader = store.read()?;
                let model = self.state(reader.sequence()).clone();
                held.push_back(Held { reader, model });
                Ok(())
            }
            Step::Hold => Ok(()),
            Step::Release => {
                held.pop_front();
                Ok(())
            }
            Step::Trouble(trouble) => {
                self.disk.begin_trouble(*trouble);
                Ok(())
            }
            Step::Reopen | Step::Die { .. } => unreachable!("an opening ends there"),
        }
    }

    fn transact(&mut self, store: &Store, changes: &[Change], end: End, on_error: OnError) -> Result<()> {
        let (disk, events, next) = (&self.disk, &mut self.events, self.sequence + 1);
        let mut begun = false;
        let mut caller = Caller { store, disk, survived: &mut self.survived };
        let done = caller.transact(&mut self.model, changes, end, on_error, |after| {
            begun = true;
            events.push((disk.ops(), Event::Attempt(next, Box::new(after.clone()))));
        });
        let committed = match done {
            Err(error) if self.is_survived(store, &error) => {
                if begun {
                    self.survived.commits += 1;
                    self.event(Event::Refused(next));
                }
                None
            }
            other => other?,
        };
        if let Some(sequence) = committed {
            assert_eq!(sequence, next, "commits are numbered one after the other");
            self.sequence = sequence;
            if end == End::Commit(Durability::Full) {
                self.event(Event::Durable(sequence));
            }
        }
        if end == End::Commit(Durability::Delayed) {
            assert_delayed_bound(store, self.setting);
        }
        Ok(())
    }

    /// A checkpoint as the background thread would write it, with commits between its writes.
    fn checkpoint(&mut self, store: &Store, during: &[Vec<Change>]) -> Result<()> {
        let mut checkpoint = store.begin_checkpoint()?;
        let mut during = during.iter();
        loop {
            if let Some(changes) = during.next() {
                let commit = if changes.len() == 1 { Durability::Full } else { Durability::Delayed };
                self.transact(store, changes, End::Commit(commit), OnError::GiveUp)?;
            }
            if !checkpoint.write(1)? {
                break;
            }
        }
        let synced = checkpoint.sync()?;
        for changes in during {
            self.transact(store, changes, End::Commit(Durability::Full), OnError::GiveUp)?;
        }
        synced.end()?;
        Ok(())
    }

    /// A compaction in small steps, with commits between them. Each step is at most one commit, which changes nothing that
    /// is read.
    fn compact(&mut self, store: &Store, during: &[Vec<Change>]) -> Result<()> {
        let (mut during, all) = (during.iter(), during.len());
        for _ in 0..COMPACTION_STEPS_MAX {
            let next = self.sequence + 1;
            self.event(Event::Attempt(next, Box::new(self.model.clone())));
            let done = store.compact(PAGES_PER_STEP);
            if store.stats().last_sequence == next {
                self.sequence = next;
            } else if done.is_ok() || done.as_ref().is_err_and(|error| self.is_survived(store, error)) {
                self.event(Event::Refused(next));
            }
            let done = done?;
            if done.is_done || done.held_by == Some(CompactionHolder::Snapshot) {
                break;
            }
            // Half of them while pages are moved.
            let is_due = done.pages_moved > 0 || 2 * during.len() > all;
            if is_due && let Some(changes) = during.next() {
                let commit = if changes.len() == 1 { Durability::Full } else { Durability::Delayed };
                self.transact(store, changes, End::Commit(commit), OnError::GiveUp)?;
            }
        }
        Ok(())
    }

    fn state(&self, sequence: u64) -> &Model {
        state_of(&self.events, sequence).expect("a snapshot is as of a commit of this run")
    }
}

/// A snapshot never changes; it may be ended for lack of memory, and is correct up to there.
fn check_snapshots(held: &mut VecDeque<Held<'_>>, setting: Setting) -> Result<()> {
    let mut error = None;
    let check = |held: &Held<'_>| {
        let mut found = Model::new();
        let read = workload::read_contents(&held.reader, &mut found);
        let seen = if read.is_ok() { held.model.len() } else { found.len() };
        let sequence = held.reader.sequence();
        assert!(
            found.iter().eq(held.model.iter().take(seen)),
            "the snapshot of commit {sequence} has changed"
        );
        read
    };
    held.retain(|one| match check(one) {
        Ok(_) => true,
        Err(Error::SnapshotTooOld) => {
            let roomy = setting.options.cache_bytes >= ROOMY_BYTES;
            assert!(!roomy, "a snapshot is given up although there is memory for all that it needs");
            false
        }
        Err(other) => {
            error = Some(other);
            false
        }
    });
    error.map_or(Ok(()), Err)
}

/// Delayed commits never exceed their bound. Without delayed commits, checkpoints and indices may wait.
fn assert_delayed_bound(store: &Store, setting: Setting) {
    let stats = store.stats();
    assert!(
        stats.durable_sequence == stats.last_sequence
            || stats.log_waiting_bytes < setting.options.delayed_bytes as u64 + 64,
        "{} bytes of delayed commits wait, more than {}",
        stats.log_waiting_bytes,
        setting.options.delayed_bytes
    );
}
