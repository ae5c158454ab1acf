//! The three files of a store behind a trait: real files, or simulated ones with losses and torn writes.

mod beneath;
pub(crate) mod counted;
pub(crate) mod real;

use crate::error::Result;
use crate::options::Apply;
pub use pagestore_counters::FileId;
use pagestore_counters::monotonic_ns;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// The files of the store in a directory, for [`Store::open_on`](crate::Store::open_on): a wrapper in between may
/// count their I/Os.
///
/// # Errors When there is no store, or another process has it open.
pub fn open_directory(directory: &Path) -> Result<Arc<dyn Disk>> {
    Ok(Arc::new(real::RealDisk::open(directory, real::Access::Write)?))
}

/// One of several writes to the data file.
#[derive(Clone, Copy, Debug)]
pub struct PageWrite<'a> {
    /// Offset in the file.
    pub offset: u64,
    /// Whole pages.
    pub bytes: &'a [u8],
}

/// A step of one of several writes, reported to a callback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoEvent {
    /// It was submitted.
    Begun,
    /// It has completed.
    Ended {
        /// Its length.
        bytes: usize,
        /// How long it took, in nanoseconds.
        ns: u64,
        /// It succeeded.
        done: bool,
    },
}

impl PageWrite<'_> {
    /// Does the write with `write`, and reports its begin and end.
    pub(crate) fn run_with(
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
/// Written data is durable when `write_through` has returned `Ok`, or when a `sync` of the file that was called
/// after `write` returned has returned `Ok`. After an error the state of the data is unknown, and the engine never
/// retries: the page cache may have dropped what it could not write (Rebello et al., ATC 2020).
pub trait Disk: Send + Sync {
    /// Fills `buffer` from `offset`. Reading past the end is an error of kind `UnexpectedEof`.
    ///
    /// # Errors Those of the operating system.
    fn read(&self, file: FileId, offset: u64, buffer: &mut [u8]) -> io::Result<()>;
    /// Writes all of `bytes` at `offset`; durable after the next `sync`.
    ///
    /// # Errors Those of the operating system.
    fn write(&self, file: FileId, offset: u64, bytes: &[u8]) -> io::Result<()>;
    /// Writes all of `bytes` at `offset`, durable on return.
    ///
    /// # Errors Those of the operating system.
    fn write_through(&self, file: FileId, offset: u64, bytes: &[u8]) -> io::Result<()>;
    /// As `write` to the data file, through a memory mapping if the disk supports it.
    ///
    /// # Errors Those of the operating system.
    fn write_mapped(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.write(FileId::Data, offset, bytes)
    }
    /// Does all of these writes to the data file, in any order and up to `at_once` at a time, like `write` or
    /// `write_mapped` depending on `apply`. Calls `on_event` for each, from any thread. After an error no more are
    /// begun. None is in flight on return.
    ///
    /// # Errors The first error, as the operating system reports it.
    fn write_many(
        &self,
        writes: &[PageWrite<'_>],
        apply: Apply,
        at_once: usize,
        on_event: &(dyn Fn(IoEvent) + Sync),
    ) -> io::Result<()> {
        let _ = at_once;
        writes.iter().try_for_each(|write| {
            write.run_with(
                |offset, bytes| match apply {
                    Apply::Direct => self.write(FileId::Data, offset, bytes),
                    Apply::Mapped => self.write_mapped(offset, bytes),
                },
                on_event,
            )
        })
    }

    /// Extends `file` to at least this length, and allocates its space if that is possible without writing it.
    /// Later writes there do not change the file's length, which would delay every other write to it.
    ///
    /// # Errors Those of the operating system, for example when there is no space.
    fn reserve(&self, _file: FileId, _length: u64) -> io::Result<()> {
        Ok(())
    }
    /// Makes everything written to `file` durable, including its length.
    ///
    /// # Errors Those of the operating system.
    fn sync(&self, file: FileId) -> io::Result<()>;
    /// The length of `file` in bytes.
    ///
    /// # Errors Those of the operating system.
    fn len(&self, file: FileId) -> io::Result<u64>;
    /// The directory of the files, if there is one: the store's counters are published under its name.
    fn directory(&self) -> Option<&Path> {
        None
    }
}
