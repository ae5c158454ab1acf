//! A disk that stalls: occasionally an operation takes long, before or after its effect, while others overtake it.
//! Threads commit on it along with the store's own work; then the power is cut at many of its operations. Every
//! acknowledged commit is there, and the state is that after some commit.

use crashlab::{Chance, Medium, SimDisk};
use pagestore::disk::{Disk, FileId};
use pagestore::{Durability, Layout, Options, Recovery, Store, Table, Tables};
use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

const THREADS: u64 = 4;
const COMMITS: u64 = 300;
const CRASHES: usize = 120;
/// Longer than a delayed commit may wait.
const LONG: Duration = Duration::from_millis(40);

struct StallingDisk {
    disk: SimDisk,
    chance: Mutex<Chance>,
    long_ones: AtomicU64,
}

impl StallingDisk {
    fn stall(&self) {
        let (once, ms, long) = {
            let mut chance = self.chance.lock().unwrap();
            (chance.once_in(6), chance.below(3), chance.once_in(60))
        };
        if long {
            self.long_ones.fetch_add(1, Ordering::Relaxed);
            thread::sleep(LONG);
        } else if once {
            thread::sleep(Duration::from_millis(ms));
        }
    }

    fn around<T>(&self, io: impl FnOnce() -> T) -> T {
        self.stall();
        let done = io();
        self.stall();
        done
    }
}

impl Disk for StallingDisk {
    pagestore_disk::forward_to_disk!(len);

    fn read(&self, file: FileId, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.around(|| self.disk.read(file, offset, buffer))
    }

    fn write(&self, file: FileId, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.around(|| self.disk.write(file, offset, bytes))
    }

    fn write_through(&self, file: FileId, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.around(|| self.disk.write_through(file, offset, bytes))
    }

    fn sync(&self, file: FileId) -> io::Result<()> {
        self.around(|| self.disk.sync(file))
    }
}

/// A commit: its thread, its number in that thread, and for full durability how many operations the disk had done
/// when it was acknowledged.
struct CommitRecord {
    thread: u64,
    number: u64,
    acknowledged_at: Option<usize>,
}

/// Changes the thread's own row, and one of many that fill pages.
fn change(store: &Store, table: Table, thread: u64, number: u64, durability: Durability) -> u64 {
    let mut tx = store.write().unwrap();
    tx.put(table, &thread.to_be_bytes(), &number.to_be_bytes()).unwrap();
    let many = [b'm', thread as u8, (number % 40) as u8];
    tx.put(table, &many, &[number as u8; 700]).unwrap();
    tx.commit(durability).unwrap().expect("it changed something").sequence
}

fn run_workload(
    seed: u64,
    writes_in_flight: usize,
) -> (Arc<StallingDisk>, usize, HashMap<u64, CommitRecord>) {
    let (chance, long_ones) = (Mutex::new(Chance::new(seed)), AtomicU64::new(0));
    let disk = Arc::new(StallingDisk { disk: SimDisk::new(), chance, long_ones });
    let layout = Layout { vlf_bytes: 128 << 10, vlfs: 3, ..Layout::default() };
    let options = Options {
        cache_bytes: 256 << 10,
        checkpoint_bytes: 256 << 10,
        log_writes_in_flight: writes_in_flight,
        ..Options::default()
    };
    let store = Store::create_on(disk.clone(), layout, options, seed.into()).unwrap();
    let mut tx = store.write().unwrap();
    let table = tx.create_table("t").unwrap();
    tx.commit(Durability::Full).unwrap();
    let made = disk.disk.ops();
    let all: Mutex<HashMap<u64, CommitRecord>> = Mutex::default();
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (store, disk, all) = (&store, &disk, &all);
            scope.spawn(move || {
                for number in 1..=COMMITS {
                    let full = (thread + number) % 3 != 0;
                    let durability = if full { Durability::Full } else { Durability::Delayed };
                    let sequence = change(store, table, thread, number, durability);
                    let acknowledged_at = full.then(|| disk.disk.ops());
                    all.lock().unwrap().insert(sequence, CommitRecord { thread, number, acknowledged_at });
                    let seen = store.read().unwrap().get(table, &thread.to_be_bytes()).unwrap();
                    let seen = seen.map_or(0, |bytes| u64::from_be_bytes(bytes.try_into().unwrap()));
                    assert!(seen <= number && (!full || seen == number), "{seen} of {number}");
                }
            });
        }
    });
    assert!(store.stats().checkpoints > 2, "checkpoints met the stalls");
    store.close().unwrap();
    (disk, made, all.into_inner().unwrap())
}

#[test]
fn whatever_stalls_what_was_acknowledged_before_a_crash_is_there() {
    for (seed, writes_in_flight) in [(1, 1), (2, 4)] {
        let (disk, made, commits) = run_workload(seed, writes_in_flight);
        assert!(disk.long_ones.load(Ordering::Relaxed) > 3, "some stalls were long");
        let trace = disk.disk.take_trace();
        let mut chance = Chance::new(!seed);
        let mut points: Vec<_> =
            (0..CRASHES).map(|_| made + chance.below((trace.len() - made) as u64) as usize).collect();
        points.sort_unstable();
        let (mut medium, mut done) = (Medium::default(), 0);
        for (at, point) in points.into_iter().enumerate() {
            trace[done..point].iter().for_each(|op| medium.apply(op));
            done = point;
            let files = medium.crash(trace.get(point), &mut chance);
            let recovery = [Recovery::Instant, Recovery::Wide, Recovery::Prefetch, Recovery::Serial][at % 4];
            let options = Options { recovery, background: false, ..Options::default() };
            let store = Store::open_on(Arc::new(SimDisk::holding(files)), options).unwrap();
            let last = store.stats().last_sequence;
            let by_then = |commit: &CommitRecord| commit.acknowledged_at.is_some_and(|at| at <= point);
            let acknowledged =
                commits.iter().filter(|(_, commit)| by_then(commit)).map(|(own, _)| *own).max();
            assert!(acknowledged.is_none_or(|own| own <= last), "{acknowledged:?} of {last}, at {point}");
            let reader = store.read().unwrap();
            let table = reader.table("t").unwrap();
            for thread in 0..THREADS {
                let newest = commits.iter().filter(|(own, commit)| **own <= last && commit.thread == thread);
                let newest = newest.max_by_key(|(own, _)| **own).map(|(_, commit)| commit.number);
                let found = reader.get(table, &thread.to_be_bytes()).unwrap();
                let found = found.map(|bytes| u64::from_be_bytes(bytes.try_into().unwrap()));
                assert_eq!(found, newest, "thread {thread} as of commit {last}, at {point}, {recovery:?}");
            }
        }
    }
}
