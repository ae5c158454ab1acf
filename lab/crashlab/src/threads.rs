//! Crashes a store while its threads run: those that commit, checkpoints, flushes of delayed commits, compaction, and in one of
//! several workloads a transaction of many pages, whose pages are installed while it is appended, and a removal by condition,
//! whose changes a thread encodes.
//!
//! Schedules differ from run to run, so that a seed does not give the same failure again; the trace of the failing run does
//! ([`ThreadedFailure::trace_text`]).

use crate::lab::{Lab, Outcome, catch_panic};
use crate::recording::{Entry, RecordingDisk, Replay};
use crate::trace_text::{Recorded, ThreadedFailure};
use crate::workload::{self, Change, Model, contents, difference, name};
use crate::{Chance, Files, Setting, SimDisk};
use pagestore::{Durability, Error, Layout, Options, Result, Store, Tables, WriteTx};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Threads that commit, and the transactions of each.
const THREADS: usize = 3;
const TRANSACTIONS: usize = 16;
/// Crashes of a run: at entries with operations in flight, at any entry, and as kills.
const CRASHES: u64 = 48;
/// One in this many crashes kills the process, and leaves the page cache.
const KILLED_ONE_IN: u64 = 3;
/// One in this many seeds has the large transaction: pages that are installed early, changes that are encoded ahead.
const LARGE_ONE_IN: u64 = 8;
const LARGE_KEYS: u32 = 2400;
const LARGE_VALUE_BYTES: usize = 900;
/// Crashes of such a run, whose recovery takes longer.
const LARGE_CRASHES: u64 = 16;
/// Pages that a step of the compaction changes at most.
const PAGES_PER_STEP: usize = 8;

/// A transaction as it is drawn.
#[derive(Clone, Debug)]
struct Transaction {
    changes: Vec<Change>,
    durability: Durability,
}

/// A workload of threads, drawn from a seed.
pub(crate) struct Threaded {
    seed: u64,
    layout: Layout,
    options: Options,
    transactions: Vec<Transaction>,
    is_large: bool,
}

/// A run of it.
pub(crate) struct ThreadedRun {
    trace: Vec<Entry>,
    /// The entries before the store was prepared.
    prepared: usize,
}

/// Judges again the crash that a trace ends with: the violation, if there is one.
///
/// # Errors
/// When the text is no trace.
pub fn replay_threads(text: &str) -> std::result::Result<Option<ThreadedFailure>, String> {
    let recorded = Recorded::parse(text)?;
    let Recorded { seed, prepared, at, .. } = recorded;
    let threaded = Threaded::draw(seed);
    let transactions = threaded.transactions.len();
    let is_known = |entry: &Entry| match entry {
        Entry::Attempted(number) | Entry::Committed { transaction: number, .. } => *number < transactions,
        Entry::Began(..) | Entry::Ended(_) => true,
    };
    if !recorded.trace.iter().all(is_known) {
        return Err(format!("seed {seed} has {transactions} transactions, and the trace has others"));
    }
    let run = ThreadedRun { trace: recorded.trace, prepared };
    let mut replay = Replay::default();
    run.trace[..at].iter().for_each(|entry| replay.apply(entry));
    let judged = catch_panic(|| threaded.judge_at(&run, &replay, at));
    Ok(judged.err().map(|what| threaded.failure(&run, at, what)))
}

impl Threaded {
    /// Draws the workload of a seed.
    pub(crate) fn draw(seed: u64) -> Self {
        let mut chance = Chance::new(seed ^ 0x7412_ead5);
        let is_large = chance.once_in(LARGE_ONE_IN);
        let mut setting = Setting::draw(&mut chance);
        let (layout, options) = (&mut setting.layout, &mut setting.options);
        options.background = true;
        options.publish = false;
        options.log_writes_in_flight = 1 + chance.below(2) as usize;
        options.parallel = 4;
        if is_large {
            layout.page_bytes = 4096;
            options.cache_bytes = 16 << 20;
            options.log_limit_bytes = 128 * layout.vlf_bytes;
        }
        let transactions = (0..THREADS * TRANSACTIONS).map(|_| {
            let is_long = chance.once_in(3);
            let most = if chance.once_in(8) { 40 } else { 3 };
            let count = 1 + chance.below(most);
            let mut changes = workload::draw_changes(&mut chance, count, is_long);
            changes.retain(|change| {
                matches!(change, Change::Put { .. } | Change::Delete { .. } | Change::Thin { .. })
            });
            let durability = if chance.once_in(4) { Durability::Delayed } else { Durability::Full };
            Transaction { changes, durability }
        });
        let mut transactions: Vec<_> = transactions.collect();
        if is_large {
            let put =
                |key| Change::Put { table: 0, key: 1000 + key, byte: key as u8, bytes: LARGE_VALUE_BYTES };
            let durability = Durability::Full;
            transactions.push(Transaction { changes: (0..LARGE_KEYS).map(put).collect(), durability });
            transactions
                .push(Transaction { changes: vec![Change::Thin { table: 0, remainder: 2 }], durability });
        }
        let Setting { layout, options, .. } = setting;
        Self { seed, layout, options, transactions, is_large }
    }

    /// Runs it on a disk that records.
    pub(crate) fn perform(&self) -> std::result::Result<ThreadedRun, String> {
        let disk = Arc::new(RecordingDisk::new(self.seed));
        let failed = |error: Error| format!("the workload failed without a fault: {error}");
        let store = Store::create_on(disk.clone(), self.layout, self.options, 1).map_err(failed)?;
        workload::prepare(&store).map_err(failed)?;
        let prepared = disk.entries();
        let is_done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let (store, disk, is_done) = (&store, &disk, &is_done);
            let committing: Vec<_> = (0..THREADS + usize::from(self.is_large))
                .map(|thread| {
                    let first = thread * TRANSACTIONS;
                    let own = first..(first + TRANSACTIONS).min(self.transactions.len());
                    scope.spawn(move || { own }.try_for_each(|number| self.transact(store, disk, number)))
                })
                .collect();
            let compacting = scope.spawn(move || {
                while !is_done.load(Ordering::Relaxed) {
                    match store.compact(PAGES_PER_STEP) {
                        Ok(_) | Err(Error::LogFull { .. }) => std::thread::yield_now(),
                        Err(error) => return Err(error),
                    }
                }
                Ok(())
            });
            let join = |thread: std::thread::ScopedJoinHandle<'_, Result<()>>| {
                thread.join().map_err(|_| "a thread panicked".to_owned())?.map_err(failed)
            };
            let done = committing.into_iter().try_for_each(join);
            is_done.store(true, Ordering::Relaxed);
            join(compacting).and(done)
        })?;
        let entries = disk.entries();
        drop(store);
        let mut trace = disk.take_trace();
        // Dropping the store flushes, which is not part of the run; a killed process does not.
        trace.truncate(entries);
        Ok(ThreadedRun { trace, prepared })
    }

    fn transact(&self, store: &Store, disk: &RecordingDisk, number: usize) -> Result<()> {
        let Transaction { changes, durability } = &self.transactions[number];
        disk.record(Entry::Attempted(number));
        let mut tx = store.write()?;
        let changed = changes.iter().try_for_each(|change| change_store(&mut tx, change));
        let committed = match changed.and_then(|()| tx.commit(*durability)) {
            Err(Error::LogFull { .. }) => return Ok(()),
            other => other?,
        };
        if let Some(committed) = committed {
            let (sequence, is_durable) = (committed.sequence, *durability == Durability::Full);
            disk.record(Entry::Committed { transaction: number, sequence, is_durable });
        }
        Ok(())
    }

    /// Crashes a run at drawn entries.
    pub(crate) fn judge(&self, run: &ThreadedRun) -> std::result::Result<Outcome, Box<ThreadedFailure>> {
        let mut outcome = Outcome { runs: 1, ..Outcome::default() };
        let mut chance = Chance::new(self.seed ^ 0x0c4a_54ed);
        let crashes = if self.is_large { LARGE_CRASHES } else { CRASHES };
        let left = (run.trace.len() - run.prepared) as u64;
        let mut places: Vec<usize> =
            (0..crashes).map(|_| run.prepared + chance.below(left + 1) as usize).collect();
        places.sort_unstable();
        let mut replay = Replay::default();
        let mut next = 0;
        for at in places {
            run.trace[next..at].iter().for_each(|entry| replay.apply(entry));
            next = at;
            let judged = catch_panic(|| self.judge_at(run, &replay, at));
            let is_killed = judged.map_err(|what| Box::new(self.failure(run, at, what)))?;
            outcome.crash_points += 1;
            outcome.with_threads += 1;
            outcome.overlapping += u64::from(replay.in_flight() > 1);
            outcome.kills += u64::from(is_killed);
        }
        Ok(outcome)
    }

    fn failure(&self, run: &ThreadedRun, at: usize, what: String) -> ThreadedFailure {
        let (seed, prepared, trace) = (self.seed, run.prepared, run.trace.clone());
        ThreadedFailure { what, recorded: Recorded { seed, prepared, at, trace } }
    }

    /// Crashes a run after an entry; returns whether only the process ended.
    fn judge_at(&self, run: &ThreadedRun, replay: &Replay, at: usize) -> std::result::Result<bool, String> {
        let mut chance = Chance::new(self.seed ^ (at as u64) << 20);
        let options = Options {
            recovery: Setting::draw_recovery(&mut chance),
            background: false,
            parallel: 1,
            ..self.options
        };
        let is_killed = chance.once_in(KILLED_ONE_IN);
        if !is_killed {
            self.check(run, at, replay.crash(&mut chance), options)?;
            return Ok(false);
        }
        let medium = replay.killed(&mut chance);
        let found = self.check(run, at, medium.cached(), options)?;
        // The next process opens it and acknowledges what is there, and then a power failure comes.
        let disk = Arc::new(SimDisk::caching(&medium));
        let opened = Store::open_on(disk.clone(), options);
        let store = opened.map_err(|error| format!("after a kill it cannot be opened: {error}"))?;
        let mut medium = medium;
        disk.take_trace().iter().for_each(|op| medium.apply(op));
        drop(store);
        let again = self.check(run, at, medium.crash(None, &mut chance), options)?;
        if again < found {
            return Err(format!(
                "commit {found} was recovered after a kill, and a power failure has lost it"
            ));
        }
        Ok(true)
    }

    /// Recovers files and compares them with what was acknowledged; returns the last commit there.
    fn check(
        &self,
        run: &ThreadedRun,
        at: usize,
        files: Files,
        options: Options,
    ) -> std::result::Result<u64, String> {
        let opened = Store::open_on(Arc::new(SimDisk::holding(files)), options)
            .and_then(|store| Ok((store.stats().last_sequence, contents(&store.read()?)?)));
        let (sequence, found) = opened
            .map_err(|error| format!("{:?} recovery: it cannot be opened: {error}", options.recovery))?;
        let why = |what: String| Err(format!("{:?} recovery: {what}", options.recovery));
        let (mut least, mut attempted, mut commits) = (0, Vec::new(), BTreeMap::new());
        for (number, entry) in run.trace.iter().enumerate() {
            match entry {
                Entry::Attempted(transaction) if number < at => attempted.push(*transaction),
                Entry::Committed { transaction, sequence, is_durable } => {
                    commits.insert(*sequence, *transaction);
                    if *is_durable && number < at {
                        least = least.max(*sequence);
                    }
                }
                _ => {}
            }
        }
        if sequence < least {
            return why(format!("commit {least} was acknowledged, and {sequence} is the last one there"));
        }
        let mut model = Model::new();
        for (sequence, transaction) in commits.range(..=sequence) {
            if !attempted.contains(transaction) {
                return why(format!("commit {sequence} is there, and had not begun"));
            }
            self.transactions[*transaction]
                .changes
                .iter()
                .for_each(|change| change_model(&mut model, change));
        }
        match difference(&found.unwrap_or_default(), &model) {
            Some(differs) => why(format!(
                "what is there is not the state after commit {sequence}: table and key {differs:?} differ"
            )),
            None => Ok(sequence),
        }
    }
}

/// Applies a change to the store.
fn change_store(tx: &mut WriteTx<'_>, change: &Change) -> Result<()> {
    match *change {
        Change::Put { table, key, byte, bytes } => {
            let own = tx.table(&name(table))?;
            tx.put(own, &key.to_be_bytes(), &vec![byte; bytes])
        }
        Change::Delete { table, key } => {
            let own = tx.table(&name(table))?;
            tx.delete(own, &key.to_be_bytes()).map(drop)
        }
        Change::Thin { table, remainder } => {
            let own = tx.table(&name(table))?;
            let stays = |key: &[u8], _: &[u8]| {
                u32::from_be_bytes(key.try_into().expect("its keys have four bytes")) % workload::THIN_DIVISOR
                    != remainder
            };
            tx.retain(own, stays).map(drop)
        }
        Change::Recreate { .. } | Change::Pop { .. } => unreachable!("it is not drawn for threads"),
    }
}

/// Applies it to the model.
fn change_model(model: &mut Model, change: &Change) {
    match *change {
        Change::Put { table, key, byte, bytes } => drop(model.insert((table, key), vec![byte; bytes])),
        Change::Delete { table, key } => drop(model.remove(&(table, key))),
        Change::Thin { table, remainder } => {
            model.retain(|(own, key), _| *own != table || key % workload::THIN_DIVISOR != remainder);
        }
        Change::Recreate { .. } | Change::Pop { .. } => unreachable!("it is not drawn for threads"),
    }
}

impl Lab {
    /// Crashes the seed's workload of threads.
    pub(crate) fn run_threads(&self) -> std::result::Result<Outcome, Box<ThreadedFailure>> {
        let threaded = Threaded::draw(self.seed);
        let run = catch_panic(|| threaded.perform()).map_err(|what| {
            let nothing = ThreadedRun { trace: Vec::new(), prepared: 0 };
            Box::new(threaded.failure(&nothing, 0, what))
        })?;
        threaded.judge(&run)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_threads_had_acknowledged_is_there_after_a_crash_among_their_operations() {
        let mut all = Outcome::default();
        for seed in 0..6 {
            let lab = Lab { seed, ..Lab::default() };
            all.add(&lab.run_threads().unwrap_or_else(|failure| panic!("{failure}")));
        }
        assert!(all.with_threads > 200 && all.overlapping > 0 && all.kills > 0, "{all:?}");
    }

    #[test]
    fn a_crash_of_threads_fails_again_when_its_trace_is_replayed() {
        let threaded = Threaded::draw(1);
        let mut run = threaded.perform().unwrap();
        // The disk forgets every acknowledged write of the log at the end.
        let is_log_write =
            |entry: &Entry| matches!(entry, Entry::Began(_, op) if crate::run::is_log_write(op));
        let from = run.trace.iter().rposition(is_log_write).unwrap();
        for entry in &mut run.trace[from / 2..] {
            if is_log_write(entry)
                && let Entry::Began(_, op) = entry
            {
                *op = crate::Op::Sync { file: pagestore_disk::FileId::Log };
            }
        }
        let failure = threaded.judge(&run).map(drop).expect_err("commits are lost");
        assert!(failure.to_string().contains("entries before it"), "{failure}");
        let again = replay_threads(&failure.trace_text()).unwrap().expect("it fails again");
        assert_eq!(again.what, failure.what);
    }
}
