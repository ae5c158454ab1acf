//! Which programs of low priority give way to a database: a nice value counts within a scheduling group only.

use crate::recent::Recent;
use host::{ProcessStat, ProcessorTimes, SchedulingGroup, SchedulingGroups};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Programs of low priority are looked for again so often at most: that reads a file for each process of the host.
const INTERVAL: Duration = Duration::from_secs(10);

/// Follows the programs of low priority beside a database.
#[derive(Default)]
pub(crate) struct LowPriority {
    last: Option<Reading>,
    /// How many were taken, up to two: the second is taken at once, as only two say what was used.
    readings: u8,
    gives_way: f64,
}

struct Reading {
    at: Instant,
    host: ProcessorTimes,
    processes: Arc<Processes>,
}

/// The processes of low priority, by pid and start.
type Processes = HashMap<(u32, u64), Process>;

#[derive(Clone, Debug)]
struct Process {
    group: SchedulingGroup,
    /// Processor time, with that of its children that have ended: those of a compiler's driver live shortly.
    ticks: u64,
}

impl LowPriority {
    /// The part of the processor time of programs of low priority that is of such as give way to these processes, 0 to 1. 0 until
    /// it is known: that is the safe side. `age` is how old a reading that is shared may be.
    pub(crate) fn giving_way_to(&mut self, own: &[u32], host: &ProcessorTimes, age: Duration) -> f64 {
        if self.is_due(host) {
            static READINGS: Recent<(), Processes> = Recent::new();
            let processes = READINGS.get((), age, read);
            if let Some(last) = &self.last {
                let groups = SchedulingGroups::read();
                let groups = groups.iter().flat_map(|all| own.iter().filter_map(|pid| all.group_of(*pid)));
                let part = part_in(&groups.collect(), &last.processes, &processes);
                self.gives_way = part.unwrap_or(self.gives_way);
            }
            self.readings = (self.readings + 1).min(2);
            self.last = Some(Reading { at: Instant::now(), host: *host, processes });
        }
        self.gives_way
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
    let Ok(groups) = SchedulingGroups::read() else { return Processes::new() };
    let of_low_priority = |pid: u32| {
        let stat = ProcessStat::read(pid).filter(|stat| stat.nice > 0 && !stat.is_of_kernel)?;
        let ticks = stat.cpu_ticks.saturating_add(stat.ended_children_ticks);
        Some(((pid, stat.start_ticks), Process { group: groups.group_of(pid)?, ticks }))
    };
    host::pids().unwrap_or_default().into_iter().filter_map(of_low_priority).collect()
}

/// The part that members of these groups have of what was used between two readings; `None` if nothing was. Of a process that
/// is new all of it counts.
fn part_in(groups: &HashSet<SchedulingGroup>, then: &Processes, now: &Processes) -> Option<f64> {
    let (mut inside, mut all) = (0, 0);
    for (key, process) in now {
        let used = process.ticks.saturating_sub(then.get(key).map_or(0, |earlier| earlier.ticks));
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

    fn processes(all: &[(u32, SchedulingGroup, u64)]) -> Processes {
        let entry = |(pid, group, ticks): &(u32, SchedulingGroup, u64)| {
            ((*pid, 1), Process { group: group.clone(), ticks: *ticks })
        };
        all.iter().map(entry).collect()
    }

    #[test]
    fn only_those_of_the_database_s_own_groups_give_way() {
        let then = processes(&[(1, Root, 100), (2, Session(7), 100)]);
        let now = processes(&[(1, Root, 130), (2, Session(7), 150), (3, Session(8), 20)]);
        let part = |groups: &[SchedulingGroup]| part_in(&groups.iter().cloned().collect(), &then, &now);
        assert_eq!(part(&[Root]), Some(0.3));
        assert_eq!(part(&[Session(7), Session(8)]), Some(0.7));
        assert_eq!(part(&[]), Some(0.0));
        assert_eq!(part_in(&HashSet::new(), &now, &now), None);
    }

    /// Two programs that take all they get, one of them in a session of its own.
    #[test]
    fn a_nice_program_gives_way_to_those_of_its_group_only() {
        let groups = SchedulingGroups::read().unwrap();
        let own = std::process::id();
        let sessions_are_groups = matches!(groups.group_of(own), Some(Session(_)));
        for (program, gives_way) in [("nice", true), ("setsid", !sessions_are_groups)] {
            let mut low = LowPriority::default();
            let before = ProcessorTimes::read().unwrap();
            assert_eq!(low.giving_way_to(&[own], &before, Duration::ZERO), 0.0);
            let arguments = ["nice", "-n", "19", "sh", "-c", "while :; do :; done"];
            let arguments = if program == "nice" { &arguments[1..] } else { &arguments[..] };
            let mut child = Command::new(program).args(arguments).spawn().unwrap();
            let began = Instant::now();
            let mut part = 0.0;
            while low.readings < 2 && began.elapsed() < Duration::from_secs(30) {
                std::thread::sleep(Duration::from_millis(300));
                part = low.giving_way_to(&[own], &ProcessorTimes::read().unwrap(), Duration::ZERO);
            }
            child.kill().and_then(|()| child.wait()).unwrap();
            // Other programs of low priority may run on this host.
            assert_eq!(part > 0.5, gives_way, "{program}: {part}");
        }
    }
}
