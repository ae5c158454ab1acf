//! Whether the log file is shorter than it was: truncated, or copied in part.
//!
//! A slot is used only once all of it is durable. So a virtual log file that was begun in a slot which the file no
//! longer holds whole proves it; evidence is its own header, or the log's directory. A crash while the log grew
//! also leaves a length that is not a whole number of slots, or is less than the control file has entries for, but
//! there is no evidence of a virtual log file in that space.

use super::LogFile;
use crate::error::{Error, Result};
use crate::format::geometry::{LOG_HEAD_BYTES, VLF_HEADER_BYTES};
use crate::log::{block, directory};
use pagestore_disk::FileId;

/// A virtual log file that was begun, and its slot.
pub(super) struct BegunVlf {
    pub vlf: u32,
    pub slot: usize,
}

impl LogFile<'_> {
    /// The first virtual log file after `vlf` that was begun in a slot which the log file does not hold.
    pub(super) fn missing_vlf(&self, vlf: u32) -> Result<Option<BegunVlf>> {
        let slots = Self::slots_in(self.disk, &self.geometry)?;
        let begun = directory::begun_from(self.disk, self.geometry.store, slots)?;
        let begun = begun.into_iter().map(|(vlf, slot)| BegunVlf { vlf, slot });
        let mut later: Vec<_> =
            begun.chain(self.begun_in_partial_slot(slots)?).filter(|begun| begun.vlf > vlf).collect();
        if !later.is_empty() {
            // The log of a store in use may have grown meanwhile.
            let slots = Self::slots_in(self.disk, &self.geometry)?;
            later.retain(|begun| begun.slot >= slots);
        }
        Ok(later.into_iter().min_by_key(|begun| begun.vlf))
    }

    /// The virtual log file in the slot that the log file holds only in part.
    fn begun_in_partial_slot(&self, slot: usize) -> Result<Option<BegunVlf>> {
        let length = self.disk.len(FileId::Log).map_err(Error::during("measure", FileId::Log))?;
        let part = length.saturating_sub(LOG_HEAD_BYTES) % self.geometry.vlf_bytes;
        if part < VLF_HEADER_BYTES as u64 {
            return Ok(None);
        }
        let head = (self.geometry.slot_offset(slot), VLF_HEADER_BYTES);
        let headers = self.read_places(&[head], 1, |_, head| block::read_vlf_header(head, &self.geometry))?;
        Ok(headers[0].map(|header| BegunVlf { vlf: header.vlf, slot }))
    }
}

#[cfg(test)]
mod tests {
    use crate::error::Error;
    use crate::format::control::COPIES_BYTES;
    use crate::format::geometry::LOG_HEAD_BYTES;
    use crate::log::directory;
    use crate::{Durability, Layout, Options, Recovery, Store, Tables};
    use crashlab::{Chance, Files, Medium, Op, SimDisk};
    use pagestore_disk::{Disk, FileId};
    use std::sync::Arc;

    const VLF_BYTES: u64 = 128 << 10;
    const STRATEGIES: [Recovery; 4] =
        [Recovery::Instant, Recovery::Wide, Recovery::Prefetch, Recovery::Serial];

    fn options(recovery: Recovery) -> Options {
        let quiet = Options { background: false, publish: false, ..Options::default() };
        Options { recovery, checkpoint_bytes: u64::MAX, ..quiet }
    }

    /// A crashed store whose log extends into slot `last_slot`, with one more slot that was never used; and the
    /// sequence of its last commit.
    fn crashed(last_slot: usize) -> (Files, u64) {
        let disk = Arc::new(SimDisk::new());
        let layout = Layout { vlf_bytes: VLF_BYTES, vlfs: last_slot + 2, ..Layout::default() };
        let store = Store::create_on(disk.clone(), layout, options(Recovery::Wide), 1).unwrap();
        store.transact(Durability::Full, |tx| tx.create_table("t").map(|_| ())).unwrap();
        for number in 0_u32.. {
            let put = |tx: &mut crate::WriteTx<'_>| {
                let table = tx.table("t")?;
                tx.put(table, &number.to_be_bytes(), &[number as u8; 900])
            };
            store.transact(Durability::Full, put).unwrap();
            if store.log_holders().next.vlf() as usize == last_slot + 1 {
                break;
            }
        }
        (disk.files(), store.stats().last_sequence)
    }

    fn open(files: &Files, recovery: Recovery) -> crate::Result<Store> {
        Store::open_on(Arc::new(SimDisk::holding(files.clone())), options(recovery))
    }

    #[test]
    fn a_log_file_that_was_cut_before_its_last_commit_is_damaged_and_does_not_end_earlier() {
        let (files, last) = crashed(2);
        let slot = |slot: u64| (LOG_HEAD_BYTES + slot * VLF_BYTES) as usize;
        let without_directory = {
            let mut files = files.clone();
            files[0].truncate(directory::end_of(0) as usize);
            files
        };
        for recovery in STRATEGIES {
            for length in (0..slot(3)).step_by(8192 + 512).chain([slot(1), slot(2), slot(3) - 512]) {
                let mut cut = files.clone();
                cut[2].truncate(length);
                let error = open(&cut, recovery).map(|_| ()).expect_err("commits are missing");
                assert!(matches!(error, Error::CorruptLog { .. }), "{recovery:?} {length}: {error}");
            }
            // The header in the truncated slot is evidence as well.
            let mut cut = without_directory.clone();
            cut[2].truncate(slot(2) + 4096);
            let error = open(&cut, recovery).map(|_| ()).expect_err("commits are missing");
            assert!(error.to_string().contains("was cut"), "{recovery:?}: {error}");
            // Nothing is missing if only the unused slot is truncated.
            for length in [slot(4) - 512, slot(3)] {
                let mut cut = files.clone();
                cut[2].truncate(length);
                assert_eq!(open(&cut, recovery).unwrap().stats().last_sequence, last);
            }
        }
    }

    #[test]
    fn what_a_crash_leaves_while_the_log_grows_is_no_cut() {
        let (mut files, last) = crashed(2);
        files[0].resize(directory::end_of(5) as usize, 0);
        for zeros in [512, 4096, 100 << 10, VLF_BYTES as usize] {
            let mut grown = files.clone();
            grown[2].extend(std::iter::repeat_n(0, zeros));
            for recovery in STRATEGIES {
                assert_eq!(open(&grown, recovery).unwrap().stats().last_sequence, last);
            }
        }
    }

    #[test]
    fn a_cut_that_was_refused_has_changed_nothing_and_with_the_whole_file_the_store_opens() {
        let (files, last) = crashed(2);
        let mut cut = files.clone();
        cut[2].truncate((LOG_HEAD_BYTES + 2 * VLF_BYTES) as usize);
        let disk = Arc::new(SimDisk::holding(cut));
        assert!(Store::open_on(disk.clone(), options(Recovery::Instant)).is_err());
        // The missing part is restored.
        disk.write(FileId::Log, 0, &files[2]).unwrap();
        let store = Store::open_on(disk, options(Recovery::Instant)).unwrap();
        assert_eq!(store.stats().last_sequence, last);
    }

    /// The files after a crash right before the directory records that the first virtual log file has ended; the
    /// header of the second was written or not.
    fn directory_behind(has_header: bool) -> Files {
        let disk = Arc::new(SimDisk::new());
        let layout = Layout { vlf_bytes: VLF_BYTES, vlfs: 3, ..Layout::default() };
        let store = Store::create_on(disk.clone(), layout, options(Recovery::Wide), 1).unwrap();
        store.transact(Durability::Full, |tx| tx.create_table("t").map(|_| ())).unwrap();
        while store.log_holders().next.vlf() == 1 {
            put(&store);
        }
        std::mem::forget(store);
        let trace = disk.take_trace();
        let is_directory = |op: &Op| matches!(op, Op::Write { file: FileId::Control, offset, through: true, .. } if *offset >= COPIES_BYTES);
        let first = trace.iter().position(is_directory).unwrap();
        let mut medium = Medium::holding(Files::default());
        let (before, after) = trace.split_at(first);
        before.iter().for_each(|op| medium.apply(op));
        if has_header {
            after.iter().filter(|op| !is_directory(op)).for_each(|op| medium.apply(op));
        }
        medium.crash(None, &mut Chance::new(0))
    }

    fn put(store: &Store) {
        let number = store.stats().last_sequence;
        let put = |tx: &mut crate::WriteTx<'_>| {
            let table = tx.table("t")?;
            tx.put(table, &number.to_be_bytes(), &[number as u8; 900])
        };
        store.transact(Durability::Full, put).unwrap();
    }

    #[test]
    fn a_cut_is_detected_too_when_a_crash_kept_the_directory_from_being_written() {
        for (recovery, has_header) in
            STRATEGIES.into_iter().flat_map(|strategy| [(strategy, true), (strategy, false)])
        {
            let disk = Arc::new(SimDisk::holding(directory_behind(has_header)));
            let store = Store::open_on(disk.clone(), options(recovery)).unwrap();
            put(&store);
            assert_eq!(store.log_holders().next.vlf(), 2);
            drop(store);
            for length in [LOG_HEAD_BYTES + VLF_BYTES, LOG_HEAD_BYTES + VLF_BYTES + 512] {
                let mut cut = disk.files();
                cut[2].truncate(length as usize);
                let error = open(&cut, Recovery::Instant).map(|_| ()).expect_err("a commit is missing");
                assert!(
                    matches!(error, Error::CorruptLog { .. }),
                    "{recovery:?} {has_header} {length}: {error}"
                );
            }
        }
    }
}
