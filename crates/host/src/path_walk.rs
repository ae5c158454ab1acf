//! The search for a file by a path that another user may lead elsewhere.
//!
//! Each name is opened in its directory (O_PATH, O_NOFOLLOW), and what is there is checked by that descriptor: nothing can
//! take its place between the check and the use.
//!
//! ```text
//! /home/ann/images/disk.img        Trust::Links         Trust::Directories
//!  |    |   |      `- the file     returned as it is: the inode, whatever has its name by then
//!  |    |   `- a link              followed where only root or this user can have put it there
//!  |    `- a directory             owned by any user    refused where another user may rename what is in it
//!  `- the root, of this process; of another one where the path begins with /proc/PID/root
//! ```

use crate::users;
use rustix::fs::{CWD, FileType, Mode, OFlags, Stat, fstat, fstatfs, openat, readlinkat};
use rustix::process::geteuid;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

/// Directories between the root and a file, each open during the search.
const DEPTH_MAX: usize = 128;
/// Directories between the root and a socket, of whose searches many run at the same time. The name of a socket that is
/// bound has at most 107 bytes.
pub(crate) const SOCKET_DEPTH_MAX: usize = 32;
/// Links on one path. Systems have one or two: /var/run, /tmp.
const LINKS_MAX: usize = 8;
/// Names that are opened, those of the targets of links included: a target has up to 4095 bytes.
const NAMES_MAX: usize = 256;
/// The owner that a file system in user space shows for a link is the word of its program, which may be any user's.
const FUSE_MAGIC: u64 = 0x6573_5546;

/// Parts of a path that no other user than root may have made or may replace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trust {
    /// Links. For a socket, of which its server is known once it is connected.
    Links,
    /// Links and directories. For a file that is written to.
    Directories,
}

/// Why a search found no file.
#[derive(Debug)]
pub enum PathError {
    /// The kernel's reason.
    Io(io::Error),
    /// Another user may lead the path elsewhere, or it is too long: the reason, of which the path is the subject.
    Refused(String),
}

impl From<io::Error> for PathError {
    fn from(error: io::Error) -> PathError {
        PathError::Io(error)
    }
}

impl From<rustix::io::Errno> for PathError {
    fn from(error: rustix::io::Errno) -> PathError {
        PathError::Io(error.into())
    }
}

/// Finds a file or device that only root and this user can have put at this path. The descriptor names it (`O_PATH`): open
/// `/proc/self/fd/N` to read or write.
///
/// # Errors
/// [`PathError`].
pub fn find_trusted(path: &Path) -> Result<OwnedFd, PathError> {
    find_file(path, Trust::Directories)
}

/// Checks that only root and this user can lead this path to another directory, and rename files in it.
///
/// # Errors
/// [`PathError`].
pub fn check_directory(path: &Path) -> Result<(), PathError> {
    match find_file(path, Trust::Directories) {
        Err(PathError::Io(error)) if error.kind() == io::ErrorKind::IsADirectory => Ok(()),
        Err(error) => Err(error),
        Ok(_) => Err(io::Error::from(io::ErrorKind::NotADirectory).into()),
    }
}

pub(crate) fn find_file(path: &Path, trust: Trust) -> Result<OwnedFd, PathError> {
    Walk::begin(path, trust)?.run()
}

/// The search for a file, name by name.
struct Walk {
    path: PathBuf,
    trust: Trust,
    /// From the root down to where the search is.
    directories: Vec<OwnedFd>,
    /// The names that are left, the next one last.
    names: Vec<OsString>,
    links: usize,
}

impl Walk {
    fn begin(path: &Path, trust: Trust) -> Result<Walk, PathError> {
        let path = std::path::absolute(path)?;
        let (root, below) = split_root(&path);
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        // The link /proc/PID/root is the kernel's, and leads to a directory, not to a name.
        let root = openat(CWD, &root, flags, Mode::empty())?;
        let mut walk =
            Walk { path: path.clone(), trust, directories: Vec::new(), names: Vec::new(), links: 0 };
        walk.enter(fstat(&root)?, root)?;
        walk.push_names(below);
        Ok(walk)
    }

    fn run(mut self) -> Result<OwnedFd, PathError> {
        for _ in 0..NAMES_MAX {
            let Some(name) = self.names.pop() else {
                return Err(io::Error::from(io::ErrorKind::IsADirectory).into());
            };
            if name == ".." {
                // Above a root is that root.
                self.directories.truncate((self.directories.len() - 1).max(1));
                continue;
            }
            let directory = self.directories.last().expect("the root is never left");
            let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let file = openat(directory, &name, flags, Mode::empty())?;
            let found = fstat(&file)?;
            match FileType::from_raw_mode(found.st_mode) {
                FileType::Symlink => self.follow(&file, &found, &name)?,
                FileType::Directory => self.enter(found, file)?,
                _ if self.names.is_empty() => return Ok(file),
                _ => return Err(io::Error::from(io::ErrorKind::NotADirectory).into()),
            }
        }
        Err(self.refusal("has too many names"))
    }

    fn enter(&mut self, found: Stat, directory: OwnedFd) -> Result<(), PathError> {
        let depth_max = match self.trust {
            Trust::Links => SOCKET_DEPTH_MAX,
            Trust::Directories => DEPTH_MAX,
        };
        if self.directories.len() >= depth_max {
            return Err(self.refusal("has too many directories"));
        }
        if self.trust == Trust::Directories
            && let Some(why) = distrust_directory(&directory, &found)
        {
            let why = format!("leads through {}, which {why}", path_of(&directory).display());
            return Err(self.refusal(&why));
        }
        self.directories.push(directory);
        Ok(())
    }

    fn follow(&mut self, link: &OwnedFd, found: &Stat, name: &OsStr) -> Result<(), PathError> {
        self.links += 1;
        if self.links > LINKS_MAX {
            return Err(self.refusal("has too many links"));
        }
        let directory = self.directories.last().expect("the root is never left");
        if let Some(why) = distrust_link(link, found, directory)? {
            let link = path_of(directory).join(name);
            let why = format!("leads through the link {}, {why}; name its target", link.display());
            return Err(self.refusal(&why));
        }
        let target = readlinkat(link, "", Vec::new())?.into_bytes();
        let target = PathBuf::from(OsString::from_vec(target));
        if target.is_absolute() {
            self.directories.truncate(1);
        }
        self.push_names(&target);
        Ok(())
    }

    fn push_names(&mut self, path: &Path) {
        let names = path.components().rev().filter_map(|component| match component {
            Component::Normal(name) => Some(name.to_owned()),
            Component::ParentDir => Some("..".into()),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
        });
        self.names.extend(names);
    }

    fn refusal(&self, why: &str) -> PathError {
        PathError::Refused(format!("its path {} {why}", self.path.display()))
    }
}

/// The root that a path begins at, and the rest: "/proc/812/root" and "run/mysqld/mysqld.sock".
fn split_root(path: &Path) -> (PathBuf, &Path) {
    let mut components = path.components();
    let first: Vec<Component<'_>> = components.by_ref().take(4).collect();
    let names: Vec<&[u8]> = first.iter().map(|component| component.as_os_str().as_bytes()).collect();
    let is_pid = |name: &[u8]| name == b"self" || name.iter().all(u8::is_ascii_digit);
    match names[..] {
        [b"/", b"proc", pid, b"root"] if is_pid(pid) => (first.iter().collect(), components.as_path()),
        _ => ("/".into(), path),
    }
}

/// Why a link may be another user's work; `None` where only root or this user can have put it into its directory.
fn distrust_link(link: &OwnedFd, found: &Stat, directory: &OwnedFd) -> io::Result<Option<String>> {
    let within = fstat(directory)?;
    Ok(if !is_own(found) {
        Some(format!("which {} made", users::shown(found.st_uid)))
    } else if !is_own(&within) {
        Some(format!("whose directory belongs to {}", users::shown(within.st_uid)))
    } else if is_open(directory, &within) {
        Some("whose directory other users may write to".into())
    } else if fstatfs(link)?.f_type as u64 == FUSE_MAGIC {
        Some("which a program shows that serves a file system (FUSE)".into())
    } else {
        None
    })
}

/// Why another user may rename what is in a directory.
fn distrust_directory(directory: &OwnedFd, found: &Stat) -> Option<String> {
    match is_own(found) {
        false => Some(format!("belongs to {}", users::shown(found.st_uid))),
        true => is_open(directory, found).then(|| "other users may write to".into()),
    }
}

fn is_own(found: &Stat) -> bool {
    found.st_uid == 0 || found.st_uid == geteuid().as_raw()
}

/// Whether other users may remove and rename what is in a directory; in a sticky one only what is theirs.
fn is_open(directory: &OwnedFd, found: &Stat) -> bool {
    let is_sticky = Mode::from_raw_mode(found.st_mode).contains(Mode::SVTX);
    !is_sticky
        && users::others_may_write(&by_descriptor(directory), found.st_uid, found.st_gid, found.st_mode)
}

fn by_descriptor(file: &OwnedFd) -> PathBuf {
    format!("/proc/self/fd/{}", file.as_raw_fd()).into()
}

/// The path of an open directory at present, for messages.
fn path_of(directory: &OwnedFd) -> PathBuf {
    fs::read_link(by_descriptor(directory)).unwrap_or_else(|_| "?".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, lchown, symlink};

    const OTHER_USER: u32 = 65_534;

    #[test]
    fn links_below_the_root_of_a_process_end_there() {
        let below = Path::new("run/mysqld/mysqld.sock");
        assert_eq!(split_root(&Path::new("/proc/812/root").join(below)), ("/proc/812/root".into(), below));
        for other in ["/proc/x/root/run/s", "/proc/812/cwd/s", "/run/s", "/proc/812"] {
            assert_eq!(split_root(Path::new(other)), ("/".into(), Path::new(other)));
        }
        let path = Path::new("/proc/self/root/../..").join(below);
        let walk = Walk::begin(&path, Trust::Links).unwrap();
        assert_eq!((walk.directories.len(), walk.names.len()), (1, 5));
    }

    #[test]
    fn a_file_is_found_by_a_path_that_no_other_user_may_lead_elsewhere() {
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name);
        fs::create_dir(path("images")).unwrap();
        fs::write(path("images/disk"), "precious").unwrap();
        symlink("images", path("link")).unwrap();
        let inode = fs::metadata(path("images/disk")).unwrap().ino();
        let find = |name: &str| match find_trusted(&path(name)) {
            Ok(file) => Ok(fstat(&file).unwrap().st_ino),
            Err(PathError::Refused(why)) => Err(why),
            Err(PathError::Io(error)) => panic!("{error}"),
        };
        let both = ["images/disk", "link/disk", "link/../images/./disk"];
        let all_found = || both.iter().all(|name| find(name) == Ok(inode));
        assert!(all_found());
        let set = |mode| fs::set_permissions(path("images"), Permissions::from_mode(mode)).unwrap();
        set(0o777);
        let refused = find("images/disk").unwrap_err();
        assert!(refused.contains("/images, which other users may write to"), "{refused}");
        set(0o1777);
        assert!(all_found(), "as in /tmp: only its owner renames the file");
        assert!(matches!(find_trusted(&path("images")), Err(PathError::Io(_))), "a directory");
        assert!(check_directory(&path("images")).is_ok());
        assert!(matches!(check_directory(&path("none")), Err(PathError::Io(_))));
        assert!(matches!(find_trusted(&path("none")), Err(PathError::Io(_))));
        if !geteuid().is_root() {
            return println!("skipped: files of another user need root");
        }
        set(0o775);
        chown(path("images"), Some(0), Some(OTHER_USER)).unwrap();
        assert!(find("images/disk").unwrap_err().contains("other users may write to"), "another group");
        set(0o755);
        lchown(path("link"), Some(OTHER_USER), None).unwrap();
        let refused = find("link/disk").unwrap_err();
        let expected =
            format!("the link {}, which user nobody made; name its target", path("link").display());
        assert!(refused.contains(&expected), "{refused}");
        chown(path("images"), Some(OTHER_USER), None).unwrap();
        assert!(find("images/disk").unwrap_err().contains("/images, which belongs to user nobody"));
    }
}
