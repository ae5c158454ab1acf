//! The other numbers of a file below or on an overlay: the overlay shows a file of a layer under a device number of its own.

use crate::mounts::{Mount, Mounts};
use crate::open_files;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Overlays that lie on one another: the kernel allows two levels.
const DEPTH_MAX: usize = 2;

/// The names of the file in the upper layers that it lies in, where it is on an overlay whose layers can be seen from here. One
/// that lies in a lower layer is copied up before it is written to.
pub(crate) fn names_below(file: &File) -> io::Result<Vec<PathBuf>> {
    let own = Mounts::read()?;
    let (path, mount_id) = name_of(file)?;
    let Some(mut mount) = own.with_id(mount_id) else { return Ok(Vec::new()) };
    let (mut path, mut names) = (path, Vec::new());
    for _ in 0..DEPTH_MAX {
        if mount.filesystem != "overlay" {
            break;
        }
        let Some(within) = within(mount, &path) else { break };
        // The kernel names the upper layer last.
        let found =
            mount.overlay_layers().last().map(|layer| layer.join(within)).filter(|name| is_file(name));
        let Some(found) = found else { break };
        let Some(below) = own.mount_of(&found) else { break };
        (mount, path) = (below, found.clone());
        names.push(found);
    }
    Ok(names)
}

/// The names of the file on the overlays of which it lies in a layer, where these can be seen from here.
pub(crate) fn names_above(file: &File) -> io::Result<Vec<PathBuf>> {
    let own = Mounts::read()?;
    let (path, mount_id) = name_of(file)?;
    let Some(mount) = own.with_id(mount_id) else { return Ok(Vec::new()) };
    let Some(within) = within(mount, &path) else { return Ok(Vec::new()) };
    // A layer may be named by another mount of the same file system.
    let mut below: Vec<PathBuf> = own.names_of(mount.number, &Path::new("/").join(within)).collect();
    let mut names = Vec::new();
    for _ in 0..DEPTH_MAX {
        let overlays = || own.iter().filter(|mount| mount.filesystem == "overlay");
        let above: Vec<PathBuf> = below
            .iter()
            .flat_map(|name| {
                overlays().filter_map(move |mount| {
                    let within = mount.overlay_layers().find_map(|layer| name.strip_prefix(layer).ok())?;
                    let shown = within.strip_prefix(mount.root.strip_prefix("/").ok()?).ok()?;
                    Some(mount.point.join(shown))
                })
            })
            .collect();
        names.extend(above.iter().cloned());
        below = above;
    }
    Ok(names)
}

/// The name of a file from the root of its file system, without the first slash.
fn within(mount: &Mount, path: &Path) -> Option<PathBuf> {
    let shown = path.strip_prefix(&mount.point).ok()?;
    // A bind mount shows a part of the overlay.
    let root = mount.root.strip_prefix("/").ok()?;
    Some(if shown.as_os_str().is_empty() { root.to_owned() } else { root.join(shown) })
}

fn is_file(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_file())
}

/// The name of an open file as this process sees it, and the number of its mount.
fn name_of(file: &File) -> io::Result<(PathBuf, u64)> {
    let number = file.as_raw_fd();
    let path = fs::read_link(format!("/proc/self/fd/{number}"))?;
    let info = fs::read(format!("/proc/self/fdinfo/{number}"))?;
    let mount_id = open_files::parse_info(&info).map(|(_, mount_id)| mount_id);
    mount_id.map(|id| (path, id)).ok_or_else(|| io::Error::other("no mnt_id in /proc/self/fdinfo"))
}

/// `st_dev` and `st_ino` of the files at these names.
pub(crate) fn identities(names: &[PathBuf]) -> impl Iterator<Item = (u64, u64)> {
    names.iter().filter_map(|name| fs::metadata(name).ok()).map(|found| (found.dev(), found.ino()))
}
