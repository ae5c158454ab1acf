//! A store that has been opened after a crash: its pages are read from the log, while the first checkpoint takes over
//! what the indices tell, writes it and frees the log, and a writer uses the freed log again.

use super::{LAYOUT, Met, Slow, commit, options, value};
use crate::sim::{Files, SimDisk};
use crate::sync::scheduled::{at_once, check};
use crate::{Durability, Error, Layout, Options, Store, Tables};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const ROWS: u32 = 160;

/// Rows that every commit writes: on pages of their own.
fn written() -> Vec<u32> {
    (0..ROWS).step_by(11).collect()
}

fn never_written(row: u32) -> Vec<u8> {
    (u64::from(row) << 32).to_be_bytes().repeat(100)
}

/// A crashed store: all of it is in the log, most pages in several of its blocks.
fn crashed() -> Files {
    let disk = Arc::new(SimDisk::new());
    let options = Options { cache_bytes: 4 << 20, ..options() };
    let layout = Layout { vlfs: 8, ..LAYOUT };
    let store = Store::create_on(disk.clone(), layout, options, 1).expect("the disk works");
    let mut tx = store.write().expect("it works");
    tx.create_table("t").expect("it is new");
    tx.commit(Durability::Full).expect("the disk works");
    for byte in [1, 2, 0] {
        for part in 0..4 {
            let mut tx = store.write().expect("it works");
            let table = tx.table("t").expect("it is there");
            for row in (0..ROWS).filter(|row| row / 4 % 4 == part) {
                let value = if byte == 0 { never_written(row) } else { vec![byte; 800] };
                tx.put(table, &row.to_be_bytes(), &value).expect("it fits");
            }
            tx.commit(Durability::Full).expect("the disk works");
        }
    }
    commit(&store, &written(), Durability::Full).expect("the disk works");
    assert_eq!(store.stats().checkpoints, 0, "nothing is in the data file");
    assert!(store.log_holders().next.vlf() > 2, "some of the log can be freed");
    disk.files()
}

#[test]
fn what_is_read_from_the_log_stays_so_while_a_checkpoint_frees_it_and_a_writer_uses_it_again() {
    let met = Arc::new(Met::default());
    let own_met = met.clone();
    let crashed = Arc::new(crashed());
    check(5, 100, move || {
        let disk = Slow::new(SimDisk::holding(Files::clone(&crashed)), &own_met);
        let store = at_once(|| Store::open_on(disk.clone(), options()).expect("it opens"));
        assert!(store.recovery_report().vlfs_indexed > 0);
        let store = Arc::new(store);
        let done = Arc::new(AtomicBool::new(false));
        let checkpoints = store.clone();
        let checkpoints = shuttle::thread::spawn(move || {
            checkpoints.checkpoint().expect("the disk works");
        });
        let writer = store.clone();
        let writer = shuttle::thread::spawn(move || {
            for _ in 0..8 {
                commit(&writer, &written(), Durability::Full).expect("the disk works");
            }
        });
        let readers = (0..2).map(|number| {
            let (store, met, done) = (store.clone(), own_met.clone(), done.clone());
            shuttle::thread::spawn(move || {
                let mut rows = (0..ROWS).cycle().skip(number * 50).step_by(7);
                // A few at least, and then as long as there is something to be seen.
                let mut left = 2;
                while left > 0 || !done.load(Ordering::Acquire) {
                    left = u32::saturating_sub(left, 1);
                    let reader = store.read().expect("it can be read");
                    for row in rows.by_ref().take(3) {
                        let own = written().contains(&row);
                        let expected = if own { value(reader.sequence()) } else { never_written(row) };
                        let before = store.stats().checkpoints;
                        let found = reader.table("t").and_then(|table| reader.get(table, &row.to_be_bytes()));
                        Met::count(&met.checkpointed, store.stats().checkpoints > before);
                        match found {
                            Ok(found) => assert!(found == Some(expected), "row {row} is another"),
                            Err(Error::SnapshotTooOld) => {
                                Met::count(&met.given_up, true);
                                break;
                            }
                            Err(error) => panic!("a snapshot cannot be read: {error}"),
                        }
                    }
                    shuttle::thread::yield_now();
                }
            })
        });
        let readers: Vec<_> = readers.collect();
        [writer, checkpoints].into_iter().for_each(|thread| thread.join().expect("it holds"));
        done.store(true, Ordering::Release);
        readers.into_iter().for_each(|thread| thread.join().expect("it holds"));
        Met::count(&own_met.redone, store.stats().pages_redone > 0);
        disk.recovered(&written());
    });
    Met::assert(&met.checkpointed, "a checkpoint ends while a page is read");
    Met::assert(&met.redone, "a page is put together from the log");
}
