//! The data file written through memory: the other way to apply redo, to be compared with direct I/O.
//!
//! The space is reserved before it is mapped, for a store into a hole of a full file system would end the process; a
//! failed write-back is told by the sync. A read error of the device while a page is brought in does end the process
//! (`SIGBUS`): that is the price of this way, and why direct I/O is the default.

use rustix::fs::{FallocateFlags, fallocate};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;
use std::sync::{PoisonError, RwLock};

/// The mapping grows by at least this much.
const GROWTH_BYTES: u64 = 64 << 20;

/// The mapping of a file, made at the first write and given up at the sync.
#[derive(Default)]
pub(super) struct MappedFile {
    mapping: RwLock<Option<Mapping>>,
}

struct Mapping {
    start: NonNull<libc::c_void>,
    bytes: usize,
}

// SAFETY: the memory belongs to the mapping and not to a thread; who writes to it holds the lock, and no two write
// to one place.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    fn of(file: &File, bytes: usize) -> io::Result<Self> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new shared mapping at an address of the kernel's choice touches no memory of ours.
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
        // SAFETY: the whole of an own mapping.
        let failed = unsafe { libc::msync(self.start.as_ptr(), self.bytes, libc::MS_SYNC) } != 0;
        if failed { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: an own mapping that nothing refers to any more. It cannot fail for a mapping that is there.
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
                    // SAFETY: `end` is inside the mapping, whose space is reserved; pages are written by one each.
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
        *mapping = Some(Mapping::of(file, length as usize)?);
        Ok(())
    }

    /// Makes what was written durable as far as the mapping goes, and gives it up.
    pub(super) fn sync(&self) -> io::Result<()> {
        let mapping = self.mapping.write().unwrap_or_else(PoisonError::into_inner).take();
        mapping.map_or(Ok(()), |mapping| mapping.sync())
    }
}
