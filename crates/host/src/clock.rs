use rustix::time::{ClockId, clock_gettime};
use std::time::{SystemTime, UNIX_EPOCH};

/// Wall clock, nanoseconds since 1970; 0 before that.
pub fn unix_ns() -> u64 {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since_1970.as_nanos()).unwrap_or(u64::MAX)
}

/// CLOCK_MONOTONIC in nanoseconds, without a system call: the same in all processes of one boot.
#[inline(always)]
pub fn monotonic_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a timespec of ours; CLOCK_MONOTONIC exists on every Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Nanoseconds that the machine was suspended since it booted: CLOCK_BOOTTIME counts them, CLOCK_MONOTONIC does not.
pub fn suspended_ns() -> u64 {
    let boot = clock_gettime(ClockId::Boottime);
    let boot_ns = boot.tv_sec as u64 * 1_000_000_000 + boot.tv_nsec as u64;
    boot_ns.saturating_sub(monotonic_ns())
}
