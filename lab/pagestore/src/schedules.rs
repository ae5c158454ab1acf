//! The concurrent core under many schedules: threads that commit, write the log, read and checkpoint are
//! interleaved wherever they take a lock, wait, do I/O or use an atomic of the core. Each test counts the
//! situations that it is about, and fails if no schedule reaches them, since it would then prove nothing.

mod commits;
mod opened;
mod snapshots;

use crate::sync::scheduled::{unscheduled, yield_in_schedule};
use crate::{Committed, Durability, Layout, Options, Recovery, Store, Tables};
use crashlab::SimDisk;
use pagestore_disk::{Disk, FileId};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// The commit that creates the table and its rows; earlier commits are not checked.
const INITIAL_COMMIT: u64 = 2;
const LAYOUT: Layout = Layout { page_bytes: 4096, log_sector_bytes: 4096, vlf_bytes: 128 << 10, vlfs: 3 };

/// How often each situation occurred, over all schedules of a test.
#[derive(Default)]
struct Coverage {
    /// A log write completed before one that was handed out earlier.
    overtaken: AtomicU64,
    /// A log write failed while another was in flight.
    failed_beside_another: AtomicU64,
    /// Four commits or more were in one block.
    grouped: AtomicU64,
    /// A checkpoint ended during a read.
    checkpointed: AtomicU64,
    /// A page was read from the data file.
    stored: AtomicU64,
    /// A page was redone from the log.
    redone: AtomicU64,
    /// A snapshot was ended.
    given_up: AtomicU64,
    /// A commit was installed in the page table, and then failed.
    undone: AtomicU64,
    /// Some pages of a commit are installed, and others are not yet.
    installed_in_part: AtomicU64,
    /// Some pages of a commit that has failed are undone, and others are not yet.
    undone_in_part: AtomicU64,
}

impl Coverage {
    fn count(counter: &AtomicU64, situation: bool) {
        counter.fetch_add(u64::from(situation), Ordering::Relaxed);
    }

    fn assert(counter: &AtomicU64, situation: &str) {
        assert!(counter.load(Ordering::Relaxed) > 0, "no schedule has met this: {situation}");
    }
}

/// Operations in flight.
#[derive(Default)]
struct InFlight {
    tickets: u64,
    /// Log writes that have not completed.
    writes: Vec<u64>,
}

/// A disk on which every operation may take long: other threads run meanwhile, also between the completion of a
/// write and its return.
struct SlowDisk {
    disk: SimDisk,
    coverage: Arc<Coverage>,
    in_flight: Mutex<InFlight>,
}

impl SlowDisk {
    fn new(disk: SimDisk, coverage: &Arc<Coverage>) -> Arc<Self> {
        Arc::new(Self { disk, coverage: coverage.clone(), in_flight: Mutex::default() })
    }

    fn in_flight(&self) -> MutexGuard<'_, InFlight> {
        self.in_flight.lock().expect("nothing panics with it")
    }
}

impl Disk for SlowDisk {
    pagestore_disk::forward_to_disk!(len);

    fn read(&self, file: FileId, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        yield_in_schedule();
        self.disk.read(file, offset, buffer)
    }

    fn write(&self, file: FileId, offset: u64, bytes: &[u8]) -> io::Result<()> {
        yield_in_schedule();
        self.disk.write(file, offset, bytes)
    }

    fn write_through(&self, file: FileId, offset: u64, bytes: &[u8]) -> io::Result<()> {
        if file != FileId::Log {
            yield_in_schedule();
            return self.disk.write_through(file, offset, bytes);
        }
        let ticket = {
            let mut in_flight = self.in_flight();
            in_flight.tickets += 1;
            let ticket = in_flight.tickets;
            in_flight.writes.push(ticket);
            ticket
        };
        yield_in_schedule();
        let done = self.disk.write_through(file, offset, bytes);
        {
            let mut in_flight = self.in_flight();
            in_flight.writes.retain(|other| *other != ticket);
            Coverage::count(&self.coverage.overtaken, in_flight.writes.iter().any(|other| *other < ticket));
            Coverage::count(
                &self.coverage.failed_beside_another,
                done.is_err() && !in_flight.writes.is_empty(),
            );
        }
        yield_in_schedule();
        done
    }

    fn sync(&self, file: FileId) -> io::Result<()> {
        yield_in_schedule();
        self.disk.sync(file)
    }
}

impl SlowDisk {
    /// The last commit that recovery finds if the process crashed now: writes that completed are kept, even if they
    /// were not synced, and writes in flight are lost. Every commit wrote its number to these rows.
    fn recovered(&self, rows: &[u32]) -> u64 {
        unscheduled(|| {
            let options = Options { recovery: Recovery::Instant, ..options() };
            let opened = Store::open_on(Arc::new(SimDisk::holding(self.disk.files())), options);
            let store = opened.expect("it can be opened at any time");
            let (reader, last) = (store.read().expect("it can be read"), store.stats().last_sequence);
            let table = reader.table("t").expect("it is there");
            for row in rows {
                let found = reader.get(table, &row.to_be_bytes()).expect("it can be read");
                assert!(
                    found == Some(value(last)),
                    "after a crash, {last} is the last commit, and row {row} is not of it"
                );
            }
            last
        })
    }
}

fn options() -> Options {
    // Two log writes in flight, so that one may overtake the other.
    Options {
        background: false,
        parallel: 1,
        log_writes_in_flight: 2,
        cache_bytes: 96 << 10,
        ..Options::default()
    }
}

/// The content of a row that commit `sequence` wrote.
fn value(sequence: u64) -> Vec<u8> {
    let number = if sequence <= INITIAL_COMMIT { 0 } else { sequence };
    number.to_be_bytes().repeat(100)
}

/// A store with a table `t` that has these rows.
fn store(disk: SimDisk, rows: u32, coverage: &Arc<Coverage>) -> (Arc<SlowDisk>, Arc<Store>) {
    let disk = SlowDisk::new(disk, coverage);
    let store = unscheduled(|| {
        let store = Store::create_on(disk.clone(), LAYOUT, options(), 1).expect("the disk works yet");
        let mut tx = store.write().expect("it works");
        let table = tx.create_table("t").expect("it is new");
        for row in 0..rows {
            tx.put(table, &row.to_be_bytes(), &value(INITIAL_COMMIT)).expect("it fits");
        }
        let committed = tx.commit(Durability::Full).expect("the disk works yet").expect("a change");
        assert_eq!(committed.sequence, INITIAL_COMMIT);
        store
    });
    (disk, Arc::new(store))
}

/// Commits its own number in these rows.
fn commit(store: &Store, rows: &[u32], durability: Durability) -> crate::Result<Committed> {
    let mut tx = store.write()?;
    let table = tx.table("t")?;
    // The next number, since one transaction writes at a time.
    let number = store.stats().last_sequence + 1;
    for row in rows {
        tx.put(table, &row.to_be_bytes(), &value(number))?;
    }
    let committed = tx.commit(durability)?.expect("something was changed");
    assert_eq!(committed.sequence, number);
    Ok(committed)
}
