//! A log that only the store's own records are written to, and transactions that stay open.

use crashlab::SimDisk;
use pagestore::disk::{Disk, FileId};
use pagestore::{Durability, Layout, Options, Recovery, Store, Tables};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const LAYOUT: Layout = Layout { vlf_bytes: 128 << 10, vlfs: 4, page_bytes: 4096, log_sector_bytes: 4096 };

fn options() -> Options {
    Options {
        background: false,
        publish: false,
        cache_bytes: 64 << 10,
        log_limit_bytes: 8 << 20,
        ..Options::default()
    }
}

/// A store with one row.
fn with_a_row() -> (Arc<SimDisk>, Store) {
    let disk = Arc::new(SimDisk::new());
    let store = Store::create_on(disk.clone(), LAYOUT, options(), 1).unwrap();
    let put = |tx: &mut pagestore::WriteTx<'_>| {
        let table = tx.create_table("kept")?;
        tx.put(table, b"k", b"v")
    };
    store.transact(Durability::Full, put).unwrap();
    (disk, store)
}

fn assert_row(store: &Store) {
    let reader = store.read().unwrap();
    let table = reader.table("kept").unwrap();
    assert_eq!(reader.get(table, b"k").unwrap(), Some(b"v".to_vec()));
}

#[test]
fn a_store_that_is_opened_and_ends_without_close_opens_again_however_often() {
    for recovery in [Recovery::Instant, Recovery::Wide, Recovery::Prefetch, Recovery::Serial] {
        let (disk, store) = with_a_row();
        store.close().unwrap();
        let mut files = disk.files();
        for number in 0..500 {
            let disk = Arc::new(SimDisk::holding(files));
            let opened = Store::open_on(disk.clone(), Options { recovery, ..options() });
            assert_row(&opened.unwrap_or_else(|error| panic!("{recovery:?}, number {number}: {error}")));
            files = disk.files();
        }
    }
}

// There is always something to redo, and no checkpoint is ever written.
#[test]
fn a_store_whose_program_dies_again_and_again_opens_however_often() {
    let (disk, store) = with_a_row();
    let mut files = disk.files();
    std::mem::forget(store);
    for number in 0..1500 {
        let disk = Arc::new(SimDisk::holding(files));
        let store =
            Store::open_on(disk.clone(), options()).unwrap_or_else(|error| panic!("{number}: {error}"));
        files = disk.files();
        if number % 500 == 499 {
            assert_row(&store);
        }
        std::mem::forget(store);
    }
    let store = Store::open_on(Arc::new(SimDisk::holding(files)), options()).unwrap();
    store.transact(Durability::Full, |tx| tx.create_table("more")).unwrap();
}

// With the checkpoint thread, which checks every second.
#[test]
fn no_checkpoint_is_begun_that_an_open_transaction_keeps_from_freeing_log() {
    let background = Options { background: true, checkpoint_bytes: 128 << 10, ..options() };
    let store = Store::create_on(Arc::new(SimDisk::new()), LAYOUT, background, 1).unwrap();
    let mut tx = store.write().unwrap();
    let table = tx.create_table("t").unwrap();
    for row in 0..2000_u32 {
        tx.put(table, &row.to_be_bytes(), &[1; 100]).unwrap();
    }
    let begun = Instant::now();
    let mut checkpoints = vec![store.stats().checkpoints];
    while begun.elapsed() < Duration::from_millis(3500) {
        std::thread::sleep(Duration::from_millis(100));
        checkpoints.push(store.stats().checkpoints);
    }
    assert!(checkpoints[checkpoints.len() - 1] <= checkpoints[0] + 1, "{checkpoints:?}");
    tx.commit(Durability::Full).unwrap();
}

#[test]
fn checkpoints_beside_an_open_transaction_do_not_fill_the_log() {
    let (disk, store) = with_a_row();
    let mut tx = store.write().unwrap();
    let table = tx.create_table("t").unwrap();
    for row in 0..2000_u32 {
        tx.put(table, &row.to_be_bytes(), &[1; 100]).unwrap();
    }
    let mut free = Vec::new();
    for _ in 0..1000 {
        store.checkpoint().unwrap();
        free.push(store.stats().vlfs_reusable);
    }
    assert_eq!(free.first(), free.last(), "the first one freed what can be");
    tx.commit(Durability::Full).unwrap();
    std::mem::forget(store);
    for recovery in [Recovery::Instant, Recovery::Wide, Recovery::Prefetch, Recovery::Serial] {
        let store =
            Store::open_on(Arc::new(SimDisk::holding(disk.files())), Options { recovery, ..options() })
                .unwrap();
        assert_row(&store);
        let reader = store.read().unwrap();
        let table = reader.table("t").unwrap();
        assert_eq!(reader.range(table, &[], None).unwrap().count(), 2000);
    }
}

/// Changes one page until the log has reached this virtual log file.
fn fill_up_to(store: &Store, vlf: u32) {
    let mut tx = store.write().unwrap();
    let page = tx.allocate().unwrap();
    tx.commit(Durability::Full).unwrap();
    let mut number = 0_u8;
    while store.log_holders().next.vlf() < vlf {
        number = number.wrapping_add(1);
        let fill = |tx: &mut pagestore::WriteTx<'_>| {
            tx.page_mut(page)?[32..].fill(number % 2 + 1);
            Ok(())
        };
        store.transact(Durability::Full, fill).unwrap();
    }
}

// Growing up to the limit adds only a part of the log that the transaction needs; a checkpoint frees the rest.
#[test]
fn a_transaction_that_needs_more_log_than_growth_allows_has_a_checkpoint_free_some() {
    let layout = Layout { vlf_bytes: 1 << 20, vlfs: 16, ..LAYOUT };
    for background in [true, false] {
        let options = Options {
            background,
            cache_bytes: 32 << 20,
            log_limit_bytes: 18 << 20,
            checkpoint_bytes: u64::MAX,
            ..options()
        };
        let store = Store::create_on(Arc::new(SimDisk::new()), layout, options, 1).unwrap();
        // Half of the log holds images of one page, and is not needed once that is written.
        fill_up_to(&store, 9);
        let many = |tx: &mut pagestore::WriteTx<'_>| (0..1_250).try_for_each(|_| tx.allocate().map(|_| ()));
        store
            .transact(Durability::Full, many)
            .unwrap_or_else(|error| panic!("background {background}: {error}"));
    }
}

/// A disk whose syncs of the data file block until `goes_on`.
struct BlockedDisk {
    disk: SimDisk,
    is_reached: AtomicBool,
    goes_on: AtomicBool,
}

impl Disk for BlockedDisk {
    pagestore_disk::forward_to_disk!(read, write, write_through, len);

    fn sync(&self, file: FileId) -> io::Result<()> {
        if file == FileId::Data {
            self.is_reached.store(true, Ordering::SeqCst);
            while !self.goes_on.load(Ordering::SeqCst) {
                std::thread::yield_now();
            }
        }
        self.disk.sync(file)
    }
}

#[test]
fn a_writer_without_log_space_waits_for_the_checkpoint_of_another_thread() {
    let (is_reached, goes_on) = <(AtomicBool, AtomicBool)>::default();
    let disk = Arc::new(BlockedDisk { disk: SimDisk::new(), is_reached, goes_on });
    let options = Options { log_limit_bytes: 4 * LAYOUT.vlf_bytes, cache_bytes: 8 << 20, ..options() };
    let store = Store::create_on(disk.clone(), LAYOUT, options, 1).unwrap();
    let mut tx = store.write().unwrap();
    let page = tx.allocate().unwrap();
    tx.commit(Durability::Full).unwrap();
    let fill = |number: u32| {
        let fill = |tx: &mut pagestore::WriteTx<'_>| {
            tx.page_mut(page)?[32..].fill((number % 2) as u8 + 1);
            Ok(())
        };
        store.transact(Durability::Full, fill)
    };
    (1..).take_while(|number| fill(*number).is_ok() && store.stats().vlfs_reusable > 1).count();
    std::thread::scope(|scope| {
        scope.spawn(|| store.checkpoint().unwrap());
        while !disk.is_reached.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
        let filled = scope.spawn(|| (0..100).try_for_each(|number| fill(number).map(|_| ())));
        // Until it makes no more progress.
        let (mut next, mut same) = (store.log_holders().next, 0);
        while same < 20 && !filled.is_finished() {
            std::thread::sleep(Duration::from_millis(10));
            let now = store.log_holders().next;
            same = if now == next { same + 1 } else { 0 };
            next = now;
        }
        disk.goes_on.store(true, Ordering::SeqCst);
        filled.join().unwrap().unwrap_or_else(|error| panic!("a checkpoint was about to free log: {error}"));
    });
}

// A checkpoint frees the log before the transaction's first record, although the transaction is partly in the log.
#[test]
fn a_partly_logged_transaction_has_a_checkpoint_free_the_log_before_it() {
    let layout = Layout { vlf_bytes: 512 << 10, ..LAYOUT };
    for background in [true, false] {
        let options = Options {
            background,
            cache_bytes: 64 << 10,
            log_limit_bytes: 4 * layout.vlf_bytes,
            checkpoint_bytes: u64::MAX,
            redo_target: Duration::MAX,
            ..options()
        };
        let store = Store::create_on(Arc::new(SimDisk::new()), layout, options, 1).unwrap();
        fill_up_to(&store, 3);
        let many = |tx: &mut pagestore::WriteTx<'_>| {
            (0..200_u8).try_for_each(|number| {
                let page = tx.allocate()?;
                let mut words = crashlab::Chance::new(number.into());
                tx.page_mut(page)?[32..].fill_with(|| words.draw() as u8);
                Ok(())
            })
        };
        store
            .transact(Durability::Full, many)
            .unwrap_or_else(|error| panic!("background {background}: {error}"));
    }
}

// The space that a transaction requests is an upper bound: the worst change of a page for the log is a byte in every six, whose
// runs are longer than they are.
#[test]
fn transactions_whose_changes_take_most_log_fit_into_the_space_that_was_requested_for_them() {
    for (page_bytes, log_sector_bytes) in [(4096, 4096), (16384, 4096), (16384, 512)] {
        let layout = Layout { page_bytes, log_sector_bytes, vlf_bytes: 4 << 20, vlfs: 2 };
        let options = Options { cache_bytes: 64 << 20, log_limit_bytes: 16 << 20, ..options() };
        let store = Store::create_on(Arc::new(SimDisk::new()), layout, options, 1).unwrap();
        let mut pages = Vec::new();
        let (mut committed, mut refused) = (0, 0);
        for round in 0..60_usize {
            let mut tx = store.write().unwrap();
            let count = 1 + round * 37 % (12 << 20 >> 12) * 4096 / page_bytes;
            while pages.len() < count {
                pages.push(tx.allocate().unwrap());
            }
            for page in &pages[..count] {
                let bytes = tx.page_mut(*page).unwrap();
                bytes[32..].iter_mut().step_by(6 - round % 2).for_each(|byte| *byte = byte.wrapping_add(1));
            }
            match tx.commit(Durability::Full) {
                Ok(_) => committed += 1,
                Err(pagestore::Error::LogFull { .. }) => {
                    refused += 1;
                    pages.clear();
                }
                Err(error) => panic!("{page_bytes}, {log_sector_bytes}, round {round}: {error}"),
            }
        }
        assert!(committed > 20, "{page_bytes}, {log_sector_bytes}: {committed} committed, {refused} refused");
    }
}
