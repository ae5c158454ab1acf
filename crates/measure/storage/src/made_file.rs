use crate::mark::{Change, Mark, State};
use crate::overwrite_guard::refuse_used_file;
use crate::test_file::{check_room, whole_chunks, write_whole};
use crate::{FillProgress, StorageError, beneath};
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use std::fs::File;
use std::ops::ControlFlow;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A permanent file that Headroom made to run load on. Later commands may overwrite it.
///
/// Its [mark](Mark) is valid while the file is unchanged since Headroom marked it. A file that has since become a disk image of
/// another program, with the same name, size and time of the last write, is not overwritten. While the file is made and while
/// load runs, the mark has another state and no times, since a killed Headroom cannot record its last write: who wrote to the
/// file afterwards is unknown then, and it is not overwritten either.
///
/// An attribute counts only on a file of this user that no other user may write to, since a user who writes to a file may mark
/// it. The check is of the open file, and all later use is of that file, whatever its name leads to meanwhile.
#[derive(Debug)]
pub struct MadeFile {
    file: File,
    directory: OwnedFd,
    path: PathBuf,
    mark: Mark,
    in_file: bool,
    /// It was not finished: removed when dropped.
    unfinished: bool,
}

/// Content of the path of a permanent file.
#[derive(Debug)]
pub enum FoundFile {
    /// Nothing.
    Nothing,
    /// A complete file that Headroom made.
    Ours(MadeFile),
    /// A file of a Headroom that was killed while it made it or ran load on it: who wrote to it since is unknown.
    Interrupted,
    /// A file that Headroom made and that was written to, renamed or given other rights since.
    Changed,
    /// A file that Headroom made, whose mark does not show whether it was changed: an earlier version wrote the mark, or the file
    /// system keeps no time of changes.
    Unproven,
    /// Anything else.
    NotOurs,
}

impl MadeFile {
    /// Classifies the file at `path`; `recorded` is the mark that the history holds for it, if any.
    ///
    /// # Errors
    /// [`StorageError::WorkspaceInUse`] while another Headroom makes it, and the kernel's errors.
    pub fn find(path: &Path, recorded: Option<&str>) -> Result<FoundFile, StorageError> {
        let failed = |error: Errno| StorageError::from_io("open", path, error);
        let Some(name) = path.file_name() else { return Ok(FoundFile::NotOurs) };
        let directory = match open_directory(&parent(path)) {
            Ok(directory) => directory,
            Err(Errno::NOENT) => return Ok(FoundFile::Nothing),
            Err(error) => return Err(failed(error)),
        };
        // NONBLOCK: a pipe must not hang the open. A symlink is followed.
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = match rustix::fs::openat(&directory, name, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(Errno::NOENT) => return Ok(FoundFile::Nothing),
            Err(error) => return Err(failed(error)),
        };
        let metadata = file.metadata().map_err(|error| StorageError::from_io("look at", path, error))?;
        if !metadata.is_file() {
            return Ok(FoundFile::NotOurs);
        }
        let is_private = beneath::not_private(metadata.uid(), metadata.mode()).is_none();
        let attribute = Mark::read_from(&file).filter(|_| is_private);
        let in_file = attribute.is_some();
        let mark = attribute.as_deref().or(recorded).and_then(|text| text.parse::<Mark>().ok());
        let Some(mark) = mark.filter(|mark| mark.inode == metadata.ino()) else {
            return Ok(FoundFile::NotOurs);
        };
        let made = MadeFile { file, directory, path: path.into(), mark, in_file, unfinished: false };
        Ok(match mark.state {
            State::Making => {
                made.lock()?;
                FoundFile::Interrupted
            }
            _ if metadata.len() != mark.bytes => FoundFile::Changed,
            State::Whole { .. } | State::Unproven => match mark.compare(&metadata) {
                Change::Unchanged => FoundFile::Ours(made),
                Change::Changed => FoundFile::Changed,
                Change::Unproven => FoundFile::Unproven,
            },
            State::Loaded => match made.lock() {
                Ok(()) => FoundFile::Interrupted,
                // By the Headroom that runs load on it now.
                Err(StorageError::WorkspaceInUse { .. }) => FoundFile::Ours(made),
                Err(error) => return Err(error),
            },
        })
    }

    /// Makes a new, empty, marked file. Where [`in_file`](Self::in_file) is false the caller must record
    /// [`mark`](Self::mark) before it fills the file. If dropped before it is filled, it is removed.
    ///
    /// # Errors
    /// [`StorageError::Exists`], and the kernel's errors.
    pub fn create(path: &Path, bytes: u64) -> Result<MadeFile, StorageError> {
        assert!(bytes > 0, "a file of 0 bytes measures nothing");
        let parent = parent(path);
        check_room(&parent, whole_chunks(bytes))?;
        let failed = |error: Errno| StorageError::from_io("make a file in", &parent, error);
        let directory = open_directory(&parent).map_err(failed)?;
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let name = path.file_name().unwrap_or_default();
        let file = match rustix::fs::openat(&directory, name, flags, Mode::RUSR | Mode::WUSR) {
            Ok(file) => File::from(file),
            Err(Errno::EXIST) => return Err(StorageError::Exists { path: path.into() }),
            Err(error) => return Err(failed(error)),
        };
        let mark = Mark { inode: 0, bytes, state: State::Making };
        let mut made = MadeFile { file, directory, path: path.into(), mark, in_file: true, unfinished: true };
        let failed = |error| StorageError::from_io("look at", path, error);
        made.lock()?;
        made.mark.inode = made.file.metadata().map_err(failed)?.ino();
        made.in_file = made.write_mark()?;
        Ok(made)
    }

    /// Writes it in full, and marks it as complete.
    ///
    /// # Errors
    /// [`StorageError::Filling`], [`StorageError::Interrupted`]; it is removed then.
    pub fn fill(
        mut self,
        on_progress: &mut dyn FnMut(FillProgress) -> ControlFlow<()>,
    ) -> Result<MadeFile, StorageError> {
        let parent = parent(&self.path);
        let filesystem = crate::test_file::filesystem(&parent);
        let bytes = self.mark.bytes;
        write_whole(&self.file, &parent, filesystem.as_deref(), whole_chunks(bytes), on_progress)?;
        self.file.set_len(bytes).map_err(|error| StorageError::from_io("cut", &self.path, error))?;
        self.end_load()?;
        self.unfinished = false;
        Ok(self)
    }

    /// Records that load begins: until [`end_load`](Self::end_load) any times are valid.
    ///
    /// # Errors
    /// [`StorageError::WorkspaceInUse`] while another Headroom loads it; [`StorageError::InUse`] while another process has it open
    /// for writing or locked, or where it was changed since it was found; the kernel's errors.
    pub fn begin_load(&mut self) -> Result<(), StorageError> {
        self.lock()?;
        refuse_used_file(&self.file, &self.path)?;
        let metadata =
            self.file.metadata().map_err(|error| StorageError::from_io("look at", &self.path, error))?;
        if self.mark.compare(&metadata) == Change::Changed {
            return Err(self.changed_meanwhile());
        }
        self.mark.state = State::Loaded;
        self.write_mark().map(drop)
    }

    /// Records that load has ended, and the times of the last write and change. This takes about 0.1 s.
    ///
    /// # Errors
    /// [`StorageError::InUse`] where another process has it open for writing or keeps changing it: what that wrote during the load
    /// is unknown, and the file stays marked as one under load. The kernel's errors.
    pub fn end_load(&mut self) -> Result<(), StorageError> {
        refuse_used_file(&self.file, &self.path)?;
        let sealed = self.mark.seal(&self.file, self.in_file);
        sealed.map_err(|error| StorageError::from_io("mark", &self.path, error))?;
        if self.mark.state == State::Loaded { Err(self.changed_meanwhile()) } else { Ok(()) }
    }

    fn changed_meanwhile(&self) -> StorageError {
        StorageError::InUse { path: self.path.clone(), uses: vec!["another program changes it".into()] }
    }

    /// Removes it.
    ///
    /// # Errors
    /// The kernel's.
    pub fn remove(mut self) -> Result<(), StorageError> {
        self.unfinished = false;
        self.unlink().map_err(|error| StorageError::from_io("remove", &self.path, error))
    }

    /// Removes its name, if that still leads to it.
    fn unlink(&self) -> Result<(), Errno> {
        let name = self.path.file_name().unwrap_or_default();
        match rustix::fs::statat(&self.directory, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) if beneath::is_same(&found, &rustix::fs::fstat(&self.file)?) => {
                rustix::fs::unlinkat(&self.directory, name, AtFlags::empty())
            }
            Ok(_) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// The file that was checked.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its size.
    pub fn bytes(&self) -> u64 {
        self.mark.bytes
    }

    /// Whether the mark is an attribute of the file.
    pub fn in_file(&self) -> bool {
        self.in_file
    }

    /// The mark, to be recorded elsewhere.
    pub fn mark(&self) -> String {
        self.mark.to_string()
    }

    /// Locks the file until it is dropped or the process ends.
    fn lock(&self) -> Result<(), StorageError> {
        match rustix::fs::flock(&self.file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(()),
            Err(Errno::WOULDBLOCK) => Err(StorageError::WorkspaceInUse { dir: self.path.clone(), pid: None }),
            Err(error) => Err(StorageError::from_io("lock", &self.path, error)),
        }
    }

    /// Writes the attribute; `false` where the file system does not support it.
    fn write_mark(&self) -> Result<bool, StorageError> {
        if !self.in_file {
            return Ok(false);
        }
        self.mark.write_to(&self.file).map_err(|error| StorageError::from_io("mark", &self.path, error))
    }
}

impl Drop for MadeFile {
    fn drop(&mut self) {
        if self.unfinished {
            // An error cannot be reported here; the file is marked as unfinished.
            let _ = self.unlink();
        }
    }
}

fn open_directory(path: &Path) -> Result<OwnedFd, Errno> {
    rustix::fs::open(path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
}

fn parent(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.into(),
        _ => PathBuf::from("."),
    }
}
