use crate::{StorageError, beneath};
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::{AtFlags, Dir, FileType, FlockOperation, Mode, OFlags, Stat};
use rustix::io::Errno;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// The directory inside a target directory that holds all files of Headroom, locked while it is in use.
///
/// ```text
/// DIR/headroom.tmp/
///     HEADROOM            marker, flock held by the running owner:
///                           "Headroom works in this directory. ..."
///                           "version=1 pid=4711 start=123456 created=1762000000"
///     headroom-test       the names of all other files of Headroom begin with "headroom-"
/// ```
///
/// The lock, not the process number, decides whether the owner runs. The next Headroom takes over and cleans what a
/// killed one has left, including an empty directory and an empty or half-written marker. Files whose names do not begin
/// with "headroom-" are never touched, and neither is what is mounted below the directory.
///
/// Directory and marker must belong to the user of this program, and no other user may write to them: nothing that another
/// user prepared is read, replayed or written through. All names are below the open directory, which no rename replaces.
/// Work that needs paths calls [`require_private_path`](Self::require_private_path) first.
#[derive(Debug)]
pub struct Workspace {
    dir: PathBuf,
    path: PathBuf,
    parent: OwnedFd,
    directory: OwnedFd,
    /// Open for its lock.
    _marker: File,
    foreign_files: Vec<String>,
    removed: bool,
}

const DIRECTORY: &str = "headroom.tmp";
const MARKER: &str = "HEADROOM";
const PREFIX: &str = "headroom-";
const FIRST_LINE: &str =
    "Headroom works in this directory. When no headroom runs here, the directory may be deleted.\n";
/// Longest marker that is read.
const MARKER_BYTES_MAX: usize = 1024;
/// Attempts to lock a workspace that its owner may be removing.
const TRIES_MAX: usize = 16;
/// Most foreign files that are named.
const FOREIGN_NAMES_MAX: usize = 10;

impl Workspace {
    /// Makes the workspace of `dir`, or takes over and cleans the one of a Headroom that died.
    ///
    /// # Errors
    /// [`StorageError::WorkspaceInUse`] while another process holds it; [`StorageError::WorkspaceNotOurs`],
    /// with nothing touched, for a `headroom.tmp` that is a symlink or has no marker of Headroom;
    /// [`StorageError::WorkspaceNotPrivate`] for one that is another user's, or that others may write to;
    /// [`StorageError::ReadOnlyFilesystem`], [`StorageError::NotPermitted`] and the kernel's errors.
    pub fn open(dir: &Path) -> Result<Workspace, StorageError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let parent = rustix::fs::open(dir, flags, Mode::empty())
            .map_err(|error| StorageError::from_io("open", dir, error))?;
        for _ in 0..TRIES_MAX {
            if let Some(workspace) = take(dir, &parent)? {
                return Ok(workspace);
            }
        }
        Err(StorageError::WorkspaceInUse { dir: dir.into(), pid: None })
    }

    /// `DIR/headroom.tmp`.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The directory it is in.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// A path in the workspace for a file or directory of the caller, removed with the workspace.
    pub fn entry(&self, name: &str) -> PathBuf {
        self.path.join(format!("{PREFIX}{name}"))
    }

    /// A name of a file below the open directory, `/proc/self/fd/N/headroom-NAME`, for a library that opens files by name:
    /// no rename leads it elsewhere. It is valid in this process and as long as this workspace.
    pub fn entry_by_descriptor(&self, name: &str) -> PathBuf {
        format!("/proc/self/fd/{}/{PREFIX}{name}", self.directory.as_raw_fd()).into()
    }

    /// Lets other users traverse the directory, but not list it: a server of an experiment may run as another user, and
    /// opens its files by their full names.
    ///
    /// # Errors
    /// The kernel's.
    pub fn allow_traversal(&self) -> Result<(), StorageError> {
        let through = Mode::RWXU | Mode::XGRP | Mode::XOTH;
        rustix::fs::fchmod(&self.directory, through)
            .map_err(|error| StorageError::from_io("open to other users", &self.path, error))
    }

    /// Refuses the directory if another user could replace a component of its path. Work that opens files by path, as the
    /// engines of experiments do, requires this check. Afterwards [`path`](Self::path) has no symlinks. Only root is refused.
    ///
    /// # Errors
    /// [`StorageError::PathNotPrivate`]; the kernel's.
    pub fn require_private_path(&mut self) -> Result<(), StorageError> {
        if !rustix::process::geteuid().is_root() {
            return Ok(());
        }
        let failed = |error| StorageError::from_io("look at", &self.dir, error);
        let real = fs::canonicalize(&self.dir).map_err(failed)?;
        let refused = |path: &Path, why| Err(StorageError::PathNotPrivate { path: path.into(), why });
        for path in real.ancestors() {
            let metadata = fs::symlink_metadata(path).map_err(failed)?;
            let is_sticky = metadata.mode() & 0o1000 != 0;
            let mode = if is_sticky { 0 } else { metadata.mode() };
            if let Some(why) = beneath::not_private(metadata.uid(), mode) {
                return refused(path, why);
            }
        }
        // The path is private now, but may have led elsewhere when the directory was opened.
        let [found, opened] = [rustix::fs::stat(&real), rustix::fs::fstat(&self.parent)];
        let failed = |error: Errno| failed(error.into());
        if !beneath::is_same(&found.map_err(failed)?, &opened.map_err(failed)?) {
            return refused(&self.dir, "its path led to another directory a moment ago".into());
        }
        self.path = real.join(DIRECTORY);
        Ok(())
    }

    /// Names of foreign files and mounts found when it was taken over; they are kept, and so is the directory.
    pub fn foreign_files(&self) -> &[String] {
        &self.foreign_files
    }

    /// Removes all files of Headroom and the directory. Dropping does the same, without reporting errors.
    ///
    /// # Errors
    /// [`StorageError::WorkspaceKept`] if it contains foreign files.
    pub fn remove(mut self) -> Result<(), StorageError> {
        self.removed = true;
        self.remove_all()
    }

    /// A new, empty file `headroom-NAME`.
    ///
    /// # Errors
    /// The kernel's, also where such a file exists.
    pub fn create(&self, name: &str) -> Result<File, StorageError> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
        beneath::open(&self.directory, format!("{PREFIX}{name}").as_str(), flags, Mode::RUSR | Mode::WUSR)
            .map(File::from)
            .map_err(|error| StorageError::from_io("make a file in", &self.dir, error))
    }

    /// The directory, for files that are removed after the workspace was dropped.
    pub(crate) fn directory(&self) -> io::Result<OwnedFd> {
        self.directory.try_clone()
    }

    fn remove_all(&self) -> Result<(), StorageError> {
        let failed = |error: Errno| StorageError::from_io("remove", &self.path, error);
        let names = clean(&self.directory).map_err(failed)?;
        if !names.is_empty() {
            return Err(StorageError::WorkspaceKept { path: self.path.clone(), names });
        }
        rustix::fs::unlinkat(&self.directory, MARKER, AtFlags::empty()).map_err(failed)?;
        match rustix::fs::unlinkat(&self.parent, DIRECTORY, AtFlags::REMOVEDIR) {
            // Another Headroom has taken the empty directory.
            Ok(()) | Err(Errno::NOTEMPTY | Errno::NOENT) => Ok(()),
            Err(error) => Err(failed(error)),
        }
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        if !self.removed {
            // An error cannot be reported here; the next Headroom removes what is left.
            let _ = self.remove_all();
        }
    }
}

/// Makes the directory if it is absent, and opens it; `None` where its owner removed it at the same time.
fn open_directory(dir: &Path, parent: &OwnedFd) -> Result<Option<OwnedFd>, StorageError> {
    let failed = |error: Errno| StorageError::from_io("make a file in", dir, error);
    let is_new = match rustix::fs::mkdirat(parent, DIRECTORY, Mode::RWXU) {
        Ok(()) => true,
        Err(Errno::EXIST) => false,
        Err(error) => return Err(failed(error)),
    };
    let path = dir.join(DIRECTORY);
    let directory = match beneath::open(parent, DIRECTORY, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())
    {
        Ok(directory) => directory,
        Err(Errno::NOENT) => return Ok(None),
        Err(Errno::NOTDIR | Errno::LOOP) => {
            return Err(StorageError::WorkspaceNotOurs { path, why: "it is no directory" });
        }
        Err(Errno::XDEV) => {
            return Err(StorageError::WorkspaceNotOurs { path, why: "another file system is mounted there" });
        }
        Err(error) => return Err(failed(error)),
    };
    check_private(&rustix::fs::fstat(&directory).map_err(failed)?, path).inspect_err(|_| {
        if is_new {
            // On a file system that gives every file another owner.
            let _ = rustix::fs::unlinkat(parent, DIRECTORY, AtFlags::REMOVEDIR);
        }
    })?;
    Ok(Some(directory))
}

/// Refuses what another user made or may write to.
fn check_private(found: &Stat, path: PathBuf) -> Result<(), StorageError> {
    match beneath::not_private(found.st_uid, found.st_mode) {
        Some(why) => Err(StorageError::WorkspaceNotPrivate { path, why }),
        None => Ok(()),
    }
}

/// Makes or takes over the workspace; `None` where its owner removed it at the same time: try again.
fn take(dir: &Path, parent: &OwnedFd) -> Result<Option<Workspace>, StorageError> {
    let path = dir.join(DIRECTORY);
    let failed = |error: Errno| StorageError::from_io("make a file in", dir, error);
    let not_ours = |why| StorageError::WorkspaceNotOurs { path: path.clone(), why };

    let Some(directory) = open_directory(dir, parent)? else { return Ok(None) };
    if stat(&directory, MARKER).map_err(failed)?.is_none() && !entries(&directory).map_err(failed)?.is_empty()
    {
        return match stat(&directory, MARKER).map_err(failed)? {
            // Another Headroom has just begun here.
            Some(_) => Ok(None),
            None => Err(not_ours("it holds files but no HEADROOM marker")),
        };
    }

    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NONBLOCK;
    let marker = match beneath::open(&directory, MARKER, flags, Mode::RUSR | Mode::WUSR) {
        Ok(marker) => File::from(marker),
        // The directory was removed meanwhile.
        Err(Errno::NOENT) => return Ok(None),
        Err(Errno::LOOP | Errno::ISDIR | Errno::NXIO | Errno::XDEV) => {
            return Err(not_ours("its HEADROOM is no file"));
        }
        Err(error) => return Err(failed(error)),
    };
    let marker_stat = rustix::fs::fstat(&marker).map_err(failed)?;
    if FileType::from_raw_mode(marker_stat.st_mode) != FileType::RegularFile {
        return Err(not_ours("its HEADROOM is no file"));
    }
    check_private(&marker_stat, path.join(MARKER))?;
    let read =
        |marker: &File| read_marker(marker).map_err(|error| StorageError::from_io("read", &path, error));
    match rustix::fs::flock(&marker, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK) => {
            return Err(StorageError::WorkspaceInUse { dir: dir.into(), pid: owner(&read(&marker)?) });
        }
        Err(error) => return Err(failed(error)),
    }
    // The lock is valid only if the names still refer to the locked files.
    let same =
        |found: Option<Stat>, expected: &Stat| found.is_some_and(|found| beneath::is_same(&found, expected));
    let directory_stat = rustix::fs::fstat(&directory).map_err(failed)?;
    if !same(stat(&directory, MARKER).map_err(failed)?, &marker_stat)
        || !same(stat(parent, DIRECTORY).map_err(failed)?, &directory_stat)
    {
        return Ok(None);
    }
    if !is_ours(&read(&marker)?) {
        return Err(not_ours("its HEADROOM says something else"));
    }
    let text = marker_text();
    marker
        .write_all_at(text.as_bytes(), 0)
        .and_then(|()| marker.set_len(text.len() as u64))
        .map_err(|error| StorageError::from_io("make a file in", dir, error))?;

    let foreign_files = clean(&directory).map_err(failed)?;
    let parent = parent.try_clone().map_err(|error| StorageError::from_io("open", dir, error))?;
    Ok(Some(Workspace {
        dir: dir.into(),
        path,
        parent,
        directory,
        _marker: marker,
        foreign_files,
        removed: false,
    }))
}

/// Removes the files of Headroom; returns the names of other files, and of directories with a mount in them.
fn clean(directory: &OwnedFd) -> Result<Vec<String>, Errno> {
    let mut foreign_files = Vec::new();
    for name in entries(directory)? {
        let kind = stat(directory, &name)?.map(|stat| FileType::from_raw_mode(stat.st_mode));
        let is_kept = match kind {
            _ if name == MARKER => false,
            None => false,
            Some(FileType::RegularFile | FileType::Directory) if name.starts_with(PREFIX) => {
                !beneath::remove(directory, name.as_str())?
            }
            Some(_) => true,
        };
        if is_kept && foreign_files.len() < FOREIGN_NAMES_MAX {
            foreign_files.push(name);
        }
    }
    foreign_files.sort_unstable();
    Ok(foreign_files)
}

fn entries(directory: &OwnedFd) -> Result<Vec<String>, Errno> {
    let mut names = Vec::new();
    for entry in Dir::read_from(directory)? {
        // Names of Headroom are ASCII: one that is not UTF-8 is foreign.
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name != "." && name != ".." {
            names.push(name);
        }
    }
    Ok(names)
}

fn stat(directory: &OwnedFd, name: &str) -> Result<Option<Stat>, Errno> {
    match rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(stat)),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error),
    }
}

fn marker_text() -> String {
    let created = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let pid = std::process::id();
    let start = host::start_ticks(pid).map_or("unknown".into(), |ticks| ticks.to_string());
    format!("{FIRST_LINE}version=1 pid={pid} start={start} created={created}\n")
}

fn read_marker(marker: &File) -> io::Result<Vec<u8>> {
    let mut text = vec![0; MARKER_BYTES_MAX];
    let read = marker.read_at(&mut text, 0)?;
    text.truncate(read);
    Ok(text)
}

/// Whether the marker is Headroom's; a killed one may have left it empty or cut short.
fn is_ours(marker: &[u8]) -> bool {
    marker.starts_with(FIRST_LINE.as_bytes()) || FIRST_LINE.as_bytes().starts_with(marker)
}

fn owner(marker: &[u8]) -> Option<u32> {
    let text = std::str::from_utf8(marker).ok()?;
    text.split_whitespace().find_map(|word| word.strip_prefix("pid="))?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_marker_names_its_owner_and_is_ours_wherever_its_writing_stopped() {
        let text = marker_text();
        assert_eq!(owner(text.as_bytes()), Some(std::process::id()));
        assert!(!text.contains("unknown"));
        for written in 0..=text.len() {
            assert!(is_ours(&text.as_bytes()[..written]), "after {written} bytes");
        }
        assert!(!is_ours(b"keep out"));
    }

    proptest! {
        #[test]
        fn no_marker_makes_the_parser_panic(marker in prop::collection::vec(any::<u8>(), 0..100)) {
            let _ = (is_ours(&marker), owner(&marker));
        }
    }
}
