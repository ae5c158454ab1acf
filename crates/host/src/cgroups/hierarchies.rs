use super::{cgroup_v2, controller_v1, read};
use crate::Mounts;
use std::io;

/// Mounted hierarchies of control groups, as far as they limit I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupHierarchies {
    /// Version 2 is mounted.
    pub has_v2: bool,
    /// Version 2 has the controller `io`, of `io.max`.
    pub has_v2_io: bool,
    /// Version 1 is mounted with the controller `blkio`, of `blkio.throttle.*`.
    pub has_v1_blkio: bool,
}

impl GroupHierarchies {
    /// Those that this process sees.
    ///
    /// # Errors
    /// If /proc is not readable.
    pub fn find() -> io::Result<GroupHierarchies> {
        Ok(GroupHierarchies::find_in(&Mounts::read()?))
    }

    fn find_in(mounts: &Mounts) -> GroupHierarchies {
        let v2 = cgroup_v2(mounts);
        let controllers = v2.map(|mount| read(&mount.point.join("cgroup.controllers"))).unwrap_or_default();
        GroupHierarchies {
            has_v2: v2.is_some(),
            has_v2_io: controllers.split_ascii_whitespace().any(|controller| controller == "io"),
            has_v1_blkio: controller_v1(mounts, "blkio").is_some(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_controller_of_version_2_is_one_of_the_root_s() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().display();
        let both = format!(
            "38 31 0:35 / /sys/fs/cgroup/blkio rw - cgroup cgroup rw,blkio\n41 31 0:38 / {root} rw - cgroup2 cgroup2 rw\n"
        );
        let find = |text: &str| GroupHierarchies::find_in(&Mounts::parse(text.as_bytes()));
        std::fs::write(directory.path().join("cgroup.controllers"), "cpuset cpu memory pids\n").unwrap();
        assert_eq!(find(&both), GroupHierarchies { has_v2: true, has_v2_io: false, has_v1_blkio: true });
        std::fs::write(directory.path().join("cgroup.controllers"), "cpu io\n").unwrap();
        assert_eq!(find(&both), GroupHierarchies { has_v2: true, has_v2_io: true, has_v1_blkio: true });
        assert_eq!(find(""), GroupHierarchies { has_v2: false, has_v2_io: false, has_v1_blkio: false });
    }
}
