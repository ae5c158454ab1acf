use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// A device's major and minor number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Number {
    pub major: u32,
    pub minor: u32,
}

impl Number {
    pub fn of(dev: u64) -> Number {
        Number { major: libc::major(dev), minor: libc::minor(dev) }
    }

    /// Reads "254:0".
    pub fn parse(text: &str) -> Option<Number> {
        let (major, minor) = text.trim().split_once(':')?;
        Some(Number { major: major.parse().ok()?, minor: minor.parse().ok()? })
    }

    /// The number of the block device at `path`; `None` if there is none.
    pub fn of_block_device(path: &Path) -> Option<Number> {
        let metadata = fs::metadata(path).ok()?;
        metadata.file_type().is_block_device().then(|| Number::of(metadata.rdev()))
    }
}

impl std::fmt::Display for Number {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.major, self.minor)
    }
}

/// One line of `/proc/self/mountinfo`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mount {
    pub id: u64,
    pub number: Number,
    /// The directory of the file system that is mounted (a bind mount shows a part).
    pub root: PathBuf,
    pub point: PathBuf,
    pub filesystem: String,
    pub source: PathBuf,
    pub super_options: String,
}

/// All mounts of this process, in the kernel's order: later ones cover earlier ones.
#[derive(Clone, Debug)]
pub(crate) struct Mounts(Vec<Mount>);

impl Mounts {
    pub fn read() -> io::Result<Mounts> {
        // A mount point may be any bytes, so this is not read as UTF-8.
        Ok(Mounts::parse(&fs::read("/proc/self/mountinfo")?))
    }

    /// Lines that make no sense are left out.
    pub fn parse(text: &[u8]) -> Mounts {
        Mounts(text.split(|byte| *byte == b'\n').filter_map(parse_line).collect())
    }

    pub fn iter(&self) -> impl Iterator<Item = &Mount> {
        self.0.iter()
    }

    /// The mount that `path` (absolute, without symlinks) lies on: the one with the kernel's mount id, or
    /// the longest mount point above it, on the file system with device number `dev` if any is.
    pub fn holding(&self, path: &Path, mount_id: Option<u64>, dev: Number) -> Option<&Mount> {
        let by_id = mount_id.and_then(|id| self.iter().find(|mount| mount.id == id));
        let above = || self.iter().filter(|mount| path.starts_with(&mount.point));
        // `max_by_key` takes the last of equals: the one that covers the others.
        let longest = |mount: &&Mount| mount.point.as_os_str().len();
        by_id
            .or_else(|| above().filter(|mount| mount.number == dev).max_by_key(longest))
            .or_else(|| above().max_by_key(longest))
    }

    /// "/dev/nvme1n1 (xfs)" for the file system that `path` or its nearest existing parent lies on.
    pub fn source_of(&self, path: &Path) -> Option<String> {
        let there = path.ancestors().find_map(|ancestor| fs::canonicalize(ancestor).ok())?;
        let dev = Number::of(fs::metadata(&there).ok()?.dev());
        let mount = self.holding(&there, None, dev)?;
        Some(format!("{} ({})", mount.source.display(), mount.filesystem))
    }
}

impl Mount {
    /// The block device that the file system is on: by its number, or by the mount source where the number
    /// is anonymous (btrfs); `None` for a file system without one of its own (tmpfs, overlay, NFS).
    pub fn block_device(&self) -> Option<Number> {
        if self.number.major != 0 {
            return Some(self.number);
        }
        self.source.is_absolute().then(|| Number::of_block_device(&self.source)).flatten()
    }
}

/// ```text
/// 36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue
/// id up  dev root  point options  0..n fields - type source  super options      (proc(5))
/// ```
fn parse_line(line: &[u8]) -> Option<Mount> {
    let mut fields = line.split(|byte| *byte == b' ');
    let id = text(fields.next()?)?.parse().ok()?;
    let number = Number::parse(text(fields.nth(1)?)?)?;
    let root = path(fields.next()?);
    let point = path(fields.next()?);
    let mut fields = fields.skip_while(|field| *field != b"-").skip(1);
    let filesystem = text(fields.next()?)?.to_string();
    let source = path(fields.next()?);
    let super_options = text(fields.next()?)?.to_string();
    Some(Mount { id, number, root, point, filesystem, source, super_options })
}

fn text(field: &[u8]) -> Option<&str> {
    std::str::from_utf8(field).ok()
}

/// Blanks, tabs, newlines and backslashes are written `\ooo`, in octal.
fn path(field: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, after)) = rest.split_first() {
        let escaped = match (first, after) {
            (b'\\', [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', ..]) => {
                Some((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'))
            }
            _ => None,
        };
        bytes.push(escaped.unwrap_or(*first));
        rest = if escaped.is_some() { &after[3..] } else { after };
    }
    PathBuf::from(std::ffi::OsString::from_vec(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TEXT: &[u8] = b"\
22 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard
31 22 259:1 / /srv rw - xfs /dev/nvme0n1 rw
32 31 0:45 /@data /srv/my\\040data rw,noatime shared:7 master:2 - btrfs /dev/sdb1 rw,subvolid=5
33 22 0:46 / /tmp rw - tmpfs tmpfs rw
34 22 259:2 / /srv rw - ext4 /dev/nvme1n1 rw
nonsense
35 22 x:y / /bad rw - ext4 /dev/q rw
";

    fn holding(path: &str, dev: (u32, u32)) -> PathBuf {
        let dev = Number { major: dev.0, minor: dev.1 };
        Mounts::parse(TEXT).holding(Path::new(path), None, dev).unwrap().source.clone()
    }

    #[test]
    fn the_longest_mount_above_a_path_holds_it() {
        assert_eq!(holding("/home/x", (254, 0)), Path::new("/dev/vda"));
        assert_eq!(holding("/srv/my data/pg", (0, 99)), Path::new("/dev/sdb1"));
        assert_eq!(holding("/srvother", (254, 0)), Path::new("/dev/vda"));
    }

    #[test]
    fn of_two_mounts_on_one_point_the_device_number_or_else_the_later_decides() {
        assert_eq!(holding("/srv/a", (259, 1)), Path::new("/dev/nvme0n1"));
        assert_eq!(holding("/srv/a", (259, 2)), Path::new("/dev/nvme1n1"));
        assert_eq!(holding("/srv/a", (0, 7)), Path::new("/dev/nvme1n1"));
        let mounts = Mounts::parse(TEXT);
        let dev = Number { major: 259, minor: 2 };
        assert_eq!(mounts.holding(Path::new("/srv/a"), Some(31), dev).unwrap().id, 31);
    }

    #[test]
    fn escapes_are_decoded_and_nonsense_is_left_out() {
        let mounts = Mounts::parse(TEXT);
        assert_eq!(mounts.iter().count(), 5);
        assert!(mounts.iter().any(|mount| mount.point == Path::new("/srv/my data")));
        assert_eq!(path(b"a\\134b\\400\\1"), Path::new("a\\b\\400\\1"));
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(text in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Mounts::parse(&text);
        }

        #[test]
        fn no_broken_line_makes_the_parser_panic(at in 0..TEXT.len(), byte in any::<u8>()) {
            let mut text = TEXT.to_vec();
            text[at] = byte;
            let _ = Mounts::parse(&text);
        }
    }
}
