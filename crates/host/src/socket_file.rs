//! Sockets of the file system whose path another user may have made, and connections to them.
//!
//! ```text
//! /var/run/postgresql/.s.PGSQL.5432     each name is opened in its directory (O_PATH, O_NOFOLLOW):
//!  |   |    |          `- the socket    connected to by this very inode, whatever has its name by then
//!  |   |    `- a directory              entered, whatever user owns it
//!  |   `- a link                        followed where only root or this user can have put it there
//!  `- the root, of this process; of another one where the path begins with /proc/PID/root
//! ```
//! A link that anybody may make leads root to a socket that its user may not reach, and a chain of long ones delays it.

use crate::peer::{Peer, peer_of};
use crate::privileges::{self, Privilege};
use rustix::fs::{CWD, FileType, Mode, OFlags, Stat, fstat, openat, readlinkat};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with, sockopt};
use rustix::process::{Gid, Uid, geteuid};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc;
use std::time::Duration;

/// Directories between the root and a socket, each open during the search. The name of a socket that is bound has at most
/// 107 bytes.
const DEPTH_MAX: usize = 32;
/// Links on one path. Systems have one or two: /var/run, /tmp.
const LINKS_MAX: usize = 8;
/// Names that are opened, those of the targets of links included: a target has up to 4095 bytes.
const NAMES_MAX: usize = 256;
/// Connecting as another user takes microseconds; the caller goes on without a thread that takes longer.
const CONNECT_AS_LIMIT: Duration = Duration::from_secs(1);
/// Threads that connect as another user at the same time, those included that no caller waits for any more.
const CONNECTING_AS_MAX: usize = 128;

static CONNECTING_AS: AtomicUsize = AtomicUsize::new(0);

/// A socket of the file system: the inode, not its name.
#[derive(Debug)]
pub struct SocketFile(OwnedFd);

impl SocketFile {
    /// Finds a socket by its path.
    ///
    /// # Errors
    /// If there is no socket of that name, or a link leads there that a user other than root and this one may have made.
    pub fn find(path: &Path) -> io::Result<SocketFile> {
        let file = Walk::begin(path)?.run()?;
        match FileType::from_raw_mode(fstat(&file)?.st_mode) {
            FileType::Socket => Ok(SocketFile(file)),
            _ => Err(io::Error::other(format!("{} is not a socket", path.display()))),
        }
    }

    /// Connects without waiting: an error where the server has no space for another client.
    ///
    /// # Errors
    /// If nothing listens there, or this user may not connect.
    pub fn connect_at_once(&self) -> io::Result<OwnedFd> {
        let (socket, address) = self.prepare(SocketFlags::NONBLOCK)?;
        connect(&socket, &address)?;
        Ok(socket)
    }

    /// Connects within the limit, even where the server accepts no connection.
    ///
    /// # Errors
    /// If nothing listens there, or this user may not connect.
    pub fn connect_within(&self, limit: Duration) -> io::Result<OwnedFd> {
        if limit.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let (socket, address) = self.prepare(SocketFlags::empty())?;
        // On Linux it limits connect(2), too (unix(7)).
        sockopt::set_socket_timeout(&socket, sockopt::Timeout::Send, Some(limit))?;
        connect(&socket, &address)?;
        Ok(socket)
    }

    /// Connects without waiting as another user: the server and the file system see that user and its group. Only root may
    /// do it. A thread of its own takes on the identity and ends with it.
    ///
    /// # Errors
    /// If nothing listens there, or that user may not connect.
    pub fn connect_as(self, user: u32, group: u32) -> io::Result<OwnedFd> {
        let (socket, address) = self.prepare(SocketFlags::NONBLOCK)?;
        let count = Count::begin()?;
        let (send, receive) = mpsc::sync_channel(1);
        let thread = std::thread::Builder::new().name("connect-as".into()).spawn(move || {
            let connected = as_user(user, group, || connect(&socket, &address));
            // After the limit there is no receiver.
            let _ = send.send(connected.and_then(|connected| Ok(connected.map(|()| socket)?)));
            drop((self, count));
        });
        thread?;
        receive.recv_timeout(CONNECT_AS_LIMIT).map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
    }

    /// A socket to connect, and the address of this inode.
    fn prepare(&self, flags: SocketFlags) -> io::Result<(OwnedFd, SocketAddrUnix)> {
        let address = SocketAddrUnix::new(format!("/proc/self/fd/{}", self.0.as_raw_fd()))?;
        let flags = flags | SocketFlags::CLOEXEC;
        Ok((socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?, address))
    }
}

/// Returns the process that listens on a socket of the file system: connects, sends nothing, and closes.
///
/// # Errors
/// As [`SocketFile::find`] and [`SocketFile::connect_at_once`].
pub fn peer_at(path: &Path) -> io::Result<Peer> {
    peer_of(&SocketFile::find(path)?.connect_at_once()?)
}

/// Runs `work` with the effective user and group of another user in this thread, and ends that.
///
/// The server (SO_PEERCRED) and the file system see the effective ones. Real and saved user stay root: kill(2) compares the
/// sender with these, so that the other user may send no signal to this thread, and with it to the whole process.
/// ptrace(2) and prlimit(2) want all three to be equal. sched_setscheduler(2), sched_setaffinity(2) and setpriority(2) compare
/// with the effective user, but want the sender to have all permitted capabilities too (cap_safe_nice of the kernel), which
/// stay those of root.
fn as_user<T>(user: u32, group: u32, work: impl FnOnce() -> T) -> io::Result<T> {
    let own = geteuid();
    privileges::with(Privilege::OtherUsers, || {
        set_thread_groups(&[])?;
        set_thread_res_gid(None::<Gid>, Gid::from_raw(group), None::<Gid>)?;
        set_thread_res_uid(None::<Uid>, Uid::from_raw(user), None::<Uid>)?;
        let done = work();
        set_thread_res_uid(None::<Uid>, own, None::<Uid>)?;
        Ok(done)
    })
}

/// A thread that connects as another user, counted until it is dropped.
struct Count;

impl Count {
    fn begin() -> io::Result<Count> {
        let before = CONNECTING_AS.fetch_add(1, Relaxed);
        let count = Count;
        if before >= CONNECTING_AS_MAX {
            let why = format!("{CONNECTING_AS_MAX} threads already connect as other users and do not end");
            return Err(io::Error::other(why));
        }
        Ok(count)
    }
}

impl Drop for Count {
    fn drop(&mut self) {
        CONNECTING_AS.fetch_sub(1, Relaxed);
    }
}

/// The search for a file, name by name.
struct Walk {
    path: PathBuf,
    /// From the root down to where the search is.
    directories: Vec<OwnedFd>,
    /// The names that are left, the next one last.
    names: Vec<OsString>,
    links: usize,
}

impl Walk {
    fn begin(path: &Path) -> io::Result<Walk> {
        let path = std::path::absolute(path)?;
        let (root, below) = split_root(&path);
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        // The link /proc/PID/root is the kernel's, and leads to a directory, not to a name.
        let root = openat(CWD, &root, flags, Mode::empty())?;
        let mut walk = Walk { path: path.clone(), directories: vec![root], names: Vec::new(), links: 0 };
        walk.push_names(below);
        Ok(walk)
    }

    fn run(mut self) -> io::Result<OwnedFd> {
        for _ in 0..NAMES_MAX {
            let Some(name) = self.names.pop() else {
                return Err(io::Error::other(format!("{} is not a socket", self.path.display())));
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
                FileType::Directory if self.directories.len() < DEPTH_MAX => self.directories.push(file),
                FileType::Directory => return Err(self.refusal("has too many directories")),
                _ if self.names.is_empty() => return Ok(file),
                _ => return Err(io::ErrorKind::NotADirectory.into()),
            }
        }
        Err(self.refusal("has too many names"))
    }

    fn follow(&mut self, link: &OwnedFd, found: &Stat, name: &OsStr) -> io::Result<()> {
        self.links += 1;
        if self.links > LINKS_MAX {
            return Err(self.refusal("has too many links"));
        }
        let directory = self.directories.last().expect("the root is never left");
        if let Some(why) = distrust(found, &fstat(directory)?) {
            let why = format!("leads through the link {}, {why}; name its target", Path::new(name).display());
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

    fn refusal(&self, why: &str) -> io::Error {
        let why = format!("its path {} {why}", self.path.display());
        io::Error::new(io::ErrorKind::PermissionDenied, why)
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
fn distrust(link: &Stat, directory: &Stat) -> Option<String> {
    let is_own = |stat: &Stat| stat.st_uid == 0 || stat.st_uid == geteuid().as_raw();
    let mode = Mode::from_raw_mode(directory.st_mode);
    let is_open = mode.intersects(Mode::WGRP | Mode::WOTH) && !mode.contains(Mode::SVTX);
    match (is_own(link), is_own(directory)) {
        (false, _) => Some(format!("which user {} made", link.st_uid)),
        (true, false) => Some(format!("whose directory belongs to user {}", directory.st_uid)),
        (true, true) if is_open => Some("whose directory other users may write to".into()),
        (true, true) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::thread::gettid;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, chown, lchown, symlink};
    use std::os::unix::net::UnixListener;
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    const OTHER_USER: u32 = 65_534;

    /// A directory with a socket that listens in `run`.
    fn place() -> (tempfile::TempDir, UnixListener) {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir(place.path().join("run")).unwrap();
        let listener = UnixListener::bind(place.path().join("run/socket")).unwrap();
        (place, listener)
    }

    fn refusal(path: &Path) -> String {
        SocketFile::find(path).unwrap_err().to_string()
    }

    fn is_root() -> bool {
        if !geteuid().is_root() {
            println!("skipped: files of another user need root");
        }
        geteuid().is_root()
    }

    #[test]
    fn links_of_this_user_are_followed() {
        let (place, _listener) = place();
        let path = |name: &str| place.path().join(name);
        symlink("run", path("relative")).unwrap();
        symlink(path("relative"), path("absolute")).unwrap();
        symlink("../run/../relative/socket", path("run/up")).unwrap();
        for name in ["run/socket", "relative/socket", "absolute/socket", "run/up", "run/../run/./socket"] {
            assert!(peer_at(&path(name)).is_ok(), "{name}");
        }
        assert!(
            SocketFile::find(&path("run/socket")).unwrap().connect_within(Duration::from_secs(1)).is_ok()
        );
        for name in ["run", "none", "run/socket/x"] {
            assert!(SocketFile::find(&path(name)).is_err(), "{name}");
        }
        symlink("circle", path("circle")).unwrap();
        assert!(refusal(&path("circle")).contains("too many links"));
        symlink("run/../".repeat(500) + "run", path("long")).unwrap();
        assert!(refusal(&path("long/socket")).contains("too many names"));
        let deep = "d/".repeat(DEPTH_MAX);
        fs::create_dir_all(path(&deep)).unwrap();
        assert!(refusal(&path(&deep).join("socket")).contains("too many directories"));
    }

    #[test]
    fn no_link_that_another_user_may_have_made_is_followed() {
        let (place, _listener) = place();
        let path = |name: &str| place.path().join(name);
        fs::create_dir(path("links")).unwrap();
        symlink("../run", path("links/link")).unwrap();
        let through = path("links/link/socket");
        let set = |mode| fs::set_permissions(path("links"), Permissions::from_mode(mode)).unwrap();
        for open in [0o777, 0o775] {
            set(open);
            assert!(refusal(&through).contains("whose directory other users may write to"), "{open:o}");
        }
        set(0o1777);
        assert!(peer_at(&through).is_ok(), "as in /tmp");
        if !is_root() {
            return;
        }
        set(0o755);
        chown(path("links"), Some(OTHER_USER), None).unwrap();
        assert!(refusal(&through).contains("whose directory belongs to user 65534"));
        chown(path("links"), Some(0), None).unwrap();
        lchown(path("links/link"), Some(OTHER_USER), None).unwrap();
        let refused = refusal(&through);
        assert!(refused.contains("the link link, which user 65534 made; name its target"), "{refused}");
        // Directories and the socket may be anybody's: it is asked who listens.
        chown(path("run"), Some(OTHER_USER), None).unwrap();
        assert!(peer_at(&path("run/socket")).is_ok());
    }

    #[test]
    fn links_below_the_root_of_a_process_end_there() {
        let (place, _listener) = place();
        let path = place.path().join("run/socket");
        let own_root = Path::new("/proc/self/root").join(path.strip_prefix("/").unwrap());
        assert!(peer_at(&own_root).is_ok());
        let below = Path::new("run/mysqld/mysqld.sock");
        assert_eq!(split_root(&Path::new("/proc/812/root").join(below)), ("/proc/812/root".into(), below));
        for other in ["/proc/x/root/run/s", "/proc/812/cwd/s", "/run/s", "/proc/812"] {
            assert_eq!(split_root(Path::new(other)), ("/".into(), Path::new(other)));
        }
        let walk = Walk::begin(&Path::new("/proc/self/root/../..").join(below)).unwrap();
        assert_eq!((walk.directories.len(), walk.names.len()), (1, 5));
    }

    #[test]
    fn while_root_connects_as_another_user_that_user_may_neither_signal_nor_read_nor_slow_it() {
        if !is_root() {
            return;
        }
        let (send, ready) = mpsc::channel();
        let (end, ended) = mpsc::channel();
        let connecting = std::thread::spawn(move || {
            let thread = gettid().as_raw_nonzero();
            as_user(OTHER_USER, OTHER_USER, || {
                let status = fs::read_to_string(format!("/proc/self/task/{thread}/status")).unwrap();
                send.send((thread, status)).unwrap();
                ended.recv().unwrap();
            })
            .unwrap();
            (geteuid().is_root(), fs::read_to_string("/proc/thread-self/status").unwrap())
        });
        let (thread, status) = ready.recv().unwrap();
        let attempts = ["kill -0 TID", "cat /proc/TID/environ", "renice 19 -p TID", "taskset -p 1 TID"];
        let attempts = attempts.map(|attempt| attempt.replace("TID", &thread.to_string()));
        let done = attempts.map(|attempt| {
            let mut shell = Command::new("sh");
            shell.args(["-c", &attempt]).uid(OTHER_USER).gid(OTHER_USER).current_dir("/");
            (shell.output().unwrap().status.success(), attempt)
        });
        end.send(()).unwrap();
        let (is_root_again, after) = connecting.join().unwrap();
        assert!(status.contains("Uid:\t0\t65534\t0\t65534"), "{status}");
        assert!(status.contains("CapEff:\t0000000000000000"), "{status}");
        for (succeeded, attempt) in done {
            assert!(!succeeded, "{attempt}");
        }
        assert!(is_root_again && after.contains("Uid:\t0\t0\t0\t0"), "{after}");
    }

    #[test]
    fn the_server_sees_the_user_that_root_connects_as() {
        if !is_root() {
            return;
        }
        let (place, listener) = place();
        let path = place.path().join("run/socket");
        let connect = || SocketFile::find(&path).unwrap().connect_as(OTHER_USER, OTHER_USER);
        assert_eq!(connect().unwrap_err().kind(), io::ErrorKind::PermissionDenied, "root's own socket");
        fs::set_permissions(&path, Permissions::from_mode(0o666)).unwrap();
        let _client = connect().unwrap();
        let accepted = listener.accept().unwrap().0;
        assert_eq!(peer_of(&accepted).unwrap(), Peer { pid: Some(std::process::id()), user: OTHER_USER });
    }
}
