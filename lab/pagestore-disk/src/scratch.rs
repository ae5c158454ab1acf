//! A file for what a transaction larger than memory has changed, until it ends. No crash needs its content.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

const PREFIX: &str = "scratch.";

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
            create_named_in(directory, options.custom_flags(0).create_new(true))
        }
        opened => opened,
    }
}

/// A file whose name is removed at once. A process that was killed in between has left one, which is removed before: no file of
/// such a name is needed by its name, also one that a thread has just made.
fn create_named_in(directory: &Path, options: &OpenOptions) -> io::Result<File> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    for entry in std::fs::read_dir(directory)? {
        let name = entry?.file_name();
        if name.to_str().is_some_and(is_scratch) {
            remove(&directory.join(name))?;
        }
    }
    let name = format!("{PREFIX}{}.{}", std::process::id(), NUMBER.fetch_add(1, Relaxed));
    let path = directory.join(name);
    let file = options.open(&path)?;
    remove(&path)?;
    Ok(file)
}

/// "scratch.4711" of earlier versions, "scratch.4711.0".
fn is_scratch(name: &str) -> bool {
    let numbers = name.strip_prefix(PREFIX).unwrap_or_default();
    numbers.split('.').all(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

fn remove(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn without_unnamed_files_nothing_of_a_killed_process_stays() {
        let place = tempfile::tempdir().unwrap();
        let make = |name: &str| std::fs::write(place.path().join(name), "").unwrap();
        let own = format!("scratch.{}", std::process::id());
        ["scratch.1", &own, "scratch.4711.0", "scratch.notes", "scratch."].into_iter().for_each(make);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true);
        let [first, second] = [0, 1].map(|_| create_named_in(place.path(), &options).unwrap());
        first.write(0, &[7; 16]).unwrap();
        assert_eq!(second.metadata().unwrap().len(), 0, "another file");
        let mut kept: Vec<_> =
            std::fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        kept.sort();
        assert_eq!(kept, ["scratch.", "scratch.notes"]);
    }

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
