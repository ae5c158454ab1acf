//! A disk that counts and times every I/O.

use pagestore_counters::{Publisher, monotonic_ns};
use pagestore_disk::Apply;
use pagestore_disk::{Disk, FileId, IoEvent, PageWrite};
use std::io;
use std::sync::Arc;

pub(crate) struct CountedDisk {
    disk: Arc<dyn Disk>,
    counters: Arc<Publisher>,
}

impl CountedDisk {
    /// Wraps `disk` so that its I/O is counted in `counters`.
    pub(crate) fn wrap(disk: Arc<dyn Disk>, counters: &Arc<Publisher>) -> Arc<dyn Disk> {
        Arc::new(Self { disk, counters: Arc::clone(counters) })
    }
}

impl Disk for CountedDisk {
    pagestore_disk::forward_to_disk!(reserve, len, directory);

    fn read(&self, file: FileId, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let begun = monotonic_ns();
        let result = self.disk.read(file, offset, buffer);
        self.counters.file(file).reads.count(buffer.len(), result, monotonic_ns() - begun)
    }

    fn write(&self, file: FileId, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let begun = monotonic_ns();
        let result = self.disk.write(file, offset, bytes);
        self.counters.file(file).writes.count(bytes.len(), result, monotonic_ns() - begun)
    }

    fn write_through(&self, file: FileId, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let begun = monotonic_ns();
        let result = self.disk.write_through(file, offset, bytes);
        self.counters.file(file).writes.count(bytes.len(), result, monotonic_ns() - begun)
    }

    fn write_mapped(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let begun = monotonic_ns();
        let result = self.disk.write_mapped(offset, bytes);
        self.counters.file(FileId::Data).writes.count(bytes.len(), result, monotonic_ns() - begun)
    }

    fn write_many(
        &self,
        writes: &[PageWrite<'_>],
        apply: Apply,
        at_once: usize,
        on_event: &(dyn Fn(IoEvent) + Sync),
    ) -> io::Result<()> {
        let counted = |event| {
            if let IoEvent::Ended { bytes, ns, done } = event {
                self.counters.file(FileId::Data).writes.ended(bytes, ns, done);
            }
            on_event(event);
        };
        self.disk.write_many(writes, apply, at_once, &counted)
    }

    fn sync(&self, file: FileId) -> io::Result<()> {
        let begun = monotonic_ns();
        let result = self.disk.sync(file);
        self.counters.file(file).syncs.count(0, result, monotonic_ns() - begun)
    }
}
