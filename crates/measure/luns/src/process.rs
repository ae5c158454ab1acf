use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// A process that cannot be taken for another that got its number later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// When it began, in clock ticks since the host was started (`/proc/PID/stat`, field 22).
    pub began_ticks: u64,
}

/// A killed process is waited for so long.
const END_MAX: Duration = Duration::from_secs(2);

impl Process {
    /// The process that has this number now.
    pub fn of(pid: u32) -> Option<Process> {
        host::start_ticks(pid).map(|began_ticks| Process { pid, began_ticks })
    }

    /// Whether it is still there.
    pub fn lives(self) -> bool {
        Process::of(self.pid) == Some(self)
    }

    /// Waits until it is gone; whether it is.
    pub fn ends_within(self, time: Duration) -> bool {
        let until = Instant::now() + time;
        while self.lives() {
            if Instant::now() >= until {
                return false;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        true
    }

    /// Kills it; whether it is gone.
    pub fn kill(self) -> bool {
        if self.lives()
            && let Some(pid) = i32::try_from(self.pid).ok().and_then(rustix::process::Pid::from_raw)
        {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
        self.ends_within(END_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_known_by_its_number_and_its_beginning() {
        let us = Process::of(std::process::id()).unwrap();
        assert!(us.lives());
        assert!(!Process { began_ticks: us.began_ticks + 1, ..us }.lives());
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let other = Process::of(child.id()).unwrap();
        assert!(other.began_ticks >= us.began_ticks && other.lives());
        // Not waited for yet, it is a zombie, which serves nothing.
        assert!(other.kill());
        child.wait().unwrap();
    }
}
