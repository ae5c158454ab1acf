//! A target mapped into memory. Access to a page that cannot be read (the disk fails, or the file was truncated) raises
//! `SIGBUS`; the handler turns it into an error of the I/O that accessed it.

use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, RawFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, Once, PoisonError};
use storage::Region;

/// The whole of a region, mapped shared.
#[derive(Debug)]
pub struct Mapping {
    memory: NonNull<u8>,
    bytes: usize,
    offset: u64,
    place: usize,
    /// Of the region, which outlives the mapping.
    file: RawFd,
    protection: libc::c_int,
}

// SAFETY: this value owns the mapping. Its bytes are only copied from and to it by raw pointers, never borrowed; load
// threads may race on a block, as processes do on any shared file mapping, and nothing depends on the bytes.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

/// Most mappings at once: targets of one run.
const MAPPINGS_MAX: usize = 64;
const PAGE_BYTES: usize = 4096;

/// Start and end of every mapping, and the number of faults in it, for the signal handler, which cannot take a lock.
static STARTS: [AtomicUsize; MAPPINGS_MAX] = [const { AtomicUsize::new(0) }; MAPPINGS_MAX];
static ENDS: [AtomicUsize; MAPPINGS_MAX] = [const { AtomicUsize::new(0) }; MAPPINGS_MAX];
static FAULTS: [AtomicUsize; MAPPINGS_MAX] = [const { AtomicUsize::new(0) }; MAPPINGS_MAX];
static CLAIM: Mutex<()> = Mutex::new(());
static HANDLER: Once = Once::new();

impl Mapping {
    /// Maps a region, for writing if `writable`.
    ///
    /// # Errors
    /// Errors of `mmap`: `ENODEV` where the file system cannot, `ENOMEM`.
    pub fn new(region: &Region, writable: bool) -> io::Result<Mapping> {
        HANDLER.call_once(install_handler);
        // A mapping begins at a page.
        let offset = region.offset_bytes - region.offset_bytes % PAGE_BYTES as u64;
        let bytes = (region.offset_bytes + region.bytes - offset) as usize;
        let protection = if writable { libc::PROT_READ | libc::PROT_WRITE } else { libc::PROT_READ };
        let file = region.file.as_raw_fd();
        // SAFETY: a new mapping of an open file at an address of the kernel's choice.
        let memory = unsafe {
            libc::mmap(std::ptr::null_mut(), bytes, protection, libc::MAP_SHARED, file, offset as i64)
        };
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let memory = NonNull::new(memory.cast::<u8>()).expect("mmap gives no null");
        let _claim = CLAIM.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(place) = STARTS.iter().position(|start| start.load(Relaxed) == 0) else {
            // SAFETY: the mapping made above, to which no pointer is kept.
            unsafe { libc::munmap(memory.as_ptr().cast(), bytes) };
            return Err(io::Error::from_raw_os_error(libc::EMFILE));
        };
        FAULTS[place].store(0, Relaxed);
        ENDS[place].store(memory.as_ptr() as usize + bytes, Relaxed);
        STARTS[place].store(memory.as_ptr() as usize, Relaxed);
        Ok(Mapping { memory, bytes, offset, place, file, protection })
    }

    fn pointer(&self, offset: u64, bytes: usize) -> *mut u8 {
        let inside = offset.checked_sub(self.offset).and_then(|at| usize::try_from(at).ok());
        let inside = inside.filter(|at| at.checked_add(bytes).is_some_and(|end| end <= self.bytes));
        let at = inside.expect("an I/O lies in its region");
        // SAFETY: within the mapping, as asserted.
        unsafe { self.memory.as_ptr().add(at) }
    }

    /// Faults since the mapping was made. Threads that share it also see each other's: an I/O that ran at the same time as
    /// a faulting one may count as failed; and one on the same page, between the fault and `restore`, may succeed although
    /// it read zeros.
    fn faults(&self) -> usize {
        FAULTS[self.place].load(Relaxed)
    }

    fn unless_faulted(&self, before: usize, part: *mut u8, bytes: usize) -> io::Result<usize> {
        if self.faults() == before {
            return Ok(bytes);
        }
        self.restore(part as usize, bytes);
        Err(io::Error::from_raw_os_error(libc::EIO))
    }

    /// Maps the file again where the handler may have put zeros, so that the next I/O there accesses the storage.
    #[cold]
    fn restore(&self, part: usize, bytes: usize) {
        let start = part / PAGE_BYTES * PAGE_BYTES;
        let offset = self.offset + (start - self.memory.as_ptr() as usize) as u64;
        let flags = libc::MAP_SHARED | libc::MAP_FIXED;
        let (address, bytes) = (start as *mut libc::c_void, part + bytes - start);
        // SAFETY: replaces pages of this mapping with the same pages of its file; if that fails, the zeros stay.
        unsafe { libc::mmap(address, bytes, self.protection, flags, self.file, offset as i64) };
    }

    /// Copies from the mapping.
    ///
    /// # Errors
    /// `EIO` where a page could not be read.
    pub fn read(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        let before = self.faults();
        let part = self.pointer(offset, into.len());
        // SAFETY: both are `into.len()` long, see `pointer`; the handler replaces a page that cannot be read
        // with zeros.
        unsafe { std::ptr::copy_nonoverlapping(part, into.as_mut_ptr(), into.len()) };
        self.unless_faulted(before, part, into.len())
    }

    /// Copies to the mapping; with `sync`, waits until that is on the storage.
    ///
    /// # Errors
    /// `EIO` where a page could not be read, or the error of `msync`.
    pub fn write(&self, from: &[u8], offset: u64, sync: bool) -> io::Result<usize> {
        let before = self.faults();
        let part = self.pointer(offset, from.len());
        // SAFETY: as in `read`; the mapping is writable where a workload writes.
        unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), part, from.len()) };
        let mut synced = Ok(());
        if sync {
            let start = part as usize / PAGE_BYTES * PAGE_BYTES;
            synced = self.sync(start..part as usize + from.len());
        }
        let written = self.unless_faulted(before, part, from.len())?;
        synced.map(|()| written)
    }

    /// Makes everything durable that was written through the mapping.
    ///
    /// # Errors
    /// The error of `msync`.
    pub fn sync_all(&self) -> io::Result<()> {
        let start = self.memory.as_ptr() as usize;
        self.sync(start..start + self.bytes)
    }

    fn sync(&self, range: Range<usize>) -> io::Result<()> {
        // SAFETY: a part of this mapping that begins at a page.
        let result = unsafe { libc::msync(range.start as *mut libc::c_void, range.len(), libc::MS_SYNC) };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        STARTS[self.place].store(0, Relaxed);
        // SAFETY: a mapping of this value, unmapped once; the threads that used it have ended.
        unsafe { libc::munmap(self.memory.as_ptr().cast(), self.bytes) };
    }
}

fn install_handler() {
    // SAFETY: `action` is plain memory that the call reads; the handler does only what is allowed in one.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_bus_error as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO;
        libc::sigaction(libc::SIGBUS, &action, std::ptr::null_mut());
    }
}

/// Replaces a page that cannot be read with zeros, so that the copy continues, and counts the fault. For a fault outside
/// the mappings it restores the default action, which ends the program when the access is repeated.
extern "C" fn on_bus_error(_: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the kernel passes a valid siginfo. mmap is a plain system call, which is safe in a handler on Linux although
    // POSIX does not list it; the page lies in a mapping of this module.
    unsafe {
        let address = (*info).si_addr() as usize;
        for place in 0..MAPPINGS_MAX {
            let start = STARTS[place].load(Relaxed);
            if start != 0 && address >= start && address < ENDS[place].load(Relaxed) {
                FAULTS[place].fetch_add(1, Relaxed);
                let page = (address / PAGE_BYTES * PAGE_BYTES) as *mut libc::c_void;
                let protection = libc::PROT_READ | libc::PROT_WRITE;
                let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
                if libc::mmap(page, PAGE_BYTES, protection, flags, -1, 0) == libc::MAP_FAILED {
                    // Too many mappings: one that replaces the whole range needs no additional one.
                    let whole = start as *mut libc::c_void;
                    libc::mmap(whole, ENDS[place].load(Relaxed) - start, protection, flags, -1, 0);
                }
                return;
            }
        }
        libc::signal(libc::SIGBUS, libc::SIG_DFL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    #[test]
    fn each_io_beyond_the_end_of_the_file_fails_until_it_is_long_enough_again() {
        let path = tempfile::NamedTempFile::new().unwrap().into_temp_path();
        std::fs::write(&path, vec![7; 8 * PAGE_BYTES]).unwrap();
        let file = File::options().read(true).write(true).open(&path).unwrap();
        let region = Region {
            file,
            offset_bytes: 0,
            bytes: 8 * PAGE_BYTES as u64,
            direct: false,
            align_bytes: 1,
            memory_align_bytes: 1,
            path: path.to_path_buf(),
            volume: None,
        };
        let mapping = Mapping::new(&region, true).unwrap();
        let mut block = vec![0; 2 * PAGE_BYTES];
        let at = 5 * PAGE_BYTES as u64;
        assert_eq!(mapping.read(&mut block, at).unwrap(), block.len());
        region.file.set_len(4 * PAGE_BYTES as u64).unwrap();
        for _ in 0..2 {
            let error = mapping.read(&mut block, at).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::EIO));
            assert!(mapping.write(&block, at, false).is_err());
        }
        assert_eq!(mapping.read(&mut block, 0).unwrap(), block.len());
        region.file.set_len(8 * PAGE_BYTES as u64).unwrap();
        mapping.write(&[9; 16], at, true).unwrap();
        assert_eq!(mapping.read(&mut block, at).unwrap(), block.len());
        assert_eq!((block[0], block[15], block[16]), (9, 9, 0));
        assert_eq!(std::fs::read(&path).unwrap()[at as usize], 9, "in the file, not beside it");
    }
}
