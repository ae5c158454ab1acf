use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// A process, distinct from a later one with its pid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Process id.
    pub pid: u32,
    /// When it started, in clock ticks since boot.
    #[serde(rename = "began_ticks")]
    pub start_ticks: u64,
}

/// A killed process ends within this time.
const KILLED_MAX: Duration = Duration::from_secs(2);
const CHECK_EVERY: Duration = Duration::from_millis(5);

impl Process {
    /// The process that has this pid now; a zombie counts as none.
    pub fn find(pid: u32) -> Option<Process> {
        host::start_ticks(pid).map(|start_ticks| Process { pid, start_ticks })
    }

    /// Whether it still runs.
    pub fn is_alive(self) -> bool {
        Process::find(self.pid) == Some(self)
    }

    /// Waits until it has ended; whether it has.
    pub fn ends_within(self, time: Duration) -> bool {
        let deadline = Instant::now() + time;
        while self.is_alive() {
            if Instant::now() >= deadline {
                return false;
            }
            std::thread::sleep(CHECK_EVERY);
        }
        true
    }

    /// Kills it; whether it has ended.
    pub fn kill(self) -> bool {
        if self.is_alive()
            && let Some(pid) = i32::try_from(self.pid).ok().and_then(rustix::process::Pid::from_raw)
        {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
        self.ends_within(KILLED_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_known_by_its_pid_and_its_start() {
        let own = Process::find(std::process::id()).unwrap();
        assert!(own.is_alive());
        assert!(!Process { start_ticks: own.start_ticks + 1, ..own }.is_alive());
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let other = Process::find(child.id()).unwrap();
        assert!(other.start_ticks >= own.start_ticks && other.is_alive());
        // Not waited for yet, it is a zombie, which serves nothing.
        assert!(other.kill());
        child.wait().unwrap();
    }
}
