//! Readers during commits, checkpoints and evictions.

use super::{Coverage, INITIAL_COMMIT, commit, store, value};
use crate::sync::scheduled::check;
use crate::{Durability, Error, ReadTx, Store, Tables};
use crashlab::{Fault, SimDisk};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const ROWS: u32 = 90;
/// Each commit writes its number to the first row, one in the middle and the last.
const WRITTEN: [u32; 3] = [0, ROWS / 2, ROWS - 1];

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

/// If a transaction is larger than the cache, earlier versions of its pages are read from the files, which
/// checkpoints overwrite.
#[test]
fn a_snapshot_stands_still_beside_large_transactions_and_what_was_visible_can_be_read_after_one_has_failed() {
    let coverage = Arc::new(Coverage::default());
    let begun = store(SimDisk::new(), ROWS, &coverage).0.disk.ops();
    for fault_after in 0..20 {
        let coverage = coverage.clone();
        check(5, 12, move || {
            let faulty = SimDisk::new().with_fault(begun + fault_after, Fault::Io);
            let (_, store) = store(faulty, ROWS, &coverage);
            let done = Arc::new(AtomicBool::new(false));
            let writer = store.clone();
            let rows: Vec<_> = (0..ROWS).collect();
            let writer = shuttle::thread::spawn(move || {
                let _ = (0..6).try_for_each(|_| commit(&writer, &rows, Durability::Full).map(|_| ()));
            });
            let readers = (0..2).map(|thread| {
                let (store, coverage, done) = (store.clone(), coverage.clone(), done.clone());
                shuttle::thread::spawn(move || {
                    while !done.load(Ordering::Acquire) {
                        let reader = store.read().expect("it can be read");
                        let rows = (0..ROWS).skip(thread * 7).step_by(19);
                        Coverage::count(
                            &coverage.given_up,
                            !is_whole(&store, &reader, rows.clone().chain(rows)),
                        );
                        shuttle::thread::yield_now();
                    }
                })
            });
            let readers: Vec<_> = readers.collect();
            writer.join().expect("it holds");
            let _ = store.checkpoint();
            let last = store.read().expect("it can be read");
            assert!(is_whole(&store, &last, 0..ROWS), "what is visible is given up");
            drop(last);
            Coverage::count(&coverage.undone, store.stats().last_sequence > store.stats().durable_sequence);
            done.store(true, Ordering::Release);
            readers.into_iter().for_each(|thread| thread.join().expect("it holds"));
        });
    }
    Coverage::assert(&coverage.undone, "a commit fails that was put where readers look for it");
    Coverage::assert(&coverage.given_up, "a page is written over that a snapshot needs");
}
