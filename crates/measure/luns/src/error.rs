use std::io;
use std::path::PathBuf;
use workload::format_bytes;

/// Why a LUN could not be created, found or removed.
#[derive(Debug, thiserror::Error)]
pub enum LunError {
    /// Only root may set up loop devices, mounts and limits.
    #[error("cannot set up LUNs: that needs root")]
    NotRoot,
    /// An impossible size, limit or model.
    #[error("{0}")]
    Invalid(String),
    /// The system refused a step.
    #[error("cannot {doing} {}: {error}", what.display())]
    Io {
        /// "attach a loop device to".
        doing: &'static str,
        /// The file or device.
        what: PathBuf,
        /// The kernel's reason.
        error: io::Error,
    },
    /// The file system below the file has no direct I/O.
    #[error("cannot do direct I/O on {}: what a LUN on it gave would be memory's", .0.display())]
    NoDirectIo(PathBuf),
    /// No cgroup controller for block devices.
    #[error("cannot limit {device}: no cgroup here has a limit for block devices ({tried})")]
    NoThrottle {
        /// The device, "7:3".
        device: String,
        /// The attempts.
        tried: String,
    },
    /// Not enough free space for its file.
    #[error("cannot allocate {} in {}: {} are free", format_bytes(*bytes), directory.display(), format_bytes(*free_bytes))]
    NoRoom {
        /// The directory of the file.
        directory: PathBuf,
        /// The size of the file.
        bytes: u64,
        /// Free bytes.
        free_bytes: u64,
    },
    /// The serving process ended before it served.
    #[error("the process that was to serve {} ended: {message}", file.display())]
    Server {
        /// The file.
        file: PathBuf,
        /// Its last message.
        message: String,
    },
    /// The device is in use, mounted for example.
    #[error("cannot remove {}: it is {}", device.display(), uses.join(", "))]
    InUse {
        /// The device.
        device: PathBuf,
        /// Each use: "mounted on /mnt".
        uses: Vec<String>,
    },
    /// Not one of Headroom's LUNs.
    #[error("{0} is no LUN that headroom made")]
    NotOurs(String),
    /// The record cannot be parsed.
    #[error("{} is not a record of a LUN: {why}", path.display())]
    Record {
        /// The record.
        path: PathBuf,
        /// The error.
        why: String,
    },
}

impl LunError {
    /// Adds the step that failed, and its file or device.
    pub(crate) fn io(doing: &'static str, what: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> LunError {
        let what = what.into();
        move |error| LunError::Io { doing, what, error }
    }

    /// Remedy for the user.
    pub fn remedy(&self) -> Option<String> {
        Some(match self {
            LunError::NotRoot => "run it as root: sudo headroom luns …".into(),
            LunError::NoDirectIo(_) => "--directory on ext4, xfs or btrfs".into(),
            LunError::NoThrottle { .. } => {
                "mount the blkio controller of cgroup v1, or enable io of v2: echo +io > \
                 /sys/fs/cgroup/cgroup.subtree_control; or --latency and --width, which need none"
                    .into()
            }
            LunError::NoRoom { .. } => "a smaller --size, another --directory, or no --allocate".into(),
            LunError::InUse { .. } => "unmount it first, or end what holds it".into(),
            LunError::NotOurs(_) => "headroom luns list, which names those it made".into(),
            LunError::Record { path, .. } => {
                format!("look at {} and remove it by hand", path.parent().unwrap_or(path).display())
            }
            LunError::Io { error, .. } if error.raw_os_error() == Some(libc::ENODEV) => {
                "load the kernel's module: modprobe loop, modprobe fuse".into()
            }
            LunError::Io { error, .. } if error.kind() == io::ErrorKind::NotFound => {
                "make the directory first, or leave --directory out".into()
            }
            LunError::Io { error, .. } if error.kind() == io::ErrorKind::FileTooLarge => {
                "a smaller --size: the file system holds no file of that one".into()
            }
            LunError::Server { .. } => "FUSE must be there: modprobe fuse, and /dev/fuse".into(),
            _ => return None,
        })
    }
}
