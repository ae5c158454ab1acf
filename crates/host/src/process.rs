//! Which process counts: a pid alone may be another process tomorrow.

use std::fs;
use std::os::unix::fs::MetadataExt;

/// One process, told from every later one with its pid.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ProcessIdentity {
    /// Process id.
    pub pid: u32,
    /// When it started, in clock ticks since boot.
    pub start_ticks: u64,
    /// The boot it runs in.
    pub boot_id: String,
    /// The pid namespace in which `pid` means something.
    pub pid_namespace: u64,
}

impl ProcessIdentity {
    /// This process; `None` without a readable /proc.
    pub fn own() -> Option<ProcessIdentity> {
        let pid = std::process::id();
        Some(ProcessIdentity {
            pid,
            start_ticks: start_ticks(pid)?,
            boot_id: boot_id()?,
            pid_namespace: own_pid_namespace()?,
        })
    }

    /// Whether the process still runs; `None` if it cannot be judged from this pid namespace.
    pub fn is_alive(&self) -> Option<bool> {
        if boot_id()? != self.boot_id {
            return Some(false);
        }
        (own_pid_namespace()? == self.pid_namespace).then(|| start_ticks(self.pid) == Some(self.start_ticks))
    }

    /// The name of the program, as the kernel keeps it; `None` once it ended.
    pub fn command(&self) -> Option<String> {
        let name = fs::read(format!("/proc/{}/comm", self.pid)).ok()?;
        Some(String::from_utf8_lossy(&name).trim_end().to_owned())
    }
}

fn boot_id() -> Option<String> {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(id.trim().to_owned())
}

fn own_pid_namespace() -> Option<u64> {
    fs::metadata("/proc/self/ns/pid").ok().map(|namespace| namespace.ino())
}

/// A zombie has ended for our purposes: it counts nothing any more.
fn start_ticks(pid: u32) -> Option<u64> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    start_ticks_in(&stat)
}

/// The start time out of /proc/PID/stat. The command may hold blanks and parentheses: fields count from
/// the last ")".
fn start_ticks_in(stat: &[u8]) -> Option<u64> {
    let after = stat.iter().rposition(|byte| *byte == b')')? + 1;
    let mut fields = std::str::from_utf8(stat.get(after..)?).ok()?.split_ascii_whitespace();
    let state = fields.next()?;
    let start = fields.nth(18)?.parse().ok()?;
    (state != "Z" && state != "X").then_some(start)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_command_with_parentheses_does_not_shift_the_fields() {
        let rest = "S 1 7 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4711 1 1";
        let stat = format!("7 (a) b) c) {rest}");
        assert_eq!(start_ticks_in(stat.as_bytes()), Some(4711));
        assert_eq!(start_ticks_in(stat.replace(") S ", ") Z ").as_bytes()), None, "a zombie counts nothing");
    }

    #[test]
    fn this_process_is_alive_and_its_predecessor_is_not() {
        let own = ProcessIdentity::own().unwrap();
        assert_eq!(own.is_alive(), Some(true));
        let earlier = ProcessIdentity { start_ticks: own.start_ticks - 1, ..own.clone() };
        assert_eq!(earlier.is_alive(), Some(false));
        let last_boot = ProcessIdentity { boot_id: "an earlier boot".into(), ..own.clone() };
        assert_eq!(last_boot.is_alive(), Some(false));
        let elsewhere = ProcessIdentity { pid_namespace: 1, ..own };
        assert_eq!(elsewhere.is_alive(), None);
    }

    proptest! {
        #[test]
        fn any_stat_is_parsed_or_refused(stat in any::<Vec<u8>>()) {
            let _ = start_ticks_in(&stat);
        }
    }
}
