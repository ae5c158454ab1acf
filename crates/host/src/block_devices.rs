//! Block devices by sysfs, and what each lies on.

mod layout;
mod loop_status;
mod mapper_table;
mod trouble;

use crate::holders::Storage;
use crate::kernel_file::read_kernel_file;
use crate::{DeviceNumber, Mounts};
pub(crate) use loop_status::LoopStatus;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
pub use trouble::device_troubles;
use workload::{DeviceFacts, DeviceKind, WriteCache};

/// Most devices of one chain, and most that are sought in processes at once: more is a cycle.
const CHAIN_DEVICES_MAX: usize = 64;
/// The kernel counts in 512 bytes whatever the device's block size.
const SECTOR_BYTES: u64 = 512;

/// The device and all that it lies on, top first: a partition on its disk, a loop device on the device of its file, device
/// mapper and md on their members. Empty if the kernel shows none.
pub fn device_chain(number: DeviceNumber) -> Vec<DeviceFacts> {
    BlockDevices::host().chain(number)
}

/// A loop device that is attached to a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoopDevice {
    /// "loop3".
    pub name: String,
    /// Its number.
    pub number: DeviceNumber,
    /// The file, as the kernel names it: with " (deleted)" behind it once it is removed.
    pub backing_file: PathBuf,
}

impl LoopDevice {
    /// Whether that file, which may be removed meanwhile, is the one it is attached to: by device and inode, and by name where
    /// the file is removed or this user may not ask the device.
    pub fn is_attached_to(&self, file: &Path) -> bool {
        let backing = self.backing_file.as_os_str().as_bytes();
        let name = file.as_os_str().as_bytes();
        let is_removed = backing.strip_suffix(b" (deleted)") == Some(name);
        match (LoopStatus::read(self), fs::metadata(file)) {
            (Some(status), Ok(found)) => status.file == (found.dev(), found.ino()) || is_removed,
            _ => backing == name || is_removed,
        }
    }

    /// Whether it is attached to the file with this device and inode (`st_dev`, `st_ino`), which a rename does not change.
    /// `false` also where this user may not ask the device.
    pub fn is_attached_to_inode(&self, file: (u64, u64)) -> bool {
        LoopStatus::read(self).is_some_and(|status| status.file == file)
    }
}

/// All loop devices that are attached to a file.
pub fn loop_devices() -> Vec<LoopDevice> {
    BlockDevices::host().loop_devices()
}

/// The sysfs directory of a block device, "/sys/devices/virtual/block/loop3"; `None` if the kernel shows none.
pub fn attribute_directory(number: DeviceNumber) -> Option<PathBuf> {
    BlockDevices::host().directory(number)
}

/// The name of a block device below /dev: "vda1", "dm-0".
pub fn device_name(number: DeviceNumber) -> Option<String> {
    let text = read(&attribute_directory(number)?.join("uevent"))?;
    text.lines().find_map(|line| line.strip_prefix("DEVNAME=")).map(str::to_owned)
}

/// An attribute of a block device's queue: "max_hw_sectors_kb".
pub fn queue_attribute(number: DeviceNumber, attribute: &str) -> Option<String> {
    read(&attribute_directory(number)?.join("queue").join(attribute))
}

/// Whether a loop device reads and writes its file with direct I/O.
pub fn loop_uses_direct_io(number: DeviceNumber) -> bool {
    attribute_directory(number).and_then(|directory| read(&directory.join("loop/dio"))).as_deref()
        == Some("1")
}

/// Whether a loop device is detached as soon as no process has it open: it was made so, or detached while it was in use.
pub fn loop_is_detaching(number: DeviceNumber) -> bool {
    attribute_directory(number).and_then(|directory| read(&directory.join("loop/autoclear"))).as_deref()
        == Some("1")
}

/// Bytes of a block device.
pub fn device_size_bytes(number: DeviceNumber) -> Option<u64> {
    size_bytes(&attribute_directory(number)?)
}

/// Whether a block device is write-protected.
pub fn is_read_only(number: DeviceNumber) -> bool {
    attribute_directory(number).and_then(|directory| read(&directory.join("ro"))).is_some_and(|ro| ro == "1")
}

/// Distinguishes a device from the next one of its number, such as a loop device that is attached again; a partition has
/// its disk's. `None` before Linux 5.15.
pub fn device_sequence(number: DeviceNumber) -> Option<String> {
    let directory = attribute_directory(number)?;
    read(&directory.join("diskseq")).or_else(|| read(&directory.parent()?.join("diskseq")))
}

/// The kernel's description of block devices.
pub(crate) struct BlockDevices {
    /// "/sys", or a test's.
    sysfs: PathBuf,
    /// Where device mapper shows its tables; `None` in a test.
    mapper: Option<&'static Path>,
}

impl BlockDevices {
    pub fn host() -> BlockDevices {
        BlockDevices { sysfs: "/sys".into(), mapper: Some(Path::new(mapper_table::CONTROL)) }
    }

    /// Breadth first, each device once.
    fn chain(&self, top: DeviceNumber) -> Vec<DeviceFacts> {
        let mut numbers = vec![top];
        let mut chain = Vec::new();
        while let Some(number) = numbers.get(chain.len()).copied() {
            let found = self
                .directory(number)
                .and_then(|directory| Some((self.facts(&directory, number)?, directory)));
            let Some((facts, directory)) = found else {
                numbers.remove(chain.len());
                continue;
            };
            for below in self.below(&directory) {
                if !numbers.contains(&below) && numbers.len() < CHAIN_DEVICES_MAX {
                    numbers.push(below);
                }
            }
            chain.push(facts);
        }
        chain
    }

    fn facts(&self, directory: &Path, number: DeviceNumber) -> Option<DeviceFacts> {
        let is_partition = is_partition(directory);
        // A partition has no queue of its own: its I/Os wait in the disk's.
        let disk = if is_partition { directory.parent()? } else { directory };
        let kind = match directory {
            _ if is_partition => DeviceKind::Partition,
            own if own.join("loop").is_dir() || name(own).starts_with("loop") => DeviceKind::Loop,
            own if own.join("dm").is_dir() => DeviceKind::Dm,
            own if own.join("md").is_dir() => DeviceKind::Md,
            _ => DeviceKind::Disk,
        };
        let queue = disk.join("queue");
        Some(DeviceFacts {
            name: name(directory),
            number: number.to_string(),
            kind,
            model: read(&disk.join("device/model")).filter(|_| !is_partition),
            backing_file: backing_file(directory).map(|file| file.to_string_lossy().into_owned()),
            size_bytes: size_bytes(directory)?,
            rotational: read_number::<u8>(&queue.join("rotational")).map(|rotational| rotational != 0),
            scheduler: read(&queue.join("scheduler")).and_then(|text| scheduler_in_use(&text)),
            requests_max: read_number(&queue.join("nr_requests")),
            queues: fs::read_dir(disk.join("mq")).ok().and_then(|queues| u32::try_from(queues.count()).ok()),
            request_bytes_max: read_number::<u64>(&queue.join("max_sectors_kb"))
                .and_then(|kib| kib.checked_mul(1024)),
            logical_block_bytes: read_number(&queue.join("logical_block_size")),
            physical_block_bytes: read_number(&queue.join("physical_block_size")),
            write_cache: match read(&queue.join("write_cache")).as_deref() {
                Some("write back") => Some(WriteCache::WriteBack),
                Some("write through") => Some(WriteCache::WriteThrough),
                _ => None,
            },
            layout: layout::layout(directory, || mapper_table::read(self.mapper?, number)),
        })
    }

    pub fn directory(&self, number: DeviceNumber) -> Option<PathBuf> {
        fs::canonicalize(self.sysfs.join("dev/block").join(number.to_string())).ok()
    }

    /// Devices that the device lies on.
    fn below(&self, directory: &Path) -> Vec<DeviceNumber> {
        if is_partition(directory) {
            return directory.parent().and_then(read_device_number).into_iter().collect();
        }
        if let Some(file) = backing_file(directory) {
            return Self::device_of_file(&file).into_iter().collect();
        }
        let mut numbers: Vec<DeviceNumber> = entries(&directory.join("slaves"))
            .iter()
            .filter_map(|member| read_device_number(member))
            .collect();
        numbers.sort_unstable();
        numbers
    }

    /// The block device that `path` is or lies on.
    fn device_of_file(path: &Path) -> Option<DeviceNumber> {
        let metadata = fs::metadata(path).ok()?;
        if metadata.file_type().is_block_device() {
            return Some(DeviceNumber::from_dev(metadata.rdev()));
        }
        let number = DeviceNumber::from_dev(metadata.dev());
        if number.major != 0 {
            return Some(number);
        }
        Mounts::read().ok()?.mount_of(&fs::canonicalize(path).ok()?)?.block_device()
    }

    /// Names of the devices that hold the device or a partition of it: "dm-0", "md127".
    pub fn holders(&self, number: DeviceNumber) -> Vec<String> {
        let parts = self.with_partitions(number).into_iter().filter_map(|number| self.directory(number));
        parts.flat_map(|directory| entries(&directory.join("holders"))).map(|holder| name(&holder)).collect()
    }

    /// The device and its partitions.
    pub fn with_partitions(&self, number: DeviceNumber) -> Vec<DeviceNumber> {
        let below = self.directory(number).map(|directory| entries(&directory)).unwrap_or_default();
        let partitions = below.iter().filter(|path| is_partition(path));
        std::iter::once(number).chain(partitions.filter_map(|path| read_device_number(path))).collect()
    }

    /// The device, its partitions, and all that they lie on: the disk of a partition, the members of device mapper and md, the
    /// file of a loop device.
    pub fn storage(&self, number: DeviceNumber) -> Storage {
        let mut storage = Storage::default();
        self.with_partitions(number).into_iter().for_each(|part| self.add_storage(part, &mut storage));
        storage
    }

    fn add_storage(&self, number: DeviceNumber, storage: &mut Storage) {
        if storage.devices.len() >= CHAIN_DEVICES_MAX || !storage.devices.insert(number) {
            return;
        }
        let Some(directory) = self.directory(number) else { return };
        let Some(backing_file) = backing_file(&directory) else {
            return self.below(&directory).into_iter().for_each(|below| self.add_storage(below, storage));
        };
        let device = LoopDevice { name: name(&directory), number, backing_file };
        match (LoopStatus::read(&device), fs::metadata(&device.backing_file)) {
            (Some(status), _) => {
                storage.files.insert(status.file);
                self.add_storage(status.block_device, storage);
            }
            (None, Ok(found)) => {
                storage.files.insert((found.dev(), found.ino()));
                self.add_storage(DeviceNumber::from_dev(found.rdev()), storage);
            }
            (None, Err(_)) => {}
        }
    }

    /// All members of the mounted btrfs that the device is one of; `None` if it is of none.
    pub fn btrfs_members(&self, device: DeviceNumber) -> Option<BTreeSet<DeviceNumber>> {
        let file_systems = entries(&self.sysfs.join("fs/btrfs")).into_iter();
        let mut members = file_systems.map(|directory| {
            entries(&directory.join("devices"))
                .iter()
                .filter_map(|member| read_device_number(member))
                .collect()
        });
        members.find(|members: &BTreeSet<DeviceNumber>| members.contains(&device))
    }

    pub fn loop_devices(&self) -> Vec<LoopDevice> {
        let devices = entries(&self.sysfs.join("block")).into_iter().filter_map(|directory| {
            let backing_file = backing_file(&directory)?;
            Some(LoopDevice { name: name(&directory), number: read_device_number(&directory)?, backing_file })
        });
        devices.collect()
    }
}

fn is_partition(directory: &Path) -> bool {
    directory.join("partition").exists()
}

/// Not trimmed: a file's name may end with a blank.
fn backing_file(directory: &Path) -> Option<PathBuf> {
    let mut bytes = read_kernel_file(directory.join("loop/backing_file")).ok()?;
    bytes.pop_if(|last| *last == b'\n');
    (!bytes.is_empty()).then(|| PathBuf::from(OsString::from_vec(bytes)))
}

fn size_bytes(directory: &Path) -> Option<u64> {
    read_number::<u64>(&directory.join("size"))?.checked_mul(SECTOR_BYTES)
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

fn name(directory: &Path) -> String {
    directory.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn read(path: &Path) -> Option<String> {
    let bytes = read_kernel_file(path).ok()?;
    let text = String::from_utf8_lossy(&bytes).trim().to_string();
    (!text.is_empty()).then_some(text)
}

fn read_number<T: std::str::FromStr>(path: &Path) -> Option<T> {
    read(path)?.parse().ok()
}

fn read_device_number(directory: &Path) -> Option<DeviceNumber> {
    DeviceNumber::parse(&read(&directory.join("dev"))?)
}

/// "none [mq-deadline] kyber" is mq-deadline; a device without a choice has just "none".
fn scheduler_in_use(text: &str) -> Option<String> {
    match text.split_once('[') {
        Some((_, rest)) => rest.split_once(']').map(|(name, _)| name.to_string()),
        None => (!text.contains(' ')).then(|| text.to_string()),
    }
}

#[cfg(test)]
mod tests;
