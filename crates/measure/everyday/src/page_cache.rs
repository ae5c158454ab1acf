use crate::Error;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

/// A file that can be evicted from the operating system's page cache.
///
/// Create it before this process opens the file with SQLite, and drop it afterwards: closing any descriptor of
/// a file drops all locks the process has on it (POSIX), also those of a database that is in use.
#[derive(Debug)]
pub struct PageCache {
    file: File,
    path: PathBuf,
}

impl PageCache {
    /// Opens the file.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn open(path: &Path) -> Result<PageCache, Error> {
        let file = File::open(path);
        let file = file.map_err(|source| Error::Io { doing: "open", path: path.into(), source })?;
        Ok(PageCache { file, path: path.into() })
    }

    /// Evicts the file's clean pages, so that the next reads reach the storage. Dirty pages stay: call
    /// [`PageCache::write_out`] first to evict all.
    ///
    /// # Errors
    /// The system refuses the advice.
    pub fn evict(&self) -> Result<(), Error> {
        // SAFETY: the descriptor is open for as long as `self` lives, and the call takes no pointers.
        let refused = unsafe { libc::posix_fadvise(self.file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
        match refused {
            0 => Ok(()),
            errno => Err(self.error("evict from the page cache", io::Error::from_raw_os_error(errno))),
        }
    }

    /// Writes dirty pages to the storage and syncs them.
    ///
    /// # Errors
    /// The sync fails.
    pub fn write_out(&self) -> Result<(), Error> {
        self.file.sync_all().map_err(|source| self.error("sync", source))
    }

    fn error(&self, doing: &'static str, source: io::Error) -> Error {
        Error::Io { doing, path: self.path.clone(), source }
    }
}
