//! The log in use: appending records, group commit, and waiting for durability.
//!
//! A committing thread appends its records under a lock, releases it, and waits until they are durable. A waiter
//! that finds no log write in flight takes everything appended so far and writes it itself. With one thread, each
//! commit does its own log write without a hand-over; with many, the commits that arrive during a write share the
//! next one.

mod write_behind;
mod write_times;

use crate::error::{Error, Result};
use crate::format::geometry::MAX_WRITE_BYTES;
use crate::log::directory::DirectoryWrite;
use crate::log::idle_guard::IdleGuard;
use crate::log::record::Record;
use crate::log::writer::{LogWrite, LogWriter, NoSpace};
use crate::sync::{AtomicU64, Classes, EventCount, Mutex, lock, pause, thread};
use crate::types::{Lsn, Position};
use pagestore_counters::{Publisher, monotonic_ns};
use pagestore_disk::{Disk, FileId};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, MutexGuard, OnceLock};
use std::time::{Duration, Instant};
use write_times::RecentWrites;

pub(crate) use write_times::WriteTimes;

/// Appended log that no write has taken yet, at most; a thread that appends beyond this writes some of it first.
const WAITING_BYTES_MAX: usize = 2 * MAX_WRITE_BYTES;
/// How long to pause while writes are in flight: a part of the time that a large one takes.
const WRITE_PAUSE: Duration = Duration::from_micros(100);
/// A group commit of at least this many commits is worth waiting for its members to commit again before the next
/// write.
const GROUP_COMMITS_MIN: usize = 4;
/// With more commits than this pending, other threads run during the log write and keep the processor from idling.
const LONE_COMMITS_MAX: usize = 2;
/// The group that is worth a write, in percent of the threads that commit continuously: two fifths, measured with
/// 64 threads.
const GROUP_PERCENT_MIN: usize = 40;
/// How often the next writer yields so that threads that were just acknowledged can join its write.
const YIELDS_MAX: usize = 16;

struct Shared {
    writer: LogWriter,
    /// Threads that wait for a write.
    waiting: usize,
    /// Commits that are not durable yet, in log order: commit record, sequence.
    commits: VecDeque<(Lsn, u64)>,
    /// The newest commit whose pages are installed in the page table.
    installed: u64,
    /// Estimate of the threads that commit continuously: the commits that the last write made durable and those
    /// pending at that time. 0 when the group was too small to wait for.
    committers: usize,
    /// A thread is about to write and waits for others to join.
    gathering: bool,
    /// When the oldest delayed commit that is not durable was acknowledged.
    delayed_since: Option<Instant>,
    times: RecentWrites,
}

/// See the module.
pub(crate) struct Journal {
    disk: Arc<dyn Disk>,
    shared: Mutex<Shared>,
    /// Signals write completions; a waiter's class is the id of its write.
    written: EventCount,
    /// Keeps the processor from idling during writes.
    pub(crate) idle_guard: Option<IdleGuard>,
    /// The newest commit that a new snapshot may read: durable, or acknowledged as delayed.
    visible: AtomicU64,
    /// The newest durable commit.
    durable_sequence: AtomicU64,
    durable: AtomicU64,
    poison: OnceLock<String>,
    pub(crate) counters: Arc<Publisher>,
    /// Held by the one thread that writes the log's directory.
    directory: Mutex<()>,
    written_behind: AtomicBool,
}

/// Virtual log files: those that can be written, and all.
#[derive(Clone, Copy)]
pub(crate) struct Slots {
    pub free: usize,
    pub all: usize,
}

impl Slots {
    pub(crate) fn from_writer(writer: &LogWriter) -> Self {
        Self { free: writer.vlfs.available(), all: writer.vlfs.slots().len() }
    }
}

impl Journal {
    pub(crate) fn new(
        disk: Arc<dyn Disk>,
        writer: LogWriter,
        sequence: u64,
        counters: Arc<Publisher>,
        idle_guard: Option<IdleGuard>,
    ) -> Self {
        let durable = AtomicU64::new(writer.durable().packed());
        let shared = Shared {
            writer,
            waiting: 0,
            commits: VecDeque::new(),
            installed: sequence,
            committers: 0,
            gathering: false,
            delayed_since: None,
            times: RecentWrites::default(),
        };
        Self {
            disk,
            shared: Mutex::new(shared),
            written: EventCount::default(),
            idle_guard,
            visible: AtomicU64::new(sequence),
            durable_sequence: AtomicU64::new(sequence),
            durable,
            poison: OnceLock::new(),
            counters,
            directory: Mutex::new(()),
            written_behind: AtomicBool::new(false),
        }
    }

    /// Log writes beyond `Options::log_writes_in_flight`.
    fn more_in_flight(&self) -> usize {
        usize::from(self.is_written_behind())
    }

    /// Whether a commit of many pages appends its records now.
    pub(crate) fn is_written_behind(&self) -> bool {
        self.written_behind.load(Ordering::Acquire)
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

    /// Runs `action` on the log writer under the lock.
    pub(crate) fn with_writer<T>(&self, action: impl FnOnce(&mut LogWriter) -> T) -> T {
        action(&mut self.lock().writer)
    }

    /// Appended bytes that no write has taken yet.
    pub(crate) fn waiting_bytes(&self) -> usize {
        self.lock().writer.waiting_bytes()
    }

    /// Appends the records in `encoded`, which end at the offsets `ends`; the last of them is the commit
    /// `sequence`, if there is one. Pushes each record's LSN to `lsns` and returns the last. The transaction counts
    /// as active from its first record until `end_transaction`.
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
            while shared.writer.waiting_bytes() > WAITING_BYTES_MAX {
                let write = shared.writer.take_write(self.more_in_flight());
                drop(shared);
                match write {
                    Some(write) => self.write(write, false)?,
                    None => pause(WRITE_PAUSE),
                }
                self.check()?;
                shared = self.lock();
            }
            match shared.writer.append_promised(&encoded[start..*end]) {
                Ok(lsn) => lsns.push(lsn),
                Err(NoSpace) => return Err(self.no_space()),
            }
            start = *end;
        }
        let last = shared.writer.last();
        if let Some(sequence) = commit {
            shared.commits.push_back((last, sequence));
        }
        self.counters.published().log_records.fetch_add(ends.len() as u64, Ordering::Relaxed);
        self.counters.published().log_record_bytes.fetch_add(start as u64, Ordering::Relaxed);
        Ok(last)
    }

    /// Space was checked before, so this is a bug. The store becomes read-only so that no commit is lost.
    fn no_space(&self) -> Error {
        let cause = "the log ran out of virtual log files in the middle of a transaction".to_string();
        Error::ReadOnly { cause: self.poison.get_or_init(|| cause).clone() }
    }

    /// The transaction that appended was installed as this commit, or rolled back. Returns the log's slots.
    pub(crate) fn end_transaction(&self, installed: Option<u64>) -> Slots {
        let mut shared = self.lock();
        shared.writer.oldest_active = None;
        shared.writer.end_promise();
        if let Some(sequence) = installed {
            shared.installed = sequence;
            self.update_visible(&shared);
        }
        Slots::from_writer(&shared.writer)
    }

    /// Makes durable commits visible once their pages are installed: another thread's write may complete before
    /// that.
    fn update_visible(&self, shared: &Shared) {
        let durable = self.durable_sequence.load(Ordering::Acquire);
        self.visible.fetch_max(durable.min(shared.installed), Ordering::AcqRel);
    }

    /// Appends an informational record, which belongs to no transaction. It is left out if the log has only its
    /// spare slots left: nothing depends on it, and at that point opening the store and freeing log must still
    /// work.
    pub(crate) fn append_note(&self, record: &Record<'_>) -> Result<()> {
        self.check()?;
        let mut bytes = Vec::new();
        record.encode(0, &mut bytes);
        let mut shared = self.lock();
        if !shared.writer.has_space_for_note(bytes.len() as u64) {
            return Ok(());
        }
        self.counters.published().log_records.fetch_add(1, Ordering::Relaxed);
        let appended = shared.writer.append(&bytes);
        drop(shared);
        appended.map(drop).map_err(|NoSpace| self.no_space())
    }

    /// A commit is acknowledged before it is durable.
    pub(crate) fn acknowledge_delayed(&self, sequence: u64) {
        self.visible.fetch_max(sequence, Ordering::AcqRel);
        let mut shared = self.lock();
        // Another thread's write may have made it durable already.
        if !shared.commits.is_empty() {
            shared.delayed_since.get_or_insert_with(Instant::now);
        }
    }

    /// Since when the oldest delayed commit has been pending.
    pub(crate) fn delayed_since(&self) -> Option<Instant> {
        self.lock().delayed_since
    }

    /// Makes everything that was appended durable.
    pub(crate) fn flush(&self) -> Result<()> {
        let last = self.lock().writer.last();
        self.wait(last).map(|_| ())
    }

    /// Returns when `lsn` is durable; does the log write itself if no other thread does. Returns the times of the
    /// write that made it durable, if they are still kept.
    pub(crate) fn wait(&self, lsn: Lsn) -> Result<Option<WriteTimes>> {
        let mut slept = None;
        loop {
            let mut shared = self.lock();
            shared.waiting -= usize::from(slept.is_some());
            if shared.writer.durable() < lsn && !shared.gathering {
                self.check_and_wake_all()?;
                shared = self.wait_for_group(shared);
                if let Some(write) = shared.writer.take_write(self.more_in_flight()) {
                    let is_alone = shared.commits.len() <= LONE_COMMITS_MAX;
                    drop(shared);
                    self.write(write, is_alone)?;
                    slept = None;
                    continue;
                }
            }
            if shared.writer.durable() >= lsn {
                let times = shared.times.find(lsn);
                self.pass_wakeup_on(shared, slept);
                return Ok(times);
            }
            // Another thread may have written meanwhile, and failed.
            self.check_and_wake_all()?;
            let (write, key) = (shared.writer.write_id_of(lsn), self.written.key());
            shared.waiting += 1;
            drop(shared);
            self.written.wait(key, write);
            slept = Some(write);
        }
    }

    /// As `check`; on an error wakes all waiters, so that they see it too.
    fn check_and_wake_all(&self) -> Result<()> {
        self.check().inspect_err(|_| self.written.notify(Classes::ALL, u32::MAX))
    }

    /// Called by a waiter that leaves after it slept on write `slept`. A wake-up to do the next write may have
    /// reached it instead of a waiter for a later write, if their classes are equal. It then passes the wake-up on.
    fn pass_wakeup_on(&self, shared: MutexGuard<'_, Shared>, slept: Option<u64>) {
        let unacknowledged = shared.writer.unacknowledged();
        let is_called = slept.is_some_and(|slept| unacknowledged.end() - slept >= Classes::COUNT);
        let is_needed =
            is_called && shared.waiting > 0 && !shared.gathering && shared.writer.in_flight() == 0;
        drop(shared);
        if is_needed {
            self.written.notify(Classes::from_numbers(unacknowledged), 1);
        }
    }

    /// After a group commit, yields to the threads that were just acknowledged: they are about to commit again and
    /// can join the next write. Stops as soon as the group is a good part of all committing threads; the others
    /// arrive during the write. Waiting for more would leave the device idle; waiting for fewer costs more writes.
    /// Only yields, so threads that do not want to run are not waited for.
    fn wait_for_group<'a>(&'a self, mut shared: MutexGuard<'a, Shared>) -> MutexGuard<'a, Shared> {
        if shared.committers == 0 || shared.writer.in_flight() > 0 {
            return shared;
        }
        shared.gathering = true;
        for _ in 0..YIELDS_MAX {
            if shared.commits.len() * 100 >= shared.committers * GROUP_PERCENT_MIN {
                break;
            }
            drop(shared);
            thread::yield_now();
            shared = self.lock();
        }
        shared.gathering = false;
        shared
    }

    /// Does a log write. `is_alone`: few commits wait for it, so the processor would idle meanwhile.
    fn write(&self, write: LogWrite, is_alone: bool) -> Result<()> {
        let submitted = monotonic_ns();
        let guard = self.idle_guard.as_ref().filter(|_| is_alone);
        let guarded = guard.map(|guard| guard.write_begins(submitted));
        let (end, bytes) = (write.end, write.buffer.len() as u64);
        let result = self.disk.write_through(FileId::Log, write.offset, write.buffer.bytes());
        let written = monotonic_ns();
        if let Some((guard, guarded)) = guard.zip(guarded) {
            guard.write_ended(&guarded, written);
        }
        let mut shared = self.lock();
        let before = shared.writer.first_unacknowledged();
        let outcome = match result {
            Ok(()) => {
                self.counters.log.writes.fetch_add(1, Ordering::Relaxed);
                self.counters.log.write_bytes.fetch_add(bytes, Ordering::Relaxed);
                self.counters.log.write_ns.fetch_add(written - submitted, Ordering::Relaxed);
                shared.writer.complete(write);
                let durable = shared.writer.durable();
                shared.times.add(WriteTimes { end, submitted, written, durable: 0 }, durable);
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
        self.update_visible(&shared);
        shared.committers = if group < GROUP_COMMITS_MIN { 0 } else { group + shared.commits.len() };
        if shared.commits.is_empty() {
            shared.delayed_since = None;
        }
        let acknowledged = match outcome {
            Ok(()) => Classes::from_numbers(before..shared.writer.first_unacknowledged()),
            Err(_) => Classes::ALL,
        };
        let waiting = shared.waiting > 0;
        // Wake one thread for the next write before the waiters of this write. It is taken from the waiters for
        // unacknowledged writes: waiters for this write, and for others whose writer has not notified them yet,
        // would find nothing to write.
        let is_next_free = waiting && outcome.is_ok() && shared.writer.in_flight() == 0;
        let unacknowledged = Classes::from_numbers(shared.writer.unacknowledged());
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

    /// Writes the directory's pending entries of closed virtual log files. No commit depends on it.
    fn write_directory(&self) -> Result<()> {
        // The thread that holds the lock also writes these entries, or the next log write does.
        let Ok(_one) = self.directory.try_lock() else { return Ok(()) };
        let writes = self.with_writer(|writer| writer.directory.take_writes(writer.durable()));
        self.write_to_directory(writes)
    }

    /// Clears the directory's entries of slots up to `slots` that the log does not have yet.
    pub(crate) fn clear_directory(&self, slots: usize) -> Result<()> {
        let _one = lock(&self.directory);
        let writes = self.with_writer(|writer| {
            writer.directory.grow(slots);
            writer.directory.stale_sectors()
        });
        self.write_to_directory(writes)
    }

    fn write_to_directory(&self, writes: Vec<DirectoryWrite>) -> Result<()> {
        for write in writes {
            self.disk
                .write_through(FileId::Control, write.offset, write.buffer.bytes())
                .map_err(|error| self.fail("write", FileId::Control, error))?;
        }
        Ok(())
    }

    /// Makes the store read-only, unless it already is.
    pub(crate) fn set_read_only(&self, error: &Error) {
        let _ = self.poison.set(error.to_string());
    }

    /// Makes the store read-only after a failed I/O, and returns that error.
    pub(crate) fn fail(&self, action: &'static str, file: FileId, error: std::io::Error) -> Error {
        let error = Error::io(action, file, error);
        let _ = self.poison.set(error.to_string());
        error
    }

    /// Where recovery would begin after a checkpoint that begins now, and the slot of that virtual log file.
    pub(crate) fn redo_position(&self) -> (Position, u32) {
        let shared = self.lock();
        let position = shared.writer.oldest_active.unwrap_or_else(|| shared.writer.position());
        let slot = shared.writer.vlfs.slot_of(position.lsn.vlf()).expect("what is written is active");
        (position, slot as u32)
    }
}
