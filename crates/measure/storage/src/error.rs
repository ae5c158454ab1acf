use std::fmt::Display;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use workload::format_bytes;

/// Why a target cannot be measured. `Display` is the first line of the message; [`facts`](Self::facts) and
/// [`remedy`](Self::remedy) are the lines below it:
///
/// ```text
/// error: cannot measure /mnt/data: the file system is mounted read-only
///   device: /dev/nvme1n1 (xfs)
///   try: remount it read-write, or measure another directory on the same device
/// ```
#[derive(Debug, thiserror::Error)]
pub enum StorageError {
    /// Nothing is at that path.
    #[error("cannot use {}: there is no such file or directory", path.display())]
    NotThere {
        /// The target as named.
        path: PathBuf,
    },
    /// Neither directory, regular file nor block device.
    #[error("cannot use {}: it is a {found}, not a directory, a file or a block device", path.display())]
    NotATarget {
        /// The target as named.
        path: PathBuf,
        /// The kind that it is instead.
        found: &'static str,
    },
    /// The kernel refuses it.
    #[error("cannot {what} {}: {refused} to", path.display())]
    NotPermitted {
        /// The target or what lies in it.
        path: PathBuf,
        /// The step that failed: "open".
        what: &'static str,
        /// The refused user, which determines the remedy.
        refused: Refused,
    },
    /// The file system is mounted read-only.
    #[error("cannot measure {}: the file system is mounted read-only", path.display())]
    ReadOnlyFilesystem {
        /// The target.
        path: PathBuf,
        /// Mount source and file system type: "/dev/nvme1n1 (xfs)".
        device: Option<String>,
    },
    /// The block device is write-protected.
    #[error("cannot write to {}: the device is read-only", path.display())]
    ReadOnlyDevice {
        /// The block device.
        path: PathBuf,
    },
    /// The members do not make a layout.
    #[error("cannot lay out {layout}: {why}")]
    Layout {
        /// "stripe:64K".
        layout: String,
        /// The reason.
        why: String,
    },
    /// The file system has no direct I/O.
    #[error("cannot measure {} with direct I/O: {why}", path.display())]
    NoDirectIo {
        /// The target.
        path: PathBuf,
        /// The reason: "tmpfs keeps its files in memory".
        why: String,
    },
    /// Much of the file has never been written: reading it never reaches the storage.
    #[error(
        "cannot measure {}: {} of its {} were never written, and reading unwritten extents measures nothing",
        path.display(), format_bytes(hole_bytes + unwritten_bytes), format_bytes(*bytes)
    )]
    Unwritten {
        /// The file.
        path: PathBuf,
        /// Bytes without any block behind them.
        hole_bytes: u64,
        /// Bytes allocated but never written.
        unwritten_bytes: u64,
        /// Size of the file.
        bytes: u64,
    },
    /// A directory without a file that is large enough to be read.
    #[error(
        "cannot measure {} by reading what is there: no file below it has {} on this file system",
        path.display(), format_bytes(crate::LIVE_FILE_BYTES_MIN)
    )]
    NoLiveFile {
        /// The directory.
        path: PathBuf,
    },
    /// Files that are to be read as one lie on different file systems.
    #[error("cannot measure {} and {} as one: they lie on different file systems", first.display(), path.display())]
    OtherStorage {
        /// The file that lies elsewhere.
        path: PathBuf,
        /// The first file.
        first: PathBuf,
    },
    /// More files than can be read as one.
    #[error("cannot measure {count} files as one: {most} are the most")]
    TooManyFiles {
        /// Files named.
        count: usize,
        /// Most files that can be read as one.
        most: usize,
    },
    /// Smaller than one aligned block.
    #[error("cannot measure {}: {} hold no block of {align_bytes} B", path.display(), format_bytes(*bytes))]
    TooSmall {
        /// The file or device.
        path: PathBuf,
        /// Its size.
        bytes: u64,
        /// The smallest block.
        align_bytes: u32,
    },
    /// Writing would destroy what Headroom did not make.
    #[error("cannot write to {}: load would destroy the content of this {kind}", path.display())]
    NotOurs {
        /// The target.
        path: PathBuf,
        /// "file" or "block device".
        kind: &'static str,
    },
    /// It is in use: never written to, with `--destroy-data` neither.
    #[error("cannot write to {}: it is in use", path.display())]
    InUse {
        /// The target.
        path: PathBuf,
        /// Every use found: "mounted at /srv", "swap", "held by dm-0".
        uses: Vec<String>,
    },
    /// There is already something at the path of a file to make.
    #[error("cannot make {}: something is there that headroom did not make", path.display())]
    Exists {
        /// The path that exists.
        path: PathBuf,
    },
    /// Load does not run on a directory itself.
    #[error("cannot open {} for load: it is a directory, load runs on a test file in it", path.display())]
    IsDirectory {
        /// The directory.
        path: PathBuf,
    },
    /// The test file would fill the file system.
    #[error("cannot make a test file of {} in {}: not enough room", format_bytes(*bytes), path.display())]
    NoRoom {
        /// The directory.
        path: PathBuf,
        /// Size requested.
        bytes: u64,
        /// Bytes free.
        free_bytes: u64,
        /// Bytes that stay free.
        reserve_bytes: u64,
    },
    /// Writing the test file failed; it was removed.
    #[error(
        "cannot write the test file in {}: {source} after {} of {}; it is removed again",
        path.display(), format_bytes(*done_bytes), format_bytes(*bytes)
    )]
    Filling {
        /// The directory.
        path: PathBuf,
        /// Bytes written before.
        done_bytes: u64,
        /// Size requested.
        bytes: u64,
        /// The kernel's error.
        source: io::Error,
    },
    /// The caller stopped the writing of the test file; it was removed.
    #[error("interrupted while writing the test file in {}; it is removed again", path.display())]
    Interrupted {
        /// The directory.
        path: PathBuf,
    },
    /// Another Headroom works in this directory.
    #[error("cannot measure {}: another headroom is measuring it{}", dir.display(), pid_text(*pid))]
    WorkspaceInUse {
        /// The target directory.
        dir: PathBuf,
        /// Its process, if the marker names it.
        pid: Option<u32>,
    },
    /// There is a `headroom.tmp` that Headroom did not make.
    #[error("cannot use {}: {why}, so headroom did not make it", path.display())]
    WorkspaceNotOurs {
        /// The `headroom.tmp`.
        path: PathBuf,
        /// The reason.
        why: &'static str,
    },
    /// Another user made the `headroom.tmp` or its marker, or may write to it.
    #[error("cannot use {}: {why}", path.display())]
    WorkspaceNotPrivate {
        /// The directory or the marker.
        path: PathBuf,
        /// "it belongs to user 1000, and headroom runs as user 0".
        why: String,
    },
    /// Another user could replace a directory of the path while root works below it.
    #[error("cannot use {} for an experiment: {why}, so that another user may replace what is in it", path.display())]
    PathNotPrivate {
        /// The directory.
        path: PathBuf,
        /// As above.
        why: String,
    },
    /// Another user may lead the path of data that is to be destroyed elsewhere.
    #[error("cannot destroy the data at {}: {why}", path.display())]
    PathOfOthers {
        /// The target as named.
        path: PathBuf,
        /// "its path /srv/disk leads through the link /srv/disk, which user ann made; name its target".
        why: String,
    },
    /// The workspace contains files of others, so that it is kept.
    #[error("{} is kept: it holds files or mounts that headroom did not make", path.display())]
    WorkspaceKept {
        /// The `headroom.tmp`.
        path: PathBuf,
        /// Their names, the first ten.
        names: Vec<String>,
    },
    /// Anything else that the kernel refuses.
    #[error("cannot {what} {}: {source}", path.display())]
    Io {
        /// The step that failed: "open".
        what: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
}

/// Rounds down to whole GiB or MiB.
fn round_down(bytes: u64) -> u64 {
    let unit = if bytes >= 1 << 30 { 1 << 30 } else { 1 << 20 };
    bytes - bytes % unit
}

fn pid_text(pid: Option<u32>) -> String {
    pid.map(|pid| format!(" (process {pid})")).unwrap_or_default()
}

/// User that the kernel refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// A user other than root.
    User,
    /// Root, a block device: the device list of the control group, as of a container, does not include it (EPERM of the
    /// kernel's security/device_cgroup.c).
    DeviceList,
    /// Root, in any other case.
    Root,
}

impl Refused {
    /// Classifies a call on `path` that failed with `errno`.
    fn classify(path: &Path, errno: i32) -> Refused {
        let is_device = || std::fs::metadata(path).is_ok_and(|found| found.file_type().is_block_device());
        match rustix::process::geteuid().is_root() {
            false => Refused::User,
            true if errno == libc::EPERM && is_device() => Refused::DeviceList,
            true => Refused::Root,
        }
    }
}

impl Refused {
    fn remedy(self, path: &Path) -> String {
        match self {
            Refused::User => "run as root, or measure a directory that this user may write to".into(),
            Refused::DeviceList => format!(
                "let it use the device (docker run --device {0}, DeviceAllow={0} rwm of systemd), run outside, or \
                 measure a directory on it",
                path.display()
            ),
            Refused::Root => {
                "look for what refuses root (lsattr: an immutable file; mount options; a security module, in dmesg), \
                 or measure another directory"
                    .into()
            }
        }
    }
}

fn filling_remedy(error: &io::Error) -> Option<&'static str> {
    match error.raw_os_error()? {
        libc::ENOSPC => Some("something else filled the file system: a smaller one"),
        libc::EDQUOT => Some("this user's quota is used up: a smaller one, or another user"),
        libc::EIO => Some(FAILING_STORAGE),
        _ => None,
    }
}

fn io_remedy(error: &io::Error) -> Option<&'static str> {
    match error.raw_os_error()? {
        libc::ENOSPC => Some("free some space, or name another directory"),
        libc::ENOENT => Some("name a directory you can write to"),
        libc::ENOTDIR => Some("name a directory"),
        libc::EIO => Some(FAILING_STORAGE),
        _ => None,
    }
}

const FAILING_STORAGE: &str = "the storage itself fails: read the kernel's log (dmesg)";

impl Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Refused::User => "this user is not permitted",
            Refused::DeviceList => {
                "the devices of this container or control group do not include it, not even root is permitted"
            }
            Refused::Root => "not even root is permitted",
        })
    }
}

impl StorageError {
    /// The error of `what` on `path`, as specific as it can be classified.
    pub(crate) fn from_io(what: &'static str, path: &Path, source: impl Into<io::Error>) -> StorageError {
        let (path, source) = (path.to_path_buf(), source.into());
        match source.raw_os_error() {
            Some(libc::ENOENT) if !path.exists() => StorageError::NotThere { path },
            Some(errno @ (libc::EACCES | libc::EPERM)) => {
                StorageError::NotPermitted { refused: Refused::classify(&path, errno), path, what }
            }
            Some(libc::ETXTBSY) => {
                StorageError::InUse { path, uses: vec!["swap, or a program that runs".into()] }
            }
            // Opened without waiting for a program that has a lease for writing.
            Some(libc::EWOULDBLOCK) if what == "open" => {
                StorageError::InUse { path, uses: vec!["leased by another process".into()] }
            }
            Some(libc::EROFS) => StorageError::ReadOnlyFilesystem { device: mounted_device(&path), path },
            _ => StorageError::Io { what, path, source },
        }
    }

    /// Facts about the case, one per line: "device: /dev/nvme1n1 (xfs)".
    pub fn facts(&self) -> Vec<String> {
        match self {
            StorageError::ReadOnlyFilesystem { device: Some(device), .. } => {
                vec![format!("device: {device}")]
            }
            StorageError::Unwritten { hole_bytes, unwritten_bytes, .. } => vec![
                format!("holes: {}", format_bytes(*hole_bytes)),
                format!("allocated, never written: {}", format_bytes(*unwritten_bytes)),
            ],
            StorageError::InUse { uses, .. } => uses.iter().map(|usage| format!("use: {usage}")).collect(),
            StorageError::NoRoom { bytes, free_bytes, reserve_bytes, .. } => vec![
                format!("wanted: {}", format_bytes(*bytes)),
                format!("free: {}", format_bytes(*free_bytes)),
                format!("kept free for others: {}", format_bytes(*reserve_bytes)),
            ],
            StorageError::WorkspaceKept { names, .. } => vec![format!("files: {}", names.join(", "))],
            _ => Vec::new(),
        }
    }

    /// Remedy for the user; `None` where none is known.
    pub fn remedy(&self) -> Option<String> {
        let text = match self {
            StorageError::NotThere { .. } => "check the path; a directory must exist before it is used".into(),
            StorageError::NotATarget { .. } => {
                "name a directory on the storage in question, or the block device itself (see lsblk)".into()
            }
            StorageError::NotPermitted { path, refused, .. } => refused.remedy(path),
            StorageError::ReadOnlyFilesystem { .. } => {
                "remount it read-write, or measure another directory on the same device".into()
            }
            StorageError::ReadOnlyDevice { .. } => {
                "measure reads only, or make it writable (blockdev --setrw)".into()
            }
            StorageError::Layout { .. } => "--layout stripe:64K --target A --target B, of unlike files or devices".into(),
            StorageError::NoDirectIo { .. } => {
                "--buffered measures through the page cache, and the result says so; or name another directory"
                    .into()
            }
            StorageError::Unwritten { .. } | StorageError::IsDirectory { .. } => {
                "name the directory: headroom then writes a full test file of its own there".into()
            }
            StorageError::NoLiveFile { .. } => {
                "name the directory of the database's files, or some of them (--files); where there is no database yet, \
                 measure without --gentle"
                    .into()
            }
            StorageError::OtherStorage { .. } => "measure the file systems one at a time".into(),
            StorageError::TooManyFiles { .. } => "name the largest of them, or their directory".into(),
            StorageError::Exists { .. } => "name another path; what is there stays as it is".into(),
            StorageError::TooSmall { .. } => "name a larger file, or a directory".into(),
            StorageError::NotOurs { path, kind } => format!(
                "name a directory; or --read-only, which writes nothing; or --destroy-data {}, after which the content \
                 of this {kind} is lost",
                path.display()
            ),
            StorageError::InUse { .. } => {
                "measure a directory on it instead; not even --destroy-data writes to storage in use".into()
            }
            StorageError::NoRoom { bytes, free_bytes, reserve_bytes, .. } => {
                match round_down(free_bytes.saturating_sub(*reserve_bytes)) {
                    0 => "free some space, or measure another directory".into(),
                    room => format!(
                        "a smaller one (up to {} instead of {}), or another directory",
                        format_bytes(room),
                        format_bytes(*bytes)
                    ),
                }
            }
            StorageError::Filling { source, .. } => filling_remedy(source)?.into(),
            StorageError::WorkspaceInUse { .. } => {
                "wait until it is done: two measurements of one storage falsify each other".into()
            }
            StorageError::WorkspaceNotOurs { path, .. } => {
                format!("look at {} and move it away", path.display())
            }
            StorageError::WorkspaceNotPrivate { path, .. } => {
                format!("look at {} and move it away, or run headroom as its owner", path.display())
            }
            StorageError::PathNotPrivate { .. } => {
                "name a directory in which only root may rename files, or run headroom as another user".into()
            }
            StorageError::PathOfOthers { .. } => {
                "name it by a path on which only root and you make links and rename directories, or run headroom as the \
                 user who may"
                    .into()
            }
            StorageError::WorkspaceKept { path, .. } => {
                format!("look at them, unmount what is mounted there, then remove {} yourself", path.display())
            }
            StorageError::Io { source, .. } => io_remedy(source)?.into(),
            StorageError::Interrupted { .. } => return None,
        };
        Some(text)
    }
}
/// "/dev/nvme1n1 (xfs)" for the file system that `path` or its nearest existing parent lies on.
fn mounted_device(path: &Path) -> Option<String> {
    let real = path.ancestors().find_map(|ancestor| std::fs::canonicalize(ancestor).ok())?;
    let mounts = host::Mounts::read().ok()?;
    let mount = mounts.mount_of(&real)?;
    Some(format!("{} ({})", mount.source.display(), mount.filesystem))
}
