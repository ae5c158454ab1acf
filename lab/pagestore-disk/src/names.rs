//! The names of a store's files: making them, removing them, and making that durable.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

/// Operations on names. A new name and the removal of one are durable after a sync of their directory, which has no effect on
/// the directory's own name.
pub trait Names: Send + Sync {
    /// Whether there is something of this name.
    fn is_there(&self, path: &Path) -> bool;
    /// The names in a directory.
    ///
    /// # Errors
    /// Those of the operating system.
    fn list(&self, directory: &Path) -> io::Result<Vec<OsString>>;
    /// Makes a directory.
    ///
    /// # Errors
    /// Those of the operating system; `AlreadyExists` if there is something of this name.
    fn make_directory(&self, path: &Path) -> io::Result<()>;
    /// Makes an empty file.
    ///
    /// # Errors
    /// As `make_directory`.
    fn create(&self, path: &Path) -> io::Result<()>;
    /// Removes a file.
    ///
    /// # Errors
    /// Those of the operating system.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Makes the names in a directory durable.
    ///
    /// # Errors
    /// Those of the operating system.
    fn sync_directory(&self, path: &Path) -> io::Result<()>;
    /// The content of a regular file of less than `bytes_max` bytes; `None` if there is none.
    fn read(&self, path: &Path, bytes_max: u64) -> Option<Vec<u8>>;
    /// Replaces the content of a file that is there; durable on return.
    ///
    /// # Errors
    /// Those of the operating system.
    fn replace(&self, path: &Path, content: &[u8]) -> io::Result<()>;
}

/// The names of the file system.
pub struct FileNames;

impl Names for FileNames {
    fn is_there(&self, path: &Path) -> bool {
        path.exists()
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<OsString>> {
        std::fs::read_dir(directory)?.map(|entry| Ok(entry?.file_name())).collect()
    }

    fn make_directory(&self, path: &Path) -> io::Result<()> {
        std::fs::create_dir(path)
    }

    fn create(&self, path: &Path) -> io::Result<()> {
        OpenOptions::new().write(true).create_new(true).open(path).map(drop)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_file(path)
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }

    fn read(&self, path: &Path, bytes_max: u64) -> Option<Vec<u8>> {
        let is_small = |found: &std::fs::Metadata| found.is_file() && found.len() < bytes_max;
        std::fs::symlink_metadata(path).ok().filter(is_small)?;
        std::fs::read(path).ok()
    }

    fn replace(&self, path: &Path, content: &[u8]) -> io::Result<()> {
        let mut file = OpenOptions::new().write(true).open(path)?;
        file.set_len(0)?;
        file.write_all(content)?;
        file.sync_all()
    }
}
