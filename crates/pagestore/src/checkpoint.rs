//! Checkpoints: what is dirty goes to the data file, in order of place, neighbours together, many writes at once;
//! every completion is checked, then the sync, then the control file, and only then is log freed.
//!
//! ```text
//! begin_checkpoint   list what is dirty, flush the log under it, write the control file as its witness
//! write              so many writes; again until none is left        commits go on between and during them
//! sync               the data file, and with `verify_writes` all of it read back
//! end                the control file, then the log is freed
//! ```
//! Commits are held up twice, for as long as it takes to list the dirty pages and to tick them off. Who owns the
//! checkpoint chooses the pace: `background`, by the target for recovery; the crash laboratory, commit by commit.

use crate::aligned::AlignedBuffer;
use crate::cache::{Captured, Page};
use crate::disk::FileId;
use crate::error::{Error, Result};
use crate::journal::BlockCache;
use crate::log::record::Record;
use crate::log::vlf::Certificate;
use crate::log::writer::Position;
use crate::lsn::{Lsn, PageNo};
use crate::options::Apply;
use crate::page;
use crate::store::{Checkpoints, Inner, lock};
use crate::sync::Mutex;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::MutexGuard;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use std::vec::IntoIter;

/// Pages are put together and written in batches of this size: its memory bounds a checkpoint's.
const BATCH_BYTES: usize = 16 << 20;
/// The largest single write to the data file.
const WRITE_BYTES_MAX: usize = 1 << 20;

/// Pages that are ticked off under one hold of the lock.
const TICKED_OFF_AT_ONCE: usize = 256;

/// A page as it is written.
struct Own {
    page: PageNo,
    first: Lsn,
    last: Lsn,
    content: Page,
}

/// Every write of these pages has completed without an error.
struct Written {
    pages: Vec<(PageNo, Lsn)>,
}

/// … and a sync begun after that has succeeded.
struct Synced {
    pages: Vec<(PageNo, Lsn)>,
}

/// … and the control file says where recovery begins.
pub(crate) struct Certified {
    certificate: Certificate,
}

impl Certified {
    pub(crate) fn certificate(self) -> Certificate {
        self.certificate
    }
}

/// A checkpoint that is being written, in as many steps as its owner likes: between them commits go on.
pub(crate) struct Checkpoint<'a> {
    inner: &'a Inner,
    /// One at a time.
    running: MutexGuard<'a, Checkpoints>,
    position: Position,
    slot: u32,
    sequence: u64,
    tx_max: u64,
    pages: u64,
    /// What has not been put together yet, in the order of the log.
    captured: IntoIter<Captured>,
    blocks: BlockCache,
    /// In the order of their places.
    batch: Vec<Own>,
    /// The writes of the batch that are left: neighbours together.
    writes: VecDeque<Range<usize>>,
    done: Written,
    /// Time that the writes took.
    writing: Duration,
}

/// A checkpoint whose pages are durable.
pub(crate) struct SyncedCheckpoint<'a> {
    inner: &'a Inner,
    running: MutexGuard<'a, Checkpoints>,
    position: Position,
    slot: u32,
    sequence: u64,
    tx_max: u64,
    pages: u64,
    synced: Synced,
}

impl Inner {
    /// One whole checkpoint, as fast as it can be written.
    pub(crate) fn checkpoint(&self) -> Result<Certified> {
        self.hurry.fetch_add(1, Ordering::AcqRel);
        let running = lock(&self.checkpointing);
        self.hurry.fetch_sub(1, Ordering::AcqRel);
        self.checkpoint_in(running)
    }

    /// As `checkpoint`, unless one is running already.
    pub(crate) fn checkpoint_unless_running(&self) -> Result<()> {
        match self.checkpointing.try_lock() {
            Ok(running) => self.checkpoint_in(running).map(|_| ()),
            Err(_) => Ok(()),
        }
    }

    fn checkpoint_in(&self, running: MutexGuard<'_, Checkpoints>) -> Result<Certified> {
        let mut checkpoint = self.begin_checkpoint(running)?;
        while checkpoint.write(usize::MAX)? {}
        checkpoint.sync()?.end()
    }

    /// Lists what is dirty, and makes the log under it durable.
    pub(crate) fn begin_checkpoint<'a>(
        &'a self,
        running: MutexGuard<'a, Checkpoints>,
    ) -> Result<Checkpoint<'a>> {
        self.journal.check()?;
        self.absorb_runs()?;
        let (captured, position, slot, sequence, tx_max) = {
            let _gate = lock(&self.gate);
            let (position, slot) = self.journal.redo_position();
            let sequence = self.last_sequence.load(Ordering::Acquire);
            let tx_max = self.last_tx.load(Ordering::Acquire);
            (lock(&self.pages).capture(), position, slot, sequence, tx_max)
        };
        let pages = captured.len() as u64;
        self.journal.note(&Record::CheckpointBegin { redo: position.lsn, pages })?;
        // The rule of write-ahead: no page before the log that made it.
        self.journal.flush()?;

        if pages > 0 {
            // The log under these pages has a witness before there is one of them: its last write has no later
            // block to say that it was durable, and a page must not be newer than a log that a device has lost.
            let mut control = lock(&self.control);
            control.durable = self.journal.durable();
            control.write(self.disk.as_ref()).inspect_err(|error| self.poison(error))?;
        }
        Ok(Checkpoint {
            inner: self,
            running,
            position,
            slot,
            sequence,
            tx_max,
            pages,
            done: Written { pages: Vec::with_capacity(captured.len()) },
            captured: captured.into_iter(),
            blocks: BlockCache::default(),
            batch: Vec::new(),
            writes: VecDeque::new(),
            writing: Duration::ZERO,
        })
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

    /// Writes groups of neighbours, `parallel` at once.
    fn write_groups(&self, groups: &[&[Own]]) -> Result<()> {
        let next = AtomicUsize::new(0);
        let failure = Mutex::new(None);
        let work = || {
            let mut buffer = AlignedBuffer::new(WRITE_BYTES_MAX);
            while let Some(group) = groups.get(next.fetch_add(1, Ordering::Relaxed)) {
                if let Err(error) = self.write_neighbours(group, &mut buffer) {
                    lock(&failure).get_or_insert(error);
                    return;
                }
            }
        };
        let threads = self.options.parallel.min(groups.len());
        if threads <= 1 {
            work();
        } else {
            std::thread::scope(|scope| {
                for _ in 0..threads {
                    scope.spawn(work);
                }
            });
        }
        lock(&failure).take().map_or(Ok(()), Err)
    }

    fn write_neighbours(&self, group: &[Own], buffer: &mut AlignedBuffer) -> Result<()> {
        buffer.clear();
        for own in group {
            let at = buffer.len();
            buffer.extend(&own.content);
            page::stamp(&mut buffer.bytes_mut()[at..], self.geometry.store, own.page, own.last);
        }
        let offset = group[0].page.0 * self.geometry.page_bytes as u64;
        let written = if self.applies_mapped() {
            self.disk.write_mapped(offset, buffer.bytes())
        } else {
            self.disk.write(FileId::Data, offset, buffer.bytes())
        };
        written.map_err(|error| self.journal.fail("write", FileId::Data, error))?;
        self.counters.page_writes.fetch_add(1, Ordering::Relaxed);
        self.counters.page_write_bytes.fetch_add(buffer.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    /// Whether what is written now is recovery's, and to be written through memory.
    fn applies_mapped(&self) -> bool {
        self.options.apply == Apply::Mapped
            && self.recovering.load(Ordering::Relaxed) > 0
            && self.counters.checkpoints.load(Ordering::Relaxed) == 0
    }

    fn sync_pages(&self, written: Written) -> Result<Synced> {
        self.disk.sync(FileId::Data).map_err(|error| self.journal.fail("sync", FileId::Data, error))?;
        self.counters.data_syncs.fetch_add(1, Ordering::Relaxed);
        Ok(Synced { pages: written.pages })
    }

    /// Reads back what was written: each page must be there, as new as it was written.
    fn verify(&self, synced: &Synced) -> Result<()> {
        let mut bytes = vec![0; self.geometry.page_bytes];
        for (page, first) in &synced.pages {
            let offset = page.0 * self.geometry.page_bytes as u64;
            let found = self
                .disk
                .read(FileId::Data, offset, &mut bytes)
                .map_err(|error| self.journal.fail("read back", FileId::Data, error))
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
    /// Does up to this many writes, many at once; false when none is left.
    pub(crate) fn write(&mut self, writes_max: usize) -> Result<bool> {
        if self.writes.is_empty() && !self.gather()? {
            return Ok(false);
        }
        let count = writes_max.min(self.writes.len());
        let writes: Vec<_> = self.writes.drain(..count).map(|range| &self.batch[range]).collect();
        let begun = Instant::now();
        self.inner.write_groups(&writes)?;
        self.writing += begun.elapsed();
        self.done.pages.extend(writes.iter().flat_map(|group| group.iter().map(|own| (own.page, own.first))));
        Ok(!self.writes.is_empty() || self.captured.len() > 0)
    }

    /// Of all pages, those whose writes are done.
    pub(crate) fn share_written(&self) -> f64 {
        self.done.pages.len() as f64 / self.pages.max(1) as f64
    }

    /// Puts the next pages together, in the order of the log, so that one block serves all its pages, and plans
    /// their writes in the order of their places, neighbours in one. False when there are none.
    fn gather(&mut self) -> Result<bool> {
        let page_bytes = self.inner.geometry.page_bytes;
        self.batch.clear();
        while self.batch.len() * page_bytes < BATCH_BYTES
            && let Some(own) = self.captured.next()
        {
            let content = match own.content {
                Some(content) => content,
                None => self.inner.redo(&own.chain, &mut self.blocks)?,
            };
            let last = *own.chain.last().expect("what is dirty has a record");
            self.batch.push(Own { page: own.page, first: own.chain[0], last, content });
        }
        self.batch.sort_by_key(|own| own.page);
        let per_write = WRITE_BYTES_MAX / page_bytes;
        let mut start = 0;
        for group in self.batch.chunk_by(|a, b| a.page.0 + 1 == b.page.0) {
            for part in group.chunks(per_write) {
                self.writes.push_back(start..start + part.len());
                start += part.len();
            }
        }
        Ok(!self.writes.is_empty())
    }

    /// Makes durable what was written, which is all.
    pub(crate) fn sync(self) -> Result<SyncedCheckpoint<'a>> {
        assert!(self.writes.is_empty() && self.captured.len() == 0, "every page is written before the sync");
        let Self { inner, running, position, slot, sequence, tx_max, pages, done, writing, .. } = self;
        let begun = Instant::now();
        let synced = inner.sync_pages(done)?;
        inner.redo_cost.pages_written(pages, writing + begun.elapsed());
        if inner.options.verify_writes {
            inner.verify(&synced)?;
        }
        Ok(SyncedCheckpoint { inner, running, position, slot, sequence, tx_max, pages, synced })
    }
}

impl SyncedCheckpoint<'_> {
    /// Lets recovery begin after it, and frees the log before that.
    pub(crate) fn end(mut self) -> Result<Certified> {
        let inner = self.inner;
        let redo = self.position.lsn;
        let generation = {
            let mut control = lock(&inner.control);
            (control.redo, control.redo_slot) = (self.position, self.slot);
            (control.sequence, control.tx_max) = (self.sequence, self.tx_max);
            control.durable = inner.journal.durable();
            control.write(inner.disk.as_ref()).inspect_err(|error| inner.poison(error))?;
            control.generation
        };
        let certificate = Certificate { redo, pages: self.pages, generation };
        inner.redo.store(redo.packed(), Ordering::Release);
        // In parts, so that no commit waits for all of them; before the log is freed that they would be read from.
        for part in self.synced.pages.chunks(TICKED_OFF_AT_ONCE) {
            lock(&inner.pages).written(part, inner.journal.visible());
        }
        inner.journal.with(|writer| writer.vlfs.free(certificate));
        inner.journal.note(&Record::CheckpointEnd { redo, pages: self.pages })?;
        inner.counters.checkpoints.fetch_add(1, Ordering::AcqRel);
        self.running.last = Some(certificate);
        Ok(Certified { certificate })
    }
}

#[cfg(test)]
mod tests {
    use crate::disk::FileId;
    use crate::error::Error;
    use crate::sim::{Chance, Fault, Medium, Op, SimDisk};
    use crate::{Durability, Layout, Options, Recovery, Store};
    use std::sync::Arc;

    /// A disk whose operation `fault` is acknowledged and not done as told, after a full commit, a delayed one and
    /// a checkpoint; tells the number of operations before the checkpoint too.
    fn checkpointed(fault: Option<(usize, Fault)>) -> (usize, Arc<SimDisk>) {
        let disk = SimDisk::new();
        let disk = Arc::new(match fault {
            Some((at, fault)) => disk.with_fault(at, fault),
            None => disk,
        });
        let layout = Layout { vlf_bytes: 128 << 10, vlfs: 2, ..Layout::default() };
        let options = Options { background: false, ..Options::default() };
        let store = Store::create_on(disk.clone(), layout, options, 1).unwrap();
        for durability in [Durability::Full, Durability::Delayed] {
            let mut tx = store.write().unwrap();
            let name = format!("{durability:?}");
            let table = tx.create_table(&name).unwrap();
            tx.put(table, b"key", b"value").unwrap();
            tx.commit(durability).unwrap();
        }
        let before = disk.ops();
        let _ = store.checkpoint();
        (before, disk)
    }

    // The last log write before a checkpoint's pages has no later block to witness it. A device that lost it, or
    // put it over the block before, must not get its pages read beside a log that ends earlier.
    #[test]
    fn log_that_is_lost_under_the_pages_of_a_checkpoint_is_damage_and_not_an_earlier_end() {
        let (at, _) = checkpointed(None);
        for fault in [Fault::Lost, Fault::Misdirected] {
            let (_, disk) = checkpointed(Some((at, fault)));
            let trace = disk.take_trace();
            let first_page = (at..trace.len())
                .find(|index| matches!(trace[*index], Op::Write { file: FileId::Data, .. }))
                .expect("a checkpoint writes pages");
            let mut medium = Medium::default();
            trace[..=first_page].iter().for_each(|op| medium.apply(op));
            for seed in 0..20 {
                for recovery in [Recovery::Serial, Recovery::Prefetch, Recovery::Wide, Recovery::Instant] {
                    let files = medium.crash(None, &mut Chance::new(seed));
                    let options = Options { background: false, recovery, ..Options::default() };
                    let opened = Store::open_on(Arc::new(SimDisk::holding(files)), options);
                    let error = opened.err();
                    assert!(
                        matches!(error, Some(Error::CorruptLog { .. })),
                        "{fault:?}, {recovery:?}, seed {seed}: {error:?}"
                    );
                }
            }
        }
    }
}
