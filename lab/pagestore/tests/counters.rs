//! The counters of a running store, seen from inside and from other processes.

use crashlab::SimDisk;
use pagestore::disk::{Disk, FileId, IoEvent, PageWrite};
use pagestore::{Apply, Durability, Layout, Options, Recovery, Store, Table};
use pagestore_counters::{CommitPart, ReadError, Reader};
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(20);

fn small() -> Layout {
    Layout { vlf_bytes: 256 << 10, vlfs: 3, ..Layout::default() }
}

fn place() -> tempfile::TempDir {
    tempfile::tempdir_in("/var/tmp").unwrap()
}

fn with_table(store: &Store) -> Table {
    let mut tx = store.write().unwrap();
    let table = tx.create_table("t").unwrap();
    tx.commit(Durability::Full).unwrap();
    table
}

fn commit(store: &Store, table: Table, key: u32) {
    let mut tx = store.write().unwrap();
    tx.put(table, &key.to_be_bytes(), &[key as u8; 100]).unwrap();
    tx.commit(Durability::Full).unwrap();
}

#[test]
fn the_parts_of_commits_add_up_to_the_whole_and_the_whole_to_the_time_of_the_calls() {
    let place = place();
    // In one virtual log file, so that no commit needs two writes.
    let layout = Layout { vlf_bytes: 4 << 20, vlfs: 2, ..Layout::default() };
    let store = Store::create(&place.path().join("store"), layout, Options::default()).unwrap();
    let table = with_table(&store);
    let (before, stats) = (store.commit_times(), store.stats());
    let mut called = Duration::ZERO;
    for key in 0..300 {
        let mut tx = store.write().unwrap();
        tx.put(table, &u32::to_be_bytes(key), &[7; 100]).unwrap();
        let begun = Instant::now();
        tx.commit(Durability::Full).unwrap();
        called += begun.elapsed();
    }
    let (times, after) = (store.commit_times(), store.stats());
    assert_eq!(times.commits() - before.commits(), 300);
    let sum = |part: CommitPart| times.parts[part as usize].sum_ns - before.parts[part as usize].sum_ns;
    let whole = times.whole.sum_ns - before.whole.sum_ns;
    assert_eq!(CommitPart::ALL.into_iter().map(sum).sum::<u64>(), whole);
    let called = called.as_nanos() as u64;
    assert!(whole <= called && whole * 10 >= called * 7, "{whole} ns told, {called} ns seen from outside");
    // With one thread every commit does its own write, and no earlier write is in flight.
    assert_eq!(sum(CommitPart::Queued), 0);
    assert_eq!(sum(CommitPart::Submitted), after.log_write_ns - stats.log_write_ns);
    assert!(sum(CommitPart::Submitted) * 2 > whole, "a commit is mostly its write: {times:?}");
    assert_eq!(times.parts[CommitPart::Durable as usize].latencies.count(), times.commits());
}

#[test]
fn turns_to_write_are_timed_until_the_records_are_in_the_log_whether_or_not_the_commit_waits() {
    let place = place();
    let store = Store::create(&place.path().join("store"), small(), Options::default()).unwrap();
    let table = with_table(&store);
    let held = Duration::from_millis(20);
    for durability in [Durability::Full, Durability::Delayed] {
        let before = store.counters().commits.writer_ns.unwrap();
        let began = Instant::now();
        let mut tx = store.write().unwrap();
        tx.put(table, b"k", b"v").unwrap();
        std::thread::sleep(held);
        tx.commit(durability).unwrap();
        let (turn_ns, whole) = (store.counters().commits.writer_ns.unwrap() - before, began.elapsed());
        let turn = Duration::from_nanos(turn_ns);
        assert!(turn >= held && turn <= whole, "{turn:?} of {whole:?}");
    }
    let before = store.counters().commits.writer_ns.unwrap();
    drop(store.write().unwrap());
    assert_eq!(store.counters().commits.writer_ns.unwrap(), before, "nothing was committed");
}

#[test]
fn commits_that_wait_for_each_other_are_queued_and_slow_ones_are_kept_with_their_parts() {
    let place = place();
    let store = Store::create(&place.path().join("store"), small(), Options::default()).unwrap();
    let table = with_table(&store);
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let store = &store;
            scope.spawn(move || (0..80).for_each(|key| commit(store, table, thread * 1000 + key)));
        }
    });
    // A commit that waits long for the writer lock.
    let held = store.write().unwrap();
    std::thread::scope(|scope| {
        let (store, (begun, has_begun)) = (&store, std::sync::mpsc::channel());
        scope.spawn(move || {
            begun.send(()).unwrap();
            commit(store, table, 77_777);
        });
        has_begun.recv().unwrap();
        std::thread::sleep(Duration::from_millis(200));
        held.rollback().unwrap();
    });
    let times = store.commit_times();
    assert_eq!(times.commits(), 640 + 2, "the table's commit, all threads', and the one that waited");
    let slowest = times.slow.last().expect("a commit of 200 ms is a slow one");
    let queued = slowest.parts_ns[CommitPart::Queued as usize];
    assert_eq!(slowest.sequence, store.stats().last_sequence);
    assert!(queued > 100_000_000 && queued * 2 > slowest.whole_ns(), "{slowest:?}");
    assert!(times.slow.iter().all(|slow| slow.whole_ns() > 0) && times.slow.len() <= 16);
    assert!(times.slow_from_ns < slowest.whole_ns() && times.whole.longest_ns >= slowest.whole_ns());
}

/// A disk that counts its I/O independently of the store.
#[derive(Default)]
struct CountingDisk {
    disk: SimDisk,
    /// For each file: reads, bytes; writes, bytes; syncs.
    seen: [[AtomicU64; 5]; 3],
    /// Page writes through a memory mapping.
    mapped: AtomicU64,
}

impl CountingDisk {
    fn count(&self, file: FileId, at: usize, bytes: usize) {
        let seen = &self.seen[FileId::ALL.iter().position(|own| *own == file).unwrap()];
        seen[at].fetch_add(1, Relaxed);
        if at < 4 {
            seen[at + 1].fetch_add(bytes as u64, Relaxed);
        }
    }
}

impl Disk for CountingDisk {
    pagestore_disk::forward_to_disk!(len);

    fn read(&self, file: FileId, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.count(file, 0, buffer.len());
        self.disk.read(file, offset, buffer)
    }
    fn write(&self, file: FileId, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.count(file, 2, bytes.len());
        self.disk.write(file, offset, bytes)
    }
    fn write_through(&self, file: FileId, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.count(file, 2, bytes.len());
        self.disk.write_through(file, offset, bytes)
    }
    fn write_many(
        &self,
        writes: &[PageWrite<'_>],
        apply: Apply,
        _: usize,
        on_event: &(dyn Fn(IoEvent) + Sync),
    ) -> io::Result<()> {
        let mapped = if apply == Apply::Mapped { writes.len() as u64 } else { 0 };
        self.mapped.fetch_add(mapped, Relaxed);
        let write = |offset: u64, bytes: &[u8]| self.write(FileId::Data, offset, bytes);
        writes.iter().try_for_each(|page| page.run_with(write, on_event))
    }
    fn sync(&self, file: FileId) -> io::Result<()> {
        self.count(file, 4, 0);
        self.disk.sync(file)
    }
}

#[test]
fn the_statistics_of_the_files_equal_the_io_on_the_disk() {
    let disk = Arc::new(CountingDisk::default());
    let options = Options { background: false, cache_bytes: 1 << 20, ..Options::default() };
    let store = Store::create_on(disk.clone(), small(), options, 7).unwrap();
    let table = with_table(&store);
    (0..200).for_each(|key| commit(&store, table, key * 1000));
    store.checkpoint().unwrap();
    (0..50).for_each(|key| commit(&store, table, key));
    for (statistics, seen) in store.file_statistics().iter().zip(&disk.seen) {
        let counters = statistics.counters;
        let sync = counters.sync.known().unwrap().count;
        let reported =
            [counters.read.count, counters.read.bytes, counters.write.count, counters.write.bytes, sync];
        assert_eq!(reported, [0, 1, 2, 3, 4].map(|at| seen[at].load(Relaxed)), "{}", statistics.file);
        assert_eq!(statistics.latencies.write.count(), counters.write.count);
    }
}

#[test]
fn mapped_writes_reach_the_disk_as_such_and_are_counted() {
    let disk = Arc::new(CountingDisk::default());
    let options = Options { background: false, ..Options::default() };
    let store = Store::create_on(disk.clone(), small(), options, 7).unwrap();
    let table = with_table(&store);
    (0..50).for_each(|key| commit(&store, table, key));
    drop(store);
    let options = Options { recovery: Recovery::Serial, apply: Apply::Mapped, ..options };
    let store = Store::open_on(disk.clone(), options).unwrap();
    let mapped = disk.mapped.load(Relaxed);
    assert!(mapped > 0, "recovery wrote through memory");
    let data = store.file_statistics().into_iter().find(|file| file.file == FileId::Data).unwrap();
    assert_eq!(data.counters.write.count, mapped);
}

#[test]
fn another_process_reads_the_same_counters_as_the_store_and_a_reopened_store_starts_at_zero() {
    let place = place();
    let directory = place.path().join("store");
    // Large enough not to grow: only commits write to the log file.
    let layout = Layout { vlf_bytes: 1 << 20, ..small() };
    Store::create(&directory, layout, Options::default()).unwrap().close().unwrap();
    assert!(matches!(Reader::open(&directory), Err(ReadError::NotPublished { .. })));
    assert!(matches!(Reader::open(place.path()), Err(ReadError::NotAStore { .. })));

    let store = Store::open(&directory, Options::default()).unwrap();
    let table = with_table(&store);
    let live = Reader::open(&directory).unwrap();
    (0..100).for_each(|key| commit(&store, table, key));
    store.checkpoint().unwrap();
    assert_eq!((live.owner().opening.epoch, live.owner().process.pid), (2, std::process::id()));
    let (published, stats) = (live.published().unwrap(), store.stats());
    assert_eq!(published, store.counters());
    assert_eq!(live.commit_times().unwrap(), store.commit_times());
    let [_, data, log] = &published.files[..] else { panic!("{published:?}") };
    assert_eq!(
        (log.counters.write.count, log.counters.write.bytes),
        (stats.log_writes, stats.log_write_bytes)
    );
    assert_eq!(
        (data.counters.write.count, data.counters.write.bytes),
        (stats.page_writes, stats.page_write_bytes)
    );
    assert_eq!(data.counters.read.count, stats.page_reads);
    assert_eq!(data.counters.sync.known().unwrap().count, stats.data_syncs + 1, "opening syncs each file");
    let counts = live.counts().unwrap();
    assert_eq!((counts.commits, counts.checkpoints), (101, 1));
    // Each commit is one record of a page and one of the commit, in a block of 4 KiB.
    let record_bytes = counts.log_record_bytes / counts.commits;
    assert!((60..600).contains(&record_bytes), "{record_bytes} bytes of records a commit");

    let state = live.log_state(PATIENCE).unwrap();
    let holders = store.log_holders();
    assert_eq!((state.redo, state.next, state.active), (holders.redo, holders.next, None));
    assert_eq!((state.oldest_dirty_page, state.last_certificate), (None, holders.last_certificate));
    assert_eq!((state.last_sequence, state.durable_sequence), (stats.last_sequence, stats.last_sequence));
    assert_eq!(state.vlfs.iter().filter(|vlf| vlf.status == 2).count(), 1);
    commit(&store, table, 5);
    let state = live.log_state(PATIENCE).unwrap();
    assert_eq!(state.oldest_dirty_page, store.log_holders().oldest_dirty_page);
    assert!(state.dirty_pages > 0 && state.oldest_dirty_page.is_some() && !state.read_only);

    assert!(live.is_open());
    drop(store);
    assert!(!live.is_open());
    assert!(matches!(Reader::open(&directory), Err(ReadError::NotPublished { .. })));
    let store = Store::open(&directory, Options::default()).unwrap();
    let live = Reader::open(&directory).unwrap();
    assert_eq!((live.owner().opening.epoch, live.counts().unwrap().commits), (3, 0));
    assert!(store.published().unwrap().exists());
    drop(store);
    let private = Store::open(&directory, Options { publish: false, ..Options::default() }).unwrap();
    assert!(private.published().is_err() && Reader::open(&directory).is_err());
}

#[test]
fn a_store_with_long_delayed_commits_still_publishes_the_state_of_its_log_soon() {
    let place = place();
    let directory = place.path().join("store");
    let options = Options { delayed_time: Duration::from_secs(60), ..Options::default() };
    let store = Store::create(&directory, small(), options).unwrap();
    let live = Reader::open(&directory).unwrap();
    let table = with_table(&store);
    for key in 0..3 {
        commit(&store, table, key);
        let requested = Instant::now();
        let state = live.log_state(PATIENCE).unwrap();
        assert_eq!(state.last_sequence, store.stats().last_sequence);
        assert!(requested.elapsed() < Duration::from_secs(2), "{:?}", requested.elapsed());
    }
}

const CHILD: &str = "PAGESTORE_COUNTERS_CHILD";

#[test]
fn the_counters_of_a_killed_store_are_known_for_dead_and_removed() {
    if let Some(directory) = std::env::var_os(CHILD) {
        let store = Store::create(Path::new(&directory), small(), Options::default()).unwrap();
        let table = with_table(&store);
        (0..9).for_each(|key| commit(&store, table, key));
        println!("\npublished {}", store.published().unwrap().display());
        io::stdout().flush().unwrap();
        std::thread::sleep(Duration::from_secs(600));
        return;
    }
    let place = place();
    let directory = place.path().join("store");
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["the_counters_of_a_killed_store_are_known_for_dead_and_removed", "--exact", "--nocapture"])
        .env(CHILD, &directory)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let published = lines.filter_map(|line| line.strip_prefix("published ").map(str::to_owned)).next();
    let published = published.expect("the child opens its store");
    let live = Reader::open(&directory).unwrap();
    // The meta page, the table, and the rows.
    assert_eq!((live.owner().process.pid, live.counts().unwrap().commits), (child.id(), 11));
    assert!(live.log_state(PATIENCE).is_some_and(|state| state.last_sequence == 11));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!live.is_open());
    assert!(matches!(Reader::open(&directory), Err(ReadError::NotPublished { .. })));
    assert!(!Path::new(&published).exists());
}
