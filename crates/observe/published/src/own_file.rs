//! The file that a writer creates: how its name is taken, and how the file is removed.

use crate::layout::{HEAD_BYTES, SLOT_BYTES, TABLE_BYTES};
use crate::name::{INSTANCES_MAX, file_name};
use crate::reader::CountersFile;
use crate::reserve;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A file without a head that is younger may belong to a process that is about to write one.
const HEAD_DELAY_MAX: Duration = Duration::from_secs(60);

/// The file that this process created. The inode identifies it: another file may take its name later.
#[derive(Debug)]
pub(crate) struct OwnFile {
    pub path: PathBuf,
    inode: u64,
    /// The child of a fork did not create it.
    pid: u32,
}

impl OwnFile {
    /// Creates a file under the first free name, at its full size, with storage reserved for the head, and all bytes zero.
    pub fn create(dir: &Path, pid: u32) -> io::Result<(OwnFile, File)> {
        for instance in 0..INSTANCES_MAX {
            let path = dir.join(file_name(pid, instance));
            let opened = match open_new(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    if !is_stale(&path) || fs::remove_file(&path).is_err() {
                        continue;
                    }
                    open_new(&path)
                }
                opened => opened,
            };
            match opened {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                opened => return OwnFile::fill(path, opened?, pid),
            }
        }
        Err(io::Error::other(format!("this process has {INSTANCES_MAX} counters files")))
    }

    fn fill(path: PathBuf, file: File, pid: u32) -> io::Result<(OwnFile, File)> {
        let made = file.set_len(TABLE_BYTES as u64).and_then(|()| reserve(&file, 0, HEAD_BYTES));
        match made.and_then(|()| file.metadata()) {
            Ok(metadata) => Ok((OwnFile { path, inode: metadata.ino(), pid }, file)),
            Err(error) => {
                let _ = fs::remove_file(&path);
                Err(error)
            }
        }
    }

    /// Reserves storage for one more slot. The file is opened each time: a program that turns itself into a daemon
    /// closes descriptors that it does not know, and their numbers then refer to files of its own.
    pub fn reserve_slot(&self, index: usize) -> io::Result<()> {
        let file = OpenOptions::new()
            .write(true)
            .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
            .open(&self.path)?;
        if file.metadata()?.ino() != self.inode {
            return Err(io::Error::other("the counters file was replaced"));
        }
        reserve(&file, HEAD_BYTES + index * SLOT_BYTES, SLOT_BYTES)
    }

    /// Whether this process created it, and not one that it was forked from.
    pub fn is_of_this_process(&self) -> bool {
        self.pid == std::process::id()
    }

    /// Removes the file, unless another process created it or another file has its name now.
    pub fn remove(&self) {
        if self.is_of_this_process()
            && fs::symlink_metadata(&self.path).is_ok_and(|found| found.ino() == self.inode)
        {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn open_new(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path)
}

/// Whether a file with our own pid belongs to a process that has ended, and not to another engine or copy of this library in
/// this process, or to a process of another pid namespace that shares the directory.
fn is_stale(path: &Path) -> bool {
    match CountersFile::open(path) {
        Ok(counters) => counters.process.is_alive() == Some(false),
        Err(_) => {
            let changed = fs::symlink_metadata(path).and_then(|metadata| metadata.modified()).ok();
            changed.and_then(|changed| changed.elapsed().ok()).is_some_and(|age| age > HEAD_DELAY_MAX)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_young_file_without_a_head_keeps_its_name_and_an_old_one_does_not() {
        let (dir, pid) = (tempfile::tempdir().unwrap(), std::process::id());
        let first = dir.path().join(file_name(pid, 0));
        let file = File::create(&first).unwrap();
        let (second, _) = OwnFile::create(dir.path(), pid).unwrap();
        assert_eq!(second.path, dir.path().join(file_name(pid, 1)));
        file.set_modified(std::time::SystemTime::now() - 2 * HEAD_DELAY_MAX).unwrap();
        assert_eq!(OwnFile::create(dir.path(), pid).unwrap().0.path, first);
        second.remove();
        assert!(!second.path.exists());
    }
}
