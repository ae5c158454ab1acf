//! Writes to the data file through a memory mapping: an alternative for redo, to be compared with direct I/O.
//!
//! Space is allocated before it is mapped, since a store to a hole of a full file system would kill the process. A
//! failed write-back is reported by the sync. A read error of the device during a page fault does kill the process
//! (`SIGBUS`), which is why direct I/O is the default.

use rustix::fs::{FallocateFlags, fallocate};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;
use std::sync::{PoisonError, RwLock};

/// The mapping grows by at least this much.
const GROWTH_BYTES: u64 = 64 << 20;

/// The mapping of a file: created by the first write and dropped by the sync.
#[derive(Default)]
pub(super) struct MappedFile {
    mapping: RwLock<Option<Mapping>>,
}

struct Mapping {
    start: NonNull<libc::c_void>,
    bytes: usize,
}

// SAFETY: the memory belongs to the mapping and is not tied to a thread. Writers hold the lock, and no two write to
// the same range.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    fn new(file: &File, bytes: usize) -> io::Result<Self> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new shared mapping at an address of the kernel's choice does not overlap our memory.
        let start = unsafe {
            libc::mmap(std::ptr::null_mut(), bytes, protection, libc::MAP_SHARED, file.as_raw_fd(), 0)
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start).ok_or_else(|| io::Error::other("a file was mapped at address 0"))?;
        Ok(Self { start, bytes })
    }

    fn sync(&self) -> io::Result<()> {
        // SAFETY: the range is exactly our mapping.
        let failed = unsafe { libc::msync(self.start.as_ptr(), self.bytes, libc::MS_SYNC) } != 0;
        if failed { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours and nothing refers to it any more. Unmapping an existing mapping cannot fail.
        unsafe { libc::munmap(self.start.as_ptr(), self.bytes) };
    }
}

impl MappedFile {
    /// Copies `bytes` to `offset` of the file; durable after `sync`.
    pub(super) fn write(&self, file: &File, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let end = offset + bytes.len() as u64;
        loop {
            {
                let mapping = self.mapping.read().unwrap_or_else(PoisonError::into_inner);
                if let Some(mapping) = mapping.as_ref().filter(|mapping| mapping.bytes as u64 >= end) {
                    // SAFETY: `end` is inside the mapping, whose space is allocated, and no other thread writes
                    // this page.
                    unsafe {
                        let to = mapping.start.as_ptr().cast::<u8>().add(offset as usize);
                        std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len());
                    }
                    return Ok(());
                }
            }
            self.grow(file, end)?;
        }
    }

    fn grow(&self, file: &File, end: u64) -> io::Result<()> {
        let mut mapping = self.mapping.write().unwrap_or_else(PoisonError::into_inner);
        if mapping.as_ref().is_some_and(|mapping| mapping.bytes as u64 >= end) {
            return Ok(());
        }
        let length = file.metadata()?.len().max(end.next_multiple_of(GROWTH_BYTES));
        fallocate(file, FallocateFlags::empty(), 0, length)?;
        if let Some(before) = mapping.take() {
            before.sync()?;
        }
        *mapping = Some(Mapping::new(file, length as usize)?);
        Ok(())
    }

    /// Makes everything written to the mapping durable, and unmaps it.
    pub(super) fn sync(&self) -> io::Result<()> {
        let mapping = self.mapping.write().unwrap_or_else(PoisonError::into_inner).take();
        mapping.map_or(Ok(()), |mapping| mapping.sync())
    }
}
