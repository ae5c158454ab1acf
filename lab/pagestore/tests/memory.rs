//! The memory of a store stays within the bound that is stated at [`Options::cache_bytes`], whatever the size of a transaction.
//! The allocator counts it, and the store that of its pages.
//!
//! ```text
//! transaction   every page of a table of pages created in one transaction, until its commit returns
//! checkpoint    all of them written to the data file
//! again         every page changed in one transaction, while an older snapshot is open
//! recovery      the store left before any of that is in the data file, and opened (instant), until its pages are written
//! one by one    the same, recovered page by page in the order of the log
//! ```
//! `cargo test --release -p pagestore --test memory -- --include-ignored --nocapture --test-threads 1` prints them,
//! also for 400 MiB with a cache of 32.

use pagestore::disk::{Disk, FileId, open_directory};
use pagestore::{Durability, Layout, Options, PageNo, Pages, Recovery, Store};
use std::alloc::{GlobalAlloc, Layout as Memory, System};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// The system's allocator, with a count of live bytes.
struct CountingAllocator;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

fn took(bytes: usize) {
    let live = LIVE.fetch_add(bytes, Ordering::Relaxed) + bytes;
    PEAK.fetch_max(live, Ordering::Relaxed);
}

// SAFETY: every call is passed unchanged to the system's allocator.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, memory: Memory) -> *mut u8 {
        took(memory.size());
        // SAFETY: as guaranteed by the caller.
        unsafe { System.alloc(memory) }
    }

    unsafe fn alloc_zeroed(&self, memory: Memory) -> *mut u8 {
        took(memory.size());
        // SAFETY: as guaranteed by the caller.
        unsafe { System.alloc_zeroed(memory) }
    }

    unsafe fn realloc(&self, at: *mut u8, memory: Memory, bytes: usize) -> *mut u8 {
        // Both may exist for a moment.
        took(bytes);
        LIVE.fetch_sub(memory.size(), Ordering::Relaxed);
        // SAFETY: as guaranteed by the caller.
        unsafe { System.realloc(at, memory, bytes) }
    }

    unsafe fn dealloc(&self, at: *mut u8, memory: Memory) {
        LIVE.fetch_sub(memory.size(), Ordering::Relaxed);
        // SAFETY: as guaranteed by the caller.
        unsafe { System.dealloc(at, memory) }
    }
}

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// The peak of allocated bytes while `work` ran, minus `from`.
fn peak<T>(from: usize, work: impl FnOnce() -> T) -> (usize, T) {
    PEAK.store(LIVE.load(Ordering::Relaxed), Ordering::Relaxed);
    let done = work();
    (PEAK.load(Ordering::Relaxed).saturating_sub(from), done)
}

/// A store's files; once armed, the data file cannot be synced any more after a page was written, so that no log is
/// freed.
struct Unsynced {
    disk: Arc<dyn Disk>,
    armed: AtomicBool,
    fails: AtomicBool,
}

impl Disk for Unsynced {
    pagestore_disk::forward_to_disk!(read, write_through, len, scratch);

    fn write(&self, file: FileId, offset: u64, bytes: &[u8]) -> io::Result<()> {
        if file == FileId::Data && self.armed.load(Ordering::Relaxed) {
            self.fails.store(true, Ordering::Relaxed);
        }
        self.disk.write(file, offset, bytes)
    }

    fn sync(&self, file: FileId) -> io::Result<()> {
        if file == FileId::Data && self.fails.load(Ordering::Relaxed) {
            return Err(io::Error::other("told to fail"));
        }
        self.disk.sync(file)
    }
}

const MIB: usize = 1 << 20;

struct Peaks {
    transaction: usize,
    checkpoint: usize,
    again: usize,
    recovery: usize,
    one_by_one: usize,
    pages: usize,
}

/// Changes every page after the first few, over its whole length.
fn change_all(store: &Store, pages: usize, byte: u8) -> pagestore::Result<()> {
    let mut tx = store.write()?;
    let first = tx.page_count()?;
    for index in 0..pages {
        // The second time in the opposite order, so that evicted pages are read again.
        let page = if byte == 1 { tx.allocate()? } else { PageNo(first - 1 - index as u64) };
        let bytes = tx.page_mut(page)?;
        bytes[32..].fill(byte);
        bytes[40] = index as u8;
    }
    tx.commit(Durability::Full).map(|_| ())
}

fn measure(place: &Path, bytes: usize, cache_bytes: usize) -> Peaks {
    let options = Options { cache_bytes, publish: false, ..Options::default() };
    let directory = place.join("store");
    Store::create(&directory, Layout::default(), options).unwrap().close().unwrap();
    let pages = bytes / Layout::default().page_bytes;
    let disk = open_directory(&directory).unwrap();
    let disk = Arc::new(Unsynced { disk, armed: AtomicBool::new(false), fails: AtomicBool::new(false) });
    let closed = LIVE.load(Ordering::Relaxed);
    // Of pages, all that was ever used by this opening.
    let with_pages = |peak: usize, store: &Store| peak + store.stats().page_memory_bytes as usize;
    let (transaction, store) = peak(closed, || {
        let store = Store::open_on(disk.clone(), options).unwrap();
        change_all(&store, pages, 1).unwrap();
        store
    });
    let transaction = with_pages(transaction, &store);
    let (checkpoint, ()) = peak(closed, || {
        store.checkpoint().unwrap();
    });
    let checkpoint = with_pages(checkpoint, &store);
    assert!(store.stats().cached_bytes <= cache_bytes as u64);
    disk.armed.store(true, Ordering::Relaxed);
    let reader = store.read().unwrap();
    // Its checkpoint fails, which leaves everything in the log.
    let (again, _) = peak(closed, || change_all(&store, pages, 2));
    let again = with_pages(again, &store);
    drop(reader);
    drop(store);
    drop(disk);
    let crashed = place.join("crashed");
    std::fs::create_dir(&crashed).unwrap();
    for file in FileId::ALL {
        std::fs::copy(directory.join(file.name()), crashed.join(file.name())).unwrap();
    }
    let (one_by_one, store) =
        peak(closed, || Store::open(&crashed, Options { recovery: Recovery::Prefetch, ..options }).unwrap());
    let one_by_one = with_pages(one_by_one, &store);
    assert_eq!(store.read().unwrap().page(PageNo(pages as u64 / 2)).unwrap()[100], 2);
    drop(store);
    let (recovery, store) = peak(closed, || {
        let store = Store::open(&directory, options).unwrap();
        assert!(store.recovery_report().pages as usize >= pages);
        store.checkpoint().unwrap();
        store
    });
    let recovery = with_pages(recovery, &store);
    let page = store.read().unwrap().page(PageNo(pages as u64 / 2)).unwrap();
    assert_eq!(page[100], 2, "what was committed is there");
    Peaks { transaction, checkpoint, again, recovery, one_by_one, pages }
}

/// The bound stated at `Options::cache_bytes`.
fn bound(pages: usize, cache_bytes: usize) -> usize {
    let batch = (cache_bytes / 4).clamp(MIB, 1024 * MIB);
    let free_places = (cache_bytes / 4).max(4 * MIB);
    5 * cache_bytes / 4 + free_places + 2 * batch + 4 * MIB + 300 * pages
}

/// One test at a time, since they share the counts.
static ONE: Mutex<()> = Mutex::new(());

fn stays_within_the_bound(bytes: usize, cache_bytes: usize) {
    let _one = ONE.lock().unwrap();
    let place = tempfile::tempdir_in("/var/tmp").unwrap();
    let Peaks { transaction, checkpoint, again, recovery, one_by_one, pages } =
        measure(place.path(), bytes, cache_bytes);
    let figures = format!(
        "{} MiB in {pages} pages, a cache of {} MiB: transaction {:.1} MiB, checkpoint {:.1}, again {:.1}, recovery {:.1}, one by one {:.1}",
        bytes / MIB,
        cache_bytes / MIB,
        transaction as f64 / MIB as f64,
        checkpoint as f64 / MIB as f64,
        again as f64 / MIB as f64,
        recovery as f64 / MIB as f64,
        one_by_one as f64 / MIB as f64
    );
    println!("{figures}");
    for phase in [transaction, checkpoint, again, recovery, one_by_one] {
        assert!(phase <= bound(pages, cache_bytes), "{figures}");
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    println!("{}", status.lines().find(|line| line.starts_with("VmHWM")).unwrap());
}

#[test]
fn a_transaction_far_larger_than_the_cache_takes_the_memory_that_is_stated() {
    stays_within_the_bound(96 * MIB, 8 * MIB);
}

#[test]
#[ignore = "half a minute: the figures of lab/pagestore/README.md"]
fn the_figures_of_400_mib_in_a_cache_of_32() {
    stays_within_the_bound(400 * MIB, 32 * MIB);
}
