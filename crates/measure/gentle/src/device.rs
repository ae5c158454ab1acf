//! I/O of others on the device below, by the kernel's counters.

use crate::controller::Others;
use crate::guard::DeviceTotals;
use host::{DeviceNumber, DiskCounters, disk_counters};
use seen::{Second, Side};
use std::collections::VecDeque;
use std::time::{Duration, Instant};
use workload::TargetFacts;

/// The device that a target's file system is on.
#[derive(Clone, Copy, Debug)]
pub struct Device {
    number: DeviceNumber,
    /// It splits larger requests.
    request_bytes_max: Option<u64>,
}

/// A stretch without own reads that is long enough to judge others by.
const STRETCH: Duration = Duration::from_secs(1);
/// I/Os behind a latency.
const IOS_MIN: u64 = 20;
const SECTOR_BYTES: u64 = 512;
const NS_PER_MS: u64 = 1_000_000;

impl Device {
    /// `None` where the kernel counts no I/Os of it.
    pub fn for_target(facts: &TargetFacts) -> Option<Device> {
        let number = DeviceNumber::parse(facts.device_number()?)?;
        disk_counters(number)?;
        let request_bytes_max = facts.devices.first().and_then(|device| device.request_bytes_max);
        Some(Device { number, request_bytes_max })
    }

    /// The counters now.
    pub fn totals(&self) -> Option<DeviceTotals> {
        disk_counters(self.number).map(|counters| totals(&counters))
    }

    /// Requests that the device counts for an I/O of `bytes` bytes.
    pub fn requests(&self, bytes: u64) -> u64 {
        self.request_bytes_max.map_or(1, |most| bytes.div_ceil(most.max(1)))
    }
}

fn totals(counters: &DiskCounters) -> DeviceTotals {
    DeviceTotals {
        reads: counters.reads.count,
        writes: counters.writes.count,
        bytes: (counters.reads.sectors + counters.writes.sectors) * SECTOR_BYTES,
        read_ns: counters.reads.time_ms * NS_PER_MS,
        write_ns: counters.writes.time_ms * NS_PER_MS,
    }
}

/// Watches others while nothing of the load is in flight.
#[derive(Debug, Default)]
pub struct OthersWatch {
    before: Option<(Instant, DiskCounters)>,
    newest: Option<Others>,
    /// Latencies of their reads in the newest stretches.
    reads_ns: VecDeque<f64>,
}

/// Stretches that show what is usual.
const USUAL: usize = 300;

impl OthersWatch {
    /// The median.
    fn usual_read_ns(&self) -> Option<f64> {
        let mut reads_ns: Vec<f64> = self.reads_ns.iter().copied().collect();
        reads_ns.sort_by(f64::total_cmp);
        reads_ns.get(reads_ns.len() / 2).copied()
    }

    /// I/O of others in the newest stretch; `None` before there is one.
    pub fn newest(&self) -> Option<&Others> {
        self.newest.as_ref()
    }

    /// A stretch begins again: own reads were in flight.
    pub fn restart(&mut self) {
        self.before = None;
    }

    /// Reads the counters once a stretch is over. Returns what it adds to what the storage was seen to give.
    pub fn sample(&mut self, device: &Device) -> Option<Second> {
        let now = Instant::now();
        if self.before.as_ref().is_some_and(|(then, _)| now.duration_since(*then) < STRETCH) {
            return None;
        }
        let counters = disk_counters(device.number)?;
        let before = self.before.replace((now, counters.clone()));
        let (then, before) = before?;
        let stretch = Stretch { elapsed_s: now.duration_since(then).as_secs_f64(), before, now: counters };
        let others = stretch.others();
        self.reads_ns.extend(others.read_ns);
        while self.reads_ns.len() > USUAL {
            self.reads_ns.pop_front();
        }
        self.newest = Some(Others { usual_read_ns: self.usual_read_ns(), ..others });
        Some(stretch.second(host::unix_ns()))
    }
}

struct Stretch {
    elapsed_s: f64,
    before: DiskCounters,
    now: DiskCounters,
}

impl Stretch {
    fn others(&self) -> Others {
        let (before, now) = (totals(&self.before), totals(&self.now));
        let latency = |ios: u64, ns: u64| (ios >= IOS_MIN).then(|| ns as f64 / ios as f64);
        let reads = now.reads.saturating_sub(before.reads);
        let writes = now.writes.saturating_sub(before.writes);
        Others {
            iops: (reads + writes) as f64 / self.elapsed_s,
            read_ns: latency(reads, now.read_ns.saturating_sub(before.read_ns)),
            write_ns: latency(writes, now.write_ns.saturating_sub(before.write_ns)),
            usual_read_ns: None,
        }
    }

    fn second(&self, ended_unix_ns: u64) -> Second {
        let side = |now: &host::DiskTransfers, before: &host::DiskTransfers| Side {
            ios: now.count.saturating_sub(before.count) as f64,
            bytes: now.sectors.saturating_sub(before.sectors) as f64 * SECTOR_BYTES as f64,
            served_s: now.time_ms.saturating_sub(before.time_ms) as f64 / 1e3,
            waited_s: 0.0,
        };
        Second {
            ended_unix_ns,
            elapsed_s: self.elapsed_s,
            reads: side(&self.now.reads, &self.before.reads),
            writes: side(&self.now.writes, &self.before.writes),
            busy_s: Some(self.now.busy_ms.saturating_sub(self.before.busy_ms) as f64 / 1e3),
            ..Second::default()
        }
    }
}
