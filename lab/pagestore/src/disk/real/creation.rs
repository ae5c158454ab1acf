//! The state of a directory while a store is created in it, which distinguishes an interrupted creation from other
//! files.
//!
//! The file `lock` contains `CREATING` until the store is complete, and is empty from then on. Files beside such a
//! lock contain no user's data: `create` has not returned.
//!
//! ```text
//! directories      each with its name durable before the next is made in it
//! lock             with CREATING; content and name durable before the files exist
//! control data log their names durable before they have content
//! content          the control file last
//! lock             emptied: the store is complete, and `create` returns
//! ```

use crate::error::{Error, Result};
use crate::format::control::Control;
use pagestore_disk::{Disk, FileId, Names};
use std::io;
use std::path::{Path, PathBuf};

const CREATING: &[u8] = b"a page store is being created here\n";
/// A longer lock file is not one.
const LOCK_BYTES_MAX: u64 = 4096;
pub(crate) const LOCK: &str = "lock";

fn is_unfinished(names: &dyn Names, directory: &Path) -> bool {
    names.read(&directory.join(LOCK), LOCK_BYTES_MAX).is_some_and(|content| content == CREATING)
}

fn failed(directory: &Path) -> impl Fn(io::Error) -> Error + '_ {
    |error| Error::io("create", directory.display(), error)
}

/// Makes the directory, with those above it that are missing, from the top down. A name is durable before anything is made below
/// it. The newest directory that was there may be that of a creation that was interrupted before it made the name durable.
pub(crate) fn make_directory(names: &dyn Names, directory: &Path) -> Result<()> {
    let missing: Vec<&Path> = directory
        .ancestors()
        .take_while(|level| !level.as_os_str().is_empty() && !names.is_there(level))
        .collect();
    let there = directory.ancestors().nth(missing.len()).filter(|level| !level.as_os_str().is_empty());
    let there = there.unwrap_or(Path::new("."));
    match names.sync_directory(&there.join("..")) {
        // A directory that this user may not open is one that others made, and so is one that cannot be written.
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::PermissionDenied
                    | io::ErrorKind::ReadOnlyFilesystem
                    | io::ErrorKind::InvalidInput
                    | io::ErrorKind::Unsupported
            ) => {}
        synced => synced.map_err(failed(there))?,
    }
    for level in missing.iter().rev() {
        match names.make_directory(level) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(failed(level)(error)),
            _ => names.sync_directory(&level.join("..")).map_err(failed(level))?,
        }
    }
    Ok(())
}

/// Fails unless a store may be created in the directory: it must be empty, or contain only what an interrupted
/// creation has left.
pub(crate) fn check_vacant(names: &dyn Names, directory: &Path) -> Result<()> {
    let ours = |name: &std::ffi::OsStr| name == LOCK || FileId::ALL.iter().any(|file| name == file.name());
    let (mut files, mut others) = (0, 0);
    let found = names.list(directory).map_err(|error| Error::io("read", directory.display(), error))?;
    for name in &found {
        others += usize::from(!ours(name));
        files += usize::from(ours(name) && name != LOCK);
    }
    let content = names.read(&directory.join(LOCK), LOCK_BYTES_MAX);
    let is_vacant = match content.as_deref() {
        Some(CREATING) => true,
        // A creation that was interrupted right after it made the lock.
        Some([]) => files == 0,
        Some(_) => false,
        None => files == 0 && !found.iter().any(|name| name == LOCK),
    };
    if others == 0 && is_vacant {
        Ok(())
    } else {
        Err(Error::Exists { path: directory.display().to_string() })
    }
}

/// Begins a creation: `lock` takes the lock, whose file it makes, and `holds_store` looks for a store in the files that are
/// there. Returns the lock.
pub(crate) fn begin<L>(
    names: &dyn Names,
    directory: &Path,
    lock: impl FnOnce() -> Result<L>,
    holds_store: impl FnOnce() -> bool,
) -> Result<L> {
    let exists = || Error::Exists { path: directory.display().to_string() };
    let lock = lock()?;
    // Check again under the lock: another process may have created a store since the caller checked.
    check_vacant(names, directory)?;
    // An interrupted creation leaves no valid control file, except at its very end; otherwise a store was put here
    // meanwhile.
    if holds_store() {
        return Err(exists());
    }
    create_files(names, directory).inspect_err(|_| abandon(names, directory))?;
    Ok(lock)
}

/// Marks the lock as that of a creation in progress, and creates the files.
fn create_files(names: &dyn Names, directory: &Path) -> Result<()> {
    let failed = failed(directory);
    names.replace(&directory.join(LOCK), CREATING).map_err(&failed)?;
    // Files without the mark would not be replaced by the next creation.
    names.sync_directory(directory).map_err(&failed)?;
    for path in files(directory) {
        match names.remove(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            _ => names.create(&path).map_err(&failed)?,
        }
    }
    sync_names(names, directory)
}

fn files(directory: &Path) -> [PathBuf; 3] {
    FileId::ALL.map(|file| directory.join(file.name()))
}

fn sync_names(names: &dyn Names, directory: &Path) -> Result<()> {
    names.sync_directory(directory).map_err(|error| Error::io("sync", directory.display(), error))
}

/// Prepares the opening of files: makes their names durable, which a process that was killed may not have done, and fails if the
/// files are those of a creation that did not finish.
pub(crate) fn open(names: &dyn Names, directory: &Path, disk: &dyn Disk) -> Result<()> {
    sync_names(names, directory)?;
    if is_unfinished(names, directory) && Control::read(disk)?.is_none() {
        return Err(Error::not_a_store(directory, "its creation did not finish: create it again"));
    }
    Ok(())
}

/// Marks the store as complete, durably.
pub(crate) fn finish(names: &dyn Names, directory: &Path) -> Result<()> {
    if is_unfinished(names, directory) {
        names.replace(&directory.join(LOCK), b"").map_err(failed(directory))?;
    }
    Ok(())
}

/// Removes the files of a failed creation. Files that cannot be removed are left to the next creation.
pub(crate) fn abandon(names: &dyn Names, directory: &Path) {
    let remove = |path: &Path| match names.remove(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    };
    // The lock last: while it exists it identifies the other files.
    let _ = files(directory)
        .iter()
        .try_for_each(|path| remove(path))
        .and_then(|()| names.sync_directory(directory))
        .and_then(|()| remove(&directory.join(LOCK)));
}
