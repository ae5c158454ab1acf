use crate::cleaning::{clean, must, run, scratch, unmount};
use loop_devices::{LoopDevice, throttle};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use workload::CapKind;

/// A loop device for one test. Dropping it unmounts, detaches and deletes it.
#[derive(Debug)]
pub struct LoopDisk {
    scratch: PathBuf,
    mount_point: PathBuf,
    device: LoopDevice,
    number: String,
    /// Open for its lock.
    _alive: File,
}

impl LoopDisk {
    /// A device of `bytes`, not formatted; `None`, with a message, if this user may not set one up.
    ///
    /// # Panics
    /// As all its methods, if the system refuses what root may do.
    pub fn new(bytes: u64) -> Option<LoopDisk> {
        LoopDisk::create(None, bytes)
    }

    /// A device on a file in `directory`, which may lie on another such disk and be too small for `bytes`.
    pub fn new_in(directory: &Path, bytes: u64) -> Option<LoopDisk> {
        LoopDisk::create(Some(directory), bytes)
    }

    /// A device in memory: no other I/O of the machine slows it down.
    pub fn new_in_memory(bytes: u64) -> Option<LoopDisk> {
        LoopDisk::create(Some(Path::new("/dev/shm")), bytes)
    }

    fn create(directory: Option<&Path>, bytes: u64) -> Option<LoopDisk> {
        if !may_set_up() {
            return None;
        }
        let (scratch, alive) = scratch().expect("a directory for the disk");
        let mut image = scratch.join("disk.img");
        if let Some(directory) = directory {
            let name = scratch.file_name().expect("a name").to_string_lossy();
            let nested = directory.join(format!("{name}.img"));
            std::os::unix::fs::symlink(&nested, &image).expect("a link to the image");
            image = nested;
        }
        // Not through a link that another user left under that name.
        File::create_new(&image).and_then(|image| image.set_len(bytes)).expect("an image of that size");
        let device = LoopDevice::attach(&image).unwrap_or_else(|error| {
            clean(&scratch);
            panic!("no loop device: {error}");
        });
        let (mount_point, number) = (scratch.join("mnt"), device.number().to_string());
        Some(LoopDisk { scratch, mount_point, device, number, _alive: alive })
    }

    /// Limits the size of a request: the kernel splits larger ones.
    pub fn limit_requests(&self, kib: u32) {
        self.device.set_queue_attribute("max_sectors_kb", &kib.to_string()).expect("the limit of requests");
    }

    /// "/dev/loop3".
    pub fn device(&self) -> &Path {
        self.device.path()
    }

    /// "7:3".
    pub fn number(&self) -> &str {
        &self.number
    }

    /// The file that it lies on.
    pub fn backing_file(&self) -> PathBuf {
        let image = self.scratch.join("disk.img");
        fs::read_link(&image).unwrap_or(image)
    }

    /// The mount point of [`format_and_mount`](Self::format_and_mount).
    pub fn mount_point(&self) -> &Path {
        &self.mount_point
    }

    /// Makes an ext4 on it and mounts it.
    pub fn format_and_mount(&mut self) -> &Path {
        // Without reserved blocks and background initialisation, so that a test sees only its own I/O.
        let arguments = ["-F", "-m", "0", "-E", "lazy_itable_init=0,lazy_journal_init=0"];
        self.format_and_mount_as("ext4", &arguments).expect("every Linux makes ext4")
    }

    /// Makes another file system on it and mounts it; `None`, with a message, without such a `mkfs`.
    pub fn format_and_mount_as(&mut self, filesystem: &str, arguments: &[&str]) -> Option<&Path> {
        let program = format!("mkfs.{filesystem}");
        if Command::new(&program).arg("-V").output().is_err() {
            eprintln!("skipped: no {program} here");
            return None;
        }
        let device = self.device().to_string_lossy().into_owned();
        let mut all = vec!["-q"];
        all.extend(arguments);
        all.push(&device);
        must(&program, &all);
        must("mount", &["-t", filesystem, &device, &self.mount_point.to_string_lossy()]);
        Some(&self.mount_point)
    }

    /// Remounts it with other options: "ro", "rw".
    pub fn remount(&mut self, options: &str) {
        let options = format!("remount,{options}");
        must("mount", &["-o", &options, &self.mount_point.to_string_lossy()]);
    }

    /// Lets its ext4 find an error, which makes it read-only at once, also for files that are open; `false`, with a message,
    /// without such a trigger in this kernel.
    #[must_use]
    pub fn fail_read_only(&mut self) -> bool {
        self.remount("errors=remount-ro");
        let name = self.device().file_name().expect("a device's name").to_string_lossy().into_owned();
        let trigger = format!("/sys/fs/ext4/{name}/trigger_fs_error");
        let failed = fs::write(&trigger, "of a test");
        failed.inspect_err(|error| eprintln!("skipped: {trigger}: {error}")).is_ok()
    }

    /// Unmounts it, repairs its ext4, and mounts it again. No program may use it.
    pub fn repair(&mut self) {
        self.unmount();
        let device = self.device().to_string_lossy().into_owned();
        // An exit code of 1 says that errors were corrected.
        let checked = Command::new("e2fsck").args(["-fy", &device]).output().expect("e2fsck");
        assert!(checked.status.code().is_some_and(|code| code < 2), "{checked:?}");
        must("mount", &["-t", "ext4", &device, &self.mount_point.to_string_lossy()]);
    }

    /// Makes one partition of it all and returns the partition's device; `None`, with a message, if the system cannot.
    pub fn partition(&mut self) -> Option<PathBuf> {
        let (image, device) = (self.backing_file(), self.device().to_string_lossy().into_owned());
        let script = format!("echo ',,L' | sfdisk --quiet --label gpt {}", image.display());
        let partition = PathBuf::from(format!("{device}p1"));
        let made = run("sh", &["-c", &script]).and_then(|_| run("partx", &["--add", &device]));
        made.inspect_err(|error| eprintln!("skipped: {error}")).ok()?;
        if !partition.exists() {
            eprintln!("skipped: no {} appeared", partition.display());
            return None;
        }
        Some(partition)
    }

    /// Unmounts it; the device stays.
    pub fn unmount(&mut self) {
        unmount(&self.mount_point);
    }

    /// Limits it in operations or bytes per second; `false`, with a message, without such a throttle.
    #[must_use]
    pub fn throttle(&mut self, kind: CapKind, per_second: u64) -> bool {
        let set = throttle::set(self.device.number(), kind, per_second);
        set.inspect_err(|error| eprintln!("skipped: {error}")).is_ok()
    }

    /// Removes all limits.
    pub fn unthrottle(&mut self) {
        throttle::clear(self.device.number());
    }
}

impl Drop for LoopDisk {
    fn drop(&mut self) {
        clean(&self.scratch);
    }
}

fn may_set_up() -> bool {
    let root = run("id", &["-u"]).is_ok_and(|id| id == "0");
    let may = root && Path::new("/dev/loop-control").exists();
    if !may {
        eprintln!("skipped: needs root and loop devices");
    }
    may
}
