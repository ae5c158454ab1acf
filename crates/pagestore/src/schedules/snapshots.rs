//! Who reads while others commit, checkpoint and drive pages out of memory.

use super::{BEGUN, Met, commit, store, value};
use crate::sim::SimDisk;
use crate::sync::scheduled::check;
use crate::{Durability, Error, Tables};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const ROWS: u32 = 90;
/// Each commit writes its number to the first row, one in the middle and the last.
const WRITTEN: [u32; 3] = [0, ROWS / 2, ROWS - 1];

#[test]
fn a_snapshot_stands_still_whatever_is_committed_checkpointed_and_evicted_meanwhile() {
    let met = Arc::new(Met::default());
    let own_met = met.clone();
    check(3, 480, move || {
        let (disk, store) = store(SimDisk::new(), ROWS, &own_met);
        let done = Arc::new(AtomicBool::new(false));
        // Two, so that one takes along to the disk what the other has just appended.
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
            let (store, met, done) = (store.clone(), own_met.clone(), done.clone());
            shuttle::thread::spawn(move || {
                // A few at least, and then as long as there is something to be seen.
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
                                Met::count(&met.given_up, true);
                                break;
                            }
                            Err(error) => panic!("a snapshot cannot be read: {error}"),
                        }
                    }
                    Met::count(&met.checkpointed, store.stats().checkpoints > begun);
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
        Met::count(&own_met.stored, stats.page_reads > 0);
    });
    Met::assert(&met.checkpointed, "a checkpoint ends while a snapshot is read");
    Met::assert(&met.stored, "a page is read from the data file");
}

#[test]
fn a_commit_is_seen_when_its_pages_are_there_even_if_another_thread_has_made_it_durable() {
    let met = Arc::new(Met::default());
    check(6, 500, move || {
        let (_, store) = store(SimDisk::new(), 1, &met);
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
                if sequence == BEGUN + 6 {
                    return;
                }
                shuttle::thread::yield_now();
            }
        });
        writers.into_iter().chain([reader]).for_each(|thread| thread.join().expect("it holds"));
    });
}
