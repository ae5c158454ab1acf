//! A disk that counts and times every I/O.

use pagestore_counters::{Publisher, monotonic_ns};
use pagestore_disk::{Apply, Disk, FileId, IoEvent, PageWrite};
use published::Operation;
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

impl CountedDisk {
    /// Counts an operation of this many bytes on a file, and times it.
    fn count<T>(
        &self,
        file: FileId,
        operation: Operation,
        bytes: usize,
        io: impl FnOnce() -> io::Result<T>,
    ) -> io::Result<T> {
        let begun = monotonic_ns();
        let result = io();
        self.counters.file(file).ended(operation, bytes as u64, monotonic_ns() - begun, result.is_ok());
        result
    }
}

impl Disk for CountedDisk {
    pagestore_disk::forward_to_disk!(reserve, truncate, len, directory, scratch);

    fn read(&self, file: FileId, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.count(file, Operation::Read, buffer.len(), || self.disk.read(file, offset, buffer))
    }

    fn write(&self, file: FileId, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.count(file, Operation::Write, bytes.len(), || self.disk.write(file, offset, bytes))
    }

    fn write_through(&self, file: FileId, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.count(file, Operation::Write, bytes.len(), || self.disk.write_through(file, offset, bytes))
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
                self.counters.file(FileId::Data).ended(Operation::Write, bytes as u64, ns, done);
            }
            on_event(event);
        };
        self.disk.write_many(writes, apply, at_once, &counted)
    }

    fn sync(&self, file: FileId) -> io::Result<()> {
        self.count(file, Operation::Sync, 0, || self.disk.sync(file))
    }
}
