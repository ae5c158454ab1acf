//! The state of a directory while a store is created in it, which distinguishes an interrupted creation from other
//! files.
//!
//! The file `lock` contains `CREATING` until the store is complete, and is empty from then on. Files beside such a
//! lock contain no user's data: `create` has not returned.

use crate::error::{Error, Result};
use pagestore_disk::FileId;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

const CREATING: &[u8] = b"a page store is being created here\n";

fn read_lock_file(directory: &Path) -> Option<Vec<u8>> {
    let path = directory.join("lock");
    std::fs::symlink_metadata(&path).ok().filter(|found| found.is_file() && found.len() < 4096)?;
    std::fs::read(path).ok()
}

pub(super) fn is_unfinished(directory: &Path) -> bool {
    read_lock_file(directory).is_some_and(|content| content == CREATING)
}

/// Fails unless a store may be created in the directory: it must be empty, or contain only what an interrupted
/// creation has left.
pub(crate) fn check_vacant(directory: &Path) -> Result<()> {
    let failed = |error| Error::io("read", directory.display(), error);
    let ours = |name: &std::ffi::OsStr| name == "lock" || FileId::ALL.iter().any(|file| name == file.name());
    let (mut files, mut others) = (0, 0);
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        others += usize::from(!ours(&name));
        files += usize::from(ours(&name) && name != "lock");
    }
    let content = read_lock_file(directory);
    let is_vacant = match content.as_deref() {
        Some(CREATING) => true,
        // A creation that was interrupted right after it made the lock.
        Some([]) => files == 0,
        Some(_) => false,
        None => files == 0 && std::fs::symlink_metadata(directory.join("lock")).is_err(),
    };
    if others == 0 && is_vacant {
        Ok(())
    } else {
        Err(Error::Exists { path: directory.display().to_string() })
    }
}

/// Marks the lock as that of a creation in progress, and creates the files.
pub(super) fn begin(directory: &Path, lock: &File) -> Result<()> {
    let failed = |error| Error::io("create", directory.display(), error);
    lock.write_all_at(CREATING, 0).and_then(|()| lock.sync_all()).map_err(failed)?;
    for file in FileId::ALL {
        let path = directory.join(file.name());
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            _ => OpenOptions::new().write(true).create_new(true).open(&path).map_err(failed)?,
        };
    }
    Ok(())
}

/// Marks the store as complete, durably.
pub(super) fn finish(directory: &Path, lock: &File) -> Result<()> {
    lock.set_len(0)
        .and_then(|()| lock.sync_all())
        .map_err(|error| Error::io("create", directory.display(), error))
}

/// Removes the files of a failed creation. Files that cannot be removed are left to the next creation.
pub(crate) fn abandon(directory: &Path) {
    // The lock last: while it exists it identifies the other files.
    for name in FileId::ALL.map(FileId::name).into_iter().chain(["lock"]) {
        match std::fs::remove_file(directory.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return,
            _ => {}
        }
    }
}
