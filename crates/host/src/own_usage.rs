//! Resources of the host that this process itself uses.

use crate::ProcessStat;
use crate::processors::booted_unix_s;
use rustix::param::{clock_ticks_per_second, page_size};
use std::fs;

/// Resources that this process has used and holds, as /proc says (proc_pid_stat(5)).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OwnUsage {
    /// Processor time of all its threads, seconds.
    pub cpu_s: f64,
    /// Memory that it has in use, bytes.
    pub resident_bytes: u64,
    /// Open file descriptors.
    pub open_files: u64,
    /// When it started, seconds since 1970.
    pub started_unix_s: f64,
}

impl OwnUsage {
    /// `None` without a readable /proc.
    pub fn read() -> Option<OwnUsage> {
        let stat = ProcessStat::read(std::process::id())?;
        let per_second = clock_ticks_per_second() as f64;
        let pages: u64 = fs::read_to_string("/proc/self/statm").ok()?.split(' ').nth(1)?.parse().ok()?;
        Some(OwnUsage {
            cpu_s: stat.cpu_ticks as f64 / per_second,
            resident_bytes: pages * page_size() as u64,
            open_files: fs::read_dir("/proc/self/fd").ok()?.count() as u64,
            started_unix_s: booted_unix_s()? + stat.start_ticks as f64 / per_second,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_started_lately_and_holds_what_it_opens() {
        let before = OwnUsage::read().unwrap();
        let now_s = crate::unix_ns() as f64 / 1e9;
        assert!((0.0..3600.0).contains(&(now_s - before.started_unix_s)), "{before:?} {now_s}");
        assert!(before.resident_bytes > 100_000 && before.cpu_s >= 0.0, "{before:?}");
        let opened: Vec<fs::File> = (0..5).map(|_| fs::File::open("/proc/self/stat").unwrap()).collect();
        let after = OwnUsage::read().unwrap();
        // Other tests open and close files meanwhile.
        assert!(after.open_files >= 5, "{after:?}");
        drop(opened);
    }
}
