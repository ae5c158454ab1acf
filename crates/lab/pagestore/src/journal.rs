//! The log in use: who appends, who writes, who waits.
//!
//! A committing thread appends its records under a lock, lets go, and then waits until they are durable. Whoever
//! waits and finds no write in flight takes what has gathered and writes it itself: at one thread the log write is
//! the commit's own, without a hand-over; at many, those who come during a write go together in the next.

use crate::awake::Awake;
use crate::disk::{Disk, FileId};
use crate::error::{Error, Result};
use crate::log::MAX_WRITE_BYTES;
use crate::log::record::Record;
use crate::log::writer::{LogWrite, LogWriter, NoSpace, Position};
use crate::log_space::SPARE_SLOTS;
use crate::sync::{AtomicU64, Classes, EventCount, Mutex, thread};
use crate::types::Lsn;
use pagestore_counters::{Publisher, monotonic_ns};
use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, OnceLock};
use std::time::Instant;

/// What is appended without being written; more than this is written by whoever appends.
const WAITING_BYTES_MAX: usize = 2 * MAX_WRITE_BYTES;
/// A group at least this large is worth letting its members come round again before the next write.
const GROUP_WORTH_WAITING: usize = 4;
/// Where more commits than this wait for a write, others come meanwhile, and keep the processors awake.
const ALONE_MAX: usize = 2;
/// So many of all who commit again and again are worth a write: two fifths, measured with 64 threads.
const PERCENT_OF_ROUND: usize = 40;
/// How often the next writer gives way, so that those who were just acknowledged can join it.
const YIELDS_MAX: usize = 16;

/// Writes whose times are kept for the commits in them.
const WRITES_KEPT: usize = 64;

/// When a write began, when it was done, and when all before it were done too (0: not yet), on the monotonic clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WriteTimes {
    /// The last record in it.
    end: Lsn,
    pub submitted: u64,
    pub written: u64,
    pub durable: u64,
}

struct Shared {
    writer: LogWriter,
    /// Threads that wait for a write.
    waiting: usize,
    /// Commits that are not durable yet, in their order.
    commits: VecDeque<(Lsn, u64)>,
    /// The newest commit whose pages are where readers look for them.
    installed: u64,
    /// Commits that the last write made durable, and those that waited then: so many threads commit again and again. 0
    /// where they are too few to be waited for.
    round: usize,
    /// Somebody is about to write, and lets others join.
    gathering: bool,
    /// When the oldest delayed commit that is not durable was acknowledged.
    delayed_since: Option<Instant>,
    /// The last writes, in the order of the log.
    writes: VecDeque<WriteTimes>,
}

impl Shared {
    /// A write was done; tells how far the log is durable.
    fn note_write(&mut self, write: WriteTimes) {
        // Almost always the last.
        let later = self.writes.iter().rev().take_while(|own| own.end > write.end).count();
        self.writes.insert(self.writes.len() - later, write);
        if self.writes.len() > WRITES_KEPT {
            self.writes.pop_front();
        }
        let durable = self.writer.durable();
        // One that was done in its turn was durable when it was done.
        let now = if later == 0 { write.written } else { monotonic_ns() };
        for own in self.writes.iter_mut().rev().filter(|own| own.end <= durable) {
            if own.durable > 0 {
                break;
            }
            own.durable = now;
        }
    }

    /// The write that made `lsn` durable; `None` where it is too long ago.
    fn write_of(&self, lsn: Lsn) -> Option<WriteTimes> {
        let back = self.writes.iter().rev().take_while(|own| own.end >= lsn).count();
        // Of an older write than those that are kept, the first one kept would be taken.
        let is_known = back < WRITES_KEPT;
        let first = self.writes.len() - back;
        self.writes.get(first).copied().filter(|own| is_known && own.durable > 0)
    }
}

/// See the module.
pub(crate) struct Journal {
    disk: Arc<dyn Disk>,
    shared: Mutex<Shared>,
    /// Of writes; who waits for one is in the class of its number.
    written: EventCount,
    /// Where the processor is kept from sleeping during writes.
    pub(crate) awake: Option<Awake>,
    /// The newest commit that may be read by a new snapshot: durable, or acknowledged as delayed.
    visible: AtomicU64,
    /// The newest durable commit.
    durable_sequence: AtomicU64,
    durable: AtomicU64,
    poison: Arc<OnceLock<String>>,
    pub(crate) counters: Arc<Publisher>,
    /// One writes the log's directory at a time.
    directory: Mutex<()>,
}

/// Virtual log files: those that can be written, and all.
#[derive(Clone, Copy)]
pub(crate) struct Slots {
    pub free: usize,
    pub all: usize,
}

impl Slots {
    pub(crate) fn of(writer: &LogWriter) -> Self {
        Self { free: writer.vlfs.available(), all: writer.vlfs.slots().len() }
    }
}

impl Journal {
    pub(crate) fn new(
        disk: Arc<dyn Disk>,
        writer: LogWriter,
        sequence: u64,
        poison: Arc<OnceLock<String>>,
        counters: Arc<Publisher>,
        awake: Option<Awake>,
    ) -> Self {
        let durable = AtomicU64::new(writer.durable().packed());
        let shared = Shared {
            writer,
            waiting: 0,
            commits: VecDeque::new(),
            installed: sequence,
            round: 0,
            gathering: false,
            delayed_since: None,
            writes: VecDeque::with_capacity(WRITES_KEPT + 1),
        };
        Self {
            disk,
            shared: Mutex::new(shared),
            written: EventCount::default(),
            awake,
            visible: AtomicU64::new(sequence),
            durable_sequence: AtomicU64::new(sequence),
            durable,
            poison,
            counters,
            directory: Mutex::new(()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().expect("no thread panics with the log locked")
    }

    pub(crate) fn visible(&self) -> u64 {
        self.visible.load(Ordering::Acquire)
    }

    pub(crate) fn durable_sequence(&self) -> u64 {
        self.durable_sequence.load(Ordering::Acquire)
    }

    pub(crate) fn durable(&self) -> Lsn {
        Lsn::from_packed(self.durable.load(Ordering::Acquire))
    }

    /// The error of every write after the first that failed.
    pub(crate) fn check(&self) -> Result<()> {
        match self.poison.get() {
            Some(cause) => Err(Error::ReadOnly { cause: cause.clone() }),
            None => Ok(()),
        }
    }

    /// Looks at, or changes, the pure part.
    pub(crate) fn with<T>(&self, look: impl FnOnce(&mut LogWriter) -> T) -> T {
        look(&mut self.lock().writer)
    }

    /// Bytes that wait and are not being written.
    pub(crate) fn waiting_bytes(&self) -> usize {
        self.lock().writer.waiting_bytes()
    }

    /// Appends the records in `encoded`, whose ends are `ends`; the last of them is the commit `sequence` where
    /// there is one. Adds to `lsns` where they lie, and tells where the last one does. The transaction counts as active
    /// from its first record until `ended`.
    pub(crate) fn append(
        &self,
        encoded: &[u8],
        ends: &[usize],
        commit: Option<u64>,
        lsns: &mut Vec<Lsn>,
    ) -> Result<Lsn> {
        self.check()?;
        let mut start = 0;
        let mut shared = self.lock();
        if shared.writer.oldest_active.is_none() {
            shared.writer.oldest_active = Some(shared.writer.position());
        }
        for end in ends {
            if shared.writer.waiting_bytes() > WAITING_BYTES_MAX {
                let write = shared.writer.take_write();
                drop(shared);
                match write {
                    Some(write) => self.write(write, false)?,
                    None => thread::yield_now(),
                }
                self.check()?;
                shared = self.lock();
            }
            match shared.writer.append(&encoded[start..*end]) {
                Ok(lsn) => lsns.push(lsn),
                Err(NoSpace) => return Err(self.no_space()),
            }
            start = *end;
        }
        let last = shared.writer.last();
        if let Some(sequence) = commit {
            shared.commits.push_back((last, sequence));
        }
        self.counters.log.records.fetch_add(ends.len() as u64, Ordering::Relaxed);
        Ok(last)
    }

    /// The space was checked before, so this is a bug; it must not become a lost commit.
    fn no_space(&self) -> Error {
        let cause = "the log ran out of virtual log files in the middle of a transaction".to_string();
        Error::ReadOnly { cause: self.poison.get_or_init(|| cause).clone() }
    }

    /// The transaction that appended has been installed as this commit, or given up. Tells what there is left of the log.
    pub(crate) fn ended(&self, installed: Option<u64>) -> Slots {
        let mut shared = self.lock();
        shared.writer.oldest_active = None;
        if let Some(sequence) = installed {
            shared.installed = sequence;
            self.show(&shared);
        }
        Slots::of(&shared.writer)
    }

    /// What is durable may be read, once its pages are there: a write of another thread may be done before they are.
    fn show(&self, shared: &Shared) {
        let durable = self.durable_sequence.load(Ordering::Acquire);
        self.visible.fetch_max(durable.min(shared.installed), Ordering::AcqRel);
    }

    /// Appends a record that belongs to no transaction and only tells what happened. Where the log has no space for it but
    /// what is kept for others, it is left out: nothing depends on it, and a store must open, and a checkpoint free log, just
    /// then.
    pub(crate) fn note(&self, record: &Record<'_>) -> Result<()> {
        self.check()?;
        let mut bytes = Vec::new();
        record.encode(0, &mut bytes);
        let mut shared = self.lock();
        if shared.writer.space(SPARE_SLOTS) < bytes.len() as u64 {
            return Ok(());
        }
        self.counters.log.records.fetch_add(1, Ordering::Relaxed);
        let appended = shared.writer.append(&bytes);
        drop(shared);
        appended.map(drop).map_err(|NoSpace| self.no_space())
    }

    /// A commit is acknowledged before it is durable.
    pub(crate) fn delayed(&self, sequence: u64) {
        self.visible.fetch_max(sequence, Ordering::AcqRel);
        let mut shared = self.lock();
        // Another's write may have made it durable already.
        if !shared.commits.is_empty() {
            shared.delayed_since.get_or_insert_with(Instant::now);
        }
    }

    /// Since when a delayed commit waits.
    pub(crate) fn delayed_since(&self) -> Option<Instant> {
        self.lock().delayed_since
    }

    /// Makes everything that was appended durable.
    pub(crate) fn flush(&self) -> Result<()> {
        let last = self.lock().writer.last();
        self.wait(last).map(|_| ())
    }

    /// Returns when `lsn` is durable; writes what has gathered if nobody does. Tells of the write that did it, where
    /// that is still known.
    pub(crate) fn wait(&self, lsn: Lsn) -> Result<Option<WriteTimes>> {
        let mut slept = None;
        loop {
            let mut shared = self.lock();
            shared.waiting -= usize::from(slept.is_some());
            if shared.writer.durable() < lsn && !shared.gathering {
                self.check_for_all()?;
                shared = self.gather(shared);
                if let Some(write) = shared.writer.take_write() {
                    let is_alone = shared.commits.len() <= ALONE_MAX;
                    drop(shared);
                    self.write(write, is_alone)?;
                    slept = None;
                    continue;
                }
            }
            if shared.writer.durable() >= lsn {
                let times = shared.write_of(lsn);
                self.hand_on(shared, slept);
                return Ok(times);
            }
            // Another may have written meanwhile, and failed.
            self.check_for_all()?;
            let (write, key) = (shared.writer.write_of(lsn), self.written.key());
            shared.waiting += 1;
            drop(shared);
            self.written.wait(key, write);
            slept = Some(write);
        }
    }

    /// As `check`; who learns that there will be no write wakes all who wait for one: they learn it too.
    fn check_for_all(&self) -> Result<()> {
        self.check().inspect_err(|_| self.written.notify(Classes::ALL, u32::MAX))
    }

    /// Who goes on, and slept in the class of this write: a call to do the next one is for those of writes to come, and would
    /// have gone to it where their class is the same. Then another is called.
    fn hand_on(&self, shared: MutexGuard<'_, Shared>, slept: Option<u64>) {
        let unacknowledged = shared.writer.unacknowledged();
        let is_called = slept.is_some_and(|slept| unacknowledged.end() - slept >= Classes::COUNT);
        let is_needed =
            is_called && shared.waiting > 0 && !shared.gathering && shared.writer.in_flight() == 0;
        drop(shared);
        if is_needed {
            self.written.notify(Classes::of(unacknowledged), 1);
        }
    }

    /// After a group of several commits, gives way to those who were acknowledged with it: they are about to
    /// commit again, and come along if they are let. A write that takes a good part of all lets the others come
    /// while it is in flight; to wait for more leaves the device idle, and less is more writes for the processors. Nobody
    /// is waited for who does not want to run.
    fn gather<'a>(&'a self, mut shared: MutexGuard<'a, Shared>) -> MutexGuard<'a, Shared> {
        if shared.round == 0 || shared.writer.in_flight() > 0 {
            return shared;
        }
        shared.gathering = true;
        for _ in 0..YIELDS_MAX {
            if shared.commits.len() * 100 >= shared.round * PERCENT_OF_ROUND {
                break;
            }
            drop(shared);
            thread::yield_now();
            shared = self.lock();
        }
        shared.gathering = false;
        shared
    }

    /// `is_alone`: nothing but this write is waited for, and so its processor has nothing else to do.
    fn write(&self, write: LogWrite, is_alone: bool) -> Result<()> {
        let submitted = monotonic_ns();
        let awake = self.awake.as_ref().filter(|_| is_alone);
        let begun = awake.map(|awake| awake.begins(submitted));
        let (end, bytes) = (write.end, write.buffer.len() as u64);
        let result = self.disk.write_through(FileId::Log, write.offset, write.buffer.bytes());
        let written = monotonic_ns();
        if let Some((awake, begun)) = awake.zip(begun) {
            awake.ended(&begun, written);
        }
        let mut shared = self.lock();
        let before = shared.writer.first_unacknowledged();
        let outcome = match result {
            Ok(()) => {
                self.counters.log.writes.fetch_add(1, Ordering::Relaxed);
                self.counters.log.write_bytes.fetch_add(bytes, Ordering::Relaxed);
                self.counters.log.write_ns.fetch_add(written - submitted, Ordering::Relaxed);
                shared.writer.complete(write);
                shared.note_write(WriteTimes { end, submitted, written, durable: 0 });
                Ok(())
            }
            Err(error) => {
                shared.writer.fail();
                Err(self.fail("write", FileId::Log, error))
            }
        };
        let durable = shared.writer.durable();
        self.durable.store(durable.packed(), Ordering::Release);
        let mut group = 0;
        while let Some((lsn, sequence)) = shared.commits.front().copied()
            && lsn <= durable
        {
            shared.commits.pop_front();
            group += 1;
            self.durable_sequence.fetch_max(sequence, Ordering::AcqRel);
        }
        self.show(&shared);
        shared.round = if group < GROUP_WORTH_WAITING { 0 } else { group + shared.commits.len() };
        if shared.commits.is_empty() {
            shared.delayed_since = None;
        }
        let acknowledged = match outcome {
            Ok(()) => Classes::of(before..shared.writer.first_unacknowledged()),
            Err(_) => Classes::ALL,
        };
        let waiting = shared.waiting > 0;
        // The next write needs somebody to do it, and begins before those of this one run: one who waits for a write to
        // come, for those of this one, and of others whose writer has not told them yet, sleep still.
        let is_next_free = waiting && outcome.is_ok() && shared.writer.in_flight() == 0;
        let unacknowledged = Classes::of(shared.writer.unacknowledged());
        let directory_due = shared.writer.directory.is_due(durable);
        drop(shared);
        if is_next_free {
            self.written.notify(unacknowledged, 1);
        }
        if waiting {
            self.written.notify(acknowledged, u32::MAX);
        }
        outcome?;
        if directory_due { self.write_directory() } else { Ok(()) }
    }

    /// Writes what the directory has not yet of virtual log files that have ended. Nothing waits for it.
    fn write_directory(&self) -> Result<()> {
        // Who writes it already sees to the rest; what comes too late for that, the next write does.
        let Ok(_one) = self.directory.try_lock() else { return Ok(()) };
        let writes = self.with(|writer| writer.directory.take_writes(writer.durable()));
        for write in writes {
            self.disk
                .write_through(FileId::Control, write.offset, write.buffer.bytes())
                .map_err(|error| self.fail("write", FileId::Control, error))?;
        }
        Ok(())
    }

    /// Makes the store read-only, for a reason that another one may have preceded.
    pub(crate) fn give_up(&self, error: &Error) {
        let _ = self.poison.set(error.to_string());
    }

    /// Makes the store read-only.
    pub(crate) fn fail(&self, action: &'static str, file: FileId, error: std::io::Error) -> Error {
        let error = Error::io(action, file, error);
        let _ = self.poison.set(error.to_string());
        error
    }

    /// Where a checkpoint that begins now would let recovery begin, and in which slot.
    pub(crate) fn redo_position(&self) -> (Position, u32) {
        let shared = self.lock();
        let position = shared.writer.oldest_active.unwrap_or_else(|| shared.writer.position());
        let slot = shared.writer.vlfs.slot_of(position.lsn.vlf()).expect("what is written is active");
        (position, slot as u32)
    }
}
