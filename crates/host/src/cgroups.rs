use crate::mounts::{Mount, Mounts, Number};
use std::fs;
use std::path::{Path, PathBuf};
use workload::{Cap, CapKind, DeviceFacts};

/// Throttles that act on I/Os of this process to any of `devices`.
///
/// cgroup v2: `io.max` of every group from the process's own up to the root, all of which act at once.
/// cgroup v1: `blkio.throttle.*` of the process's own group. Groups above do not act on it (only the hierarchy
/// of v2 has parents, block/blk-throttle.c), but writes through the page cache are the kernel's own and fall
/// under the write limits of the root group.
pub fn caps(devices: &[DeviceFacts]) -> Vec<Cap> {
    caps_for(devices, std::process::id())
}

/// The same for another process: a database's caps are those of its group, not of ours. Empty if the process
/// is gone.
pub fn caps_for(devices: &[DeviceFacts], pid: u32) -> Vec<Cap> {
    let Ok(mounts) = Mounts::read() else { return Vec::new() };
    let Ok(groups) = fs::read_to_string(format!("/proc/{pid}/cgroup")) else { return Vec::new() };
    caps_of(devices, &mounts, &groups)
}

const V1_FILES: [(&str, CapKind); 4] = [
    ("blkio.throttle.read_iops_device", CapKind::ReadIops),
    ("blkio.throttle.write_iops_device", CapKind::WriteIops),
    ("blkio.throttle.read_bps_device", CapKind::ReadBytes),
    ("blkio.throttle.write_bps_device", CapKind::WriteBytes),
];

fn caps_of(devices: &[DeviceFacts], mounts: &Mounts, groups: &str) -> Vec<Cap> {
    let mut caps = Vec::new();
    let mut take = |file: &Path, limits: Vec<(Number, CapKind, u64)>| {
        for (number, kind, per_second) in limits {
            let device = number.to_string();
            if devices.iter().any(|known| known.number == device) {
                caps.push(Cap { kind, per_second, device, origin: file.display().to_string() });
            }
        }
    };
    let v1 = |mount: &&Mount| {
        mount.filesystem == "cgroup" && mount.super_options.split(',').any(|option| option == "blkio")
    };
    if let Some(mount) = mounts.iter().find(v1) {
        let path = directories(mount, group(groups, Some("blkio")).unwrap_or("/"));
        for (at, directory) in path.iter().enumerate() {
            let own = at == 0;
            let root = at + 1 == path.len();
            for (file, kind) in V1_FILES {
                let writes = matches!(kind, CapKind::WriteIops | CapKind::WriteBytes);
                let acts = own || (root && writes);
                if !acts {
                    continue;
                }
                let file = directory.join(file);
                let text = fs::read_to_string(&file).unwrap_or_default();
                take(&file, parse_throttle(&text).into_iter().map(|(n, limit)| (n, kind, limit)).collect());
            }
        }
    }
    if let Some(mount) = mounts.iter().find(|mount| mount.filesystem == "cgroup2") {
        for directory in directories(mount, group(groups, None).unwrap_or("/")) {
            let file = directory.join("io.max");
            let text = fs::read_to_string(&file).unwrap_or_default();
            take(&file, parse_io_max(&text));
        }
    }
    caps
}

/// The group of a process from `/proc/PID/cgroup`: "7:blkio:/a/b", in v2 "0::/a/b".
fn group<'t>(text: &'t str, controller: Option<&str>) -> Option<&'t str> {
    text.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':');
        let (hierarchy, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
        let ours = match controller {
            Some(name) => controllers.split(',').any(|one| one == name),
            None => hierarchy == "0" && controllers.is_empty(),
        };
        ours.then_some(path)
    })
}

/// The directories of `group` and its parents, own first, the mount's root last.
fn directories(mount: &Mount, group: &str) -> Vec<PathBuf> {
    let group = Path::new(group);
    // In a container the mount may show only a part of the tree, or the group lie outside of it ("/../x").
    let below = group.strip_prefix(&mount.root).unwrap_or_else(|_| group.strip_prefix("/").unwrap_or(group));
    let outside = below.components().any(|part| !matches!(part, std::path::Component::Normal(_)));
    let below = if outside { Path::new("") } else { below };
    below.ancestors().map(|part| mount.point.join(part)).collect()
}

/// "254:0 2000" a line.
fn parse_throttle(text: &str) -> Vec<(Number, u64)> {
    let line = |line: &str| {
        let (device, limit) = line.trim().split_once(' ')?;
        let limit = limit.trim().parse().ok().filter(|limit| (1..u64::MAX).contains(limit))?;
        Some((Number::parse(device)?, limit))
    };
    text.lines().filter_map(line).collect()
}

/// "8:16 rbps=2097152 wbps=max riops=max wiops=120" a line.
fn parse_io_max(text: &str) -> Vec<(Number, CapKind, u64)> {
    let line = |line: &str| {
        let (device, limits) = line.trim().split_once(' ')?;
        let number = Number::parse(device)?;
        let limits = limits.split_whitespace().filter_map(move |limit| {
            let (key, value) = limit.split_once('=')?;
            let kind = match key {
                "rbps" => CapKind::ReadBytes,
                "wbps" => CapKind::WriteBytes,
                "riops" => CapKind::ReadIops,
                "wiops" => CapKind::WriteIops,
                _ => return None,
            };
            Some((number, kind, value.parse().ok()?))
        });
        Some(limits.collect::<Vec<_>>())
    };
    text.lines().filter_map(line).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const VDA: Number = Number { major: 254, minor: 0 };

    fn mounts(directory: &Path) -> Mounts {
        let directory = directory.display();
        Mounts::parse(
            format!(
                "38 31 0:35 / {directory}/blkio rw - cgroup cgroup rw,blkio\n\
                 41 31 0:38 / {directory}/unified rw - cgroup2 cgroup2 rw\n"
            )
            .as_bytes(),
        )
    }

    fn device(number: &str) -> DeviceFacts {
        DeviceFacts {
            name: "vda".into(),
            number: number.into(),
            kind: "disk".into(),
            model: None,
            backing_file: None,
            size_bytes: 1 << 30,
            rotational: None,
            scheduler: None,
            requests_max: None,
            queues: None,
            request_bytes_max: None,
            logical_block_bytes: None,
            physical_block_bytes: None,
            write_cache: None,
            layout: None,
        }
    }

    #[test]
    fn v2_counts_along_the_path_and_v1_in_the_own_group_and_for_write_back() {
        let directory = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = directory.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("blkio/blkio.throttle.read_iops_device", "254:0 800\n");
        write("blkio/blkio.throttle.write_iops_device", "254:0 900\n7:3 5\n");
        write("blkio/db/blkio.throttle.write_iops_device", "254:0 850\n");
        write("blkio/db/own/blkio.throttle.write_bps_device", "254:0 1048576\n");
        write("unified/db/io.max", "254:0 rbps=max wbps=max riops=700 wiops=max\n");
        write("unified/db/own/io.max", "254:0 rbps=2097152 wbps=max riops=max wiops=120\n");
        let groups = "7:cpu,blkio:/db/own\n1:name=systemd:/\n0::/db/own\n";
        let caps = caps_of(&[device("254:0")], &mounts(directory.path()), groups);
        let mut seen: Vec<_> = caps.iter().map(|cap| (cap.kind, cap.per_second)).collect();
        seen.sort_by_key(|(_, limit)| *limit);
        assert_eq!(
            seen,
            [
                (CapKind::WriteIops, 120),
                (CapKind::ReadIops, 700),
                (CapKind::WriteIops, 900),
                (CapKind::WriteBytes, 1 << 20),
                (CapKind::ReadBytes, 2 << 20)
            ]
        );
        assert!(caps.iter().any(|cap| cap.origin.ends_with("blkio/blkio.throttle.write_iops_device")));
        assert!(caps_of(&[device("8:0")], &mounts(directory.path()), groups).is_empty());
    }

    #[test]
    fn a_container_sees_the_part_of_the_tree_that_is_mounted() {
        let mount = |root: &str| {
            let line = format!("1 1 0:1 {root} /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
            Mounts::parse(line.as_bytes()).iter().next().unwrap().clone()
        };
        assert_eq!(
            directories(&mount("/docker/1"), "/docker/1/db"),
            [Path::new("/sys/fs/cgroup/db"), Path::new("/sys/fs/cgroup")]
        );
        assert_eq!(directories(&mount("/"), "/../other"), [Path::new("/sys/fs/cgroup")]);
    }

    #[test]
    fn unlimited_and_nonsense_are_no_caps() {
        let text = "254:0 18446744073709551615\n254:0 0\n254:0\nx:y 5\n\n254:0 100\n";
        assert_eq!(parse_throttle(text), [(VDA, 100)]);
        let text = "254:0 rbps=max riops=x wiops= =3 junk\n254 riops=5\n254:0 riops=5\n";
        assert_eq!(parse_io_max(text), [(VDA, CapKind::ReadIops, 5)]);
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parsers_panic(text in "[0-9:a-z= \n/.\u{80}-\u{90}]{0,80}") {
            let _ = (parse_throttle(&text), parse_io_max(&text), group(&text, Some("blkio")), group(&text, None));
            let mount = Mounts::parse(b"1 1 0:1 / /c rw - cgroup2 c rw\n").iter().next().unwrap().clone();
            for directory in directories(&mount, &text) {
                prop_assert!(directory.starts_with("/c"));
            }
        }
    }
}
