//! An open store: creating, opening and closing it, and reading a page wherever it is.

use crate::disk::counted::CountedDisk;
use crate::disk::open_directory;
use crate::disk::real::{Access, RealDisk, creation};
use crate::engine::cache::PageTable;
use crate::engine::checkpoint::Checkpoint;
use crate::engine::inner::{Inner, StoreParts};
use crate::engine::log_space::write_zeros;
use crate::engine::tx::{ReadTx, WriteTx};
use crate::engine::{background, tree};
use crate::error::{Error, Result, in_directory};
use crate::format::control::{Control, NEWEST_VERSION};
use crate::format::geometry::{LOG_HEAD_BYTES, VLF_HEADER_BYTES};
use crate::log::directory;
use crate::log::record::Record;
use crate::log::writer::LogWriter;
use crate::options::{Durability, Layout, Options, Recovery};
use crate::recovery::{self, RecoveredPages, RecoveryProgress, RecoveryReport, RecoveryTracker};
use crate::sync::lock;
use crate::types::{Lsn, Position, UNIT_BYTES};
use pagestore_counters::{Certificate, Publisher};
use pagestore_disk::{Disk, FileId, FileNames};
use std::path::Path;
use std::sync::Arc;

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
        creation::make_directory(&FileNames, directory)?;
        creation::check_vacant(&FileNames, directory)?;
        let created = RealDisk::open(directory, Access::Create).and_then(|disk| {
            let disk = Arc::new(disk);
            disk.check_sector(layout.log_sector_bytes)
                .and_then(|()| Self::create_on(disk.clone(), layout, options, store))
                .and_then(|store| disk.creation_finished().map(|()| store))
                .inspect_err(|_| creation::abandon(&FileNames, directory))
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
        disk.reserve(FileId::Log, length).map_err(Error::during("reserve", FileId::Log))?;
        write_zeros(disk.as_ref(), FileId::Log, 0, length, || {})?;
        let entries = [0, layout.vlfs].map(directory::end_of);
        write_zeros(disk.as_ref(), FileId::Control, entries[0], entries[1], || {})?;
        for file in [FileId::Log, FileId::Control] {
            disk.sync(file).map_err(Error::during("sync", file))?;
        }
        // Detect a device that loses writes now, and not later in a log without space.
        let found = disk.len(FileId::Log).map_err(Error::during("measure", FileId::Log))?;
        if found < length {
            let why = format!("it has {found} bytes after it was written to its full length");
            return Err(Error::io("create", FileId::Log, std::io::Error::other(why)));
        }
        let writer = LogWriter::create(geometry, layout.vlfs, options.log_writes_in_flight.max(1));
        let redo =
            Position { lsn: Lsn::new(1, (VLF_HEADER_BYTES as u64 / UNIT_BYTES) as u32, 1), previous: 0 };
        let control = Control {
            version: NEWEST_VERSION,
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
            log_slots: 0,
        };
        let pages = page_table(geometry.page_bytes, &options);
        let tracker = RecoveryTracker::finished(&counters);
        let parts = StoreParts { writer, pages, next_tx: 1, sequence: 0, control, tracker };
        let inner = Inner::new(disk, counters, options, parts);
        // The meta page is part of the first commit; only after that there is a store.
        let mut tx = WriteTx::begin(&inner)?;
        let catalog = tx.format_meta()?;
        tree::format_catalog(&mut tx, catalog)?;
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
        let (inner, report) = open_recovered(disk, counters, options, tracker)?;
        Self::start(inner, report)
    }

    /// As [`open`](Self::open), with progress reports: the calling thread calls `on_progress` five times per second
    /// while another thread recovers, and once more when the store is open. With `Recovery::Instant` pages are left
    /// then; see [`recovery_progress`](Self::recovery_progress).
    ///
    /// # Errors
    /// As `open`.
    pub fn open_with(
        directory: &Path,
        options: Options,
        on_progress: impl FnMut(RecoveryProgress),
    ) -> Result<Self> {
        Self::open_on_with(open_directory(directory)?, options, on_progress)
            .map_err(|error| in_directory(error, directory))
    }

    /// As `open_with`, on any disk.
    ///
    /// # Errors
    /// As `open`.
    pub fn open_on_with(
        disk: Arc<dyn Disk>,
        options: Options,
        mut on_progress: impl FnMut(RecoveryProgress),
    ) -> Result<Self> {
        let counters = Publisher::new(disk.directory().filter(|_| options.publish));
        let tracker = RecoveryTracker::begin(&counters, options.recovery);
        let own = Arc::clone(&tracker);
        let opened =
            tracker.report_while(move || open_recovered(disk, counters, options, own), &mut on_progress);
        let (inner, report) = opened?;
        let store = Self::start(inner, report)?;
        on_progress(tracker.progress());
        Ok(store)
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

    /// Runs `changes` in a transaction and commits it; if they fail, it is rolled back.
    ///
    /// # Errors
    /// Those of `changes`, of [`Store::write`] and of [`WriteTx::commit`].
    pub fn transact<T>(
        &self,
        durability: Durability,
        changes: impl FnOnce(&mut WriteTx<'_>) -> Result<T>,
    ) -> Result<T> {
        let mut tx = self.write()?;
        let done = changes(&mut tx)?;
        tx.commit(durability)?;
        Ok(done)
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
}

impl Drop for Store {
    fn drop(&mut self) {
        self.background = None;
        // An error leaves the store as after a crash: delayed commits may be lost.
        let _ = self.inner.journal.flush();
    }
}

/// A random identity, from the seeds that the standard library draws from the system.
fn identity() -> u128 {
    use std::hash::{BuildHasher, RandomState};
    let draw = || u128::from(RandomState::new().hash_one(std::process::id()));
    draw() << 64 | draw()
}

/// The page table of a store that opens empty.
fn page_table(page_bytes: usize, options: &Options) -> PageTable {
    PageTable::new(page_bytes, options.cache_bytes / 4 * 3)
}

/// Recovers the files on `disk`, and begins to log what follows.
fn open_recovered(
    disk: Arc<dyn Disk>,
    counters: Arc<Publisher>,
    options: Options,
    tracker: Arc<RecoveryTracker>,
) -> Result<(Inner, RecoveryReport)> {
    let disk = CountedDisk::wrap(disk, &counters);
    let recovered = recovery::recover(&disk, &counters, &options, &tracker)?;
    let (mut report, control) = (recovered.report, recovered.control);
    let mut pages = page_table(control.geometry.page_bytes, &options);
    match recovered.pages {
        RecoveredPages::Written => {}
        RecoveredPages::Chains(chains) => {
            for (page, chain) in chains {
                pages.insert_recovered(page, chain.lsns, chain.bytes);
            }
        }
        RecoveredPages::Runs(runs) => pages.attach_runs(runs),
    }
    let parts = StoreParts {
        writer: recovered.writer,
        pages,
        next_tx: recovered.next_tx,
        sequence: report.last_sequence,
        control,
        tracker,
    };
    let mut inner = Inner::new(disk, counters, options, parts);
    inner.redo_cost.log_read(report.log_bytes, recovered.log_read);
    inner.journal.append_note(&Record::Recovery { epoch: u64::from(control.epoch), cut: report.cut })?;
    inner.journal.flush()?;
    inner.opening = (report.cut, inner.journal.durable());
    if options.recovery == Recovery::Wide && report.pages > 0 {
        inner.checkpoint()?;
        // Its records change no page either.
        inner.journal.flush()?;
        inner.opening.1 = inner.journal.durable();
    }
    if options.recovery != Recovery::Instant || report.pages == 0 {
        inner.tracker.end();
    }
    report.opened = inner.tracker.begun.elapsed();
    Ok((inner, report))
}
