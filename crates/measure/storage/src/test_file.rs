use crate::alignment::{self, Alignment};
use crate::fill::{self, CHUNK_BYTES, NotFilled};
use crate::region::OpenMode;
use crate::{Region, StorageError, Workspace};
use host::Mounts;
use rustix::fd::OwnedFd;
use rustix::fs::{Advice, AtFlags, FallocateFlags, OFlags, StatVfs};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use workload::Caching;

/// Progress of writing a test file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FillProgress {
    /// Bytes written.
    pub done_bytes: u64,
    /// Bytes to write.
    pub total_bytes: u64,
}

/// A file in a workspace, filled with incompressible data, so that every block can be read from the storage. Removed
/// when dropped.
#[derive(Debug)]
pub struct TestFile {
    file: File,
    directory: OwnedFd,
    name: String,
    path: PathBuf,
    /// The directory that people know, for errors.
    dir: PathBuf,
    bytes: u64,
    /// Bytes that are written, from its beginning.
    filled_bytes: u64,
    alignment: Option<Alignment>,
    filesystem: Option<String>,
}

/// A file that is begun is at least this large when its time is up, or whole.
pub const BEGUN_BYTES_MIN: u64 = 64 << 20;

/// Share of the file system that a test file leaves free.
const RESERVE_PERCENT: u64 = 5;
/// It leaves at least this free (a tenth of a file system smaller than ten times this).
pub const RESERVE_BYTES_MIN: u64 = 1 << 30;
/// It leaves at most this free: on very large file systems less than 5 % is safe.
pub const RESERVE_BYTES_MAX: u64 = 64 << 30;

/// Bytes that a test file leaves free on a file system of that size.
pub fn reserve_bytes(filesystem_bytes: u64) -> u64 {
    let least = RESERVE_BYTES_MIN.min(filesystem_bytes / 10);
    (filesystem_bytes / 100 * RESERVE_PERCENT).clamp(least, RESERVE_BYTES_MAX)
}

impl Workspace {
    /// Makes a test file `headroom-NAME` of `bytes`, rounded up to whole MiB: allocated, written in full and synced.
    /// `on_progress` is called several times a second, also without progress, and may end it.
    ///
    /// # Errors
    /// As [`check_room`](Self::check_room), before anything is made;
    /// [`StorageError::Filling`] if the storage fails half-way (full after all, quota, I/O error);
    /// [`StorageError::Interrupted`]. The file is removed then.
    ///
    /// # Panics
    /// If `bytes` is 0.
    pub fn test_file(
        &self,
        name: &str,
        bytes: u64,
        on_progress: &mut dyn FnMut(FillProgress) -> ControlFlow<()>,
    ) -> Result<TestFile, StorageError> {
        let mut made = self.begin_test_file(name, bytes, Duration::MAX, on_progress)?;
        made.complete(on_progress)?;
        Ok(made)
    }

    /// Begins a test file as [`test_file`](Self::test_file) makes it: allocated, and written and synced as far as it comes in
    /// `time`, but at least [`BEGUN_BYTES_MIN`]. [`TestFile::complete`] writes the rest.
    ///
    /// # Errors
    /// As [`test_file`](Self::test_file).
    ///
    /// # Panics
    /// If `bytes` is 0.
    pub fn begin_test_file(
        &self,
        name: &str,
        bytes: u64,
        time: Duration,
        on_progress: &mut dyn FnMut(FillProgress) -> ControlFlow<()>,
    ) -> Result<TestFile, StorageError> {
        assert!(bytes > 0, "a test file of 0 bytes measures nothing");
        let bytes = whole_chunks(bytes);
        self.check_room(bytes)?;
        let dir = self.dir();
        let failed = |error: io::Error| StorageError::from_io("make a file in", dir, error);
        let directory = self.directory().map_err(failed)?;
        let file = self.create(name)?;
        let path = self.entry(name);
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let filesystem = filesystem(dir);
        // From here on dropping it removes the file.
        let (dir, filled_bytes, alignment) = (dir.to_owned(), 0, None);
        let mut made =
            TestFile { file, directory, name, path, dir, bytes, filled_bytes, alignment, filesystem };
        made.alignment = allocate(&made.file, &made.dir, made.filesystem.as_deref(), bytes)?;
        let began = Instant::now();
        let is_enough =
            |progress: FillProgress| began.elapsed() >= time && progress.done_bytes >= BEGUN_BYTES_MIN;
        made.fill_until(is_enough, on_progress)?;
        Ok(made)
    }

    /// Checks that files of `bytes` bytes fit here and leave something for others.
    ///
    /// # Errors
    /// [`StorageError::NoRoom`] if less than [`reserve_bytes`] would stay free.
    pub fn check_room(&self, bytes: u64) -> Result<(), StorageError> {
        let dir = self.dir();
        let directory = self.directory().map_err(|error| StorageError::from_io("look at", dir, error))?;
        room(rustix::fs::fstatvfs(&directory), dir, bytes)
    }
}

/// Checks that `bytes` bytes fit into any directory.
pub(crate) fn check_room(dir: &Path, bytes: u64) -> Result<(), StorageError> {
    room(rustix::fs::statvfs(dir), dir, bytes)
}

fn room(space: Result<StatVfs, Errno>, dir: &Path, bytes: u64) -> Result<(), StorageError> {
    let space = space.map_err(|error| StorageError::from_io("look at", dir, error))?;
    let free_bytes = space.f_bavail.saturating_mul(space.f_frsize);
    let reserve_bytes = reserve_bytes(space.f_blocks.saturating_mul(space.f_frsize));
    if free_bytes < bytes.saturating_add(reserve_bytes) {
        return Err(StorageError::NoRoom { path: dir.into(), bytes, free_bytes, reserve_bytes });
    }
    Ok(())
}

/// Files are whole chunks.
pub(crate) fn whole_chunks(bytes: u64) -> u64 {
    bytes.div_ceil(CHUNK_BYTES).saturating_mul(CHUNK_BYTES)
}

impl TestFile {
    /// Its size.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Writes what is missing of a file that was begun.
    ///
    /// # Errors
    /// [`StorageError::Filling`], [`StorageError::Interrupted`].
    pub fn complete(
        &mut self,
        on_progress: &mut dyn FnMut(FillProgress) -> ControlFlow<()>,
    ) -> Result<(), StorageError> {
        self.fill_until(|_| false, on_progress)
    }

    fn fill_until(
        &mut self,
        is_enough: impl Fn(FillProgress) -> bool,
        on_progress: &mut dyn FnMut(FillProgress) -> ControlFlow<()>,
    ) -> Result<(), StorageError> {
        if self.filled_bytes == self.bytes {
            return Ok(());
        }
        let dir = &self.dir;
        let mut enough = false;
        let mut each = |progress: FillProgress| {
            enough = is_enough(progress);
            if enough { ControlFlow::Break(()) } else { on_progress(progress) }
        };
        let extent = self.filled_bytes..self.bytes;
        let (filled, stopped) = fill_extent(&self.file, dir, self.alignment, extent, &mut each)?;
        if stopped && !enough {
            return Err(StorageError::Interrupted { path: dir.into() });
        }
        self.filled_bytes = filled;
        Ok(())
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens what is written of it for load, reads and writes.
    ///
    /// # Errors
    /// [`StorageError::NoDirectIo`] where `caching` is direct and the file system cannot.
    pub fn region(&self, caching: Caching) -> Result<Region, StorageError> {
        let mode = OpenMode { caching, alignment: self.alignment, filesystem: self.filesystem.as_deref() };
        Region::reopen(&self.file, &self.path, OFlags::RDWR, self.filled_bytes, mode)
    }

    /// Removes it. Dropping does the same, without reporting errors.
    ///
    /// # Errors
    /// The kernel's.
    pub fn remove(self) -> Result<(), StorageError> {
        self.unlink().map_err(|error| StorageError::from_io("remove", &self.path, error))
    }

    fn unlink(&self) -> Result<(), Errno> {
        match rustix::fs::unlinkat(&self.directory, &self.name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// Allocates the file, writes it full and syncs it. `dir` is for errors.
pub(crate) fn write_whole(
    file: &File,
    dir: &Path,
    filesystem: Option<&str>,
    bytes: u64,
    on_progress: &mut dyn FnMut(FillProgress) -> ControlFlow<()>,
) -> Result<(), StorageError> {
    let alignment = allocate(file, dir, filesystem, bytes)?;
    match fill_extent(file, dir, alignment, 0..bytes, on_progress)? {
        (_, true) => Err(StorageError::Interrupted { path: dir.into() }),
        (_, false) => Ok(()),
    }
}

/// Gives the file its size and, where the file system can, its blocks; returns its alignment.
fn allocate(
    file: &File,
    dir: &Path,
    filesystem: Option<&str>,
    bytes: u64,
) -> Result<Option<Alignment>, StorageError> {
    let broken = |source| StorageError::Filling { path: dir.into(), done_bytes: 0, bytes, source };
    match rustix::fs::fallocate(file, FallocateFlags::empty(), 0, bytes) {
        Ok(()) => {}
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => file.set_len(bytes).map_err(broken)?,
        Err(error) => return Err(broken(error.into())),
    }
    alignment::for_new_file(file, filesystem).map_err(broken)
}

/// Writes and syncs an extent of the file; returns how far it is written, and whether `on_progress` ended it.
fn fill_extent(
    file: &File,
    dir: &Path,
    alignment: Option<Alignment>,
    extent: Range<u64>,
    on_progress: &mut dyn FnMut(FillProgress) -> ControlFlow<()>,
) -> Result<(u64, bool), StorageError> {
    let bytes = extent.end;
    let broken = |done_bytes, source| StorageError::Filling { path: dir.into(), done_bytes, bytes, source };
    let direct = alignment.and_then(|_| alignment::reopen(file, OFlags::RDWR | OFlags::DIRECT).ok());
    let filled = match &direct {
        Some(direct) => fill::fill(direct, true, extent.start, bytes, on_progress),
        None => fill::fill(file, false, extent.start, bytes, on_progress),
    };
    let filled = match filled {
        Ok(()) => (bytes, false),
        Err(NotFilled::Stopped { done_bytes }) => (done_bytes, true),
        Err(NotFilled::Failed { done_bytes, error }) => return Err(broken(done_bytes, error)),
    };
    file.sync_all().map_err(|error| broken(filled.0, error))?;
    // Later reads must come from the storage; a file system may ignore the advice.
    let _ = rustix::fs::fadvise(file, 0, None, Advice::DontNeed);
    Ok(filled)
}

impl Drop for TestFile {
    fn drop(&mut self) {
        // An error cannot be reported here; the workspace removes what is left.
        let _ = self.unlink();
    }
}

/// The file system that `dir` is on.
pub(crate) fn filesystem(dir: &Path) -> Option<String> {
    let real = std::fs::canonicalize(dir).ok()?;
    Mounts::read().ok()?.mount_of(&real).map(|mount| mount.filesystem.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reserve_follows_the_file_system_between_two_bounds() {
        const GIB: u64 = 1 << 30;
        assert_eq!(reserve_bytes(GIB), GIB / 10);
        assert_eq!(reserve_bytes(15 * GIB), GIB);
        assert_eq!(reserve_bytes(200 * GIB), 10 * GIB);
        assert_eq!(reserve_bytes(100_000 * GIB), 64 * GIB);
        assert_eq!(reserve_bytes(0), 0);
    }
}
