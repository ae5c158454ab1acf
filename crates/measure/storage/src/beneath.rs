//! Opening and removing names below an open directory safely while other users rename or replace them, and checks of
//! ownership.

use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, Dir, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;
use rustix::path::Arg;
use std::fs;

/// The deepest nesting that is removed. No engine nests deeper, and each level keeps a descriptor open.
const DEPTH_MAX: usize = 64;

/// Opens a name in `directory`, never through a symbolic link (`ELOOP`, or `ENOTDIR` where a directory is expected) and
/// never what is mounted there (`EXDEV`).
pub(crate) fn open(
    directory: impl AsFd,
    name: impl Arg + Copy,
    flags: OFlags,
    mode: Mode,
) -> Result<OwnedFd, Errno> {
    let (flags, mode) = (flags | OFlags::NOFOLLOW | OFlags::CLOEXEC, mode);
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
    match rustix::fs::openat2(&directory, name, flags, mode, resolve) {
        // Before Linux 5.6, or not permitted in this container.
        Err(Errno::NOSYS | Errno::PERM) => open_on_mount(directory, name, flags, mode),
        opened => opened,
    }
}

/// Opens without `openat2`. A file on another mount is opened and closed again.
fn open_on_mount(directory: impl AsFd, name: impl Arg, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
    let opened = rustix::fs::openat(&directory, name, flags, mode)?;
    if mount_id(&opened)? == mount_id(&directory)? { Ok(opened) } else { Err(Errno::XDEV) }
}

/// The id of the mount that an open file is on, as text.
fn mount_id(file: impl AsFd) -> Result<String, Errno> {
    let info = fs::read_to_string(format!("/proc/self/fdinfo/{}", file.as_fd().as_raw_fd()));
    let info = info.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    info.lines().find_map(|line| line.strip_prefix("mnt_id:")).map(str::to_owned).ok_or(Errno::NOTSUP)
}

/// Removes a file or a directory with all that is in it. `false` if something is mounted there or below: that stays, and
/// so do the directories above it.
pub(crate) fn remove(directory: impl AsFd, name: impl Arg + Copy) -> Result<bool, Errno> {
    remove_below(directory.as_fd(), name, 0)
}

fn remove_below(directory: BorrowedFd<'_>, name: impl Arg + Copy, depth: usize) -> Result<bool, Errno> {
    match rustix::fs::unlinkat(directory, name, AtFlags::empty()) {
        Err(Errno::ISDIR) => {}
        done => return is_gone(done),
    }
    if depth == DEPTH_MAX {
        return Err(Errno::NAMETOOLONG);
    }
    let below = match open(directory, name, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()) {
        Ok(below) => below,
        Err(Errno::XDEV) => return Ok(false),
        Err(error) => return is_gone(Err(error)),
    };
    let mut is_empty = true;
    for entry in Dir::read_from(&below)? {
        let entry = entry?;
        if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
            is_empty &= remove_below(below.as_fd(), entry.file_name(), depth + 1)?;
        }
    }
    if !is_empty {
        return Ok(false);
    }
    is_gone(rustix::fs::unlinkat(directory, name, AtFlags::REMOVEDIR))
}

fn is_gone(removed: Result<(), Errno>) -> Result<bool, Errno> {
    match removed {
        Ok(()) | Err(Errno::NOENT) => Ok(true),
        // A mount point.
        Err(Errno::BUSY) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Why a file may have been made or changed by another user; `None` if only this user, and root, can have done so.
pub(crate) fn not_private(owner: u32, mode: u32) -> Option<String> {
    let user = rustix::process::geteuid().as_raw();
    if owner != user {
        return Some(format!("it belongs to user {owner}, and headroom runs as user {user}"));
    }
    (mode & 0o022 != 0).then(|| "other users may write to it".into())
}

/// Whether the name leads to the same file as before.
pub(crate) fn is_same(found: &Stat, expected: &Stat) -> bool {
    (found.st_dev, found.st_ino) == (expected.st_dev, expected.st_ino)
}

#[cfg(test)]
mod tests {
    use super::*;

    const READ: OFlags = OFlags::RDONLY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

    #[test]
    fn without_openat2_links_and_mounts_are_refused_too() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("file"), "").unwrap();
        std::os::unix::fs::symlink("file", directory.path().join("link")).unwrap();
        let opened = fs::File::open(directory.path()).unwrap();
        let root = fs::File::open("/").unwrap();
        type Open = fn(&fs::File, &str) -> Result<OwnedFd, Errno>;
        let opens: [Open; 2] = [
            |directory, name| open(directory, name, READ, Mode::empty()),
            |directory, name| open_on_mount(directory, name, READ, Mode::empty()),
        ];
        for open in opens {
            assert!(open(&opened, "file").is_ok());
            assert_eq!(open(&opened, "link").unwrap_err(), Errno::LOOP);
            // Mounted on every Linux that tests run on.
            assert_eq!(open(&root, "proc").unwrap_err(), Errno::XDEV);
        }
    }

    #[test]
    fn a_directory_that_is_too_deep_is_an_error_and_no_overflow() {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir_all(directory.path().join("deep/".repeat(DEPTH_MAX))).unwrap();
        let opened = fs::File::open(directory.path()).unwrap();
        assert_eq!(remove(&opened, "deep"), Ok(true));
        fs::create_dir_all(directory.path().join("deep/".repeat(DEPTH_MAX + 1))).unwrap();
        assert_eq!(remove(&opened, "deep"), Err(Errno::NAMETOOLONG));
    }
}
