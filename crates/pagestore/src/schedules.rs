//! The concurrent core under many schedules: who commits, who writes the log, who reads and who checkpoints take turns
//! wherever they take a lock, wait or do I/O.

use crate::disk::{Disk, FileId};
use crate::sim::{Fault, SimDisk};
use crate::sync::scheduled::{at_once, check, give_way};
use crate::{Durability, Error, Layout, Options, Recovery, Store, Tables};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Others go on while a write is on its way, and after it has landed and before that is known.
struct Slow(SimDisk);

impl Disk for Slow {
    fn read(&self, file: FileId, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        give_way();
        self.0.read(file, offset, buffer)
    }

    fn write(&self, file: FileId, offset: u64, bytes: &[u8]) -> io::Result<()> {
        give_way();
        self.0.write(file, offset, bytes)
    }

    fn write_through(&self, file: FileId, offset: u64, bytes: &[u8]) -> io::Result<()> {
        give_way();
        let done = self.0.write_through(file, offset, bytes);
        give_way();
        done
    }

    fn sync(&self, file: FileId) -> io::Result<()> {
        give_way();
        self.0.sync(file)
    }

    fn len(&self, file: FileId) -> io::Result<u64> {
        self.0.len(file)
    }
}

impl Slow {
    /// The last commit that opening finds, should the process end here. What the log holds was written through.
    fn recovered(&self) -> u64 {
        at_once(|| {
            let options = Options { recovery: Recovery::Instant, ..options() };
            let store = Store::open_on(Arc::new(SimDisk::holding(self.0.files())), options);
            store.expect("it can be opened at any time").stats().last_sequence
        })
    }
}

fn options() -> Options {
    // Two log writes at once, so that one may overtake the other.
    Options {
        background: false,
        parallel: 1,
        log_writes_in_flight: 2,
        cache_bytes: 96 << 10,
        ..Options::default()
    }
}

/// A store with a table `t` that has these rows.
fn store(disk: SimDisk, rows: u32) -> (Arc<Slow>, Arc<Store>) {
    let disk = Arc::new(Slow(disk));
    let store = at_once(|| {
        let layout = Layout { vlf_bytes: 128 << 10, ..Layout::default() };
        let store = Store::create_on(disk.clone(), layout, options(), 1).expect("the disk works yet");
        let mut tx = store.write().expect("it works");
        let table = tx.create_table("t").expect("it is new");
        for row in 0..rows {
            tx.put(table, &row.to_be_bytes(), &[0; 800]).expect("it fits");
        }
        tx.commit(Durability::Full).expect("the disk works yet");
        store
    });
    (disk, Arc::new(store))
}

/// Commits one row; its number where it was acknowledged.
fn commit(store: &Store, key: u32, durability: Durability) -> crate::Result<u64> {
    let mut tx = store.write()?;
    let table = tx.table("t")?;
    tx.put(table, &key.to_be_bytes(), b"committed")?;
    Ok(tx.commit(durability)?.expect("something was changed").sequence)
}

#[test]
fn what_is_acknowledged_is_on_the_medium_and_what_is_durable_never_becomes_less() {
    check(1, 150, || {
        let (disk, store) = store(SimDisk::new(), 0);
        let threads: Vec<_> = (0..3)
            .map(|thread| {
                let (disk, store) = (disk.clone(), store.clone());
                shuttle::thread::spawn(move || {
                    for number in 0..3 {
                        let full = (thread + number) % 3 != 0;
                        let durability = if full { Durability::Full } else { Durability::Delayed };
                        let own = commit(&store, thread * 10 + number, durability).expect("the disk works");
                        if full {
                            let there = disk.recovered();
                            assert!(own <= there, "commit {own} was acknowledged, and {there} is the last");
                        }
                    }
                })
            })
            .collect();
        let mut durable = 0;
        for _ in 0..20 {
            let stats = store.stats();
            assert!(
                durable <= stats.durable_sequence,
                "{durable} was durable, now {}",
                stats.durable_sequence
            );
            durable = stats.durable_sequence;
            let there = disk.recovered();
            assert!(durable <= there, "{durable} is said to be durable, and {there} is the last");
            shuttle::thread::yield_now();
        }
        threads.into_iter().for_each(|thread| thread.join().expect("it holds"));
        store.flush().expect("the disk works");
        assert_eq!(disk.recovered(), store.stats().last_sequence);
    });
}

#[test]
fn after_a_write_that_failed_nothing_more_is_acknowledged() {
    let before = store(SimDisk::new(), 0).0.0.ops();
    for fault_after in 0..4 {
        check(2, 40, move || {
            let faulty = SimDisk::new().with_fault(before + fault_after, Fault::Io);
            let (disk, store) = store(faulty, 0);
            let failed = Arc::new(AtomicBool::new(false));
            let acknowledged = Arc::new(AtomicU64::new(0));
            let threads: Vec<_> = (0..3)
                .map(|thread| {
                    let (failed, acknowledged) = (failed.clone(), acknowledged.clone());
                    let store = store.clone();
                    shuttle::thread::spawn(move || {
                        for number in 0..4 {
                            let too_late = failed.load(Ordering::Acquire);
                            match commit(&store, thread * 10 + number, Durability::Full) {
                                Ok(own) => {
                                    assert!(!too_late, "a commit begun after the failure was acknowledged");
                                    acknowledged.fetch_max(own, Ordering::AcqRel);
                                }
                                Err(error) => {
                                    assert!(
                                        matches!(error, Error::Io { .. } | Error::ReadOnly { .. }),
                                        "{error}"
                                    );
                                    failed.store(true, Ordering::Release);
                                }
                            }
                        }
                    })
                })
                .collect();
            threads.into_iter().for_each(|thread| thread.join().expect("it holds"));
            assert!(failed.load(Ordering::Acquire), "the fault has come");
            let (acknowledged, there) = (acknowledged.load(Ordering::Acquire), disk.recovered());
            assert!(acknowledged <= there, "commit {acknowledged} was acknowledged, and {there} is the last");
        });
    }
}

#[test]
fn a_snapshot_stands_still_whatever_is_committed_checkpointed_and_evicted_meanwhile() {
    const ROWS: u32 = 90;
    check(3, 60, || {
        let (_, store) = store(SimDisk::new(), ROWS);
        // Each commit writes its number to the first row, one in the middle and the last.
        let written = [0, ROWS / 2, ROWS - 1];
        let writer = store.clone();
        let writer = shuttle::thread::spawn(move || {
            for _ in 0..5 {
                let mut tx = writer.write().expect("the disk works");
                let table = tx.table("t").expect("it is there");
                let number = writer.stats().last_sequence + 1;
                for row in written {
                    let value = number.to_be_bytes().repeat(100);
                    tx.put(table, &row.to_be_bytes(), &value).expect("it fits");
                }
                let committed = tx.commit(Durability::Full).expect("the disk works");
                assert_eq!(committed.expect("a change").sequence, number);
            }
        });
        let checkpoints = store.clone();
        let checkpoints = shuttle::thread::spawn(move || {
            for _ in 0..3 {
                checkpoints.checkpoint().expect("the disk works");
            }
        });
        let readers = (0..2).map(|_| {
            let store = store.clone();
            shuttle::thread::spawn(move || {
                for _ in 0..4 {
                    let reader = store.read().expect("it can be read");
                    let table = reader.table("t").expect("it is there");
                    // The first commits, of the table and its rows, left zeros.
                    let expected = if reader.sequence() <= 2 { 0 } else { reader.sequence() };
                    for row in written.into_iter().cycle().take(6) {
                        match reader.get(table, &row.to_be_bytes()) {
                            Ok(value) => {
                                assert_eq!(value, Some(expected.to_be_bytes().repeat(100)), "row {row}");
                            }
                            Err(Error::SnapshotTooOld) => break,
                            Err(error) => panic!("a snapshot cannot be read: {error}"),
                        }
                    }
                }
            })
        });
        let threads: Vec<_> = readers.chain([writer, checkpoints]).collect();
        threads.into_iter().for_each(|thread| thread.join().expect("it holds"));
    });
}
