use std::fs;
use std::io;

/// Identifies this boot of the machine.
pub const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// Which boot of the machine this is: a random UUID.
///
/// # Errors
/// If /proc is not readable.
pub fn boot_id() -> io::Result<String> {
    Ok(fs::read_to_string(BOOT_ID)?.trim().to_owned())
}

/// The name of this machine (uname(2)); empty without /proc.
pub fn hostname() -> String {
    setting("hostname")
}

/// The kernel's release, "6.1.0-18-amd64"; empty without /proc.
pub fn release() -> String {
    setting("osrelease")
}

fn setting(name: &str) -> String {
    let text = fs::read(format!("/proc/sys/kernel/{name}")).unwrap_or_default();
    String::from_utf8_lossy(&text).trim().to_owned()
}
