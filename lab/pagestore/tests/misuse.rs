//! Mistakes of programs: stale handles of tables, and pages that belong to the engine.

use pagestore::{Durability, Error, Layout, Options, PAGE_HEADER_BYTES, PageNo, Pages, Store, Table, Tables};
use std::path::Path;

fn options() -> Options {
    Options { background: false, publish: false, ..Options::default() }
}

fn create(directory: &Path) -> Store {
    let layout = Layout { vlf_bytes: 256 << 10, vlfs: 4, ..Layout::default() };
    Store::create(directory, layout, options()).unwrap()
}

fn made(store: &Store, name: &str) -> Table {
    store.transact(Durability::Full, |tx| tx.create_table(name)).unwrap()
}

#[track_caller]
fn is_stale<T>(result: Result<T, Error>) {
    let error = result.err();
    assert!(matches!(error, Some(Error::StaleTable { .. })), "{error:?}");
}

/// Every use of the handle is refused and has no effect.
fn assert_stale(store: &Store, table: Table) {
    let mut tx = store.write().unwrap();
    is_stale(tx.put(table, b"x", b"stale"));
    is_stale(tx.delete(table, b"x"));
    is_stale(tx.get(table, b"x"));
    is_stale(tx.range(table, b"", None));
    assert_eq!(tx.commit(Durability::Full).unwrap(), None);
    let reader = store.read().unwrap();
    is_stale(reader.get(table, b"x"));
    is_stale(reader.range(table, b"", None));
}

#[test]
fn the_handle_of_a_dropped_table_is_refused_though_another_has_its_page() {
    let place = tempfile::tempdir().unwrap();
    let store = create(place.path());
    let dropped = made(&store, "a");
    store.transact(Durability::Full, |tx| tx.drop_table("a")).unwrap();
    assert_stale(&store, dropped);
    let other = made(&store, "b");
    assert_ne!(dropped, other);
    assert_stale(&store, dropped);
    assert_eq!(store.read().unwrap().get(other, b"x").unwrap(), None);

    // Its page becomes a user's: it was free, so the store has not grown.
    let mut tx = store.write().unwrap();
    tx.drop_table("b").unwrap();
    let page = tx.allocate().unwrap();
    tx.page_mut(page).unwrap().fill(1);
    is_stale(tx.put(other, b"x", b"stale"));
}

#[test]
fn within_one_transaction_too() {
    let place = tempfile::tempdir().unwrap();
    let store = create(place.path());
    let mut tx = store.write().unwrap();
    let first = tx.create_table("t").unwrap();
    // The second insertion finds the path to the leaf that the first has remembered.
    for key in [b"a", b"b", b"c"] {
        tx.put(first, key, b"1").unwrap();
    }
    tx.drop_table("t").unwrap();
    let second = tx.create_table("t").unwrap();
    is_stale(tx.put(first, b"d", b"1"));
    tx.put(second, b"d", b"2").unwrap();
    assert_eq!(tx.get(second, b"a").unwrap(), None);
}

#[test]
fn a_rollback_neither_validates_nor_invalidates_a_handle() {
    let place = tempfile::tempdir().unwrap();
    let store = create(place.path());
    let mut tx = store.write().unwrap();
    let never = tx.create_table("never").unwrap();
    tx.put(never, b"x", b"y").unwrap();
    drop(tx);
    assert_stale(&store, never);
    let kept = made(&store, "kept");
    assert_stale(&store, never);

    let mut tx = store.write().unwrap();
    tx.drop_table("kept").unwrap();
    tx.create_table("instead").unwrap();
    is_stale(tx.put(kept, b"x", b"y"));
    drop(tx);
    store.transact(Durability::Full, |tx| tx.put(kept, b"x", b"y")).unwrap();
    assert_eq!(store.read().unwrap().get(kept, b"x").unwrap(), Some(b"y".to_vec()));
}

#[test]
fn a_handle_is_good_through_splits_and_openings_and_not_in_an_older_snapshot() {
    let place = tempfile::tempdir().unwrap();
    let store = create(place.path());
    let before = store.read().unwrap();
    let table = made(&store, "t");
    is_stale(before.get(table, b"x"));
    drop(before);
    let fill = |tx: &mut pagestore::WriteTx<'_>| {
        (0..3000_u32).try_for_each(|key| tx.put(table, &key.to_be_bytes(), &[7; 100]))
    };
    store.transact(Durability::Full, fill).unwrap();
    assert_eq!(store.read().unwrap().table("t").unwrap(), table);
    drop(store);
    // After a crash, then after closing.
    for _ in 0..2 {
        let store = Store::open(place.path(), options()).unwrap();
        let reader = store.read().unwrap();
        assert_eq!(reader.table("t").unwrap(), table);
        assert_eq!(reader.range(table, b"", None).unwrap().count(), 3000);
        drop(reader);
        store.close().unwrap();
    }
    // When it is emptied its root becomes a leaf again.
    let store = Store::open(place.path(), options()).unwrap();
    let empty = |tx: &mut pagestore::WriteTx<'_>| {
        (0..3000_u32).try_for_each(|key| tx.delete(table, &key.to_be_bytes()).map(|found| assert!(found)))
    };
    store.transact(Durability::Full, empty).unwrap();
    store.transact(Durability::Full, |tx| tx.put(table, b"x", b"y")).unwrap();
}

#[test]
fn the_handle_of_one_store_is_refused_by_another() {
    let places = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let [one, other] = places.each_ref().map(|place| create(place.path()));
    let tables = [&one, &other].map(|store| made(store, "t"));
    assert_stale(&other, tables[0]);
    assert_stale(&one, tables[1]);
}

#[test]
fn what_is_written_into_the_header_of_a_page_is_never_read() {
    let place = tempfile::tempdir().unwrap();
    let store = create(place.path());
    let mut tx = store.write().unwrap();
    let [page, other] = [tx.allocate().unwrap(), tx.allocate().unwrap()];
    let is_right = |read: &[u8]| {
        assert_eq!(read[..PAGE_HEADER_BYTES], [0; PAGE_HEADER_BYTES]);
        assert!(read[PAGE_HEADER_BYTES..].iter().all(|byte| *byte == 0xab));
    };
    tx.page_mut(page).unwrap().fill(0xab);
    is_right(&tx.page(page).unwrap());
    tx.page_mut(other).unwrap().fill(0xab);
    is_right(tx.page_mut(page).unwrap());
    tx.page_mut(page).unwrap().fill(0xab);
    tx.commit(Durability::Full).unwrap();
    is_right(&store.read().unwrap().page(page).unwrap());
    drop(store);
    let store = Store::open(place.path(), options()).unwrap();
    for page in [page, other] {
        is_right(&store.read().unwrap().page(page).unwrap());
    }
    // More pages than fit in memory.
    let mut tx = store.write().unwrap();
    let pages: Vec<_> = (0..6000).map(|_| tx.allocate().unwrap()).collect();
    for page in &pages {
        tx.page_mut(*page).unwrap().fill(0xab);
    }
    is_right(&tx.page(pages[0]).unwrap());
    tx.commit(Durability::Full).unwrap();
    store.close().unwrap();
    let store = Store::open(place.path(), options()).unwrap();
    let reader = store.read().unwrap();
    pages.iter().for_each(|page| is_right(&reader.page(*page).unwrap()));
}

#[test]
fn pages_of_the_engine_cannot_be_changed_or_freed() {
    let place = tempfile::tempdir().unwrap();
    let store = create(place.path());
    let table = made(&store, "t");
    let fill = |tx: &mut pagestore::WriteTx<'_>| {
        (0..500_u32).try_for_each(|key| tx.put(table, &key.to_be_bytes(), &[7; 100]))
    };
    store.transact(Durability::Full, fill).unwrap();
    drop(store);
    let store = Store::open(place.path(), options()).unwrap();
    let mut tx = store.write().unwrap();
    let count = tx.page_count().unwrap();
    assert!(count > 12, "the store's, the names', inner nodes and leaves");
    for page in (0..count).map(PageNo) {
        let reserved = |error: Option<Error>| {
            assert!(
                matches!(error, Some(Error::ReservedPage { page: reported, .. }) if reported == page),
                "{page}: {error:?}"
            );
        };
        reserved(tx.page_mut(page).err());
        reserved(tx.free(page).err());
    }
    // A user can allocate them after their table is dropped.
    tx.drop_table("t").unwrap();
    let page = tx.allocate().unwrap();
    assert!(page.0 < count);
    tx.page_mut(page).unwrap().fill(1);
}

#[test]
fn no_user_data_makes_a_page_look_free_or_part_of_a_table() {
    let place = tempfile::tempdir().unwrap();
    let store = create(place.path());
    let mut tx = store.write().unwrap();
    let page = tx.allocate().unwrap();
    tx.page_mut(page).unwrap()[40..48].copy_from_slice(b"FREEPAGE");
    tx.page_mut(page).unwrap()[4] = 1;
    tx.page_mut(page).unwrap()[4] = 16;
    tx.commit(Durability::Full).unwrap();
    let mut tx = store.write().unwrap();
    assert_eq!(tx.page_mut(page).unwrap()[40..48], *b"FREEPAGE");
    tx.free(page).unwrap();
    assert!(matches!(tx.page_mut(page), Err(Error::NoSuchPage { .. })));
    assert_eq!(tx.allocate().unwrap(), page);
}

#[test]
fn a_second_transaction_of_the_writing_thread_is_refused_and_another_threads_waits() {
    let place = tempfile::tempdir().unwrap();
    let store = create(place.path());
    let mut tx = store.write().unwrap();
    let table = tx.create_table("t").unwrap();
    assert!(matches!(store.write().err(), Some(Error::AlreadyWriting)));
    let nested = store.transact(Durability::Full, |inner| inner.put(table, b"x", b"y"));
    assert!(matches!(nested, Err(Error::AlreadyWriting)));
    std::thread::scope(|scope| {
        let other = scope.spawn(|| store.transact(Durability::Full, |tx| tx.put(table, b"x", b"other")));
        // The other thread waits for the lock, or is about to.
        std::thread::sleep(std::time::Duration::from_millis(50));
        assert!(!other.is_finished());
        assert!(matches!(store.write().err(), Some(Error::AlreadyWriting)));
        tx.commit(Durability::Full).unwrap();
        other.join().unwrap().unwrap();
    });
    drop(store.write().unwrap());
    store.write().unwrap().rollback().unwrap();
    store.transact(Durability::Full, |tx| tx.put(table, b"x", b"own")).unwrap();
}

/// The files that a crash at this moment would leave.
fn copied(from: &Path) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    for name in ["control", "data", "log"] {
        std::fs::copy(from.join(name), copy.path().join(name)).unwrap();
    }
    copy
}

#[test]
fn a_rollback_makes_delayed_commits_durable_and_a_drop_does_not() {
    let place = tempfile::tempdir().unwrap();
    let store = create(place.path());
    let table = made(&store, "t");
    let is_there = |key: &[u8]| {
        let copy = copied(place.path());
        let crashed = Store::open(copy.path(), options()).unwrap();
        crashed.read().unwrap().get(table, key).unwrap().is_some()
    };
    store.transact(Durability::Delayed, |tx| tx.put(table, b"x", b"y")).unwrap();
    drop(store.write().unwrap());
    assert!(!is_there(b"x"));
    let mut tx = store.write().unwrap();
    tx.put(table, b"never", b"y").unwrap();
    tx.rollback().unwrap();
    assert!(is_there(b"x"));
    assert!(!is_there(b"never"));
}
