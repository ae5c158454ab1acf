use loop_devices::LoopError;
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
    /// Its loop device could not be attached, limited or detached.
    #[error(transparent)]
    Device(#[from] LoopError),
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
            LunError::NotRoot => "run it as root: sudo headroom lab luns …".into(),
            LunError::NoRoom { .. } => "a smaller --size, another --directory, or no --allocate".into(),
            LunError::InUse { .. } => "unmount it first, or end what holds it".into(),
            LunError::NotOurs(_) => "headroom lab luns list, which names those it made".into(),
            LunError::Record { path, .. } => {
                format!("look at {} and remove it by hand", path.parent().unwrap_or(path).display())
            }
            LunError::Io { error, .. } => return io_remedy(error),
            LunError::Device(error) => return device_remedy(error),
            LunError::Server { .. } => "FUSE must be there: modprobe fuse, and /dev/fuse".into(),
            _ => return None,
        })
    }
}

fn device_remedy(error: &LoopError) -> Option<String> {
    match error {
        LoopError::Io { error, .. } => io_remedy(error),
        LoopError::NoDirectIo(_) => Some("--directory on ext4, xfs or btrfs".into()),
        LoopError::NoThrottle { .. } => Some(
            "mount the blkio controller of cgroup v1, or enable io of v2: echo +io > \
             /sys/fs/cgroup/cgroup.subtree_control; or --latency and --width, which need none"
                .into(),
        ),
        LoopError::Busy(_) => Some("end what holds it".into()),
    }
}

fn io_remedy(error: &io::Error) -> Option<String> {
    let remedy = match error.kind() {
        _ if error.raw_os_error() == Some(libc::ENODEV) => {
            "load the kernel's module: modprobe loop, modprobe fuse"
        }
        io::ErrorKind::NotFound => "make the directory first, or leave --directory out",
        io::ErrorKind::FileTooLarge => "a smaller --size: the file system holds no file of that one",
        _ => return None,
    };
    Some(remedy.into())
}
