//! Files of a page store that can be stopped: opening one may take half an hour.

use pagestore::Apply;
use pagestore::disk::{Disk, FileId, IoEvent, PageWrite};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// A disk between a store and its files that fails every I/O once it is stopped, and counts the I/Os in flight.
pub(super) struct Stoppable {
    disk: Arc<dyn Disk>,
    /// Every I/O fails once it is set.
    stop: &'static AtomicBool,
    in_flight: AtomicU64,
    in_flight_max: AtomicU64,
}

impl Stoppable {
    pub(super) fn new(disk: Arc<dyn Disk>, stop: &'static AtomicBool) -> Stoppable {
        let (in_flight, in_flight_max) = Default::default();
        Stoppable { disk, stop, in_flight, in_flight_max }
    }

    /// The most I/Os in flight at the same time.
    pub(super) fn in_flight_max(&self) -> u64 {
        self.in_flight_max.load(Relaxed)
    }

    fn pass(&self, io: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        self.check_stopped()?;
        self.begun();
        let done = io();
        self.in_flight.fetch_sub(1, Relaxed);
        done
    }

    fn check_stopped(&self) -> io::Result<()> {
        if self.stop.load(Relaxed) { Err(io::Error::other("the experiment was ended")) } else { Ok(()) }
    }

    fn begun(&self) {
        let in_flight = self.in_flight.fetch_add(1, Relaxed) + 1;
        self.in_flight_max.fetch_max(in_flight, Relaxed);
    }
}

impl Disk for Stoppable {
    pagestore::disk::forward_to_disk!(reserve, len, directory);

    fn read(&self, file: FileId, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.pass(|| self.disk.read(file, offset, buffer))
    }

    fn write(&self, file: FileId, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.pass(|| self.disk.write(file, offset, bytes))
    }

    fn write_through(&self, file: FileId, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.pass(|| self.disk.write_through(file, offset, bytes))
    }

    fn write_many(
        &self,
        writes: &[PageWrite<'_>],
        apply: Apply,
        at_once: usize,
        on_event: &(dyn Fn(IoEvent) + Sync),
    ) -> io::Result<()> {
        let followed = |event| {
            match event {
                IoEvent::Begun => self.begun(),
                IoEvent::Ended { .. } => {
                    self.in_flight.fetch_sub(1, Relaxed);
                }
            }
            on_event(event);
        };
        self.check_stopped()?;
        self.disk.write_many(writes, apply, at_once, &followed)
    }

    fn sync(&self, file: FileId) -> io::Result<()> {
        self.pass(|| self.disk.sync(file))
    }
}
