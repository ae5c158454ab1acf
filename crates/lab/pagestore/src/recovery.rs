//! Opening a store: finding the end of its log, and bringing its pages up to the last commit.
//!
//! ```text
//! analysis   control file -> slots' headers -> blocks from the redo LSN along the chain -> for every page the
//!            records since its last image, of committed transactions only; an honest end, or damage
//! instant    the log's directory, and the blocks of the virtual log file that is not full; the pages' chains are the
//!            dirty pages of the opened store: read on demand, written by a checkpoint
//! wide       the whole log, then that checkpoint: all places known, sorted, neighbours together, many at once, one sync
//! prefetch   pages written one by one in the order of the log, one sync
//! serial     as that, the log read in 32 KiB steps, a sync for every virtual log file
//! ```
//! **Bounded opening.** A virtual log file that is full ends with its index (`log::index`): for every page the places
//! of its records, of what committed and of what was open. The log's directory (`log::directory`) tells of all ends in
//! one place. Opening reads it (`directory`) and the records of the one virtual log file that is not full, and beside them
//! the newest filters. Indices are read when a page may be in them, newest first, by filters (`runs`); the first checkpoint reads the rest and moves
//! all into the page table, a few pages at a time, before it lists what is dirty. What is passed over is read when a
//! page is, or by that checkpoint: damage there is reported then. Where the directory does not lead to the end of the
//! log, the headers, the ends and the indices are read themselves (`indexed`), and what is found counts.
//!
//! No page is read from the data file to redo it: its first record is an image. Before the store is open, analysis
//! writes the control file (a new epoch) and one block (RECOVERY), and nothing is erased: what an interrupted
//! recovery leaves is recovered again by the same steps.

mod course;
mod directory;
mod indexed;
mod one_by_one;
mod progress;
pub(crate) mod runs;

use crate::cache::PageTable;
use crate::control::Control;
use crate::disk::{Disk, FileId};
use crate::error::{Error, Result};
use crate::log::block::{BlockHeader, VlfHeader};
use crate::log::directory::{self as log_directory, Directory, Entry};
use crate::log::index::{self, Index};
use crate::log::record::{Record, Records};
use crate::log::scan::{LogFile, Reading, Way};
use crate::log::vlf::VlfTable;
use crate::log::writer::LogWriter;
use crate::options::{Options, Recovery};
use crate::store::Inner;
use crate::types::{Lsn, PageNo, UNIT_BYTES};
use directory::Found as Led;
use indexed::Collected;
use one_by_one::Steps;
use pagestore_counters::Publisher;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(crate) use course::Course;
pub use progress::{RecoveryEnd, RecoveryPhase, RecoveryProgress};

/// What opening found and did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecoveryReport {
    /// How.
    pub strategy: Recovery,
    /// It had been closed: there was nothing to recover.
    pub clean: bool,
    /// Virtual log files whose index was read instead of their records.
    pub vlfs_indexed: u64,
    /// Log that was read before the store was open, in bytes.
    pub log_bytes: u64,
    /// Reads that it took.
    pub log_reads: u64,
    /// Records in it.
    pub records: u64,
    /// Commits in it.
    pub commits: u64,
    /// The newest commit.
    pub last_sequence: u64,
    /// Pages that the data file did not have yet; where indices were read, at most: a page that is in several counts
    /// in each.
    pub pages: u64,
    /// The last record; what came after had not been acknowledged.
    pub cut: Lsn,
    /// Records of transactions that had not committed.
    pub records_dropped: u64,
    /// Why the log's directory could not be read: what it would have told was read from the log itself.
    pub directory_unreadable: Option<String>,
    /// Time until the end of the log was known.
    pub analysis: Duration,
    /// Time until the store was open.
    pub opened: Duration,
    /// What it took until all was redone; `None` until then. Only `Recovery::Instant` opens the store before.
    pub end: Option<RecoveryEnd>,
}

impl RecoveryReport {
    fn count(&mut self, records: u64, commits: u64, dropped: u64, sequence: u64) {
        (self.records, self.commits, self.records_dropped) = (records, commits, dropped);
        self.last_sequence = self.last_sequence.max(sequence);
    }
}

/// What a store is made of, once it is known.
pub(crate) struct Found {
    pub writer: LogWriter,
    pub pages: PageTable,
    pub next_tx: u64,
    pub sequence: u64,
    pub control: Control,
    pub course: Arc<Course>,
}

/// The log's records since each page's newest image.
#[derive(Default)]
pub(crate) struct Chain {
    pub lsns: Vec<Lsn>,
    pub bytes: usize,
}

/// What the log says.
#[derive(Default)]
pub(crate) struct Analysis {
    pub chains: HashMap<PageNo, Chain>,
    /// The records of the transaction that has not ended yet.
    pub open: Vec<(PageNo, Lsn, bool, usize)>,
    pub open_tx: u64,
    pub records: u64,
    pub commits: u64,
    pub dropped: u64,
    /// Transactions of which records are here and no commit.
    pub dead: HashSet<u64>,
    /// Changes of pages that have an image before them, and images.
    pub changes: u64,
    pub sequence: u64,
    pub tx_max: u64,
}

impl Analysis {
    /// Takes in a block's records from `redo` on; tells of each commit.
    pub(crate) fn take(&mut self, header: &BlockHeader, used: &[u8], redo: Lsn) -> Result<()> {
        for (index, record) in Records::of(used).enumerate() {
            let lsn = Lsn::new(header.vlf, header.unit, index as u16 + 1);
            let (tx, record) = record.map_err(|why| Error::CorruptLog { lsn, why: why.into() })?;
            if lsn < redo {
                continue;
            }
            self.records += 1;
            if tx != 0 && tx != self.open_tx {
                // One transaction writes at a time: the one before did not live to its end.
                self.drop_open();
                self.open_tx = tx;
                self.tx_max = self.tx_max.max(tx);
            }
            match record {
                Record::Page { page, image, runs } => self.open.push((page, lsn, image, runs.len())),
                Record::Commit { sequence } => {
                    self.commits += 1;
                    self.sequence = self.sequence.max(sequence);
                    for (page, lsn, image, bytes) in std::mem::take(&mut self.open) {
                        self.put(page, lsn, image, bytes);
                    }
                }
                Record::Abort => self.drop_open(),
                _ => {}
            }
        }
        Ok(())
    }

    fn put(&mut self, page: PageNo, lsn: Lsn, image: bool, bytes: usize) {
        if image {
            self.chains.insert(page, Chain { lsns: vec![lsn], bytes });
            self.changes += 1;
        } else if let Some(chain) = self.chains.get_mut(&page) {
            chain.lsns.push(lsn);
            chain.bytes += bytes;
            self.changes += 1;
        }
        // A change without an image before it: the data file had the page when redo moved past its image.
    }

    fn drop_open(&mut self) {
        if !self.open.is_empty() {
            self.dead.insert(self.open_tx);
        }
        self.dropped += self.open.len() as u64;
        self.open.clear();
    }
}

/// Reads of the log at once, each a thread's …
const READS_MAX: usize = 16;
/// … and where a store is to open at once: little memory for all of them, for a virtual machine may have to get it from its
/// host first, and a large page of it took up to a tenth of a second.
const FIRST_READS_MAX: usize = 8;
const FIRST_READ_BYTES: usize = 112 << 10;

/// How each strategy reads the log.
fn reading(options: &Options) -> Reading {
    match options.recovery {
        Recovery::Serial => Reading { read_bytes: 32 << 10, parallel: 1 },
        Recovery::Instant => {
            Reading { read_bytes: FIRST_READ_BYTES, parallel: options.parallel.clamp(1, FIRST_READS_MAX) }
        }
        _ => Reading { read_bytes: 1 << 20, parallel: options.parallel.clamp(1, READS_MAX) },
    }
}

/// The newest control file, or why there is no store.
pub(crate) fn control(disk: &dyn Disk) -> Result<Control> {
    Control::read(disk)?.ok_or_else(|| Error::NotAStore {
        path: String::new(),
        why: "its control file is missing or damaged, or its creation did not finish".into(),
    })
}

/// Opens what lies on `disk`.
pub(crate) fn open(
    disk: Arc<dyn Disk>,
    counters: Arc<Publisher>,
    options: Options,
    course: Arc<Course>,
) -> Result<(Inner, RecoveryReport)> {
    let begun = course.begun;
    let mut control = control(disk.as_ref())?;
    let reading = reading(&options);
    // What is read must not be better than what is on the medium.
    for file in FileId::ALL {
        disk.sync(file).map_err(|error| Error::io("sync", file, error))?;
    }
    let geometry = control.geometry;
    let mut pages = PageTable::new(geometry.page_bytes, options.cache_bytes / 4 * 3);
    let mut report = RecoveryReport {
        strategy: options.recovery,
        clean: control.clean,
        last_sequence: control.sequence,
        ..RecoveryReport::default()
    };
    let slots = LogFile::slots_in(disk.as_ref(), &geometry)?;
    let entries = log_directory::read(disk.as_ref(), geometry.store, slots).unwrap_or_else(|error| {
        report.directory_unreadable = Some(error.to_string());
        None
    });
    let reads_begun = Instant::now();
    let told = match &entries {
        Some(entries) if options.recovery == Recovery::Instant => {
            course.reads_log(geometry.vlf_bytes);
            directory::read(disk.as_ref(), &control, reading, entries)?
        }
        _ => None,
    };
    let is_told = told.is_some();
    let (log, told) = match told {
        Some(Led { log, way, collected }) => (log, Some((way, collected))),
        None => {
            let log = LogFile::open(disk.as_ref(), geometry, reading)?;
            course.reads_log(bytes_from(&log, control.redo.lsn));
            (log, None)
        }
    };
    let mut dead = HashSet::new();
    let (way, index, tx_max, writes) = if options.recovery == Recovery::Instant {
        let (way, collected) = told.map_or_else(|| indexed::read(&log, &control, reading), Ok)?;
        report.vlfs_indexed = collected.indexed;
        let last = collected.last.clone();
        let (runs, sums) = collected.runs(Arc::clone(&disk), geometry);
        runs.load_oldest()?;
        report.count(sums.records, sums.commits, sums.dropped, sums.sequence);
        report.pages = runs.pages();
        pages.look_up_in(runs);
        (way, last, sums.tx_max, report.pages)
    } else {
        let (way, index, analysis) = whole(&log, &control, reading)?;
        report.count(analysis.records, analysis.commits, analysis.dropped, analysis.sequence);
        report.pages = analysis.chains.len() as u64;
        let each_change = options.recovery != Recovery::Wide;
        let writes = if each_change { analysis.changes } else { report.pages };
        if options.recovery == Recovery::Wide {
            for (page, chain) in analysis.chains {
                pages.recovered(page, chain.lsns, chain.bytes);
            }
        }
        dead = analysis.dead;
        (way, index, analysis.tx_max, writes)
    };
    if report.last_sequence == 0 {
        // Where the cache is of a few pages, a checkpoint may write the control file before the store's first commit.
        return Err(Error::NotAStore { path: String::new(), why: "its creation did not finish".into() });
    }
    let last = way.last.max(control.durable);
    let [.., of_log] = counters.file_statistics();
    (report.log_bytes, report.log_reads) = (of_log.counters.read.bytes, of_log.counters.read.count);
    (report.cut, report.analysis) = (last, begun.elapsed());
    let log_read = reads_begun.elapsed();
    course.writes_pages(writes, geometry.page_bytes as u64);

    if matches!(options.recovery, Recovery::Serial | Recovery::Prefetch) {
        let sync_each = options.recovery == Recovery::Serial;
        // All of it is durable in the data file then.
        let steps = Steps { reading, sync_each, way: options.apply };
        one_by_one::apply(disk.as_ref(), &control, &log, &dead, steps)?;
    }
    // Where nothing is to be redone, recovery begins at the end from now on: openings alone do not fill the log.
    let is_at_end = report.pages == 0 && way.position.lsn.unit() < index::end_unit(&geometry);
    let slots = if is_at_end {
        (control.redo, control.redo_slot) = (way.position, way.slot as u32);
        (control.sequence, control.tx_max) = (report.last_sequence, control.tx_max.max(tx_max));
        log.slots(&[(way.position.lsn.vlf(), way.slot)])
    } else {
        log.slots(&way.chain)
    };
    // Blocks of this opening are told from those of earlier ones.
    control.epoch += 1;
    control.clean = false;
    control.durable = last;
    control.write(disk.as_ref())?;
    let table = VlfTable::new(slots);
    let writes = options.log_writes_in_flight.max(1);
    let mut writer = LogWriter::resume(geometry, table, control.epoch, way.position, last, writes, index);
    writer.directory = match entries {
        Some(entries) if is_told => Directory::of(geometry.store, entries),
        entries => rebuilt(&log, entries.as_deref()),
    };
    let next_tx = control.tx_max.max(tx_max) + 1;
    let found = Found { writer, pages, next_tx, sequence: report.last_sequence, control, course };
    drop(log);
    let epoch = u64::from(found.control.epoch);
    let inner = Inner::new(disk, counters, options, found);
    inner.redo_cost.log_read(report.log_bytes, log_read);
    inner.journal.note(&Record::Recovery { epoch, cut: last })?;
    inner.journal.flush()?;
    if options.recovery == Recovery::Wide && report.pages > 0 {
        inner.checkpoint()?;
    }
    if options.recovery != Recovery::Instant || report.pages == 0 {
        inner.course.end();
    }
    report.opened = begun.elapsed();
    Ok((inner, report))
}

/// What there is to be read of the log from `redo` on, at most: its virtual log files are read to their ends.
pub(crate) fn bytes_from(log: &LogFile<'_>, redo: Lsn) -> u64 {
    let newest = log.headers().iter().flatten().map(|header| header.vlf).max().unwrap_or(0);
    let vlfs = u64::from(newest.saturating_sub(redo.vlf()) + 1).min(log.headers().len() as u64);
    (vlfs * log.geometry.vlf_bytes).saturating_sub(u64::from(redo.unit()) * UNIT_BYTES)
}

/// A directory that knows which slots were used, and of the ends what was known before.
fn rebuilt(log: &LogFile<'_>, before: Option<&[Option<Entry>]>) -> Directory {
    let known = |slot: usize| before.and_then(|entries| entries.get(slot).copied().flatten());
    let entry = |(slot, header): (usize, &Option<VlfHeader>)| {
        let VlfHeader { vlf, parity, .. } = (*header)?;
        let known = known(slot).filter(|entry| entry.vlf == vlf);
        Some(known.unwrap_or(Entry { vlf, parity, ended: None }))
    };
    let entries: Vec<_> = log.headers().iter().enumerate().map(entry).collect();
    let store = log.geometry.store;
    if before == Some(entries.as_slice()) {
        Directory::of(store, entries)
    } else {
        Directory::rebuilt(store, entries)
    }
}

/// Reads the log as a whole.
fn whole(log: &LogFile<'_>, control: &Control, reading: Reading) -> Result<(Way, Index, Analysis)> {
    let mut analysis = Analysis { sequence: control.sequence, ..Analysis::default() };
    let mut collected = Collected::begin(control, false);
    let redo = control.redo;
    let mut way = Way::begin(control.redo_slot as usize, redo);
    log.scan_until(&mut way, u32::MAX, control.known(), reading, |header, used| {
        collected.take(header, used)?;
        analysis.take(header, used, redo.lsn)
    })?;
    analysis.drop_open();
    collected.enter(way.position.lsn.vlf());
    Ok((way, collected.last, analysis))
}
