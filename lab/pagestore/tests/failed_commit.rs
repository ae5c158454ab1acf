//! Reading after the commit of a transaction larger than the cache has failed, and during one that has not.

use crashlab::{Chance, Files, SimDisk};
use pagestore::disk::{Disk, FileId};
use pagestore::internals::{BLOCK_HEADER_BYTES, BLOCK_MAGIC, Record, records, u32_at};
use pagestore::{Durability, Error, KeepAwake, Layout, Options, ReadTx, Store, Table, Tables, WriteTx};
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

const ROWS: u32 = 3000;
const VALUE_BYTES: usize = 100;

/// A disk that fails log writes: after a number of further ones.
struct FailingLog {
    disk: SimDisk,
    writes_left: AtomicU64,
    /// Log writes that contain a commit fail as well.
    refuses_commits: AtomicBool,
}

/// Whether a write to the log contains a commit.
fn has_commit(bytes: &[u8]) -> bool {
    (0..bytes.len()).step_by(512).any(|at| {
        let block = &bytes[at..];
        block.starts_with(&BLOCK_MAGIC)
            && records(&block[BLOCK_HEADER_BYTES..u32_at(block, 20) as usize])
                .any(|record| matches!(record, Record::Commit { .. }))
    })
}

impl FailingLog {
    fn holding(files: Files) -> Arc<Self> {
        let disk = SimDisk::holding(files);
        Arc::new(Self {
            disk,
            writes_left: AtomicU64::new(u64::MAX),
            refuses_commits: AtomicBool::new(false),
        })
    }

    fn fail_after(&self, writes: u64) {
        self.writes_left.store(writes, Ordering::SeqCst);
    }
}

impl Disk for FailingLog {
    pagestore_disk::forward_to_disk!(read, write, sync, len);

    fn write_through(&self, file: FileId, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let less = |left: u64| left.checked_sub(1);
        let refuses = || {
            self.writes_left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less).is_err()
                || self.refuses_commits.load(Ordering::SeqCst) && has_commit(bytes)
        };
        if file == FileId::Log && refuses() {
            return Err(io::Error::other("told to refuse"));
        }
        self.disk.write_through(file, offset, bytes)
    }
}

/// A cache of 64 pages, of which a transaction may use a quarter.
fn small() -> Options {
    Options { background: false, publish: false, cache_bytes: 256 << 10, ..Options::default() }
}

fn with_threads() -> Options {
    Options { background: true, keep_awake: KeepAwake::Never, ..small() }
}

/// A cache that the table fits into, and no checkpoint unless requested.
fn large() -> Options {
    Options { cache_bytes: 8 << 20, ..small() }
}

/// The rows and their contents: the number of the last change.
type Model = BTreeMap<u32, u32>;

fn put(
    store: &Store,
    model: &mut Model,
    rows: impl Iterator<Item = u32>,
    change: u32,
) -> pagestore::Result<()> {
    let table = store.read()?.table("t")?;
    let mut after = model.clone();
    store.transact(Durability::Full, |tx| {
        for row in rows {
            tx.put(table, &row.to_be_bytes(), &[change as u8; VALUE_BYTES])?;
            after.insert(row, change);
        }
        Ok(())
    })?;
    *model = after;
    Ok(())
}

/// The files of a store whose rows are all in the log only.
fn in_the_log() -> (Files, Model) {
    let disk = Arc::new(SimDisk::new());
    let layout = Layout { vlf_bytes: 256 << 10, vlfs: 3, ..Layout::default() };
    let store = Store::create_on(disk.clone(), layout, large(), 1).unwrap();
    store.transact(Durability::Full, |tx| tx.create_table("t")).unwrap();
    let mut model = Model::new();
    put(&store, &mut model, 0..ROWS, 1).unwrap();
    // Chains of several records.
    put(&store, &mut model, (0..ROWS).step_by(100), 2).unwrap();
    drop(store);
    (disk.files(), model)
}

/// The files of a store whose rows are all in the data file.
fn in_the_data_file() -> (Files, Model) {
    let (files, model) = in_the_log();
    let disk = Arc::new(SimDisk::holding(files));
    Store::open_on(disk.clone(), large()).unwrap().close().unwrap();
    (disk.files(), model)
}

/// As `in_the_data_file`, with a third of the rows changed in the log since.
fn in_both() -> (Files, Model) {
    let (files, mut model) = in_the_data_file();
    let disk = Arc::new(SimDisk::holding(files));
    let store = Store::open_on(disk.clone(), large()).unwrap();
    put(&store, &mut model, ROWS / 3..ROWS / 3 * 2, 3).unwrap();
    drop(store);
    (disk.files(), model)
}

fn read_rows(reader: &ReadTx<'_>) -> pagestore::Result<Model> {
    let table = reader.table("t")?;
    reader
        .range(table, &[], None)?
        .map(|row| {
            let (key, value) = row?;
            assert!(value.len() == VALUE_BYTES && value.iter().all(|byte| *byte == value[0]));
            Ok((u32::from_be_bytes(key[..].try_into().unwrap()), u32::from(value[0])))
        })
        .collect()
}

/// Which log write of a commit fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Failing {
    First,
    /// Some of the transaction is in the log.
    Third,
    /// All of it is in the log but its commit.
    Last,
}

/// Changes every row, deletes some and adds some.
fn change_all(tx: &mut WriteTx<'_>, table: Table) -> pagestore::Result<()> {
    (0..ROWS + 500).try_for_each(|row| {
        if row % 7 == 0 {
            return tx.delete(table, &row.to_be_bytes()).map(|_| ());
        }
        tx.put(table, &row.to_be_bytes(), &[99; VALUE_BYTES])
    })
}

/// The commit of `change_all` fails.
fn fail(store: &Store, disk: &FailingLog, table: Table, failing: Failing) {
    let mut tx = store.write().unwrap();
    change_all(&mut tx, table).unwrap();
    match failing {
        Failing::First => disk.fail_after(0),
        Failing::Third => disk.fail_after(2),
        Failing::Last => disk.refuses_commits.store(true, Ordering::SeqCst),
    }
    let committed = tx.commit(Durability::Full);
    assert!(committed.is_err(), "{failing:?}: {committed:?}");
    let stats = store.stats();
    let is_installed = stats.last_sequence > stats.durable_sequence;
    // The third may be the last.
    let expected = [Failing::First, Failing::Last].contains(&failing).then_some(failing == Failing::Last);
    assert!(expected.is_none_or(|expected| is_installed == expected), "{failing:?}");
}

/// Reads everything in the snapshots that began before, and in a new one.
fn assert_readable(store: &Store, held: &[(ReadTx<'_>, Model)], last: &Model, when: &str) {
    for (reader, model) in held {
        let read = read_rows(reader);
        assert!(
            read.as_ref().is_ok_and(|read| read == model),
            "{when}, of commit {}: {:?}",
            reader.sequence(),
            read.err()
        );
    }
    let reader = store.read().unwrap_or_else(|error| panic!("{when}: {error}"));
    let read = read_rows(&reader);
    assert!(read.as_ref().is_ok_and(|read| read == last), "{when}, in a new snapshot: {:?}", read.err());
}

fn stays_readable(files: Files, model: Model, commits: u32, failing: Failing) {
    let mut model = model;
    let disk = FailingLog::holding(files);
    let store = Store::open_on(disk.clone(), small()).unwrap();
    let mut held = Vec::new();
    for number in 0..commits {
        held.push((store.read().unwrap(), model.clone()));
        // Pages that are cached, and too few to make a checkpoint due.
        put(&store, &mut model, (number * 40..number * 40 + 20).chain([ROWS - 1]), 10 + number).unwrap();
    }
    held.push((store.read().unwrap(), model.clone()));
    let table = store.read().unwrap().table("t").unwrap();
    fail(&store, &disk, table, failing);
    assert_readable(&store, &held, &model, "after the commit failed");
    assert!(matches!(store.checkpoint(), Err(Error::ReadOnly { .. })));
    assert!(matches!(store.write().err(), Some(Error::ReadOnly { .. })));
    assert_readable(&store, &held, &model, "after a checkpoint was refused");
    drop(held);
    assert_readable(&store, &[], &model, "when the snapshots have ended");
    drop(store);
    let store = Store::open_on(Arc::new(SimDisk::holding(disk.disk.files())), small()).unwrap();
    assert_eq!(read_rows(&store.read().unwrap()).unwrap(), model, "opened again");
}

#[test]
fn rows_in_the_data_file_can_be_read_after_the_commit_of_a_large_transaction_has_failed() {
    let (files, model) = in_the_data_file();
    for failing in [Failing::First, Failing::Third, Failing::Last] {
        stays_readable(files.clone(), model.clone(), 0, failing);
    }
}

#[test]
fn rows_that_are_in_the_log_only_can_be_read_after_the_commit_of_a_large_transaction_has_failed() {
    let (files, model) = in_the_log();
    for failing in [Failing::First, Failing::Third, Failing::Last] {
        stays_readable(files.clone(), model.clone(), 0, failing);
    }
}

#[test]
fn rows_of_which_recovery_finds_some_in_the_log_can_be_read_after_the_commit_of_a_large_transaction_has_failed()
 {
    let (files, model) = in_both();
    for failing in [Failing::First, Failing::Third, Failing::Last] {
        stays_readable(files.clone(), model.clone(), 0, failing);
    }
}

#[test]
fn rows_of_which_some_are_in_the_log_and_some_in_memory_can_be_read_at_every_snapshot_after_such_a_failure() {
    let (files, model) = in_the_data_file();
    for failing in [Failing::First, Failing::Third, Failing::Last] {
        stays_readable(files.clone(), model.clone(), 5, failing);
    }
}

/// Course of a removal from 2,700 pages: a thread encodes most of them, and pages are installed while others are appended.
#[derive(Clone, Copy, Debug)]
struct Removal {
    failing: Option<Failing>,
    /// A checkpoint writes the pages that the open transaction has changed.
    checkpoint_before_commit: bool,
    /// With 16 MiB the transaction becomes larger than the cache allows while the thread works.
    cache_bytes: usize,
}

fn remove_two_thirds(tx: &mut WriteTx<'_>, table: Table) -> u64 {
    // The rest of three leaves moves into one.
    let is_kept = |key: &[u8], _: &[u8]| u32::from_be_bytes(key.try_into().unwrap()).is_multiple_of(3);
    tx.retain(table, is_kept).unwrap()
}

fn rows_are_as_before_or_after(removal: Removal) {
    const MANY: u32 = 90_000;
    let Removal { failing, checkpoint_before_commit, cache_bytes } = removal;
    let disk = FailingLog::holding(SimDisk::new().files());
    let options = Options { cache_bytes, ..with_threads() };
    let layout = Layout { vlf_bytes: 1 << 20, vlfs: 64, ..Layout::default() };
    let store = Store::create_on(disk.clone(), layout, options, 1).unwrap();
    let table = store.transact(Durability::Full, |tx| tx.create_table("t")).unwrap();
    let mut model = Model::new();
    put(&store, &mut model, 0..MANY, 1).unwrap();
    // The pages are then logged as images.
    store.checkpoint().unwrap();
    let held = [(store.read().unwrap(), model.clone())];
    let mut rolled_back = store.write().unwrap();
    remove_two_thirds(&mut rolled_back, table);
    drop(rolled_back);
    let mut tx = store.write().unwrap();
    assert_eq!(remove_two_thirds(&mut tx, table), u64::from(MANY / 3 * 2));
    let mut after: Model =
        model.iter().filter(|(row, _)| row.is_multiple_of(3)).map(|(r, c)| (*r, *c)).collect();
    // Pages that are encoded already change again.
    for row in (0..MANY).step_by(1000) {
        tx.put(table, &row.to_be_bytes(), &[2; VALUE_BYTES]).unwrap();
        after.insert(row, 2);
    }
    if checkpoint_before_commit {
        store.checkpoint().unwrap();
    }
    match failing {
        None => model = after,
        Some(Failing::First) => disk.fail_after(0),
        Some(Failing::Third) => disk.fail_after(2),
        Some(Failing::Last) => disk.refuses_commits.store(true, Ordering::SeqCst),
    }
    let before = store.stats().log_write_bytes;
    assert_eq!(tx.commit(Durability::Full).is_ok(), failing.is_none(), "{removal:?}");
    let written = store.stats().log_write_bytes - before;
    assert!(failing.is_some() || written > 1 << 20, "three writes: {written} bytes");
    // Snapshots of a large transaction's pages end with a checkpoint.
    let read = if cache_bytes < 64 << 20 { &[][..] } else { &held };
    assert_readable(&store, read, &model, "after the commit");
    assert_eq!(store.checkpoint().is_ok(), failing.is_none(), "{removal:?}");
    assert_readable(&store, read, &model, "after a checkpoint");
    drop(held);
    drop(store);
    let store = Store::open_on(Arc::new(SimDisk::holding(disk.disk.files())), with_threads()).unwrap();
    assert_eq!(read_rows(&store.read().unwrap()).unwrap(), model, "{removal:?}, opened again");
}

#[test]
fn rows_can_be_read_after_a_removal_from_many_pages_and_after_its_commit_has_failed() {
    let usual = Removal { failing: None, checkpoint_before_commit: false, cache_bytes: 64 << 20 };
    for failing in [None, Some(Failing::First), Some(Failing::Third), Some(Failing::Last)] {
        rows_are_as_before_or_after(Removal { failing, ..usual });
    }
    rows_are_as_before_or_after(Removal { checkpoint_before_commit: true, ..usual });
    for failing in [None, Some(Failing::Third)] {
        rows_are_as_before_or_after(Removal { failing, cache_bytes: 16 << 20, ..usual });
    }
}

/// Puts 25 pages of rows: more than a transaction keeps in memory, and too few to make a checkpoint due.
fn commit_large(store: &Store, model: &mut Model, change: u32) {
    put(store, model, (0..700).chain([ROWS - 1]), change).unwrap();
}

#[test]
fn a_snapshot_is_readable_during_large_commits_until_a_checkpoint_overwrites_a_page() {
    let (files, mut model) = in_the_data_file();
    let disk = Arc::new(SimDisk::holding(files));
    let store = Store::open_on(disk, small()).unwrap();
    let mut held = vec![(store.read().unwrap(), model.clone())];
    for change in 10..13 {
        commit_large(&store, &mut model, change);
        held.push((store.read().unwrap(), model.clone()));
    }
    let checkpoints = store.stats().checkpoints;
    assert_readable(&store, &held, &model, "after large commits");
    assert_eq!(store.stats().checkpoints, checkpoints, "there was none yet");
    store.checkpoint().unwrap();
    let (last, before) = held.split_last().unwrap();
    for (reader, model) in before {
        let table = reader.table("t").unwrap_or_else(|error| panic!("no table was changed: {error}"));
        let lost = reader.get(table, &0_u32.to_be_bytes());
        assert!(matches!(lost, Err(Error::SnapshotTooOld)), "{lost:?}");
        // A row that was not changed is still readable.
        let row: u32 = ROWS / 2;
        let kept = reader.get(table, &row.to_be_bytes()).unwrap();
        assert_eq!(kept, Some(vec![model[&row] as u8; VALUE_BYTES]));
    }
    assert_readable(&store, std::slice::from_ref(last), &model, "after the checkpoint");
}

/// Reads snapshots, each up to three times, at least one and until `done`.
fn read_until(store: &Store, begun: &[Model], done: &AtomicBool, seed: u64) {
    let mut chance = Chance::new(seed);
    let mut read = 0;
    while read == 0 || !done.load(Ordering::SeqCst) {
        let reader = store.read().unwrap();
        for _ in 0..1 + chance.below(3) {
            match read_rows(&reader) {
                Ok(rows) => {
                    assert!(
                        begun.contains(&rows),
                        "the snapshot of commit {} is not a state",
                        reader.sequence()
                    );
                    read += 1;
                }
                Err(Error::SnapshotTooOld) => break,
                Err(error) => panic!("{error}"),
            }
        }
    }
}

#[test]
fn readers_see_whole_states_while_large_transactions_commit_and_one_fails() {
    let (files, model) = in_the_data_file();
    readers_see_whole_states(&files, &model, 1200, with_threads(), 8);
}

// 600 pages: they are installed while others are appended.
#[test]
fn readers_see_whole_states_while_commits_of_many_pages_are_installed_and_one_fails() {
    const MANY: u32 = 20_000;
    let (files, mut model) = in_the_data_file();
    let disk = Arc::new(SimDisk::holding(files));
    let options = Options { cache_bytes: 64 << 20, ..with_threads() };
    let store = Store::open_on(disk.clone(), options).unwrap();
    put(&store, &mut model, 0..MANY, 3).unwrap();
    store.close().unwrap();
    readers_see_whole_states(&disk.files(), &model, MANY, options, 4);
}

/// Ends the other threads when it is dropped, also by a panic.
struct EndsOthers<'a>(&'a AtomicBool);

impl Drop for EndsOthers<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Commits that change these rows, beside readers and checkpoints, until one fails.
fn readers_see_whole_states(files: &Files, model: &Model, rows: u32, options: Options, seeds: u64) {
    let state = |change: u32| {
        let mut state = model.clone();
        state.extend((0..rows).map(|row| (row, change)));
        state
    };
    let states: Vec<_> = [model.clone()].into_iter().chain((10..60).map(state)).collect();
    let mut failed_at_the_end = 0;
    for seed in 0..seeds {
        let disk = FailingLog::holding(files.clone());
        let store = Store::open_on(disk.clone(), options).unwrap();
        let done = AtomicBool::new(false);
        let (mut last, mut model) = (0, &states[0]);
        std::thread::scope(|scope| {
            let ends_others = EndsOthers(&done);
            let readers: Vec<_> = (0..2)
                .map(|thread| {
                    scope.spawn({
                        let (store, states, done) = (&store, &states, &done);
                        move || read_until(store, states, done, seed * 10 + thread)
                    })
                })
                .collect();
            scope.spawn(|| {
                while !done.load(Ordering::SeqCst) {
                    // Refused after the failure.
                    let _ = store.checkpoint();
                    std::thread::sleep(Duration::from_millis(1));
                }
            });
            // Half of them fail anywhere, and half when all but the end of a transaction is in the log.
            let (anywhere, at) = (seed % 2 == 0, 12 + seed as u32);
            if anywhere {
                disk.fail_after(u64::from(rows) / 60 + seed);
            }
            let commit = |change: u32| {
                let mut tx = store.write()?;
                let table = tx.table("t")?;
                (0..rows)
                    .try_for_each(|row| tx.put(table, &row.to_be_bytes(), &[change as u8; VALUE_BYTES]))?;
                if !anywhere && change == at {
                    disk.refuses_commits.store(true, Ordering::SeqCst);
                }
                tx.commit(Durability::Full)
            };
            for (change, state) in (10..60).zip(&states[1..]) {
                if commit(change).is_err() {
                    break;
                }
                (last, model) = (change, state);
            }
            // After the failure all readers can read the last visible state.
            let stats = store.stats();
            failed_at_the_end += u64::from(stats.last_sequence > stats.durable_sequence);
            let held = [(store.read().unwrap(), model.clone())];
            assert_readable(&store, &held, model, "after a failure");
            drop(ends_others);
            readers.into_iter().for_each(|reader| reader.join().unwrap());
        });
        assert!((10..59).contains(&last), "{last}: some commits, and then a failure");
        drop(store);
        let store = Store::open_on(Arc::new(SimDisk::holding(disk.disk.files())), options).unwrap();
        assert!(read_rows(&store.read().unwrap()).unwrap() == *model, "opened again, {last} was durable");
    }
    assert!(failed_at_the_end > 0, "some commit was put there and did not become durable");
}
