//! Facts found out about targets, on real loop devices.

use host::{DeviceNumber, caps_for, disk_counters};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use storage::{Access, StorageError, Target, foreign_load};
use testbed::LoopDisk;
use workload::{Caching, CapKind, DeviceKind, TargetKind};

const MIB: u64 = 1 << 20;

#[test]
fn a_directory_on_a_loop_device_shows_the_chain_down_to_the_disk() {
    let Some(mut disk) = LoopDisk::new(64 * MIB) else { return };
    let directory = disk.format_and_mount().join("with space\tand tab");
    fs::create_dir(&directory).unwrap();
    let target = Target::open(&directory).unwrap();
    let facts = target.facts();
    assert_eq!(facts.kind, TargetKind::Directory);
    assert_eq!(facts.filesystem.as_deref(), Some("ext4"));
    assert_eq!(facts.mount.as_deref(), disk.mount_point().to_str());
    assert!((30 * MIB..64 * MIB).contains(&facts.free_bytes));
    let top = &facts.devices[0];
    assert_eq!((&top.kind, top.size_bytes), (&DeviceKind::Loop, 64 * MIB));
    assert_eq!(top.number, disk.number());
    assert_eq!(Path::new("/dev").join(&top.name), disk.device());
    assert_eq!(top.backing_file.as_deref(), disk.backing_file().to_str());
    assert!(top.logical_block_bytes.is_some() && top.scheduler.is_some() && top.requests_max.is_some());
    assert!(top.write_cache.is_some() && top.queues == Some(1));

    let below = Target::open(disk.backing_file().parent().unwrap()).unwrap();
    assert_eq!(facts.devices[1..], below.facts().devices[..], "the loop stands on what its file is on");
    assert_eq!(facts.direct_align_bytes, Some(512));
    assert!(fs::read_dir(&directory).unwrap().next().is_none(), "looking leaves nothing behind");
}

#[test]
fn a_file_named_by_a_symlink_is_described_where_it_lies() {
    let Some(mut disk) = LoopDisk::new(32 * MIB) else { return };
    let mounted = disk.format_and_mount().to_path_buf();
    fs::create_dir_all(mounted.join("a")).unwrap();
    let file = mounted.join("a/file");
    fs::write(&file, vec![1; 8192]).unwrap();
    let link = tempfile::tempdir().unwrap();
    let link = link.path().join("link");
    std::os::unix::fs::symlink(&file, &link).unwrap();
    let target = Target::open(&link).unwrap();
    assert_eq!(target.facts().device_number(), Some(disk.number()));
    assert_eq!(target.facts().kind, TargetKind::File);
    assert_eq!(target.facts().path, link.to_str().unwrap(), "named as the user named it");
}

#[test]
fn a_block_device_is_a_target_with_its_size() {
    let Some(disk) = LoopDisk::new(16 * MIB) else { return };
    let target = Target::open(disk.device()).unwrap();
    let facts = target.facts();
    assert_eq!((facts.kind, facts.free_bytes), (TargetKind::BlockDevice, 16 * MIB));
    assert_eq!((facts.direct_align_bytes, facts.memory_align_bytes), (Some(512), 512));
    let region = target.open_for(Access::ReadOnly, Caching::Direct).unwrap();
    assert_eq!((region.bytes, region.direct), (16 * MIB, true));
    let mut buffer = storage::AlignedBuffer::new(512, region.memory_align_bytes as usize);
    region.file.read_exact_at(&mut buffer, 16 * MIB - 512).unwrap();
}

#[test]
fn memory_is_measured_only_through_the_page_cache() {
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    let target = Target::open(directory.path()).unwrap();
    assert_eq!(target.facts().filesystem.as_deref(), Some("tmpfs"));
    assert_eq!(target.facts().direct_align_bytes, None);
    assert!(target.facts().devices.is_empty());
    let file = directory.path().join("file");
    fs::write(&file, vec![1; 8192]).unwrap();
    let target = Target::open(&file).unwrap();
    let error = target.open_for(Access::ReadOnly, Caching::Direct).unwrap_err();
    assert!(matches!(error, StorageError::NoDirectIo { .. }));
    assert!(error.to_string().ends_with("with direct I/O: tmpfs keeps its files in memory"), "{error}");
    assert!(error.remedy().unwrap().starts_with("--buffered"));
    let region = target.open_for(Access::ReadOnly, Caching::Buffered).unwrap();
    assert_eq!((region.direct, region.bytes, region.align_bytes), (false, 8192, 1));
}

#[test]
fn what_is_no_storage_is_refused_by_name() {
    let error = Target::open(Path::new("/dev/null")).unwrap_err();
    assert!(error.to_string().contains("/dev/null: it is a character device"), "{error}");
    let error = Target::open(Path::new("/no/such/place")).unwrap_err();
    assert_eq!(error.to_string(), "cannot use /no/such/place: there is no such file or directory");
}

#[test]
fn a_throttle_on_the_device_is_found_and_gone_when_it_is_gone() {
    let Some(mut disk) = LoopDisk::new(32 * MIB) else { return };
    let directory = disk.format_and_mount().to_path_buf();
    let mut target = Target::open(&directory).unwrap();
    let ours = |target: &Target, disk: &LoopDisk| {
        let caps = target.facts().caps.iter().filter(|cap| cap.device == disk.number());
        let mut caps: Vec<_> = caps.map(|cap| (cap.kind, cap.per_second, cap.origin.clone())).collect();
        caps.sort_by_key(|cap| cap.1);
        caps
    };
    assert_eq!(ours(&target, &disk), []);
    if !disk.throttle(CapKind::ReadIops, 800) || !disk.throttle(CapKind::WriteBytes, 4 * MIB) {
        return;
    }
    target.refresh().unwrap();
    let caps = ours(&target, &disk);
    let read = caps.iter().find(|cap| cap.0 == CapKind::ReadIops).unwrap();
    assert_eq!(read.1, 800);
    assert!(read.2.ends_with("/blkio.throttle.read_iops_device"), "{}", read.2);
    assert!(caps.iter().any(|cap| (cap.0, cap.1) == (CapKind::WriteBytes, 4 * MIB)));
    let own = caps_for(&target.facts().devices, std::process::id());
    assert_eq!(own, target.facts().caps);
    assert!(caps_for(&target.facts().devices, u32::MAX).is_empty(), "no such process, no caps");
    disk.unthrottle();
    target.refresh().unwrap();
    assert_eq!(ours(&target, &disk), []);
}

#[test]
fn a_disk_whose_file_was_cut_fails_its_reads() {
    let Some(disk) = LoopDisk::new(16 * MIB) else { return };
    let target = Target::open(disk.device()).unwrap();
    let region = target.open_for(Access::ReadOnly, Caching::Direct).unwrap();
    File::options().write(true).open(disk.backing_file()).unwrap().set_len(8 * MIB).unwrap();
    let mut buffer = storage::AlignedBuffer::new(4096, 512);
    region.file.read_exact_at(&mut buffer, 4 * MIB).unwrap();
    let error: io::Error = region.file.read_exact_at(&mut buffer, 12 * MIB).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(5), "EIO, not zeros: {error}");
}

#[test]
fn the_load_of_others_is_seen_and_an_idle_device_is_idle() {
    let Some(disk) = LoopDisk::new(16 * MIB) else { return };
    // A system that probes new devices (udev) is done with this one soon.
    let idle = (0..50).any(|_| foreign_load(disk.number(), Duration::from_millis(20)) == Some(0.0));
    assert!(idle, "nobody uses it");
    assert_eq!(foreign_load("4095:1", Duration::ZERO), None);
    let number = DeviceNumber::parse(disk.number()).unwrap();
    let before = disk_counters(number).unwrap();
    let target = Target::open(disk.device()).unwrap();
    let region = target.open_for(Access::ReadOnly, Caching::Direct).unwrap();
    let mut buffer = storage::AlignedBuffer::new(4096, 512);
    let load = std::thread::scope(|scope| {
        let watch = scope.spawn(|| foreign_load(disk.number(), Duration::from_millis(200)).unwrap());
        while !watch.is_finished() {
            region.file.read_exact_at(&mut buffer, 0).unwrap();
        }
        watch.join().unwrap()
    });
    assert!(load > 10.0, "{load} I/Os a second seen");
    assert!(disk_counters(number).unwrap().ios() > before.ios());
}

#[test]
fn a_file_system_with_an_anonymous_number_is_followed_by_its_mount_source() {
    let Some(mut disk) = LoopDisk::new(160 * MIB) else { return };
    let Some(directory) = disk.format_and_mount_as("btrfs", &[]) else { return };
    let subvolume = directory.join("data");
    let made = Command::new("btrfs").args(["-q", "subvolume", "create"]).arg(&subvolume).status();
    assert!(made.unwrap().success());
    let target = Target::open(&subvolume).unwrap();
    let facts = target.facts();
    assert_eq!(facts.filesystem.as_deref(), Some("btrfs"));
    assert_eq!(facts.mount.as_deref(), disk.mount_point().to_str());
    assert_eq!(facts.device_number(), Some(disk.number()));
    assert_eq!(facts.direct_align_bytes, Some(4096));
    let device = Target::open(disk.device()).unwrap();
    let error = device.open_for(Access::ReadWrite { destroy_data: true }, Caching::Direct).unwrap_err();
    assert_eq!(error.facts(), [format!("use: mounted at {}", disk.mount_point().display())]);
}

#[test]
fn an_xfs_tells_its_alignment_and_takes_a_test_file() {
    let Some(mut disk) = LoopDisk::new(400 * MIB) else { return };
    let Some(directory) = disk.format_and_mount_as("xfs", &[]) else { return };
    let facts = Target::open(directory).unwrap().facts().clone();
    assert_eq!((facts.filesystem.as_deref(), facts.direct_align_bytes), (Some("xfs"), Some(512)));
    let workspace = storage::Workspace::open(directory).unwrap();
    let file = workspace.test_file("test-1", 16 * MIB, &mut |_| std::ops::ControlFlow::Continue(())).unwrap();
    // Neither holes nor unwritten extents: it opens as a file like any other.
    Target::open(file.path()).unwrap().open_for(Access::ReadOnly, Caching::Direct).unwrap();
}

#[test]
fn an_overlay_has_no_device_of_its_own_but_direct_io() {
    let Some(mut disk) = LoopDisk::new(64 * MIB) else { return };
    let base = disk.format_and_mount().to_path_buf();
    for name in ["lower", "upper", "work", "merged"] {
        fs::create_dir(base.join(name)).unwrap();
    }
    let options = ["lower", "upper", "work"].map(|name| format!("{name}dir={}", base.join(name).display()));
    let merged = base.join("merged");
    let mounted = Command::new("mount")
        .args(["-t", "overlay", "overlay", "-o", &options.join(",")])
        .arg(&merged)
        .status();
    if !mounted.unwrap().success() {
        eprintln!("skipped: no overlay here");
        return;
    }
    let facts = Target::open(&merged).map(|target| target.facts().clone());
    let left = fs::read_dir(&merged).unwrap().count();
    assert!(Command::new("umount").arg(&merged).status().unwrap().success());
    let facts = facts.unwrap();
    assert_eq!(facts.filesystem.as_deref(), Some("overlay"));
    assert_eq!((facts.devices.len(), left), (0, 0));
    assert!(facts.direct_align_bytes.is_some());
}

#[test]
fn a_partition_stands_on_its_disk_and_holds_it() {
    let Some(mut disk) = LoopDisk::new(64 * MIB) else { return };
    let Some(partition) = disk.partition() else { return };
    let facts = Target::open(&partition).unwrap().facts().clone();
    let chain: Vec<_> = facts.devices.iter().take(2).map(|device| &device.kind).collect();
    assert_eq!(chain, [&DeviceKind::Partition, &DeviceKind::Loop]);
    assert_eq!(facts.devices[1].number, disk.number());
    assert_eq!(facts.devices[0].scheduler, facts.devices[1].scheduler);
    assert!(facts.devices[0].size_bytes < facts.devices[1].size_bytes);

    let mkfs = Command::new("mkfs.ext4").args(["-q", "-F"]).arg(&partition).status();
    assert!(mkfs.unwrap().success());
    let mounted = Command::new("mount").arg(&partition).arg(disk.mount_point()).status();
    assert!(mounted.unwrap().success());
    let target = Target::open(disk.device()).unwrap();
    let error = target.open_for(Access::ReadWrite { destroy_data: true }, Caching::Direct).unwrap_err();
    assert_eq!(error.facts(), [format!("use: mounted at {}", disk.mount_point().display())]);
}

#[test]
fn reading_leaves_no_mark_on_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("read");
    fs::write(&path, vec![1; 65_536]).unwrap();
    // With `relatime` a read would move a time of access that is older than the content.
    let long_ago = std::time::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    let times = fs::FileTimes::new().set_accessed(long_ago);
    File::options().write(true).open(&path).unwrap().set_times(times).unwrap();
    let target = Target::open(&path).unwrap();
    for caching in [Caching::Buffered, Caching::Direct] {
        let region = target.open_for(Access::ReadOnly, caching).unwrap();
        let mut buffer = storage::AlignedBuffer::new(4096, 4096);
        region.file.read_exact_at(&mut buffer, 4096).unwrap();
    }
    assert_eq!(fs::metadata(&path).unwrap().accessed().unwrap(), long_ago);
}
