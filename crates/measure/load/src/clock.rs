use rustix::time::{ClockId, clock_gettime};

/// CPU time this thread has used, nanoseconds.
pub fn thread_cpu_ns() -> u64 {
    clock_ns(ClockId::ThreadCPUTime)
}

/// The monotonic clock, nanoseconds.
#[inline]
pub fn now_ns() -> u64 {
    clock_ns(ClockId::Monotonic)
}

#[inline]
fn clock_ns(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
