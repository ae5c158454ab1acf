//! Chosen files and processes as the kernel identifies them.

use super::error::OpenError;
use super::tables::WantedFile;
use crate::error::SourceError;
use host::Mounts;
use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

/// The kernel's own form of a device number.
fn kernel_device(major: u32, minor: u32) -> u64 {
    u64::from(major) << 20 | u64::from(minor)
}

/// A file or block device as the programs identify it.
pub(super) fn file(path: &Path, mounts: &Mounts) -> Result<WantedFile, OpenError> {
    let refused = |why: String| OpenError::File { path: path.into(), why };
    let path = fs::canonicalize(path).map_err(|error| refused(error.to_string()))?;
    let found = fs::metadata(&path).map_err(|error| refused(error.to_string()))?;
    if found.file_type().is_block_device() {
        let dev = kernel_device(libc::major(found.rdev()), libc::minor(found.rdev()));
        return Ok(WantedFile { ino: 0, dev });
    }
    if !found.is_file() {
        return Err(refused("it is neither a file nor a block device".into()));
    }
    // Not stat's device number: for a btrfs subvolume it differs from the one that the kernel's structures have.
    let number = mounts.mount_of(&path).map(|mount| kernel_device(mount.number.major, mount.number.minor));
    let dev = number.ok_or_else(|| refused("the file system that it lies on is not known".into()))?;
    Ok(WantedFile { ino: found.ino(), dev })
}

/// Checks that the processes are running.
pub(super) fn processes(pids: &[u32]) -> Result<BTreeSet<u32>, OpenError> {
    match pids.iter().find(|pid| host::ProcessStat::read(**pid).is_none()) {
        Some(pid) => Err(OpenError::NoSuchProcess(*pid)),
        None => Ok(pids.iter().copied().collect()),
    }
}

/// The processes and all their descendants.
pub(super) fn with_descendants(mut chosen: BTreeSet<u32>) -> Result<BTreeSet<u32>, OpenError> {
    if chosen.is_empty() {
        return Ok(chosen);
    }
    let parents = parents()?;
    loop {
        let before = chosen.len();
        let children = parents.iter().filter(|(_, parent)| chosen.contains(parent)).map(|(child, _)| *child);
        let children: Vec<u32> = children.collect();
        chosen.extend(children);
        if chosen.len() == before {
            return Ok(chosen);
        }
    }
}

/// Each process and its parent.
fn parents() -> Result<Vec<(u32, u32)>, OpenError> {
    let pids = host::pids().map_err(|error| OpenError::System { path: "/proc".into(), error })?;
    Ok(pids.into_iter().filter_map(|pid| Some((pid, host::ProcessStat::read(pid)?.parent))).collect())
}

/// All running processes.
pub(super) fn running() -> Result<HashSet<u32>, SourceError> {
    let pids = host::pids().map_err(|error| SourceError::System { path: "/proc".into(), error })?;
    Ok(pids.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_chosen_with_its_descendants() {
        let me = std::process::id();
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let tree = |pid| with_descendants(processes(&[pid]).unwrap()).unwrap();
        let chosen = tree(me);
        assert!(chosen.contains(&me) && chosen.contains(&child.id()), "{chosen:?}");
        assert_eq!(tree(child.id()).len(), 1);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(matches!(processes(&[u32::MAX]), Err(OpenError::NoSuchProcess(_))));
    }

    #[test]
    fn a_file_is_identified_by_device_and_inode() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let wanted = super::file(file.path(), &Mounts::read().unwrap_or_default()).unwrap();
        assert_eq!(wanted.ino, file.as_file().metadata().unwrap().ino());
        assert!(super::file(Path::new("/proc"), &Mounts::read().unwrap_or_default()).is_err(), "a directory");
    }
}
