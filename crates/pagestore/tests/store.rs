//! A store as a program uses it, on a real file system and on a disk that fails.

use pagestore::sim::{Fault, SimDisk};
use pagestore::{Durability, Error, Layout, Options, Recovery, Store, Tables};
use std::sync::Arc;

fn small() -> Layout {
    Layout { vlf_bytes: 256 << 10, vlfs: 3, ..Layout::default() }
}

fn place() -> tempfile::TempDir {
    tempfile::tempdir_in("/var/tmp").unwrap()
}

fn with_table(store: &Store) -> pagestore::Table {
    let mut tx = store.write().unwrap();
    let table = tx.create_table("t").unwrap();
    tx.commit(Durability::Full).unwrap();
    table
}

#[test]
fn a_store_is_created_only_in_an_empty_directory_and_opened_by_one_at_a_time() {
    let place = place();
    assert!(matches!(Store::open(place.path(), Options::default()), Err(Error::NotAStore { .. })));
    let directory = place.path().join("store");
    let store = Store::create(&directory, small(), Options::default()).unwrap();
    assert!(matches!(Store::open(&directory, Options::default()), Err(Error::Locked { .. })));
    store.close().unwrap();
    assert!(matches!(Store::create(&directory, small(), Options::default()), Err(Error::Exists { .. })));
    let store = Store::open(&directory, Options::default()).unwrap();
    assert!(store.recovery_report().clean);
    assert_eq!(store.recovery_report().pages, 0);
}

#[test]
fn commits_of_many_threads_share_log_writes_and_are_all_there_after_reopening() {
    const EACH: u32 = 100;
    let place = place();
    let directory = place.path().join("store");
    let store = Store::create(&directory, small(), Options::default()).unwrap();
    let table = with_table(&store);
    let before = store.stats();
    std::thread::scope(|scope| {
        for thread in 0..32_u32 {
            let store = &store;
            scope.spawn(move || {
                for number in 0..EACH {
                    let mut tx = store.write().unwrap();
                    tx.put(table, &(thread * EACH + number).to_be_bytes(), &[7; 50]).unwrap();
                    tx.commit(Durability::Full).unwrap();
                }
            });
        }
    });
    let after = store.stats();
    let (commits, writes) = (after.commits - before.commits, after.log_writes - before.log_writes);
    assert_eq!(commits, u64::from(32 * EACH));
    assert!(writes * 2 < commits, "{writes} log writes for {commits} commits");
    drop(store);
    for recovery in [Recovery::Serial, Recovery::Prefetch, Recovery::Wide, Recovery::Instant] {
        let store = Store::open(&directory, Options { recovery, ..Options::default() }).unwrap();
        let reader = store.read().unwrap();
        assert_eq!(reader.range(table, &[], None).unwrap().map(Result::unwrap).count(), 32 * EACH as usize);
    }
}

#[test]
fn a_transaction_larger_than_the_cache_keeps_to_the_cache_and_survives() {
    const ROWS: u32 = 4000;
    let place = place();
    let directory = place.path().join("store");
    let cache_bytes = 512 << 10;
    let options = Options { cache_bytes, ..Options::default() };
    let layout = Layout { vlf_bytes: 1 << 20, ..Layout::default() };
    let store = Store::create(&directory, layout, options).unwrap();
    let table = with_table(&store);
    let mut tx = store.write().unwrap();
    for row in 0..ROWS {
        tx.put(table, &row.wrapping_mul(2_654_435_761).to_be_bytes(), &[row as u8; 800]).unwrap();
    }
    assert!(store.stats().cached_bytes <= cache_bytes as u64);
    tx.commit(Durability::Full).unwrap();
    assert!(store.stats().cached_bytes <= cache_bytes as u64);
    drop(store);
    let store = Store::open(&directory, options).unwrap();
    let reader = store.read().unwrap();
    assert_eq!(reader.range(table, &[], None).unwrap().map(Result::unwrap).count(), ROWS as usize);
    // As large, and given up: nothing of it is left.
    let mut tx = store.write().unwrap();
    for row in 0..ROWS {
        tx.delete(table, &row.wrapping_mul(2_654_435_761).to_be_bytes()).unwrap();
    }
    tx.rollback();
    let reader = store.read().unwrap();
    assert_eq!(reader.range(table, &[], None).unwrap().map(Result::unwrap).count(), ROWS as usize);
}

#[test]
fn a_transaction_that_the_log_cannot_hold_is_refused_and_the_store_goes_on() {
    let options = Options {
        cache_bytes: 256 << 10,
        log_limit_bytes: 3 * (256 << 10),
        background: false,
        ..Options::default()
    };
    let store = Store::create_on(Arc::new(SimDisk::new()), small(), options, 1).unwrap();
    let table = with_table(&store);
    let mut tx = store.write().unwrap();
    let refused = (0..4000_u32).find_map(|row| tx.put(table, &row.to_be_bytes(), &[1; 800]).err());
    assert!(matches!(refused, Some(Error::LogFull { .. })), "{refused:?}");
    tx.rollback();
    let mut tx = store.write().unwrap();
    tx.put(table, b"after", b"1").unwrap();
    tx.commit(Durability::Full).unwrap();
    assert_eq!(store.read().unwrap().range(table, &[], None).unwrap().count(), 1);
}

#[test]
fn after_the_first_failed_write_nothing_is_written_and_what_was_acknowledged_is_read() {
    let options = Options { background: false, ..Options::default() };
    let dry = Arc::new(SimDisk::new());
    let store = Store::create_on(dry.clone(), small(), options, 1).unwrap();
    with_table(&store);
    let disk = Arc::new(SimDisk::new().with_fault(dry.ops(), Fault::Io));
    let store = Store::create_on(disk.clone(), small(), options, 1).unwrap();
    let table = with_table(&store);
    let mut tx = store.write().unwrap();
    tx.put(table, b"lost", b"1").unwrap();
    assert!(matches!(tx.commit(Durability::Full), Err(Error::Io { .. })));
    let ops = disk.ops();
    assert!(matches!(store.write().map(|_| ()), Err(Error::ReadOnly { .. })));
    assert!(matches!(store.checkpoint(), Err(Error::ReadOnly { .. })));
    assert_eq!(store.read().unwrap().get(table, b"lost").unwrap(), None);
    drop(store);
    assert_eq!(disk.ops(), ops, "a failed write is not tried again");
}

#[test]
fn delayed_commits_are_read_at_once_and_durable_within_their_time() {
    let place = place();
    let directory = place.path().join("store");
    let store = Store::create(&directory, small(), Options::default()).unwrap();
    let table = with_table(&store);
    let mut tx = store.write().unwrap();
    tx.put(table, b"k", b"v").unwrap();
    let committed = tx.commit(Durability::Delayed).unwrap().unwrap();
    assert_eq!(store.read().unwrap().get(table, b"k").unwrap(), Some(b"v".to_vec()));
    let begun = std::time::Instant::now();
    while store.stats().durable_sequence < committed.sequence {
        assert!(begun.elapsed().as_secs() < 20, "it is never written");
        std::thread::yield_now();
    }
}
