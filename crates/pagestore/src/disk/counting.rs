//! A disk that counts what goes through it.

use super::{Disk, FileId};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

/// Calls of one kind that succeeded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    /// How many.
    pub count: u64,
    /// Bytes that they moved; 0 for syncs.
    pub bytes: u64,
    /// Their summed time.
    pub ns: u64,
}

/// What one file was asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Reads.
    pub reads: Calls,
    /// Writes; those through to the medium have their sync in their time.
    pub writes: Calls,
    /// Syncs that were calls of their own.
    pub syncs: Calls,
}

/// Counts each call of the engine and passes it on. On real files a write is one system call where its memory is
/// aligned, as the log's and the pages' are.
pub struct Counting {
    disk: Arc<dyn Disk>,
    files: [File; FileId::ALL.len()],
}

#[derive(Default)]
struct File {
    reads: Tally,
    writes: Tally,
    syncs: Tally,
}

#[derive(Default)]
struct Tally {
    count: AtomicU64,
    bytes: AtomicU64,
    ns: AtomicU64,
}

impl Counting {
    /// Counts from zero.
    #[must_use]
    pub fn new(disk: Arc<dyn Disk>) -> Self {
        Self { disk, files: Default::default() }
    }

    /// What a file was asked for since then.
    #[must_use]
    pub fn counted(&self, file: FileId) -> Counted {
        let file = self.file(file);
        Counted { reads: file.reads.calls(), writes: file.writes.calls(), syncs: file.syncs.calls() }
    }

    fn file(&self, file: FileId) -> &File {
        &self.files[file as usize]
    }
}

impl Tally {
    fn timed<T>(&self, bytes: usize, call: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        let begun = Instant::now();
        let done = call()?;
        self.ns.fetch_add(u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX), Relaxed);
        self.bytes.fetch_add(bytes as u64, Relaxed);
        self.count.fetch_add(1, Relaxed);
        Ok(done)
    }

    fn calls(&self) -> Calls {
        Calls { count: self.count.load(Relaxed), bytes: self.bytes.load(Relaxed), ns: self.ns.load(Relaxed) }
    }
}

impl Disk for Counting {
    fn read(&self, file: FileId, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.file(file).reads.timed(buffer.len(), || self.disk.read(file, offset, buffer))
    }

    fn write(&self, file: FileId, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.file(file).writes.timed(bytes.len(), || self.disk.write(file, offset, bytes))
    }

    fn write_through(&self, file: FileId, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.file(file).writes.timed(bytes.len(), || self.disk.write_through(file, offset, bytes))
    }

    fn sync(&self, file: FileId) -> io::Result<()> {
        self.file(file).syncs.timed(0, || self.disk.sync(file))
    }

    fn len(&self, file: FileId) -> io::Result<u64> {
        self.disk.len(file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Tables;
    use crate::{Durability, Layout, Options, Store};

    #[test]
    fn each_call_of_a_store_is_counted_by_its_file() {
        let directory = tempfile::tempdir().unwrap();
        let mut counting = None;
        let layout = Layout { vlf_bytes: 1 << 20, vlfs: 3, ..Layout::default() };
        let options = Options { background: false, ..Options::default() };
        let store = Store::create_through(directory.path(), layout, options, |disk| {
            counting.insert(Arc::new(Counting::new(disk))).clone()
        });
        let (store, counting) = (store.unwrap(), counting.unwrap());
        let (log, data) = (counting.counted(FileId::Log), counting.counted(FileId::Data));
        assert!(log.writes.bytes >= 3 << 20 && log.syncs.count == 1, "it was filled with zeros: {log:?}");
        let own = store.stats();
        for row in 0..20_u32 {
            let mut tx = store.write().unwrap();
            let table = if row == 0 { tx.create_table("rows") } else { tx.table("rows") };
            tx.put(table.unwrap(), &row.to_be_bytes(), b"row").unwrap();
            tx.commit(Durability::Full).unwrap();
        }
        let (log_after, own_after) = (counting.counted(FileId::Log), store.stats());
        assert_eq!(log_after.writes.count - log.writes.count, 20);
        assert_eq!(log_after.writes.count - log.writes.count, own_after.log_writes - own.log_writes);
        assert_eq!(
            log_after.writes.bytes - log.writes.bytes,
            own_after.log_write_bytes - own.log_write_bytes
        );
        assert!(log_after.writes.ns > log.writes.ns);
        assert_eq!(counting.counted(FileId::Data), data, "pages are written by a checkpoint alone");
        store.checkpoint().unwrap();
        let after = counting.counted(FileId::Data);
        assert!(after.writes.count > data.writes.count && after.syncs.count > data.syncs.count, "{after:?}");
    }
}
