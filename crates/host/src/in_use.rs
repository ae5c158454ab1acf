//! What uses a block device or a file as storage of its own.

use crate::block_devices::{BlockDevices, LoopStatus};
use crate::swaps::read_swaps;
use crate::{DeviceNumber, Mounts, command_name, pids};
use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A use of a device or file: writing to it, or taking it away, would destroy data of that user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceUse {
    /// A file system is mounted there.
    MountedAt(PathBuf),
    /// It is swapped to; the name of the swap area.
    Swap(PathBuf),
    /// A device lies on it: "dm-0".
    HeldBy(String),
    /// A loop device is attached to it: "loop3".
    Backing(String),
}

impl fmt::Display for DeviceUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeviceUse::MountedAt(point) => write!(f, "mounted at {}", point.display()),
            DeviceUse::Swap(area) => write!(f, "swap on {}", area.display()),
            DeviceUse::HeldBy(holder) => write!(f, "held by {holder}"),
            DeviceUse::Backing(device) => write!(f, "backing {device}"),
        }
    }
}

/// All uses of a block device and of its partitions that this process can see: a mount in another mount namespace is not
/// among them (see [`processes_using`]).
///
/// # Errors
/// If /proc is not readable: "not in use" must never be a guess.
pub fn device_uses(number: DeviceNumber) -> io::Result<Vec<DeviceUse>> {
    let devices = BlockDevices::host();
    let parts = devices.with_partitions(number);
    let is_part = |device: Option<DeviceNumber>| device.is_some_and(|device| parts.contains(&device));
    let mounts = Mounts::read()?;
    let mounted = mounts.iter().filter(|mount| is_part(mount.block_device()));
    let mut uses: Vec<DeviceUse> = mounted.map(|mount| DeviceUse::MountedAt(mount.point.clone())).collect();
    let swaps = read_swaps()?.into_iter().filter(|area| is_part(DeviceNumber::for_block_device(area)));
    uses.extend(swaps.map(DeviceUse::Swap));
    uses.extend(devices.holders(number).into_iter().map(DeviceUse::HeldBy));
    uses.extend(backing(&devices, |found| match found {
        BackingFile::Status(status) => is_part(Some(status.block_device)),
        BackingFile::Name(name) => is_part(DeviceNumber::for_block_device(name)),
    }));
    Ok(uses)
}

/// All uses of a regular file as storage: by a loop device, or for swap.
///
/// # Errors
/// If /proc is not readable.
pub fn file_uses(metadata: &fs::Metadata) -> io::Result<Vec<DeviceUse>> {
    let identity = (metadata.dev(), metadata.ino());
    let is_same = |path: &Path| fs::metadata(path).is_ok_and(|other| (other.dev(), other.ino()) == identity);
    let swaps = read_swaps()?.into_iter().filter(|area| is_same(area)).map(DeviceUse::Swap);
    let backing = backing(&BlockDevices::host(), |found| match found {
        BackingFile::Status(status) => status.file == identity,
        BackingFile::Name(name) => is_same(name),
    });
    Ok(swaps.chain(backing).collect())
}

/// What is known of a loop device's file.
enum BackingFile<'a> {
    Status(LoopStatus),
    /// Only the name that sysfs shows, because this user may not open the device.
    Name(&'a Path),
}

fn backing(devices: &BlockDevices, is_it: impl Fn(BackingFile<'_>) -> bool) -> Vec<DeviceUse> {
    let mut loops = devices.loop_devices();
    loops.retain(|device| {
        is_it(LoopStatus::read(device).map_or(BackingFile::Name(&device.backing_file), BackingFile::Status))
    });
    loops.into_iter().map(|device| DeviceUse::Backing(device.name)).collect()
}

/// A process that keeps a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessUse {
    /// Its pid.
    pub pid: u32,
    /// The name of its program.
    pub command: String,
    /// Where the device is mounted in the mount namespace of one of its threads; `None`: it only has the device open.
    pub mounted_at: Option<PathBuf>,
}

/// The processes that have the device open, or see it mounted where this process need not see it. Reads the mounts of every
/// thread of the host.
pub fn processes_using(number: DeviceNumber, device: &Path) -> impl Iterator<Item = ProcessUse> {
    pids().unwrap_or_default().into_iter().filter_map(move |pid| {
        let mounted_at = mounted_for(pid, number);
        if mounted_at.is_none() && !has_open(pid, device) {
            return None;
        }
        Some(ProcessUse { pid, command: command_name(pid).unwrap_or_default(), mounted_at })
    })
}

/// Each thread may see other mounts.
fn mounted_for(pid: u32, number: DeviceNumber) -> Option<PathBuf> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let mut mounts = threads.filter_map(|thread| Mounts::read_from(&thread.path().join("mountinfo")).ok());
    mounts.find_map(|mounts| {
        let mount = mounts.iter().find(|mount| mount.block_device() == Some(number))?;
        Some(mount.point.clone())
    })
}

fn has_open(pid: u32, device: &Path) -> bool {
    let mut files = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    files.any(|file| fs::read_link(file.path()).is_ok_and(|target| target == device))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_file_system_is_in_use_and_a_file_of_a_test_is_not() {
        let mounts = Mounts::read().unwrap();
        if let Some(number) = mounts.mount_of(Path::new("/")).and_then(crate::Mount::block_device) {
            assert!(device_uses(number).unwrap().contains(&DeviceUse::MountedAt("/".into())));
        }
        let file = tempfile::tempfile().unwrap();
        assert_eq!(file_uses(&file.metadata().unwrap()).unwrap(), []);
        assert_eq!(device_uses(DeviceNumber { major: 4095, minor: 1 }).unwrap(), []);
    }
}
