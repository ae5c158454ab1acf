//! A file for what a transaction larger than memory has changed, until it ends. No crash needs its content.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// A file without a name, which is gone when this is dropped or the process ends.
pub trait Scratch: Send + Sync {
    /// Fills `buffer` from `offset`. Reading past the end is an error of kind `UnexpectedEof`.
    ///
    /// # Errors
    /// Those of the operating system.
    fn read(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()>;

    /// Writes all of `bytes` at `offset`.
    ///
    /// # Errors
    /// Those of the operating system.
    fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;
}

impl Scratch for File {
    fn read(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.read_exact_at(buffer, offset)
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.write_all_at(bytes, offset)
    }
}

/// One in memory, for a disk without a directory.
#[derive(Default)]
pub struct MemoryScratch(Mutex<Vec<u8>>);

impl Scratch for MemoryScratch {
    fn read(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let bytes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let start = offset as usize;
        buffer.copy_from_slice(bytes.get(start..start + buffer.len()).ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (start, end) = (offset as usize, offset as usize + bytes.len());
        if all.len() < end {
            all.resize(end, 0);
        }
        all[start..end].copy_from_slice(bytes);
        Ok(())
    }
}

/// Creates one on the file system of this directory. It goes through the page cache: what is soon read again need not
/// reach the device.
pub(crate) fn create_in(directory: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    match options.custom_flags(libc::O_TMPFILE).open(directory) {
        // A file system without it: a name that is removed at once.
        Err(error)
            if matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::EISDIR | libc::ENOENT)) =>
        {
            let path = directory.join(format!("scratch.{}", std::process::id()));
            let file = options.custom_flags(0).create_new(true).open(&path)?;
            std::fs::remove_file(&path)?;
            Ok(file)
        }
        opened => opened,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn what_is_written_is_read_and_the_directory_stays_empty() {
        let place = tempfile::tempdir_in("/var/tmp").unwrap();
        let scratches: [Arc<dyn Scratch>; 2] =
            [Arc::new(create_in(place.path()).unwrap()), Arc::new(MemoryScratch::default())];
        for scratch in scratches {
            scratch.write(8192, &[7; 4096]).unwrap();
            let mut bytes = [1; 4096];
            scratch.read(8192, &mut bytes).unwrap();
            assert_eq!(bytes, [7; 4096]);
            scratch.read(0, &mut bytes).unwrap();
            assert_eq!(bytes, [0; 4096]);
            let beyond = scratch.read(8193, &mut bytes).unwrap_err();
            assert_eq!(beyond.kind(), io::ErrorKind::UnexpectedEof);
        }
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
    }
}
