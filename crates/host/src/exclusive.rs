//! Whether anything but this program writes to a regular file or has locked it, by the kernel's own account: it also counts what
//! no list of processes shows, as a descriptor that waits in a socket, a swap file, or a loop device.

use crate::file_call::try_read_lease;
use nix::fcntl::{FcntlArg, fcntl};
use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use rustix::io::Errno;
use std::fs::File;
use std::os::fd::AsRawFd;

/// The kernel's answer. Its holder may be this process itself, by another descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Held {
    /// Nothing can write to it or has locked it.
    No,
    /// The file is another user's, or its file system has no leases.
    Unknown,
    /// There is a lock on it; nothing can write to it, or that is unknown.
    Locked,
    /// Something can write to it.
    Writable,
}

impl Held {
    /// Asks about an open file.
    pub fn ask(file: &File) -> Held {
        // A description of its own: a lock that the caller's has would be given up with the test's. NONBLOCK: a lease of
        // another program must not delay the opening.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        let file = match rustix::fs::open(path, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(Errno::WOULDBLOCK) => return Held::Writable,
            Err(_) => return Held::Unknown,
        };
        match try_read_lease(&file) {
            Err(Errno::AGAIN) => Held::Writable,
            _ if has_record_locks(&file) || has_whole_lock(&file) => Held::Locked,
            Ok(()) => Held::No,
            Err(_) => Held::Unknown,
        }
    }
}

/// Whether a lock of fcntl(2) is on any of its bytes.
fn has_record_locks(file: &File) -> bool {
    // A lock for writing conflicts with every other one.
    let mut lock = libc::flock {
        l_type: libc::F_WRLCK as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: 0,
        l_len: 0,
        l_pid: 0,
    };
    fcntl(file, FcntlArg::F_OFD_GETLK(&mut lock)).is_ok() && i32::from(lock.l_type) != libc::F_UNLCK
}

/// Whether it has a lock of flock(2). Ours ends with the descriptor.
fn has_whole_lock(file: &File) -> bool {
    flock(file, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK)
}
