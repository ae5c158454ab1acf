use crate::DeviceNumber;
use crate::escape::{unescape, unescape_path};
use crate::kernel_file::read_kernel_file;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// The mounts of this process.
pub const MOUNTINFO: &str = "/proc/self/mountinfo";

/// One mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    id: u64,
    /// `None` where the mount above is not in the list.
    parent: Option<u64>,
    /// Of the file system; anonymous (major 0) for btrfs, tmpfs, overlay, NFS.
    pub number: DeviceNumber,
    /// The directory or file of the file system that is seen at the mount point: "/", or a part for a bind mount.
    pub root: PathBuf,
    /// Where it is mounted.
    pub point: PathBuf,
    /// "ext4".
    pub filesystem: String,
    /// "/dev/nvme0n1", "tmpfs", "server:/export".
    pub source: PathBuf,
    /// Options of the file system: "rw,blkio".
    pub super_options: String,
}

/// The mounts that a process sees, in the kernel's order.
#[derive(Clone, Debug, Default)]
pub struct Mounts(Arc<Vec<Mount>>);

/// The mounts that were read last.
static LAST: Mutex<Option<Known>> = Mutex::new(None);
/// The mount namespace of this process.
const NAMESPACE: &str = "/proc/self/ns/mnt";

/// Mounts that hold until they change.
struct Known {
    namespace: u64,
    /// The kernel reports a change once for each opening of this file (proc_pid_mountinfo(5)).
    file: File,
    mounts: Mounts,
}

impl Known {
    fn read(namespace: u64) -> io::Result<Known> {
        // Opened first: a change while it is read is reported later.
        let file = File::open(MOUNTINFO)?;
        Ok(Known { namespace, file, mounts: Mounts::read_from(Path::new(MOUNTINFO))? })
    }

    fn has_changed(&self) -> bool {
        let mut asked = [PollFd::new(&self.file, PollFlags::PRI)];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        !matches!(poll(&mut asked, Some(&at_once)), Ok(0))
    }
}

impl Mounts {
    /// The mounts that this process sees. They are read again only after a change: samples of counters need them several times a
    /// second.
    ///
    /// # Errors
    /// If /proc is not readable.
    pub fn read() -> io::Result<Mounts> {
        let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
        let namespace = fs::metadata(NAMESPACE)?.ino();
        match &*last {
            Some(known) if known.namespace == namespace && !known.has_changed() => Ok(known.mounts.clone()),
            _ => Ok(last.insert(Known::read(namespace)?).mounts.clone()),
        }
    }

    /// Reads another process's or thread's file.
    pub(crate) fn read_from(mountinfo: &Path) -> io::Result<Mounts> {
        Ok(Mounts::parse(&read_kernel_file(mountinfo)?))
    }

    /// Parses the text of mountinfo (proc_pid_mountinfo(5)). Lines of another form are left out.
    ///
    /// ```text
    /// 36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue
    /// id parent  root  point options    0..n tags - type source   super options
    /// ```
    pub fn parse(mountinfo: &[u8]) -> Mounts {
        let mut mounts: Vec<Mount> = mountinfo.split(|byte| *byte == b'\n').filter_map(parse_line).collect();
        let listed: HashSet<u64> = mounts.iter().map(|mount| mount.id).collect();
        for mount in &mut mounts {
            mount.parent = mount.parent.filter(|parent| *parent != mount.id && listed.contains(parent));
        }
        Mounts(Arc::new(mounts))
    }

    /// All mounts, also those that another one covers.
    pub fn iter(&self) -> impl Iterator<Item = &Mount> {
        self.0.iter()
    }

    /// The mount that an absolute path without symbolic links leads to. As the kernel does, it follows mount points down
    /// from the root, so that a mount below a directory that was mounted over later is not found.
    pub fn mount_of(&self, path: &Path) -> Option<&Mount> {
        let mut reached: Option<&Mount> = None;
        // Each step goes down by one mount: no path takes more steps than there are mounts.
        for _ in 0..self.0.len() {
            let parent = reached.map(|mount| mount.id);
            let below =
                self.0.iter().rev().filter(|mount| mount.parent == parent && path.starts_with(&mount.point));
            match below.min_by_key(|mount| mount.point.as_os_str().len()) {
                Some(next) => reached = Some(next),
                None => break,
            }
        }
        reached
    }

    /// The mount point that a path lies under.
    pub fn point_of(&self, path: &Path) -> Option<&Path> {
        self.mount_of(path).map(|mount| mount.point.as_path())
    }

    /// The mount that the kernel numbers so, as in `mnt_id` of /proc/PID/fdinfo.
    pub(crate) fn with_id(&self, id: u64) -> Option<&Mount> {
        self.0.iter().find(|mount| mount.id == id)
    }

    /// Where the device is mounted first.
    pub fn point_of_device(&self, number: DeviceNumber) -> Option<&Path> {
        self.0.iter().find(|mount| mount.number == number).map(|mount| mount.point.as_path())
    }

    /// The names that a file has, one for each mount that shows it; `within` is its name from the root of its file system.
    pub fn names_of(&self, number: DeviceNumber, within: &Path) -> impl Iterator<Item = PathBuf> {
        let mounts = self.0.iter().filter(move |mount| mount.number == number);
        mounts.filter_map(move |mount| {
            let below = within.strip_prefix(&mount.root).ok()?;
            // `join("")` would add a slash, and a file with a slash after its name is not found.
            Some(if below.as_os_str().is_empty() { mount.point.clone() } else { mount.point.join(below) })
        })
    }

    /// Whether anything is mounted at that path.
    pub fn is_mount_point(&self, path: &Path) -> bool {
        self.0.iter().any(|mount| mount.point == path)
    }
}

impl Mount {
    /// The block device that the file system is on: by its number, or by the mount source where the number is anonymous;
    /// `None` for a file system without a device of its own.
    pub fn block_device(&self) -> Option<DeviceNumber> {
        if self.number.major != 0 {
            return Some(self.number);
        }
        self.source.is_absolute().then(|| DeviceNumber::for_block_device(&self.source)).flatten()
    }

    /// The absolute directories that an overlay lies on, the writable one among them. A name with an escaped ":" is not found.
    pub(crate) fn overlay_layers(&self) -> impl Iterator<Item = &Path> {
        let options = self.super_options.split(',').filter_map(|option| option.split_once('='));
        let layers =
            options.filter(|(name, _)| ["upperdir", "lowerdir", "lowerdir+", "datadir+"].contains(name));
        layers.flat_map(|(_, paths)| paths.split(':')).map(Path::new).filter(|path| path.is_absolute())
    }

    /// Whether the file system has that option.
    pub(crate) fn has_super_option(&self, option: &str) -> bool {
        self.super_options.split(',').any(|each| each == option)
    }
}

fn parse_line(line: &[u8]) -> Option<Mount> {
    let mut fields = line.split(|byte| *byte == b' ');
    let id = ascii(fields.next()?)?.parse().ok()?;
    let parent = ascii(fields.next()?)?.parse().ok()?;
    let number = DeviceNumber::parse(ascii(fields.next()?)?)?;
    let root = without_deleted(unescape(fields.next()?));
    let point = unescape_path(fields.next()?);
    let _mount_options = fields.next()?;
    let mut fields = fields.skip_while(|field| *field != b"-").skip(1);
    let filesystem = lossy(fields.next()?);
    let source = unescape_path(fields.next()?);
    let super_options = lossy(fields.next()?);
    Some(Mount { id, parent: Some(parent), number, root, point, filesystem, source, super_options })
}

fn ascii(field: &[u8]) -> Option<&str> {
    std::str::from_utf8(field).ok()
}

fn lossy(field: &[u8]) -> String {
    String::from_utf8_lossy(&unescape(field)).into_owned()
}

/// The kernel adds "//deleted" to the root of a bind mount whose directory was removed. No other path of the kernel has two
/// slashes in a row.
fn without_deleted(mut root: Vec<u8>) -> PathBuf {
    if root.ends_with(b"//deleted") {
        root.truncate(root.len() - b"//deleted".len());
    }
    PathBuf::from(OsString::from_vec(root))
}

#[cfg(test)]
mod tests;
