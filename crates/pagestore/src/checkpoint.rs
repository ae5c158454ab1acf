//! Checkpoints: what is dirty goes to the data file, in order of place, neighbours together, many writes at once;
//! every completion is checked, then the sync, then the control file, and only then is log freed.
//!
//! Commits go on meanwhile. They are held up twice, for as long as it takes to list the dirty pages and to tick
//! them off.

use crate::cache::{Captured, Page};
use crate::disk::FileId;
use crate::error::{Error, Result};
use crate::journal::BlockCache;
use crate::log::record::Record;
use crate::log::vlf::Certificate;
use crate::lsn::{Lsn, PageNo};
use crate::options::Apply;
use crate::page;
use crate::store::{Inner, lock};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Pages are put together and written in batches of this size: its memory bounds a checkpoint's.
const BATCH_BYTES: usize = 16 << 20;
/// The largest single write to the data file.
const WRITE_BYTES_MAX: usize = 1 << 20;

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

impl Inner {
    /// One whole checkpoint.
    pub(crate) fn checkpoint(&self) -> Result<Certified> {
        let mut checkpoints = lock(&self.checkpointing);
        self.journal.check()?;
        self.absorb_runs();
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

        let written = self.write_pages(captured)?;
        let synced = self.sync_pages(written)?;
        if self.options.verify_writes {
            self.verify(&synced)?;
        }
        let generation = {
            let mut control = lock(&self.control);
            (control.redo, control.redo_slot) = (position, slot);
            (control.sequence, control.tx_max) = (sequence, tx_max);
            control.durable = self.journal.durable();
            control.write(self.disk.as_ref()).inspect_err(|error| self.poison(error))?;
            control.generation
        };
        let certified = Certified { certificate: Certificate { redo: position.lsn, pages, generation } };

        self.redo.store(position.lsn.packed(), Ordering::Release);
        self.journal.with(|writer| writer.vlfs.free(certified.certificate));
        lock(&self.pages).written(&synced.pages, self.journal.visible());
        self.journal.note(&Record::CheckpointEnd { redo: position.lsn, pages })?;
        self.counters.checkpoints.fetch_add(1, Ordering::AcqRel);
        checkpoints.last = Some(certified.certificate);
        Ok(certified)
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

    fn write_pages(&self, captured: Vec<Captured>) -> Result<Written> {
        let mut pages = Vec::with_capacity(captured.len());
        let mut blocks = BlockCache::default();
        let mut batch: Vec<(PageNo, Lsn, Page)> = Vec::new();
        for own in captured {
            let content = match own.content {
                Some(content) => content,
                // In the order of the log, so that one block serves all its pages.
                None => self.redo(&own.chain, &mut blocks)?,
            };
            pages.push((own.page, own.chain[0]));
            batch.push((own.page, *own.chain.last().expect("what is dirty has a record"), content));
            if batch.len() * self.geometry.page_bytes >= BATCH_BYTES {
                self.write_batch(&mut batch)?;
            }
        }
        self.write_batch(&mut batch)?;
        Ok(Written { pages })
    }

    /// Writes pages in order of place, neighbours in one write, `parallel` writes at once.
    fn write_batch(&self, batch: &mut Vec<(PageNo, Lsn, Page)>) -> Result<()> {
        batch.sort_by_key(|(page, ..)| *page);
        let per_write = WRITE_BYTES_MAX / self.geometry.page_bytes;
        let mut writes: Vec<&[(PageNo, Lsn, Page)]> = Vec::new();
        for group in batch.chunk_by(|a, b| a.0.0 + 1 == b.0.0) {
            writes.extend(group.chunks(per_write));
        }
        let next = AtomicUsize::new(0);
        let failure = Mutex::new(None);
        let work = || {
            let mut buffer = crate::aligned::AlignedBuffer::new(WRITE_BYTES_MAX);
            while let Some(group) = writes.get(next.fetch_add(1, Ordering::Relaxed)) {
                if let Err(error) = self.write_neighbours(group, &mut buffer) {
                    lock(&failure).get_or_insert(error);
                    return;
                }
            }
        };
        let threads = self.options.parallel.min(writes.len());
        if threads <= 1 {
            work();
        } else {
            std::thread::scope(|scope| {
                for _ in 0..threads {
                    scope.spawn(work);
                }
            });
        }
        if let Some(error) = lock(&failure).take() {
            return Err(error);
        }
        batch.clear();
        Ok(())
    }

    fn write_neighbours(
        &self,
        group: &[(PageNo, Lsn, Page)],
        buffer: &mut crate::aligned::AlignedBuffer,
    ) -> Result<()> {
        buffer.clear();
        for (number, lsn, content) in group {
            let at = buffer.len();
            buffer.extend(content);
            page::stamp(&mut buffer.bytes_mut()[at..], self.geometry.store, *number, *lsn);
        }
        let offset = group[0].0.0 * self.geometry.page_bytes as u64;
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
