//! Compaction: what is read stays the same, the files become shorter, and nothing that is still needed goes.

use crashlab::{Fault, Files, Op, SimDisk};
use pagestore::disk::{Disk, FileId};
use pagestore::{
    Compaction, CompactionHolder, Durability, Error, Layout, Options, Pages, Recovery, Result, Store, Table,
    Tables, WriteTx,
};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

const LAYOUT: Layout = Layout { vlf_bytes: 128 << 10, vlfs: 2, page_bytes: 4096, log_sector_bytes: 4096 };
const PAGE: u64 = 4096;

fn options() -> Options {
    let quiet = Options { background: false, publish: false, ..Options::default() };
    Options { cache_bytes: 4 << 20, log_limit_bytes: 16 << 20, ..quiet }
}

fn create() -> (Arc<SimDisk>, Store) {
    let disk = Arc::new(SimDisk::new());
    let store = Store::create_on(disk.clone(), LAYOUT, options(), 1).unwrap();
    (disk, store)
}

fn open(files: Files) -> Store {
    Store::open_on(Arc::new(SimDisk::holding(files)), options()).unwrap()
}

fn key(number: u32) -> [u8; 4] {
    // In an order that is not that of the keys, so that leaves are split in the middle.
    number.wrapping_mul(0x9e37_79b1).to_be_bytes()
}

fn fill(store: &Store, name: &str, rows: std::ops::Range<u32>) -> Table {
    let mut tx = store.write().unwrap();
    let table = tx.open_or_create_table(name).unwrap();
    for row in rows {
        tx.put(table, &key(row), &[row as u8; 150]).unwrap();
    }
    tx.commit(Durability::Full).unwrap();
    table
}

fn thin(store: &Store, table: Table, one_in: u32) {
    let stays = |key: &[u8]| u32::from_be_bytes(key.try_into().unwrap()).is_multiple_of(one_in);
    store.transact(Durability::Full, |tx| tx.retain(table, |key, _| stays(key))).unwrap();
}

type Contents = BTreeMap<String, Vec<(Vec<u8>, Vec<u8>)>>;

fn contents(reader: &impl Tables) -> Contents {
    let read = |name: &String| {
        let table = reader.table(name).unwrap();
        let rows: Vec<_> = reader.range(table, &[], None).unwrap().map(Result::unwrap).collect();
        assert_eq!(reader.len(table).unwrap(), rows.len() as u64, "{name}");
        (name.clone(), rows)
    };
    reader.tables().unwrap().iter().map(read).collect()
}

/// All steps; fails if there are too many.
fn compact(store: &Store) -> Compaction {
    for _ in 0..100_000 {
        let done = store.compact(16).unwrap();
        if done.is_done || done.held_by == Some(CompactionHolder::Snapshot) {
            return done;
        }
    }
    panic!("a compaction does not end");
}

fn data_pages(disk: &SimDisk) -> u64 {
    disk.len(FileId::Data).unwrap() / PAGE
}

/// The pages of a store into which these tables were loaded in the order of their keys.
fn pages_of_fresh_load(all: &Contents) -> u64 {
    let (disk, store) = create();
    let mut tx = store.write().unwrap();
    for (name, rows) in all {
        let table = tx.create_table(name).unwrap();
        rows.iter().for_each(|(key, value)| tx.put(table, key, value).unwrap());
    }
    tx.commit(Durability::Full).unwrap();
    store.close().unwrap();
    data_pages(&disk)
}

#[test]
fn a_compacted_store_is_about_as_short_as_one_that_was_just_loaded() {
    let (disk, store) = create();
    let tables: Vec<_> = ["a", "b", "c"].iter().map(|name| fill(&store, name, 0..6000)).collect();
    tables.iter().for_each(|table| thin(&store, *table, 3));
    store.transact(Durability::Full, |tx| tx.drop_table("b")).unwrap();
    store.checkpoint().unwrap();
    let (before, pages) = (contents(&store.read().unwrap()), data_pages(&disk));
    let done = compact(&store);
    assert!(done.is_done && done.pages_moved > 0 && done.pages_freed > 0, "{done:?}");
    assert_eq!(contents(&store.read().unwrap()), before);
    let after = data_pages(&disk);
    assert_eq!(done.data_bytes_given_back, (pages - after) * PAGE);
    let fresh = pages_of_fresh_load(&before);
    assert!(after <= fresh + fresh / 20 + 2, "{pages} pages became {after}, a fresh load has {fresh}");
    // The handles are as good as before, and the store goes on.
    thin(&store, tables[0], 2);
    fill(&store, "a", 0..3000);
    let expected = contents(&store.read().unwrap());
    drop(store);
    assert_eq!(contents(&open(disk.files()).read().unwrap()), expected);
}

#[test]
fn what_was_repacked_once_is_left_alone() {
    let (_, store) = create();
    let table = fill(&store, "t", 0..3000);
    thin(&store, table, 2);
    assert!(compact(&store).pages_repacked > 0);
    let again = compact(&store);
    assert!(again.pages_moved == 0 && again.pages_repacked <= 4, "{again:?}");
}

#[test]
fn a_snapshot_holds_the_old_places_until_it_ends() {
    let (disk, store) = create();
    let table = fill(&store, "t", 0..4000);
    store.checkpoint().unwrap();
    let reader = store.read().unwrap();
    let (before, pages) = (contents(&reader), data_pages(&disk));
    thin(&store, table, 4);
    let after = contents(&store.read().unwrap());
    assert_eq!(compact(&store).held_by, Some(CompactionHolder::Snapshot));
    // Pages past the end are added again while the snapshot reads what they were.
    fill(&store, "more", 0..1000);
    assert_eq!(contents(&reader), before);
    assert!(data_pages(&disk) >= pages);
    drop(reader);
    let done = compact(&store);
    assert!(done.is_done && done.data_bytes_given_back > 0, "{done:?}");
    let mut found = contents(&store.read().unwrap());
    assert_eq!(found.remove("more").map(|rows| rows.len()), Some(1000));
    assert_eq!(found, after);
    drop(store);
    let mut found = contents(&open(disk.files()).read().unwrap());
    found.remove("more");
    assert_eq!(found, after);
}

#[test]
fn a_page_of_the_users_own_stays_and_is_named_as_the_reason() {
    let (disk, store) = create();
    let table = fill(&store, "t", 0..4000);
    let own = store.transact(Durability::Full, |tx| {
        let own = tx.allocate()?;
        tx.page_mut(own)?[40..].fill(7);
        Ok(own)
    });
    let own = own.unwrap();
    thin(&store, table, 4);
    let before = contents(&store.read().unwrap());
    let mut held = None;
    loop {
        let done = store.compact(16).unwrap();
        held = held.or(done.held_by);
        if done.is_done {
            break;
        }
    }
    assert_eq!(held, Some(CompactionHolder::Page(own)));
    assert!(data_pages(&disk) > own.0);
    assert_eq!(store.read().unwrap().page(own).unwrap()[40..], [7; 4056]);
    assert_eq!(contents(&store.read().unwrap()), before);
    // The free pages before it are used again.
    let count = store.read().unwrap().page_count().unwrap();
    fill(&store, "more", 0..1000);
    assert_eq!(store.read().unwrap().page_count().unwrap(), count);
    // Without it the file ends earlier.
    store.transact(Durability::Full, |tx| tx.free(own).and_then(|()| tx.drop_table("more"))).unwrap();
    compact(&store);
    assert!(data_pages(&disk) < own.0 / 2);
    assert!(matches!(store.read().unwrap().page(own), Err(Error::NoSuchPage { .. })));
}

#[test]
fn handles_and_snapshots_find_a_root_that_was_moved_and_a_handle_of_before_is_refused_later() {
    let (disk, store) = create();
    let filler = fill(&store, "filler", 0..4000);
    let moved = fill(&store, "moved", 0..40);
    let reader = store.read().unwrap();
    thin(&store, filler, 100);
    compact(&store);
    let renewed = store.read().unwrap().table("moved").unwrap();
    assert_ne!(renewed, moved, "its root was near the end");
    for handle in [moved, renewed] {
        assert_eq!(reader.len(handle).unwrap(), 40);
        assert_eq!(reader.get(handle, &key(7)).unwrap(), Some(vec![7; 150]));
        let put = |tx: &mut WriteTx<'_>| tx.put(handle, &key(1000), b"new");
        store.transact(Durability::Full, put).unwrap();
        assert_eq!(store.read().unwrap().len(handle).unwrap(), 41);
    }
    drop(reader);
    compact(&store);
    // Pages of the same table come to where its root was.
    let more = |tx: &mut WriteTx<'_>| (2000..6000).try_for_each(|row| tx.put(moved, &key(row), &[1; 150]));
    store.transact(Durability::Full, more).unwrap();
    assert_eq!(store.read().unwrap().len(moved).unwrap(), 4041);
    store.close().unwrap();
    let store = open(disk.files());
    let stale = store.read().unwrap().get(moved, &key(7));
    assert!(matches!(stale, Err(Error::StaleTable { .. })), "{stale:?}");
    assert_eq!(store.read().unwrap().len(renewed).unwrap(), 4041);
}

#[test]
fn readers_and_a_writer_go_on_during_a_compaction() {
    let background = Options { background: true, ..options() };
    let disk = Arc::new(SimDisk::new());
    let store = Store::create_on(disk.clone(), LAYOUT, background, 1).unwrap();
    let table = fill(&store, "t", 0..5000);
    thin(&store, table, 4);
    let still = contents(&store.read().unwrap());
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !store.compact(8).unwrap().is_done {
                std::thread::yield_now();
            }
            done.store(true, std::sync::atomic::Ordering::Release);
        });
        let mut number = 0_u32;
        while !done.load(std::sync::atomic::Ordering::Acquire) {
            let put = |tx: &mut WriteTx<'_>| {
                let own = tx.open_or_create_table("own")?;
                tx.put(own, &number.to_be_bytes(), &[number as u8; 200])?;
                if number.is_multiple_of(3) {
                    tx.delete(own, &(number / 2).to_be_bytes()).map(drop)
                } else {
                    Ok(())
                }
            };
            store.transact(Durability::Delayed, put).unwrap();
            let reader = store.read().unwrap();
            let mut found = contents(&reader);
            found.remove("own");
            assert!(found == still, "after {number} commits");
            number += 1;
        }
    });
    let expected = contents(&store.read().unwrap());
    assert!(expected.contains_key("own"));
    store.close().unwrap();
    assert_eq!(contents(&open(disk.files()).read().unwrap()), expected);
}

#[test]
fn a_failed_cut_makes_the_store_read_only_and_loses_nothing() {
    let prepared = || {
        let (disk, store) = create();
        let table = fill(&store, "t", 0..2000);
        thin(&store, table, 4);
        (disk, store)
    };
    let (disk, store) = prepared();
    let before = contents(&store.read().unwrap());
    let begun = disk.ops();
    compact(&store);
    let trace = disk.take_trace();
    let faulty: Vec<_> = (begun..trace.len())
        .filter(|at| {
            matches!(trace[*at], Op::Truncate { .. } | Op::Sync { file: FileId::Log | FileId::Data })
        })
        .collect();
    assert!(faulty.len() >= 4, "of the data file and of the log: {faulty:?}");
    for at in faulty {
        let disk = Arc::new(SimDisk::new().with_fault(at, Fault::Io));
        let store = Store::create_on(disk.clone(), LAYOUT, options(), 1).unwrap();
        let table = fill(&store, "t", 0..2000);
        thin(&store, table, 4);
        let failed = (0..10_000).find_map(|_| match store.compact(16) {
            Ok(done) if done.is_done => Some(Ok(())),
            Ok(_) => None,
            Err(error) => Some(Err(error)),
        });
        assert!(matches!(failed, Some(Err(Error::Io { .. }))), "{at}: {failed:?}");
        assert!(matches!(store.write().err(), Some(Error::ReadOnly { .. })));
        assert_eq!(contents(&store.read().unwrap()), before);
        drop(store);
        assert_eq!(contents(&open(disk.files()).read().unwrap()), before);
    }
}

#[test]
fn a_log_that_grew_is_short_after_a_compaction_and_grows_again() {
    let (disk, store) = create();
    for round in 0..3 {
        fill(&store, "t", 0..6000);
        let grown = disk.len(FileId::Log).unwrap();
        assert!(grown > 8 * LAYOUT.vlf_bytes, "round {round}: {grown}");
        let before = contents(&store.read().unwrap());
        let done = compact(&store);
        assert_eq!(done.log_bytes_given_back, grown - disk.len(FileId::Log).unwrap());
        assert_eq!(store.stats().vlfs, 2);
        for recovery in [Recovery::Instant, Recovery::Wide, Recovery::Prefetch, Recovery::Serial] {
            let opened = Options { recovery, ..options() };
            let store = Store::open_on(Arc::new(SimDisk::holding(disk.files())), opened).unwrap();
            assert_eq!(contents(&store.read().unwrap()), before);
            fill(&store, "t", 0..3000);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    #[test]
    fn what_is_read_is_the_same_before_and_after(
        rows in proptest::collection::vec((0_u8..4, 0_u16..2000, 0_usize..600), 1..600),
        removed in proptest::collection::vec((0_u8..4, 0_u16..2000, 1_u16..400), 0..12),
        step in 2_usize..40,
    ) {
        let (disk, store) = create();
        let name = |table: u8| format!("table{table}");
        store.transact(Durability::Full, |tx| (0..4).try_for_each(|table| tx.create_table(&name(table)).map(drop))).unwrap();
        store.transact(Durability::Full, |tx| {
            rows.iter().try_for_each(|(table, key, bytes)| {
                let own = tx.table(&name(*table))?;
                tx.put(own, &key.to_be_bytes(), &vec![*key as u8; *bytes])
            })
        }).unwrap();
        let earlier = store.read().unwrap();
        let of_earlier = contents(&earlier);
        store.transact(Durability::Full, |tx| {
            removed.iter().try_for_each(|(table, first, count)| {
                let own = tx.table(&name(*table))?;
                (*first..first.saturating_add(*count)).try_for_each(|key| tx.delete(own, &key.to_be_bytes()).map(drop))
            })
        }).unwrap();
        let before = contents(&store.read().unwrap());
        let mut steps = 0;
        loop {
            let done = store.compact(step).unwrap();
            prop_assert_eq!(&contents(&store.read().unwrap()), &before);
            steps += 1;
            prop_assert!(steps < 10_000);
            if done.is_done || done.held_by == Some(CompactionHolder::Snapshot) {
                break;
            }
        }
        prop_assert_eq!(&contents(&earlier), &of_earlier);
        drop(earlier);
        while !store.compact(step).unwrap().is_done {}
        prop_assert_eq!(&contents(&store.read().unwrap()), &before);
        let count = store.read().unwrap().page_count().unwrap();
        prop_assert_eq!(data_pages(&disk), count);
        drop(store);
        prop_assert_eq!(&contents(&open(disk.files()).read().unwrap()), &before);
    }
}

#[test]
fn free_pages_that_an_unfinished_compaction_left_unlisted_are_used_again() {
    let (disk, store) = create();
    let table = fill(&store, "t", 0..8000);
    thin(&store, table, 10);
    // Up to the first step that moves pages: there are many more.
    while store.compact(2).unwrap().pages_moved == 0 {}
    drop(store);
    let store = open(disk.files());
    let count = store.read().unwrap().page_count().unwrap();
    assert!(count > 300, "{count}");
    fill(&store, "more", 0..3000);
    let more = store.read().unwrap().page_count().unwrap() - count;
    assert!(more <= 4, "{more} pages were added to {count}, of which most are free");
}
