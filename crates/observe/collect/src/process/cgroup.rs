//! A control group as the BPF programs identify it: by the inode of its directory, its depth, and its hierarchy.

use super::error::OpenError;
use host::{MOUNTINFO, Mount, Mounts};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// A control group and all groups below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Group {
    /// The kernfs id, which is the inode of its directory.
    pub id: u64,
    /// Depth: the hierarchy's root is 0.
    pub level: u32,
    /// `enum hierarchy` of bpf/who.h.
    pub hierarchy: u32,
}

/// Version 2, and the controllers of version 1 in the order of `enum hierarchy` of bpf/who.h.
const VERSION_2: u32 = 0;
const CONTROLLERS: [&str; 8] = ["cpuset", "cpu", "cpuacct", "blkio", "memory", "devices", "freezer", "pids"];

impl Group {
    /// The group of a directory ("/sys/fs/cgroup/system.slice/postgresql.service").
    pub fn for_path(path: &Path) -> Result<Group, OpenError> {
        let refused = |why: String| OpenError::Cgroup { path: path.into(), why };
        let path = fs::canonicalize(path).map_err(|error| refused(error.to_string()))?;
        let id = fs::metadata(&path).map_err(|error| refused(error.to_string()))?.ino();
        let mounts = Mounts::read().map_err(|error| OpenError::System { path: MOUNTINFO.into(), error })?;
        let mount = mounts.mount_of(&path);
        let (mount, hierarchy) = mount
            .and_then(|mount| Some((mount, hierarchy_of(mount)?)))
            .ok_or_else(|| refused("it is not a directory of a cgroup file system".into()))?;
        let below = path.strip_prefix(&mount.point).unwrap_or(&path);
        let level = depth(&mount.root) + depth(below);
        let hierarchy = hierarchy.ok_or_else(|| {
            refused(format!("of version 1, only groups of {} can be chosen", CONTROLLERS.join(", ")))
        })?;
        Ok(Group { id, level, hierarchy })
    }
}

fn depth(path: &Path) -> u32 {
    path.components().filter(|part| matches!(part, std::path::Component::Normal(_))).count() as u32
}

/// `None` where the mount is not of a cgroup file system, `Some(None)` where it has none of [`CONTROLLERS`].
fn hierarchy_of(mount: &Mount) -> Option<Option<u32>> {
    match mount.filesystem.as_str() {
        "cgroup2" => Some(Some(VERSION_2)),
        "cgroup" => Some(mount.super_options.split(',').find_map(controller_number)),
        _ => None,
    }
}

fn controller_number(controller: &str) -> Option<u32> {
    let at = CONTROLLERS.iter().position(|known| *known == controller)?;
    u32::try_from(at + 1).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_identified_by_hierarchy_and_depth() {
        let mounts = Mounts::parse(
            b"30 1 0:20 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n\
              31 30 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
              32 30 0:28 /docker/1f /sys/fs/cgroup/my\\040groups rw - cgroup2 cgroup2 rw\n\
              33 30 0:29 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd\n",
        );
        let find = |path: &str| {
            let mount = mounts.mount_of(Path::new(path)).unwrap();
            (hierarchy_of(mount), depth(&mount.root))
        };
        assert_eq!(find("/sys/fs/cgroup/memory/db"), (Some(Some(5)), 0));
        assert_eq!(find("/sys/fs/cgroup/my groups/db"), (Some(Some(VERSION_2)), 2));
        assert_eq!(find("/sys/fs/cgroup/systemd/db"), (Some(None), 0));
        assert_eq!(find("/sys/fs/cgroup"), (None, 0));
    }
}
