//! A file's bytes, or memory of this process alone, as a table of atomics.

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

/// What a mapping is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reading only.
    Read,
    /// Reading and writing.
    Write,
}

/// A mapping. Dropping it unmaps it, and removes its file if it was created here.
#[derive(Debug)]
pub struct Mapping {
    base: NonNull<u8>,
    bytes: usize,
    file: Option<Mapped>,
}

#[derive(Debug)]
struct Mapped {
    file: File,
    path: PathBuf,
    /// The file's inode and the process that created it: the name may belong to another file later, and the child of a fork
    /// did not create it.
    created: Option<(u64, u32)>,
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
        let base = map(bytes, Access::Write, None)?;
        Ok(Self { base, bytes, file: None })
    }

    /// A new file of zeros that only this user can open.
    ///
    /// # Errors
    /// If the name exists or there is not enough space.
    pub fn create(path: &Path, bytes: usize) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create_new(true).mode(0o600).open(path)?;
        let made = reserve(&file, 0, bytes).and_then(|()| {
            let base = map(bytes, Access::Write, Some(&file))?;
            Ok((base, file.metadata()?.ino()))
        });
        match made {
            Ok((base, inode)) => {
                let created = Some((inode, std::process::id()));
                Ok(Self { base, bytes, file: Some(Mapped { file, path: path.into(), created }) })
            }
            Err(error) => {
                let _ = fs::remove_file(path);
                Err(error)
            }
        }
    }

    /// A file that another process created; `None` if its size is another one.
    ///
    /// # Errors
    /// If it cannot be opened or mapped.
    pub fn open(path: &Path, bytes: usize, access: Access) -> io::Result<Option<Self>> {
        let mut options = OpenOptions::new();
        // A link planted in a shared directory is not followed, and opening a pipe without a writer does not block.
        options.read(true).write(access == Access::Write).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
        let file = options.open(path)?;
        if !has_size(&file, bytes) {
            return Ok(None);
        }
        let base = map(bytes, access, Some(&file))?;
        Ok(Some(Self { base, bytes, file: Some(Mapped { file, path: path.into(), created: None }) }))
    }

    /// The file, if there is one.
    pub fn path(&self) -> Option<&Path> {
        self.file.as_ref().map(|mapped| mapped.path.as_path())
    }

    /// Whether the file still has its size: touching memory beyond the end of its file would kill this process.
    pub fn is_whole(&self) -> bool {
        self.file.as_ref().is_none_or(|mapped| has_size(&mapped.file, self.bytes))
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
        if let Some(Mapped { path, created: Some((inode, pid)), .. }) = &self.file
            && *pid == std::process::id()
            && fs::symlink_metadata(path).is_ok_and(|found| found.ino() == *inode)
        {
            let _ = fs::remove_file(path);
        }
    }
}

fn has_size(file: &File, bytes: usize) -> bool {
    file.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.len() == bytes as u64)
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

fn map(bytes: usize, access: Access, file: Option<&File>) -> io::Result<NonNull<u8>> {
    let protection = libc::PROT_READ | if access == Access::Write { libc::PROT_WRITE } else { 0 };
    let (flags, fd) = match file {
        Some(file) => (libc::MAP_SHARED, file.as_raw_fd()),
        None => (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1),
    };
    // SAFETY: a new mapping at an address of the kernel's choice.
    let base = unsafe { libc::mmap(ptr::null_mut(), bytes, protection, flags, fd, 0) };
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
    fn a_second_mapping_reads_what_the_first_adds_and_the_file_goes_with_its_creator() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.counters");
        let writer = Mapping::create(&path, 4096).unwrap();
        assert!(Mapping::create(&path, 4096).is_err(), "a name is used once");
        let reader = Mapping::open(&path, 4096, Access::Write).unwrap().unwrap();
        writer.as_board::<Two>().0[1].fetch_add(7, Ordering::Relaxed);
        assert_eq!(reader.as_board::<Two>().0[1].load(Ordering::Relaxed), 7);
        assert!(
            Mapping::open(&path, 8192, Access::Write).unwrap().is_none(),
            "another size is another layout"
        );
        drop(writer);
        assert!(!path.exists() && reader.is_whole());
        assert_eq!(reader.as_board::<Two>().0[1].load(Ordering::Relaxed), 7);
    }

    #[test]
    fn a_truncated_file_is_recognised_before_it_is_accessed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.counters");
        let writer = Mapping::create(&path, 4096).unwrap();
        let reader = Mapping::open(&path, 4096, Access::Write).unwrap().unwrap();
        OpenOptions::new().write(true).open(&path).unwrap().set_len(10).unwrap();
        assert!(!reader.is_whole());
        drop(writer);
    }
}
