use super::*;
use std::os::unix::fs::symlink;
use workload::DeviceLayout;

/// A sysfs with a mirror (md0) of a partition (sda1) and a whole NVMe disk, as kernel 6.x shows one.
fn mirror(directory: &Path) -> BlockDevices {
    let write = |path: &str, text: &str| {
        let path = directory.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    for (device, number) in [("md0", "9:0"), ("sda", "8:0"), ("sda/sda1", "8:1"), ("nvme0n1", "259:0")] {
        write(&format!("devices/{device}/dev"), &format!("{number}\n"));
        write(&format!("devices/{device}/size"), "2048\n");
        write(&format!("devices/{device}/queue/write_cache"), "write back\n");
        fs::create_dir_all(directory.join("dev/block")).unwrap();
        symlink(directory.join("devices").join(device), directory.join("dev/block").join(number)).unwrap();
    }
    write("devices/md0/md/level", "raid1\n");
    write("devices/sda/sda1/partition", "1\n");
    write("devices/sda/device/model", "SAMSUNG MZ7LH960 \n");
    write("devices/sda/queue/rotational", "0\n");
    write("devices/sda/queue/scheduler", "none [mq-deadline] kyber bfq \n");
    fs::create_dir_all(directory.join("devices/nvme0n1/mq/0")).unwrap();
    fs::create_dir_all(directory.join("devices/nvme0n1/mq/1")).unwrap();
    for member in ["sda/sda1", "nvme0n1"] {
        let link = directory.join("devices/md0/slaves").join(member.rsplit('/').next().unwrap());
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        symlink(directory.join("devices").join(member), link).unwrap();
    }
    fs::create_dir_all(directory.join("devices/sda/sda1/holders/md0")).unwrap();
    BlockDevices { sysfs: directory.into(), mapper: None }
}

#[test]
fn a_mirror_is_followed_to_its_members_and_their_disks() {
    let directory = tempfile::tempdir().unwrap();
    let sysfs = mirror(directory.path());
    let chain = sysfs.chain(DeviceNumber { major: 9, minor: 0 });
    let seen: Vec<_> = chain.iter().map(|device| (device.name.as_str(), device.kind.clone())).collect();
    assert_eq!(
        seen,
        [
            ("md0", DeviceKind::Md),
            ("sda1", DeviceKind::Partition),
            ("nvme0n1", DeviceKind::Disk),
            ("sda", DeviceKind::Disk)
        ]
    );
    let partition = &chain[1];
    assert_eq!(partition.rotational, Some(false), "a partition shares its disk's queue");
    assert_eq!(partition.scheduler.as_deref(), Some("mq-deadline"));
    assert_eq!(chain[2].queues, Some(2));
    assert_eq!(chain[3].model.as_deref(), Some("SAMSUNG MZ7LH960"));
    assert_eq!(chain[0].size_bytes, 1 << 20);
    assert_eq!(chain[0].requests_max, None, "what the kernel does not say is not made up");
}

#[test]
fn a_cycle_ends_and_an_unknown_device_is_no_chain() {
    let directory = tempfile::tempdir().unwrap();
    let sysfs = mirror(directory.path());
    let back = directory.path().join("devices/nvme0n1/slaves");
    fs::create_dir_all(&back).unwrap();
    symlink(directory.path().join("devices/md0"), back.join("md0")).unwrap();
    assert_eq!(sysfs.chain(DeviceNumber { major: 9, minor: 0 }).len(), 4);
    assert!(sysfs.chain(DeviceNumber { major: 7, minor: 77 }).is_empty());
}

#[test]
fn all_members_of_a_btrfs_are_found_by_one_of_them() {
    let directory = tempfile::tempdir().unwrap();
    let sysfs = mirror(directory.path());
    let members = directory.path().join("fs/btrfs/8a4f/devices");
    fs::create_dir_all(&members).unwrap();
    for name in ["sda", "nvme0n1"] {
        symlink(directory.path().join("devices").join(name), members.join(name)).unwrap();
    }
    let (one, other) = (DeviceNumber { major: 8, minor: 0 }, DeviceNumber { major: 259, minor: 0 });
    assert_eq!(sysfs.btrfs_members(other), Some([one, other].into()));
    assert_eq!(sysfs.btrfs_members(DeviceNumber { major: 9, minor: 0 }), None);
}

#[test]
fn the_holder_of_a_partition_holds_the_disk() {
    let directory = tempfile::tempdir().unwrap();
    let sysfs = mirror(directory.path());
    assert_eq!(sysfs.holders(DeviceNumber { major: 8, minor: 0 }), ["md0"]);
    assert!(sysfs.holders(DeviceNumber { major: 259, minor: 0 }).is_empty());
}

/// A device on two disks of 1 MiB, with those files of its own.
fn made_of_two(directory: &Path, device: &str, files: &[(&str, &str)]) -> Option<DeviceLayout> {
    let write = |path: &str, text: &str| {
        let path = directory.join("devices").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    for (name, number) in [("sda", "8:0"), ("sdb", "8:16"), (device, "252:0")] {
        write(&format!("{name}/dev"), number);
        write(&format!("{name}/size"), "2048");
        fs::create_dir_all(directory.join("dev/block")).unwrap();
        symlink(directory.join("devices").join(name), directory.join("dev/block").join(number)).unwrap();
    }
    fs::create_dir_all(directory.join("devices").join(device).join("slaves")).unwrap();
    for member in ["sdb", "sda"] {
        let link = directory.join("devices").join(device).join("slaves").join(member);
        symlink(directory.join("devices").join(member), link).unwrap();
    }
    files.iter().for_each(|(path, text)| write(&format!("{device}/{path}"), text));
    let sysfs = BlockDevices { sysfs: directory.into(), mapper: None };
    sysfs.chain(DeviceNumber { major: 252, minor: 0 })[0].layout.clone()
}

#[test]
fn layouts_that_the_host_made_are_recognised() {
    let found = |device: &str, files: &[(&str, &str)]| {
        let directory = tempfile::tempdir().unwrap();
        let layout = made_of_two(directory.path(), device, files).unwrap();
        assert_eq!(layout.members, ["sda", "sdb"]);
        (layout.made_by, layout.how)
    };
    let expected = |made_by: &str, how: &str| (made_by.to_owned(), how.to_owned());
    let hints = |least: &'static str, best: &'static str| {
        [
            ("queue/physical_block_size", "4096"),
            ("queue/minimum_io_size", least),
            ("queue/optimal_io_size", best),
        ]
    };
    let striped = [("dm/uuid", "LVM-x\n"), hints("65536", "131072")[0], hints("65536", "131072")[1]];
    let striped = [&striped[..], &hints("65536", "131072")[2..]].concat();
    assert_eq!(found("dm-0", &striped), expected("LVM", "stripe:64K"));
    let spanned = [&[("dm/uuid", "mine\n"), ("size", "4000")][..], &hints("4096", "0")].concat();
    assert_eq!(found("dm-0", &spanned), expected("device mapper", "span"));
    let mirrored = [&[("dm/uuid", "LVM-x\n")][..], &hints("4096", "0")].concat();
    assert_eq!(found("dm-0", &mirrored), expected("LVM", "not known"));
    let md = |level: &'static str, unit: &'static str| [("md/level", level), ("md/chunk_size", unit)];
    assert_eq!(found("md0", &md("raid0\n", "524288\n")), expected("md", "stripe:512K"));
    assert_eq!(found("md0", &md("linear\n", "0\n")), expected("md", "span"));
    assert_eq!(found("md0", &md("raid5\n", "524288\n")), expected("md", "raid5, unit 512K"));
    assert_eq!(found("md0", &md("raid1\n", "0\n")), expected("md", "raid1"));
}

#[test]
fn the_scheduler_in_brackets_is_the_one_in_use() {
    assert_eq!(scheduler_in_use("none [bfq] kyber").as_deref(), Some("bfq"));
    assert_eq!(scheduler_in_use("none").as_deref(), Some("none"));
    assert_eq!(scheduler_in_use("none [broken"), None);
}

#[test]
fn the_backing_file_of_a_loop_device_may_have_any_name_and_be_removed() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &[u8]| PathBuf::from(OsString::from_vec(name.to_vec()));
    let attach = |device: &str, number: &str, backing: &[u8]| {
        let block = directory.path().join("block").join(device);
        fs::create_dir_all(block.join("loop")).unwrap();
        fs::write(block.join("dev"), number).unwrap();
        fs::write(block.join("loop/backing_file"), backing).unwrap();
    };
    attach("loop0", "7:0\n", b"/a/caf\xe9 \n");
    attach("loop1", "7:1\n", b"/a/gone (deleted)\n");
    fs::create_dir_all(directory.path().join("block/loop2/loop")).unwrap();
    let mut found = BlockDevices { sysfs: directory.path().into(), mapper: None }.loop_devices();
    found.sort_by_key(|device| device.number);
    assert_eq!(found.len(), 2, "the third is not attached");
    assert_eq!((found[0].name.as_str(), &found[0].backing_file), ("loop0", &file(b"/a/caf\xe9 ")));
    assert!(found[0].is_attached_to(&file(b"/a/caf\xe9 ")) && !found[0].is_attached_to(&file(b"/a/caf\xe9")));
    assert!(found[1].is_attached_to(Path::new("/a/gone")));
    assert!(found[1].is_attached_to(Path::new("/a/gone (deleted)")), "or that is its name");
}

#[test]
fn the_storage_of_a_device_is_all_that_it_shares_bytes_with() {
    let directory = tempfile::tempdir().unwrap();
    let sysfs = mirror(directory.path());
    let number = |major, minor| DeviceNumber { major, minor };
    let devices = |top: DeviceNumber| sysfs.storage(top).devices.into_iter().collect::<Vec<_>>();
    let (mirror, partition, disk, other) = (number(9, 0), number(8, 1), number(8, 0), number(259, 0));
    assert_eq!(devices(mirror), [disk, partition, mirror, other]);
    assert_eq!(devices(partition), [disk, partition], "the whole disk of a partition");
    assert_eq!(devices(disk), [disk, partition], "the partitions of a disk");
    assert_eq!(devices(other), [other]);
}
