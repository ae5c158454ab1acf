//! Refuses to remove a device that is in use, a mounted one above all.

use crate::LunError;
use host::{DeviceUse, ProcessUse, device_uses, processes_using};
use loop_devices::LoopDevice;
use rustix::fs::{Mode, OFlags};
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

/// The kernel takes the rings of a load that just ended down, and with them its open files, only after the program is gone.
const BUSY_MAX: Duration = Duration::from_secs(3);
const BUSY_CHECK_EVERY: Duration = Duration::from_millis(20);
/// Processes that an error names.
const PROCESSES_MAX: usize = 4;

/// Refuses a device that is mounted, swapped to, or held by another device, and one that the kernel holds for a user that
/// this process cannot see, such as a mount in another mount namespace.
pub(crate) fn refuse_in_use(device: &LoopDevice) -> Result<(), LunError> {
    let uses = device_uses(device.number()).map_err(LunError::io("read the mounts for", device.path()))?;
    if !uses.is_empty() {
        return Err(in_use(device, uses.iter().map(describe_use).collect()));
    }
    if is_busy(device.path()) {
        let users = users(device);
        return Err(match users.is_empty() {
            true => LunError::io("remove", device.path())(io::Error::from_raw_os_error(libc::EBUSY)),
            false => in_use(device, users),
        });
    }
    Ok(())
}

/// The processes that keep a device, in words.
pub(crate) fn users(device: &LoopDevice) -> Vec<String> {
    processes_using(device.number()).take(PROCESSES_MAX).map(|user| describe_user(&user)).collect()
}

pub(crate) fn in_use(device: &LoopDevice, uses: Vec<String>) -> LunError {
    LunError::InUse { device: device.path().into(), uses }
}

/// Whether the kernel refuses an exclusive opening, as it does for a device that is mounted anywhere.
fn is_busy(device: &Path) -> bool {
    let until = Instant::now() + BUSY_MAX;
    let flags = OFlags::RDONLY | OFlags::EXCL | OFlags::CLOEXEC;
    while matches!(rustix::fs::open(device, flags, Mode::empty()), Err(rustix::io::Errno::BUSY)) {
        if Instant::now() > until {
            return true;
        }
        std::thread::sleep(BUSY_CHECK_EVERY);
    }
    false
}

fn describe_use(found: &DeviceUse) -> String {
    match found {
        DeviceUse::MountedAt(point) => format!("mounted on {}", point.display()),
        other => other.to_string(),
    }
}

fn describe_user(user: &ProcessUse) -> String {
    let how = match &user.mounted_at {
        Some(point) => format!("mounted on {} for", point.display()),
        None => "held open by".into(),
    };
    format!("{how} process {} ({})", user.pid, user.command)
}
