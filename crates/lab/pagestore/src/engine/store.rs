//! An open store: creating, opening and closing it, and reading a page wherever it is.

mod stats;

use crate::awake::IdleGuard;
use crate::cache::{Lookup, Page, PageTable, View};
use crate::checkpoint::Checkpoint;
use crate::control::Control;
use crate::disk::counted::CountedDisk;
use crate::disk::real::{Access, RealDisk, creation};
use crate::disk::{Disk, FileId};
use crate::error::{Error, Result};
use crate::journal::Journal;
use crate::log::directory;
use crate::log::writer::{LogWriter, Position};
use crate::log::{Geometry, LOG_HEAD_BYTES, VLF_HEADER_BYTES};
use crate::log_space::write_zeros;
use crate::options::{Layout, Options};
use crate::pace::RedoCost;
use crate::recovery::{self, RecoveryReport, RecoveryTracker};
use crate::sync::{AtomicU64, Mutex};
use crate::tx::{Buffers, ReadTx, WriteTx};
use crate::types::{Lsn, PageNo, UNIT_BYTES};
use crate::{background, page};
use pagestore_counters::{Certificate, Publisher};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, MutexGuard, OnceLock};

pub use stats::{LogHolders, Stats};

/// A page store, open for reading and writing. Threads share it by reference.
///
/// ```
/// # let place = std::env::temp_dir().join(format!("pagestore-doc-{}", std::process::id()));
/// # let directory = place.as_path();
/// use pagestore::{Durability, Layout, Options, Store, Tables};
///
/// let store = Store::create(directory, Layout::default(), Options::default())?;
/// let mut tx = store.write()?;
/// let orders = tx.create_table("orders")?;
/// tx.put(orders, b"2026-11-22/1", b"3 pears")?;
/// tx.commit(Durability::Full)?;
/// let reader = store.read()?;
/// assert_eq!(reader.get(orders, b"2026-11-22/1")?, Some(b"3 pears".to_vec()));
/// # drop(reader);
/// # drop(store);
/// # std::fs::remove_dir_all(directory).unwrap();
/// # Ok::<(), pagestore::Error>(())
/// ```
/// `examples/shop.rs` shows more.
pub struct Store {
    pub(crate) inner: Arc<Inner>,
    background: Option<background::Threads>,
    pub(crate) report: RecoveryReport,
}

/// The state of the writing transaction that outlives it.
pub(crate) struct Writing {
    pub next_tx: u64,
    pub sequence: u64,
    pub buffers: Buffers,
    /// The number of the newest table, committed or not.
    pub tables: u32,
}

/// What the threads of a store share.
pub(crate) struct Inner {
    pub disk: Arc<dyn Disk>,
    pub options: Options,
    pub geometry: Geometry,
    pub journal: Journal,
    pub pages: Mutex<PageTable>,
    /// The writer lock: one transaction writes at a time.
    pub writing: Mutex<Writing>,
    /// The number of the thread that holds it; 0: none. Only compared by a thread with its own number, which it
    /// stored itself.
    pub writer_thread: AtomicUsize,
    /// Makes appending and installing a commit atomic with respect to checkpoints.
    pub gate: Mutex<()>,
    pub control: Mutex<Control>,
    /// Held by the one checkpoint that runs.
    pub checkpointing: Mutex<Checkpoints>,
    /// The number of the thread that runs it; 0: none. Compared as `writer_thread` is.
    pub checkpoint_thread: AtomicUsize,
    /// Threads that wait for a running checkpoint to end.
    pub checkpoint_waiters: AtomicU64,
    pub growing: Mutex<()>,
    /// Threads that cannot continue before the log has grown.
    pub growth_awaited: AtomicU64,
    /// The redo position, as in the control file.
    pub redo: AtomicU64,
    /// The newest commit.
    pub last_sequence: AtomicU64,
    /// The newest transaction.
    pub last_tx: AtomicU64,
    pub tracker: Arc<RecoveryTracker>,
    pub wake: background::Wake,
    pub redo_cost: RedoCost,
    pub counters: Arc<Publisher>,
    /// Held by the thread that publishes the state of the log.
    publishing: Mutex<()>,
}

/// The last checkpoint.
#[derive(Default)]
pub(crate) struct Checkpoints {
    pub last: Option<Certificate>,
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no thread panics with a lock of the store")
}

/// Adds the directory to a `NotAStore` error.
pub(crate) fn in_directory(error: Error, directory: &Path) -> Error {
    match error {
        Error::NotAStore { why, .. } => Error::NotAStore { path: directory.display().to_string(), why },
        other => other,
    }
}

impl Store {
    /// Creates a store in a new or empty directory, or in one where a creation was interrupted. A creation that
    /// fails leaves nothing behind.
    ///
    /// # Errors
    /// When the directory is not empty, an option is out of range, or an I/O fails.
    pub fn create(directory: &Path, layout: Layout, options: Options) -> Result<Self> {
        let store = identity();
        layout.geometry(store)?;
        layout.log_bytes(options.log_limit_bytes)?;
        let is_new = !directory.exists();
        std::fs::create_dir_all(directory)
            .map_err(|error| Error::io("create", directory.display(), error))?;
        creation::check_vacant(directory)?;
        let created = RealDisk::open(directory, Access::Create).and_then(|disk| {
            let disk = Arc::new(disk);
            disk.check_sector(layout.log_sector_bytes)
                .and_then(|()| Self::create_on(disk.clone(), layout, options, store))
                .and_then(|store| disk.creation_finished().map(|()| store))
                .inspect_err(|_| creation::abandon(directory))
        });
        if created.is_err() && is_new {
            // Fails if another process has created a store there meanwhile, as it is not empty then.
            let _ = std::fs::remove_dir(directory);
        }
        created
    }

    /// Opens a store, and recovers it if it was not closed.
    ///
    /// # Errors
    /// When there is no store, another process has it open, acknowledged data is damaged, or an I/O fails.
    pub fn open(directory: &Path, options: Options) -> Result<Self> {
        let disk = Arc::new(RealDisk::open(directory, Access::Write)?);
        let store = Self::open_on(disk.clone(), options).map_err(|error| in_directory(error, directory))?;
        disk.creation_finished()?;
        Ok(store)
    }

    /// As `create`, on any disk whose files are empty.
    ///
    /// # Errors
    /// As `create`.
    pub fn create_on(disk: Arc<dyn Disk>, layout: Layout, options: Options, store: u128) -> Result<Self> {
        let geometry = layout.geometry(store)?;
        let counters = Publisher::new(disk.directory().filter(|_| options.publish));
        let disk = CountedDisk::wrap(disk, &counters);
        let length = LOG_HEAD_BYTES + layout.log_bytes(options.log_limit_bytes)?;
        // A lack of space is reported before anything is written.
        disk.reserve(FileId::Log, length).map_err(|error| Error::io("reserve", FileId::Log, error))?;
        write_zeros(disk.as_ref(), FileId::Log, 0, length, || {})?;
        let entries = [0, layout.vlfs].map(directory::end_of);
        write_zeros(disk.as_ref(), FileId::Control, entries[0], entries[1], || {})?;
        for file in [FileId::Log, FileId::Control] {
            disk.sync(file).map_err(|error| Error::io("sync", file, error))?;
        }
        // Detect a device that loses writes now, and not later in a log without space.
        let found = disk.len(FileId::Log).map_err(|error| Error::io("measure", FileId::Log, error))?;
        if found < length {
            let why = format!("it has {found} bytes after it was written to its full length");
            return Err(Error::io("create", FileId::Log, std::io::Error::other(why)));
        }
        let writer = LogWriter::create(geometry, layout.vlfs, options.log_writes_in_flight.max(1));
        let redo =
            Position { lsn: Lsn::new(1, (VLF_HEADER_BYTES as u64 / UNIT_BYTES) as u32, 1), previous: 0 };
        let control = Control {
            geometry,
            store,
            generation: 0,
            epoch: 1,
            redo,
            redo_slot: 0,
            durable: Lsn::ZERO,
            clean: false,
            sequence: 0,
            tx_max: 0,
        };
        let pages = PageTable::new(geometry.page_bytes, options.cache_bytes / 4 * 3);
        let tracker = RecoveryTracker::finished(&counters);
        let parts = recovery::StoreParts { writer, pages, next_tx: 1, sequence: 0, control, tracker };
        let inner = Inner::new(disk, counters, options, parts);
        // The meta page is part of the first commit; only after that there is a store.
        let mut tx = WriteTx::begin(&inner)?;
        tx.format()?;
        tx.commit_full()?;
        lock(&inner.control).create(inner.disk.as_ref())?;
        Self::start(inner, RecoveryReport::default())
    }

    /// As `open`, on any disk.
    ///
    /// # Errors
    /// As `open`.
    pub fn open_on(disk: Arc<dyn Disk>, options: Options) -> Result<Self> {
        let counters = Publisher::new(disk.directory().filter(|_| options.publish));
        let tracker = RecoveryTracker::begin(&counters, options.recovery);
        let (inner, report) = recovery::open(CountedDisk::wrap(disk, &counters), counters, options, tracker)?;
        Self::start(inner, report)
    }

    pub(crate) fn start(inner: Inner, report: RecoveryReport) -> Result<Self> {
        inner.announce();
        let inner = Arc::new(inner);
        let background =
            if inner.options.background { Some(background::Threads::start(&inner)?) } else { None };
        if report.pages > 0 {
            inner.wake.checkpoint();
        }
        Ok(Self { inner, background, report })
    }

    /// Begins a snapshot of what is committed and acknowledged now. Later commits, and commits that fail, do not
    /// affect it.
    ///
    /// # Errors
    /// None: it does no I/O. Reading from the snapshot does.
    pub fn read(&self) -> Result<ReadTx<'_>> {
        Ok(ReadTx::begin(&self.inner))
    }

    /// Begins a writing transaction, after the current one has ended.
    ///
    /// # Errors
    /// When this thread has a writing transaction already, or the store is read-only since an I/O failed.
    pub fn write(&self) -> Result<WriteTx<'_>> {
        WriteTx::begin(&self.inner)
    }

    /// Makes every delayed commit durable.
    ///
    /// # Errors
    /// When the write fails; the store is read-only then.
    pub fn flush(&self) -> Result<()> {
        self.inner.journal.flush()
    }

    /// Writes every dirty page and frees the log before the checkpoint.
    ///
    /// # Errors
    /// When an I/O fails; the store is read-only then.
    pub fn checkpoint(&self) -> Result<Certificate> {
        self.inner.checkpoint()
    }

    /// Begins a checkpoint whose steps the caller controls; commits go on between them.
    ///
    /// # Errors
    /// When an I/O fails; the store is read-only then.
    pub fn begin_checkpoint(&self) -> Result<Checkpoint<'_>> {
        self.inner.begin_checkpoint(lock(&self.inner.checkpointing))
    }

    /// Flushes, writes a checkpoint and closes: the next opening needs no recovery.
    ///
    /// # Errors
    /// When an I/O fails; what was acknowledged is in the log nevertheless.
    pub fn close(mut self) -> Result<()> {
        self.background = None;
        self.inner.journal.flush()?;
        self.inner.checkpoint()?;
        self.inner.journal.flush()?;
        let mut control = lock(&self.inner.control);
        control.clean = true;
        control.durable = self.inner.journal.durable();
        control.write(self.inner.disk.as_ref())
    }

    /// Bytes of a page that are available to the user.
    #[must_use]
    pub fn usable_page_bytes(&self) -> usize {
        self.inner.geometry.page_bytes - page::PAGE_HEADER_BYTES
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.background = None;
        // An error leaves the store as after a crash: delayed commits may be lost.
        let _ = self.inner.journal.flush();
    }
}

impl Inner {
    pub(crate) fn new(
        disk: Arc<dyn Disk>,
        counters: Arc<Publisher>,
        options: Options,
        parts: recovery::StoreParts,
    ) -> Self {
        let poison = Arc::new(OnceLock::new());
        let geometry = parts.control.geometry;
        let idle_guard = options.background.then(|| IdleGuard::new(options.keep_awake)).flatten();
        let journal = Journal::new(
            Arc::clone(&disk),
            parts.writer,
            parts.sequence,
            poison,
            Arc::clone(&counters),
            idle_guard,
        );
        Self {
            last_tx: AtomicU64::new(parts.next_tx - 1),
            disk,
            options,
            geometry,
            journal,
            pages: Mutex::new(parts.pages),
            writing: Mutex::new(Writing {
                next_tx: parts.next_tx,
                sequence: parts.sequence,
                buffers: Buffers::default(),
                tables: first_table(parts.control.epoch),
            }),
            writer_thread: AtomicUsize::new(0),
            gate: Mutex::new(()),
            redo: AtomicU64::new(parts.control.redo.lsn.packed()),
            control: Mutex::new(parts.control),
            checkpointing: Mutex::new(Checkpoints::default()),
            checkpoint_thread: AtomicUsize::new(0),
            checkpoint_waiters: AtomicU64::new(0),
            growing: Mutex::new(()),
            growth_awaited: AtomicU64::new(0),
            last_sequence: AtomicU64::new(parts.sequence),
            tracker: parts.tracker,
            wake: background::Wake::default(),
            redo_cost: RedoCost::new(options.recovery),
            counters,
            publishing: Mutex::new(()),
        }
    }

    /// Publishes the counters to other processes.
    fn announce(&self) {
        if let Some(directory) = self.disk.directory() {
            let opening = lock(&self.control).opening();
            self.counters.announce(directory, &opening);
        }
        self.publish_state();
    }

    /// Reads the version of a page in `view` from the cache, the data file or the log.
    pub(crate) fn page(&self, page: PageNo, view: View) -> Result<Page> {
        loop {
            let lookup = lock(&self.pages).lookup(page, view);
            let (read, token) = match lookup {
                Lookup::Cached(content) => return Ok(content),
                Lookup::TooOld => return Err(Error::SnapshotTooOld),
                Lookup::Unresolved(runs) => {
                    let chain = runs.chain(page);
                    let mut pages = lock(&self.pages);
                    match chain {
                        Ok(chain) => pages.insert_resolved(page, chain),
                        // A checkpoint has freed its log meanwhile; the page is in the table now.
                        Err(_) if pages.runs().is_none() => {}
                        Err(error) => return Err(error),
                    }
                    continue;
                }
                Lookup::Stored(token) => (self.read_stored(page), token),
                Lookup::Logged(chain, token) => (self.redo(&chain), token),
            };
            let mut pages = lock(&self.pages);
            match read {
                Ok(content) => {
                    if pages.insert_read(page, &content, token) {
                        pages.evict(self.journal.visible(), self.journal.durable());
                        return Ok(content);
                    }
                }
                // The page changed or its log was freed during the read; look it up again.
                Err(_) if !pages.is_current(page, token) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// The page's offset in the data file; `None` if no file can be that long.
    pub(crate) fn offset_of(&self, page: PageNo) -> Option<u64> {
        let page_bytes = self.geometry.page_bytes as u64;
        page.0.checked_mul(page_bytes).filter(|offset| *offset <= i64::MAX as u64 - page_bytes)
    }

    fn read_stored(&self, page: PageNo) -> Result<Page> {
        let mut bytes = vec![0; self.geometry.page_bytes];
        let missing = || Error::CorruptPage { page, why: "the data file ends before it".into() };
        let offset = self.offset_of(page).ok_or_else(missing)?;
        self.disk.read(FileId::Data, offset, &mut bytes).map_err(|error| {
            if error.kind() == std::io::ErrorKind::UnexpectedEof {
                missing()
            } else {
                Error::io("read", FileId::Data, error)
            }
        })?;
        page::unstamp(&mut bytes, self.geometry.store, page)?;
        self.counters.engine.page_reads.fetch_add(1, Ordering::Relaxed);
        Ok(Page::from(bytes))
    }

    /// Bytes of log that recovery would read if the log ended at `next`.
    pub(crate) fn redo_bytes(&self, next: Lsn) -> u64 {
        let redo = Lsn::from_packed(self.redo.load(Ordering::Acquire));
        redo.bytes_to(next, self.geometry.vlf_bytes)
    }
}

/// The first table number of an opening. Those of other openings are far away, however many there were (Knuth 6.4,
/// multiplication by the golden section).
fn first_table(epoch: u32) -> u32 {
    epoch.wrapping_mul(0x9e37_79b9)
}

/// A random identity, from the seeds that the standard library draws from the system.
fn identity() -> u128 {
    use std::hash::{BuildHasher, RandomState};
    let draw = || u128::from(RandomState::new().hash_one(std::process::id()));
    draw() << 64 | draw()
}
