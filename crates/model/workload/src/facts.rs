use crate::format_bytes;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Kind of target that load runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum TargetKind {
    /// A directory: Headroom makes its own test file in it.
    Directory,
    /// A regular file.
    File,
    /// A whole block device or partition.
    BlockDevice,
}

/// Whether a device acknowledges writes before they are durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum WriteCache {
    /// Volatile cache: durable only after a flush.
    WriteBack,
    /// None that matters: a completed write is durable.
    WriteThrough,
}

/// Kind of a block device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum DeviceKind {
    /// A disk, or what the kernel presents as one.
    Disk,
    /// A partition of a disk.
    Partition,
    /// A file as a device.
    Loop,
    /// Device mapper: LVM, dm-crypt, multipath.
    Dm,
    /// Linux software RAID.
    Md,
    /// Several targets that Headroom uses as one.
    Layout,
    /// A kind that a later version reports.
    #[serde(untagged)]
    Other(String),
}

impl fmt::Display for DeviceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// One block device of the chain below a target, as sysfs describes it. `None`: unknown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeviceFacts {
    /// Kernel name ("vda", "loop0", "dm-3").
    pub name: String,
    /// Major and minor number, "254:0".
    pub number: String,
    /// Kind of device.
    pub kind: DeviceKind,
    /// Vendor's model string.
    pub model: Option<String>,
    /// File behind a loop device.
    pub backing_file: Option<String>,
    /// Bytes.
    pub size_bytes: u64,
    /// Whether the device says that it rotates.
    pub rotational: Option<bool>,
    /// The I/O scheduler in use.
    pub scheduler: Option<String>,
    /// Requests the kernel lets wait for the device in each hardware queue.
    pub requests_max: Option<u32>,
    /// Hardware queues.
    pub queues: Option<u32>,
    /// Largest single request in bytes.
    pub request_bytes_max: Option<u64>,
    /// Smallest addressable unit in bytes.
    pub logical_block_bytes: Option<u32>,
    /// Unit in which the device really writes, bytes.
    pub physical_block_bytes: Option<u32>,
    /// Volatile write cache or none.
    pub write_cache: Option<WriteCache>,
    /// How LVM, md or device mapper makes it of others.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub layout: Option<DeviceLayout>,
}

/// A layout that the host made, as sysfs shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeviceLayout {
    /// "LVM", "LUKS", "device mapper" or "md".
    pub made_by: String,
    /// "span", "stripe:64K", "linear" (a part of one device), "raid5, unit 512K", "crypt", "thin"; "not known" where this user
    /// may not read device mapper's table.
    pub how: String,
    /// Names of its members: "sda1".
    pub members: Vec<String>,
}

/// Operations or bytes that a limit on a device counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum CapKind {
    /// Reads a second.
    ReadIops,
    /// Writes a second.
    WriteIops,
    /// Bytes read a second.
    ReadBytes,
    /// Bytes written a second.
    WriteBytes,
}

/// A limit set from outside the device (a cgroup's throttle).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cap {
    /// Operations or bytes that the limit counts.
    pub kind: CapKind,
    /// Most operations or bytes a second.
    pub per_second: u64,
    /// The device it is set on, "254:0".
    pub device: String,
    /// Where it is set.
    pub origin: String,
}

/// Facts about a target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TargetFacts {
    /// As the user named it, made absolute.
    pub path: String,
    /// Kind of target.
    pub kind: TargetKind,
    /// File system ("ext4"); none for a block device.
    pub filesystem: Option<String>,
    /// Where that file system is mounted.
    pub mount: Option<String>,
    /// Bytes free to Headroom, or the device's size.
    pub free_bytes: u64,
    /// The device chain from the one the file system is on, down to the lowest the kernel shows.
    pub devices: Vec<DeviceFacts>,
    /// Offsets and lengths of direct I/O must be multiples of this; `None` if direct I/O is unavailable.
    pub direct_align_bytes: Option<u32>,
    /// Buffers of direct I/O must be aligned to this.
    pub memory_align_bytes: u32,
    /// Throttles in force on the chain.
    pub caps: Vec<Cap>,
}

impl TargetFacts {
    /// The device number of the top of the chain, which identifies the storage: two directories of one file
    /// system share it, and so share a capability.
    pub fn device_number(&self) -> Option<&str> {
        self.devices.first().map(|device| device.number.as_str())
    }
}

/// "2000 reads a second".
impl fmt::Display for Cap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            CapKind::ReadIops => write!(f, "{} reads a second", self.per_second),
            CapKind::WriteIops => write!(f, "{} writes a second", self.per_second),
            CapKind::ReadBytes => write!(f, "{} read a second", format_bytes(self.per_second)),
            CapKind::WriteBytes => write!(f, "{} written a second", format_bytes(self.per_second)),
        }
    }
}
