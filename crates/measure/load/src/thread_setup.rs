//! What a load thread sets for itself before it begins: core, I/O priority, timer slack, signals.

use crate::job::Affinity;
use std::io;

/// Pins the calling thread, number `thread` of the run, to its core. A core that does not exist is ignored.
pub fn pin_to_core(affinity: &Affinity, thread: usize) {
    let cores = match affinity {
        Affinity::None => return,
        Affinity::Cores(cores) => cores.clone(),
        Affinity::RoundRobin => allowed_cores(),
    };
    let Some(core) = cores.get(thread % cores.len().max(1)) else { return };
    if (*core as usize) < libc::CPU_SETSIZE as usize {
        // SAFETY: `set` is plain memory, valid when zeroed; the core is below `CPU_SETSIZE`. If the core does not exist
        // the call fails and changes nothing.
        unsafe {
            let mut set: libc::cpu_set_t = std::mem::zeroed();
            libc::CPU_SET(*core as usize, &mut set);
            libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set);
        }
    }
}

fn allowed_cores() -> Vec<u32> {
    // SAFETY: `set` is plain memory that the call fills; `CPU_ISSET` is given indices below `CPU_SETSIZE`.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        if libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set) != 0 {
            return Vec::new();
        }
        (0..libc::CPU_SETSIZE as u32).filter(|core| libc::CPU_ISSET(*core as usize, &set)).collect()
    }
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
    // SAFETY: the call takes numbers only, and sets one of this thread.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
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
