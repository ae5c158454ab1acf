//! The concurrent core under many schedules: who commits, who writes the log, who reads and who checkpoints take turns
//! wherever they take a lock, wait, do I/O or use an atomic of the core. Each test counts the situations that it is
//! there for, and fails when no schedule has met them: a test that meets nothing shows nothing.

mod commits;
mod opened;
mod snapshots;

use crate::disk::{Disk, FileId};
use crate::sim::SimDisk;
use crate::sync::scheduled::{at_once, yield_in_schedule};
use crate::{Committed, Durability, Layout, Options, Recovery, Store, Tables};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// The commit that makes the table and its rows; what commits before it leave is not looked at.
const BEGUN: u64 = 2;
const LAYOUT: Layout = Layout { page_bytes: 4096, log_sector_bytes: 4096, vlf_bytes: 128 << 10, vlfs: 3 };

/// Situations that were met, over all schedules of a test.
#[derive(Default)]
struct Met {
    /// A log write landed, and one that was handed out before it had not.
    overtaken: AtomicU64,
    /// A log write failed while another was on its way.
    failed_beside_another: AtomicU64,
    /// Four commits or more lay in one block.
    grouped: AtomicU64,
    /// A checkpoint ended while somebody read.
    checkpointed: AtomicU64,
    /// A page was read from the data file.
    stored: AtomicU64,
    /// A page was put together from the log.
    redone: AtomicU64,
    /// A snapshot was given up.
    given_up: AtomicU64,
    /// A commit was put where readers look for it, and then failed.
    undone: AtomicU64,
}

impl Met {
    fn count(counter: &AtomicU64, situation: bool) {
        counter.fetch_add(u64::from(situation), Ordering::Relaxed);
    }

    fn assert(counter: &AtomicU64, situation: &str) {
        assert!(counter.load(Ordering::Relaxed) > 0, "no schedule has met this: {situation}");
    }
}

/// What the disk is at.
#[derive(Default)]
struct UnderWay {
    tickets: u64,
    /// Log writes that have not landed.
    writes: Vec<u64>,
}

/// A disk on which anything may take long: others go on meanwhile, and after a write has landed and before that is known.
struct Slow {
    disk: SimDisk,
    met: Arc<Met>,
    under_way: Mutex<UnderWay>,
}

impl Slow {
    fn new(disk: SimDisk, met: &Arc<Met>) -> Arc<Self> {
        Arc::new(Self { disk, met: met.clone(), under_way: Mutex::default() })
    }

    fn under_way(&self) -> MutexGuard<'_, UnderWay> {
        self.under_way.lock().expect("nothing panics with it")
    }
}

impl Disk for Slow {
    crate::from_disk_beneath!(len);

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
            let mut under_way = self.under_way();
            under_way.tickets += 1;
            let ticket = under_way.tickets;
            under_way.writes.push(ticket);
            ticket
        };
        yield_in_schedule();
        let done = self.disk.write_through(file, offset, bytes);
        {
            let mut under_way = self.under_way();
            under_way.writes.retain(|own| *own != ticket);
            Met::count(&self.met.overtaken, under_way.writes.iter().any(|own| *own < ticket));
            Met::count(&self.met.failed_beside_another, done.is_err() && !under_way.writes.is_empty());
        }
        yield_in_schedule();
        done
    }

    fn sync(&self, file: FileId) -> io::Result<()> {
        yield_in_schedule();
        self.disk.sync(file)
    }
}

impl Slow {
    /// The last commit that opening finds, should the process end here: what was not synced is there as well, and of
    /// what is on its way nothing. Every commit wrote its number to these rows.
    fn recovered(&self, rows: &[u32]) -> u64 {
        at_once(|| {
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
    // Two log writes at once, so that one may overtake the other.
    Options {
        background: false,
        parallel: 1,
        log_writes_in_flight: 2,
        cache_bytes: 96 << 10,
        ..Options::default()
    }
}

/// What a commit leaves in the rows that it writes.
fn value(sequence: u64) -> Vec<u8> {
    let number = if sequence <= BEGUN { 0 } else { sequence };
    number.to_be_bytes().repeat(100)
}

/// A store with a table `t` that has these rows.
fn store(disk: SimDisk, rows: u32, met: &Arc<Met>) -> (Arc<Slow>, Arc<Store>) {
    let disk = Slow::new(disk, met);
    let store = at_once(|| {
        let store = Store::create_on(disk.clone(), LAYOUT, options(), 1).expect("the disk works yet");
        let mut tx = store.write().expect("it works");
        let table = tx.create_table("t").expect("it is new");
        for row in 0..rows {
            tx.put(table, &row.to_be_bytes(), &value(BEGUN)).expect("it fits");
        }
        let committed = tx.commit(Durability::Full).expect("the disk works yet").expect("a change");
        assert_eq!(committed.sequence, BEGUN);
        store
    });
    (disk, Arc::new(store))
}

/// Commits its own number in these rows; where it was acknowledged.
fn commit(store: &Store, rows: &[u32], durability: Durability) -> crate::Result<Committed> {
    let mut tx = store.write()?;
    let table = tx.table("t")?;
    // One transaction writes at a time.
    let number = store.stats().last_sequence + 1;
    for row in rows {
        tx.put(table, &row.to_be_bytes(), &value(number))?;
    }
    let committed = tx.commit(durability)?.expect("something was changed");
    assert_eq!(committed.sequence, number);
    Ok(committed)
}
