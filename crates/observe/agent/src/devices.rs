//! What the kernel counts of the block devices below the volumes, for `/metrics`.

use host::{DeviceNumber, DiskCounters, DiskTransfers, read_diskstats};
use metrics::{AgentState, DeviceOps, DeviceState};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The devices of the volumes that were judged, by mount point.
#[derive(Default)]
pub struct Devices {
    by_mount: BTreeMap<String, DeviceNumber>,
    sampled: Option<Instant>,
}

/// A server that scrapes computes rates over a minute or more: a counter that is a second old is 2 % off at most.
const EVERY: Duration = Duration::from_secs(1);
const SECTOR_BYTES: u64 = 512;
const NS_PER_MS: u64 = 1_000_000;

impl Devices {
    /// From now on the device of a mount point is this one.
    pub fn follow(&mut self, mount: &str, device: Option<DeviceNumber>) {
        match device {
            Some(number) if self.by_mount.get(mount) == Some(&number) => {}
            Some(number) => drop(self.by_mount.insert(mount.to_owned(), number)),
            None => drop(self.by_mount.remove(mount)),
        }
    }

    /// Reads the counters, once a second. A device that the kernel does not list is left out.
    pub fn sample(&mut self, state: &Mutex<AgentState>) {
        if self.by_mount.is_empty() || self.sampled.is_some_and(|last| last.elapsed() < EVERY) {
            return;
        }
        self.sampled = Some(Instant::now());
        let lines = read_diskstats().unwrap_or_default();
        let line_of = |number: &DeviceNumber| lines.iter().find(|line| line.number == *number);
        let known = self.by_mount.iter().filter_map(|(mount, number)| Some((mount, line_of(number)?)));
        let devices = known.map(|(mount, line)| (mount.clone(), device_state(line))).collect();
        state.lock().unwrap_or_else(PoisonError::into_inner).devices = devices;
    }
}

fn device_state(line: &DiskCounters) -> DeviceState {
    let ops = |done: DiskTransfers| DeviceOps {
        count: done.count,
        bytes: done.sectors.saturating_mul(SECTOR_BYTES),
        time_ns: done.time_ms.saturating_mul(NS_PER_MS),
    };
    DeviceState {
        device: line.name.clone(),
        reads: ops(line.reads),
        writes: ops(line.writes),
        busy_ns: line.busy_ms.saturating_mul(NS_PER_MS),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_that_the_kernel_lists_is_counted_and_one_that_is_gone_is_left_out() {
        let Some(line) = read_diskstats().unwrap().into_iter().next() else { return };
        let mut devices = Devices::default();
        devices.follow("/data", Some(line.number));
        devices.follow("/gone", Some(DeviceNumber { major: 4095, minor: 1 }));
        let state = Mutex::new(AgentState::default());
        devices.sample(&state);
        let state = state.into_inner().unwrap();
        let counted = &state.devices["/data"];
        assert!(counted.device == line.name && counted.reads.count >= line.reads.count);
        assert_eq!(counted.reads.bytes % SECTOR_BYTES, 0);
        assert!(!state.devices.contains_key("/gone"));
    }
}
