//! What is in a directory while a store is created there, so that one which was interrupted can be told from all else.
//!
//! The file `lock` says `CREATING` until the store is complete, and is empty from then on. What lies beside such a lock
//! belongs to nobody: `create` has never returned.

use crate::disk::FileId;
use crate::error::{Error, Result};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

const CREATING: &[u8] = b"a page store is being created here\n";

fn lock_says(directory: &Path) -> Option<Vec<u8>> {
    let path = directory.join("lock");
    std::fs::symlink_metadata(&path).ok().filter(|found| found.is_file() && found.len() < 4096)?;
    std::fs::read(path).ok()
}

pub(super) fn is_unfinished(directory: &Path) -> bool {
    lock_says(directory).is_some_and(|says| says == CREATING)
}

/// Whether a store may be created there: in the directory is nothing, or what an interrupted creation has left.
pub(crate) fn look_for_room(directory: &Path) -> Result<()> {
    let failed = |error| Error::io("read", directory.display(), error);
    let ours = |name: &std::ffi::OsStr| name == "lock" || FileId::ALL.iter().any(|file| name == file.name());
    let (mut files, mut others) = (0, 0);
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        others += usize::from(!ours(&name));
        files += usize::from(ours(&name) && name != "lock");
    }
    let says = lock_says(directory);
    let is_room = match says.as_deref() {
        Some(CREATING) => true,
        // Of a creation that came no further.
        Some([]) => files == 0,
        Some(_) => false,
        None => files == 0 && std::fs::symlink_metadata(directory.join("lock")).is_err(),
    };
    if others == 0 && is_room { Ok(()) } else { Err(Error::Exists { path: directory.display().to_string() }) }
}

/// Says in the lock that it has begun, and makes the files.
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

/// The store is complete; nobody will take it for less, after a power cut neither.
pub(super) fn finish(directory: &Path, lock: &File) -> Result<()> {
    lock.set_len(0)
        .and_then(|()| lock.sync_all())
        .map_err(|error| Error::io("create", directory.display(), error))
}

/// Removes what a creation that failed has made. What cannot be removed is left to the next one.
pub(crate) fn abandon(directory: &Path) {
    // The lock last: while it is there it says whose the others are.
    for name in FileId::ALL.map(FileId::name).into_iter().chain(["lock"]) {
        match std::fs::remove_file(directory.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return,
            _ => {}
        }
    }
}
