//! The three files of a store, as the engine sees them: real ones, or simulated ones that lose and tear.

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

/// The files of the store in a directory, for [`Store::open_on`](crate::Store::open_on): what stands between may
/// count their I/Os.
///
/// # Errors
/// When there is none, or another process has it.
pub fn open_directory(directory: &Path) -> Result<Arc<dyn Disk>> {
    Ok(Arc::new(real::RealDisk::open(directory, real::Access::Write)?))
}

/// One of many writes to the data file.
#[derive(Clone, Copy, Debug)]
pub struct PageWrite<'a> {
    /// Where.
    pub offset: u64,
    /// What: whole pages.
    pub bytes: &'a [u8],
}

/// What those who count I/Os are told of one of many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// It is on its way.
    Begun,
    /// It has come back.
    Ended {
        /// Its length.
        bytes: usize,
        /// How long it took, in nanoseconds.
        ns: u64,
        /// Without an error.
        done: bool,
    },
}

impl PageWrite<'_> {
    /// Does it by `write`, and tells.
    pub(crate) fn by(
        self,
        write: impl FnOnce(u64, &[u8]) -> io::Result<()>,
        tell: &(dyn Fn(Told) + Sync),
    ) -> io::Result<()> {
        tell(Told::Begun);
        let begun = monotonic_ns();
        let result = write(self.offset, self.bytes);
        tell(Told::Ended { bytes: self.bytes.len(), ns: monotonic_ns() - begun, done: result.is_ok() });
        result
    }
}

/// I/O on the files of one store. All calls may come from several threads at once.
///
/// What a call wrote is durable when `write_through` has returned `Ok`, or when a `sync` of the file that was
/// called after `write` returned has returned `Ok`. After an error nothing is known, and the engine never asks
/// again: the page cache may have dropped what it could not write (Rebello et al., ATC 2020).
pub trait Disk: Send + Sync {
    /// Fills `buffer` from `offset`. Reading past the end is an error of kind `UnexpectedEof`.
    ///
    /// # Errors
    /// As the operating system has it.
    fn read(&self, file: FileId, offset: u64, buffer: &mut [u8]) -> io::Result<()>;
    /// Writes all of `bytes` at `offset`; durable after the next `sync`.
    ///
    /// # Errors
    /// As the operating system has it.
    fn write(&self, file: FileId, offset: u64, bytes: &[u8]) -> io::Result<()>;
    /// Writes all of `bytes` at `offset`, durable on return.
    ///
    /// # Errors
    /// As the operating system has it.
    fn write_through(&self, file: FileId, offset: u64, bytes: &[u8]) -> io::Result<()>;
    /// As `write` to the data file, through memory where the disk can be mapped.
    ///
    /// # Errors
    /// As the operating system has it.
    fn write_mapped(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.write(FileId::Data, offset, bytes)
    }
    /// Writes all of these to the data file, up to `at_once` of them at a time and in any order, directly or through
    /// memory, as `write` and `write_mapped` do; `tell` hears of each, from whichever thread. After an error no more
    /// are begun. None is on its way when it returns.
    ///
    /// # Errors
    /// The first one, as the operating system has it.
    fn write_many(
        &self,
        writes: &[PageWrite<'_>],
        way: Apply,
        at_once: usize,
        tell: &(dyn Fn(Told) + Sync),
    ) -> io::Result<()> {
        let _ = at_once;
        writes.iter().try_for_each(|write| {
            write.by(
                |offset, bytes| match way {
                    Apply::Direct => self.write(FileId::Data, offset, bytes),
                    Apply::Mapped => self.write_mapped(offset, bytes),
                },
                tell,
            )
        })
    }

    /// Gives `file` this length at least, and its space where that can be had without writing it: what is written
    /// there later does not make the file longer, which would hold up every other write to it.
    ///
    /// # Errors
    /// As the operating system has it, when there is no space.
    fn reserve(&self, _file: FileId, _length: u64) -> io::Result<()> {
        Ok(())
    }
    /// Makes everything written to `file` durable, its length too.
    ///
    /// # Errors
    /// As the operating system has it.
    fn sync(&self, file: FileId) -> io::Result<()>;
    /// The length of `file` in bytes.
    ///
    /// # Errors
    /// As the operating system has it.
    fn len(&self, file: FileId) -> io::Result<u64>;
    /// The directory that the files lie in, where there is one: the store's counters are shown to others under its
    /// name.
    fn directory(&self) -> Option<&Path> {
        None
    }
}
