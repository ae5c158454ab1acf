//! A control group, as the programs in the kernel tell its members: by the number of its directory, its depth, and
//! the hierarchy it is of.

use super::error::OpenError;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Which group: its members and those of all groups below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Group {
    /// kernfs's number, which is the inode of its directory.
    pub id: u64,
    /// How deep it lies: the hierarchy's root is 0.
    pub level: u32,
    /// `enum hierarchy` of bpf/who.h.
    pub hierarchy: u32,
}

/// Version 2, and the controllers of version 1 in the order of `enum hierarchy` of bpf/who.h.
const VERSION_2: u32 = 0;
const CONTROLLERS: [&str; 8] = ["cpuset", "cpu", "cpuacct", "blkio", "memory", "devices", "freezer", "pids"];

/// A mounted hierarchy.
struct Hierarchy {
    root: PathBuf,
    point: PathBuf,
    /// Controllers of version 1; `None` of version 2.
    controllers: Option<Vec<String>>,
}

impl Group {
    /// The group of that directory ("/sys/fs/cgroup/system.slice/postgresql.service").
    pub fn of(path: &Path) -> Result<Group, OpenError> {
        let refused = |why: String| OpenError::Cgroup { path: path.into(), why };
        let path = fs::canonicalize(path).map_err(|error| refused(error.to_string()))?;
        let id = fs::metadata(&path).map_err(|error| refused(error.to_string()))?.ino();
        let mountinfo = read("/proc/self/mountinfo")?;
        let hierarchy = hierarchy_of(&mountinfo, &path)
            .ok_or_else(|| refused("it is no directory of a cgroup file system".into()))?;
        let below = path.strip_prefix(&hierarchy.point).unwrap_or(&path);
        let level = depth(&hierarchy.root) + depth(below);
        let hierarchy = match &hierarchy.controllers {
            None => VERSION_2,
            Some(names) => names.iter().find_map(|name| number_of(name)).ok_or_else(|| {
                refused(format!("of version 1, only groups of {} can be chosen", CONTROLLERS.join(", ")))
            })?,
        };
        Ok(Group { id, level, hierarchy })
    }
}

fn read(path: &str) -> Result<String, OpenError> {
    fs::read_to_string(path).map_err(|error| OpenError::System { path: path.into(), error })
}

fn depth(path: &Path) -> u32 {
    path.components().filter(|part| matches!(part, std::path::Component::Normal(_))).count() as u32
}

/// `ID PARENT MAJOR:MINOR ROOT POINT OPTIONS - TYPE DEVICE OPTIONS`; the deepest mount that the path lies under.
fn hierarchy_of(mountinfo: &str, path: &Path) -> Option<Hierarchy> {
    let hierarchies = mountinfo.lines().filter_map(|line| {
        let (place, kind) = line.split_once(" - ")?;
        let mut place = place.split(' ').skip(3);
        let (root, point) = (PathBuf::from(place.next()?), PathBuf::from(place.next()?));
        let mut kind = kind.split(' ');
        let controllers = match (kind.next()?, kind.nth(1)?) {
            ("cgroup2", _) => None,
            ("cgroup", options) => Some(options.split(',').map(str::to_owned).collect()),
            _ => return None,
        };
        path.starts_with(&point).then_some(Hierarchy { root, point, controllers })
    });
    hierarchies.max_by_key(|hierarchy| depth(&hierarchy.point))
}

fn number_of(controller: &str) -> Option<u32> {
    let at = CONTROLLERS.iter().position(|known| *known == controller)?;
    u32::try_from(at + 1).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "30 1 0:20 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n\
        31 30 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
        32 30 0:28 /docker/1f /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";

    #[test]
    fn a_group_is_told_by_hierarchy_and_depth() {
        let memory = hierarchy_of(MOUNTS, Path::new("/sys/fs/cgroup/memory/db")).unwrap();
        assert_eq!(memory.controllers.unwrap(), ["rw", "memory"]);
        assert_eq!((number_of("rw"), number_of("memory")), (None, Some(5)));
        let unified = hierarchy_of(MOUNTS, Path::new("/sys/fs/cgroup/unified/db")).unwrap();
        assert_eq!((unified.controllers, depth(&unified.root)), (None, 2));
        assert!(hierarchy_of(MOUNTS, Path::new("/home")).is_none());
    }
}
