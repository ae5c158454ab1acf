//! Counters that left the kernel's tables, which are bounded, and what is forgotten of them.
//!
//! ```text
//! kernel's table ── of processes that ended, always ──────────────────────────>  kept  ── over KEPT_MAX, ──> forgotten
//!                ── idle since the last look, while it is more than half full ─>        oldest first
//! ```
//!
//! What is counted is the sum of both: to leave the kernel changes no figure. To be forgotten does, and must not be taken
//! for something else (`Snapshot::complete`, filestats). Only what was in a snapshot is forgotten. If it comes again it
//! begins at zero, as `complete` promises of what an earlier snapshot did not have; but an earlier snapshot that does have
//! it may not be subtracted from. So each row has the number of the forgetting after which it began in its epoch:
//! a row of which anything was forgotten gets another one, and the interval across it is unknown.

use super::program::{Counted, Programs};
use super::tables::{Counts, FileId, Key};
use crate::error::SourceError;
use std::collections::{BTreeMap, HashMap, HashSet};

/// So many keys are kept; more only until they were in a snapshot.
const KEPT_MAX: usize = 16_384;

/// Whose counters are forgotten together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Owner {
    Process(u32, u32),
    /// A file, of block I/O, or of a process that runs.
    File(FileId),
}

#[derive(Debug, Default)]
pub(super) struct Kept {
    of: HashMap<Key, One>,
    /// Of each key in the kernel: its counts, and the look at which they had changed.
    changed: HashMap<Key, (u64, u64, u64)>,
    /// A look at the tables is a snapshot.
    look: u64,
    /// Which row of the last snapshot each key was in.
    rows: HashMap<Key, u64>,
    /// Of each row in the last snapshot: how often something had been forgotten when it began.
    began: HashMap<u64, u64>,
    forgettings: u64,
    /// What a key had when it came to its row, which another one has; and what it has when it goes to another one, at the
    /// next look.
    bases: HashMap<Key, Counts>,
    leaving: HashMap<Key, Counts>,
}

#[derive(Clone, Debug)]
struct One {
    counts: Box<Counts>,
    /// The look at which it left the kernel last.
    look: u64,
}

impl Kept {
    /// What the kernel has now, and what left it.
    pub fn with(&self, mut counted: Counted) -> Counted {
        for (key, one) in &self.of {
            counted.entry(*key).or_insert_with(|| Box::new(Counts::ZERO)).add(&one.counts);
        }
        counted
    }

    /// Before any row: a key is in that row now. One that comes from another begins at zero there; of the other nothing
    /// can be subtracted any more.
    pub fn place(&mut self, key: &Key, row: u64, counts: &Counts, leaves: bool) {
        if self.rows.get(key).is_some_and(|before| *before != row)
            && let Some(before) = self.rows.insert(*key, row)
        {
            self.forgettings += 1;
            self.began.remove(&before);
            self.bases.insert(*key, self.leaving.remove(key).unwrap_or(*counts));
        }
        if leaves {
            self.leaving.entry(*key).or_insert(*counts);
        }
    }

    /// What a key adds to its row.
    pub fn in_row(&self, key: &Key, counts: &Counts) -> Counts {
        self.bases.get(key).map_or(*counts, |base| counts.since(base))
    }

    /// The stretch in which a row grows: the number of the forgetting after which it began.
    pub fn row(&mut self, key: &Key, row: u64) -> u64 {
        self.rows.insert(*key, row);
        *self.began.entry(row).or_insert(self.forgettings)
    }

    /// After a snapshot: takes out of the kernel what need not be there, and forgets what is too much. `kernel` is what
    /// the snapshot found there, `counted` all that is in it.
    pub fn tidy(
        &mut self,
        programs: &mut Programs,
        kernel: &HashMap<Key, (u64, u64)>,
        counted: &Counted,
        running: &HashSet<u32>,
    ) -> Result<(), SourceError> {
        self.look += 1;
        let ended = |key: &Key| key.tgid != 0 && !running.contains(&key.tgid);
        let mut leaving: Vec<Key> = kernel.keys().copied().filter(ended).collect();
        let ended: HashSet<(u32, u32)> = leaving.iter().map(|key| (key.tgid, key.started)).collect();
        leaving.extend(self.idle(kernel, programs.counters_max, leaving.len()));
        for key in leaving {
            self.changed.remove(&key);
            // Not there: nothing was ever counted, or it was taken already.
            if let Some(counts) = programs.take(&key)? {
                let one =
                    self.of.entry(key).or_insert_with(|| One { counts: Box::new(Counts::ZERO), look: 0 });
                one.counts.add(&counts);
                one.look = self.look;
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

    /// The keys that did nothing since the last look, those idle for longest first: as many as it takes to have the
    /// table half empty. They leave without loss; but to take one out that is counted just then may lose that I/O, so
    /// none leaves that is at work.
    fn idle(&mut self, kernel: &HashMap<Key, (u64, u64)>, room: usize, leaving: usize) -> Vec<Key> {
        self.changed.retain(|key, _| kernel.contains_key(key));
        for (key, (count, ns)) in kernel {
            match self.changed.get_mut(key) {
                Some(before) if (before.0, before.1) == (*count, *ns) => {}
                _ => drop(self.changed.insert(*key, (*count, *ns, self.look))),
            }
        }
        let too_many = (kernel.len() - leaving).saturating_sub(room / 2);
        if too_many == 0 {
            return Vec::new();
        }
        let mut idle: Vec<(u64, Key)> =
            self.changed.iter().filter(|(_, at)| at.2 < self.look).map(|(key, at)| (at.2, *key)).collect();
        idle.sort_unstable();
        idle.into_iter().take(too_many).map(|(_, key)| key).collect()
    }

    /// Forgets what is over [`KEPT_MAX`] and was in a snapshot as it is: of processes that ended first.
    fn forget(&mut self, running: &HashSet<u32>) {
        if self.of.len() <= KEPT_MAX {
            return;
        }
        let mut owners: BTreeMap<Owner, (u64, Vec<Key>)> = BTreeMap::new();
        for (key, one) in &self.of {
            let owner = match key.tgid != 0 && !running.contains(&key.tgid) {
                true => Owner::Process(key.tgid, key.started),
                false => Owner::File(key.file),
            };
            let (last, keys) = owners.entry(owner).or_default();
            *last = one.look.max(*last);
            keys.push(*key);
        }
        // Not what left the kernel just now: it may be more than the snapshot says.
        let mut oldest: Vec<_> = owners.into_iter().filter(|(_, (last, _))| *last < self.look).collect();
        oldest.sort_by_key(|(owner, (last, _))| (matches!(owner, Owner::File(_)), *last));
        self.forgettings += 1;
        for (_, (_, keys)) in oldest {
            if self.of.len() <= KEPT_MAX {
                break;
            }
            for key in keys {
                self.of.remove(&key);
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
    use super::*;

    fn key(ino: u64, tgid: u32) -> Key {
        Key { file: FileId { ino, dev: 1, generation: 0 }, tgid, started: 5, kind: 0, zero: 0 }
    }

    fn kept(kept: &mut Kept, key: Key, look: u64) {
        kept.of.insert(key, One { counts: Box::new(Counts { count: 1, ..Counts::ZERO }), look });
    }

    #[test]
    fn what_ended_first_is_forgotten_first_and_its_row_begins_anew() {
        let mut all = Kept { look: 9, ..Kept::default() };
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
            all.of.len(),
            KEPT_MAX,
            "both of the ended process went, and one of the other remains too much"
        );
        assert!(!all.of.contains_key(&key(1, 1)) && all.of.contains_key(&key(1, 3)));
        assert_eq!(rows.map(|(key, row)| all.row(&key, row)), [1, 0, 0]);
    }

    #[test]
    fn what_is_idle_for_longest_leaves_the_kernel_until_it_is_half_empty() {
        let mut all = Kept::default();
        let table = |busy: u64| -> HashMap<Key, (u64, u64)> {
            (0..10).map(|ino| (key(ino, 2), (if ino < 4 { busy } else { 1 }, 0))).collect()
        };
        assert_eq!(all.idle(&table(1), 10, 0), [], "all of them are new");
        all.look += 1;
        let idle = all.idle(&table(2), 10, 0);
        assert!(idle.len() == 5 && idle.iter().all(|key| key.file.ino >= 4), "{idle:?}");
        assert_eq!(all.idle(&table(2), 10, 5), [], "others leave already");
    }
}
