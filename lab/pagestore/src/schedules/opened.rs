//! A store opened after a crash: its pages are read from the log, while the first checkpoint absorbs the indices,
//! writes the pages and frees the log, and a writer reuses the freed log.

use super::{Coverage, LAYOUT, SlowDisk, commit, value};
use crate::sync::scheduled::{check, unscheduled};
use crate::{Durability, Error, Layout, Options, Store, Tables};
use crashlab::{Fault, Files, Op, SimDisk};
use pagestore_disk::{Disk, FileId};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

const ROWS: u32 = 160;

/// Log reads and page writes are done by several threads.
fn options() -> Options {
    Options { parallel: 4, ..super::options() }
}

/// Rows that every commit writes, on separate pages.
fn written() -> Vec<u32> {
    (0..ROWS).step_by(11).collect()
}

fn never_written(row: u32) -> Vec<u8> {
    (u64::from(row) << 32).to_be_bytes().repeat(100)
}

/// A crashed store with everything in the log, and most pages in several of its blocks.
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
fn a_page_that_cannot_be_written_ends_the_checkpoint_and_leaves_no_thread_waiting() {
    let crashed = Arc::new(crashed());
    let disk = Arc::new(SimDisk::holding(Files::clone(&crashed)));
    let store = Store::open_on(disk.clone(), options()).expect("it opens");
    store.checkpoint().expect("the disk works");
    let is_page = |op: &Op| matches!(op, Op::Write { file: FileId::Data, .. });
    let writes: Vec<_> = disk.take_trace().iter().map(is_page).enumerate().filter(|(_, is)| *is).collect();
    assert!(writes.len() > 8, "they are several batches");
    let next = Arc::new(AtomicU64::new(0));
    check(6, 60, move || {
        let (at, _) = writes[next.fetch_add(1, Ordering::Relaxed) as usize % writes.len()];
        let disk = SimDisk::holding(Files::clone(&crashed)).with_fault(at, Fault::Io);
        let disk = SlowDisk::new(disk, &Arc::new(Coverage::default()));
        let store = unscheduled(|| Store::open_on(disk, options()).expect("it opens"));
        assert!(store.checkpoint().is_err(), "the write was not done");
        assert!(store.write().is_err() || commit(&store, &[1], Durability::Full).is_err());
        let reader = store.read().expect("it can be read");
        let table = reader.table("t").expect("it is there");
        let row = reader.get(table, &1_u32.to_be_bytes()).expect("it is in the log");
        assert_eq!(row, Some(never_written(1)));
    });
}

#[test]
fn what_is_read_from_the_log_stays_so_while_a_checkpoint_frees_it_and_a_writer_uses_it_again() {
    let coverage = Arc::new(Coverage::default());
    let own_coverage = coverage.clone();
    let crashed = Arc::new(crashed());
    check(5, 100, move || {
        let disk = SlowDisk::new(SimDisk::holding(Files::clone(&crashed)), &own_coverage);
        let store = unscheduled(|| Store::open_on(disk.clone(), options()).expect("it opens"));
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
            let (store, coverage, done) = (store.clone(), own_coverage.clone(), done.clone());
            shuttle::thread::spawn(move || {
                let mut rows = (0..ROWS).cycle().skip(number * 50).step_by(7);
                // A few at least, and then until the others are done.
                let mut left = 2;
                while left > 0 || !done.load(Ordering::Acquire) {
                    left = u32::saturating_sub(left, 1);
                    let reader = store.read().expect("it can be read");
                    for row in rows.by_ref().take(3) {
                        let is_written = written().contains(&row);
                        let expected = if is_written { value(reader.sequence()) } else { never_written(row) };
                        let before = store.stats().checkpoints;
                        let found = reader.table("t").and_then(|table| reader.get(table, &row.to_be_bytes()));
                        Coverage::count(&coverage.checkpointed, store.stats().checkpoints > before);
                        match found {
                            Ok(found) => assert!(found == Some(expected), "row {row} is another"),
                            Err(Error::SnapshotTooOld) => {
                                Coverage::count(&coverage.given_up, true);
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
        Coverage::count(&own_coverage.redone, store.stats().pages_redone > 0);
        disk.recovered(&written());
    });
    Coverage::assert(&coverage.checkpointed, "a checkpoint ends while a page is read");
    Coverage::assert(&coverage.redone, "a page is put together from the log");
}

/// A disk on which one read of the log, or one write of a page, fails.
struct FailingDisk {
    disk: Arc<SlowDisk>,
    reads_left: AtomicI64,
    writes_left: AtomicI64,
}

impl FailingDisk {
    fn fails(left: &AtomicI64) -> io::Result<()> {
        if left.fetch_sub(1, Ordering::Relaxed) == 1 { Err(io::Error::other("told to fail")) } else { Ok(()) }
    }
}

impl Disk for FailingDisk {
    pagestore_disk::forward_to_disk!(write_through, sync, len);

    fn read(&self, file: FileId, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.disk.read(file, offset, buffer)?;
        if file == FileId::Log { Self::fails(&self.reads_left) } else { Ok(()) }
    }

    fn write(&self, file: FileId, offset: u64, bytes: &[u8]) -> io::Result<()> {
        if file == FileId::Data {
            Self::fails(&self.writes_left)?;
        }
        self.disk.write(file, offset, bytes)
    }
}

// Threads that wait for the turn of the failed one continue, and no log is freed.
#[test]
fn a_read_or_write_that_fails_ends_the_checkpoint_of_all_its_threads_and_frees_no_log() {
    let coverage = Arc::new(Coverage::default());
    let crashed = Arc::new(crashed());
    let [reads, writes] = [(); 2].map(|()| Arc::new(AtomicU64::new(0)));
    let counts = [reads.clone(), writes.clone()];
    let schedules = AtomicU64::new(0);
    let schedules = Arc::new(schedules);
    check(6, 60, move || {
        let slow = SlowDisk::new(SimDisk::holding(Files::clone(&crashed)), &coverage);
        let (reads_left, writes_left) = (AtomicI64::new(0), AtomicI64::new(0));
        let disk = Arc::new(FailingDisk { disk: slow.clone(), reads_left, writes_left });
        let store = unscheduled(|| Store::open_on(disk.clone(), options()).expect("it opens"));
        let number = schedules.fetch_add(1, Ordering::Relaxed) as i64;
        let which = if number % 2 == 0 { &disk.reads_left } else { &disk.writes_left };
        which.store(number / 2 % 16 + 1, Ordering::Relaxed);
        let done = store.checkpoint();
        let failed = which.load(Ordering::Relaxed) <= 0;
        assert_eq!(done.is_err(), failed, "it fails if and only if something of it did: {done:?}");
        counts[(number % 2) as usize].fetch_add(u64::from(failed), Ordering::Relaxed);
        slow.recovered(&written());
    });
    Coverage::assert(&reads, "a read of the log fails");
    Coverage::assert(&writes, "a write of a page fails");
}
