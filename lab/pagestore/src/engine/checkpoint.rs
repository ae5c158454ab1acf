//! Checkpoints: dirty pages are written to the data file in file order, neighbours together, many writes at once.
//! Every completion is checked, then the file is synced, then the control file is written, and only then is log
//! freed.
//!
//! ```text
//! begin_checkpoint   list the dirty pages, flush their log, write the control file as its witness
//! write              some writes; again until none is left           commits go on between and during them
//! sync               the data file, and with `verify_writes` all of it read back
//! end                the control file, then the log is freed
//! ```
//! No commit waits for a whole list of pages: pages are captured, and marked as written, a few at a time. A page
//! that is changed before it is captured has an image after the redo position, which is durable before the first
//! page is written. The owner of the checkpoint chooses the pace: `background` by the target for recovery, the
//! crash laboratory commit by commit.

mod batch;
mod pipeline;

use crate::engine::cache::Captured;
use crate::engine::inner::Inner;
use crate::error::{Error, Result};
use crate::format::page;
use crate::log::record::Record;
use crate::sync::{lock, thread_number};
use crate::types::{Lsn, PageNo, Position};
use batch::Batch;
use pagestore_counters::Certificate;
use pagestore_disk::{Apply, FileId};
use pipeline::Load;
use std::sync::MutexGuard;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use std::vec::IntoIter;

/// Pages that are moved into the page table under one hold of its lock.
const PAGES_PER_LOCK: usize = 256;

/// The share of the cache that a checkpoint uses as a buffer, and its bounds:
const BATCH_SHARE: usize = 4;
const BATCH_BYTES_MIN: usize = if cfg!(test) { 16 << 10 } else { 1 << 20 };
const BATCH_BYTES_MAX: usize = 1 << 30;
/// for a paced checkpoint, or pages that are in memory,
const PACED_BYTES_MAX: usize = 16 << 20;
/// and for scattered pages, where a larger buffer hardly reduces the number of writes. It starts the first writes
/// early, and takes little memory that was not in use before.
const SCATTERED_BYTES_MAX: usize = 32 << 20;
/// With this many writes at once, their time is at least what recovery would need.
const WIDE_WRITES_MIN: usize = 16;

/// Pages that are captured, or marked as written, under one hold of the lock. Tests let commits run between any
/// two; after recovery there are more pages.
const PAGES_AT_ONCE: usize = if cfg!(test) { 1 } else { 64 };
const RECOVERED_AT_ONCE: usize = if cfg!(test) { 1 } else { 1024 };
/// The pause before the lock is taken again: an unfair lock would go to the same thread again and again.
const LOCK_PAUSE: Duration = Duration::from_micros(20);

/// The action in the error when a written page could not be read back.
pub(crate) const READ_BACK: &str = "read back";

/// A page that is written, and its first record.
#[derive(Clone, Copy)]
struct CheckpointPage {
    page: PageNo,
    first: Lsn,
}

/// Excludes other checkpoints, and holds the proof of the last one.
type CheckpointGuard<'a> = MutexGuard<'a, Option<Certificate>>;

/// The one checkpoint that may run at a time; records the thread that runs it.
struct Running<'a> {
    inner: &'a Inner,
    last: CheckpointGuard<'a>,
}

impl<'a> Running<'a> {
    fn begin(inner: &'a Inner, last: CheckpointGuard<'a>) -> Self {
        inner.checkpoint_thread.store(thread_number(), Ordering::Relaxed);
        Self { inner, last }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.inner.checkpoint_thread.store(0, Ordering::Relaxed);
    }
}

/// A checkpoint in progress. It is written in as many steps as its owner likes; commits go on between them.
pub struct Checkpoint<'a> {
    running: Running<'a>,
    position: Position,
    slot: u32,
    sequence: u64,
    tx_max: u64,
    pages: u64,
    /// Captured pages that have not been gathered yet.
    captured: IntoIter<Captured>,
    batch: Option<Batch>,
    /// Every write of these pages has completed without an error.
    written: Vec<CheckpointPage>,
    /// Pages that were written with the maximum of concurrent writes, and the time that the writes took.
    wide: (u64, Duration),
}

/// A checkpoint whose pages are durable: a sync begun after their writes has succeeded.
pub struct SyncedCheckpoint<'a>(Checkpoint<'a>);

impl Inner {
    /// Does a whole checkpoint at full speed.
    pub(crate) fn checkpoint(&self) -> Result<Certificate> {
        self.checkpoint_waiters.fetch_add(1, Ordering::AcqRel);
        let last = lock(&self.checkpointing);
        self.checkpoint_waiters.fetch_sub(1, Ordering::AcqRel);
        self.checkpoint_in(last)
    }

    /// As `checkpoint`, unless one is running already.
    pub(crate) fn checkpoint_unless_running(&self) -> Result<()> {
        match self.checkpointing.try_lock() {
            Ok(last) => self.checkpoint_in(last).map(|_| ()),
            Err(_) => Ok(()),
        }
    }

    /// Whether a checkpoint now would move the redo position forward. It would not while the transaction is open
    /// whose first record is at that position: all before it has been written, and nothing else has committed
    /// since.
    pub(crate) fn may_move_redo(&self) -> bool {
        self.is_recovering()
            || self.journal.redo_position().0.lsn.packed() > self.redo.load(Ordering::Acquire)
    }

    fn checkpoint_in(&self, last: CheckpointGuard<'_>) -> Result<Certificate> {
        self.journal.check()?;
        if let Some(certificate) = last.filter(|_| !self.may_move_redo()) {
            return Ok(certificate);
        }
        let mut checkpoint = self.begin_checkpoint(last)?;
        checkpoint.write_all()?;
        checkpoint.sync()?.end()
    }

    /// Begins a checkpoint: captures the dirty pages and makes their log durable.
    pub(crate) fn begin_checkpoint<'a>(&'a self, last: CheckpointGuard<'a>) -> Result<Checkpoint<'a>> {
        let running = Running::begin(self, last);
        self.journal.check()?;
        self.absorb_runs()?;
        let (position, slot, sequence, tx_max) = {
            let _gate = lock(&self.gate);
            // A commit that failed halfway has installed some of its pages: they must not be captured.
            self.journal.check()?;
            let (position, slot) = self.journal.redo_position();
            let sequence = self.last_sequence.load(Ordering::Acquire);
            let tx_max = self.last_tx.load(Ordering::Acquire);
            lock(&self.pages).begin_capture(position.lsn);
            (position, slot, sequence, tx_max)
        };
        let captured = self.capture_pages();
        let pages = captured.len() as u64;
        self.journal.append_note(&Record::CheckpointBegin { redo: position.lsn, pages })?;
        // The commit that ran meanwhile has completed: after the flush it is visible. Pages that it had installed early were left
        // out: if it failed, the log of what they were before is still needed.
        drop(lock(&self.gate));
        self.journal.check()?;
        // Write-ahead rule: log records reach the medium before the pages that they change.
        self.journal.flush()?;

        if pages > 0 {
            // Before a page is written, the control file is made a witness of the log under it. The last log write
            // has no later block to witness it, and a page must not be newer than a log that the device has lost.
            let mut control = lock(&self.control);
            control.durable = self.journal.durable();
            control.write(self.disk.as_ref()).inspect_err(|error| self.poison(error))?;
        }
        lock(&self.pages).invalidate_reads();
        Ok(Checkpoint {
            running,
            position,
            slot,
            sequence,
            tx_max,
            pages,
            written: Vec::with_capacity(captured.len()),
            captured: captured.into_iter(),
            batch: None,
            wide: (0, Duration::ZERO),
        })
    }

    /// Moves the remaining runs into the page table, a few pages at a time.
    fn absorb_runs(&self) -> Result<()> {
        let Some(runs) = lock(&self.pages).runs() else { return Ok(()) };
        runs.load_all()?;
        let merged = runs.merged();
        self.tracker.set_pages(merged.len() as u64);
        lock(&self.pages).reserve_pages(merged.len());
        let mut merged = merged.into_iter();
        while merged.len() > 0 {
            lock(&self.pages).absorb(merged.by_ref().take(PAGES_PER_LOCK));
        }
        lock(&self.pages).detach_runs();
        Ok(())
    }

    fn pages_at_once(&self) -> usize {
        if self.is_recovering() { RECOVERED_AT_ONCE } else { PAGES_AT_ONCE }
    }

    /// Captures the dirty pages: first those in memory, in file order, then the others in the order of their oldest
    /// records.
    fn capture_pages(&self) -> Vec<Captured> {
        let (mut captured, at_once) = (Vec::new(), self.pages_at_once());
        let mut from = PageNo(0);
        loop {
            let next = lock(&self.pages).capture(from, at_once, &mut captured);
            let Some(next) = next else { break };
            from = next;
            self.pause_between_locks();
        }
        captured.sort_by_cached_key(|page: &Captured| page.content.is_none().then(|| page.chain[0]));
        captured
    }

    fn pause_between_locks(&self) {
        if self.options.background {
            std::thread::sleep(LOCK_PAUSE);
        }
    }

    fn poison(&self, error: &Error) {
        if let Error::Io { action, source, .. } = error {
            self.journal.fail(
                action,
                FileId::Control,
                std::io::Error::new(source.kind(), source.to_string()),
            );
        }
    }

    /// Whether the pages are those of recovery, and are to be written through a memory mapping.
    fn applies_mapped(&self) -> bool {
        self.options.apply == Apply::Mapped && self.is_recovering()
    }

    /// Whether pages that recovery found are not in the data file yet.
    fn is_recovering(&self) -> bool {
        self.tracker.ended().is_none()
    }

    fn sync_pages(&self) -> Result<()> {
        self.disk.sync(FileId::Data).map_err(|error| self.journal.fail("sync", FileId::Data, error))?;
        self.counters.engine.data_syncs.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Reads back what was written: each page must be there, and be as new as it was written.
    fn verify(&self, synced: &[CheckpointPage]) -> Result<()> {
        let mut bytes = vec![0; self.geometry.page_bytes];
        for CheckpointPage { page, first } in synced {
            let offset = page.0 * self.geometry.page_bytes as u64;
            let found = self
                .disk
                .read(FileId::Data, offset, &mut bytes)
                .map_err(|error| self.journal.fail(READ_BACK, FileId::Data, error))
                .and_then(|()| page::unstamp(&mut bytes, self.geometry.store, *page));
            let stale = match found {
                Ok(lsn) if lsn >= *first => continue,
                Ok(lsn) => {
                    Error::CorruptPage { page: *page, why: format!("a write was lost: it is as of {lsn}") }
                }
                Err(error) => error,
            };
            self.journal.fail("verify", FileId::Data, std::io::Error::other(stale.to_string()));
            return Err(stale);
        }
        Ok(())
    }
}

impl<'a> Checkpoint<'a> {
    /// Does up to `writes_max` writes of up to 256 KiB, and 4 MiB in all, many at once; returns whether more are left.
    ///
    /// # Errors
    /// When an I/O fails; the store is read-only then.
    pub fn write(&mut self, writes_max: usize) -> Result<bool> {
        let (inner, at_once) = (self.running.inner, self.running.inner.options.parallel);
        let mut batch = self.batch.take().unwrap_or_else(|| Batch::new(at_once));
        if !batch.is_left() {
            let pages = self.pages_in(PACED_BYTES_MAX);
            let next: Vec<_> = self.captured.by_ref().take(pages).collect();
            if next.is_empty() {
                return Ok(false);
            }
            batch.gather(inner, next)?;
        }
        let begun = Instant::now();
        let before = self.written.len();
        self.written.extend(batch.write_some(inner, writes_max, at_once)?);
        if writes_max >= at_once.min(WIDE_WRITES_MIN) {
            self.wide.0 += (self.written.len() - before) as u64;
            self.wide.1 += begun.elapsed();
        }
        let more = batch.is_left() || self.captured.len() > 0;
        self.batch = Some(batch);
        Ok(more)
    }

    /// Does the remaining writes at full speed.
    pub(crate) fn write_all(&mut self) -> Result<()> {
        let (inner, at_once) = (self.running.inner, self.running.inner.options.parallel);
        let begun = Instant::now();
        let before = self.written.len();
        if let Some(mut batch) = self.batch.take() {
            self.written.extend(batch.write_rest(inner, at_once)?);
        }
        let load = Load {
            pages_max: self.pages_at_a_time(),
            copied_max: self.pages_in(PACED_BYTES_MAX),
            captured: std::mem::take(&mut self.captured),
        };
        let gathering = pipeline::write_all(inner, load, at_once, &mut self.written)?;
        self.wide.0 += (self.written.len() - before) as u64;
        self.wide.1 += begun.elapsed().saturating_sub(gathering);
        if inner.is_recovering() {
            inner.redo_cost.log_read(inner.redo_bytes(self.position.lsn), gathering);
        }
        Ok(())
    }

    /// Pages of a batch: what its share of memory holds, at most `bytes_max`.
    fn pages_in(&self, bytes_max: usize) -> usize {
        let share = self.running.inner.options.cache_bytes / BATCH_SHARE;
        share.clamp(BATCH_BYTES_MIN, bytes_max) / self.running.inner.geometry.page_bytes
    }

    /// Pages of a batch at full speed: as many as possible if that halves the number of writes.
    fn pages_at_a_time(&self) -> usize {
        let (many, few) = (self.pages_in(BATCH_BYTES_MAX), self.pages_in(SCATTERED_BYTES_MAX));
        let left = self.captured.as_slice();
        if few == many || left.len() <= few {
            return few;
        }
        if 2 * batch::count_writes(left, many) <= batch::count_writes(left, few) { many } else { few }
    }

    /// The share of all pages that has been written.
    pub(crate) fn share_written(&self) -> f64 {
        self.written.len() as f64 / self.pages.max(1) as f64
    }

    /// Makes the written pages durable; all must have been written.
    ///
    /// # Errors
    /// When an I/O fails; the store is read-only then.
    ///
    /// # Panics
    /// When a page is not written yet.
    pub fn sync(mut self) -> Result<SyncedCheckpoint<'a>> {
        let left = self.batch.take().is_some_and(|batch| batch.is_left());
        assert!(!left && self.captured.len() == 0, "every page is written before the sync");
        let inner = self.running.inner;
        let (wide, begun) = (self.wide, Instant::now());
        inner.sync_pages()?;
        let sync = begun.elapsed().mul_f64(wide.0 as f64 / self.pages.max(1) as f64);
        inner.redo_cost.pages_written(wide.0, wide.1 + sync);
        if inner.options.verify_writes {
            inner.verify(&self.written)?;
        }
        Ok(SyncedCheckpoint(self))
    }
}

impl SyncedCheckpoint<'_> {
    /// Moves the redo position past the checkpoint, and frees the log before it.
    ///
    /// # Errors
    /// When an I/O fails; the store is read-only then.
    pub fn end(self) -> Result<Certificate> {
        let Self(Checkpoint { mut running, position, slot, sequence, tx_max, pages, written, .. }) = self;
        let (inner, redo) = (running.inner, position.lsn);
        let generation = {
            let mut control = lock(&inner.control);
            (control.redo, control.redo_slot) = (position, slot);
            (control.sequence, control.tx_max) = (sequence, tx_max);
            control.durable = inner.journal.durable();
            control.write(inner.disk.as_ref()).inspect_err(|error| inner.poison(error))?;
            control.generation
        };
        // From here on recovery would redo nothing of this; the rest is bookkeeping in memory.
        let at_once = inner.pages_at_once();
        inner.tracker.end();
        let certificate = Certificate { redo, pages, generation };
        inner.redo.store(redo.packed(), Ordering::Release);
        // In parts, so that no commit waits for all of them; before the log is freed that reads would need.
        lock(&inner.pages).invalidate_reads();
        for part in written.chunks(at_once) {
            let part = part.iter().map(|page| (page.page, page.first));
            lock(&inner.pages).mark_written(part, inner.journal.visible());
            inner.pause_between_locks();
        }
        lock(&inner.pages).log_freed();
        inner.journal.with_writer(|writer| writer.vlfs.free(certificate));
        inner.journal.append_note(&Record::CheckpointEnd { redo, pages })?;
        inner.counters.engine.checkpoints.fetch_add(1, Ordering::AcqRel);
        *running.last = Some(certificate);
        Ok(certificate)
    }
}

#[cfg(test)]
mod tests;
