//! The workspace of an experiment. A killed one may have left a disk there besides files.

use history::History;
use luns::{LunError, Registry};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use storage::Workspace;
use terminal::workspace::canonical;
use terminal::{Failure, Output};

/// Opens the workspace in `dir`, and removes what a killed Headroom or experiment left there.
///
/// # Errors
/// The directory cannot be used, or another Headroom uses it.
pub fn open(dir: &Path, history: &mut History, out: &mut Output) -> Result<Workspace, Failure> {
    let workspace = terminal::workspace::open(dir, history, out)?;
    if let Err(error) = remove_disks(&workspace, out) {
        out.warn(format_args!("a killed experiment left a disk: {error}"));
    }
    Ok(workspace)
}

/// Removes the disks whose backing files lay in a workspace that a killed Headroom left, and returns their devices. The
/// files are gone with the workspace, but the device, its server and its mount outlive the process that made them.
///
/// # Errors
/// The first disk that cannot be removed, once all others are: it is mounted or held by another process.
pub fn remove_disks(workspace: &Workspace, out: &mut Output) -> Result<Vec<PathBuf>, LunError> {
    let registry = Registry::host();
    let workspace = canonical(workspace.path());
    let disks = match registry.list() {
        // Only root makes disks, and a workspace with one in it is root's: this one, which we hold, has none.
        Err(LunError::Io { error, .. }) if error.kind() == ErrorKind::PermissionDenied => Vec::new(),
        Err(error) => {
            out.warn(format_args!("whether a killed experiment left a disk is not known: {error}"));
            Vec::new()
        }
        Ok(disks) => disks,
    };
    let mut removed = Vec::new();
    let mut done = Ok(());
    for (disk, _) in disks.into_iter().filter(|(disk, _)| disk.file.starts_with(&workspace)) {
        match registry.remove(&disk) {
            Ok(()) => removed.push(disk.device.unwrap_or(disk.file)),
            Err(error) => done = done.and(Err(error)),
        }
    }
    done.map(|()| removed)
}
