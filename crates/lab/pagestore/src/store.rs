//! An open store: opening, creating, closing, and reading a page wherever it is.

mod stats;

use crate::awake::Awake;
use crate::cache::{Lookup, Page, PageTable, View};
use crate::checkpoint::{Certified, Checkpoint};
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
use crate::recovery::{self, Course, RecoveryReport};
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
pub struct Store {
    pub(crate) inner: Arc<Inner>,
    background: Option<background::Threads>,
    pub(crate) report: RecoveryReport,
}

/// What the next writing transaction needs.
pub(crate) struct Writing {
    pub next_tx: u64,
    pub sequence: u64,
    pub buffers: Buffers,
    /// The number of the newest table, whether it was committed or not.
    pub tables: u32,
}

/// What the threads of a store share.
pub(crate) struct Inner {
    pub disk: Arc<dyn Disk>,
    pub options: Options,
    pub geometry: Geometry,
    pub journal: Journal,
    pub pages: Mutex<PageTable>,
    /// One transaction writes at a time.
    pub writing: Mutex<Writing>,
    /// The thread whose transaction that is; 0: nobody's. The one that asks whether it is its own has written it itself.
    pub whose_turn: AtomicUsize,
    /// A commit is appended and installed as one, as a checkpoint sees it.
    pub gate: Mutex<()>,
    pub control: Mutex<Control>,
    /// One checkpoint at a time.
    pub checkpointing: Mutex<Checkpoints>,
    /// The thread whose checkpoint runs; 0: nobody's. As `whose_turn`, it is asked for one's own only.
    pub whose_checkpoint: AtomicUsize,
    /// Threads that wait for the one that runs.
    pub hurry: AtomicU64,
    pub growing: Mutex<()>,
    /// Threads that cannot go on before the log has grown.
    pub growth_awaited: AtomicU64,
    /// Recovery would begin here; mirrors the control file.
    pub redo: AtomicU64,
    /// The newest commit.
    pub last_sequence: AtomicU64,
    /// The newest transaction.
    pub last_tx: AtomicU64,
    pub course: Arc<Course>,
    pub wake: background::Wake,
    pub redo_cost: RedoCost,
    pub counters: Arc<Publisher>,
    /// One answers at a time.
    answering: Mutex<()>,
}

/// What checkpoints have done.
#[derive(Default)]
pub(crate) struct Checkpoints {
    pub last: Option<Certificate>,
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no thread panics with a lock of the store")
}

/// Says where there is no store.
pub(crate) fn in_directory(error: Error, directory: &Path) -> Error {
    match error {
        Error::NotAStore { why, .. } => Error::NotAStore { path: directory.display().to_string(), why },
        other => other,
    }
}

impl Store {
    /// Creates a store in a new or empty directory, or where a creation was interrupted. One that fails leaves nothing.
    ///
    /// # Errors
    /// When there is something already, an option is out of range, or an I/O fails.
    pub fn create(directory: &Path, layout: Layout, options: Options) -> Result<Self> {
        let store = identity();
        layout.geometry(store)?;
        layout.log_bytes(options.log_limit_bytes)?;
        let is_new = !directory.exists();
        std::fs::create_dir_all(directory)
            .map_err(|error| Error::io("create", directory.display(), error))?;
        creation::look_for_room(directory)?;
        let created = RealDisk::open(directory, Access::Create).and_then(|disk| {
            let disk = Arc::new(disk);
            disk.check_sector(layout.log_sector_bytes)
                .and_then(|()| Self::create_on(disk.clone(), layout, options, store))
                .and_then(|store| disk.creation_finished().map(|()| store))
                .inspect_err(|_| creation::abandon(directory))
        });
        if created.is_err() && is_new {
            // Where another has created one meanwhile it is not empty.
            let _ = std::fs::remove_dir(directory);
        }
        created
    }

    /// Opens a store, and recovers it if it was not closed.
    ///
    /// # Errors
    /// When there is none, another process has it, acknowledged data is damaged, or an I/O fails.
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
        // Where there is no space for it, that is known before it is written.
        disk.reserve(FileId::Log, length).map_err(|error| Error::io("reserve", FileId::Log, error))?;
        write_zeros(disk.as_ref(), FileId::Log, 0, length, || {})?;
        let entries = [0, layout.vlfs].map(directory::end_of);
        write_zeros(disk.as_ref(), FileId::Control, entries[0], entries[1], || {})?;
        for file in [FileId::Log, FileId::Control] {
            disk.sync(file).map_err(|error| Error::io("sync", file, error))?;
        }
        // A device that loses a write is found out here, and not by a log that has no space later.
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
        let course = Course::none(&counters);
        let found = recovery::Found { writer, pages, next_tx: 1, sequence: 0, control, course };
        let inner = Inner::new(disk, counters, options, found);
        // The store's own page is the first commit; only then is there a store.
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
        let course = Course::begin(&counters, options.recovery);
        let (inner, report) = recovery::open(CountedDisk::wrap(disk, &counters), counters, options, course)?;
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

    /// Begins to read: what was committed and acknowledged by now, whatever is committed meanwhile, or fails to be.
    ///
    /// # Errors
    /// None: that takes no I/O. To read does.
    pub fn read(&self) -> Result<ReadTx<'_>> {
        Ok(ReadTx::begin(&self.inner))
    }

    /// Begins to write, once the transaction that writes now has ended.
    ///
    /// # Errors
    /// When this thread has one that it has not ended, or the store is read-only since an I/O failed.
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

    /// Writes every changed page and frees the log before it.
    ///
    /// # Errors
    /// When an I/O fails; the store is read-only then.
    pub fn checkpoint(&self) -> Result<Certificate> {
        self.inner.checkpoint().map(Certified::certificate)
    }

    /// A checkpoint in the caller's own steps.
    pub(crate) fn begin_checkpoint(&self) -> Result<Checkpoint<'_>> {
        self.inner.begin_checkpoint(lock(&self.inner.checkpointing))
    }

    /// Flushes, checkpoints and closes: opening it again needs no recovery.
    ///
    /// # Errors
    /// When an I/O fails; what was acknowledged is in the log all the same.
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

    /// Bytes of a page that a user has.
    #[must_use]
    pub fn usable_page_bytes(&self) -> usize {
        self.inner.geometry.page_bytes - page::PAGE_HEADER_BYTES
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.background = None;
        // Delayed commits are kept if they can be; an error here is what a crash would have been.
        let _ = self.inner.journal.flush();
    }
}

impl Inner {
    pub(crate) fn new(
        disk: Arc<dyn Disk>,
        counters: Arc<Publisher>,
        options: Options,
        found: recovery::Found,
    ) -> Self {
        let poison = Arc::new(OnceLock::new());
        let geometry = found.control.geometry;
        let awake = options.background.then(|| Awake::new(options.keep_awake)).flatten();
        let journal = Journal::new(
            Arc::clone(&disk),
            found.writer,
            found.sequence,
            poison,
            Arc::clone(&counters),
            awake,
        );
        Self {
            last_tx: AtomicU64::new(found.next_tx - 1),
            disk,
            options,
            geometry,
            journal,
            pages: Mutex::new(found.pages),
            writing: Mutex::new(Writing {
                next_tx: found.next_tx,
                sequence: found.sequence,
                buffers: Buffers::default(),
                tables: first_table(found.control.epoch),
            }),
            whose_turn: AtomicUsize::new(0),
            gate: Mutex::new(()),
            redo: AtomicU64::new(found.control.redo.lsn.packed()),
            control: Mutex::new(found.control),
            checkpointing: Mutex::new(Checkpoints::default()),
            whose_checkpoint: AtomicUsize::new(0),
            hurry: AtomicU64::new(0),
            growing: Mutex::new(()),
            growth_awaited: AtomicU64::new(0),
            last_sequence: AtomicU64::new(found.sequence),
            course: found.course,
            wake: background::Wake::default(),
            redo_cost: RedoCost::of(options.recovery),
            counters,
            answering: Mutex::new(()),
        }
    }

    /// Shows the counters to other processes.
    fn announce(&self) {
        if let Some(directory) = self.disk.directory() {
            let opening = lock(&self.control).opening();
            self.counters.announce(directory, &opening);
        }
        self.publish_state();
    }

    /// The page as `view` sees it, from the cache, the data file or the log.
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
                        Ok(chain) => pages.resolved(page, chain),
                        // The log was freed meanwhile that it would have been in: the table has the page.
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
                    if pages.keep(page, &content, token) {
                        pages.make_room(self.journal.visible(), self.journal.durable());
                        return Ok(content);
                    }
                }
                // It was read while it changed; what it is now is elsewhere.
                Err(_) if !pages.is_current(page, token) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Where the page is in the data file; `None`: no file is so long.
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

    /// Bytes of log that recovery would read now, with `next` the end of the log.
    pub(crate) fn redo_bytes(&self, next: Lsn) -> u64 {
        let redo = Lsn::from_packed(self.redo.load(Ordering::Acquire));
        redo.bytes_to(next, self.geometry.vlf_bytes)
    }
}

/// Where tables are numbered from in an opening: those of others are far away, however many there were (Knuth 6.4,
/// multiplication by the golden section).
fn first_table(epoch: u32) -> u32 {
    epoch.wrapping_mul(0x9e37_79b9)
}

/// A new identity, from the system's random numbers as the standard library hands them out.
fn identity() -> u128 {
    use std::hash::{BuildHasher, RandomState};
    let draw = || u128::from(RandomState::new().hash_one(std::process::id()));
    draw() << 64 | draw()
}
