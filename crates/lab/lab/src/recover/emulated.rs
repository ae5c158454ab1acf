//! A wide but slow disk for the recoveries: a LUN with a file system, mounted where only this thread sees it.

use super::Context;
use crate::Error;
use experiments::EmulatedDisk;
use luns::{DiskModel, LunSpec, Registry};
use std::ffi::CString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
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
        // SAFETY: changes the mount namespace of this thread alone, and takes no pointers.
        called(unsafe { libc::unshare(libc::CLONE_NEWNS) }).map_err(&failed)?;
        let none = std::ptr::null();
        // SAFETY: the strings outlive the call; null pointers are allowed for source and data.
        called(unsafe {
            libc::mount(none, c"/".as_ptr(), none, libc::MS_REC | libc::MS_PRIVATE, none.cast())
        })
        .map_err(&failed)?;
        let (from, to) = (text(device), text(place));
        // SAFETY: as above.
        called(unsafe {
            libc::mount(from.as_ptr(), to.as_ptr(), c"ext4".as_ptr(), libc::MS_NOATIME, none.cast())
        })
        .map_err(&failed)?;
        Ok(Mounted { place: place.into(), is_mounted: true })
    }

    fn unmount(mut self) -> Result<(), Error> {
        self.is_mounted = false;
        let place = text(&self.place);
        // SAFETY: the text lives through the call.
        called(unsafe { libc::umount2(place.as_ptr(), 0) }).map_err(Error::io("unmount", &self.place))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if self.is_mounted {
            let place = text(&self.place);
            // SAFETY: the text lives through the call.
            unsafe { libc::umount2(place.as_ptr(), libc::MNT_DETACH) };
        }
    }
}

fn called(returned: libc::c_int) -> io::Result<()> {
    if returned == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn text(path: &Path) -> CString {
    // A path that the kernel returned or accepted contains no zero byte.
    CString::new(path.as_os_str().as_bytes()).unwrap_or_default()
}
