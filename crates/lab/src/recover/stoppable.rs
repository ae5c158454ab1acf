//! The files of a page store while it opens, which may take half an hour: how far it is, and an end to it.

use pagestore::Apply;
use pagestore::disk::{Disk, FileId, PageWrite, Told};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Stands between a store and its files. The I/Os are counted by the store itself; what it cannot tell before it is
/// open, and how many were in flight at once, is told here.
pub(super) struct Stoppable {
    disk: Arc<dyn Disk>,
    /// Once set, every I/O fails.
    stop: &'static AtomicBool,
    /// Bytes that were written to the data file, for those who wait.
    data_bytes: Arc<AtomicU64>,
    in_flight: AtomicU64,
    in_flight_max: AtomicU64,
}

impl Stoppable {
    pub(super) fn new(
        disk: Arc<dyn Disk>,
        stop: &'static AtomicBool,
        data_bytes: Arc<AtomicU64>,
    ) -> Stoppable {
        let (in_flight, in_flight_max) = Default::default();
        Stoppable { disk, stop, data_bytes, in_flight, in_flight_max }
    }

    /// Bytes that were written to the data file.
    pub(super) fn data_bytes(&self) -> u64 {
        self.data_bytes.load(Relaxed)
    }

    /// The most I/Os that were in flight at once.
    pub(super) fn in_flight_max(&self) -> u64 {
        self.in_flight_max.load(Relaxed)
    }

    fn pass(&self, io: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        self.go_on()?;
        self.begun();
        let done = io();
        self.in_flight.fetch_sub(1, Relaxed);
        done
    }

    fn go_on(&self) -> io::Result<()> {
        if self.stop.load(Relaxed) { Err(io::Error::other("the experiment was ended")) } else { Ok(()) }
    }

    fn begun(&self) {
        let in_flight = self.in_flight.fetch_add(1, Relaxed) + 1;
        self.in_flight_max.fetch_max(in_flight, Relaxed);
    }

    fn written(&self, file: FileId, bytes: usize) {
        if file == FileId::Data {
            self.data_bytes.fetch_add(bytes as u64, Relaxed);
        }
    }
}

impl Disk for Stoppable {
    fn read(&self, file: FileId, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.pass(|| self.disk.read(file, offset, buffer))
    }

    fn write(&self, file: FileId, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.pass(|| self.disk.write(file, offset, bytes))?;
        self.written(file, bytes.len());
        Ok(())
    }

    fn write_through(&self, file: FileId, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.pass(|| self.disk.write_through(file, offset, bytes))?;
        self.written(file, bytes.len());
        Ok(())
    }

    fn write_mapped(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.pass(|| self.disk.write_mapped(offset, bytes))?;
        self.written(FileId::Data, bytes.len());
        Ok(())
    }

    fn write_many(
        &self,
        writes: &[PageWrite<'_>],
        way: Apply,
        at_once: usize,
        tell: &(dyn Fn(Told) + Sync),
    ) -> io::Result<()> {
        let followed = |told| {
            match told {
                Told::Begun => self.begun(),
                Told::Ended { bytes, done, .. } => {
                    self.in_flight.fetch_sub(1, Relaxed);
                    self.written(FileId::Data, if done { bytes } else { 0 });
                }
            }
            tell(told);
        };
        self.go_on()?;
        self.disk.write_many(writes, way, at_once, &followed)
    }

    fn reserve(&self, file: FileId, length: u64) -> io::Result<()> {
        self.disk.reserve(file, length)
    }

    fn sync(&self, file: FileId) -> io::Result<()> {
        self.pass(|| self.disk.sync(file))
    }

    fn len(&self, file: FileId) -> io::Result<u64> {
        self.disk.len(file)
    }

    fn directory(&self) -> Option<&Path> {
        self.disk.directory()
    }
}
