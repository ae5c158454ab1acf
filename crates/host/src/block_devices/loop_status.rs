use super::LoopDevice;
use crate::DeviceNumber;
use std::fs::OpenOptions;
use std::os::fd::AsRawFd;
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

/// include/uapi/linux/loop.h
const LOOP_GET_STATUS64: libc::Ioctl = 0x4C05;

/// `struct loop_info64`, 232 bytes.
#[repr(C)]
struct LoopInfo {
    device: u64,
    inode: u64,
    rdevice: u64,
    rest: [u64; 26],
}

impl LoopStatus {
    /// `None` if this user may not open the device, or it is detached by now.
    pub fn read(device: &LoopDevice) -> Option<LoopStatus> {
        let path = Path::new("/dev").join(&device.name);
        let opened = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path).ok()?;
        if DeviceNumber::from_dev(opened.metadata().ok()?.rdev()) != device.number {
            return None;
        }
        let mut info = LoopInfo { device: 0, inode: 0, rdevice: 0, rest: [0; 26] };
        // SAFETY: the kernel writes one `loop_info64` during the call, and `info` has its size.
        let done = unsafe { libc::ioctl(opened.as_raw_fd(), LOOP_GET_STATUS64, &raw mut info) };
        // The kernel encodes these numbers as `st_dev`.
        let LoopInfo { device, inode, rdevice, .. } = info;
        (done == 0)
            .then(|| LoopStatus { file: (device, inode), block_device: DeviceNumber::from_dev(rdevice) })
    }
}
