//! The files of a page store with every I/O on them counted and timed.

use experiments::RecoveryIo;
use filestats::Figure;
use pagestore::disk::{Disk, FileId};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Instant;

/// One kind of I/O.
#[derive(Debug, Default)]
struct Kind {
    count: AtomicU64,
    bytes: AtomicU64,
    ns: AtomicU64,
}

/// Stands between a store and its files.
pub(super) struct Counted {
    disk: Arc<dyn Disk>,
    /// Once set, every I/O fails: that ends a recovery of half an hour.
    stop: &'static AtomicBool,
    /// Bytes that were written to the data file, for those who wait.
    data_bytes: Arc<AtomicU64>,
    read: Kind,
    write: Kind,
    sync: Kind,
    in_flight: AtomicU64,
    in_flight_max: AtomicU64,
}

impl Counted {
    pub(super) fn new(disk: Arc<dyn Disk>, stop: &'static AtomicBool, data_bytes: Arc<AtomicU64>) -> Counted {
        let (read, write, sync) = Default::default();
        let (in_flight, in_flight_max) = Default::default();
        Counted { disk, stop, data_bytes, read, write, sync, in_flight, in_flight_max }
    }

    /// Bytes that were written to the data file.
    pub(super) fn data_bytes(&self) -> u64 {
        self.data_bytes.load(Relaxed)
    }

    /// All until now.
    pub(super) fn io(&self) -> RecoveryIo {
        let known = |counter: &AtomicU64| Figure::Known(counter.load(Relaxed));
        let stall_ns = [&self.read, &self.write, &self.sync].iter().map(|kind| kind.ns.load(Relaxed)).sum();
        RecoveryIo {
            reads: known(&self.read.count),
            read_bytes: known(&self.read.bytes),
            writes: known(&self.write.count),
            write_bytes: known(&self.write.bytes),
            syncs: known(&self.sync.count),
            stall_ns: Figure::Known(stall_ns),
            n_max: known(&self.in_flight_max),
        }
    }

    fn count(&self, kind: &Kind, bytes: usize, io: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        if self.stop.load(Relaxed) {
            return Err(io::Error::other("the experiment was ended"));
        }
        let in_flight = self.in_flight.fetch_add(1, Relaxed) + 1;
        self.in_flight_max.fetch_max(in_flight, Relaxed);
        let began = Instant::now();
        let done = io();
        kind.ns.fetch_add(began.elapsed().as_nanos() as u64, Relaxed);
        self.in_flight.fetch_sub(1, Relaxed);
        kind.count.fetch_add(1, Relaxed);
        kind.bytes.fetch_add(bytes as u64, Relaxed);
        done
    }

    fn written(&self, file: FileId, bytes: usize) {
        if file == FileId::Data {
            self.data_bytes.fetch_add(bytes as u64, Relaxed);
        }
    }
}

impl Disk for Counted {
    fn read(&self, file: FileId, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.count(&self.read, buffer.len(), || self.disk.read(file, offset, buffer))
    }

    fn write(&self, file: FileId, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.count(&self.write, bytes.len(), || self.disk.write(file, offset, bytes))?;
        self.written(file, bytes.len());
        Ok(())
    }

    fn write_through(&self, file: FileId, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.count(&self.write, bytes.len(), || self.disk.write_through(file, offset, bytes))?;
        self.written(file, bytes.len());
        Ok(())
    }

    fn write_mapped(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.count(&self.write, bytes.len(), || self.disk.write_mapped(offset, bytes))?;
        self.written(FileId::Data, bytes.len());
        Ok(())
    }

    fn sync(&self, file: FileId) -> io::Result<()> {
        self.count(&self.sync, 0, || self.disk.sync(file))
    }

    fn len(&self, file: FileId) -> io::Result<u64> {
        self.disk.len(file)
    }
}
