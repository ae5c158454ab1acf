//! The ioctls that say what a device is made of.

use std::fs::File;
use std::os::fd::AsRawFd;

/// Which question to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Query {
    /// The file of a loop device: `LOOP_GET_STATUS64` of include/uapi/linux/loop.h fills in `struct loop_info64`.
    LoopFile,
    /// The targets of a device-mapper device: `DM_TABLE_STATUS` of include/uapi/linux/dm-ioctl.h. The caller fills in
    /// `struct dm_ioctl` but its size of the buffer; the table follows it.
    MapperTable,
}

/// `struct loop_info64`, 232 bytes.
pub(super) const LOOP_WORDS: usize = 29;
/// `struct dm_ioctl`, 312 bytes.
pub(super) const MAPPER_WORDS: usize = 39;
const LOOP_GET_STATUS64: libc::Ioctl = 0x4C05;
const DM_TABLE_STATUS: libc::Ioctl = 0xC138_FD0C_u32 as libc::Ioctl;

/// Asks `device`, which answers in `buffer`. `false` if it does not answer, or the buffer is too small.
pub(super) fn query(device: &File, query: Query, buffer: &mut [u64]) -> bool {
    let (request, least) = match query {
        Query::LoopFile => (LOOP_GET_STATUS64, LOOP_WORDS),
        Query::MapperTable => (DM_TABLE_STATUS, MAPPER_WORDS),
    };
    let Ok(bytes) = u32::try_from(size_of_val(buffer)) else { return false };
    if buffer.len() < least {
        return false;
    }
    if query == Query::MapperTable {
        // version u32 x 3, data_size u32
        let [a, b, c, d, ..] = buffer[1].to_ne_bytes();
        let [e, f, g, h] = bytes.to_ne_bytes();
        buffer[1] = u64::from_ne_bytes([a, b, c, d, e, f, g, h]);
    }
    // SAFETY: during the call the kernel writes one `loop_info64`, or at most `data_size` bytes, which are the buffer's; it
    // has at least so many.
    unsafe { libc::ioctl(device.as_raw_fd(), request, buffer.as_mut_ptr()) == 0 }
}
