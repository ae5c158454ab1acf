//! Opening a store: finding the end of its log, and redoing its pages up to the last commit.
//!
//! ```text
//! analysis   control file -> slots' headers -> blocks from the redo LSN along the chain -> for every page the
//!            records since its last image, of committed transactions only; a torn end, or damage
//! instant    the log's directory, and the blocks of the virtual log file that is not full; the pages' chains are the
//!            dirty pages of the opened store: read on demand, written by a checkpoint
//! wide       the whole log, then that checkpoint: all pages known, sorted, neighbours together, many writes at once,
//!            one sync
//! prefetch   pages written one by one in the order of the log, one sync
//! serial     as prefetch, but the log is read in steps of 32 KiB, and there is a sync for every virtual log file
//! ```
//! **Bounded opening.** A full virtual log file ends with its index (`log::index`): for every page the places of
//! its records, both committed and open. The log's directory (`log::directory`) describes all these ends in one
//! place. Opening reads the directory (`directory`), the records of the one virtual log file that is not full, and
//! in parallel the newest filters. An index is read when a page may be in it, newest first, by the filters
//! (`runs`). The first checkpoint reads the remaining indices and moves all entries into the page table, a few
//! pages at a time, before it lists the dirty pages. Skipped records are read when their page is, or by that
//! checkpoint; damage in them is reported then. If the directory does not lead to the end of the log, the headers,
//! ends and indices of the log itself are read instead (`indexed`).
//!
//! Redo reads no page from the data file, since a page's first record is an image. Before the store is open,
//! analysis writes the control file (a new epoch) and one block (RECOVERY) and erases nothing: after an interrupted
//! recovery the same steps recover the store.

mod analysis;
mod directory;
mod indexed;
mod one_by_one;
mod progress;
pub(crate) mod runs;
mod tracker;

use crate::error::{Error, Result};
use crate::format::control::Control;
use crate::log::block::VlfHeader;
use crate::log::directory::{self as log_directory, Directory, Entry};
use crate::log::index::{self, Index};
use crate::log::scan::{LogFile, Reading, ScanCursor};
use crate::log::segments::VlfTable;
use crate::log::writer::{LogWriter, ResumePoint};
use crate::options::{Options, Recovery};
use crate::types::{Lsn, PageNo, UNIT_BYTES};
use analysis::Chain;
use directory::LogTail;
use indexed::Collected;
use one_by_one::ApplySteps;
use pagestore_counters::Publisher;
use pagestore_disk::{Disk, FileId};
use runs::Runs;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(crate) use analysis::Analysis;
pub use progress::{RecoveryEnd, RecoveryPhase, RecoveryProgress};
pub(crate) use tracker::RecoveryTracker;

/// Findings and work of the opening of a store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecoveryReport {
    /// The strategy of recovery.
    pub strategy: Recovery,
    /// The store had been closed: nothing was to be recovered.
    pub clean: bool,
    /// Virtual log files whose index was read instead of their records.
    pub vlfs_indexed: u64,
    /// Bytes of log that were read before the store was open.
    pub log_bytes: u64,
    /// Reads of the log.
    pub log_reads: u64,
    /// Records in the log.
    pub records: u64,
    /// Commits in the log.
    pub commits: u64,
    /// The newest commit.
    pub last_sequence: u64,
    /// Pages that were not in the data file yet. With indices an upper bound: a page counts once in each index that
    /// lists it.
    pub pages: u64,
    /// The last record; what came after it had not been acknowledged.
    pub cut: Lsn,
    /// Records of transactions that did not commit.
    pub records_dropped: u64,
    /// Why the log's directory could not be read; the log itself was read instead.
    pub directory_unreadable: Option<String>,
    /// Time until the end of the log was known.
    pub analysis: Duration,
    /// Time until the store was open.
    pub opened: Duration,
    /// Time and I/O of recovery until all was redone; `None` before that. Only `Recovery::Instant` opens the store
    /// before.
    pub end: Option<RecoveryEnd>,
}

impl RecoveryReport {
    fn count(&mut self, records: u64, commits: u64, dropped: u64, sequence: u64) {
        (self.records, self.commits, self.records_dropped) = (records, commits, dropped);
        self.last_sequence = self.last_sequence.max(sequence);
    }
}

/// Parts that recovery prepares for an open store.
pub(crate) struct Recovered {
    pub writer: LogWriter,
    pub pages: RecoveredPages,
    pub next_tx: u64,
    pub control: Control,
    pub report: RecoveryReport,
    /// Time that reading the log took.
    pub log_read: Duration,
}

/// The pages that the log has and the data file lacks.
pub(crate) enum RecoveredPages {
    /// None: all of them were written.
    Written,
    /// Their records.
    Chains(HashMap<PageNo, Chain>),
    /// To be looked up in the indices.
    Runs(Runs),
}

/// Reads of the log in flight, each on a thread of its own …
const READS_MAX: usize = 16;
/// … and when the store is to open at once. These use little memory in all: a virtual machine may have to obtain it
/// from its host, and a large page of it took up to a tenth of a second.
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

/// Reads the newest copy of the control file, or reports why there is no store.
pub(crate) fn read_control(disk: &dyn Disk) -> Result<Control> {
    Control::read(disk)?.ok_or_else(|| Error::NotAStore {
        path: String::new(),
        why: "its control file is missing or damaged, or its creation did not finish".into(),
    })
}

/// State of an opening, filled in step by step.
struct Opening {
    disk: Arc<dyn Disk>,
    options: Options,
    control: Control,
    tracker: Arc<RecoveryTracker>,
    pages: RecoveredPages,
    report: RecoveryReport,
}

/// The log from the redo LSN to its end, and what must be redone.
struct AnalysedLog<'a> {
    log: LogFile<'a>,
    cursor: ScanCursor,
    /// The index of the virtual log file that is written next.
    index: Index,
    tx_max: u64,
    /// Page writes that the strategy does.
    writes: u64,
    /// Transactions that did not commit.
    dead: HashSet<u64>,
    /// The log's directory led to its end.
    is_by_directory: bool,
}

/// Recovers the files on `disk` as far as `Options::recovery` does before the store is open, and prepares the log for
/// what follows.
pub(crate) fn recover(
    disk: &Arc<dyn Disk>,
    counters: &Publisher,
    options: &Options,
    tracker: &Arc<RecoveryTracker>,
) -> Result<Recovered> {
    let begun = tracker.begun;
    let mut opening = Opening::begin(Arc::clone(disk), *options, Arc::clone(tracker))?;
    let entries = opening.read_directory()?;
    let reads_begun = Instant::now();
    let analysed = opening.analyse(disk.as_ref(), entries.as_deref())?;
    if opening.report.last_sequence == 0 {
        // With a cache of a few pages a checkpoint may write the control file before the store's first commit.
        return Err(Error::NotAStore { path: String::new(), why: "its creation did not finish".into() });
    }
    let last = analysed.cursor.last.max(opening.control.durable);
    let [.., of_log] = counters.file_statistics();
    let report = &mut opening.report;
    (report.log_bytes, report.log_reads) = (of_log.counters.read.bytes, of_log.counters.read.count);
    (report.cut, report.analysis) = (last, begun.elapsed());
    let log_read = reads_begun.elapsed();
    tracker.begin_writing_pages(analysed.writes, opening.control.geometry.page_bytes as u64);
    opening.apply_one_by_one(&analysed)?;
    let (writer, next_tx) = opening.resume_log(analysed, entries, last)?;
    let Opening { control, pages, report, .. } = opening;
    Ok(Recovered { writer, pages, next_tx, control, report, log_read })
}

impl Opening {
    fn begin(disk: Arc<dyn Disk>, options: Options, tracker: Arc<RecoveryTracker>) -> Result<Self> {
        // A process that was killed may have left what is read to a cache, the log's end too: it must be durable before anything
        // relies on it. If a sync fails, nothing was read that the cache may have dropped.
        for file in FileId::ALL {
            disk.sync(file).map_err(Error::during("sync", file))?;
        }
        let mut control = read_control(disk.as_ref())?;
        if control.log_slots > 0 {
            // Its log was being shortened. The next write of the control file says that this is done.
            let length = control.geometry.slot_offset(control.log_slots as usize);
            disk.truncate(FileId::Log, length).map_err(Error::during("truncate", FileId::Log))?;
            disk.sync(FileId::Log).map_err(Error::during("sync", FileId::Log))?;
            control.log_slots = 0;
        }
        let report = RecoveryReport {
            strategy: options.recovery,
            clean: control.clean,
            last_sequence: control.sequence,
            ..RecoveryReport::default()
        };
        Ok(Self { disk, options, control, tracker, pages: RecoveredPages::Written, report })
    }

    /// The entries of the log's directory; `None` if they cannot be read.
    fn read_directory(&mut self) -> Result<Option<Vec<Option<Entry>>>> {
        let geometry = self.control.geometry;
        let slots = LogFile::slots_in(self.disk.as_ref(), &geometry)?;
        let read = log_directory::read(self.disk.as_ref(), geometry.store, slots);
        Ok(read.unwrap_or_else(|error| {
            self.report.directory_unreadable = Some(error.to_string());
            None
        }))
    }

    /// Finds the end of the log and what must be redone; fills in the report's counts and the page table.
    fn analyse<'a>(
        &mut self,
        disk: &'a dyn Disk,
        entries: Option<&[Option<Entry>]>,
    ) -> Result<AnalysedLog<'a>> {
        let (geometry, reading) = (self.control.geometry, reading(&self.options));
        let by_directory = match entries {
            Some(entries) if self.options.recovery == Recovery::Instant => {
                self.tracker.begin_reading_log(geometry.vlf_bytes);
                directory::read(disk, &self.control, reading, entries)?
            }
            _ => None,
        };
        let is_by_directory = by_directory.is_some();
        let (log, scanned) = match by_directory {
            Some(LogTail { log, cursor, collected }) => (log, Some((cursor, collected))),
            None => {
                let log = LogFile::open(disk, geometry, reading)?;
                self.tracker.begin_reading_log(bytes_from(&log, self.control.redo.lsn));
                (log, None)
            }
        };
        if self.options.recovery != Recovery::Instant {
            return self.analyse_records(log, reading);
        }
        let (cursor, collected) = scanned.map_or_else(|| indexed::read(&log, &self.control, reading), Ok)?;
        self.report.vlfs_indexed = collected.indexed;
        let index = collected.last.clone();
        let (runs, sums) = collected.runs(Arc::clone(&self.disk), geometry);
        runs.load_oldest()?;
        self.report.count(sums.records, sums.commits, sums.dropped, sums.sequence);
        self.report.pages = runs.pages();
        self.pages = RecoveredPages::Runs(runs);
        let (tx_max, writes) = (sums.tx_max, self.report.pages);
        Ok(AnalysedLog { log, cursor, index, tx_max, writes, dead: HashSet::new(), is_by_directory })
    }

    /// Analyses the log by reading all of its records.
    fn analyse_records<'a>(&mut self, log: LogFile<'a>, reading: Reading) -> Result<AnalysedLog<'a>> {
        let (cursor, index, analysis) = read_whole_log(&log, &self.control, reading)?;
        self.report.count(analysis.records, analysis.commits, analysis.dropped, analysis.sequence);
        self.report.pages = analysis.chains.len() as u64;
        let is_wide = self.options.recovery == Recovery::Wide;
        let writes = if is_wide { self.report.pages } else { analysis.changes };
        if is_wide {
            self.pages = RecoveredPages::Chains(analysis.chains);
        }
        let (tx_max, dead) = (analysis.tx_max, analysis.dead);
        Ok(AnalysedLog { log, cursor, index, tx_max, writes, dead, is_by_directory: false })
    }

    /// Redoes everything now, with the strategies that write pages one by one. All of it is durable in the data file
    /// then.
    fn apply_one_by_one(&self, analysed: &AnalysedLog<'_>) -> Result<()> {
        if !matches!(self.options.recovery, Recovery::Serial | Recovery::Prefetch) {
            return Ok(());
        }
        let sync_each = self.options.recovery == Recovery::Serial;
        let steps = ApplySteps { reading: reading(&self.options), sync_each, apply: self.options.apply };
        one_by_one::apply(self.disk.as_ref(), &self.control, &analysed.log, &analysed.dead, steps)
    }

    /// Writes the control file for this opening; returns a writer that continues the log after `last`, and the number
    /// of the next transaction.
    fn resume_log(
        &mut self,
        analysed: AnalysedLog<'_>,
        entries: Option<Vec<Option<Entry>>>,
        last: Lsn,
    ) -> Result<(LogWriter, u64)> {
        let AnalysedLog { log, cursor, index, tx_max, is_by_directory, .. } = analysed;
        let geometry = self.control.geometry;
        let control = &mut self.control;
        // With nothing to redo, recovery begins at the end of the log from now on, so that repeated openings do not
        // fill the log.
        let is_at_end = self.report.pages == 0 && cursor.position.lsn.unit() < index::end_unit(&geometry);
        let slots = if is_at_end {
            (control.redo, control.redo_slot) = (cursor.position, cursor.slot as u32);
            (control.sequence, control.tx_max) = (self.report.last_sequence, control.tx_max.max(tx_max));
            log.slots(&[(cursor.position.lsn.vlf(), cursor.slot)])
        } else {
            log.slots(&cursor.chain)
        };
        // Blocks of this opening have a higher epoch than earlier ones.
        control.epoch += 1;
        control.clean = false;
        control.durable = last;
        control.write(self.disk.as_ref())?;
        let table = VlfTable::new(slots);
        let writes = self.options.log_writes_in_flight.max(1);
        let mut writer = LogWriter::resume(
            geometry,
            table,
            control.epoch,
            ResumePoint { position: cursor.position, last, index },
            writes,
        );
        writer.directory = match entries {
            Some(entries) if is_by_directory => Directory::new(geometry.store, entries),
            entries => rebuilt(&log, entries.as_deref()),
        };
        Ok((writer, control.tx_max.max(tx_max) + 1))
    }
}

/// An upper bound of the log to be read from `redo` on: virtual log files are read to their ends.
pub(crate) fn bytes_from(log: &LogFile<'_>, redo: Lsn) -> u64 {
    let newest = log.headers().iter().flatten().map(|header| header.vlf).max().unwrap_or(0);
    let vlfs = u64::from(newest.saturating_sub(redo.vlf()) + 1).min(log.headers().len() as u64);
    (vlfs * log.geometry.vlf_bytes).saturating_sub(u64::from(redo.unit()) * UNIT_BYTES)
}

/// A directory rebuilt from the slots' headers, with the ends that were known before.
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
        Directory::new(store, entries)
    } else {
        Directory::rebuilt(store, entries)
    }
}

/// Reads the whole log from the redo LSN on.
fn read_whole_log(
    log: &LogFile<'_>,
    control: &Control,
    reading: Reading,
) -> Result<(ScanCursor, Index, Analysis)> {
    let mut analysis = Analysis { sequence: control.sequence, ..Analysis::default() };
    let mut collected = Collected::begin(control, false);
    let redo = control.redo;
    let mut cursor = ScanCursor::begin(control.redo_slot as usize, redo);
    log.scan_until(&mut cursor, u32::MAX, control.known(), reading, |header, used| {
        collected.add_block(header, used)?;
        analysis.add_block(header, used, redo.lsn)
    })?;
    analysis.drop_open();
    collected.begin_vlf(cursor.position.lsn.vlf());
    Ok((cursor, collected.last, analysis))
}
