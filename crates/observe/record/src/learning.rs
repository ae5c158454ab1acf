//! Observed figures of the storages below the recorded files: learned from the devices' counters, as the agent does.

use collect::Source;
use collect::diskstats::Disk;
use filestats::{Counters, Figure, Ops, Rules, Snapshot, intervals};
use history::{History, is_same_storage};
use seen::{Learner, Second, Side};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use storage::Target;
use workload::TargetFacts;

/// Storages that are followed at most.
const STORAGES_MAX: usize = 64;
/// Interval at which the devices below a mount point are looked up.
const OPEN_EVERY: Duration = Duration::from_secs(60);
/// Interval at which observations are saved.
const SAVE_EVERY: Duration = Duration::from_secs(60);
/// Devices count times in milliseconds: a shorter interval says little.
const INTERVAL_MIN: Duration = Duration::from_millis(900);

/// Learns from the devices below all recorded files of this host.
#[derive(Default)]
pub(crate) struct Learning {
    /// By mount point; `None` where no device can be read.
    storages: BTreeMap<String, (Instant, Option<Storage>)>,
}

struct Storage {
    facts: TargetFacts,
    disk: Disk,
    /// The last snapshot, and when it was taken.
    last: Option<(Instant, Snapshot)>,
    learner: Learner,
    is_changed: bool,
    saved: Instant,
}

impl Learning {
    /// Learns from the time since the last snapshot of any source; this one names the storages that are used.
    ///
    /// # Errors
    /// Where the history cannot be read or written. The observations stay, to be saved later.
    pub fn observe(&mut self, history: &mut History, snapshot: &Snapshot) -> Result<(), history::Error> {
        for drive in snapshot.samples.iter().filter_map(|sample| sample.file.drive.as_deref()) {
            let opened = self.storages.get(drive).map(|(opened, _)| *opened);
            let is_due =
                opened.map_or(self.storages.len() < STORAGES_MAX, |opened| opened.elapsed() >= OPEN_EVERY);
            if is_due {
                self.open(history, drive)?;
            }
        }
        for storage in self.storages.values_mut().filter_map(|(_, storage)| storage.as_mut()) {
            storage.observe();
            if storage.is_changed && storage.saved.elapsed() >= SAVE_EVERY {
                storage.save(history)?;
            }
        }
        Ok(())
    }

    /// Saves the observations since the last time.
    ///
    /// # Errors
    /// Where the history cannot be written.
    pub fn save(&mut self, history: &mut History) -> Result<(), history::Error> {
        let storages = self.storages.values_mut().filter_map(|(_, storage)| storage.as_mut());
        storages.filter(|storage| storage.is_changed).try_for_each(|storage| storage.save(history))
    }

    /// Another storage at the same place is learned from the beginning.
    fn open(&mut self, history: &History, mount: &str) -> Result<(), history::Error> {
        let found = Target::open(mount.as_ref()).ok().map(|target| target.facts().clone());
        let found = found.filter(|facts| facts.mount.as_deref() == Some(mount));
        let known = self.storages.remove(mount).and_then(|(_, storage)| storage);
        let storage = match (known, found) {
            (Some(known), Some(facts)) if is_same_storage(&known.facts, &facts) => Some(known),
            (_, Some(facts)) => Storage::open(history, facts)?,
            _ => None,
        };
        self.storages.insert(mount.to_owned(), (Instant::now(), storage));
        Ok(())
    }
}

impl Storage {
    fn open(history: &History, facts: TargetFacts) -> Result<Option<Storage>, history::Error> {
        let Some(disk) = facts.devices.first().and_then(|device| Disk::open(&device.number).ok()) else {
            return Ok(None);
        };
        let learner = Learner::new(history.seen(&facts)?.unwrap_or_default());
        Ok(Some(Storage { facts, disk, last: None, learner, is_changed: false, saved: Instant::now() }))
    }

    fn observe(&mut self) {
        if self.last.as_ref().is_some_and(|(taken, _)| taken.elapsed() < INTERVAL_MIN) {
            return;
        }
        let now = self.disk.snapshot().ok();
        if let (Some((_, last)), Some(now)) = (&self.last, &now) {
            let device = intervals(last, now, Rules::default()).into_iter().next();
            let delta = device.as_ref().and_then(|device| device.interval.known());
            let second = delta.map(|delta| second(&delta.counters, delta.elapsed_ns, now.taken_unix_ns));
            self.is_changed |= second.is_some_and(|second| self.learner.observe(&second));
        }
        self.last = now.map(|now| (Instant::now(), now));
    }

    fn save(&mut self, history: &mut History) -> Result<(), history::Error> {
        self.saved = Instant::now();
        history.save_seen(&self.facts, self.learner.seen())?;
        self.is_changed = false;
        Ok(())
    }
}

/// A device's counts in that time. How long databases waited above it is not known here.
fn second(counters: &Counters, elapsed_ns: u64, ended_unix_ns: u64) -> Second {
    let seconds = |ns: &Figure<u64>| ns.known().map(|ns| ns as f64 / 1e9);
    let side = |ops: &Ops| Side {
        ios: ops.count as f64,
        bytes: ops.bytes as f64,
        served_s: seconds(&ops.stall_ns).unwrap_or(0.0),
        waited_s: 0.0,
    };
    Second {
        ended_unix_ns,
        elapsed_s: elapsed_ns as f64 / 1e9,
        reads: side(&counters.read),
        writes: side(&counters.write),
        busy_s: seconds(&counters.busy_ns),
        ..Second::default()
    }
}
