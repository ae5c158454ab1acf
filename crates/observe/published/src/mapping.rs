//! Memory as a table of atomics: of this process alone, or of a file that it publishes.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::ptr::{self, NonNull};

/// A table that a mapping can be viewed as.
///
/// # Safety
/// Any bytes are a valid value, it holds nothing but atomics (another process may write it at any time), and its
/// alignment is at most 4096.
pub unsafe trait Board {}

/// A mapping. Dropping it unmaps it, and removes its file if it was created here.
#[derive(Debug)]
pub struct Mapping {
    base: NonNull<u8>,
    bytes: usize,
    file: Option<Created>,
}

/// The file, and its identity: the name may belong to another file later, and the child of a fork did not create it.
#[derive(Debug)]
struct Created {
    path: PathBuf,
    inode: u64,
    pid: u32,
}

// SAFETY: the mapping is owned by this value and only reached as atomics.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Zeroed memory of this process alone.
    ///
    /// # Errors
    /// If there is not enough memory.
    pub fn private(bytes: usize) -> io::Result<Self> {
        let base = map(ptr::null_mut(), bytes, None)?;
        Ok(Self { base, bytes, file: None })
    }

    /// Maps a file, or zeroed private memory, at the same address. The child of a fork needs it: it would otherwise
    /// count into its parent's file.
    pub(crate) fn replace(&self, file: Option<&File>) -> io::Result<()> {
        map(self.base.as_ptr(), self.bytes, file).map(|_| ())
    }

    /// A new file of zeros that only this user can open.
    ///
    /// # Errors
    /// If the name exists or there is not enough space.
    pub fn create(path: &Path, bytes: usize) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create_new(true).mode(0o600).open(path)?;
        let made = reserve(&file, 0, bytes).and_then(|()| {
            let base = map(ptr::null_mut(), bytes, Some(&file))?;
            Ok((base, file.metadata()?.ino()))
        });
        match made {
            Ok((base, inode)) => Ok(Self {
                base,
                bytes,
                file: Some(Created { path: path.into(), inode, pid: std::process::id() }),
            }),
            Err(error) => {
                let _ = fs::remove_file(path);
                Err(error)
            }
        }
    }

    /// The file, if there is one.
    pub fn path(&self) -> Option<&Path> {
        self.file.as_ref().map(|created| created.path.as_path())
    }

    /// The bytes, of memory that is private to this process.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        assert!(self.file.is_none(), "another process may write a file's memory at any time");
        // SAFETY: the whole mapping, initialised by the kernel; private, and borrowed through `&mut self` only here.
        unsafe { std::slice::from_raw_parts_mut(self.base.as_ptr(), self.bytes) }
    }

    /// The memory as a table of atomics.
    pub fn as_board<T: Board>(&self) -> &T {
        assert!(size_of::<T>() <= self.bytes, "the table lies in the mapping");
        // SAFETY: within the mapping by the assertion, at the alignment of a page, valid as long as `self`; that any
        // bytes are a T is the promise of `Board`.
        unsafe { self.base.cast::<T>().as_ref() }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: this value owns the mapping, and no borrow of it outlives `self`.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.bytes) };
        if let Some(Created { path, inode, pid }) = &self.file
            && *pid == std::process::id()
            && fs::symlink_metadata(path).is_ok_and(|found| found.ino() == *inode)
        {
            let _ = fs::remove_file(path);
        }
    }
}

/// Allocates blocks of a file. Without this, a full /dev/shm would kill the program with SIGBUS at the first access.
///
/// # Errors
/// If there is not enough space.
pub fn reserve(file: &File, offset: usize, bytes: usize) -> io::Result<()> {
    // SAFETY: a plain system call on a descriptor that is open.
    match unsafe { libc::posix_fallocate(file.as_raw_fd(), offset as i64, bytes as i64) } {
        0 => Ok(()),
        errno => Err(io::Error::from_raw_os_error(errno)),
    }
}

fn map(at: *mut u8, bytes: usize, file: Option<&File>) -> io::Result<NonNull<u8>> {
    let place = if at.is_null() { 0 } else { libc::MAP_FIXED };
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let (flags, fd) = match file {
        Some(file) => (libc::MAP_SHARED, file.as_raw_fd()),
        None => (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1),
    };
    // SAFETY: either the kernel chooses the address, or `at` is a mapping of ours of the same length, which is replaced.
    let base = unsafe { libc::mmap(at.cast(), bytes, protection, flags | place, fd, 0) };
    if base == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    NonNull::new(base.cast()).ok_or_else(|| io::Error::other("mapped at address zero"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[repr(C)]
    struct Two([AtomicU64; 2]);
    // SAFETY: two atomics.
    unsafe impl Board for Two {}

    #[test]
    fn private_memory_is_written_as_bytes_and_read_as_a_board() {
        let mut copy = Mapping::private(4096).unwrap();
        assert!(copy.path().is_none() && copy.as_board::<Two>().0[1].load(Ordering::Relaxed) == 0);
        copy.bytes_mut()[8..16].copy_from_slice(&7_u64.to_ne_bytes());
        assert_eq!(copy.as_board::<Two>().0[1].load(Ordering::Relaxed), 7);
        copy.as_board::<Two>().0[1].fetch_add(1, Ordering::Relaxed);
        assert_eq!(copy.bytes_mut()[8], u64::to_ne_bytes(8)[0]);
    }

    #[test]
    fn a_file_goes_with_its_creator_and_its_name_is_used_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.counters");
        let writer = Mapping::create(&path, 4096).unwrap();
        assert!(Mapping::create(&path, 4096).is_err());
        writer.as_board::<Two>().0[1].fetch_add(7, Ordering::Relaxed);
        assert_eq!(fs::read(&path).unwrap()[8], 7);
        drop(writer);
        assert!(!path.exists());
        let (first, replaced) = (Mapping::create(&path, 4096).unwrap(), dir.path().join("b"));
        fs::rename(&path, replaced).unwrap();
        fs::write(&path, "of another process").unwrap();
        drop(first);
        assert!(path.exists());
    }
}
