//! Kernel counters beside those of the files and the device: how long tasks were stalled on I/O, and what limits let
//! through.

use crate::recent::Recent;
use filestats::{Figure, Reason};
use host::{DeviceNumber, DiskCounters};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use verdict::{CapUse, Pressure};
use workload::{Cap, DeviceFacts};

/// Reads them.
pub struct Kernel {
    /// The observed device and all below it.
    devices: Vec<DeviceFacts>,
}

/// Its counters at one instant.
pub struct KernelCounters {
    at_ns: u64,
    host_us: io::Result<u64>,
    group_us: io::Result<(PathBuf, u64)>,
    disks: io::Result<Vec<DiskCounters>>,
    /// The observed device and all below it.
    devices: Vec<DeviceNumber>,
    caps: Vec<(Cap, u64)>,
}

impl Kernel {
    /// Of a device by its number, "254:0".
    pub fn new(device: Option<&str>) -> Kernel {
        let number = device.and_then(DeviceNumber::parse);
        Kernel { devices: number.map(host::device_chain).unwrap_or_default() }
    }

    /// For a database with these processes, as of at most `age` ago; for this process where there are none.
    pub fn read(&self, processes: &[u32], age: Duration) -> Arc<KernelCounters> {
        static LAST: Recent<(Vec<String>, Vec<u8>), KernelCounters> = Recent::new();
        // A server's processes share a control group. The first one is the one that started the others.
        let pid = processes.first().copied().unwrap_or_else(std::process::id);
        let devices = self.devices.iter().map(|device| device.number.clone()).collect();
        LAST.get((devices, host::control_groups(pid).unwrap_or_default()), age, || self.read_now(pid))
    }

    fn read_now(&self, pid: u32) -> KernelCounters {
        let caps = host::caps_for(&self.devices, pid).into_iter();
        KernelCounters {
            at_ns: host::monotonic_ns(),
            host_us: host::io_stalled_us(),
            group_us: host::io_stalled_us_of_group(pid),
            disks: host::read_diskstats(),
            devices: self.devices.iter().filter_map(|device| DeviceNumber::parse(&device.number)).collect(),
            caps: caps.filter_map(|cap| host::cap_counted(&cap).ok().map(|counted| (cap, counted))).collect(),
        }
    }
}

impl KernelCounters {
    /// How long tasks were stalled since an earlier instant. Times that this kernel does not count are
    /// unknown.
    pub fn pressure_since(&self, earlier: &KernelCounters) -> Pressure {
        let group = |counters: &KernelCounters| counters.group_us.as_ref().ok().cloned();
        let group_ns = match group(earlier).zip(group(self)) {
            None => Figure::unknown(Reason::NotCounted),
            // The process moved to another group, or another one has its number.
            Some(((then, _), (now, _))) if then != now => Figure::unknown(Reason::IdentityChanged),
            Some(((_, then), (_, now))) => grown_ns(then, now),
        };
        let host = |counters: &KernelCounters| counters.host_us.as_ref().ok().copied();
        let host_ns = host(earlier).zip(host(self));
        Pressure {
            elapsed_ns: self.at_ns.saturating_sub(earlier.at_ns),
            host_ns: host_ns.map_or(Figure::unknown(Reason::NotCounted), |(then, now)| grown_ns(then, now)),
            group_ns,
            device_ns: self.busiest_device_ns(earlier),
            hung_ns: self.hung_ns(earlier),
        }
    }

    fn busiest_device_ns(&self, earlier: &KernelCounters) -> Figure<u64> {
        let (Ok(then), Ok(now)) = (&earlier.disks, &self.disks) else {
            return Figure::unknown(Reason::NotCounted);
        };
        let busy_ms = now.iter().filter_map(|disk| {
            let then = then.iter().find(|then| then.number == disk.number && then.name == disk.name)?;
            // Before Linux 6.10 a device that was used for a moment of a clock tick counts as busy for all of it. The time of
            // all I/Os together is exact, and is never less than the time with any.
            let busy =
                disk.busy_ms.wrapping_sub(then.busy_ms).min(disk.weighted_ms.wrapping_sub(then.weighted_ms));
            Some(busy)
        });
        Figure::Known(busy_ms.max().unwrap_or(0).saturating_mul(1_000_000))
    }

    /// All of the time since an earlier instant, where one of the devices had I/Os in flight at both ends and completed nothing.
    fn hung_ns(&self, earlier: &KernelCounters) -> Figure<u64> {
        let (Ok(then), Ok(now)) = (&earlier.disks, &self.disks) else {
            return Figure::unknown(Reason::NotCounted);
        };
        let of_volume = now.iter().filter(|disk| self.devices.contains(&disk.number));
        let is_hung = |now: &DiskCounters| {
            let then = then.iter().find(|then| then.number == now.number && then.name == now.name);
            then.is_some_and(|then| {
                then.in_flight > 0 && now.in_flight > 0 && then.completed() == now.completed()
            })
        };
        let elapsed_ns = self.at_ns.saturating_sub(earlier.at_ns);
        Figure::Known(if of_volume.into_iter().any(is_hung) { elapsed_ns } else { 0 })
    }

    /// Counts of each limit since an earlier instant.
    pub fn caps_since(&self, earlier: &KernelCounters) -> Vec<CapUse> {
        let elapsed_ns = self.at_ns.saturating_sub(earlier.at_ns);
        let grown = self.caps.iter().filter_map(|(cap, now)| {
            let (_, then) = earlier.caps.iter().find(|(then, _)| then == cap)?;
            Some(CapUse { cap: cap.clone(), counted: now.checked_sub(*then)?, elapsed_ns })
        });
        grown.collect()
    }
}

fn grown_ns(then_us: u64, now_us: u64) -> Figure<u64> {
    match now_us.checked_sub(then_us) {
        Some(us) => Figure::Known(us.saturating_mul(1_000)),
        None => Figure::unknown(Reason::CounterFell),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use host::DiskTransfers;

    fn counters(at_ns: u64, stalled_us: u64, group: Option<(&str, u64)>) -> KernelCounters {
        let missing = || io::Error::from(io::ErrorKind::NotFound);
        KernelCounters {
            at_ns,
            host_us: Ok(stalled_us),
            group_us: group.map(|(path, us)| (path.into(), us)).ok_or_else(missing),
            disks: Err(missing()),
            devices: vec![],
            caps: vec![],
        }
    }

    #[test]
    fn what_is_not_counted_is_unknown_and_never_zero() {
        let unknown = |reason| Figure::<u64>::unknown(reason);
        let (then, now) = (counters(0, 1_000, None), counters(1_000_000_000, 931_000, None));
        let pressure = now.pressure_since(&then);
        assert_eq!((pressure.elapsed_ns, pressure.host_ns), (1_000_000_000, Figure::Known(930_000_000)));
        assert_eq!(
            (pressure.group_ns, pressure.device_ns),
            (unknown(Reason::NotCounted), unknown(Reason::NotCounted))
        );
        let moved = counters(9, 931_000, Some(("/b", 5))).pressure_since(&counters(0, 0, Some(("/a", 5))));
        assert_eq!(moved.group_ns, unknown(Reason::IdentityChanged));
        let fell = then.pressure_since(&now);
        assert_eq!(fell.host_ns, unknown(Reason::CounterFell));
    }

    #[test]
    fn a_device_with_ios_in_flight_that_completes_nothing_hangs() {
        let number = DeviceNumber { major: 7, minor: 1 };
        let disk = |in_flight, writes| DiskCounters {
            number,
            name: "loop1".into(),
            reads: DiskTransfers { count: 5, sectors: 40, time_ms: 1 },
            writes: DiskTransfers { count: writes, sectors: 8 * writes, time_ms: writes },
            in_flight,
            busy_ms: 0,
            weighted_ms: 0,
            discards: 0,
            flushes: None,
        };
        let at = |at_ns, in_flight, writes, device| KernelCounters {
            disks: Ok(vec![disk(in_flight, writes)]),
            devices: vec![device],
            ..counters(at_ns, 0, None)
        };
        let hung_ns = |in_flight, writes, device| {
            at(1_000_000_000, in_flight, writes, device).pressure_since(&at(0, 2, 9, device)).hung_ns
        };
        assert_eq!(hung_ns(2, 9, number), Figure::Known(1_000_000_000));
        assert_eq!(hung_ns(2, 10, number), Figure::Known(0), "one was completed");
        assert_eq!(hung_ns(0, 9, number), Figure::Known(0), "nothing is in flight");
        let another = DeviceNumber { major: 7, minor: 2 };
        assert_eq!(hung_ns(2, 9, another), Figure::Known(0), "it is no device of the volume");
    }

    #[test]
    fn a_limit_that_was_set_in_between_has_no_count_yet() {
        let cap = |per_second| Cap {
            kind: workload::CapKind::WriteIops,
            per_second,
            device: "7:0".into(),
            origin: "/g/io.max".into(),
        };
        let with = |at_ns, caps| KernelCounters { caps, ..counters(at_ns, 0, None) };
        let then = with(0, vec![(cap(800), 100)]);
        let now = with(1_000_000_000, vec![(cap(800), 900), (cap(400), 900)]);
        let used = now.caps_since(&then);
        let [one] = &used[..] else { panic!("{used:?}") };
        assert_eq!((one.counted, one.share()), (800, 1.0));
    }
}
