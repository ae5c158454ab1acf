//! The file through which other processes read the counters: its place, how it is created, and how it is
//! removed.

use crate::layout::{
    BOOT_ID_BYTES, FILES_MAX, HEADER_BYTES, MAGIC, REGION_BYTES, SLOT_BYTES, VERSION, file_name,
};
use crate::reader::CountersFile;
use crate::region::Region;
use published::{ProcessIdentity, reserve};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::{Relaxed, Release};

/// Readers of the counters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Publish {
    /// This process only, through its [`crate::Registry`].
    Private,
    /// Also other processes of the same user, through a file.
    Shared {
        /// The directory of the file, best in memory ([`published::counters_dir`]).
        dir: PathBuf,
    },
}

/// The file that this process created. The inode identifies it: another file may take its name later.
#[derive(Debug)]
pub(crate) struct Published {
    pub path: PathBuf,
    inode: u64,
}

/// Creates the file at its full size, with storage reserved for the header, and all bytes zero.
pub(crate) fn create(dir: &Path, pid: u32) -> io::Result<(Published, File)> {
    let path = dir.join(file_name(pid));
    let open = || {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true).mode(0o600).open(&path)
    };
    let file = match open() {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            remove_stale(&path)?;
            open()?
        }
        other => other?,
    };
    file.set_len(REGION_BYTES as u64)?;
    let made = reserve(&file, 0, HEADER_BYTES).and_then(|()| file.metadata());
    match made {
        Ok(metadata) => Ok((Published { path, inode: metadata.ino() }, file)),
        Err(error) => {
            let _ = fs::remove_file(&path);
            Err(error)
        }
    }
}

/// A file with our own pid belongs to a process that has ended, or to this process (a second copy of this
/// library), or to a process of another pid namespace that shares the directory. Only the first is removed.
fn remove_stale(path: &Path) -> io::Result<()> {
    if let Ok(counters) = CountersFile::open(path)
        && counters.process.is_alive() != Some(false)
    {
        return Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            "another copy of headroom, or another container, publishes under this pid",
        ));
    }
    fs::remove_file(path)
}

impl Published {
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
        reserve(&file, HEADER_BYTES + index * SLOT_BYTES, SLOT_BYTES)
    }

    /// Removes the file, unless another file has its name now.
    pub fn remove(&self) {
        if fs::symlink_metadata(&self.path).is_ok_and(|found| found.ino() == self.inode) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Fills in the header. The magic is written last, so that a reader sees a complete header or none.
pub(crate) fn write_header(region: &Region, process: &ProcessIdentity) {
    let header = &region.table().header;
    header.version.store(VERSION, Relaxed);
    header.header_bytes.store(HEADER_BYTES as u32, Relaxed);
    header.slot_bytes.store(SLOT_BYTES as u32, Relaxed);
    header.slots_max.store(FILES_MAX as u32, Relaxed);
    header.timing.store(1, Relaxed);
    header.pid.store(process.pid, Relaxed);
    header.start_ticks.store(process.start_ticks, Relaxed);
    header.pid_namespace.store(process.pid_namespace, Relaxed);
    for (to, from) in header.boot_id.iter().zip(process.boot_id.bytes().take(BOOT_ID_BYTES)) {
        to.store(from, Relaxed);
    }
    header.magic.store(MAGIC, Release);
}
