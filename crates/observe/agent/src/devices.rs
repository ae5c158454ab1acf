//! The kernel's counters of the block devices below the volumes, for `/metrics`.

use host::{DeviceNumber, DiskCounters, DiskTransfers, device_chain, device_size_bytes, read_diskstats};
use metrics::{AgentState, DeviceFlushes, DeviceOps, DeviceState};
use record::{Presence, PresenceChange};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use workload::DeviceFacts;

/// The devices of the volumes that were judged, by mount point.
#[derive(Default)]
pub struct Devices {
    by_mount: BTreeMap<String, Device>,
    sampled: Option<Instant>,
    /// When the devices below were last read.
    layouts: Option<Instant>,
    presence: Presence,
}

/// A device, and the devices that it lies on.
struct Device {
    number: DeviceNumber,
    kind: String,
    parents: Vec<String>,
    /// Its name, and those of all devices that it lies on, with their numbers.
    chain: BTreeMap<String, DeviceNumber>,
}

/// A device below volumes that was lost, or is back.
#[derive(Debug)]
pub struct DeviceEvent {
    pub change: PresenceChange,
    /// The mount points of the volumes.
    pub mounts: Vec<String>,
}

/// A server that scrapes computes rates over a minute or more: a counter that is a second old is 2 % off at most.
const EVERY: Duration = Duration::from_secs(1);
/// A device can get other members, and its number another device.
const LAYOUTS_EVERY: Duration = Duration::from_secs(60);
const SECTOR_BYTES: u64 = 512;
const NS_PER_MS: u64 = 1_000_000;

impl Devices {
    /// From now on the device of a mount point is this one.
    pub fn follow(&mut self, mount: &str, device: Option<DeviceNumber>) {
        match device {
            Some(number) if self.by_mount.get(mount).is_some_and(|known| known.number == number) => {}
            Some(number) => drop(self.by_mount.insert(mount.to_owned(), Device::new(number))),
            None => drop(self.by_mount.remove(mount)),
        }
    }

    /// Reads the counters, once a second, and returns the devices that went or came since the last time. A device that the kernel does
    /// not list is left out.
    pub fn sample(&mut self, state: &Mutex<AgentState>) -> Vec<DeviceEvent> {
        if self.by_mount.is_empty() || self.sampled.is_some_and(|last| last.elapsed() < EVERY) {
            return Vec::new();
        }
        self.sampled = Some(Instant::now());
        let events = self.notice_changes();
        if self.layouts.is_none_or(|last| last.elapsed() >= LAYOUTS_EVERY) {
            self.layouts = Some(Instant::now());
            self.read_layouts();
        }
        let lines = read_diskstats().unwrap_or_default();
        let known = self.by_mount.iter().filter_map(|(mount, device)| {
            let line = lines.iter().find(|line| line.number == device.number)?;
            Some((mount.clone(), device.state(line)))
        });
        let devices = known.collect();
        state.lock().unwrap_or_else(PoisonError::into_inner).devices = devices;
        events
    }

    /// Devices below the volumes, all of a chain, that are gone or back.
    fn notice_changes(&mut self) -> Vec<DeviceEvent> {
        let known = self.by_mount.values().flat_map(|device| &device.chain);
        let there = known.filter(|(_, number)| device_size_bytes(**number).is_some_and(|bytes| bytes > 0));
        let there: BTreeSet<String> = there.map(|(name, _)| name.clone()).collect();
        let changes = self.presence.update(there, Instant::now());
        let event = |change: PresenceChange| {
            let (PresenceChange::Lost { device } | PresenceChange::Back { device, .. }) = &change;
            let below = self.by_mount.iter().filter(|(_, below)| below.chain.contains_key(device));
            let mounts: Vec<String> = below.map(|(mount, _)| mount.clone()).collect();
            (!mounts.is_empty()).then_some(DeviceEvent { change, mounts })
        };
        changes.into_iter().filter_map(event).collect()
    }

    /// Reads the devices that the devices lie on; those below which one is lost are kept as they were, to see it come back.
    fn read_layouts(&mut self) {
        let presence = &self.presence;
        let whole = |device: &&mut Device| !device.chain.keys().any(|name| presence.is_lost(name));
        self.by_mount.values_mut().filter(whole).for_each(|device| *device = Device::new(device.number));
    }
}

impl Device {
    fn new(number: DeviceNumber) -> Device {
        let chain = device_chain(number);
        let kind = chain.first().map(|device| device.kind.to_string()).unwrap_or_default();
        let numbers =
            chain.iter().filter_map(|one| Some((one.name.clone(), DeviceNumber::parse(&one.number)?)));
        Device { number, kind, parents: parents(&chain), chain: numbers.collect() }
    }

    fn state(&self, line: &DiskCounters) -> DeviceState {
        let ops = |done: DiskTransfers| DeviceOps {
            count: done.count,
            bytes: done.sectors.saturating_mul(SECTOR_BYTES),
            time_ns: done.time_ms.saturating_mul(NS_PER_MS),
        };
        let flushes =
            |(count, ms): (u64, u64)| DeviceFlushes { count, time_ns: ms.saturating_mul(NS_PER_MS) };
        DeviceState {
            device: line.name.clone(),
            kind: self.kind.clone(),
            parents: self.parents.clone(),
            reads: ops(line.reads),
            writes: ops(line.writes),
            flushes: line.flushes.map(flushes),
            busy_ns: line.busy_ms.saturating_mul(NS_PER_MS),
        }
    }
}

/// The devices right below the first of a chain: its members, its disk, or that of its file.
fn parents(chain: &[DeviceFacts]) -> Vec<String> {
    let Some((device, below)) = chain.split_first() else { return Vec::new() };
    match &device.layout {
        Some(layout) if !layout.members.is_empty() => layout.members.clone(),
        _ => below.first().map(|parent| parent.name.clone()).into_iter().collect(),
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

    #[test]
    fn a_device_that_is_detached_is_reported_with_its_volume_and_so_is_its_return() {
        let Some(disk) = testbed::LoopDisk::new(1 << 20) else { return };
        let mut devices = Devices::default();
        devices.follow("/data", DeviceNumber::parse(disk.number()));
        let mut sample = || {
            devices.sampled = None;
            devices.layouts = None;
            devices.sample(&Mutex::new(AgentState::default()))
        };
        let losetup = |arguments: &[&str]| {
            let done = std::process::Command::new("losetup").args(arguments).status().unwrap();
            assert!(done.success(), "{arguments:?}");
        };
        assert!(sample().is_empty());
        let (path, image) = (disk.device().to_str().unwrap(), disk.backing_file());
        losetup(&["--detach", path]);
        let events = sample();
        let name = disk.device().file_name().unwrap().to_str().unwrap();
        assert!(
            matches!(&events[..], [DeviceEvent { change: PresenceChange::Lost { device }, mounts }]
                if device == name && mounts == &["/data"]),
            "{events:?}"
        );
        assert!(sample().is_empty(), "once");
        losetup(&[path, image.to_str().unwrap()]);
        let events = sample();
        let is_back = matches!(&events[..], [DeviceEvent { change: PresenceChange::Back { .. }, .. }]);
        assert!(is_back && sample().is_empty(), "{events:?}");
    }

    #[test]
    fn a_device_lies_on_its_members_or_on_what_is_next_in_the_chain() {
        let device = |name: &str, members: &[&str]| {
            let layout = serde_json::json!({"made_by": "md", "how": "raid1", "members": members});
            let layout = if members.is_empty() { serde_json::Value::Null } else { layout };
            let facts = serde_json::json!({
                "name": name, "number": "8:1", "kind": "md", "size_bytes": 1, "layout": layout,
            });
            serde_json::from_value::<DeviceFacts>(facts).unwrap()
        };
        let array = [device("md0", &["sda1", "sdb1"]), device("sda1", &[]), device("sda", &[])];
        assert_eq!(parents(&array), ["sda1", "sdb1"]);
        assert_eq!(parents(&array[1..]), ["sda"]);
        assert!(parents(&array[2..]).is_empty());
    }
}
