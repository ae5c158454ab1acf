//! A store as programs use it, on a real file system and on a disk that fails.

use crashlab::{Fault, SimDisk};
use pagestore::{Durability, Error, Layout, Options, Pages, Recovery, Store, Tables};
use std::sync::Arc;
use std::time::Instant;

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
fn a_fifo_in_place_of_a_file_is_refused_without_blocking() {
    let place = place();
    let directory = place.path().join("store");
    Store::create(&directory, small(), Options::default()).unwrap().close().unwrap();
    for name in ["control", "data", "log"] {
        let (own, kept) = (directory.join(name), directory.join("kept"));
        std::fs::rename(&own, &kept).unwrap();
        let made = std::process::Command::new("mkfifo").arg(&own).status().unwrap();
        assert!(made.success());
        for opened in [
            Store::open(&directory, Options::default()).map(|_| ()),
            pagestore::inspect::Inspection::open(&directory).map(|_| ()),
        ] {
            let error = opened.unwrap_err();
            assert!(matches!(&error, Error::NotAStore { why, .. } if why.contains(name)), "{error}");
        }
        std::fs::remove_file(&own).unwrap();
        std::fs::rename(&kept, &own).unwrap();
    }
    Store::open(&directory, Options::default()).unwrap();
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
    // An equally large transaction is rolled back without a trace.
    let mut tx = store.write().unwrap();
    for row in 0..ROWS {
        tx.delete(table, &row.wrapping_mul(2_654_435_761).to_be_bytes()).unwrap();
    }
    tx.rollback().unwrap();
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
    (0..4000_u32).for_each(|row| tx.put(table, &row.to_be_bytes(), &[1; 800]).unwrap());
    let refused = tx.commit(Durability::Full);
    assert!(matches!(refused, Err(Error::LogFull { .. })), "{refused:?}");
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
    let begun = Instant::now();
    while store.stats().durable_sequence < committed.sequence {
        assert!(begun.elapsed().as_secs() < 20, "it is never written");
        std::thread::yield_now();
    }
}

#[test]
fn transact_commits_on_success_and_rolls_back_on_failure() {
    let store = Store::create_on(Arc::new(SimDisk::new()), small(), Options::default(), 1).unwrap();
    let table = store.transact(Durability::Full, |tx| tx.create_table("t")).unwrap();
    let there = store.transact(Durability::Full, |tx| {
        tx.put(table, b"k", b"v")?;
        tx.delete(table, b"k")
    });
    assert!(there.unwrap());
    let failed = store.transact(Durability::Delayed, |tx| {
        tx.put(table, b"half", b"v")?;
        tx.put(table, b"too long", &[0; 5000])
    });
    assert!(matches!(failed, Err(Error::TooLong { .. })), "{failed:?}");
    store.transact(Durability::Delayed, |tx| tx.put(table, b"kept", b"v")).unwrap();
    let reader = store.read().unwrap();
    let keys: Vec<Vec<u8>> = reader.range(table, &[], None).unwrap().map(|entry| entry.unwrap().0).collect();
    assert_eq!(keys, [b"kept"]);
}

#[test]
fn pages_of_every_size_keep_their_tables_through_a_crash_with_every_strategy_of_recovery() {
    const ROWS: u32 = 600;
    let row = |n: u32| (n.wrapping_mul(2_654_435_761).to_be_bytes(), vec![n as u8; 700]);
    for page_bytes in [4 << 10, 8 << 10, 16 << 10] {
        for recovery in [Recovery::Serial, Recovery::Prefetch, Recovery::Wide, Recovery::Instant] {
            let place = place();
            let directory = place.path().join("store");
            let store =
                Store::create(&directory, Layout { page_bytes, ..small() }, Options::default()).unwrap();
            let table = with_table(&store);
            for first in (0..ROWS).step_by(50) {
                let put = |tx: &mut pagestore::WriteTx<'_>| {
                    (first..first + 50).map(row).try_for_each(|(key, value)| tx.put(table, &key, &value))
                };
                store.transact(Durability::Full, put).unwrap();
            }
            // The longest entry is about a quarter of a page.
            let long = vec![7; page_bytes / 4 - 100];
            store.transact(Durability::Full, |tx| tx.put(table, b"", &long)).unwrap();
            let longer = store.transact(Durability::Full, |tx| tx.put(table, b"", &vec![7; page_bytes / 4]));
            assert!(matches!(longer, Err(Error::TooLong { .. })), "{page_bytes}: {longer:?}");
            // Not closed: recovery finds what a killed process leaves.
            drop(store);
            let store = Store::open(&directory, Options { recovery, ..Options::default() }).unwrap();
            assert!(!store.recovery_report().clean && store.recovery_report().pages > 0);
            let reader = store.read().unwrap();
            assert_eq!(reader.page(pagestore::PageNo(1)).unwrap().len(), page_bytes);
            assert_eq!(reader.get(table, b"").unwrap(), Some(long));
            for (key, value) in (0..ROWS).map(row) {
                assert_eq!(reader.get(table, &key).unwrap(), Some(value), "{page_bytes} {recovery:?}");
            }
            drop(reader);
            let begun = Instant::now();
            while let Some(progress) = store.recovery_progress() {
                assert!(progress.pages_left <= progress.pages && progress.pages > 0, "{progress:?}");
                assert!(begun.elapsed().as_secs() < 20, "it never ends: {progress:?}");
                std::thread::yield_now();
            }
            assert_eq!(store.recovery_pages_left(), 0);
        }
    }
}

#[test]
fn delayed_commits_wait_for_no_more_bytes_than_their_bound() {
    // Without background threads nothing else makes them durable.
    let options = Options { background: false, delayed_bytes: 8 << 10, ..Options::default() };
    let store = Store::create_on(Arc::new(SimDisk::new()), small(), options, 1).unwrap();
    let table = with_table(&store);
    let (mut waited, mut since) = (false, store.stats().log_write_bytes);
    for number in 0..200_u32 {
        store.transact(Durability::Delayed, |tx| tx.put(table, &number.to_be_bytes(), &[7; 300])).unwrap();
        let stats = store.stats();
        waited |= stats.durable_sequence < stats.last_sequence;
        if stats.log_write_bytes > since {
            since = stats.log_write_bytes;
            assert_eq!(stats.durable_sequence, stats.last_sequence, "a write takes all that wait");
        }
        // A record of 300 bytes and its commit record: fewer than 30 of them are 8 KiB.
        assert!(stats.last_sequence - stats.durable_sequence < 30, "{stats:?}");
    }
    assert!(waited, "none waited");
}

#[test]
fn a_concurrency_of_zero_means_one() {
    let disk = Arc::new(SimDisk::new());
    let options = Options {
        parallel: 0,
        log_writes_in_flight: 0,
        background: false,
        publish: false,
        ..Options::default()
    };
    let layout = Layout { vlf_bytes: 1 << 20, vlfs: 8, ..Layout::default() };
    let store = Store::create_on(disk.clone(), layout, options, 1).unwrap();
    let table = with_table(&store);
    let mut tx = store.write().unwrap();
    for row in 0..1_000_u32 {
        tx.put(table, &row.to_be_bytes(), &[7; 900]).unwrap();
    }
    tx.commit(Durability::Full).unwrap();
    let crashed = disk.files();
    store.checkpoint().unwrap();
    for recovery in [Recovery::Serial, Recovery::Prefetch, Recovery::Wide, Recovery::Instant] {
        let disk = Arc::new(SimDisk::holding(crashed.clone()));
        let store = Store::open_on(disk, Options { recovery, ..options }).unwrap();
        store.checkpoint().unwrap();
        let reader = store.read().unwrap();
        assert_eq!(reader.range(reader.table("t").unwrap(), b"", None).unwrap().count(), 1_000);
    }
}
