//! Loop devices over files, and the limits of the kernel's throttle on them: the disks of tests, and of the laboratory's LUNs.
//! Needs root.
//!
//! ```text
//! LoopDevice::attach(file) ──> /dev/loopN, direct I/O, no limits
//!   throttle::set(number)  ──> blkio.throttle.* (cgroup v1), io.max (v2)
//! LoopDevice::detach()     ──> no limits, no device; the file stays
//! ```
//!
//! Never: touches a device or a limit that its caller does not name.

mod error;
mod loop_device;
pub mod throttle;

pub use error::LoopError;
pub use loop_device::LoopDevice;
