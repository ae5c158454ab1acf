//! The three files of a page store, as its engine sees them.
//!
//! ```text
//! engine ──> Disk ──> real files (pagestore), counted (pagestore), simulated (crashlab), held up or refused (tests)
//! ```
//! The trait has a crate of its own so that the engine's own tests and the crash laboratory, which builds on the engine,
//! share one simulated disk.

mod forward;
mod names;
mod scratch;

pub use names::{FileNames, Names};
pub use pagestore_counters::FileId;
pub use scratch::{MemoryScratch, Scratch};

use pagestore_counters::monotonic_ns;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// How recovery writes pages to the data file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Apply {
    /// By direct I/O.
    #[default]
    Direct,
    /// Through a memory mapping, for comparison: the kernel writes back, and a sync waits for all of it. If the device
    /// cannot read a page in, the process ends.
    Mapped,
}

/// One of several writes to the data file.
#[derive(Clone, Copy, Debug)]
pub struct PageWrite<'a> {
    /// The offset in the file.
    pub offset: u64,
    /// Whole pages.
    pub bytes: &'a [u8],
}

/// Event of one of many writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoEvent {
    /// It was submitted.
    Begun,
    /// It has completed.
    Ended {
        /// Its length.
        bytes: usize,
        /// Its latency, in nanoseconds.
        ns: u64,
        /// Whether it succeeded.
        done: bool,
    },
}

impl PageWrite<'_> {
    /// Performs it by `write`, and reports its begin and its end.
    ///
    /// # Errors
    /// Those of `write`.
    pub fn run_with(
        self,
        write: impl FnOnce(u64, &[u8]) -> io::Result<()>,
        on_event: &(dyn Fn(IoEvent) + Sync),
    ) -> io::Result<()> {
        on_event(IoEvent::Begun);
        let begun = monotonic_ns();
        let result = write(self.offset, self.bytes);
        on_event(IoEvent::Ended {
            bytes: self.bytes.len(),
            ns: monotonic_ns() - begun,
            done: result.is_ok(),
        });
        result
    }
}

/// I/O on the files of one store. All methods may be called from several threads at once.
///
/// A write is durable when `write_through` has returned `Ok`, or when a `sync` of the file that began after `write`
/// returned has returned `Ok`. After an error the state of the file is unknown, and the engine never retries: the page
/// cache may have dropped what it could not write (Rebello et al., ATC 2020).
pub trait Disk: Send + Sync {
    /// Fills `buffer` from `offset`. Reading past the end is an error of kind `UnexpectedEof`.
    ///
    /// # Errors
    /// Those of the operating system.
    fn read(&self, file: FileId, offset: u64, buffer: &mut [u8]) -> io::Result<()>;
    /// Writes all of `bytes` at `offset`; durable after the next `sync`.
    ///
    /// # Errors
    /// Those of the operating system.
    fn write(&self, file: FileId, offset: u64, bytes: &[u8]) -> io::Result<()>;
    /// Writes all of `bytes` at `offset`, durable on return.
    ///
    /// # Errors
    /// Those of the operating system.
    fn write_through(&self, file: FileId, offset: u64, bytes: &[u8]) -> io::Result<()>;
    /// Performs all of `writes` on the data file, up to `at_once` at a time and in any order, through a memory mapping if
    /// `apply` says so and the disk has one.
    /// `on_event` is called for the begin and the end of each, from any thread. After an error no more are begun. None is in
    /// flight when it returns.
    ///
    /// # Errors
    /// The first one of the operating system.
    fn write_many(
        &self,
        writes: &[PageWrite<'_>],
        apply: Apply,
        at_once: usize,
        on_event: &(dyn Fn(IoEvent) + Sync),
    ) -> io::Result<()> {
        let _ = (apply, at_once);
        let write = |offset: u64, bytes: &[u8]| self.write(FileId::Data, offset, bytes);
        writes.iter().try_for_each(|page| page.run_with(write, on_event))
    }

    /// Gives `file` at least this length, and its space where the file system can allocate it without writing. Later
    /// writes do not extend the file, which would delay every other write to it.
    ///
    /// # Errors
    /// Those of the operating system, when there is no space.
    fn reserve(&self, _file: FileId, _length: u64) -> io::Result<()> {
        Ok(())
    }
    /// Cuts `file` to this length, if it is longer; durable after the next `sync`.
    ///
    /// # Errors
    /// Those of the operating system; `Unsupported` from a disk whose files keep their length.
    fn truncate(&self, _file: FileId, _length: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Makes everything written to `file` durable, including its length.
    ///
    /// # Errors
    /// Those of the operating system.
    fn sync(&self, file: FileId) -> io::Result<()>;
    /// The length of `file` in bytes.
    ///
    /// # Errors
    /// Those of the operating system.
    fn len(&self, file: FileId) -> io::Result<u64>;
    /// The directory of the files, if there is one. The store's counters are published under its name.
    fn directory(&self) -> Option<&Path> {
        None
    }

    /// A file for what a transaction larger than memory has changed: without a name in the directory of the files, or in
    /// memory if there is no directory.
    ///
    /// # Errors
    /// Those of the operating system.
    fn scratch(&self) -> io::Result<Arc<dyn Scratch>> {
        match self.directory() {
            Some(directory) => Ok(Arc::new(scratch::create_in(directory)?)),
            None => Ok(Arc::new(MemoryScratch::default())),
        }
    }
}
