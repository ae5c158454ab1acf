//! Log space: ensures enough for a transaction before it appends, by a checkpoint or by adding virtual log files.

use crate::engine::inner::Inner;
use crate::error::{Error, Result};
use crate::log::directory;
use crate::log::segments::SPARE_SLOTS;
use crate::sync::lock;
use pagestore_disk::{Disk, FileId};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// New log space is filled with zeros in pieces of this size, small since commits wait behind them …
const ZEROS_BYTES: usize = 256 << 10;
/// … and with this pause between them, unless a thread waits for the space.
const ZEROS_PAUSE: Duration = Duration::from_millis(2);
impl Inner {
    /// Ensures that `bytes` of records fit in the log: by a checkpoint, then by growing. Called by the writing
    /// transaction before it appends.
    pub(crate) fn ensure_log_space(&self, bytes: u64) -> Result<()> {
        if self.journal.with_writer(|writer| writer.promise(bytes)) {
            return Ok(());
        }
        // Do not write a checkpoint that would free nothing.
        let mut may_checkpoint = self.may_move_redo();
        if may_checkpoint && !self.grow_instead_of_checkpoint()? {
            may_checkpoint = false;
            self.checkpoint_for_space()?;
        }
        loop {
            let (is_promised, available) =
                self.journal.with_writer(|writer| (writer.promise(bytes), writer.space(SPARE_SLOTS)));
            if is_promised {
                return Ok(());
            }
            let grown = self.grow_log_at_once();
            let is_enough = matches!(grown, Ok(true));
            // If growing has made the store read-only, return its error.
            if may_checkpoint && !is_enough && self.journal.check().is_ok() {
                may_checkpoint = false;
                self.checkpoint_for_space()?;
                continue;
            }
            if !grown? {
                let holders = self.log_holders();
                let holder = match (holders.active_transaction, holders.oldest_dirty_page) {
                    (Some(lsn), _) => format!("the transaction that began at {lsn}, this one"),
                    (None, Some((page, lsn))) => format!("page {page}, not written since {lsn}"),
                    (None, None) => "nothing but its own size".into(),
                };
                return Err(Error::LogFull {
                    needed: bytes,
                    available,
                    limit: self.options.log_limit_bytes,
                    holder,
                });
            }
        }
    }

    /// As `grow_log`, for a thread that waits for it.
    pub(crate) fn grow_log_at_once(&self) -> Result<bool> {
        self.growth_awaited.fetch_add(1, Ordering::AcqRel);
        let grown = self.grow_log();
        self.growth_awaited.fetch_sub(1, Ordering::AcqRel);
        grown
    }

    /// Adds virtual log files filled with zeros: an eighth of the present number, at least one. Returns false at
    /// the limit, and true also if another thread has added some while this one waited.
    pub(crate) fn grow_log(&self) -> Result<bool> {
        self.grow_log_beyond(self.log_slots())
    }

    pub(super) fn log_slots(&self) -> usize {
        self.journal.with_writer(|writer| writer.vlfs.slots().len())
    }

    /// As `grow_log`, unless the log has more than `seen` slots already.
    fn grow_log_beyond(&self, seen: usize) -> Result<bool> {
        let _one = lock(&self.growing);
        let slots = self.log_slots();
        if slots > seen {
            return Ok(true);
        }
        let limit = (self.options.log_limit_bytes / self.geometry.vlf_bytes) as usize;
        let more = (slots / 8).max(1).min(limit.saturating_sub(slots));
        if more == 0 {
            return Ok(false);
        }
        let start = self.geometry.slot_offset(slots);
        let end = start + more as u64 * self.geometry.vlf_bytes;
        // Nothing depends on this space yet: a failed write only fails a transaction.
        let disk = self.disk.as_ref();
        let pause = || {
            let waiting =
                [&self.growth_awaited, &self.checkpoint_waiters].map(|count| count.load(Ordering::Acquire));
            let awaited = waiting != [0, 0] || self.wake.is_ending();
            if self.options.background && !awaited {
                std::thread::sleep(ZEROS_PAUSE);
            }
        };
        let entries = [slots, slots + more].map(directory::end_of);
        write_zeros(disk, FileId::Control, entries[0], entries[1], pause)?;
        disk.reserve(FileId::Log, end).map_err(Error::during("reserve", FileId::Log))?;
        write_zeros(disk, FileId::Log, start, end, pause)?;
        self.journal.clear_directory(slots + more)?;
        for file in [FileId::Control, FileId::Log] {
            // As with any sync, the kernel does not report again what it failed to write.
            disk.sync(file).map_err(|error| self.journal.fail("sync", file, error))?;
        }
        self.journal.with_writer(|writer| writer.vlfs.grow(more));
        Ok(true)
    }
}

/// Writes zeros, so that the file system has nothing left to allocate or convert: a later write takes half the time
/// of one to space that is only reserved. Calls `pause` between the pieces.
pub(crate) fn write_zeros(disk: &dyn Disk, file: FileId, from: u64, to: u64, pause: impl Fn()) -> Result<()> {
    let mut buffer = crate::disk::aligned::AlignedBuffer::new(ZEROS_BYTES);
    buffer.extend_zeros(ZEROS_BYTES.min((to - from) as usize));
    let mut at = from;
    while at < to {
        let bytes = ZEROS_BYTES.min((to - at) as usize);
        disk.write(file, at, &buffer.bytes()[..bytes]).map_err(Error::during("write", file))?;
        at += bytes as u64;
        pause();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::error::Error;
    use crate::log::segments::SPARE_SLOTS;
    use crate::{Layout, Options, Store};
    use crashlab::{Fault, Op, SimDisk};
    use std::sync::Arc;

    fn on(disk: SimDisk) -> (Arc<SimDisk>, Store) {
        let layout = Layout { vlf_bytes: 128 << 10, vlfs: 16, ..Layout::default() };
        let options = Options { background: false, ..Options::default() };
        let disk = Arc::new(disk);
        (disk.clone(), Store::create_on(disk, layout, options, 1).unwrap())
    }

    #[test]
    fn a_failed_sync_of_new_log_makes_the_store_read_only() {
        let (disk, store) = on(SimDisk::new());
        let before = disk.ops();
        store.inner.grow_log_beyond(16).unwrap();
        let trace = disk.take_trace();
        let syncs: Vec<_> =
            (before..trace.len()).filter(|at| matches!(trace[*at], Op::Sync { .. })).collect();
        assert_eq!(syncs.len(), 2, "of the directory and of the log");
        for at in syncs {
            let (_, store) = on(SimDisk::new().with_fault(at, Fault::Io));
            assert!(matches!(store.inner.grow_log_beyond(16), Err(Error::Io { .. })));
            assert!(matches!(store.write().err(), Some(Error::ReadOnly { .. })));
        }
    }

    /// The checkpoint thread shortens the log, and compaction does, while a transaction appends.
    #[test]
    fn a_log_is_not_shortened_below_the_space_that_a_transaction_was_promised() {
        let (_, store) = on(SimDisk::new());
        let bytes = 3 * (128 << 10);
        store.inner.ensure_log_space(bytes).unwrap();
        let space = || store.inner.journal.with_writer(|writer| writer.space(SPARE_SLOTS));
        store.inner.shorten_log(2).unwrap();
        assert!(
            (10..16).contains(&store.stats().vlfs) && space() >= bytes,
            "{} {}",
            store.stats().vlfs,
            space()
        );
        store.inner.journal.end_transaction(None);
        store.inner.shorten_log(2).unwrap();
        assert_eq!(store.stats().vlfs, 2);
    }

    #[test]
    fn of_two_threads_that_grow_the_same_log_the_second_finds_it_grown() {
        let (_, store) = on(SimDisk::new());
        let grown = [16, 16, 18].map(|seen| {
            assert!(store.inner.grow_log_beyond(seen).unwrap());
            store.stats().vlfs
        });
        assert_eq!(grown, [18, 18, 20]);
    }
}
