//! Transactions whose changes are refused, that are rolled back, or whose thread panics.

use crashlab::{Chance, Refused, SimDisk, Trouble};
use pagestore::disk::{Disk, FileId};
use pagestore::{Durability, Error, Layout, Options, Store, Table, Tables, WriteTx};
use pagestore_disk::{MemoryScratch, Scratch};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A disk that has no space for a page that a transaction sets aside, once.
#[derive(Default)]
struct Full {
    disk: SimDisk,
    /// The write that fails, from 1; 0: none.
    fails_at: Arc<AtomicU64>,
}

impl Disk for Full {
    pagestore_disk::forward_to_disk!(read, write, write_through, sync, len);

    fn scratch(&self) -> io::Result<Arc<dyn Scratch>> {
        Ok(Arc::new(FullScratch { fails_at: Arc::clone(&self.fails_at), memory: MemoryScratch::default() }))
    }
}

struct FullScratch {
    fails_at: Arc<AtomicU64>,
    memory: MemoryScratch,
}

impl Scratch for FullScratch {
    fn read(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.memory.read(offset, buffer)
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let fails_at = self.fails_at.load(Ordering::Relaxed);
        self.fails_at.store(fails_at.saturating_sub(1), Ordering::Relaxed);
        if fails_at == 1 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.memory.write(offset, bytes)
    }
}

fn small() -> Layout {
    Layout { vlf_bytes: 128 << 10, vlfs: 3, ..Layout::default() }
}

/// With this cache a transaction of more than a few pages is logged before its commit.
fn options() -> Options {
    Options { background: false, publish: false, cache_bytes: 256 << 10, ..Options::default() }
}

/// With this one its pages are set aside, with `background` by a thread.
fn smallest(background: bool) -> Options {
    Options { cache_bytes: 64 << 10, background, ..options() }
}

fn rows(store: &Store, table: &str) -> usize {
    let reader = store.read().unwrap();
    let table = reader.table(table).unwrap();
    reader.range(table, &[], None).unwrap().map(Result::unwrap).count()
}

/// Puts 2,500 rows. For one of them there is no space; it is put again. Returns the first error and the second.
fn put_around(disk: &Full, tx: &mut WriteTx<'_>, table: Table, seed: u64) -> (Option<Error>, Option<Error>) {
    let mut chance = Chance::new(seed);
    let full_at = 200 + chance.below(1500);
    let mut first = None;
    for number in 0..2500 {
        let key = chance.draw().to_be_bytes();
        if number == full_at {
            disk.fails_at.store(1 + chance.below(3), Ordering::Relaxed);
        }
        if let Err(refused) = tx.put(table, &key, &[5; 100]) {
            first = Some(refused);
            if let Err(again) = tx.put(table, &key, &[5; 100]) {
                return (first, Some(again));
            }
        }
    }
    (first, None)
}

#[test]
fn what_fails_halfway_is_never_committed_and_what_fails_before_its_first_change_can_be_done_again() {
    let (mut halfway, mut before) = (0, 0);
    for seed in 0..120 {
        let disk = Arc::new(Full::default());
        let store = Store::create_on(disk.clone(), small(), smallest(seed % 2 == 1), 1).unwrap();
        store.transact(Durability::Full, |tx| tx.create_table("t")).unwrap();
        let mut tx = store.write().unwrap();
        let table = tx.table("t").unwrap();
        match put_around(&disk, &mut tx, table, seed) {
            (first, None) => {
                before += usize::from(first.is_some());
                tx.commit(Durability::Full).unwrap();
                assert_eq!(rows(&store, "t"), 2500, "seed {seed}");
            }
            (first, Some(again)) => {
                halfway += 1;
                let reason = first.unwrap().to_string();
                let is_broken = |error: Error| match error {
                    Error::TransactionBroken { cause } => assert_eq!(cause, reason, "seed {seed}"),
                    other => panic!("seed {seed}: {other}"),
                };
                is_broken(again);
                // None of its changes can be read or committed any more.
                is_broken(tx.get(table, b"k").unwrap_err());
                is_broken(tx.delete(table, b"k").unwrap_err());
                is_broken(tx.create_table("u").unwrap_err());
                is_broken(tx.drop_table("t").unwrap_err());
                is_broken(tx.page_mut(pagestore::PageNo(1)).map(|_| ()).unwrap_err());
                is_broken(tx.allocate().unwrap_err());
                is_broken(tx.free(pagestore::PageNo(1)).unwrap_err());
                is_broken(tx.commit(Durability::Full).unwrap_err());
                assert_eq!(rows(&store, "t"), 0);
                store.transact(Durability::Full, |tx| tx.put(table, b"after", b"")).unwrap();
                assert_eq!(rows(&store, "t"), 1);
            }
        }
    }
    assert!(halfway > 0 && before > 0, "{halfway} failed halfway, {before} before their first change");
}

#[test]
fn a_table_of_which_a_page_cannot_be_read_is_dropped_whole_or_not_at_all() {
    let disk = Arc::new(SimDisk::new());
    let store = Store::create_on(disk.clone(), small(), options(), 1).unwrap();
    let table = store.transact(Durability::Full, |tx| tx.create_table("t")).unwrap();
    let put =
        |tx: &mut WriteTx<'_>| (0..500_u32).try_for_each(|row| tx.put(table, &row.to_be_bytes(), &[1; 100]));
    store.transact(Durability::Full, put).unwrap();
    store.close().unwrap();
    // One of its leaves.
    let disk = SimDisk::holding(disk.files()).with_unreadable(FileId::Data, 5 * 4096..6 * 4096);
    let store = Store::open_on(Arc::new(disk), options()).unwrap();
    let mut tx = store.write().unwrap();
    assert!(matches!(tx.drop_table("t"), Err(Error::Io { .. })));
    assert!(matches!(tx.tables(), Err(Error::TransactionBroken { .. })));
    assert!(matches!(tx.commit(Durability::Full), Err(Error::TransactionBroken { .. })));
    // A name that exists changes nothing, and earlier changes are committed.
    let mut tx = store.write().unwrap();
    tx.create_table("u").unwrap();
    assert!(matches!(tx.create_table("t"), Err(Error::TableExists { .. })));
    tx.commit(Durability::Full).unwrap();
    assert_eq!(store.read().unwrap().tables().unwrap(), ["t", "u"]);
}

#[test]
fn a_transaction_returns_the_first_error_and_cannot_ignore_it() {
    let (mut reported, mut ignored) = (0, 0);
    for seed in 0..120 {
        let disk = Arc::new(Full::default());
        let store = Store::create_on(disk.clone(), small(), smallest(seed % 2 == 1), 1).unwrap();
        let table = store.transact(Durability::Full, |tx| tx.create_table("t")).unwrap();
        let done = store.transact(Durability::Full, |tx| match put_around(&disk, tx, table, seed) {
            (Some(first), Some(_)) if seed % 4 < 2 => Err(first),
            _ => Ok(()),
        });
        match done {
            Ok(()) => assert_eq!(rows(&store, "t"), 2500),
            Err(Error::Io { .. }) => reported += 1,
            Err(Error::TransactionBroken { .. }) => ignored += 1,
            Err(other) => panic!("{other}"),
        }
        assert!(matches!(rows(&store, "t"), 0 | 2500));
    }
    assert!(reported > 0 && ignored > 0, "{reported} reported, {ignored} ignored");
}

#[test]
fn a_transaction_that_is_dropped_while_its_pages_are_written_leaves_nothing() {
    for rows_put in [400, 700, 1000, 2000_u32] {
        let disk = Arc::new(Full::default());
        let store = Store::create_on(disk.clone(), small(), smallest(true), 1).unwrap();
        let table = store.transact(Durability::Full, |tx| tx.create_table("t")).unwrap();
        for fails_at in [0, 20] {
            let mut tx = store.write().unwrap();
            disk.fails_at.store(fails_at, Ordering::Relaxed);
            let mut chance = Chance::new(u64::from(rows_put));
            let put = |_| tx.put(table, &chance.draw().to_be_bytes(), &[5; 100]);
            // An error may come back, or the transaction ends first.
            let put = (0..rows_put).try_for_each(put);
            assert!(put.is_ok() || fails_at > 0);
            drop(tx);
            disk.fails_at.store(0, Ordering::Relaxed);
            store.transact(Durability::Full, |tx| tx.put(table, b"after", b"")).unwrap();
            assert_eq!(rows(&store, "t"), 1);
        }
    }
}

#[test]
fn a_program_that_panics_in_a_transaction_leaves_nothing_of_it_and_others_go_on_writing() {
    let disk = Arc::new(SimDisk::new());
    let store = Store::create_on(disk.clone(), small(), options(), 1).unwrap();
    let table = store.transact(Durability::Full, |tx| tx.create_table("t")).unwrap();
    // A transaction of a few pages, and one that is larger than memory.
    for rows in [3, 3000_u32] {
        let panicked = std::thread::scope(|scope| {
            let panicking = scope.spawn(|| {
                store.transact(Durability::Full, |tx| -> Result<(), Error> {
                    (0..rows).try_for_each(|row| tx.put(table, &row.to_be_bytes(), &[1; 100]))?;
                    panic!("the program's own");
                })
            });
            panicking.join().is_err()
        });
        assert!(panicked);
    }
    // Transactions in succession, and concurrent ones.
    store.transact(Durability::Full, |tx| tx.put(table, &[0xff; 8], b"")).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4_u8 {
            let store = &store;
            scope.spawn(move || {
                for number in 0..50 {
                    store.transact(Durability::Full, |tx| tx.put(table, &[thread, number], b"")).unwrap();
                }
            });
        }
    });
    assert_eq!(rows(&store, "t"), 201);
    store.checkpoint().unwrap();
    drop(store);
    let store = Store::open_on(Arc::new(SimDisk::holding(disk.files())), options()).unwrap();
    assert_eq!(rows(&store, "t"), 201);
}

#[test]
fn a_commit_followed_by_a_failed_checkpoint_succeeds_and_the_store_is_read_only() {
    let disk = Arc::new(SimDisk::new());
    // So much log that no commit has to wait for a checkpoint.
    let layout = Layout { vlfs: 24, ..small() };
    let store = Store::create_on(disk.clone(), layout, options(), 1).unwrap();
    let table = store.transact(Durability::Full, |tx| tx.create_table("t")).unwrap();
    let reads_fail = Trouble { refused: Refused::Reads, after: 0, times: u32::MAX };
    let mut done = 0;
    let committed = (0..1000_u32).find_map(|number| {
        let mut tx = store.write().unwrap();
        // Many pages, so that earlier ones are evicted and a checkpoint is due that reads the log.
        let changed =
            (0..20).try_for_each(|row| tx.put(table, &(row * 1000 + number).to_be_bytes(), &[1; 900]));
        changed.unwrap();
        disk.begin_trouble(reads_fail);
        let committed = tx.commit(Durability::Full);
        let met = disk.end_trouble();
        done += usize::from(committed.is_ok());
        met.then_some(committed)
    });
    committed.expect("a checkpoint reads the log").expect("the commit itself is done");
    assert_eq!(rows(&store, "t"), 20 * done);
    assert!(matches!(store.write().err(), Some(Error::ReadOnly { .. })));
    drop(store);
    let store = Store::open_on(Arc::new(SimDisk::holding(disk.files())), options()).unwrap();
    assert_eq!(rows(&store, "t"), 20 * done);
}

/// A disk whose log writes take 10 ms, once it is slow.
struct SlowLog {
    disk: Arc<dyn Disk>,
    is_slow: AtomicBool,
    in_flight: AtomicU64,
    most_in_flight: AtomicU64,
    /// Writes to the data file while two log writes were in flight: a commit appended.
    data_beside_log: AtomicU64,
}

impl SlowLog {
    fn open(directory: &Path, is_slow: bool) -> Arc<Self> {
        let disk = pagestore::disk::open_directory(directory).unwrap();
        let (in_flight, most_in_flight, data_beside_log) = Default::default();
        let is_slow = AtomicBool::new(is_slow);
        Arc::new(Self { disk, is_slow, in_flight, most_in_flight, data_beside_log })
    }
}

impl Disk for SlowLog {
    pagestore_disk::forward_to_disk!(read, sync, len, reserve, truncate, directory, scratch);

    fn write(&self, file: FileId, offset: u64, bytes: &[u8]) -> io::Result<()> {
        if file == FileId::Data && self.in_flight.load(Ordering::Relaxed) > 1 {
            self.data_beside_log.fetch_add(1, Ordering::Relaxed);
        }
        self.disk.write(file, offset, bytes)
    }

    fn write_through(&self, file: FileId, offset: u64, bytes: &[u8]) -> io::Result<()> {
        if file != FileId::Log || !self.is_slow.load(Ordering::Relaxed) {
            return self.disk.write_through(file, offset, bytes);
        }
        let in_flight = 1 + self.in_flight.fetch_add(1, Ordering::Relaxed);
        self.most_in_flight.fetch_max(in_flight, Ordering::Relaxed);
        std::thread::sleep(Duration::from_millis(10));
        let written = self.disk.write_through(file, offset, bytes);
        self.in_flight.fetch_sub(1, Ordering::Relaxed);
        written
    }
}

fn change_new_pages(store: &Store, pages: u32) -> WriteTx<'_> {
    let mut tx = store.write().unwrap();
    for number in 0..pages {
        let page = tx.allocate().unwrap();
        tx.page_mut(page).unwrap()[32..].fill(1 + number as u8 % 250);
    }
    tx
}

#[test]
fn the_log_of_a_commit_of_many_pages_waits_within_its_bound_on_a_slow_disk_and_two_writes_are_in_flight() {
    let place = tempfile::tempdir_in("/var/tmp").unwrap();
    let directory = place.path().join("store");
    let options = Options { publish: false, ..Options::default() };
    Store::create(&directory, Layout::default(), options).unwrap().close().unwrap();
    let disk = SlowLog::open(&directory, true);
    let store = Store::open_on(disk.clone(), options).unwrap();
    let tx = change_new_pages(&store, 4000);
    let is_committed = AtomicBool::new(false);
    let waiting_max = std::thread::scope(|scope| {
        let sampler = scope.spawn(|| {
            let mut most = 0;
            while !is_committed.load(Ordering::Relaxed) {
                most = store.stats().log_waiting_bytes.max(most);
                std::thread::sleep(Duration::from_micros(100));
            }
            most
        });
        tx.commit(Durability::Full).unwrap();
        is_committed.store(true, Ordering::Relaxed);
        sampler.join().unwrap()
    });
    // Two writes of half a mebibyte, the block that is being filled, and the end of a virtual log file.
    assert!((256 << 10..=1088 << 10).contains(&waiting_max), "{waiting_max} bytes");
    assert_eq!(disk.most_in_flight.load(Ordering::Relaxed), 2);
    assert!(store.stats().log_write_bytes > 14 << 20);
}

// Before anything is measured, a page is taken for 0.1 ms of recovery, and a mebibyte of log for 4 ms: 0.93 s after the first
// commit, and 0.1 s more while the second one appends. Opening reads too little log, one virtual log file, to measure it.
#[test]
fn a_checkpoint_that_is_behind_pauses_while_a_commit_of_many_pages_appends() {
    let place = tempfile::tempdir_in("/var/tmp").unwrap();
    let directory = place.path().join("store");
    let redo_target = Duration::from_millis(1300);
    let options = Options { publish: false, redo_target, cache_bytes: 128 << 20, ..Options::default() };
    let layout = Layout { vlf_bytes: 1 << 20, vlfs: 96, ..Layout::default() };
    Store::create(&directory, layout, options).unwrap().close().unwrap();
    let disk = SlowLog::open(&directory, false);
    let store = Store::open_on(disk.clone(), options).unwrap();
    change_new_pages(&store, 8000).commit(Durability::Full).unwrap();
    let begun = Instant::now();
    while store.stats().page_write_bytes < 4 << 20 {
        assert!(begun.elapsed() < Duration::from_secs(60), "no checkpoint begins");
        std::thread::sleep(Duration::from_millis(1));
    }
    let tx = change_new_pages(&store, 6000);
    disk.is_slow.store(true, Ordering::Relaxed);
    tx.commit(Durability::Full).unwrap();
    assert!(disk.most_in_flight.load(Ordering::Relaxed) == 2);
    // The step that was being written when the commit began: 4 MiB, mostly in writes of 256 KiB. Without pauses there are 70.
    let beside = disk.data_beside_log.load(Ordering::Relaxed);
    assert!(beside <= 32, "{beside} writes of the checkpoint beside the log");
    disk.is_slow.store(false, Ordering::Relaxed);
    store.checkpoint().unwrap();
    store.close().unwrap();
}
