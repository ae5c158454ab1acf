use super::LoopDevice;
use crate::DeviceNumber;
use crate::file_call::{LOOP_WORDS, Query, query};
use std::fs::OpenOptions;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// The file that a loop device is attached to, by device and inode, which hard links, renames and removal do not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LoopStatus {
    /// `st_dev` and `st_ino`.
    pub file: (u64, u64),
    /// If the file is a block device.
    pub block_device: DeviceNumber,
}

impl LoopStatus {
    /// `None` if this user may not open the device, or it is detached by now.
    pub fn read(device: &LoopDevice) -> Option<LoopStatus> {
        let path = Path::new("/dev").join(&device.name);
        let opened = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path).ok()?;
        if DeviceNumber::from_dev(opened.metadata().ok()?.rdev()) != device.number {
            return None;
        }
        // lo_device, lo_inode and lo_rdevice of `struct loop_info64`.
        let mut info = [0; LOOP_WORDS];
        let is_attached = query(&opened, Query::LoopFile, &mut info);
        let [device, inode, rdevice, ..] = info;
        // The kernel encodes these numbers as `st_dev`.
        is_attached
            .then(|| LoopStatus { file: (device, inode), block_device: DeviceNumber::from_dev(rdevice) })
    }
}
