//! The files that a process has open, by /proc/PID/fd and fdinfo. No file system is queried: it may be another user's (FUSE)
//! and not answer.

use crate::bounded_read::read_bounded;
use crate::process::numbers_in;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// Descriptors of a process that are read, at most: a server with a million connections has that many.
const FILES_MAX: usize = 4096;
/// Longer than any fdinfo of a file.
const FDINFO_BYTES_MAX: u64 = 4096;
const DELETED: &[u8] = b" (deleted)";

/// An open file, directory or device.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OpenFile {
    /// Its name as seen in the mount namespace of the process, without links.
    pub path: PathBuf,
    /// Whether its name was removed.
    pub is_deleted: bool,
    /// Whether it is open for writing.
    pub is_writable: bool,
    /// The number of its mount in the mountinfo of the process.
    pub(crate) mount_id: u64,
}

/// The files of a process that have a name or had one. Empty where there is no such process, or it is another user's and this
/// process is not root.
pub fn open_files(pid: u32) -> Vec<OpenFile> {
    let process = PathBuf::from(format!("/proc/{pid}"));
    let numbers = numbers_in(&process.join("fd")).unwrap_or_default().into_iter().take(FILES_MAX);
    let read = |number: u32| {
        let number = number.to_string();
        let target = fs::read_link(process.join("fd").join(&number)).ok()?;
        let (path, is_deleted) = parse_target(&target)?;
        let info = read_bounded(&process.join("fdinfo").join(&number), FDINFO_BYTES_MAX).ok()?;
        let (is_writable, mount_id) = parse_info(&info)?;
        Some(OpenFile { path, is_deleted, is_writable, mount_id })
    };
    numbers.filter_map(read).collect()
}

/// The directory that a process works in; `None` as for [`open_files`].
pub fn working_directory(pid: u32) -> Option<PathBuf> {
    let target = fs::read_link(format!("/proc/{pid}/cwd")).ok()?;
    parse_target(&target).filter(|(_, is_deleted)| !is_deleted).map(|(path, _)| path)
}

/// "/data/x", "/data/x (deleted)"; `None` for "socket:[7]", "pipe:[7]", "anon_inode:[eventfd]".
fn parse_target(target: &Path) -> Option<(PathBuf, bool)> {
    let bytes = target.as_os_str().as_bytes();
    if !bytes.starts_with(b"/") {
        return None;
    }
    let name = bytes.strip_suffix(DELETED);
    Some((OsString::from_vec(name.unwrap_or(bytes).to_vec()).into(), name.is_some()))
}

/// "pos:\t0\nflags:\t0100002\nmnt_id:\t27\n" (proc_pid_fdinfo(5)): whether it is open for writing, and the mount.
pub(crate) fn parse_info(info: &[u8]) -> Option<(bool, u64)> {
    let text = String::from_utf8_lossy(info);
    let value = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let flags = i32::from_str_radix(value("flags:")?, 8).ok()?;
    let is_writable = matches!(flags & libc::O_ACCMODE, libc::O_WRONLY | libc::O_RDWR);
    Some((is_writable, value("mnt_id:")?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::fs::File;

    #[test]
    fn open_files_are_found_with_their_mode_and_removed_ones_as_such() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().canonicalize().unwrap();
        let written = File::create(place.join("written")).unwrap();
        let read = File::open(place.join("written")).unwrap();
        let removed = File::create(place.join("removed")).unwrap();
        fs::remove_file(place.join("removed")).unwrap();
        let all = open_files(std::process::id());
        let ours: Vec<_> = all.iter().filter(|file| file.path.starts_with(&place)).collect();
        let shown = |name: &str, is_deleted, is_writable| {
            ours.iter().any(|file| {
                (file.path == place.join(name), file.is_deleted, file.is_writable)
                    == (true, is_deleted, is_writable)
            })
        };
        assert!(shown("written", false, true) && shown("written", false, false), "{ours:?}");
        assert!(shown("removed", true, true), "{ours:?}");
        drop((written, read, removed));
        assert!(open_files(u32::MAX).is_empty() && working_directory(u32::MAX).is_none());
        assert_eq!(working_directory(std::process::id()), std::env::current_dir().ok());
    }

    proptest! {
        #[test]
        fn any_link_and_any_info_is_parsed_or_refused(bytes in any::<Vec<u8>>(), flags in any::<u32>(), id in any::<u64>()) {
            let target = PathBuf::from(OsString::from_vec(bytes.clone()));
            prop_assert_eq!(parse_target(&target).is_some(), bytes.starts_with(b"/"));
            parse_info(&bytes);
            let info = format!("pos:\t0\nflags:\t{:o}\nmnt_id:\t{id}\nino:\t7\n", flags >> 1);
            prop_assert_eq!(parse_info(info.as_bytes()).map(|(_, id)| id), Some(id));
        }
    }
}
