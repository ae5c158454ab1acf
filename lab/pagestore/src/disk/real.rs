//! The files of a store in a directory: direct I/O if the file system supports it, the log written through.

pub(crate) mod creation;
mod mapped;
mod ring;

use crate::disk::aligned::{ALIGNMENT, AlignedBuffer, is_aligned};
use crate::error::{Error, Result};
use crate::format::control::Control;
use crate::sync::run_on_threads;
use pagestore_disk::{Apply, Disk, FileId, FileNames, IoEvent, PageWrite};
use rustix::fs::{AtFlags, FallocateFlags, FlockOperation, StatxFlags, fallocate, flock, statx};
use std::cell::RefCell;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The largest part that is copied through an aligned buffer at once.
const BOUNCE_BYTES: usize = 1 << 20;

/// Threads that write at once, where threads are used.
const THREADS_MAX: usize = 16;

/// The directory's files, opened once; dropping it releases the lock.
pub(crate) struct RealDisk {
    directory: PathBuf,
    control: File,
    data: File,
    mapped: mapped::MappedFile,
    rings: ring::Rings,
    /// Opened with `O_DSYNC`: a write is durable when it returns, and an error belongs to the write that failed.
    log_through: File,
    /// For reading, and for filling new space with zeros.
    log: File,
    // Held open for its lock; see `creation` for its content.
    lock: Option<File>,
}

/// How a store's files are accessed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Create,
    Write,
    /// Inspects a store, also a crashed one, without changing it; takes no lock.
    Inspect,
}

impl RealDisk {
    pub(crate) fn open(directory: &Path, access: Access) -> Result<Self> {
        let lock = match access {
            Access::Inspect => None,
            Access::Write => {
                // A copy of a store may lack the lock file, which is empty. Do not create one where there is no
                // store.
                for file in FileId::ALL {
                    let path = directory.join(file.name());
                    std::fs::metadata(path).map_err(|error| missing(directory, file.name(), error))?;
                }
                Some(lock_directory(directory)?)
            }
            Access::Create => {
                let there = || Self::open_files(directory, Access::Inspect);
                let holds_store = || there().is_ok_and(|there| !matches!(Control::read(&there), Ok(None)));
                let lock = creation::begin(&FileNames, directory, || lock_directory(directory), holds_store)?;
                let opened = Self::open_files(directory, access)
                    .inspect_err(|_| creation::abandon(&FileNames, directory))?;
                return Ok(Self { lock: Some(lock), ..opened });
            }
        };
        let disk = Self { lock, ..Self::open_files(directory, access)? };
        if disk.lock.is_some() {
            creation::open(&FileNames, directory, &disk)?;
        }
        Ok(disk)
    }

    /// Opens all files but the lock.
    fn open_files(directory: &Path, access: Access) -> Result<Self> {
        let open = |file: FileId, flags: i32| open_file(directory, file, access, flags);
        Ok(Self {
            directory: directory.into(),
            control: open(FileId::Control, libc::O_DSYNC)?,
            data: open(FileId::Data, 0)?,
            mapped: mapped::MappedFile::default(),
            rings: ring::Rings::default(),
            log_through: open(FileId::Log, libc::O_DSYNC)?,
            log: open(FileId::Log, 0)?,
            lock: None,
        })
    }

    /// The store is complete; clears the mark of its creation if there is one.
    pub(crate) fn creation_finished(&self) -> Result<()> {
        if self.lock.is_some() { creation::finish(&FileNames, &self.directory) } else { Ok(()) }
    }

    /// Fails if the device does not accept direct I/O of this size, as far as the kernel reports it (since Linux
    /// 6.1).
    pub(crate) fn check_sector(&self, bytes: usize) -> Result<()> {
        let Ok(status) = statx(&self.log, "", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN) else {
            return Ok(());
        };
        let is_known = status.stx_mask & StatxFlags::DIOALIGN.bits() != 0;
        if is_known && status.stx_dio_offset_align as usize > bytes {
            let why =
                format!("the device takes direct I/O in units of {} bytes", status.stx_dio_offset_align);
            return Err(Error::BadOption { option: "log_sector_bytes", why });
        }
        Ok(())
    }

    fn file(&self, file: FileId) -> &File {
        match file {
            FileId::Control => &self.control,
            FileId::Data => &self.data,
            FileId::Log => &self.log,
        }
    }
}

/// Takes the exclusive lock of a directory.
fn lock_directory(directory: &Path) -> Result<File> {
    let path = directory.join(creation::LOCK);
    let failed = |error| Error::io("lock", path.display(), error);
    let lock = OpenOptions::new().create(true).truncate(false).write(true).open(&path).map_err(failed)?;
    let locked = || Error::Locked { path: directory.display().to_string() };
    flock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(|error| {
        if error == rustix::io::Errno::WOULDBLOCK { locked() } else { failed(error.into()) }
    })?;
    // A failed creation may have removed the file meanwhile, and another process may hold the lock on a new one.
    let opened = lock.metadata().map_err(failed)?;
    let is_there = std::fs::metadata(&path)
        .is_ok_and(|there| (there.dev(), there.ino()) == (opened.dev(), opened.ino()));
    if is_there { Ok(lock) } else { Err(locked()) }
}

fn missing(directory: &Path, name: &str, error: io::Error) -> Error {
    if error.kind() == io::ErrorKind::NotFound {
        Error::not_a_store(directory, format!("there is no file '{name}'"))
    } else {
        Error::io("open", directory.join(name).display(), error)
    }
}

/// Opens with `O_DIRECT`, or without if the file system does not support it (tmpfs before Linux 6.6).
fn open_file(directory: &Path, file: FileId, access: Access, flags: i32) -> Result<File> {
    let path = directory.join(file.name());
    // Opening a pipe would block until another process opens its other end.
    if std::fs::metadata(&path).is_ok_and(|found| !found.is_file()) {
        return Err(Error::not_a_store(directory, format!("its '{}' is not a file", file.name())));
    }
    let mut options = OpenOptions::new();
    options.read(true).write(access != Access::Inspect);
    let opened = match options.custom_flags(libc::O_DIRECT | flags).open(&path) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => options.custom_flags(flags).open(&path),
        other => other,
    };
    opened.map_err(|error| missing(directory, file.name(), error))
}

thread_local! {
    static BOUNCE: RefCell<AlignedBuffer> = RefCell::new(AlignedBuffer::new(BOUNCE_BYTES));
}

/// Direct I/O needs aligned memory; other bytes are copied through an aligned buffer.
fn write_all(file: &File, offset: u64, bytes: &[u8]) -> io::Result<()> {
    if is_aligned(bytes) {
        return file.write_all_at(bytes, offset);
    }
    BOUNCE.with_borrow_mut(|bounce| {
        let mut at = offset;
        for part in bytes.chunks(BOUNCE_BYTES) {
            bounce.clear();
            bounce.extend(part);
            file.write_all_at(bounce.bytes(), at)?;
            at += part.len() as u64;
        }
        Ok(())
    })
}

fn read_all(file: &File, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
    let whole = buffer.len().is_multiple_of(ALIGNMENT) && offset.is_multiple_of(ALIGNMENT as u64);
    if whole && is_aligned(buffer) {
        return file.read_exact_at(buffer, offset);
    }
    BOUNCE.with_borrow_mut(|bounce| {
        let mut at = offset;
        for part in buffer.chunks_mut(BOUNCE_BYTES - ALIGNMENT) {
            let before = (at % ALIGNMENT as u64) as usize;
            let window = (before + part.len()).next_multiple_of(ALIGNMENT);
            bounce.resize(window);
            let got = read_up_to(file, bounce.bytes_mut(), at - before as u64)?;
            if got < before + part.len() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            part.copy_from_slice(&bounce.bytes()[before..before + part.len()]);
            at += part.len() as u64;
        }
        Ok(())
    })
}

fn read_up_to(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut got = 0;
    while got < buffer.len() {
        match file.read_at(&mut buffer[got..], offset + got as u64) {
            Ok(0) => break,
            Ok(bytes) => got += bytes,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(got)
}

/// Does the writes on several threads, where the kernel takes only one I/O of a thread at a time.
fn on_threads(
    writes: &[PageWrite<'_>],
    at_once: usize,
    write: impl Fn(&PageWrite<'_>) -> io::Result<()> + Sync,
) -> io::Result<()> {
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(item) = writes.get(next.fetch_add(1, Ordering::Relaxed)) {
            write(item).inspect_err(|_| next.store(writes.len(), Ordering::Relaxed))?;
        }
        Ok(())
    };
    run_on_threads(at_once.min(writes.len()).min(THREADS_MAX), work).map(|_| ())
}

impl Disk for RealDisk {
    fn read(&self, file: FileId, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        read_all(self.file(file), offset, buffer)
    }

    fn write(&self, file: FileId, offset: u64, bytes: &[u8]) -> io::Result<()> {
        write_all(self.file(file), offset, bytes)
    }

    fn write_through(&self, file: FileId, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let handle = match file {
            FileId::Control => &self.control,
            FileId::Log => &self.log_through,
            FileId::Data => {
                write_all(&self.data, offset, bytes)?;
                return self.data.sync_data();
            }
        };
        write_all(handle, offset, bytes)
    }

    fn write_many(
        &self,
        writes: &[PageWrite<'_>],
        apply: Apply,
        at_once: usize,
        on_event: &(dyn Fn(IoEvent) + Sync),
    ) -> io::Result<()> {
        let write_one = |write: &PageWrite<'_>| {
            let write_bytes = |offset: u64, bytes: &[u8]| match apply {
                Apply::Direct => write_all(&self.data, offset, bytes),
                Apply::Mapped => self.mapped.write(&self.data, offset, bytes),
            };
            write.run_with(write_bytes, on_event)
        };
        if at_once <= 1 || apply == Apply::Direct && !writes.iter().all(|write| is_aligned(write.bytes)) {
            return writes.iter().try_for_each(write_one);
        }
        if apply == Apply::Direct
            && let Some(result) = self.rings.write(&self.data, writes, at_once, on_event)
        {
            return result;
        }
        // Without a ring, or where each write waits for page faults of its pages.
        on_threads(writes, at_once, write_one)
    }

    fn reserve(&self, file: FileId, length: u64) -> io::Result<()> {
        match fallocate(self.file(file), FallocateFlags::empty(), 0, length) {
            // A file system without it can be written nevertheless.
            Err(rustix::io::Errno::OPNOTSUPP) => Ok(()),
            done => Ok(done?),
        }
    }

    fn truncate(&self, file: FileId, length: u64) -> io::Result<()> {
        if file == FileId::Data {
            // A store to a mapped page beyond the end would kill the process.
            self.mapped.sync()?;
        }
        if self.len(file)? > length { self.file(file).set_len(length) } else { Ok(()) }
    }

    fn sync(&self, file: FileId) -> io::Result<()> {
        if file == FileId::Data {
            self.mapped.sync()?;
        }
        self.file(file).sync_data()
    }

    fn len(&self, file: FileId) -> io::Result<u64> {
        Ok(self.file(file).metadata()?.len())
    }

    fn directory(&self) -> Option<&Path> {
        Some(&self.directory)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Layout, Options, Store};

    // Two concurrent creations: both find the directory empty, then the first takes the lock and later releases it.
    #[test]
    fn a_store_created_by_another_process_meanwhile_is_not_overwritten() {
        let place = tempfile::tempdir_in("/var/tmp").unwrap();
        let options = Options { background: false, publish: false, ..Options::default() };
        let layout = Layout { vlf_bytes: 128 << 10, vlfs: 2, ..Layout::default() };
        let first = Store::create(place.path(), layout, options).unwrap();
        assert!(matches!(RealDisk::open(place.path(), Access::Create), Err(Error::Locked { .. })));
        first.close().unwrap();
        assert!(matches!(RealDisk::open(place.path(), Access::Create), Err(Error::Exists { .. })));
        assert!(Store::open(place.path(), options).unwrap().recovery_report().clean);
    }
}
