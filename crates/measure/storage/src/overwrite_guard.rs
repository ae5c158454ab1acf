//! Guard that keeps load from overwriting data: the checks between a [`Target`] and an open [`Region`].
//!
//! ```text
//! reads only                  opened as it is
//! writes, not --destroy-data  NotOurs: refused
//! writes, --destroy-data      PathOfOthers (another user may lead the path elsewhere), ReadOnlyDevice, or InUse (mounted, swap, held by another device, backing a loop
//!                             device, opened exclusively by another program, open for writing or locked in another
//!                             process): refused
//! ```
//!
//! Uses are looked for before the opening for writing, and again after it: a process that opened it in between is found.

use crate::extents::Unwritten;
use crate::region::{OpenMode, Region, without_atime};
use crate::{MadeFile, StorageError, Target};
use host::{
    DeviceNumber, DeviceUse, PathError, device_uses, device_writers, file_uses, find_trusted, is_read_only,
};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use workload::{Caching, TargetKind};

/// Access of load to a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reads only.
    ReadOnly,
    /// Reads and writes.
    ReadWrite {
        /// The user permits that the content is lost. Headroom's own test files need no permission; for storage in
        /// use it is not sufficient.
        destroy_data: bool,
    },
}

impl Access {
    fn flags(self) -> OFlags {
        match self {
            Access::ReadOnly => OFlags::RDONLY,
            Access::ReadWrite { .. } => OFlags::RDWR,
        }
    }
}

/// Uses that an error names: a server may have a process for each of its clients.
const USES_MAX: usize = 8;
/// A file of which a larger share was never written is not measured: such blocks are read without the storage.
const UNWRITTEN_PERCENT_MAX: u64 = 1;

impl Target {
    /// Opens a file or block device for load. A directory is measured through
    /// [`TestFile::region`](crate::TestFile::region).
    ///
    /// # Errors
    /// [`StorageError::NotOurs`] for writes without `destroy_data`; [`StorageError::PathOfOthers`] for writes where another
    /// user may lead the path elsewhere; [`StorageError::InUse`] for writes to a device or
    /// file in use, with `destroy_data` as well; [`StorageError::Unwritten`] for a file with holes;
    /// [`StorageError::NoDirectIo`] where `caching` is direct and the file system does not support it;
    /// [`StorageError::ReadOnlyFilesystem`], [`StorageError::ReadOnlyDevice`] and the kernel's errors.
    pub fn open_for(&self, access: Access, caching: Caching) -> Result<Region, StorageError> {
        let path = self.path();
        let kind = match self.facts().kind {
            TargetKind::Directory => return Err(StorageError::IsDirectory { path: path.into() }),
            TargetKind::File => "file",
            TargetKind::BlockDevice => "block device",
        };
        if access == (Access::ReadWrite { destroy_data: false }) {
            return Err(StorageError::NotOurs { path: path.into(), kind });
        }
        let mode = self.mode(caching);
        let place = Place::find(path, access)?;
        match self.facts().kind {
            TargetKind::BlockDevice => open_device(&place, access, mode),
            _ => region_of(&place.open_regular(OFlags::RDONLY)?, path, access, mode),
        }
    }

    /// Opens the file that Headroom made at this path, the very one that was found, for load.
    ///
    /// # Errors
    /// As [`open_for`](Self::open_for).
    pub fn open_made(
        &self,
        made: &MadeFile,
        access: Access,
        caching: Caching,
    ) -> Result<Region, StorageError> {
        region_of(made.file(), self.path(), access, self.mode(caching))
    }

    pub(crate) fn mode(&self, caching: Caching) -> OpenMode<'_> {
        let filesystem = self.facts().filesystem.as_deref();
        OpenMode { caching, alignment: self.alignment(), filesystem }
    }
}

/// Where a target is opened.
struct Place<'a> {
    /// As the user named it, for messages.
    path: &'a Path,
    /// The path again, or what was found there: `/proc/self/fd/N`.
    opened_by: PathBuf,
    _found: Option<OwnedFd>,
}

impl Place<'_> {
    /// Finds the target. One that is written to must lie on a path that only this user or root controls, and is opened by the
    /// inode that was found.
    fn find(path: &Path, access: Access) -> Result<Place<'_>, StorageError> {
        if access == Access::ReadOnly {
            return Ok(Place { path, opened_by: path.into(), _found: None });
        }
        let found = find_trusted(path).map_err(|error| match error {
            PathError::Io(error) => StorageError::from_io("open", path, error),
            PathError::Refused(why) => StorageError::PathOfOthers { path: path.into(), why },
        })?;
        Ok(Place {
            path,
            opened_by: format!("/proc/self/fd/{}", found.as_raw_fd()).into(),
            _found: Some(found),
        })
    }

    fn open_regular(&self, flags: OFlags) -> Result<File, StorageError> {
        open_without_waiting(&self.opened_by, flags)
            .map_err(|error| StorageError::from_io("open", self.path, error))
    }
}

fn region_of(file: &File, path: &Path, access: Access, mode: OpenMode<'_>) -> Result<Region, StorageError> {
    let metadata = file.metadata().map_err(|error| StorageError::from_io("look at", path, error))?;
    if !metadata.is_file() {
        return Err(StorageError::NotATarget { path: path.into(), found: "different thing than before" });
    }
    let refuse_used = |file: &File| match access {
        Access::ReadOnly => Ok(()),
        Access::ReadWrite { .. } => refuse_used_file(file, path),
    };
    refuse_used(file)?;
    let bytes = metadata.len();
    let unwritten =
        Unwritten::scan(file, bytes).map_err(|error| StorageError::from_io("map", path, error))?;
    check_written(path, unwritten, bytes)?;
    let region = Region::reopen(file, path, access.flags(), bytes, mode)?;
    refuse_used(&region.file)?;
    Ok(region)
}

/// Refuses a file that backs a loop device, is swapped to, or is written to or locked by another process.
pub(crate) fn refuse_used_file(file: &File, path: &Path) -> Result<(), StorageError> {
    refuse_used(path, file_uses(file))
}

fn refuse_used(path: &Path, uses: io::Result<Vec<DeviceUse>>) -> Result<(), StorageError> {
    let uses = uses.map_err(|error| StorageError::from_io("look at the uses of", path, error))?;
    if uses.is_empty() {
        return Ok(());
    }
    let mut named: Vec<String> = uses.iter().take(USES_MAX).map(ToString::to_string).collect();
    if let Some(more) = uses.len().checked_sub(USES_MAX).filter(|more| *more > 0) {
        named.push(format!("{more} more"));
    }
    Err(StorageError::InUse { path: path.into(), uses: named })
}

/// Refuses a file of which much was never written.
pub(crate) fn check_written(path: &Path, unwritten: Unwritten, bytes: u64) -> Result<(), StorageError> {
    if unwritten.total_bytes() <= bytes / 100 * UNWRITTEN_PERCENT_MAX {
        return Ok(());
    }
    let Unwritten { hole_bytes, unwritten_bytes } = unwritten;
    Err(StorageError::Unwritten { path: path.into(), hole_bytes, unwritten_bytes, bytes })
}

fn open_device(place: &Place<'_>, access: Access, mode: OpenMode<'_>) -> Result<Region, StorageError> {
    let (path, mut flags) = (place.path, access.flags());
    let in_use = |uses| StorageError::InUse { path: path.into(), uses };
    let number = DeviceNumber::for_block_device(&place.opened_by);
    if access != Access::ReadOnly {
        // The kernel lets a write-protected device be opened for writing and fails the writes.
        if number.is_some_and(is_read_only) {
            return Err(StorageError::ReadOnlyDevice { path: path.into() });
        }
        refuse_used_device(number, path, device_uses)?;
        refuse_used_device(number, path, device_writers)?;
        // With O_EXCL the kernel also refuses uses that this process cannot see, such as a mount in another
        // namespace, and no one can mount the device while load runs.
        flags |= OFlags::EXCL;
    }
    if mode.caching == Caching::Direct {
        flags |= OFlags::DIRECT;
    }
    let mut file = match open_when_free(&place.opened_by, flags | OFlags::CLOEXEC) {
        Ok(file) => file,
        Err(Errno::BUSY) => {
            return Err(in_use(vec!["the kernel holds it for another user".into()]));
        }
        Err(error) => return Err(StorageError::from_io("open", path, error)),
    };
    let failed = |error| StorageError::from_io("look at", path, error);
    let metadata = file.metadata().map_err(failed)?;
    let opened = metadata.file_type().is_block_device().then(|| DeviceNumber::from_dev(metadata.rdev()));
    if opened.is_none() || opened != number {
        return Err(StorageError::NotATarget { path: path.into(), found: "different thing than before" });
    }
    if access != Access::ReadOnly {
        refuse_used_device(number, path, device_writers)?;
    }
    let bytes = file.seek(SeekFrom::End(0)).map_err(failed)?;
    Region::new(file, path, bytes, mode)
}

fn refuse_used_device(
    number: Option<DeviceNumber>,
    path: &Path,
    uses: impl Fn(DeviceNumber) -> io::Result<Vec<DeviceUse>>,
) -> Result<(), StorageError> {
    number.map_or(Ok(()), |number| refuse_used(path, uses(number)))
}

/// Opens a device; waits while a load that has just ended still holds it: the kernel closes a ring's files only some
/// time after its program has exited.
fn open_when_free(path: &Path, flags: OFlags) -> Result<File, Errno> {
    const WAIT_MAX: Duration = Duration::from_secs(2);
    const RETRY_EVERY: Duration = Duration::from_millis(20);
    let until = Instant::now() + WAIT_MAX;
    loop {
        match without_atime(flags, |flags| rustix::fs::open(path, flags, Mode::empty())) {
            Err(Errno::BUSY) if Instant::now() < until => std::thread::sleep(RETRY_EVERY),
            opened => return opened.map(File::from),
        }
    }
}

pub(crate) fn open_regular(path: &Path, flags: OFlags) -> Result<File, StorageError> {
    open_without_waiting(path, flags).map_err(|error| StorageError::from_io("open", path, error))
}

fn open_without_waiting(path: &Path, flags: OFlags) -> Result<File, Errno> {
    // NONBLOCK: if a pipe has replaced the file, the open must not hang.
    let flags = flags | OFlags::CLOEXEC | OFlags::NONBLOCK;
    rustix::fs::open(path, flags, Mode::empty()).map(File::from)
}
