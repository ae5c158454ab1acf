//! Programs of low priority that give way to a database: a nice value counts within a scheduling group only.

use crate::recent::{Recent, Sharing};
use host::{ProcessStat, ProcessorTimes, SchedulingGroup, SchedulingGroups};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Time between two searches for programs of low priority, at least: each reads a file for each process of the
/// host.
const INTERVAL: Duration = Duration::from_secs(10);
/// How old a shared reading may be.
const SHARED_FOR: Duration = Duration::from_secs(4);

/// Follows the programs of low priority beside a database.
#[derive(Default)]
pub(crate) struct LowPriority {
    last: Option<Reading>,
    /// Readings so far, at most 2. The second follows as soon as possible, because a difference needs two.
    readings: u8,
    giving_way_share: f64,
}

struct Reading {
    at: Instant,
    host: ProcessorTimes,
    processes: Arc<Processes>,
}

/// The processes of low priority.
#[derive(Default)]
struct Processes {
    /// By pid and start.
    all: HashMap<(u32, u64), Process>,
    /// When the youngest process of the host started, of any priority.
    newest_start: u64,
}

#[derive(Clone, Debug)]
struct Process {
    group: SchedulingGroup,
    /// Processor time, with that of its children that have ended: a compiler's driver has many that live shortly.
    ticks: u64,
}

impl LowPriority {
    /// The share of low-priority processor time that gives way to the database, 0 to 1: that of programs in the scheduling
    /// groups of its processes. 0 until it is known, which is the safe side. Its own processes and its clients do not count.
    pub(crate) fn giving_way_share(
        &mut self,
        own: &[u32],
        clients: &BTreeSet<u32>,
        host: &ProcessorTimes,
        sharing: Sharing,
    ) -> f64 {
        if self.is_due(host) {
            static READINGS: Recent<(), Processes> = Recent::new();
            let processes = READINGS.get((), sharing.age(SHARED_FOR), read);
            if let Some(last) = &self.last {
                if Arc::ptr_eq(&last.processes, &processes) {
                    return self.giving_way_share;
                }
                let groups = SchedulingGroups::read();
                let groups = groups.iter().flat_map(|all| own.iter().filter_map(|pid| all.group_of(*pid)));
                let is_other = |pid: u32| !own.contains(&pid) && !clients.contains(&pid);
                let share = share_of(&groups.collect(), &last.processes, &processes, is_other);
                self.giving_way_share = share.unwrap_or(self.giving_way_share);
            }
            self.readings = (self.readings + 1).min(2);
            self.last = Some(Reading { at: Instant::now(), host: *host, processes });
        }
        self.giving_way_share
    }

    /// Only where programs of low priority have worked.
    fn is_due(&self, host: &ProcessorTimes) -> bool {
        self.last.as_ref().is_none_or(|last| {
            let (_, low_priority) = host.user_ticks_since(&last.host);
            low_priority > 0 && (self.readings < 2 || last.at.elapsed() >= INTERVAL)
        })
    }
}

fn read() -> Processes {
    let Ok(groups) = SchedulingGroups::read() else { return Processes::default() };
    let mut processes = Processes::default();
    for pid in host::pids().unwrap_or_default() {
        let Some(stat) = ProcessStat::read(pid) else { continue };
        processes.newest_start = processes.newest_start.max(stat.start_ticks);
        if stat.nice > 0
            && !stat.is_of_kernel
            && let Some(group) = groups.group_of(pid)
        {
            let ticks = stat.cpu_ticks.saturating_add(stat.ended_children_ticks);
            processes.all.insert((pid, stat.start_ticks), Process { group, ticks });
        }
    }
    processes
}

/// The share that members of these groups have of what such processes used between two readings; `None` if nothing was used. Of
/// a process that started meanwhile all of it counts, of one that was given a low priority meanwhile nothing.
fn share_of(
    groups: &HashSet<SchedulingGroup>,
    then: &Processes,
    now: &Processes,
    is_wanted: impl Fn(u32) -> bool,
) -> Option<f64> {
    let (mut inside, mut all) = (0, 0);
    for (key, process) in now.all.iter().filter(|((pid, _), _)| is_wanted(*pid)) {
        let used = match then.all.get(key) {
            Some(earlier) => process.ticks.saturating_sub(earlier.ticks),
            None if key.1 >= then.newest_start => process.ticks,
            None => 0,
        };
        all += used;
        inside += if groups.contains(&process.group) { used } else { 0 };
    }
    (all > 0).then(|| inside as f64 / all as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use SchedulingGroup::{Root, Session};
    use std::process::Command;

    fn processes(newest_start: u64, all: &[(u32, u64, SchedulingGroup, u64)]) -> Processes {
        let entry = |(pid, start, group, ticks): &(u32, u64, SchedulingGroup, u64)| {
            ((*pid, *start), Process { group: group.clone(), ticks: *ticks })
        };
        Processes { all: all.iter().map(entry).collect(), newest_start }
    }

    #[test]
    fn only_those_of_the_database_s_own_groups_give_way() {
        let then = processes(50, &[(1, 1, Root, 100), (2, 1, Session(7), 100)]);
        let begun = [(1, 1, Root, 130), (2, 1, Session(7), 150), (3, 60, Session(8), 20)];
        let now = processes(60, &begun);
        let share =
            |groups: &[SchedulingGroup]| share_of(&groups.iter().cloned().collect(), &then, &now, |_| true);
        assert_eq!(share(&[Root]), Some(0.3));
        assert_eq!(share(&[Session(7), Session(8)]), Some(0.7));
        assert_eq!(share(&[]), Some(0.0));
        assert_eq!(share_of(&HashSet::new(), &now, &now, |_| true), None);
        let without_own = share_of(&HashSet::from([Root]), &then, &now, |pid| pid != 2);
        assert_eq!(without_own, Some(0.6));
        let reniced = processes(60, &[(1, 1, Root, 130), (2, 1, Session(7), 130), (4, 40, Root, 9_000)]);
        assert_eq!(share_of(&HashSet::from([Root]), &then, &reniced, |_| true), Some(0.5));
    }

    /// A program that takes all it gets, once in a session of its own.
    #[test]
    fn a_nice_program_gives_way_to_those_of_its_group_only() {
        let groups = SchedulingGroups::read().unwrap();
        let own = groups.group_of(std::process::id()).unwrap();
        for program in ["nice", "setsid"] {
            let arguments = ["nice", "-n", "19", "sh", "-c", "while :; do :; done"];
            let arguments = if program == "nice" { &arguments[1..] } else { &arguments[..] };
            let before = read();
            let mut child = Command::new(program).args(arguments).spawn().unwrap();
            let began = Instant::now();
            let mut share = None;
            let mut group = None;
            while share.is_none() && began.elapsed() < Duration::from_secs(30) {
                std::thread::sleep(Duration::from_millis(100));
                share = share_of(&HashSet::from([own.clone()]), &before, &read(), |pid| pid == child.id());
                group = groups.group_of(child.id());
            }
            child.kill().and_then(|()| child.wait()).unwrap();
            let gives_way = group.as_ref() == Some(&own);
            // Whether a session has a group of its own depends on the host.
            assert!(gives_way || program == "setsid", "{group:?}, not {own:?}");
            assert_eq!(share, Some(if gives_way { 1.0 } else { 0.0 }), "{program}");
        }
    }
}
