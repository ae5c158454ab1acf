//! A log that is longer than needed is shortened: virtual log files are removed from its end.
//!
//! ```text
//! control file   slots = n        only the first n may be used from now on
//! log file       truncated, synced
//! control file   slots = 0        it may grow again
//! ```
//! Opening takes the slots that the log file has, and which of them is used next depends on their number. So no slot is
//! taken while the control file is written, and an opening that finds `slots` truncates the file first.

use crate::engine::inner::Inner;
use crate::error::Result;
use crate::sync::lock;
use pagestore_disk::FileId;
use std::time::{Duration, Instant};

/// A log has at least this many virtual log files.
pub(super) const SLOTS_MIN: usize = 2;
/// The log's need is remembered for one to two of these periods, so that a store that is busy now and then does not
/// make and remove the same virtual log files again and again.
const PERIOD: Duration = if cfg!(test) { Duration::from_millis(20) } else { Duration::from_secs(30) };

/// The virtual log files that a log needed in the last periods.
pub(crate) struct LogNeed {
    begun: Instant,
    most: usize,
    most_before: usize,
}

impl LogNeed {
    pub(crate) fn new(now: Instant) -> Self {
        Self { begun: now, most: usize::MAX, most_before: usize::MAX }
    }

    /// So many of the log's slots are in use. Once in a period, returns how many of all slots should stay, if a quarter
    /// of them or more should not.
    pub(crate) fn observe(&mut self, now: Instant, used: usize, all: usize, least: usize) -> Option<usize> {
        self.most = if self.most == usize::MAX { used } else { self.most.max(used) };
        if now.duration_since(self.begun) < PERIOD {
            return None;
        }
        let needed = self.most.max(self.most_before);
        (self.begun, self.most_before, self.most) = (now, self.most, usize::MAX);
        // It grows when less than a quarter is free.
        let kept = needed.saturating_add(1).saturating_mul(2).max(least).max(SLOTS_MIN);
        (kept.saturating_mul(4) <= all * 3).then_some(kept)
    }
}

impl Inner {
    /// Shortens the log if it was longer than needed for a while. Called now and then by the checkpoint thread.
    pub(crate) fn shorten_log_if_idle(&self, need: &mut LogNeed) -> Result<()> {
        let (free, all) =
            self.journal.with_writer(|writer| (writer.vlfs.available(), writer.vlfs.slots().len()));
        let least = (self.options.log_keep_bytes / self.geometry.vlf_bytes) as usize;
        match need.observe(Instant::now(), all - free, all, least) {
            Some(kept) => self.shorten_log(kept).map(drop),
            None => Ok(()),
        }
    }

    /// Removes slots at the end of the log that are not in use, but keeps `least`; returns the bytes by which the log
    /// became shorter.
    pub(super) fn shorten_log(&self, least: usize) -> Result<u64> {
        let _one = lock(&self.growing);
        self.journal.check()?;
        let disk = self.disk.as_ref();
        // A disk that cannot truncate is not asked to.
        if disk.truncate(FileId::Log, u64::MAX).is_err() {
            return Ok(0);
        }
        let (before, kept) = {
            let mut control = lock(&self.control);
            let control = &mut *control;
            let shortened = self.journal.with_writer(|writer| -> Result<_> {
                let before = writer.vlfs.slots().len();
                let kept = writer.slots_kept(least);
                if kept >= before || control.version == 1 {
                    return Ok(None);
                }
                control.log_slots = kept as u32;
                control.write(disk)?;
                writer.vlfs.truncate(kept);
                writer.directory.truncate(kept);
                Ok(Some((before, kept)))
            });
            match shortened.inspect_err(|error| self.journal.set_read_only(error))? {
                Some(shortened) => shortened,
                None => return Ok(0),
            }
        };
        self.truncate(FileId::Log, self.geometry.slot_offset(kept))?;
        let mut control = lock(&self.control);
        control.log_slots = 0;
        control.write(disk).inspect_err(|error| self.journal.set_read_only(error))?;
        Ok((before - kept) as u64 * self.geometry.vlf_bytes)
    }

    /// Truncates a file durably.
    pub(crate) fn truncate(&self, file: FileId, length: u64) -> Result<()> {
        self.disk.truncate(file, length).map_err(|error| self.journal.fail("truncate", file, error))?;
        self.disk.sync(file).map_err(|error| self.journal.fail("sync", file, error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Durability, Layout, Options, Store, Tables, WriteTx};
    use crashlab::SimDisk;
    use pagestore_disk::Disk;
    use std::sync::Arc;

    /// Slots that stay at the end of each period; `used` has the slots in use in each.
    fn kept(used: &[usize], all: usize, least: usize) -> Vec<Option<usize>> {
        let begun = Instant::now();
        let mut need = LogNeed::new(begun);
        let at_end = |(number, used): (usize, &usize)| {
            let end = PERIOD * (number as u32 + 1);
            assert_eq!(need.observe(begun + end - PERIOD / 2, *used, all, least), None);
            need.observe(begun + end, 1, all, least)
        };
        used.iter().enumerate().map(at_end).collect()
    }

    #[test]
    fn a_log_that_was_not_needed_for_two_periods_is_shortened_to_twice_its_need_or_the_least() {
        assert_eq!(kept(&[3, 3], 100, 8), [None, Some(8)]);
        assert_eq!(kept(&[60, 3, 3], 100, 8), [None, None, Some(8)]);
        assert_eq!(kept(&[20, 10], 100, 8), [None, Some(42)]);
    }

    #[test]
    fn an_idle_log_is_shortened_to_what_is_kept_and_grows_again() {
        let disk = Arc::new(SimDisk::new());
        let layout = Layout { vlf_bytes: 128 << 10, vlfs: 2, ..Layout::default() };
        let quiet = Options { background: false, publish: false, ..Options::default() };
        let options = Options { log_keep_bytes: 4 * layout.vlf_bytes, ..quiet };
        let store = Store::create_on(disk.clone(), layout, options, 1).unwrap();
        let put = |store: &Store, rows: std::ops::Range<u32>| {
            for row in rows {
                let put = |tx: &mut WriteTx<'_>| {
                    let table = tx.open_or_create_table("t")?;
                    tx.put(table, &row.to_be_bytes(), &[row as u8; 900])
                };
                store.transact(Durability::Full, put).unwrap();
            }
        };
        put(&store, 0..100);
        for rows in [100..200, 200..300] {
            while store.stats().vlfs < 22 {
                assert!(store.inner.grow_log().unwrap());
            }
            put(&store, rows.clone());
            store.checkpoint().unwrap();
            let mut need = LogNeed::new(Instant::now());
            for _ in 0..3 {
                std::thread::sleep(PERIOD);
                store.inner.shorten_log_if_idle(&mut need).unwrap();
            }
            assert!((4..8).contains(&store.stats().vlfs), "{}", store.stats().vlfs);
            let length = store.inner.geometry.slot_offset(store.stats().vlfs as usize);
            assert_eq!(disk.len(FileId::Log).unwrap(), length);
            let opened = Store::open_on(Arc::new(SimDisk::holding(disk.files())), options).unwrap();
            let reader = opened.read().unwrap();
            assert_eq!(reader.len(reader.table("t").unwrap()).unwrap(), u64::from(rows.end));
        }
    }

    #[test]
    fn a_log_that_is_needed_now_and_then_stays() {
        assert_eq!(kept(&[40, 1, 40, 1, 40], 100, 8), [None; 5]);
        assert_eq!(kept(&[1, 1, 1], 8, 8), [None; 3]);
        assert_eq!(kept(&[3, 3, 3], 10, 8), [None; 3], "less than a quarter would go");
    }
}
