//! Readers during commits, checkpoints and evictions.

use super::{Coverage, INITIAL_COMMIT, commit, store, value};
use crate::engine::tx::MANY_PAGES;
use crate::sync::lock;
use crate::sync::scheduled::check;
use crate::{Durability, Error, ReadTx, Store, Tables};
use crashlab::{Fault, SimDisk};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const ROWS: u32 = 90;
/// Each commit writes its number to the first row, one in the middle and the last.
const WRITTEN: [u32; 3] = [0, ROWS / 2, ROWS - 1];
const _: () = assert!(WRITTEN.len() >= MANY_PAGES, "a commit of these rows changes at least so many pages");

#[test]
fn a_snapshot_stands_still_whatever_is_committed_checkpointed_and_evicted_meanwhile() {
    let coverage = Arc::new(Coverage::default());
    let own_coverage = coverage.clone();
    check(3, 480, move || {
        let (disk, store) = store(SimDisk::new(), ROWS, &own_coverage);
        let done = Arc::new(AtomicBool::new(false));
        // Two writers, so that one makes durable what the other has just appended.
        let writers = [(); 2].map(|()| {
            let writer = store.clone();
            shuttle::thread::spawn(move || {
                for _ in 0..3 {
                    commit(&writer, &WRITTEN, Durability::Full).expect("the disk works");
                }
            })
        });
        let checkpoints = store.clone();
        let checkpoints = shuttle::thread::spawn(move || {
            for _ in 0..3 {
                checkpoints.checkpoint().expect("the disk works");
            }
        });
        let readers = (0..2).map(|_| {
            let (store, coverage, done) = (store.clone(), own_coverage.clone(), done.clone());
            shuttle::thread::spawn(move || {
                // A few at least, and then until the others are done.
                let mut left = 2;
                while left > 0 || !done.load(Ordering::Acquire) {
                    left = u32::saturating_sub(left, 1);
                    let reader = store.read().expect("it can be read");
                    let begun = store.stats().checkpoints;
                    let expected = value(reader.sequence());
                    for row in WRITTEN.into_iter().cycle().take(6) {
                        let found = reader.table("t").and_then(|table| reader.get(table, &row.to_be_bytes()));
                        match found {
                            Ok(found) => assert!(
                                found.as_ref() == Some(&expected),
                                "row {row} is not that of commit {}: {:?}",
                                reader.sequence(),
                                found.map(|found| found[..8].to_vec())
                            ),
                            Err(Error::SnapshotTooOld) => {
                                Coverage::count(&coverage.given_up, true);
                                break;
                            }
                            Err(error) => panic!("a snapshot cannot be read: {error}"),
                        }
                    }
                    Coverage::count(&coverage.checkpointed, store.stats().checkpoints > begun);
                    Coverage::count(&coverage.installed_in_part, is_installed_in_part(&store));
                    shuttle::thread::yield_now();
                }
            })
        });
        let readers: Vec<_> = readers.collect();
        for _ in 0..6 {
            disk.recovered(&WRITTEN);
            shuttle::thread::yield_now();
        }
        writers.into_iter().chain([checkpoints]).for_each(|thread| thread.join().expect("it holds"));
        disk.recovered(&WRITTEN);
        done.store(true, Ordering::Release);
        readers.into_iter().for_each(|thread| thread.join().expect("it holds"));
        let stats = store.stats();
        Coverage::count(&own_coverage.stored, stats.page_reads > 0);
    });
    Coverage::assert(&coverage.checkpointed, "a checkpoint ends while a snapshot is read");
    Coverage::assert(&coverage.stored, "a page is read from the data file");
    Coverage::assert(&coverage.installed_in_part, "snapshots are read while a commit is installed");
}

#[test]
fn a_commit_is_seen_when_its_pages_are_there_even_if_another_thread_has_made_it_durable() {
    let coverage = Arc::new(Coverage::default());
    check(6, 500, move || {
        let (_, store) = store(SimDisk::new(), 1, &coverage);
        let writers = [(); 3].map(|()| {
            let writer = store.clone();
            shuttle::thread::spawn(move || {
                for _ in 0..2 {
                    commit(&writer, &[0], Durability::Full).expect("the disk works");
                }
            })
        });
        let reader = store.clone();
        let reader = shuttle::thread::spawn(move || {
            loop {
                let reader = reader.read().expect("it can be read");
                let table = reader.table("t").expect("it is there");
                let found = reader.get(table, &0_u32.to_be_bytes()).expect("there is memory for it");
                let sequence = reader.sequence();
                assert!(found == Some(value(sequence)), "commit {sequence} is seen, and its row is not");
                if sequence == INITIAL_COMMIT + 6 {
                    return;
                }
                shuttle::thread::yield_now();
            }
        });
        writers.into_iter().chain([reader]).for_each(|thread| thread.join().expect("it holds"));
    });
}

/// Reads these rows, all of which every commit writes; returns whether the snapshot was readable to the end.
fn is_whole(store: &Store, reader: &ReadTx<'_>, rows: impl Iterator<Item = u32>) -> bool {
    let expected = value(reader.sequence());
    for row in rows {
        let found = reader.table("t").and_then(|table| reader.get(table, &row.to_be_bytes()));
        match found {
            Ok(found) => {
                let found = found.expect("no row goes");
                let (sequence, of) = (reader.sequence(), &found[..8]);
                assert!(found == expected, "at commit {sequence} row {row} is that of {of:?}");
            }
            Err(Error::SnapshotTooOld) => {
                let visible = store.inner.journal.visible();
                assert!(reader.sequence() < visible, "what is visible is given up: commit {visible}");
                return false;
            }
            Err(error) => panic!("a snapshot cannot be read: {error}"),
        }
    }
    true
}

/// Threads that commit, read and make checkpoints beside each other, while the disk fails an operation.
#[derive(Clone)]
struct Failing {
    writers: usize,
    commits_each: usize,
    /// The rows that each commit writes.
    written: Vec<u32>,
    checkpoints: usize,
}

impl Failing {
    /// Whenever the disk fails, what was visible before can be read.
    fn assert_readable(&self, faults: usize, seed: u64, schedules: usize, coverage: &Arc<Coverage>) {
        let begun = store(SimDisk::new(), ROWS, coverage).0.disk.ops();
        for fault_after in 0..faults {
            let (failing, coverage) = (self.clone(), coverage.clone());
            check(seed, schedules, move || {
                failing.run(SimDisk::new().with_fault(begun + fault_after, Fault::Io), &coverage);
            });
        }
    }

    fn run(&self, disk: SimDisk, coverage: &Arc<Coverage>) {
        let (_, store) = store(disk, ROWS, coverage);
        let done = Arc::new(AtomicBool::new(false));
        let writers = (0..self.writers).map(|_| {
            let (store, written, commits) = (store.clone(), self.written.clone(), self.commits_each);
            shuttle::thread::spawn(move || {
                let _ = (0..commits).try_for_each(|_| commit(&store, &written, Durability::Full).map(|_| ()));
            })
        });
        let (beside, checkpoints) = (store.clone(), self.checkpoints);
        let checkpoints = shuttle::thread::spawn(move || {
            let _ = (0..checkpoints).try_for_each(|_| beside.checkpoint().map(drop));
        });
        let writers: Vec<_> = writers.chain([checkpoints]).collect();
        let readers = (0..2).map(|thread| {
            let (store, coverage, done) = (store.clone(), coverage.clone(), done.clone());
            let rows: Vec<_> = self.written.iter().copied().skip(thread * 7 % self.written.len()).collect();
            shuttle::thread::spawn(move || {
                while !done.load(Ordering::Acquire) {
                    let reader = store.read().expect("it can be read");
                    let rows = rows.iter().copied().step_by(rows.len().div_ceil(5));
                    Coverage::count(&coverage.given_up, !is_whole(&store, &reader, rows.clone().chain(rows)));
                    shuttle::thread::yield_now();
                }
            })
        });
        let readers: Vec<_> = readers.collect();
        writers.into_iter().for_each(|thread| thread.join().expect("it holds"));
        let _ = store.checkpoint();
        let last = store.read().expect("it can be read");
        assert!(is_whole(&store, &last, self.written.iter().copied()), "what is visible is given up");
        drop(last);
        Coverage::count(&coverage.undone, store.stats().last_sequence > store.stats().durable_sequence);
        Coverage::count(&coverage.undone_in_part, is_installed_in_part(&store));
        done.store(true, Ordering::Release);
        readers.into_iter().for_each(|thread| thread.join().expect("it holds"));
    }
}

/// Whether some pages of a commit that writes `WRITTEN` are installed, and others are not.
fn is_installed_in_part(store: &Store) -> bool {
    let (newest, pages) = lock(&store.inner.pages).newest_installed();
    newest > store.stats().last_sequence && pages < WRITTEN.len()
}

/// If a transaction is larger than the cache, earlier versions of its pages are read from the files, which
/// checkpoints overwrite.
#[test]
fn a_snapshot_stands_still_beside_large_transactions_and_what_was_visible_can_be_read_after_one_has_failed() {
    let coverage = Arc::new(Coverage::default());
    let large = Failing { writers: 1, commits_each: 6, written: (0..ROWS).collect(), checkpoints: 0 };
    large.assert_readable(20, 5, 12, &coverage);
    Coverage::assert(&coverage.undone, "a commit fails that was put where readers look for it");
    Coverage::assert(&coverage.given_up, "a page is written over that a snapshot needs");
}

/// Two writers and checkpoints: an I/O of one fails while another appends.
#[test]
fn what_was_visible_can_be_read_after_a_commit_has_failed_of_which_some_pages_were_installed() {
    let coverage = Arc::new(Coverage::default());
    let many = Failing { writers: 2, commits_each: 3, written: WRITTEN.to_vec(), checkpoints: 2 };
    many.assert_readable(16, 7, 24, &coverage);
    Coverage::assert(&coverage.undone_in_part, "a commit fails of which some pages were installed");
}
