//! Reading a store's log without opening the store: nothing is written and no lock is taken, so a crashed image can
//! be read too. What a running store writes meanwhile may or may not be seen, and is not reported as damage.

mod in_use;
mod types;

use crate::disk::real::{Access, RealDisk};
use crate::error::{Error, Result, in_directory};
use crate::format::control::Control;
use crate::log::block::BlockHeader;
use crate::log::record::{Record, Records};
use crate::log::scan::{LogFile, Reading};
use crate::log::segments::Slot;
use crate::recovery::{self, Analysis, RecoveryPhase, RecoveryProgress};
use crate::types::Lsn;
use pagestore_disk::{Disk, FileId};
use std::cell::RefCell;
use std::io::ErrorKind;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

pub use types::{Anatomy, BlockInfo, Filter, LogInfo, RecordInfo, VlfInfo, WhyHeld};

/// Large reads, several in flight.
const READING: Reading = Reading { read_bytes: 1 << 20, parallel: 4 };

/// A callback for the progress of reading.
type OnProgress<'a> = dyn FnMut(RecoveryProgress) + 'a;

/// Access to a store's log for inspection.
pub struct Inspection<'a> {
    disk: Arc<dyn Disk>,
    on_progress: Option<RefCell<Box<OnProgress<'a>>>>,
}

impl<'a> Inspection<'a> {
    /// Opens the store in `directory` for inspection.
    ///
    /// # Errors
    /// When there is no store, or it cannot be read.
    pub fn open(directory: &Path) -> Result<Self> {
        let disk = RealDisk::open(directory, Access::Inspect)?;
        Self::open_on(Arc::new(disk)).map_err(|error| in_directory(error, directory))
    }

    /// As `open`, on any disk.
    ///
    /// # Errors
    /// As `open`.
    pub fn open_on(disk: Arc<dyn Disk>) -> Result<Self> {
        recovery::read_control(disk.as_ref())?;
        Ok(Self { disk, on_progress: None })
    }

    /// Later methods that read the log call `on_progress` at each virtual log file, as a recovery does that reads
    /// the whole log.
    #[must_use]
    pub fn with_progress(self, on_progress: impl FnMut(RecoveryProgress) + 'a) -> Self {
        Self { on_progress: Some(RefCell::new(Box::new(on_progress))), ..self }
    }

    /// Reports that the reader is at `lsn`, of at most `bytes_total` bytes of log.
    fn report_progress(&self, control: &Control, lsn: Lsn, bytes_total: u64, begun: Instant) {
        let Some(on_progress) = &self.on_progress else { return };
        let bytes = control.redo.lsn.bytes_to(lsn, control.geometry.vlf_bytes);
        on_progress.borrow_mut()(RecoveryProgress {
            phase: RecoveryPhase::ReadingLog,
            pages: 0,
            pages_left: 0,
            bytes,
            bytes_total: bytes_total.max(bytes),
            elapsed: begun.elapsed(),
        });
    }

    /// Visits every block from the redo LSN on; returns the log, its slots, and the last record.
    fn walk(
        &self,
        control: &Control,
        mut visit: impl FnMut(&BlockHeader, &[u8]) -> Result<()>,
    ) -> Result<(LogFile<'_>, Vec<Slot>, Lsn)> {
        let begun = Instant::now();
        let log = LogFile::open(self.disk.as_ref(), control.geometry, READING)?;
        let bytes_total = recovery::bytes_from(&log, control.redo.lsn);
        let mut vlf = None;
        let with_progress = |header: &BlockHeader, used: &[u8]| {
            if vlf.replace(header.vlf) != Some(header.vlf) {
                self.report_progress(control, Lsn::new(header.vlf, header.unit, 0), bytes_total, begun);
            }
            visit(header, used)
        };
        let end =
            log.scan(control.redo_slot as usize, control.redo, control.known(), READING, with_progress)?;
        let slots = log.slots(&end.chain);
        Ok((log, slots, end.last.max(control.durable)))
    }

    /// The log as a whole.
    ///
    /// # Errors
    /// When acknowledged log is damaged, or an I/O fails.
    pub fn info(&self) -> Result<LogInfo> {
        self.read_consistently(|control| self.info_by(control))
    }

    fn info_by(&self, control: &Control) -> Result<LogInfo> {
        let mut analysis = Analysis { sequence: control.sequence, ..Analysis::default() };
        let mut used = std::collections::HashMap::<u32, (u64, u64, Option<u64>)>::new();
        let (log, slots, last) = self.walk(control, |header, records| {
            let (bytes, blocks, index) = used.entry(header.vlf).or_default();
            *bytes += header.length as u64;
            *blocks += 1;
            if let Some(Ok((_, Record::IndexEnd(end)))) = Records::new(records).next()
                && !end.missing
            {
                *index = Some(u64::from(end.entries) + u64::from(end.open_entries));
            }
            analysis.add_block(header, records, control.redo.lsn)
        })?;
        let vlfs = slots.iter().zip(log.headers()).enumerate().map(|(slot, (state, header))| {
            let active = state.is_active;
            let vlf = header.map_or(0, |header| header.vlf);
            let (used_bytes, blocks, index_entries) =
                used.get(&vlf).copied().filter(|_| active).unwrap_or_default();
            VlfInfo {
                slot,
                offset: control.geometry.slot_offset(slot),
                bytes: control.geometry.vlf_bytes,
                vlf,
                status: if active { 2 } else { 0 },
                parity: header.map_or(0, |header| header.parity),
                created: header.map_or(Lsn::ZERO, |header| header.created),
                used_bytes,
                blocks,
                index_entries,
            }
        });
        Ok(LogInfo {
            store: control.store,
            page_bytes: control.geometry.page_bytes,
            log_sector_bytes: control.geometry.sector_bytes,
            epoch: control.epoch,
            clean: control.clean,
            redo: control.redo.lsn,
            last,
            last_sequence: analysis.sequence,
            commits: analysis.commits,
            pages: analysis.chains.len() as u64,
            vlfs: vlfs.collect(),
        })
    }

    /// Calls `visit` for each record of the active log that matches the filter, in order, until it breaks; the log
    /// is not read further then.
    ///
    /// # Errors
    /// When acknowledged log is damaged, after the records before it; or an I/O fails.
    pub fn records(
        &self,
        filter: Filter,
        mut visit: impl FnMut(RecordInfo) -> ControlFlow<()>,
    ) -> Result<()> {
        let mut last_seen = Lsn::ZERO;
        let mut is_done = false;
        let mut visit_block = |header: &BlockHeader, used: &[u8]| {
            each(header, used, |lsn, tx, record, bytes| {
                if is_done || lsn <= last_seen {
                    return;
                }
                last_seen = lsn;
                is_done = filter.is_past(lsn);
                let page = if let Record::Page { page, .. } = record { Some(page) } else { None };
                if filter.matches(lsn, tx, page) {
                    let sequence =
                        if let Record::Commit { sequence } = record { Some(sequence) } else { None };
                    let text = record.to_string();
                    let info = RecordInfo { lsn, tx, kind: record.name(), page, sequence, bytes, text };
                    is_done = visit(info).is_break();
                }
            })?;
            // A scan can only be stopped by an error, which is discarded below.
            if is_done { Err(Error::io("read", FileId::Log, ErrorKind::Interrupted.into())) } else { Ok(()) }
        };
        let read = self.read_consistently(|control| self.walk(control, &mut visit_block).map(|_| ()));
        if is_done { Ok(()) } else { read }
    }

    /// Transactions and pages that keep the log from being reused.
    ///
    /// # Errors
    /// As `info`.
    pub fn why(&self) -> Result<WhyHeld> {
        self.read_consistently(|control| self.why_by(control))
    }

    fn why_by(&self, control: &Control) -> Result<WhyHeld> {
        let redo = control.redo.lsn;
        let mut analysis = Analysis::default();
        let mut last_checkpoint = None;
        let mut open: Option<(u64, Lsn, u64)> = None;
        let (_, slots, last) = self.walk(control, |header, used| {
            each(header, used, |lsn, tx, record, _| match record {
                Record::CheckpointEnd { .. } => last_checkpoint = Some(lsn),
                Record::Commit { .. } | Record::Abort | Record::Recovery { .. } => open = None,
                Record::Page { .. } if lsn >= redo => {
                    let (first, records) =
                        open.filter(|(open_tx, ..)| *open_tx == tx).map_or((lsn, 0), |(_, lsn, n)| (lsn, n));
                    open = Some((tx, first, records + 1));
                }
                _ => {}
            })?;
            analysis.add_block(header, used, redo)
        })?;
        Ok(WhyHeld {
            redo,
            last,
            active: slots.iter().filter(|slot| slot.is_active).count(),
            pages: analysis.chains.len() as u64,
            oldest_page: analysis
                .chains
                .iter()
                .map(|(page, chain)| (*page, chain.lsns[0]))
                .min_by_key(|(_, lsn)| *lsn),
            open_transaction: open,
            last_checkpoint,
        })
    }

    /// The records and blocks of commit `sequence`, or of the last one; `None` if the active log has no such
    /// commit.
    ///
    /// # Errors
    /// As `info`.
    pub fn anatomy(&self, sequence: Option<u64>) -> Result<Option<Anatomy>> {
        self.read_consistently(|control| self.anatomy_by(control, sequence))
    }

    fn anatomy_by(&self, control: &Control, sequence: Option<u64>) -> Result<Option<Anatomy>> {
        let mut found = None;
        let mut growing: Option<Anatomy> = None;
        self.walk(control, |header, used| {
            let mut commits = 0;
            each(header, used, |_, _, record, _| {
                commits += u64::from(matches!(record, Record::Commit { .. }));
            })?;
            let block = BlockInfo {
                lsn: Lsn::new(header.vlf, header.unit, 0),
                bytes: header.length as u64,
                padding_bytes: (header.length - header.used) as u64,
                records: header.records,
                commits,
                witness: header.witness,
            };
            each(header, used, |lsn, tx, record, bytes| {
                if tx == 0 {
                    return;
                }
                if growing.as_ref().is_none_or(|commit| commit.tx != tx) {
                    let (lsns, none) = ((lsn, lsn), (0, 0));
                    growing = Some(Anatomy {
                        sequence: 0,
                        tx,
                        lsns,
                        images: none,
                        deltas: none,
                        blocks: Vec::new(),
                    });
                }
                let Some(commit) = &mut growing else { return };
                commit.lsns.1 = lsn;
                if commit.blocks.last().is_none_or(|last| last.lsn != block.lsn) {
                    commit.blocks.push(block);
                }
                match record {
                    Record::Page { image, .. } => {
                        let (count, sum) = if image { &mut commit.images } else { &mut commit.deltas };
                        *count += 1;
                        *sum += bytes as u64;
                    }
                    Record::Commit { sequence: number } => {
                        commit.sequence = number;
                        if sequence.is_none_or(|wanted| wanted == number) {
                            found = growing.take();
                        }
                    }
                    _ => {}
                }
            })
        })?;
        Ok(found)
    }
}

/// The records of a block.
fn each(header: &BlockHeader, used: &[u8], mut visit: impl FnMut(Lsn, u64, Record<'_>, usize)) -> Result<()> {
    let mut rest = Records::new(used);
    let mut index = 0;
    loop {
        let before = rest.left();
        let Some(record) = rest.next() else { return Ok(()) };
        index += 1;
        let lsn = Lsn::new(header.vlf, header.unit, index);
        let (tx, record) = record.map_err(|why| Error::corrupt_log(lsn, why))?;
        visit(lsn, tx, record, before - rest.left());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Durability, Layout, Options, Store};

    #[test]
    fn a_crashed_store_shows_its_commits_records_and_what_holds_its_log() {
        let disk = Arc::new(crashlab::SimDisk::new());
        let options = Options { background: false, ..Options::default() };
        let layout = Layout { vlf_bytes: 1 << 20, vlfs: 4, ..Layout::default() };
        let store = Store::create_on(disk.clone(), layout, options, 7).unwrap();
        let mut tx = store.write().unwrap();
        let table = tx.create_table("t").unwrap();
        tx.commit(Durability::Full).unwrap();
        for number in 0..10_u32 {
            let mut tx = store.write().unwrap();
            tx.put(table, &number.to_be_bytes(), &[1; 100]).unwrap();
            tx.commit(Durability::Full).unwrap();
        }
        let inspection = Inspection::open_on(disk.clone()).unwrap();
        let info = inspection.info().unwrap();
        assert_eq!((info.last_sequence, info.clean, info.vlfs.len()), (12, false, 4));
        assert_eq!((info.vlfs[0].status, info.vlfs[0].parity, info.vlfs[1].status), (2, 64, 0));
        let mut kinds = Vec::new();
        let of_one = Filter { tx: Some(5), ..Filter::default() };
        let collect = |record: RecordInfo| {
            kinds.push(record.kind);
            ControlFlow::Continue(())
        };
        inspection.records(of_one, collect).unwrap();
        assert_eq!(kinds, ["page delta", "commit"]);
        let anatomy = inspection.anatomy(Some(5)).unwrap().unwrap();
        assert_eq!(
            (anatomy.tx, anatomy.deltas.0, anatomy.blocks.len(), anatomy.blocks[0].bytes),
            (5, 1, 1, 4096)
        );
        let why = inspection.why().unwrap();
        assert_eq!((why.active, why.pages > 0, why.open_transaction), (1, true, None));
        store.checkpoint().unwrap();
        let inspection = Inspection::open_on(disk).unwrap();
        assert_eq!(inspection.why().unwrap().pages, 0);
    }
}
