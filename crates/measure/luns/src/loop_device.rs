use crate::LunError;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A loop device that is attached to a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoopDevice {
    device: PathBuf,
    number: String,
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
/// A device goes when the last who has it open closes it, udev among them.
const DETACH_MAX: Duration = Duration::from_secs(3);
/// Processes named of those that keep a device.
const HOLDERS_TOLD_MAX: usize = 4;

impl LoopDevice {
    /// Attaches a free device to a file, with direct I/O to it. Limits and queue settings that an earlier one left on
    /// the device are taken away.
    ///
    /// # Errors
    /// [`LunError::Io`] with what the kernel refuses; [`LunError::NoDirectIo`] where the file's system has none.
    pub fn attach(path: &Path) -> Result<LoopDevice, LunError> {
        let failed = || LunError::io("attach a loop device to", path);
        let file = OpenOptions::new().read(true).write(true).open(path).map_err(failed())?;
        let control = Path::new("/dev/loop-control");
        let control = File::open(control).map_err(LunError::io("open", control))?;
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
                Err(error) => return Err(LunError::io("open", device)(error)),
            };
            match configure(&opened, &file) {
                Ok(()) => return LoopDevice::settle(device, path),
                Err(error) if error.raw_os_error() == Some(libc::EBUSY) => refused = error,
                Err(error) => return Err(failed()(error)),
            }
        }
        Err(failed()(refused))
    }

    /// As nobody had used the device before.
    fn settle(device: PathBuf, file: &Path) -> Result<LoopDevice, LunError> {
        let sys = sys_of(&device);
        let number = fs::read_to_string(sys.join("dev")).map_err(LunError::io("look at", &device))?;
        let made = LoopDevice { device, number: number.trim().to_owned() };
        crate::throttle::clear(&made.number);
        let queue = sys.join("queue");
        if let Ok(most) = fs::read_to_string(queue.join("max_hw_sectors_kb")) {
            let _ = fs::write(queue.join("max_sectors_kb"), most.trim());
        }
        let is_direct = fs::read_to_string(sys.join("loop/dio")).is_ok_and(|dio| dio.trim() == "1");
        if !is_direct {
            made.detach()?;
            return Err(LunError::NoDirectIo(file.into()));
        }
        Ok(made)
    }

    /// The devices that are attached to a file, by what the kernel says.
    pub fn attached_to(file: &Path) -> Vec<LoopDevice> {
        let devices = fs::read_dir("/sys/block").into_iter().flatten().flatten();
        let ours = devices.filter_map(|entry| {
            let backing = fs::read_to_string(entry.path().join("loop/backing_file")).ok()?;
            if Path::new(backing.trim_end().trim_end_matches(" (deleted)")) != file {
                return None;
            }
            let number = fs::read_to_string(entry.path().join("dev")).ok()?;
            let device = Path::new("/dev").join(entry.file_name());
            Some(LoopDevice { device, number: number.trim().to_owned() })
        });
        ours.collect()
    }

    /// "/dev/loop3".
    pub fn device(&self) -> &Path {
        &self.device
    }

    /// "7:3".
    pub fn number(&self) -> &str {
        &self.number
    }

    /// Who uses it or a partition of it: mounts of this process' view, and devices on top.
    pub fn uses(&self) -> Vec<String> {
        let mut uses = Vec::new();
        let sys = sys_of(&self.device);
        let mut parts = vec![(sys.clone(), self.number.clone())];
        for entry in fs::read_dir(&sys).into_iter().flatten().flatten() {
            if entry.path().join("partition").exists()
                && let Ok(number) = fs::read_to_string(entry.path().join("dev"))
            {
                parts.push((entry.path(), number.trim().to_owned()));
            }
        }
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        for (sys, number) in parts {
            for mount in mounts.lines() {
                let fields: Vec<&str> = mount.split(' ').collect();
                if fields.get(2) == Some(&number.as_str()) {
                    uses.push(format!("mounted on {}", fields.get(4).copied().unwrap_or("?")));
                }
            }
            let holders = fs::read_dir(sys.join("holders")).into_iter().flatten().flatten();
            uses.extend(holders.map(|holder| format!("held by {}", holder.file_name().to_string_lossy())));
        }
        uses
    }

    /// The processes that keep it: that have it open, or have it mounted where others need not see it.
    fn holders(&self) -> Vec<String> {
        let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
        let numbers = processes
            .filter_map(|entry| entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()));
        let held = numbers.filter_map(|pid| {
            let of = Path::new("/proc").join(pid.to_string());
            // Each thread may see other mounts.
            let threads = fs::read_dir(of.join("task")).into_iter().flatten().flatten();
            let mut mounts =
                threads.map(|thread| fs::read_to_string(thread.path().join("mountinfo")).unwrap_or_default());
            let place = mounts.find_map(|mounts| {
                mounts.lines().find_map(|mount| {
                    let fields: Vec<&str> = mount.split(' ').collect();
                    (fields.get(2) == Some(&self.number.as_str()))
                        .then(|| fields.get(4).map(|at| (*at).to_owned()))?
                })
            });
            let mut files = fs::read_dir(of.join("fd")).into_iter().flatten().flatten();
            let how = match place {
                Some(place) => format!("mounted on {place} for"),
                None if files.any(|file| fs::read_link(file.path()).is_ok_and(|to| to == self.device)) => {
                    "held open by".into()
                }
                None => return None,
            };
            let name = fs::read_to_string(of.join("comm")).unwrap_or_default();
            Some(format!("{how} process {pid} ({})", name.trim_end()))
        });
        held.take(HOLDERS_TOLD_MAX).collect()
    }

    /// Takes its limits away and lets go of its file; waits until it did.
    ///
    /// # Errors
    /// [`LunError::InUse`] where somebody keeps it: it goes by itself when the last lets go, and its limits are gone;
    /// [`LunError::Io`] with what the kernel refuses.
    pub fn detach(&self) -> Result<(), LunError> {
        let failed = || LunError::io("detach", &self.device);
        crate::throttle::clear(&self.number);
        {
            let opened = File::open(&self.device).map_err(failed())?;
            // SAFETY: takes no argument.
            if unsafe { libc::ioctl(opened.as_raw_fd(), LOOP_CLR_FD as _) } < 0 {
                let error = io::Error::last_os_error();
                if error.raw_os_error() != Some(libc::ENXIO) {
                    return Err(failed()(error));
                }
            }
        }
        let until = Instant::now() + DETACH_MAX;
        while sys_of(&self.device).join("loop/backing_file").exists() {
            if Instant::now() > until {
                return Err(match self.holders() {
                    uses if !uses.is_empty() => LunError::InUse { device: self.device.clone(), uses },
                    _ => failed()(io::Error::from_raw_os_error(libc::EBUSY)),
                });
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(())
    }
}

fn configure(device: &File, file: &File) -> io::Result<()> {
    // SAFETY: plain numbers, for all of which zero is a value.
    let mut config: LoopConfig = unsafe { std::mem::zeroed() };
    config.fd = file.as_raw_fd() as u32;
    config.info.flags = LO_FLAGS_DIRECT_IO;
    // SAFETY: the kernel reads one loop_config during the call.
    match unsafe { libc::ioctl(device.as_raw_fd(), LOOP_CONFIGURE as _, &config) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn sys_of(device: &Path) -> PathBuf {
    Path::new("/sys/block").join(device.file_name().unwrap_or_default())
}
