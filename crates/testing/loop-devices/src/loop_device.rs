use crate::LoopError;
use host::DeviceNumber;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A loop device that is attached to a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoopDevice {
    path: PathBuf,
    number: DeviceNumber,
}

// include/uapi/linux/loop.h
const LOOP_CLR_FD: u64 = 0x4C01;
const LOOP_CONFIGURE: u64 = 0x4C0A;
const LOOP_CTL_GET_FREE: u64 = 0x4C82;
const LO_FLAGS_DIRECT_IO: u32 = 16;

/// `struct loop_info64`.
#[repr(C)]
struct LoopInfo {
    ids: [u64; 3],
    offset: u64,
    sizelimit: u64,
    number: u32,
    encrypt: [u32; 2],
    flags: u32,
    names: [[u8; 64]; 2],
    key: [u8; 32],
    init: [u64; 2],
}

/// `struct loop_config`.
#[repr(C)]
struct LoopConfig {
    fd: u32,
    block_size: u32,
    info: LoopInfo,
    reserved: [u64; 8],
}

/// Another program may take the free device first; then the next is tried.
const TRIES_MAX: u32 = 64;
/// The kernel detaches a device when the last process that has it open closes it, udev among them.
const DETACH_MAX: Duration = Duration::from_secs(3);
const DETACH_CHECK_EVERY: Duration = Duration::from_millis(2);

impl LoopDevice {
    /// Attaches a free device to a file, with direct I/O. Limits and queue settings that an earlier user left on the device
    /// are reset.
    ///
    /// # Errors
    /// [`LoopError::Io`] with what the kernel refuses; [`LoopError::NoDirectIo`] if the file system has none.
    pub fn attach(path: &Path) -> Result<LoopDevice, LoopError> {
        let failed = || LoopError::io("attach a loop device to", path);
        let file = OpenOptions::new().read(true).write(true).open(path).map_err(failed())?;
        let control = Path::new("/dev/loop-control");
        let control = File::open(control).map_err(LoopError::io("open", control))?;
        let mut refused = io::Error::from_raw_os_error(libc::EBUSY);
        for _ in 0..TRIES_MAX {
            // SAFETY: takes no argument, returns the number of a free device.
            let free = unsafe { libc::ioctl(control.as_raw_fd(), LOOP_CTL_GET_FREE as _) };
            if free < 0 {
                return Err(failed()(io::Error::last_os_error()));
            }
            let device = PathBuf::from(format!("/dev/loop{free}"));
            let opened = match OpenOptions::new().read(true).write(true).open(&device) {
                Ok(opened) => opened,
                Err(error) => return Err(LoopError::io("open", device)(error)),
            };
            match configure(&opened, &file) {
                Ok(()) => return LoopDevice::settle(device, path),
                Err(error) if error.raw_os_error() == Some(libc::EBUSY) => refused = error,
                Err(error) => return Err(failed()(error)),
            }
        }
        Err(failed()(refused))
    }

    /// Resets what an earlier user set.
    fn settle(path: PathBuf, file: &Path) -> Result<LoopDevice, LoopError> {
        let metadata = fs::metadata(&path).map_err(LoopError::io("look at", &path))?;
        let device = LoopDevice { path, number: DeviceNumber::from_dev(metadata.rdev()) };
        crate::throttle::clear(device.number);
        if let Some(most) = host::queue_attribute(device.number, "max_hw_sectors_kb") {
            let _ = device.set_queue_attribute("max_sectors_kb", &most);
        }
        if !host::loop_uses_direct_io(device.number) {
            device.detach()?;
            return Err(LoopError::NoDirectIo(file.into()));
        }
        Ok(device)
    }

    /// The devices that are attached to a file.
    pub fn attached_to(file: &Path) -> Vec<LoopDevice> {
        LoopDevice::attached(|device| device.is_attached_to(file))
    }

    /// The attached devices that are wanted.
    pub fn attached(is_wanted: impl Fn(&host::LoopDevice) -> bool) -> Vec<LoopDevice> {
        let wanted = host::loop_devices().into_iter().filter(is_wanted);
        let device = |found: host::LoopDevice| LoopDevice {
            path: Path::new("/dev").join(found.name),
            number: found.number,
        };
        wanted.map(device).collect()
    }

    /// "/dev/loop3".
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// "7:3".
    pub fn number(&self) -> DeviceNumber {
        self.number
    }

    /// Sets an attribute of its queue, "max_sectors_kb" to "128".
    ///
    /// # Errors
    /// The kernel's refusal.
    pub fn set_queue_attribute(&self, attribute: &str, value: &str) -> io::Result<()> {
        let directory = host::attribute_directory(self.number).ok_or(io::ErrorKind::NotFound)?;
        fs::write(directory.join("queue").join(attribute), value)
    }

    /// Removes its limits and detaches it from its file; waits until the kernel has done so.
    ///
    /// # Errors
    /// [`LoopError::Busy`] if another process keeps it: the kernel detaches it when the last one closes it, and its limits
    /// are gone; [`LoopError::Io`] with what the kernel refuses.
    pub fn detach(&self) -> Result<(), LoopError> {
        let failed = || LoopError::io("detach", &self.path);
        crate::throttle::clear(self.number);
        {
            let opened = File::open(&self.path).map_err(failed())?;
            // SAFETY: takes no argument.
            if unsafe { libc::ioctl(opened.as_raw_fd(), LOOP_CLR_FD as _) } < 0 {
                let error = io::Error::last_os_error();
                if error.raw_os_error() != Some(libc::ENXIO) {
                    return Err(failed()(error));
                }
            }
        }
        let deadline = Instant::now() + DETACH_MAX;
        while host::loop_devices().iter().any(|device| device.number == self.number) {
            if Instant::now() > deadline {
                return Err(LoopError::Busy(self.path.clone()));
            }
            std::thread::sleep(DETACH_CHECK_EVERY);
        }
        Ok(())
    }
}

fn configure(device: &File, file: &File) -> io::Result<()> {
    let info = LoopInfo {
        ids: [0; 3],
        offset: 0,
        sizelimit: 0,
        number: 0,
        encrypt: [0; 2],
        flags: LO_FLAGS_DIRECT_IO,
        names: [[0; 64]; 2],
        key: [0; 32],
        init: [0; 2],
    };
    let config = LoopConfig { fd: file.as_raw_fd() as u32, block_size: 0, info, reserved: [0; 8] };
    // SAFETY: the kernel reads one loop_config during the call.
    match unsafe { libc::ioctl(device.as_raw_fd(), LOOP_CONFIGURE as _, &config) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
