//! The memory that holds the counters of this process: one mapping, anonymous or of a file.

use crate::layout::{REGION_BYTES, Table};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::{self, NonNull};

/// A mapping of [`REGION_BYTES`] that is never unmapped: open files hold references into it.
#[derive(Debug)]
pub(crate) struct Region {
    base: NonNull<u8>,
}

// SAFETY: the mapping is valid for the life of the process and is only reached as atomics.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

impl Region {
    /// Zeroed memory that only this process sees.
    pub fn private() -> io::Result<Region> {
        map(ptr::null_mut(), None).map(|base| Region { base })
    }

    /// Maps a file, or zeroed private memory, at the same address. The child of a fork needs it: it would otherwise
    /// count into its parent's file.
    pub fn replace(&self, file: Option<&File>) -> io::Result<()> {
        map(self.base.as_ptr(), file).map(|_| ())
    }

    pub fn table(&self) -> &'static Table {
        // SAFETY: the mapping has the table's length, is page-aligned, never unmapped, and any bytes are a valid table.
        unsafe { self.base.cast().as_ref() }
    }
}

fn map(at: *mut u8, file: Option<&File>) -> io::Result<NonNull<u8>> {
    let place = if at.is_null() { 0 } else { libc::MAP_FIXED };
    let (flags, fd) = match file {
        Some(file) => (libc::MAP_SHARED, file.as_raw_fd()),
        None => (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1),
    };
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: either the kernel chooses the address, or `at` is a mapping of ours of the same length,
    // which is replaced.
    let base = unsafe { libc::mmap(at.cast(), REGION_BYTES, protection, flags | place, fd, 0) };
    if base == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    NonNull::new(base.cast()).ok_or_else(|| io::Error::other("mapped at address zero"))
}
