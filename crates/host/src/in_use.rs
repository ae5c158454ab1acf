//! The users of a block device or a file: file systems, devices above it, and processes.

use crate::block_devices::{BlockDevices, LoopStatus};
use crate::exclusive::Held;
use crate::holders::{Hold, Holder, Storage};
use crate::swaps::read_swaps;
use crate::{DeviceNumber, LoopDevice, Mounts, command_name, overlays, pids};
use std::collections::BTreeSet;
use std::fmt;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

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
    /// A loop device is attached to the file or device that this one is attached to, too: "loop3".
    SharedWith(String),
    /// A process can write to it, or has locked it.
    Process(Holder),
    /// A process that this one cannot see can write to it or has locked it.
    UnseenProcess,
}

impl fmt::Display for DeviceUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeviceUse::MountedAt(point) => write!(f, "mounted at {}", point.display()),
            DeviceUse::Swap(area) => write!(f, "swap on {}", area.display()),
            DeviceUse::HeldBy(holder) => write!(f, "held by {holder}"),
            DeviceUse::Backing(device) => write!(f, "backing {device}"),
            DeviceUse::SharedWith(device) => write!(f, "{device} is attached to the same storage"),
            DeviceUse::Process(holder) => holder.fmt(f),
            DeviceUse::UnseenProcess => {
                f.write_str("open for writing, or locked, where it cannot be seen from here")
            }
        }
    }
}

/// The number of the device where the file of a loop device is none.
const NO_DEVICE: DeviceNumber = DeviceNumber { major: 0, minor: 0 };

/// All uses of a block device and of its partitions that this process can see: a mount in another mount namespace is not
/// among them (see [`processes_using`]). Other loop devices over the same file or device are uses of it, and so is what uses the
/// device that a loop device is attached to.
///
/// # Errors
/// If /proc is not readable: "not in use" must never be a guess.
pub fn device_uses(number: DeviceNumber) -> io::Result<Vec<DeviceUse>> {
    let devices = BlockDevices::host();
    let storage = devices.storage(number);
    let mut uses = uses_as_device(&devices, number)?;
    let parts = devices.with_partitions(number);
    let (mut attached, mut beside) = (BTreeSet::new(), BTreeSet::new());
    let over = backing(&devices, |device, found| {
        let block_device = match found {
            BackingFile::Status(status) => Some(status.block_device).filter(|device| *device != NO_DEVICE),
            BackingFile::Name(name) => DeviceNumber::for_block_device(name),
        };
        let is_same_file = match found {
            BackingFile::Status(status) => storage.files.contains(&status.file),
            BackingFile::Name(name) => {
                fs::metadata(name).is_ok_and(|found| storage.files.contains(&(found.dev(), found.ino())))
            }
        };
        let is_same_device = block_device.is_some_and(|device| storage.devices.contains(&device));
        if storage.devices.contains(&device.number) {
            attached.extend(block_device.filter(|_| is_same_device));
            return false;
        }
        if !block_device.is_some_and(|device| parts.contains(&device)) {
            beside.insert(device.name.clone());
        }
        is_same_file || is_same_device
    });
    uses.extend(over.into_iter().map(|one| match one {
        DeviceUse::Backing(name) if beside.contains(&name) => DeviceUse::SharedWith(name),
        other => other,
    }));
    for below in attached {
        uses.extend(uses_as_device(&devices, below)?);
    }
    Ok(uses)
}

/// The mounts, swap areas and holders of a device and of its partitions.
fn uses_as_device(devices: &BlockDevices, number: DeviceNumber) -> io::Result<Vec<DeviceUse>> {
    let parts = devices.with_partitions(number);
    let is_part = |device: Option<DeviceNumber>| device.is_some_and(|device| parts.contains(&device));
    let mounts = Mounts::read()?;
    let mounted = mounts.iter().filter(|mount| is_part(mount.block_device()));
    let mut uses: Vec<DeviceUse> = mounted.map(|mount| DeviceUse::MountedAt(mount.point.clone())).collect();
    let swaps = read_swaps()?.into_iter().filter(|area| is_part(DeviceNumber::for_block_device(area)));
    uses.extend(swaps.map(DeviceUse::Swap));
    uses.extend(devices.holders(number).into_iter().map(DeviceUse::HeldBy));
    Ok(uses)
}

/// All uses of a regular file: by a loop device, for swap, and by other processes that have it open for writing, map it or have
/// locked it. It is known by each of its names, also through an overlay. Where another process holds it, this takes up to
/// [`HOLDERS_WAIT_MAX`].
///
/// # Errors
/// If /proc is not readable.
pub fn file_uses(file: &File) -> io::Result<Vec<DeviceUse>> {
    let metadata = file.metadata()?;
    let below = overlays::names_below(file)?;
    let names = [below.clone(), overlays::names_above(file)?].concat();
    let itself = (metadata.dev(), metadata.ino());
    let files: BTreeSet<(u64, u64)> = overlays::identities(&names).chain([itself]).collect();
    let is_same =
        |path: &Path| fs::metadata(path).is_ok_and(|other| files.contains(&(other.dev(), other.ino())));
    let swaps = read_swaps()?.into_iter().filter(|area| is_same(area)).map(DeviceUse::Swap);
    let backing = backing(&BlockDevices::host(), |_, found| match found {
        BackingFile::Status(status) => files.contains(&status.file),
        BackingFile::Name(name) => is_same(name),
    });
    let uses: Vec<DeviceUse> = swaps.chain(backing).collect();
    if !uses.is_empty() {
        // A loop device and swap have the file open for writing too.
        return Ok(uses);
    }
    // An overlay does not know who writes to a file in its layers.
    let layers: Vec<File> = below.iter().filter_map(|name| File::open(name).ok()).collect();
    let held = || layers.iter().chain([file]).map(Held::ask).max().unwrap_or(Held::Unknown);
    other_holders(&Storage { files: files.clone(), ..Storage::default() }, held)
}

/// The other processes that can write to a block device, to a partition of it, or to what it lies on: its disk, its members, the
/// file of a loop device. This reads the descriptors of all processes that this user may see.
///
/// # Errors
/// If /proc is not readable.
pub fn device_writers(number: DeviceNumber) -> io::Result<Vec<DeviceUse>> {
    other_holders(&BlockDevices::host().storage(number), || Held::Unknown)
}

/// Longest wait for a holder that is about to end: the kernel closes the files of a ring some time after its program has ended.
pub const HOLDERS_WAIT_MAX: Duration = Duration::from_secs(2);
/// A process that holds a storage no longer than this is no use of it: a child of this program before it executes its own, a
/// program that reads a device's properties.
const HOLDERS_PAUSE: Duration = Duration::from_millis(50);

/// The other processes that hold a storage for longer than a moment. `is_held` is the kernel's own account.
fn other_holders(storage: &Storage, is_held: impl Fn() -> Held) -> io::Result<Vec<DeviceUse>> {
    let until = Instant::now() + HOLDERS_WAIT_MAX;
    let mut before: Vec<u32> = Vec::new();
    loop {
        let held = is_held();
        if held == Held::No {
            return Ok(Vec::new());
        }
        let (own, mut others): (Vec<Holder>, Vec<Holder>) =
            storage.holders()?.into_iter().partition(|holder| holder.pid == std::process::id());
        let is_late = Instant::now() >= until;
        let is_own = |holder: &Holder| held == Held::Locked || holder.hold != Hold::Locks;
        if others.is_empty() && (held == Held::Unknown || own.iter().any(is_own)) {
            return Ok(Vec::new());
        }
        if others.is_empty() && is_late {
            return Ok(vec![DeviceUse::UnseenProcess]);
        }
        if is_late || others.iter().any(|holder| before.contains(&holder.pid)) {
            others.retain(|holder| is_late || before.contains(&holder.pid));
            return Ok(others.into_iter().map(DeviceUse::Process).collect());
        }
        before = others.into_iter().map(|holder| holder.pid).collect();
        thread::sleep(HOLDERS_PAUSE);
    }
}

/// Known facts of a loop device's file.
enum BackingFile<'a> {
    Status(LoopStatus),
    /// Only the name that sysfs shows, because this user may not open the device.
    Name(&'a Path),
}

fn backing(
    devices: &BlockDevices,
    mut is_it: impl FnMut(&LoopDevice, BackingFile<'_>) -> bool,
) -> Vec<DeviceUse> {
    let mut loops = devices.loop_devices();
    loops.retain(|device| {
        let status = LoopStatus::read(device);
        is_it(device, status.map_or(BackingFile::Name(&device.backing_file), BackingFile::Status))
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
pub fn processes_using(number: DeviceNumber) -> impl Iterator<Item = ProcessUse> {
    let storage = Storage { devices: BTreeSet::from([number]), ..Storage::default() };
    pids().unwrap_or_default().into_iter().filter_map(move |pid| {
        let mounted_at = mounted_for(pid, number);
        if mounted_at.is_none() && !storage.is_open_in(pid) {
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
        assert_eq!(file_uses(&file).unwrap(), []);
        assert_eq!(device_uses(DeviceNumber { major: 4095, minor: 1 }).unwrap(), []);
    }
}
