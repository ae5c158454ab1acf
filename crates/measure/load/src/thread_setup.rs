//! Settings that a load thread makes for itself before it begins: core, I/O priority, timer slack, signals.

use crate::job::Affinity;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity, set_current_timer_slack};
use std::io;
use std::num::NonZeroU64;

/// Pins the calling thread, number `thread` of the run, to its core. A core that does not exist is ignored.
pub fn pin_to_core(affinity: &Affinity, thread: usize) {
    let cores = match affinity {
        Affinity::None => return,
        Affinity::Cores(cores) => cores.clone(),
        Affinity::RoundRobin => allowed_cores(),
    };
    let Some(core) = cores.get(thread % cores.len().max(1)) else { return };
    if (*core as usize) < CpuSet::MAX_CPU {
        let mut set = CpuSet::new();
        set.set(*core as usize);
        let _ = sched_setaffinity(None, &set);
    }
}

fn allowed_cores() -> Vec<u32> {
    let Ok(set) = sched_getaffinity(None) else { return Vec::new() };
    (0..CpuSet::MAX_CPU as u32).filter(|core| set.is_set(*core as usize)).collect()
}

/// Sets the best-effort I/O priority of the calling thread and of its ring (`ioprio_set(2)`).
pub fn set_io_priority(level: u8) -> io::Result<()> {
    const WHO_PROCESS: libc::c_long = 1;
    const BEST_EFFORT: libc::c_long = 2 << 13;
    // SAFETY: the call takes numbers only, and sets one of this thread (0).
    let set = unsafe {
        libc::syscall(libc::SYS_ioprio_set, WHO_PROCESS, 0, BEST_EFFORT | libc::c_long::from(level))
    };
    if set == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Makes the timers of the calling thread as exact as the kernel can.
pub fn minimize_timer_slack() {
    let _ = set_current_timer_slack(NonZeroU64::new(1));
}

/// While it exists, threads that are started inherit a mask that blocks all signals but those of faults.
pub struct SignalsBlocked(libc::sigset_t);

impl SignalsBlocked {
    pub fn new() -> SignalsBlocked {
        // SAFETY: both sets are plain memory that the calls fill.
        unsafe {
            let mut all: libc::sigset_t = std::mem::zeroed();
            let mut before: libc::sigset_t = std::mem::zeroed();
            libc::sigfillset(&mut all);
            // A fault whose signal is blocked ends the program at once.
            for fault in [libc::SIGBUS, libc::SIGSEGV, libc::SIGFPE, libc::SIGILL] {
                libc::sigdelset(&mut all, fault);
            }
            libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
            SignalsBlocked(before)
        }
    }
}

impl Drop for SignalsBlocked {
    fn drop(&mut self) {
        // SAFETY: restores the mask that `new` saved.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.0, std::ptr::null_mut()) };
    }
}
