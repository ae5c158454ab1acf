//! What all processes of this host have moved. Several databases that are observed at the same times share one reading of it:
//! on a host with many processes it takes longer than all else that a sample reads.

use host::{ProcessIo, ProcessStat};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A process at an instant.
pub struct ProcessReading {
    pub pid: u32,
    pub stat: ProcessStat,
    pub io: ProcessIo,
}

/// When it was read, and all processes that this user may see.
type HostReading = (Instant, Arc<Vec<ProcessReading>>);

static LAST: Mutex<Option<HostReading>> = Mutex::new(None);

/// All processes, as they were at most `age` ago.
pub fn read_processes(age: Duration) -> Arc<Vec<ProcessReading>> {
    if age.is_zero() {
        return Arc::new(read());
    }
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    match &*last {
        Some((at, known)) if at.elapsed() < age => known.clone(),
        _ => {
            let (at, new) = (Instant::now(), Arc::new(read()));
            *last = Some((at, new.clone()));
            new
        }
    }
}

fn read() -> Vec<ProcessReading> {
    let pids = host::pids().unwrap_or_default();
    let read = |pid| Some(ProcessReading { pid, stat: ProcessStat::read(pid)?, io: ProcessIo::read(pid)? });
    pids.into_iter().filter_map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reading_is_shared_as_long_as_it_is_young_enough() {
        let age = Duration::from_secs(3600);
        let first = read_processes(age);
        assert!(first.iter().any(|process| process.pid == std::process::id()));
        assert!(Arc::ptr_eq(&first, &read_processes(age)));
        assert!(!Arc::ptr_eq(&first, &read_processes(Duration::ZERO)));
    }
}
