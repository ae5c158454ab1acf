//! The calls on an open file for which no crate has a safe function.

use rustix::io::Errno;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::ptr;

/// Queries about a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Query {
    /// The file of a loop device: `LOOP_GET_STATUS64` of include/uapi/linux/loop.h fills in `struct loop_info64`.
    LoopFile,
    /// The targets of a device-mapper device: `DM_TABLE_STATUS` of include/uapi/linux/dm-ioctl.h. The caller fills in
    /// `struct dm_ioctl` but its size of the buffer; the table follows it.
    MapperTable,
}

/// `struct loop_info64`, 232 bytes.
pub(crate) const LOOP_WORDS: usize = 29;
/// `struct dm_ioctl`, 312 bytes.
pub(crate) const MAPPER_WORDS: usize = 39;
const LOOP_GET_STATUS64: libc::c_long = 0x4C05;
const DM_TABLE_STATUS: libc::c_long = 0xC138_FD0C;
/// `F_SETSIG` of include/uapi/asm-generic/fcntl.h.
const F_SETSIG: libc::c_long = 10;

/// Asks `device`, which answers in `buffer`. `false` if it does not answer, or the buffer is too small.
pub(crate) fn query(device: &File, query: Query, buffer: &mut [u64]) -> bool {
    let least = match query {
        Query::LoopFile => LOOP_WORDS,
        Query::MapperTable => MAPPER_WORDS,
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
    call(device, Call::Query(query, buffer)).is_ok()
}

/// Takes a lease for reading on a file that is open for reading only, and gives it up at once (F_SETLEASE of fcntl(2)).
///
/// # Errors
/// `EAGAIN` where anything has the file open for writing; others where no lease is available: the file is another user's, or its
/// file system has none.
pub(crate) fn try_read_lease(file: &File) -> Result<(), Errno> {
    // A process that opens the file for writing during the lease makes the kernel send a signal: one that is ignored, not
    // SIGIO, which would end this process.
    call(file, Call::LeaseSignal(libc::SIGURG))?;
    call(file, Call::Lease(libc::F_RDLCK))?;
    call(file, Call::Lease(libc::F_UNLCK))
}

enum Call<'a> {
    /// The buffer holds what the query fills in.
    Query(Query, &'a mut [u64]),
    LeaseSignal(libc::c_int),
    Lease(libc::c_int),
}

fn call(file: &File, call: Call<'_>) -> Result<(), Errno> {
    let number = |value: libc::c_int| ptr::without_provenance_mut::<u64>(value as usize);
    let (function, request, argument) = match call {
        Call::Query(Query::LoopFile, buffer) => (libc::SYS_ioctl, LOOP_GET_STATUS64, buffer.as_mut_ptr()),
        Call::Query(Query::MapperTable, buffer) => (libc::SYS_ioctl, DM_TABLE_STATUS, buffer.as_mut_ptr()),
        Call::LeaseSignal(signal) => (libc::SYS_fcntl, F_SETSIG, number(signal)),
        Call::Lease(kind) => (libc::SYS_fcntl, libc::c_long::from(libc::F_SETLEASE), number(kind)),
    };
    // SAFETY: during an ioctl the kernel writes one `loop_info64`, or at most `data_size` bytes, which are the buffer's;
    // `query` has checked that it holds them. For a lease the argument is a number.
    match unsafe { libc::syscall(function, file.as_raw_fd(), request, argument) } {
        -1 => Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)),
        _ => Ok(()),
    }
}
