use super::*;
use proptest::prelude::*;
use workload::DeviceKind;

const VDA: DeviceNumber = DeviceNumber { major: 254, minor: 0 };

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

fn write(directory: &tempfile::TempDir, path: &str, text: &str) {
    let path = directory.path().join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn device(number: &str) -> DeviceFacts {
    DeviceFacts {
        name: "vda".into(),
        number: number.into(),
        kind: DeviceKind::Disk,
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
    let write = |path: &str, text: &str| write(&directory, path, text);
    write("blkio/blkio.throttle.read_iops_device", "254:0 800\n");
    write("blkio/blkio.throttle.write_iops_device", "254:0 900\n7:3 5\n");
    write("blkio/db/blkio.throttle.write_iops_device", "254:0 850\n");
    write("blkio/db/own/blkio.throttle.write_bps_device", "254:0 1048576\n");
    write("unified/db/io.max", "254:0 rbps=max wbps=max riops=700 wiops=max\n");
    write("unified/db/own/io.max", "254:0 rbps=2097152 wbps=max riops=max wiops=120\n");
    let groups = "7:cpu,blkio:/db/own\n1:name=systemd:/\n0::/db/own\n";
    let caps = caps_of(&[device("254:0")], &mounts(directory.path()), groups.as_bytes());
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
    assert!(caps_of(&[device("8:0")], &mounts(directory.path()), groups.as_bytes()).is_empty());
}

#[test]
fn the_limits_of_all_groups_on_a_device_are_listed() {
    let directory = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| write(&directory, path, text);
    write("blkio/blkio.throttle.read_iops_device", "254:0 800\n7:3 5\n");
    write("blkio/db/blkio.throttle.write_bps_device", "254:0 1048576\n");
    write("unified/db.slice/own.service/io.max", "254:0 rbps=max wbps=max riops=700 wiops=max\n");
    let caps = caps_of_all_groups(&[device("254:0")], &mounts(directory.path()));
    let found = |kind, per_second, end: &str| {
        let one = |cap: &&Cap| (cap.kind, cap.per_second) == (kind, per_second) && cap.origin.ends_with(end);
        caps.iter().any(|cap| one(&cap))
    };
    assert_eq!(caps.len(), 3, "{caps:?}");
    assert!(found(CapKind::ReadIops, 800, "/blkio/blkio.throttle.read_iops_device"), "{caps:?}");
    assert!(found(CapKind::WriteBytes, 1 << 20, "/db/blkio.throttle.write_bps_device"), "{caps:?}");
    assert!(found(CapKind::ReadIops, 700, "/db.slice/own.service/io.max"), "{caps:?}");
}

#[test]
fn a_limit_counts_beside_where_it_is_set() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(directory.path().join(name), text).unwrap();
    write(
        "blkio.throttle.io_serviced",
        "254:0 Read 5\n7:0 Read 1\n7:0 Write 802\n7:0 Sync 803\n7:0 Total 803\nTotal 9\n",
    );
    write("blkio.throttle.io_service_bytes", "7:0 Read 4096\n7:0 Write 8192\n");
    write("io.stat", "7:01 rbytes=1 wios=1\n7:0 rbytes=81 wbytes=82 rios=83 wios=84 dbytes=0 dios=0\n");
    let counted = |file: &str, kind: CapKind, device: &str| {
        let origin = directory.path().join(file).display().to_string();
        cap_counted(&Cap { kind, per_second: 800, device: device.into(), origin }).ok()
    };
    assert_eq!(counted("blkio.throttle.write_iops_device", CapKind::WriteIops, "7:0"), Some(802));
    assert_eq!(counted("blkio.throttle.read_iops_device", CapKind::ReadIops, "254:0"), Some(5));
    assert_eq!(counted("blkio.throttle.write_bps_device", CapKind::WriteBytes, "7:0"), Some(8192));
    assert_eq!(counted("io.max", CapKind::WriteIops, "7:0"), Some(84));
    assert_eq!(counted("io.max", CapKind::ReadBytes, "7:0"), Some(81));
    assert_eq!(counted("io.max", CapKind::ReadBytes, "8:0"), None, "another device");
    assert_eq!(counted("gone/io.max", CapKind::ReadBytes, "7:0"), None);
}

#[test]
fn a_process_in_the_root_group_has_no_group_of_its_own() {
    let mounts = mounts(Path::new("/g"));
    let own = |groups: &str| own_group_v2_of(&mounts, groups.as_bytes());
    assert_eq!(own("7:blkio:/db\n0::/system.slice/db\n"), Some("/g/unified/system.slice/db".into()));
    assert_eq!(own("7:blkio:/db\n0::/\n"), None);
    assert_eq!(own("7:blkio:/db\n"), None);
}

#[test]
fn the_group_of_the_processor_is_the_nearest_with_that_controller() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    let group = |text: &str, groups: &str| cpu_group(&Mounts::parse(text.as_bytes()), groups.as_bytes());
    let v2 = format!("41 31 0:38 / {} rw - cgroup2 cgroup2 rw\n", root.display());
    fs::create_dir_all(root.join("system.slice/db.service")).unwrap();
    let groups = "0::/system.slice/db.service\n";
    assert_eq!(group(&v2, groups), None);
    fs::write(root.join("system.slice/cpu.weight"), "100\n").unwrap();
    assert_eq!(group(&v2, groups), Some(root.join("system.slice")));
    fs::write(root.join("system.slice/db.service/cpu.weight"), "100\n").unwrap();
    assert_eq!(group(&v2, groups), Some(root.join("system.slice/db.service")));
    assert_eq!(group(&v2, "0::/\n"), None);
    fs::write(root.join("cpu.weight"), "100\n").unwrap();
    assert_eq!(group(&v2, "0::/\n"), Some(root.into()), "in a container");

    let v1 = "38 31 0:35 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n";
    assert_eq!(group(v1, "4:cpu,cpuacct:/db\n0::/other\n"), Some("/sys/fs/cgroup/cpu/db".into()));
    assert_eq!(group(v1, "4:cpu,cpuacct:/\n0::/other\n"), None);
    let shown = "38 31 0:35 /docker/4f /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n";
    assert_eq!(
        group(shown, "4:cpu,cpuacct:/docker/4f\n"),
        Some("/sys/fs/cgroup/cpu/".into()),
        "in a container"
    );
    assert_eq!(group("", groups), None);
}

#[test]
fn the_group_with_the_least_memory_left_counts_and_page_cache_is_not_in_use() {
    let directory = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| write(&directory, path, text);
    let place = directory.path().display();
    let v1 = format!("1 0 0:1 / {place}/memory rw - cgroup cgroup rw,memory\n");
    let v2 = format!("2 0 0:2 / {place}/unified rw - cgroup2 cgroup2 rw\n");
    let left =
        |mounts: &str, groups: &str| memory_left_of(&Mounts::parse(mounts.as_bytes()), groups.as_bytes());
    assert_eq!(left(&v1, "4:memory:/own\n"), None, "no limit is set");
    assert_eq!(left(&v1, "1:cpu:/own\n"), None, "it is in no group");

    write("memory/memory.limit_in_bytes", "9223372036854771712\n");
    write("memory/memory.usage_in_bytes", "1\n");
    assert_eq!(left(&v1, "4:memory:/own\n"), None, "a number beyond any memory is no limit");
    write("memory/own/memory.limit_in_bytes", "1000\n");
    write("memory/own/memory.usage_in_bytes", "900\n");
    assert_eq!(left(&v1, "4:memory:/own\n"), Some(100));
    write("memory/own/memory.stat", "cache 9\ntotal_inactive_file 300\ntotal_active_file 50\n");
    assert_eq!(left(&v1, "4:memory:/own\n"), Some(450));

    write("unified/memory.stat", "");
    write("unified/db/memory.max", "5000\n");
    write("unified/db/memory.current", "4800\n");
    write("unified/db/own/memory.max", "max\n");
    write("unified/db/own/memory.current", "4000\n");
    assert_eq!(left(&v2, "0::/db/own\n"), Some(200), "the limit of the group above");
    write("unified/db/own/memory.max", "3000\n");
    assert_eq!(left(&v2, "0::/db/own\n"), Some(0), "the limit was lowered below the usage");
    assert_eq!(left(&(v1 + &v2), "4:memory:/own\n0::/db\n"), Some(200));
}

#[test]
fn a_container_sees_the_part_of_the_tree_that_is_mounted() {
    let mount = |root: &str| {
        let line = format!("2 1 0:1 {root} /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
        Mounts::parse(line.as_bytes()).iter().next().unwrap().clone()
    };
    assert_eq!(
        directories(&mount("/docker/1"), Path::new("/docker/1/db")),
        [Path::new("/sys/fs/cgroup/db"), Path::new("/sys/fs/cgroup")]
    );
    assert_eq!(directories(&mount("/"), Path::new("/../other")), [Path::new("/sys/fs/cgroup")]);
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
        let _ = (parse_throttle(&text), parse_io_max(&text), group(text.as_bytes(), Some("blkio")), group(text.as_bytes(), None));
        let mount = Mounts::parse(b"2 1 0:1 / /c rw - cgroup2 c rw\n").iter().next().unwrap().clone();
        for directory in directories(&mount, Path::new(&text)) {
            prop_assert!(directory.starts_with("/c"));
        }
    }
}

#[test]
fn a_group_whose_name_is_not_utf8_is_found() {
    let groups = b"7:cpu,blkio:/caf\xe9\n1:name=systemd:/\xff\n0::/a:b\n";
    assert_eq!(group(groups, Some("blkio")).unwrap().as_os_str().as_bytes(), b"/caf\xe9");
    assert_eq!(group(groups, None), Some(Path::new("/a:b")));
    assert_eq!(group(groups, Some("memory")), None);
}

#[test]
fn a_limit_goes_to_every_group_of_v1_and_to_the_first_level_of_v2() {
    let directory = tempfile::tempdir().unwrap();
    let (v1, v2) = (directory.path().join("blkio"), directory.path().join("unified"));
    for group in ["", "a", "a/b"] {
        fs::create_dir_all(v1.join(group)).unwrap();
        fs::create_dir_all(v2.join(group)).unwrap();
        fs::write(v1.join(group).join(names(CapKind::ReadIops).0), "7:3 5\n").unwrap();
        if !group.is_empty() {
            fs::write(v2.join(group).join("io.max"), "").unwrap();
        }
    }
    let mut files = throttle_files_below(&mounts(directory.path()), CapKind::ReadIops);
    files.sort();
    let v1 = |group: &str| ThrottleFile::V1(v1.join(group).join("blkio.throttle.read_iops_device"));
    assert_eq!(files, [v1("a/b"), v1("a"), v1(""), ThrottleFile::V2(v2.join("a/io.max"))]);
    let lines = |file: &ThrottleFile| [Some(800), None].map(|limit| file.line(VDA, CapKind::ReadIops, limit));
    assert_eq!(lines(&files[0]), ["254:0 800", "254:0 0"]);
    assert_eq!(lines(&files[3]), ["254:0 riops=800", "254:0 riops=max"]);
    assert!(files[0].has_limit(DeviceNumber { major: 7, minor: 3 }) && !files[0].has_limit(VDA));
}
