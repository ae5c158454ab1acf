//! Sockets of the file system whose path another user may have made, and connections to them.
//!
//! The path is walked as [`crate::path_walk`] says, and connected to is the inode that was found. A link that anybody may make
//! leads root to a socket that its user may not reach, and a chain of long ones delays it.

use crate::path_walk::{PathError, Trust, find_file};
use crate::peer::{Peer, peer_of};
use crate::privileges::{self, Privilege};
use rustix::fs::{FileType, fstat};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with, sockopt};
use rustix::process::{Gid, Uid, geteuid};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc;
use std::time::Duration;

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
        let file = find_socket(path)?;
        match FileType::from_raw_mode(fstat(&file)?.st_mode) {
            FileType::Socket => Ok(SocketFile(file)),
            _ => Err(not_a_socket(path)),
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

fn find_socket(path: &Path) -> io::Result<OwnedFd> {
    find_file(path, Trust::Links).map_err(|error| match error {
        PathError::Io(error) if error.kind() == io::ErrorKind::IsADirectory => not_a_socket(path),
        PathError::Io(error) => error,
        PathError::Refused(why) => io::Error::new(io::ErrorKind::PermissionDenied, why),
    })
}

fn not_a_socket(path: &Path) -> io::Error {
    io::Error::other(format!("{} is not a socket", path.display()))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path_walk::SOCKET_DEPTH_MAX;
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
        let deep = "d/".repeat(SOCKET_DEPTH_MAX);
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
        set(0o777);
        assert!(refusal(&through).contains("whose directory other users may write to"));
        set(0o1777);
        assert!(peer_at(&through).is_ok(), "as in /tmp");
        if !is_root() {
            return;
        }
        set(0o755);
        chown(path("links"), Some(OTHER_USER), None).unwrap();
        assert!(refusal(&through).contains("whose directory belongs to user nobody"));
        chown(path("links"), Some(0), None).unwrap();
        lchown(path("links/link"), Some(OTHER_USER), None).unwrap();
        let refused = refusal(&through);
        assert!(refused.contains("links/link, which user nobody made; name its target"), "{refused}");
        // Directories and the socket may be anybody's: it is asked who listens.
        chown(path("run"), Some(OTHER_USER), None).unwrap();
        assert!(peer_at(&path("run/socket")).is_ok());
    }

    #[test]
    fn the_root_of_a_process_is_that_of_its_socket() {
        let (place, _listener) = place();
        let path = place.path().join("run/socket");
        let own_root = Path::new("/proc/self/root").join(path.strip_prefix("/").unwrap());
        assert!(peer_at(&own_root).is_ok());
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
