use crate::Error;
use rustix::fs::{Advice, OFlags, fadvise};
use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
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
    /// Opens the file, through no link in the place of its name.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn open(path: &Path) -> Result<PageCache, Error> {
        let file = File::options().read(true).custom_flags(OFlags::NOFOLLOW.bits().cast_signed()).open(path);
        let file = file.map_err(|source| Error::Io { doing: "open", path: path.into(), source })?;
        Ok(PageCache { file, path: path.into() })
    }

    /// Evicts the file's clean pages, so that the next reads reach the storage. Dirty pages stay: call
    /// [`PageCache::write_out`] first to evict all.
    ///
    /// # Errors
    /// The system refuses the advice.
    pub fn evict(&self) -> Result<(), Error> {
        let evicted = fadvise(&self.file, 0, None, Advice::DontNeed);
        evicted.map_err(|errno| self.error("evict from the page cache", errno.into()))
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
