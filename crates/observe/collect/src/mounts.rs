//! Mount points, out of /proc/self/mountinfo (proc_pid_mountinfo(5)).

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// The file systems that this process sees.
#[derive(Debug, Default)]
pub(crate) struct Mounts(Vec<Mount>);

#[derive(Debug, PartialEq, Eq)]
struct Mount {
    device: String,
    /// Which directory of the file system is seen there: another than "/" of a bind mount.
    root: PathBuf,
    point: PathBuf,
}

impl Mounts {
    /// As they are now; none without /proc.
    pub fn now() -> Mounts {
        Mounts::parse(&std::fs::read("/proc/self/mountinfo").unwrap_or_default())
    }

    /// Lines that are not of the form are passed over.
    fn parse(mountinfo: &[u8]) -> Mounts {
        Mounts(mountinfo.split(|byte| *byte == b'\n').filter_map(parse_line).collect())
    }

    /// The mount point that a file lies under: the deepest, and the latest of equals, which covers the
    /// earlier ones.
    pub fn point_of(&self, path: &Path) -> Option<&Path> {
        let above = self.0.iter().filter(|mount| path.starts_with(&mount.point));
        above.max_by_key(|mount| mount.point.components().count()).map(|mount| mount.point.as_path())
    }

    /// The device "MAJOR:MINOR" of the file system that a file lies on.
    pub fn device_of(&self, path: &Path) -> Option<&str> {
        let point = self.point_of(path)?;
        self.0.iter().rev().find(|mount| mount.point == point).map(|mount| mount.device.as_str())
    }

    /// Where the file `within` a file system, a name from its root, is seen: one name for each of its mounts.
    pub fn names_of(&self, device: &str, within: &Path) -> impl Iterator<Item = PathBuf> {
        let mounts = self.0.iter().filter(move |mount| mount.device == device);
        mounts.filter_map(move |mount| Some(mount.point.join(within.strip_prefix(&mount.root).ok()?)))
    }

    /// Where the device "MAJOR:MINOR" is mounted first.
    pub fn point_of_device(&self, number: &str) -> Option<&Path> {
        self.0.iter().find(|mount| mount.device == number).map(|mount| mount.point.as_path())
    }
}

/// `ID PARENT MAJOR:MINOR ROOT POINT OPTIONS ...`
fn parse_line(line: &[u8]) -> Option<Mount> {
    let mut fields = line.split(|byte| *byte == b' ').skip(2);
    let device = String::from_utf8(fields.next()?.to_vec()).ok()?;
    let mut path = || Some(PathBuf::from(OsString::from_vec(unescaped(fields.next()?))));
    let (root, point) = (path()?, path()?);
    point.is_absolute().then_some(Mount { device, root, point })
}

/// Blank, tab, newline and backslash are written as three octal digits.
fn unescaped(field: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, after)) = rest.split_first() {
        let octal = |digits: &[u8]| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok();
        let escaped = (*first == b'\\').then(|| after.get(..3).and_then(octal)).flatten();
        bytes.push(escaped.unwrap_or(*first));
        rest = if escaped.is_some() { &after[3..] } else { after };
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_deepest_mount_point_holds_the_file() {
        let mounts = Mounts::parse(
            b"27 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n\
              40 27 8:1 / /data\\040base rw - xfs /dev/sda1 rw\n\
              41 27 8:2 / /data rw - xfs /dev/sda2 rw\nnonsense\n",
        );
        let point = |path: &str| mounts.point_of(Path::new(path)).unwrap().to_str().unwrap().to_owned();
        assert_eq!(point("/data base/shop.db"), "/data base");
        assert_eq!(point("/data/shop.db"), "/data");
        assert_eq!(point("/database/shop.db"), "/");
        assert_eq!(mounts.point_of_device("8:2"), Some(Path::new("/data")));
        assert_eq!(mounts.point_of_device("8:9"), None);
        assert_eq!(mounts.device_of(Path::new("/data/shop.db")), Some("8:2"));
    }

    #[test]
    fn a_file_is_found_through_each_mount_that_shows_it() {
        let mounts = Mounts::parse(
            b"27 1 8:1 / / rw - ext4 /dev/sda1 rw\n40 27 8:1 /var/lib/volumes /srv rw - ext4 /dev/sda1 rw\n",
        );
        let names: Vec<_> = mounts.names_of("8:1", Path::new("/var/lib/volumes/pg/16384")).collect();
        assert_eq!(names, [Path::new("/var/lib/volumes/pg/16384"), Path::new("/srv/pg/16384")]);
        assert_eq!(mounts.names_of("8:1", Path::new("/etc/passwd")).count(), 1);
    }

    proptest! {
        #[test]
        fn any_text_is_parsed_or_passed_over(text in any::<Vec<u8>>(), line in "[0-9: /\\\\a-z\n-]{0,200}") {
            Mounts::parse(&text);
            Mounts::parse(line.as_bytes());
        }
    }
}
