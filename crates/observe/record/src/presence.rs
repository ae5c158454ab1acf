//! Presence of devices: a log must name a disk that goes, and say when it is back.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// Devices by their names, from sample to sample.
#[derive(Clone, Debug, Default)]
pub struct Presence {
    there: BTreeSet<String>,
    lost: BTreeMap<String, Instant>,
}

/// A device that went or came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PresenceChange {
    /// It was there at the last sample.
    Lost {
        /// Its name, "sdb".
        device: String,
    },
    /// It is there again.
    Back {
        /// Its name.
        device: String,
        /// How long it was lost.
        after: Duration,
    },
}

/// Lost devices that are remembered; beyond that, those that are first by name are forgotten. A host whose devices come and go, with a
/// new name each time, has no bound of its own.
const LOST_MAX: usize = 1024;

impl Presence {
    /// Takes the devices that are there `now`, and returns the changes since the last time.
    pub fn update(&mut self, there: BTreeSet<String>, now: Instant) -> Vec<PresenceChange> {
        let mut changes = Vec::new();
        for device in self.there.difference(&there) {
            self.lost.insert(device.clone(), now);
            changes.push(PresenceChange::Lost { device: device.clone() });
        }
        self.lost.retain(|device, since| {
            let is_back = there.contains(device);
            if is_back {
                changes.push(PresenceChange::Back { device: device.clone(), after: now - *since });
            }
            !is_back
        });
        while self.lost.len() > LOST_MAX {
            self.lost.pop_first();
        }
        self.there = there;
        changes
    }

    /// Whether it was lost and is not back.
    pub fn is_lost(&self, device: &str) -> bool {
        self.lost.contains_key(device)
    }

    /// Forgets a device that is no longer of interest.
    pub fn forget(&mut self, device: &str) {
        self.there.remove(device);
        self.lost.remove(device);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn a_device_is_lost_once_and_back_once() {
        let (mut presence, began) = (Presence::default(), Instant::now());
        let at = |s| began + Duration::from_secs(s);
        assert_eq!(presence.update(names(&["sda", "sdb"]), at(0)), [], "the first sample");
        let lost = PresenceChange::Lost { device: "sdb".into() };
        assert_eq!(presence.update(names(&["sda"]), at(1)), [lost]);
        assert!(presence.is_lost("sdb") && !presence.is_lost("sda"));
        assert_eq!(presence.update(names(&["sda"]), at(2)), []);
        let back = PresenceChange::Back { device: "sdb".into(), after: Duration::from_secs(12) };
        assert_eq!(presence.update(names(&["sda", "sdb", "sdc"]), at(13)), [back], "a new one is no news");
        presence.forget("sdc");
        assert_eq!(presence.update(names(&["sda", "sdb"]), at(14)), []);
    }

    #[test]
    fn names_that_never_come_back_are_forgotten_at_some_number() {
        let (mut presence, now) = (Presence::default(), Instant::now());
        for number in 0..LOST_MAX + 10 {
            presence.update(names(&[&format!("dm-{number:05}")]), now);
        }
        presence.update(BTreeSet::new(), now);
        assert_eq!(presence.lost.len(), LOST_MAX);
    }
}
