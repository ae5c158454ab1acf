//! Limits of a block device by the kernel's own throttle (block/blk-throttle.c).
//!
//! ```text
//! cgroup v1   blkio.throttle.{read,write}_{iops,bps}_device of the root group and of every group below it: there a
//!             limit acts on the tasks of its own group only, so that two groups each get all of it
//! cgroup v2   io.max of the root's children, which acts on all below each; the root itself has none
//! ```

use crate::LunError;
use std::fs;
use std::path::{Path, PathBuf};
use workload::CapKind;

const ALL: [CapKind; 4] = [CapKind::ReadIops, CapKind::WriteIops, CapKind::ReadBytes, CapKind::WriteBytes];
/// A hierarchy is walked no deeper.
const DEPTH_MAX: u32 = 8;

/// Limits the device of that number ("7:3"), in operations or bytes a second.
///
/// # Errors
/// [`LunError::NoThrottle`] where no cgroup has such a limit, or none took it.
pub fn set(number: &str, kind: CapKind, per_second: u64) -> Result<(), LunError> {
    let groups = Groups::of(Path::new("/proc/self/mounts"));
    let line = |v2: bool| match v2 {
        true => format!("{number} {}={per_second}", key_v2(kind)),
        false => format!("{number} {per_second}"),
    };
    let mut taken = 0;
    let mut looked: Vec<String> = Vec::new();
    for (file, v2) in groups.files(kind) {
        match fs::write(&file, line(v2)) {
            Ok(()) => taken += 1,
            // Only the root and our own group must take it: others come and go.
            Err(error) => looked.push(format!("{}: {error}", file.display())),
        }
    }
    if taken > 0 {
        return Ok(());
    }
    looked.truncate(2);
    let looked =
        if looked.is_empty() { "neither blkio of v1 nor io of v2".into() } else { looked.join("; ") };
    Err(LunError::NoThrottle { device: number.into(), looked })
}

/// Takes all limits of the device of that number away: a throttle outlives the attachment of a loop device.
pub fn clear(number: &str) {
    let groups = Groups::of(Path::new("/proc/self/mounts"));
    for kind in ALL {
        for (file, v2) in groups.files(kind) {
            let set = fs::read_to_string(&file).unwrap_or_default();
            if !set.lines().any(|line| line.split(' ').next() == Some(number)) {
                continue;
            }
            let line = if v2 { format!("{number} {}=max", key_v2(kind)) } else { format!("{number} 0") };
            let _ = fs::write(&file, line);
        }
    }
}

/// Where the controllers are mounted.
struct Groups {
    v1: Option<PathBuf>,
    v2: Option<PathBuf>,
}

impl Groups {
    fn of(mounts: &Path) -> Groups {
        let mounts = fs::read_to_string(mounts).unwrap_or_default();
        let point = |wanted: &dyn Fn(&str, &str) -> bool| {
            mounts.lines().find_map(|line| {
                let mut fields = line.split(' ');
                let (point, kind, options) = (fields.nth(1)?, fields.next()?, fields.next()?);
                wanted(kind, options).then(|| PathBuf::from(point))
            })
        };
        Groups {
            v1: point(&|kind, options| {
                kind == "cgroup" && options.split(',').any(|option| option == "blkio")
            }),
            v2: point(&|kind, _| kind == "cgroup2"),
        }
    }

    /// The files that a limit is written to, and whether they speak v2.
    fn files(&self, kind: CapKind) -> Vec<(PathBuf, bool)> {
        let mut files = Vec::new();
        if let Some(root) = &self.v1 {
            walk(root, DEPTH_MAX, &mut |group| files.push((group.join(file_v1(kind)), false)));
        }
        if let Some(root) = &self.v2 {
            walk(root, 1, &mut |group| {
                if group != root {
                    files.push((group.join("io.max"), true));
                }
            });
        }
        files.retain(|(file, _)| file.exists());
        files
    }
}

fn walk(group: &Path, depth: u32, each: &mut dyn FnMut(&Path)) {
    each(group);
    if depth == 0 {
        return;
    }
    let entries = fs::read_dir(group).into_iter().flatten().flatten();
    let below = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    below.for_each(|entry| walk(&entry.path(), depth - 1, each));
}

fn file_v1(kind: CapKind) -> &'static str {
    match kind {
        CapKind::ReadIops => "blkio.throttle.read_iops_device",
        CapKind::WriteIops => "blkio.throttle.write_iops_device",
        CapKind::ReadBytes => "blkio.throttle.read_bps_device",
        CapKind::WriteBytes => "blkio.throttle.write_bps_device",
    }
}

fn key_v2(kind: CapKind) -> &'static str {
    match kind {
        CapKind::ReadIops => "riops",
        CapKind::WriteIops => "wiops",
        CapKind::ReadBytes => "rbps",
        CapKind::WriteBytes => "wbps",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_goes_to_every_group_of_v1_and_to_the_first_level_of_v2() {
        let made = tempfile::tempdir().unwrap();
        let (v1, v2) = (made.path().join("v1"), made.path().join("v2"));
        for group in ["", "a", "a/b"] {
            fs::create_dir_all(v1.join(group)).unwrap();
            fs::create_dir_all(v2.join(group)).unwrap();
            fs::write(v1.join(group).join(file_v1(CapKind::ReadIops)), "").unwrap();
            if !group.is_empty() {
                fs::write(v2.join(group).join("io.max"), "").unwrap();
            }
        }
        let mounts = made.path().join("mounts");
        let text = format!(
            "cgroup {} cgroup rw,relatime,cpu 0 0\ncgroup {} cgroup rw,relatime,blkio 0 0\ncgroup2 {} cgroup2 rw 0 0\n",
            made.path().display(),
            v1.display(),
            v2.display()
        );
        fs::write(&mounts, text).unwrap();
        let groups = Groups::of(&mounts);
        let below = |(file, v2): (PathBuf, bool)| (file.strip_prefix(made.path()).unwrap().to_path_buf(), v2);
        let mut files: Vec<_> = groups.files(CapKind::ReadIops).into_iter().map(below).collect();
        files.sort();
        let wanted = [
            ("v1/a/b/blkio.throttle.read_iops_device", false),
            ("v1/a/blkio.throttle.read_iops_device", false),
            ("v1/blkio.throttle.read_iops_device", false),
            ("v2/a/io.max", true),
        ];
        assert_eq!(files, wanted.map(|(file, v2)| (PathBuf::from(file), v2)));
    }
}
