//! Counters that left the kernel's tables, which are bounded, and the limit on how many of them are kept.
//!
//! ```text
//! kernel's table ── of processes that ended, always ──────────────────────────>  kept  ── over KEPT_MAX, ──> forgotten
//!                ── idle since the last snapshot, if more than half full ───>        oldest first
//! ```
//!
//! A figure is the sum of both, so that leaving the kernel does not change it. Forgetting does, and must be visible
//! (`Snapshot::complete`, filestats). Only counters that were in a snapshot are forgotten. If a key is used again, it
//! begins at zero, as `complete` promises for rows that an earlier snapshot lacks; but an earlier snapshot that has the
//! row must not be subtracted. So the epoch of each row has the number of forgettings when it began: a row that lost
//! counters gets a new one, and the interval across it is unknown.

use super::program::{Counted, Programs};
use super::tables::{CompactCounts, FileId, Key};
use crate::error::SourceError;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, HashSet};

/// Number of keys kept; more only until they were in a snapshot.
const KEPT_MAX: usize = 16_384;

/// The owner of counters, which are forgotten together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Owner {
    Process(u32, u32),
    /// A file: its block I/O, and the I/O of running processes.
    File(FileId),
}

#[derive(Debug, Default)]
pub(super) struct Kept {
    counts: FxHashMap<Key, KeptCounts>,
    /// The fingerprint of each key in the kernel, and the snapshot at which it had changed.
    changed: FxHashMap<Key, (u64, u64, u64)>,
    /// The number of the current snapshot.
    snapshot: u64,
    /// The row of each key in the last snapshot.
    rows: FxHashMap<Key, u64>,
    /// For each row of the last snapshot: the number of forgettings when it began.
    began: FxHashMap<u64, u64>,
    forgettings: u64,
    /// The counts of a key when it moved to its row from another one; and its counts now, where it will move at the next
    /// snapshot.
    bases: FxHashMap<Key, CompactCounts>,
    leaving: FxHashMap<Key, CompactCounts>,
}

#[derive(Clone, Debug)]
struct KeptCounts {
    counts: CompactCounts,
    /// The snapshot at which the key last left the kernel.
    left_at: u64,
}

impl Kept {
    /// The sums of the counts in the kernel and those that left it.
    pub fn with(&self, mut counted: Counted) -> Counted {
        for (key, kept) in &self.counts {
            counted.entry(*key).or_default().add(&kept.counts);
        }
        counted
    }

    /// The counts that left the kernel, and what keys counted for another row than that which shows them.
    pub fn counts_and_bases(
        &self,
    ) -> (impl Iterator<Item = (&Key, &CompactCounts)>, impl Iterator<Item = (&Key, &CompactCounts)>) {
        (self.counts.iter().map(|(key, kept)| (key, &kept.counts)), self.bases.iter())
    }

    /// The keys of counters that left the kernel.
    pub fn keys(&self) -> impl Iterator<Item = &Key> {
        self.counts.keys()
    }

    /// Drops the counters of keys that no source asks for any more.
    pub fn drop_keys(&mut self, unwanted: impl Fn(&Key) -> bool) {
        self.counts.retain(|key, _| !unwanted(key));
    }

    /// Assigns a key to a row; called for all keys before [`Kept::row`]. A key that moves from another row begins at zero
    /// in the new one; intervals of the old row become unknown.
    pub fn place(&mut self, key: &Key, row: u64, counts: &CompactCounts, leaves: bool) {
        if self.rows.get(key).is_some_and(|before| *before != row)
            && let Some(before) = self.rows.insert(*key, row)
        {
            self.forgettings += 1;
            self.began.remove(&before);
            self.bases.insert(*key, self.leaving.remove(key).unwrap_or_else(|| counts.clone()));
        }
        if leaves {
            self.leaving.entry(*key).or_insert_with(|| counts.clone());
        }
    }

    /// The counts that a key adds to its row.
    pub fn in_row(&self, key: &Key, counts: &CompactCounts) -> CompactCounts {
        self.bases.get(key).map_or_else(|| counts.clone(), |base| counts.since(base))
    }

    /// The number of forgettings when the row began. Within one such number, a row only grows.
    pub fn row(&mut self, key: &Key, row: u64) -> u64 {
        self.rows.insert(*key, row);
        *self.began.entry(row).or_insert(self.forgettings)
    }

    /// After a snapshot: takes counters out of the kernel that need not be there, and forgets those over the limit.
    /// `kernel` has the fingerprints that the snapshot found in the kernel, `counted` all counts of the snapshot.
    pub fn tidy(
        &mut self,
        programs: &mut Programs,
        kernel: &FxHashMap<Key, (u64, u64)>,
        counted: &Counted,
        running: &HashSet<u32>,
    ) -> Result<(), SourceError> {
        self.snapshot += 1;
        let ended = |key: &Key| key.tgid != 0 && !running.contains(&key.tgid);
        let mut leaving: Vec<Key> = kernel.keys().copied().filter(ended).collect();
        let ended: HashSet<(u32, u32)> = leaving.iter().map(|key| (key.tgid, key.started)).collect();
        leaving.extend(self.idle(kernel, programs.counters_max, leaving.len()));
        for key in leaving {
            self.changed.remove(&key);
            // None where nothing was ever counted, or it was taken already.
            if let Some(counts) = programs.take(&key)? {
                let kept = self
                    .counts
                    .entry(key)
                    .or_insert_with(|| KeptCounts { counts: CompactCounts::default(), left_at: 0 });
                kept.counts.add(&CompactCounts::from(&counts));
                kept.left_at = self.snapshot;
            }
        }
        for who in ended {
            programs.remove_process(who)?;
        }
        self.rows.retain(|key, _| counted.contains_key(key));
        self.bases.retain(|key, _| counted.contains_key(key));
        self.leaving.retain(|key, _| counted.contains_key(key));
        let in_use: HashSet<u64> = self.rows.values().copied().collect();
        self.began.retain(|row, _| in_use.contains(row));
        self.forget(running);
        Ok(())
    }

    /// The keys that did not change since the last snapshot, longest idle first, until the table is half empty. Active
    /// keys stay: an I/O that is counted at the moment of removal may be lost.
    fn idle(&mut self, kernel: &FxHashMap<Key, (u64, u64)>, counters_max: usize, leaving: usize) -> Vec<Key> {
        self.changed.retain(|key, _| kernel.contains_key(key));
        for (key, (count, ns)) in kernel {
            match self.changed.get_mut(key) {
                Some(before) if (before.0, before.1) == (*count, *ns) => {}
                _ => drop(self.changed.insert(*key, (*count, *ns, self.snapshot))),
            }
        }
        let too_many = (kernel.len() - leaving).saturating_sub(counters_max / 2);
        if too_many == 0 {
            return Vec::new();
        }
        let mut idle: Vec<(u64, Key)> = self
            .changed
            .iter()
            .filter(|(_, at)| at.2 < self.snapshot)
            .map(|(key, at)| (at.2, *key))
            .collect();
        idle.sort_unstable();
        idle.into_iter().take(too_many).map(|(_, key)| key).collect()
    }

    /// Forgets counters over [`KEPT_MAX`] that were in a snapshot unchanged, those of ended processes first.
    fn forget(&mut self, running: &HashSet<u32>) {
        if self.counts.len() <= KEPT_MAX {
            return;
        }
        let mut owners: BTreeMap<Owner, (u64, Vec<Key>)> = BTreeMap::new();
        for (key, kept) in &self.counts {
            let owner = match key.tgid != 0 && !running.contains(&key.tgid) {
                true => Owner::Process(key.tgid, key.started),
                false => Owner::File(key.file),
            };
            let (last, keys) = owners.entry(owner).or_default();
            *last = kept.left_at.max(*last);
            keys.push(*key);
        }
        // Not those that have just left the kernel: they may be larger than in the snapshot.
        let mut oldest: Vec<_> = owners.into_iter().filter(|(_, (last, _))| *last < self.snapshot).collect();
        oldest.sort_by_key(|(owner, (last, _))| (matches!(owner, Owner::File(_)), *last));
        self.forgettings += 1;
        for (_, (_, keys)) in oldest {
            if self.counts.len() <= KEPT_MAX {
                break;
            }
            for key in keys {
                self.counts.remove(&key);
                self.bases.remove(&key);
                self.leaving.remove(&key);
                if let Some(row) = self.rows.remove(&key) {
                    self.began.remove(&row);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tables::Counts;
    use super::*;

    fn key(ino: u64, tgid: u32) -> Key {
        Key { file: FileId { ino, dev: 1, generation: 0 }, tgid, started: 5, kind: 0, zero: 0 }
    }

    fn kept(kept: &mut Kept, key: Key, left_at: u64) {
        kept.counts.insert(
            key,
            KeptCounts { counts: CompactCounts::from(&Counts { count: 1, ..Counts::ZERO }), left_at },
        );
    }

    #[test]
    fn processes_that_ended_first_are_forgotten_first_and_their_rows_begin_again() {
        let mut all = Kept { snapshot: 9, ..Kept::default() };
        let running = HashSet::from([2]);
        for ino in 0..KEPT_MAX as u64 {
            kept(&mut all, key(ino, 2), 3);
        }
        kept(&mut all, key(1, 1), 7);
        kept(&mut all, key(2, 1), 8);
        // Not in a snapshot yet.
        kept(&mut all, key(1, 3), 9);
        let rows = [(key(1, 1), 11), (key(1, 3), 13), (key(1, 2), 12)];
        assert!(rows.iter().all(|(key, row)| all.row(key, *row) == 0));
        all.forget(&running);
        assert_eq!(
            all.counts.len(),
            KEPT_MAX,
            "both of the ended process went, and one of the other remains too much"
        );
        assert!(!all.counts.contains_key(&key(1, 1)) && all.counts.contains_key(&key(1, 3)));
        assert_eq!(rows.map(|(key, row)| all.row(&key, row)), [1, 0, 0]);
    }

    #[test]
    fn keys_idle_for_longest_leave_the_kernel_until_it_is_half_empty() {
        let mut all = Kept::default();
        let table = |busy: u64| -> FxHashMap<Key, (u64, u64)> {
            (0..10).map(|ino| (key(ino, 2), (if ino < 4 { busy } else { 1 }, 0))).collect()
        };
        assert_eq!(all.idle(&table(1), 10, 0), [], "all of them are new");
        all.snapshot += 1;
        let idle = all.idle(&table(2), 10, 0);
        assert!(idle.len() == 5 && idle.iter().all(|key| key.file.ino >= 4), "{idle:?}");
        assert_eq!(all.idle(&table(2), 10, 5), [], "others leave already");
    }
}
