//! Control groups, and the limits of block devices and of memory that they carry.
//!
//! ```text
//! version 1   blkio.throttle.{read,write}_{iops,bps}_device of a group: acts on the tasks of that group only, so that two
//!             groups each get all of it. Only the hierarchy of version 2 has parents (block/blk-throttle.c). Writes
//!             through the page cache are the kernel's own and fall under the write limits of the root group.
//! version 2   io.max of every group from the process's own up to the root's children, which act together
//! ```

mod hierarchies;

pub use hierarchies::GroupHierarchies;

use crate::kernel_file::{read_kernel_file, read_kernel_text};
use crate::{DeviceNumber, Mount, Mounts};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use workload::{Cap, CapKind, DeviceFacts};

const KINDS: [CapKind; 4] = [CapKind::ReadIops, CapKind::WriteIops, CapKind::ReadBytes, CapKind::WriteBytes];
/// A hierarchy is searched no deeper.
const DEPTH_MAX: u32 = 8;

/// The control groups of a process, as the kernel lists them.
///
/// # Errors
/// If the process is gone.
pub fn control_groups(pid: u32) -> io::Result<Vec<u8>> {
    read_kernel_file(format!("/proc/{pid}/cgroup"))
}

/// Limits that act on I/Os of a process to any of `devices`: a database's limits are those of its group, not of ours. Empty
/// if the process is gone.
pub fn caps_for(devices: &[DeviceFacts], pid: u32) -> Vec<Cap> {
    let Ok(mounts) = Mounts::read() else { return Vec::new() };
    let Ok(groups) = control_groups(pid) else { return Vec::new() };
    caps_of(devices, &mounts, &groups)
}

fn caps_of(devices: &[DeviceFacts], mounts: &Mounts, groups: &[u8]) -> Vec<Cap> {
    let mut caps = Vec::new();
    let mut add = |file: &Path, limits| caps.extend(caps_in(devices, file, limits));
    if let Some(mount) = controller_v1(mounts, "blkio") {
        let path = directories(mount, group(groups, Some("blkio")).unwrap_or(Path::new("/")));
        for (at, directory) in path.iter().enumerate() {
            let is_own = at == 0;
            let is_root = at + 1 == path.len();
            for kind in KINDS {
                let is_write = matches!(kind, CapKind::WriteIops | CapKind::WriteBytes);
                if is_own || (is_root && is_write) {
                    let file = directory.join(names(kind).0);
                    add(&file, limits_v1(&file, kind));
                }
            }
        }
    }
    if let Some(mount) = cgroup_v2(mounts) {
        for directory in directories(mount, group(groups, None).unwrap_or(Path::new("/"))) {
            let file = directory.join("io.max");
            add(&file, parse_io_max(&read(&file)));
        }
    }
    caps
}

/// Limits of any control group of this host on any of `devices`, each of which holds for the processes of its group.
pub fn caps_on(devices: &[DeviceFacts]) -> Vec<Cap> {
    Mounts::read().map_or_else(|_| Vec::new(), |mounts| caps_of_all_groups(devices, &mounts))
}

fn caps_of_all_groups(devices: &[DeviceFacts], mounts: &Mounts) -> Vec<Cap> {
    let mut caps = Vec::new();
    let mut add = |file: &Path, limits| caps.extend(caps_in(devices, file, limits));
    if let Some(mount) = controller_v1(mounts, "blkio") {
        for_each_group(&mount.point, DEPTH_MAX, &mut |group| {
            for kind in KINDS {
                let file = group.join(names(kind).0);
                add(&file, limits_v1(&file, kind));
            }
        });
    }
    if let Some(mount) = cgroup_v2(mounts) {
        for_each_group(&mount.point, DEPTH_MAX, &mut |group| {
            let file = group.join("io.max");
            add(&file, parse_io_max(&read(&file)));
        });
    }
    caps
}

type Limit = (DeviceNumber, CapKind, u64);

/// Those of a file's limits that are on these devices.
fn caps_in(devices: &[DeviceFacts], file: &Path, limits: Vec<Limit>) -> Vec<Cap> {
    let cap = |(number, kind, per_second): Limit| {
        let device = number.to_string();
        let is_known = devices.iter().any(|known| known.number == device);
        is_known.then(|| Cap { kind, per_second, device, origin: file.display().to_string() })
    };
    limits.into_iter().filter_map(cap).collect()
}

fn limits_v1(file: &Path, kind: CapKind) -> Vec<Limit> {
    parse_throttle(&read(file)).into_iter().map(|(number, limit)| (number, kind, limit)).collect()
}

/// Count of a limit since its group exists: operations or bytes, as [`Cap::kind`] says. It counts I/Os as submitted, before the
/// block layer merges them, and a flush as a write: that count, not the device's counters, is held against the limit.
///
/// # Errors
/// If the group is gone, its name is not UTF-8, or it counts nothing of that device.
pub fn cap_counted(cap: &Cap) -> io::Result<u64> {
    let (file, name) = counting_file(Path::new(&cap.origin), cap.kind);
    let text = read_kernel_text(&file)?;
    let counted = match name {
        CounterName::V1(direction) => parse_counted_v1(&text, &cap.device, direction),
        CounterName::V2(key) => parse_counted_v2(&text, &cap.device, key),
    };
    counted.ok_or_else(|| {
        io::Error::new(io::ErrorKind::NotFound, format!("{} has no {}", file.display(), cap.device))
    })
}

/// Name of a counter: the second word of "254:0 Write 4711", or a key of "254:0 rbytes=8192 ... wios=0 ...".
enum CounterName {
    V1(&'static str),
    V2(&'static str),
}

/// The file in which the group of a limit counts.
fn counting_file(origin: &Path, kind: CapKind) -> (PathBuf, CounterName) {
    if origin.file_name().is_some_and(|name| name == "io.max") {
        let key = match kind {
            CapKind::ReadIops => "rios",
            CapKind::WriteIops => "wios",
            CapKind::ReadBytes => "rbytes",
            CapKind::WriteBytes => "wbytes",
        };
        return (origin.with_file_name("io.stat"), CounterName::V2(key));
    }
    let (name, direction) = match kind {
        CapKind::ReadIops => ("blkio.throttle.io_serviced", "Read"),
        CapKind::WriteIops => ("blkio.throttle.io_serviced", "Write"),
        CapKind::ReadBytes => ("blkio.throttle.io_service_bytes", "Read"),
        CapKind::WriteBytes => ("blkio.throttle.io_service_bytes", "Write"),
    };
    (origin.with_file_name(name), CounterName::V1(direction))
}

fn parse_counted_v1(text: &str, device: &str, direction: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let mut words = line.split_ascii_whitespace();
        let is_wanted = words.next() == Some(device) && words.next() == Some(direction);
        is_wanted.then(|| words.next()?.parse().ok())?
    })
}

fn parse_counted_v2(text: &str, device: &str, key: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(device)?.strip_prefix(' '))?;
    let pairs = line.split_ascii_whitespace().filter_map(|pair| pair.split_once('='));
    pairs.filter(|(name, _)| *name == key).find_map(|(_, value)| value.parse().ok())
}

/// The directory of a process's own group of version 2.
///
/// # Errors
/// If there is no hierarchy of version 2, the process is gone, or in the root group.
pub(crate) fn own_group_v2(pid: u32) -> io::Result<PathBuf> {
    let groups = control_groups(pid)?;
    own_group_v2_of(&Mounts::read()?, &groups)
        .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "it has no control group of its own"))
}

fn own_group_v2_of(mounts: &Mounts, groups: &[u8]) -> Option<PathBuf> {
    let mount = cgroup_v2(mounts)?;
    let mut directories = directories(mount, group(groups, None)?);
    (directories.len() > 1).then(|| directories.swap_remove(0))
}

/// The directory of the nearest group of a process that has the controller `cpu`; `None` where that is the root.
pub(crate) fn cpu_group(mounts: &Mounts, groups: &[u8]) -> Option<PathBuf> {
    if let Some(mount) = controller_v1(mounts, "cpu") {
        let own = group(groups, Some("cpu"))?;
        return (own != Path::new("/")).then(|| directories(mount, own).swap_remove(0));
    }
    // The root has no weight. In a container the mount shows the container's group, which has one.
    let mut directories = directories(cgroup_v2(mounts)?, group(groups, None)?).into_iter();
    directories.find(|directory| directory.join("cpu.weight").exists())
}

/// A file of a control group that limits block devices.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ThrottleFile {
    /// `blkio.throttle.*_device` of version 1.
    V1(PathBuf),
    /// `io.max` of version 2.
    V2(PathBuf),
}

impl ThrottleFile {
    /// Where it lies.
    pub fn path(&self) -> &Path {
        match self {
            ThrottleFile::V1(path) | ThrottleFile::V2(path) => path,
        }
    }

    /// The line that sets the limit of a device when it is written to the file; `None` removes the limit.
    pub fn line(&self, number: DeviceNumber, kind: CapKind, per_second: Option<u64>) -> String {
        match (self, per_second) {
            (ThrottleFile::V1(_), limit) => format!("{number} {}", limit.unwrap_or(0)),
            (ThrottleFile::V2(_), Some(limit)) => format!("{number} {}={limit}", names(kind).1),
            (ThrottleFile::V2(_), None) => format!("{number} {}=max", names(kind).1),
        }
    }

    /// Whether the file limits the device.
    pub fn has_limit(&self, number: DeviceNumber) -> bool {
        let number = number.to_string();
        read(self.path()).lines().any(|line| line.split(' ').next() == Some(&number))
    }
}

/// The files that together limit a device for all processes: those of every group of version 1, and of the root's children
/// of version 2, each of which acts on all groups below; its root has none.
///
/// # Errors
/// If /proc is not readable.
pub fn throttle_files(kind: CapKind) -> io::Result<Vec<ThrottleFile>> {
    Ok(throttle_files_below(&Mounts::read()?, kind))
}

fn throttle_files_below(mounts: &Mounts, kind: CapKind) -> Vec<ThrottleFile> {
    let mut files = Vec::new();
    if let Some(mount) = controller_v1(mounts, "blkio") {
        for_each_group(&mount.point, DEPTH_MAX, &mut |group| {
            files.push(ThrottleFile::V1(group.join(names(kind).0)));
        });
    }
    if let Some(mount) = cgroup_v2(mounts) {
        for_each_group(&mount.point, 1, &mut |group| {
            if group != mount.point {
                files.push(ThrottleFile::V2(group.join("io.max")));
            }
        });
    }
    files.retain(|file| file.path().exists());
    files
}

fn for_each_group(group: &Path, depth: u32, visit: &mut dyn FnMut(&Path)) {
    visit(group);
    if depth == 0 {
        return;
    }
    let entries = fs::read_dir(group).into_iter().flatten().flatten();
    let below = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    below.for_each(|entry| for_each_group(&entry.path(), depth - 1, visit));
}

/// Bytes that this process may still take before the limit of its control group, or of a group above, ends a process;
/// `None` where no group has a limit. Memory of the page cache counts as free: the kernel takes it back.
pub(crate) fn memory_left() -> Option<u64> {
    memory_left_of(&Mounts::read().ok()?, &read_kernel_file("/proc/self/cgroup").ok()?)
}

/// The names of the limit, the usage and the two lists of the page cache, which include the groups below.
const MEMORY_V1: [&str; 4] =
    ["memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file", "total_active_file"];
const MEMORY_V2: [&str; 4] = ["memory.max", "memory.current", "inactive_file", "active_file"];

fn memory_left_of(mounts: &Mounts, groups: &[u8]) -> Option<u64> {
    let v1 = controller_v1(mounts, "memory").map(|mount| (mount, Some("memory"), MEMORY_V1));
    let v2 = cgroup_v2(mounts).map(|mount| (mount, None, MEMORY_V2));
    let left = [v1, v2].into_iter().flatten().filter_map(|(mount, controller, names)| {
        let own = group(groups, controller)?;
        directories(mount, own).iter().filter_map(|directory| memory_left_in(directory, names)).min()
    });
    left.min()
}

fn memory_left_in(directory: &Path, [limit, usage, inactive, active]: [&str; 4]) -> Option<u64> {
    let number = |name: &str| read(&directory.join(name)).trim().parse::<u64>().ok();
    // Without a limit: "max", or in version 1 a number beyond any memory.
    let limit = number(limit).filter(|limit| *limit < i64::MAX as u64 / 2)?;
    let statistics = read(&directory.join("memory.stat"));
    let of_line = |line: &str| {
        let (name, bytes) = line.split_once(' ')?;
        [inactive, active].contains(&name).then(|| bytes.parse::<u64>().ok())?
    };
    let cache = statistics.lines().filter_map(of_line).fold(0, u64::saturating_add);
    Some(limit.saturating_sub(number(usage)?.saturating_sub(cache)))
}

fn controller_v1<'m>(mounts: &'m Mounts, controller: &str) -> Option<&'m Mount> {
    mounts.iter().find(|mount| mount.filesystem == "cgroup" && mount.has_super_option(controller))
}

fn cgroup_v2(mounts: &Mounts) -> Option<&Mount> {
    mounts.iter().find(|mount| mount.filesystem == "cgroup2")
}

/// The file of version 1 that limits I/Os of a kind, and the key of version 2.
fn names(kind: CapKind) -> (&'static str, &'static str) {
    match kind {
        CapKind::ReadIops => ("blkio.throttle.read_iops_device", "riops"),
        CapKind::WriteIops => ("blkio.throttle.write_iops_device", "wiops"),
        CapKind::ReadBytes => ("blkio.throttle.read_bps_device", "rbps"),
        CapKind::WriteBytes => ("blkio.throttle.write_bps_device", "wbps"),
    }
}

fn read(file: &Path) -> String {
    read_kernel_text(file).unwrap_or_default()
}

/// The group of a process from `/proc/PID/cgroup`: "7:blkio:/a/b", for version 2 "0::/a/b". A group's name may be any bytes.
fn group<'t>(text: &'t [u8], controller: Option<&str>) -> Option<&'t Path> {
    text.split(|byte| *byte == b'\n').find_map(|line| {
        let mut fields = line.splitn(3, |byte| *byte == b':');
        let (hierarchy, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
        let is_wanted = match controller {
            Some(name) => controllers.split(|byte| *byte == b',').any(|each| each == name.as_bytes()),
            None => hierarchy == b"0" && controllers.is_empty(),
        };
        is_wanted.then(|| Path::new(std::ffi::OsStr::from_bytes(path)))
    })
}

/// The directories of `group` and its parents, own first, the mount's root last.
fn directories(mount: &Mount, group: &Path) -> Vec<PathBuf> {
    // In a container the mount may show only a part of the tree, or the group lie outside of it ("/../x").
    let below = group.strip_prefix(&mount.root).unwrap_or_else(|_| group.strip_prefix("/").unwrap_or(group));
    let is_outside = below.components().any(|part| !matches!(part, Component::Normal(_)));
    let below = if is_outside { Path::new("") } else { below };
    below.ancestors().map(|part| mount.point.join(part)).collect()
}

/// "254:0 2000" a line.
fn parse_throttle(text: &str) -> Vec<(DeviceNumber, u64)> {
    let line = |line: &str| {
        let (device, limit) = line.trim().split_once(' ')?;
        let limit = limit.trim().parse().ok().filter(|limit| (1..u64::MAX).contains(limit))?;
        Some((DeviceNumber::parse(device)?, limit))
    };
    text.lines().filter_map(line).collect()
}

/// "8:16 rbps=2097152 wbps=max riops=max wiops=120" a line.
fn parse_io_max(text: &str) -> Vec<Limit> {
    let line = |line: &str| {
        let (device, limits) = line.trim().split_once(' ')?;
        let number = DeviceNumber::parse(device)?;
        let limits = limits.split_whitespace().filter_map(move |limit| {
            let (key, value) = limit.split_once('=')?;
            let kind = KINDS.into_iter().find(|kind| names(*kind).1 == key)?;
            Some((number, kind, value.parse().ok()?))
        });
        Some(limits.collect::<Vec<_>>())
    };
    text.lines().filter_map(line).flatten().collect()
}

#[cfg(test)]
mod tests;
