//! A wide but slow disk for the recoveries: a LUN with a file system, mounted where only this thread sees it.

use super::Context;
use crate::Error;
use experiments::EmulatedDisk;
use luns::{DiskModel, LunSpec, Registry};
use rustix::mount::{MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_change, unmount};
use rustix::thread::{UnshareFlags, unshare_unsafe};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

/// The most space that a file system takes for itself.
const FILE_SYSTEM_BYTES: u64 = 64 << 20;
const BLOCK_BYTES: u64 = 4_096;

/// Calls `work` with a directory on a new emulated disk with space for `bytes`, and removes the disk. Its backing file
/// lies in `dir`.
pub(super) fn with_disk(
    disk: EmulatedDisk,
    bytes: u64,
    dir: &Path,
    run: &Context,
    work: &mut (dyn FnMut(&Path) -> Result<(), Error> + Send),
) -> Result<(), Error> {
    let registry = Registry::host();
    let bytes = (bytes * 21 / 20 + FILE_SYSTEM_BYTES).next_multiple_of(BLOCK_BYTES);
    let model =
        DiskModel { latency_ns: disk.latency_ns, width: Some(disk.width), stalls: None, cache_bytes: None };
    let directory = Some(dir.to_path_buf());
    let spec = LunSpec { bytes, directory, allocate: false, caps: Vec::new(), model: Some(model) };
    let lun = registry.create(&spec, &run.plan.program)?;
    let device = lun.device.clone().unwrap_or_default();
    // A thread with mounts of its own: none outlives this program, however it ends.
    let done = thread::scope(|scope| {
        let worker = scope.spawn(|| {
            make_file_system(&device)?;
            let mounted = Mounted::new(&device, &dir.join("disk"))?;
            let done = work(&mounted.place);
            let unmounted = mounted.unmount();
            done.and(unmounted)
        });
        worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    });
    let removed = registry.remove(&lun);
    done?;
    Ok(removed?)
}

fn make_file_system(device: &Path) -> Result<(), Error> {
    let refused = |why: String| Error::FileSystem { device: device.display().to_string(), why };
    let mut mkfs = Command::new("mkfs.ext4");
    // Everything is initialised now, not in the background during a measurement.
    mkfs.args(["-q", "-F", "-m", "0", "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0"]).arg(device);
    let done = mkfs.stdin(Stdio::null()).output().map_err(|error| refused(error.to_string()))?;
    match done.status.success() {
        true => Ok(()),
        false => Err(refused(String::from_utf8_lossy(&done.stderr).trim().to_owned())),
    }
}

/// A file system in this thread's own mount namespace.
struct Mounted {
    place: std::path::PathBuf,
    is_mounted: bool,
}

impl Mounted {
    fn new(device: &Path, place: &Path) -> Result<Mounted, Error> {
        let failed = Error::io("mount at", place);
        fs::create_dir(place).map_err(Error::io("make", place))?;
        // SAFETY: gives this thread alone a mount namespace, and shares its descriptors on.
        unsafe { unshare_unsafe(UnshareFlags::NEWNS) }
            .and_then(|()| mount_change("/", MountPropagationFlags::REC | MountPropagationFlags::PRIVATE))
            .and_then(|()| mount(device, place, "ext4", MountFlags::NOATIME, None))
            .map_err(|errno| failed(errno.into()))?;
        Ok(Mounted { place: place.into(), is_mounted: true })
    }

    fn unmount(mut self) -> Result<(), Error> {
        self.is_mounted = false;
        let failed = Error::io("unmount", &self.place);
        unmount(&self.place, UnmountFlags::empty()).map_err(|errno| failed(errno.into()))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if self.is_mounted {
            let _ = unmount(&self.place, UnmountFlags::DETACH);
        }
    }
}
