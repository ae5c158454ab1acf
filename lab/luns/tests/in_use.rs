//! A device in use is not removed, wherever and under whatever name it is mounted. Needs root.

use luns::{Lun, LunError, LunSpec, Registry};
use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard};

/// A new mount namespace begins with the mounts of the others, and keeps them until it ends: one test at a time.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn one_at_a_time() -> MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// A LUN with an ext4 on it, and mounts that end with the test.
struct Fixture {
    registry: Registry,
    lun: Lun,
    mounted: Vec<PathBuf>,
    directory: tempfile::TempDir,
}

impl Fixture {
    /// `None`, after saying so, where this user may not set one up.
    fn new() -> Option<Fixture> {
        if !rustix::process::geteuid().is_root() || !Path::new("/dev/loop-control").exists() {
            eprintln!("skipped: needs root and loop devices");
            return None;
        }
        let directory = tempfile::tempdir().unwrap();
        let registry = Registry::at(directory.path().join("luns"));
        let spec = LunSpec { bytes: 8 << 20, ..LunSpec::default() };
        let lun = registry.create(&spec, Path::new("/bin/false")).unwrap();
        let mut mkfs = Command::new("mkfs.ext4");
        mkfs.args(["-q", "-F"]).arg(lun.device.as_ref().unwrap());
        assert!(mkfs.status().unwrap().success());
        Some(Fixture { registry, lun, mounted: Vec::new(), directory })
    }

    fn mount(&mut self, name: &[u8]) -> PathBuf {
        let point = self.directory.path().join(OsStr::from_bytes(name));
        fs::create_dir(&point).unwrap();
        let mut mount = Command::new("mount");
        assert!(mount.arg(self.lun.device.as_ref().unwrap()).arg(&point).status().unwrap().success());
        self.mounted.push(point.clone());
        point
    }

    fn unmount(&mut self) {
        for point in self.mounted.drain(..) {
            assert!(Command::new("umount").arg(point).status().unwrap().success());
        }
    }

    /// Uses of the device that the refusal names.
    fn refusal(&self) -> Vec<String> {
        match self.registry.remove(&self.lun) {
            Err(LunError::InUse { uses, .. }) => uses,
            other => panic!("{other:?}"),
        }
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        self.unmount();
        self.registry.remove(&self.lun).unwrap();
    }
}

#[test]
fn a_device_mounted_at_a_name_that_is_not_utf8_is_not_removed() {
    let _alone = one_at_a_time();
    let Some(mut fixture) = Fixture::new() else { return };
    let point = fixture.mount(b"caf\xe9 \\040\n");
    fs::write(point.join("kept"), "kept").unwrap();
    assert_eq!(fixture.refusal(), [format!("mounted on {}", point.display())]);
    assert_eq!(fs::read_to_string(point.join("kept")).unwrap(), "kept");
}

#[test]
fn a_device_is_not_removed_while_another_mount_has_a_name_that_is_not_utf8() {
    let _alone = one_at_a_time();
    let (Some(mut odd), Some(mut plain)) = (Fixture::new(), Fixture::new()) else { return };
    odd.mount(b"\xff");
    let point = plain.mount(b"plain");
    assert_eq!(plain.refusal(), [format!("mounted on {}", point.display())]);
}

#[test]
fn a_device_mounted_in_another_mount_namespace_is_not_removed() {
    let _alone = one_at_a_time();
    let Some(mut fixture) = Fixture::new() else { return };
    let point = fixture.mount(b"hidden");
    fixture.unmount();
    let device = fixture.lun.device.clone().unwrap();
    let mut command = Command::new("unshare");
    command.args([
        "--mount",
        "--propagation",
        "private",
        "sh",
        "-c",
        "mount \"$0\" \"$1\" && echo mounted && cat",
    ]);
    command.arg(&device).arg(&point).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "mounted\n");
    let refusal = fixture.refusal();
    assert!(refusal[0].starts_with(&format!("mounted on {} for process", point.display())), "{refusal:?}");
    // It is still a device of that file: nothing was taken away.
    let backing = Path::new("/sys/block").join(device.file_name().unwrap()).join("loop/backing_file");
    assert_eq!(fs::read_to_string(backing).unwrap().trim_end(), fixture.lun.file.to_str().unwrap());
    drop(child.stdin.take());
    child.wait().unwrap();
}

#[test]
fn a_loop_device_is_known_by_its_file_whatever_its_path() {
    let _alone = one_at_a_time();
    let Some(fixture) = Fixture::new() else { return };
    let elsewhere = fixture.directory.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let mut bind = Command::new("mount");
    bind.arg("--bind").arg(fixture.lun.file.parent().unwrap()).arg(&elsewhere);
    assert!(bind.status().unwrap().success());
    let is_attached = |file: &Path| host::loop_devices().iter().any(|device| device.is_attached_to(file));
    let other_path = elsewhere.join(fixture.lun.file.file_name().unwrap());
    let found = (is_attached(&fixture.lun.file), is_attached(&other_path));
    assert!(Command::new("umount").arg(&elsewhere).status().unwrap().success());
    assert_eq!(found, (true, true));
    fs::write(fixture.directory.path().join("other"), "").unwrap();
    assert!(!is_attached(&fixture.directory.path().join("other")));
}

#[test]
fn the_device_of_a_renamed_file_is_detached_and_the_file_stays() {
    let _alone = one_at_a_time();
    let Some(mut fixture) = Fixture::new() else { return };
    let renamed = fixture.directory.path().join("renamed.img");
    fs::rename(&fixture.lun.file, &renamed).unwrap();
    let is_attached = || host::loop_devices().iter().any(|device| device.is_attached_to(&renamed));
    assert!(is_attached());
    fixture.mount(b"mnt");
    assert!(fixture.refusal()[0].starts_with("mounted on "), "also with that name");
    fixture.unmount();
    fixture.registry.remove(&fixture.lun).unwrap();
    assert!(!is_attached());
    assert!(renamed.exists() && fixture.registry.list().unwrap().is_empty());
    // For the end of the fixture, which removes one.
    fixture.lun = fixture
        .registry
        .create(&LunSpec { bytes: 8 << 20, ..LunSpec::default() }, Path::new("/bin/false"))
        .unwrap();
}

#[test]
fn no_image_is_made_where_another_user_may_put_a_link_in_its_place() {
    let _alone = one_at_a_time();
    if !rustix::process::geteuid().is_root() {
        return eprintln!("skipped: needs root");
    }
    let directory = tempfile::tempdir().unwrap();
    let registry = Registry::at(directory.path().join("luns"));
    let theirs = directory.path().join("theirs");
    fs::create_dir(&theirs).unwrap();
    std::os::unix::fs::chown(&theirs, Some(65_534), None).unwrap();
    let link = directory.path().join("link");
    std::os::unix::fs::symlink("/tmp", &link).unwrap();
    std::os::unix::fs::lchown(&link, Some(65_534), None).unwrap();
    for place in [&theirs, &link] {
        let spec = LunSpec { bytes: 8 << 20, directory: Some(place.clone()), ..LunSpec::default() };
        let refused = registry.create(&spec, Path::new("/bin/false")).unwrap_err().to_string();
        assert!(refused.contains("65534") || refused.contains("nobody"), "{refused}");
    }
    assert!(fs::read_dir(&theirs).unwrap().next().is_none() && registry.list().unwrap().is_empty());
}
