//! Among which processes the nice value of a process counts.
//!
//! ```text
//! the scheduler divides processors among groups first, and those of a group among its members by their nice values (sched(7)):
//!
//! control group   the nearest with the controller `cpu`, where that is not the root
//! session         for all others, where kernel.sched_autogroup_enabled is 1: one group for each setsid(2)
//! root            for all others
//! ```
//!
//! So a backup at nice 19 takes as much as a database does where both have a group of their own.

use crate::cgroups::cpu_group;
use crate::kernel_file::read_kernel_text;
use crate::{Mounts, control_groups};
use std::io;
use std::path::PathBuf;

/// The group within which a nice value counts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum SchedulingGroup {
    /// Its directory.
    ControlGroup(PathBuf),
    /// The number of the session's group.
    Session(u64),
    /// All that are in no other.
    Root,
}

/// Settings of the host that the groups of processes depend on.
pub struct SchedulingGroups {
    mounts: Mounts,
    sessions_are_groups: bool,
}

impl SchedulingGroups {
    /// Reads it.
    ///
    /// # Errors
    /// If /proc is not readable.
    pub fn read() -> io::Result<SchedulingGroups> {
        // Absent where the kernel was built without it.
        let enabled = read_kernel_text("/proc/sys/kernel/sched_autogroup_enabled").unwrap_or_default();
        Ok(SchedulingGroups { mounts: Mounts::read()?, sessions_are_groups: enabled.trim() == "1" })
    }

    /// The group of a process; `None` where there is no such process.
    pub fn group_of(&self, pid: u32) -> Option<SchedulingGroup> {
        let groups = control_groups(pid).ok()?;
        if let Some(directory) = cpu_group(&self.mounts, &groups) {
            return Some(SchedulingGroup::ControlGroup(directory));
        }
        let session = || parse(&read_kernel_text(format!("/proc/{pid}/autogroup")).ok()?);
        let session = self.sessions_are_groups.then(session).flatten();
        Some(session.map_or(SchedulingGroup::Root, SchedulingGroup::Session))
    }
}

/// `/autogroup-12118 nice 0`; empty for processes that are in no session's group.
fn parse(text: &str) -> Option<u64> {
    text.strip_prefix("/autogroup-")?.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

    #[test]
    fn the_number_of_a_session_s_group_is_parsed() {
        assert_eq!(parse("/autogroup-12118 nice 0\n"), Some(12118));
        assert_eq!(parse("/autogroup-7 nice 19\n"), Some(7));
        for text in ["", "\n", "/", "/autogroup-", "/autogroup-x nice 0"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_process_is_in_the_group_of_its_parent_unless_it_begins_a_session() {
        let groups = SchedulingGroups::read().unwrap();
        let own = groups.group_of(std::process::id()).unwrap();
        let group_when = |program: &str, arguments: &[&str]| {
            let mut child = Command::new(program).args(arguments).stdout(Stdio::piped()).spawn().unwrap();
            let mut line = String::new();
            BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
            let group = groups.group_of(line.trim().parse().unwrap());
            child.kill().and_then(|()| child.wait()).unwrap();
            group.unwrap()
        };
        assert_eq!(group_when("sh", &["-c", "echo $$; exec sleep 60"]), own);
        let of_session = group_when("setsid", &["sh", "-c", "echo $$; exec sleep 60"]);
        // Members of a control group stay in it. All others get a group with their session, the root's too.
        if groups.sessions_are_groups && !matches!(own, SchedulingGroup::ControlGroup(_)) {
            assert!(matches!(of_session, SchedulingGroup::Session(_)), "{of_session:?}");
            assert_ne!(of_session, own);
        } else {
            assert_eq!(of_session, own);
        }
        assert_eq!(groups.group_of(u32::MAX), None);
    }
}
