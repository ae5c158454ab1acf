use std::io;
use std::path::PathBuf;

/// Why a loop device could not be attached, limited or detached.
#[derive(Debug, thiserror::Error)]
pub enum LoopError {
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
    #[error("cannot do direct I/O on {}: a disk on it would measure memory", .0.display())]
    NoDirectIo(PathBuf),
    /// No cgroup controller for block devices.
    #[error("cannot limit {device}: no cgroup here has a limit for block devices ({tried})")]
    NoThrottle {
        /// The device, "7:3".
        device: String,
        /// Control groups that were tried, and why each failed.
        tried: String,
    },
    /// Another process keeps the device; the kernel detaches it when the last one closes it.
    #[error("cannot detach {}: another process keeps it", .0.display())]
    Busy(PathBuf),
}

impl LoopError {
    /// Adds the step that failed, and its file or device.
    pub(crate) fn io(doing: &'static str, what: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> LoopError {
        let what = what.into();
        move |error| LoopError::Io { doing, what, error }
    }
}
