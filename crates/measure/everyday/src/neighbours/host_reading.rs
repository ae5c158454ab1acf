//! What all processes of this host have moved. Several databases that are observed at the same times share one reading of it:
//! on a host with many processes it takes longer than all else that a sample reads.

use crate::recent::Recent;
use host::{ProcessIo, ProcessStat};
use std::sync::Arc;
use std::time::Duration;

/// A process at an instant.
pub struct ProcessReading {
    pub pid: u32,
    pub stat: ProcessStat,
    pub io: ProcessIo,
}

static LAST: Recent<(), Vec<ProcessReading>> = Recent::new();

/// All processes that this user may see, but not the threads of the kernel, as they were at most `age` ago.
pub fn read_processes(age: Duration) -> Arc<Vec<ProcessReading>> {
    LAST.get((), age, read)
}

fn read() -> Vec<ProcessReading> {
    let pids = host::pids().unwrap_or_default();
    let read = |pid| {
        let stat = ProcessStat::read(pid).filter(|stat| !stat.is_of_kernel)?;
        Some(ProcessReading { pid, stat, io: ProcessIo::read(pid)? })
    };
    pids.into_iter().filter_map(read).collect()
}
