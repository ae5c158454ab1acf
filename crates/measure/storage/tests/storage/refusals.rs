//! Targets that are not measured or not written to, and the messages.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, chown, lchown, symlink};
use std::path::Path;
use std::process::Command;
use storage::{Access, StorageError, Target, Workspace};
use testbed::LoopDisk;
use workload::Caching;

const MIB: u64 = 1 << 20;
const READ: Access = Access::ReadOnly;
const WRITE: Access = Access::ReadWrite { destroy_data: false };
const DESTROY: Access = Access::ReadWrite { destroy_data: true };

fn open(path: &Path, access: Access) -> Result<storage::Region, StorageError> {
    Target::open(path).unwrap().open_for(access, Caching::Direct)
}

#[test]
fn a_mounted_device_is_never_written_to_whatever_was_said() {
    let Some(mut disk) = LoopDisk::new(32 * MIB) else { return };
    let mount = disk.format_and_mount().display().to_string();
    assert!(matches!(open(disk.device(), WRITE).unwrap_err(), StorageError::NotOurs { .. }));
    let error = open(disk.device(), DESTROY).unwrap_err();
    let device = disk.device().display();
    assert_eq!(error.to_string(), format!("cannot write to {device}: it is in use"));
    assert_eq!(error.facts(), [format!("use: mounted at {mount}")]);
    assert!(error.remedy().unwrap().contains("not even --destroy-data"));
    open(disk.device(), READ).unwrap();
}

#[test]
fn a_device_mounted_where_we_cannot_see_it_is_refused_by_the_kernel() {
    let Some(mut disk) = LoopDisk::new(32 * MIB) else { return };
    disk.format_and_mount();
    disk.unmount();
    // A mount in a namespace of its own, which lives as long as the child's standard input.
    let script = format!(
        "mount -t ext4 {} {} && echo mounted && cat",
        disk.device().display(),
        disk.mount_point().display()
    );
    let mut child = Command::new("unshare")
        .args(["--mount", "--propagation", "private", "sh", "-c", &script])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(child.stdout.take().unwrap()), &mut line)
        .unwrap();
    assert_eq!(line, "mounted\n");
    let error = open(disk.device(), DESTROY).unwrap_err();
    drop(child.stdin.take());
    child.wait().unwrap();
    assert_eq!(error.facts(), ["use: the kernel holds it for another user"]);
}

#[test]
fn a_free_device_is_written_to_only_when_told_and_is_then_held() {
    let Some(disk) = LoopDisk::new(16 * MIB) else { return };
    let error = open(disk.device(), WRITE).unwrap_err();
    assert!(matches!(error, StorageError::NotOurs { kind: "block device", .. }));
    assert!(error.remedy().unwrap().contains(&format!("--destroy-data {}", disk.device().display())));
    let region = open(disk.device(), DESTROY).unwrap();
    let mut buffer = storage::AlignedBuffer::new(4096, 512);
    buffer.fill(7);
    region.file.write_all_at(&buffer, 0).unwrap();
    assert!(matches!(open(disk.device(), DESTROY), Err(StorageError::InUse { .. })), "held while it is open");
    drop(region);
    open(disk.device(), DESTROY).unwrap();
}

#[test]
fn a_write_protected_device_is_only_read() {
    let Some(disk) = LoopDisk::new(16 * MIB) else { return };
    let device = disk.device().to_str().unwrap();
    assert!(Command::new("blockdev").args(["--setro", device]).status().unwrap().success());
    let error = open(disk.device(), DESTROY);
    open(disk.device(), READ).unwrap();
    assert!(Command::new("blockdev").args(["--setrw", device]).status().unwrap().success());
    assert!(matches!(error, Err(StorageError::ReadOnlyDevice { .. })), "{error:?}");
}

#[test]
fn the_image_of_a_loop_device_is_not_written_to() {
    let Some(disk) = LoopDisk::new(16 * MIB) else { return };
    let name = disk.device().file_name().unwrap().to_str().unwrap().to_string();
    let error = open(&disk.backing_file(), DESTROY).unwrap_err();
    assert_eq!(error.facts(), [format!("use: backing {name}")]);
}

/// The kernel names the file of a loop device by one name, with " (deleted)" behind it if that name is gone.
#[test]
fn the_image_of_a_loop_device_is_known_by_every_name() {
    let Some(disk) = LoopDisk::new(16 * MIB) else { return };
    let (name, image) = (disk.device().file_name().unwrap().to_str().unwrap(), disk.backing_file());
    File::options().write(true).open(&image).unwrap().write_all_at(&vec![1; 16 << 20], 0).unwrap();
    let directory = image.parent().unwrap();
    let refused = |path: &Path| match open(path, DESTROY) {
        Err(error) => assert_eq!(error.facts(), [format!("use: backing {name}")], "{error}"),
        Ok(_) => panic!("{} is written to", path.display()),
    };
    for odd in [&b"disk.img "[..], b"disk\nimg", b"disk\xff.img", b"disk (deleted)"] {
        let odd = directory.join(OsStr::from_bytes(odd));
        fs::rename(&image, &odd).unwrap();
        refused(&odd);
        fs::rename(&odd, &image).unwrap();
    }
    let second = directory.join("second");
    fs::hard_link(&image, &second).unwrap();
    refused(&second);
    fs::remove_file(&image).unwrap();
    refused(&second);
    fs::write(&image, vec![1; 8192]).unwrap();
    refused(&second);
    assert!(open(&image, DESTROY).is_ok(), "another file has the name now");
    fs::rename(&second, &image).unwrap();
}

#[test]
fn a_file_of_somebody_else_is_read_and_destroyed_only_when_told() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = directory.path().join("precious.db");
    File::create(&path).unwrap().write_all(&vec![1; 2 * MIB as usize]).unwrap();
    let error = open(&path, WRITE).unwrap_err();
    assert!(
        error.to_string().ends_with("precious.db: load would destroy the content of this file"),
        "{error}"
    );
    let remedy = error.remedy().unwrap();
    assert!(
        remedy.starts_with("name a directory; or --read-only, which writes nothing; or --destroy-data"),
        "{remedy}"
    );
    for (access, writable) in [(READ, false), (DESTROY, true)] {
        let region = Target::open(&path).unwrap().open_for(access, Caching::Buffered).unwrap();
        assert_eq!(region.bytes, 2 * MIB);
        assert_eq!(region.file.write_at(&[2], 0).is_ok(), writable);
    }
    let error = open(directory.path(), READ).unwrap_err();
    assert!(matches!(error, StorageError::IsDirectory { .. }));
}

#[test]
fn a_file_with_holes_measures_nothing() {
    let Some(mut disk) = LoopDisk::new(64 * MIB) else { return };
    let path = disk.format_and_mount().join("sparse.db");
    let file = File::create(&path).unwrap();
    file.set_len(16 * MIB).unwrap();
    file.write_all_at(&vec![1; 4 * MIB as usize], 0).unwrap();
    assert!(Command::new("fallocate").args(["-o", "4M", "-l", "4M"]).arg(&path).status().unwrap().success());
    for access in [READ, DESTROY] {
        let error = open(&path, access).unwrap_err();
        assert!(
            error.to_string().ends_with(
                "12 MiB of its 16 MiB were never written, and reading unwritten extents measures nothing"
            ),
            "{error}"
        );
        assert_eq!(error.facts(), ["holes: 8 MiB", "allocated, never written: 4 MiB"]);
    }
    file.write_all_at(&vec![1; 12 * MIB as usize], 4 * MIB).unwrap();
    assert_eq!(open(&path, READ).unwrap().bytes, 16 * MIB);
    file.set_len(100).unwrap();
    assert!(matches!(open(&path, READ), Err(StorageError::TooSmall { bytes: 100, align_bytes: 512, .. })));
}

#[test]
fn a_read_only_file_system_is_named_with_its_device() {
    let Some(mut disk) = LoopDisk::new(32 * MIB) else { return };
    let directory = disk.format_and_mount().to_path_buf();
    fs::write(directory.join("file"), vec![1; 8192]).unwrap();
    disk.remount("ro");
    let error = Workspace::open(&directory).unwrap_err();
    let told = format!("cannot measure {}: the file system is mounted read-only", directory.display());
    assert_eq!(error.to_string(), told);
    assert_eq!(error.facts(), [format!("device: {} (ext4)", disk.device().display())]);
    let remedy = "remount it read-write, or measure another directory on the same device";
    assert_eq!(error.remedy().as_deref(), Some(remedy));
    Target::open(&directory).unwrap();
    let file = directory.join("file");
    assert!(matches!(open(&file, DESTROY), Err(StorageError::ReadOnlyFilesystem { .. })));
    assert_eq!(open(&file, READ).unwrap().bytes, 8192);
}

#[test]
fn a_file_is_not_destroyed_by_a_path_that_another_user_may_lead_elsewhere() {
    const OTHER_USER: u32 = 65_534;
    if !rustix::process::geteuid().is_root() {
        return println!("skipped: links of another user need root");
    }
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    fs::create_dir(path("data")).unwrap();
    fs::write(path("data/disk"), vec![1; MIB as usize]).unwrap();
    symlink("data", path("own")).unwrap();
    symlink("data/disk", path("theirs")).unwrap();
    lchown(path("theirs"), Some(OTHER_USER), None).unwrap();
    let refused = |name: &str| match open(&path(name), DESTROY).unwrap_err() {
        error @ StorageError::PathOfOthers { .. } => (error.to_string(), error.remedy().unwrap()),
        error => panic!("{error}"),
    };
    let (error, remedy) = refused("theirs");
    assert!(error.contains("/theirs, which user nobody made; name its target"), "{error}");
    assert!(remedy.contains("name it by a path on which only root and you make links"), "{remedy}");
    open(&path("own/disk"), DESTROY).unwrap();
    open(&path("theirs"), READ).unwrap();
    chown(path("data"), Some(OTHER_USER), None).unwrap();
    assert!(refused("data/disk").0.contains("/data, which belongs to user nobody"));
    let Some(disk) = LoopDisk::new(32 * MIB) else { return };
    symlink(disk.device(), path("device")).unwrap();
    open(&path("device"), DESTROY).unwrap();
    lchown(path("device"), Some(OTHER_USER), None).unwrap();
    assert!(refused("device").0.contains("/device, which user nobody made"));
}
