//! Bytes that all processes of this host have moved. Several databases that are observed at the same times share one reading
//! of it: on a host with many processes it takes longer than all else that a sample reads.

use crate::recent::{Recent, Sharing};
use host::{ProcessIo, ProcessStat};
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A process at an instant.
pub struct ProcessReading {
    pub pid: u32,
    pub stat: ProcessStat,
    pub io: ProcessIo,
}

static LAST: Recent<(), Vec<ProcessReading>> = Recent::new();

/// How old a shared reading may be: processes are read every other second.
pub const AGE_MAX: Duration = Duration::from_millis(1_900);

/// All processes that this user may see, but not the threads of the kernel.
pub fn read_processes(sharing: Sharing) -> Arc<Vec<ProcessReading>> {
    LAST.get((), sharing.age(AGE_MAX), read)
}

/// Threads of the kernel are known for this time by their numbers: there are hundreds of them, and a program gets such a
/// number rarely. It is seen that much later.
const KERNEL_THREADS_FOR: Duration = Duration::from_secs(30);

fn read() -> Vec<ProcessReading> {
    static KERNEL_THREADS: Mutex<Option<(Instant, HashSet<u32>)>> = Mutex::new(None);
    let mut known = KERNEL_THREADS.lock().unwrap_or_else(PoisonError::into_inner);
    let known = match &mut *known {
        Some((since, threads)) if since.elapsed() < KERNEL_THREADS_FOR => threads,
        outdated => &mut outdated.insert((Instant::now(), HashSet::new())).1,
    };
    let mut read = |pid| {
        if known.contains(&pid) {
            return None;
        }
        let stat = ProcessStat::read(pid)?;
        if stat.is_of_kernel {
            known.insert(pid);
            return None;
        }
        Some(ProcessReading { pid, stat, io: ProcessIo::read(pid)? })
    };
    host::pids().unwrap_or_default().into_iter().filter_map(&mut read).collect()
}
