//! Creating a store is all or nothing, and any complete store can be opened.

use pagestore::{Durability, Error, Layout, Options, Store, Tables};
use std::path::Path;

const FILES: [&str; 3] = ["control", "data", "log"];

fn options() -> Options {
    Options { background: false, publish: false, ..Options::default() }
}

fn layout() -> Layout {
    Layout { vlf_bytes: 256 << 10, vlfs: 4, ..Layout::default() }
}

fn place() -> tempfile::TempDir {
    tempfile::tempdir_in("/var/tmp").unwrap()
}

fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn a_creation_that_fails_leaves_nothing_and_is_not_in_the_way_of_the_next() {
    let place = place();
    // More than any file system has space for, which is detected when there are files already.
    let large = Layout { vlf_bytes: 256 << 20, vlfs: 1 << 22, ..Layout::default() };
    let unlimited = Options { log_limit_bytes: u64::MAX, ..options() };
    assert!(matches!(Store::create(place.path(), large, unlimited), Err(Error::Io { .. })));
    assert_eq!(names(place.path()), [""; 0]);
    let new = place.path().join("new");
    assert!(Store::create(&new, large, unlimited).is_err());
    assert!(!new.exists());
    Store::create(place.path(), layout(), options()).unwrap().close().unwrap();
    Store::open(place.path(), options()).unwrap();
}

#[test]
fn an_impossible_layout_is_refused_before_anything_is_created() {
    let place = place();
    let new = place.path().join("new");
    let unlimited = Options { log_limit_bytes: u64::MAX, ..options() };
    let small = Options { log_limit_bytes: 4 * (256 << 10) - 1, ..options() };
    for (layout, options, named) in [
        (Layout { vlfs: 1 << 32, ..Layout::default() }, options(), "vlfs"),
        (Layout { vlfs: 1 << 32, ..Layout::default() }, unlimited, "vlfs"),
        (Layout { vlfs: usize::MAX, ..Layout::default() }, unlimited, "vlfs"),
        (Layout { vlfs: 1, ..Layout::default() }, options(), "vlfs"),
        (layout(), small, "vlfs"),
        (Layout { vlf_bytes: (120 << 10) - 4096, ..layout() }, options(), "vlf_bytes"),
        (Layout { vlf_bytes: 512 << 20, ..layout() }, options(), "vlf_bytes"),
        (Layout { page_bytes: 512, ..layout() }, options(), "page_bytes"),
    ] {
        let refused = Store::create(&new, layout, options).err();
        assert!(matches!(refused, Some(Error::BadOption { option, .. }) if option == named), "{refused:?}");
        assert!(!new.exists());
    }
}

#[test]
fn the_smallest_virtual_log_files_work() {
    let place = place();
    let layout = Layout { vlf_bytes: 120 << 10, vlfs: 2, ..Layout::default() };
    let store = Store::create(place.path(), layout, options()).unwrap();
    let table = store.transact(Durability::Full, |tx| tx.create_table("t")).unwrap();
    for round in 0..100_u32 {
        let put = |tx: &mut pagestore::WriteTx<'_>| {
            (0..50_u32).try_for_each(|key| tx.put(table, &(round * 50 + key).to_be_bytes(), &[1; 500]))
        };
        store.transact(Durability::Full, put).unwrap();
    }
    drop(store);
    let store = Store::open(place.path(), options()).unwrap();
    assert_eq!(store.read().unwrap().range(table, b"", None).unwrap().count(), 5000);
}

#[test]
fn a_creation_that_was_killed_is_repeated_and_not_opened() {
    let place = place();
    let marked = place.path().join("store");
    Store::create(&marked, layout(), options()).unwrap().close().unwrap();
    // The control file is written last, and until then the lock file marks the files as unfinished.
    std::fs::write(marked.join("control"), vec![0; 8192]).unwrap();
    let kept = std::fs::read(marked.join("log")).unwrap();
    assert!(matches!(Store::create(&marked, layout(), options()), Err(Error::Exists { .. })));
    assert_eq!(std::fs::read(marked.join("log")).unwrap(), kept, "it was a store");
    std::fs::write(marked.join("lock"), "a page store is being created here\n").unwrap();
    let unfinished = Store::open(&marked, options()).err();
    assert!(
        matches!(&unfinished, Some(Error::NotAStore { why, .. }) if why.contains("create it again")),
        "{unfinished:?}"
    );
    std::fs::write(marked.join("mine"), "").unwrap();
    assert!(matches!(Store::create(&marked, layout(), options()), Err(Error::Exists { .. })));
    std::fs::remove_file(marked.join("mine")).unwrap();
    // Killed before the data file existed.
    std::fs::remove_file(marked.join("data")).unwrap();
    let store = Store::create(&marked, layout(), options()).unwrap();
    store.transact(Durability::Full, |tx| tx.create_table("t")).unwrap();
    drop(store);
    assert!(matches!(Store::create(&marked, layout(), options()), Err(Error::Exists { .. })));
    let store = Store::open(&marked, options()).unwrap();
    assert_eq!(store.read().unwrap().tables().unwrap(), ["t"]);
}

#[test]
fn a_store_killed_before_its_creation_mark_was_cleared_is_complete() {
    let place = place();
    Store::create(place.path(), layout(), options()).unwrap().close().unwrap();
    std::fs::write(place.path().join("lock"), "a page store is being created here\n").unwrap();
    // It may equally be a store that was put there since.
    assert!(matches!(Store::create(place.path(), layout(), options()), Err(Error::Exists { .. })));
    drop(Store::open(place.path(), options()).unwrap());
    assert_eq!(std::fs::read(place.path().join("lock")).unwrap(), b"");
    // The mark is removed.
    assert!(matches!(Store::create(place.path(), layout(), options()), Err(Error::Exists { .. })));
    Store::open(place.path(), options()).unwrap();
}

#[test]
fn a_copy_without_the_lock_file_opens_and_no_lock_file_is_made_where_there_is_no_store() {
    let place = place();
    let (store, copy) = (place.path().join("store"), place.path().join("copy"));
    let made = Store::create(&store, layout(), options()).unwrap();
    made.transact(Durability::Full, |tx| tx.create_table("t")).unwrap();
    made.close().unwrap();
    std::fs::create_dir(&copy).unwrap();
    for (copied, name) in FILES.iter().enumerate() {
        let missing = Store::open(&copy, options()).err();
        assert!(
            matches!(&missing, Some(Error::NotAStore { why, .. }) if why.contains(FILES[copied])),
            "{missing:?}"
        );
        assert_eq!(names(&copy).len(), copied);
        std::fs::copy(store.join(name), copy.join(name)).unwrap();
    }
    let opened = Store::open(&copy, options()).unwrap();
    assert_eq!(opened.read().unwrap().tables().unwrap(), ["t"]);
    assert!(matches!(Store::open(&copy, options()), Err(Error::Locked { .. })));
}
