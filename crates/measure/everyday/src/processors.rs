use crate::low_priority::LowPriority;
use crate::recent::Sharing;
use host::{ProcessStat, ProcessorTimes};
use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};
use verdict::ProcessorUse;

/// Processor time at one instant: of the host, of each process of the database, and of each that is connected to it.
pub(crate) struct Processors {
    taken: Instant,
    waits_taken: Instant,
    host: ProcessorTimes,
    own: Processes,
    clients: Processes,
    /// Share of the low-priority processor time that gives way to the database, 0 to 1.
    giving_way_share: f64,
}

type Processes = HashMap<u32, Process>;

/// Processor time of a process.
struct Process {
    stat: ProcessStat,
    /// How often its threads gave up their processor to wait.
    waits: u64,
}

/// Where readings are shared, the waits are counted at this interval, as that reads a file for each thread: the moments in
/// between have none and the next one has all. A verdict needs only their mean over a window.
const WAITS_EVERY: Duration = Duration::from_millis(4_900);

/// Processor time that an I/O may need in the kernel beside its process. Time that it used beyond that was for something
/// else.
const KERNEL_PER_IO_MAX: Duration = Duration::from_micros(100);

impl Processors {
    pub(crate) fn read(
        own: &[u32],
        clients: &BTreeSet<u32>,
        low_priority: &mut LowPriority,
        sharing: Sharing,
        last: Option<&Processors>,
    ) -> Option<Processors> {
        let host = ProcessorTimes::read().ok()?;
        let giving_way_share = low_priority.giving_way_share(own, clients, &host, sharing);
        let recent = last.filter(|last| last.waits_taken.elapsed() < sharing.age(WAITS_EVERY));
        let read = |pid: &u32| {
            let stat = ProcessStat::read(*pid)?;
            let waits = match recent.and_then(|last| last.waits_of(*pid, stat.start_ticks)) {
                Some(waits) => waits,
                None => host::waits_of(*pid)?,
            };
            Some((*pid, Process { stat, waits }))
        };
        let (own, clients) = (own.iter().filter_map(read), clients.iter().filter_map(read));
        Some(Processors {
            taken: Instant::now(),
            waits_taken: recent.map_or_else(Instant::now, |last| last.waits_taken),
            host,
            own: own.collect(),
            clients: clients.collect(),
            giving_way_share,
        })
    }

    fn waits_of(&self, pid: u32, start_ticks: u64) -> Option<u64> {
        let process = self.own.get(&pid).or_else(|| self.clients.get(&pid))?;
        (process.stat.start_ticks == start_ticks).then_some(process.waits)
    }

    /// `None` where the database's processes are not known. `ios` is what the storage did.
    pub(crate) fn since(&self, earlier: &Processors, ios: u64) -> Option<ProcessorUse> {
        let share = |ticks| self.host.share_since(&earlier.host, ticks);
        let used = |of: fn(&Process) -> u64| {
            (more_since(&self.own, &earlier.own, of), more_since(&self.clients, &earlier.clients, of))
        };
        let (own_ticks, clients_ticks) = used(|process| process.stat.cpu_ticks);
        let (own, clients) = (share(own_ticks).filter(|_| !self.own.is_empty())?, share(clients_ticks)?);
        let (own_kernel, clients_kernel) = used(|process| process.stat.kernel_ticks);
        let kernel = self.host.kernel_ticks_since(&earlier.host).saturating_sub(own_kernel + clients_kernel);
        let kernel_max = KERNEL_PER_IO_MAX.saturating_mul(u32::try_from(ios).unwrap_or(u32::MAX));
        let kernel = share(kernel.min(host::clock_ticks(kernel_max)))?;
        let all_others = (self.host.busy_since(&earlier.host)? - own - clients - kernel).max(0.0);
        let own_user = (own_ticks + clients_ticks).saturating_sub(own_kernel + clients_kernel);
        let low_priority = low_priority_part(self.host.user_ticks_since(&earlier.host), own_user);
        let giving_way = all_others * low_priority * self.giving_way_share;
        let (own_waits, clients_waits) = used(|process| process.waits);
        let elapsed_s = self.taken.duration_since(earlier.taken).as_secs_f64();
        let per_second = |waits: u64| if elapsed_s > 0.0 { waits as f64 / elapsed_s } else { 0.0 };
        Some(ProcessorUse {
            own,
            clients,
            kernel,
            others: all_others - giving_way,
            count: self.host.count(),
            own_waits_per_s: per_second(own_waits),
            clients_waits_per_s: per_second(clients_waits),
        })
    }
}

/// The part of other programs' processor time that those of low priority had. The kernel counts that apart outside of the kernel
/// only; inside it is taken to be divided alike.
fn low_priority_part((user, low_priority): (u64, u64), own_user: u64) -> f64 {
    let others = user.saturating_sub(own_user);
    if low_priority == 0 { 0.0 } else { low_priority as f64 / (low_priority + others) as f64 }
}

/// By how much a count grew, of the processes that were known then. Others may have worked for long before.
fn more_since(now: &Processes, then: &Processes, of: fn(&Process) -> u64) -> u64 {
    let used = now.iter().filter_map(|(pid, now)| {
        let then = then.get(pid).filter(|then| then.stat.start_ticks == now.stat.start_ticks)?;
        Some(of(now).saturating_sub(of(then)))
    });
    used.sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command};

    /// A process that waits again and again, until it is dropped.
    struct Waiting(Child);

    impl Drop for Waiting {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    #[test]
    fn waits_are_counted_again_after_a_while_only_where_readings_are_shared() {
        // Not this process: the waits of its threads that end are gone.
        let waiting =
            Waiting(Command::new("sh").args(["-c", "while sleep 0.001; do :; done"]).spawn().unwrap());
        let own = [waiting.0.id()];
        std::thread::sleep(Duration::from_millis(50));
        let read = |sharing, last: Option<&Processors>| {
            Processors::read(&own, &BTreeSet::new(), &mut LowPriority::default(), sharing, last).unwrap()
        };
        let waits = |processors: &Processors| processors.own[&own[0]].waits;
        let first = read(Sharing::Always, None);
        std::thread::sleep(Duration::from_millis(200));
        assert_eq!(waits(&read(Sharing::Always, Some(&first))), waits(&first));
        assert!(waits(&read(Sharing::Never, Some(&first))) > waits(&first));
        let long_ago = Processors { waits_taken: first.waits_taken - WAITS_EVERY, ..first };
        assert!(waits(&read(Sharing::Always, Some(&long_ago))) > waits(&long_ago));
    }

    #[test]
    fn programs_of_low_priority_have_the_part_of_others_time_that_they_have_outside_of_the_kernel() {
        assert!((low_priority_part((50, 0), 10) - 0.0).abs() < 1e-9);
        assert!((low_priority_part((50, 60), 10) - 0.6).abs() < 1e-9);
        assert!((low_priority_part((0, 0), 10) - 0.0).abs() < 1e-9);
    }
}
