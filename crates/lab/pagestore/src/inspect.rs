//! Looking into a store's log without opening the store: nothing is written, no lock is taken, a crashed image will
//! do. What a running store writes meanwhile may be seen or not, and is no damage.

mod in_use;

use crate::control::Control;
use crate::disk::real::{Access, RealDisk};
use crate::disk::{Disk, FileId};
use crate::error::{Error, Result};
use crate::log::block::BlockHeader;
use crate::log::record::{Record, Records};
use crate::log::scan::{LogFile, Reading};
use crate::log::vlf::Slot;
use crate::recovery::{self, Analysis, RecoveryPhase, RecoveryProgress};
use crate::store::in_directory;
use crate::types::{Lsn, PageNo};
use std::cell::RefCell;
use std::io::ErrorKind;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// Large reads, a few at once.
const READING: Reading = Reading { read_bytes: 1 << 20, parallel: 4 };

/// Who is told how far the reading is.
type Tell<'a> = dyn FnMut(RecoveryProgress) + 'a;

/// A store's log, to be looked at.
pub struct Inspection<'a> {
    disk: Arc<dyn Disk>,
    tell: Option<RefCell<Box<Tell<'a>>>>,
}

/// A virtual log file, as `DBCC LOGINFO` lists them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VlfInfo {
    /// Its place in the log file, from 0.
    pub slot: usize,
    /// Where it begins in the log file, in bytes.
    pub offset: u64,
    /// Its size in bytes.
    pub bytes: u64,
    /// Its sequence number; 0: never used.
    pub vlf: u32,
    /// 0: reusable, 2: active.
    pub status: u8,
    /// 64 or 128, flipped at every use; 0: never used.
    pub parity: u32,
    /// The last record before it was begun.
    pub created: Lsn,
    /// Bytes of blocks in it, of an active one.
    pub used_bytes: u64,
    /// Its blocks, of an active one.
    pub blocks: u64,
    /// Records of pages that its index lists, of an active one that is full and has one.
    pub index_entries: Option<u64>,
}

/// The log as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogInfo {
    /// The store's identity.
    pub store: u128,
    /// Bytes of a page.
    pub page_bytes: usize,
    /// Log blocks are padded to this.
    pub log_sector_bytes: usize,
    /// How often it has been opened.
    pub epoch: u32,
    /// It was closed as it should be.
    pub clean: bool,
    /// Recovery begins here.
    pub redo: Lsn,
    /// The last record.
    pub last: Lsn,
    /// The newest commit.
    pub last_sequence: u64,
    /// Commits that recovery would redo.
    pub commits: u64,
    /// Pages that recovery would redo.
    pub pages: u64,
    /// All virtual log files, in the order of their places.
    pub vlfs: Vec<VlfInfo>,
}

/// One record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordInfo {
    /// Where it is.
    pub lsn: Lsn,
    /// Its transaction, 0 for none.
    pub tx: u64,
    /// What it is: "page image", "commit", …
    pub kind: &'static str,
    /// The page that it changes.
    pub page: Option<PageNo>,
    /// The commit that it is.
    pub sequence: Option<u64>,
    /// Its length in bytes.
    pub bytes: usize,
    /// What it says.
    pub text: String,
}

/// Which records are wanted; what is `None` does not matter.
#[derive(Clone, Copy, Debug, Default)]
pub struct Filter {
    /// From this record on.
    pub from: Option<Lsn>,
    /// Up to this record.
    pub to: Option<Lsn>,
    /// Of this transaction.
    pub tx: Option<u64>,
    /// Of this page.
    pub page: Option<PageNo>,
}

impl Filter {
    fn takes(&self, lsn: Lsn, tx: u64, page: Option<PageNo>) -> bool {
        self.from.is_none_or(|from| lsn >= from)
            && !self.is_past(lsn)
            && self.tx.is_none_or(|own| tx == own)
            && self.page.is_none_or(|own| page == Some(own))
    }

    /// No record from here on is wanted.
    fn is_past(&self, lsn: Lsn) -> bool {
        self.to.is_some_and(|to| lsn > to)
    }
}

/// Why the beginning of the log cannot be reused, as far as the files say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WhyHeld {
    /// Recovery begins here: virtual log files before it are free.
    pub redo: Lsn,
    /// The last record.
    pub last: Lsn,
    /// Virtual log files from the first to the last that is needed.
    pub active: usize,
    /// Pages whose newest version is only in the log.
    pub pages: u64,
    /// The one whose records lie furthest back, and where they begin.
    pub oldest_page: Option<(PageNo, Lsn)>,
    /// The transaction that had not ended, its first record and its records.
    pub open_transaction: Option<(u64, Lsn, u64)>,
    /// The end of the last checkpoint that the log knows.
    pub last_checkpoint: Option<Lsn>,
}

/// What one commit is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Anatomy {
    /// The commit.
    pub sequence: u64,
    /// Its transaction.
    pub tx: u64,
    /// Its first and its last record.
    pub lsns: (Lsn, Lsn),
    /// Pages that it logged whole, and their bytes.
    pub images: (u64, u64),
    /// Pages of which it logged what changed, and their bytes.
    pub deltas: (u64, u64),
    /// Blocks that hold its records.
    pub blocks: Vec<BlockInfo>,
}

/// A block of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockInfo {
    /// Where it begins: its record number is 0.
    pub lsn: Lsn,
    /// Its bytes on the disk.
    pub bytes: u64,
    /// Of them, to fill the last sector.
    pub padding_bytes: u64,
    /// Its records.
    pub records: u16,
    /// Commits in it: those that became durable together.
    pub commits: u64,
    /// What was durable when it was built.
    pub witness: Lsn,
}

impl<'a> Inspection<'a> {
    /// Opens the store in `directory` for looking.
    ///
    /// # Errors
    /// When there is none, or it cannot be read.
    pub fn open(directory: &Path) -> Result<Self> {
        let disk = RealDisk::open(directory, Access::Look)?;
        Self::open_on(Arc::new(disk)).map_err(|error| in_directory(error, directory))
    }

    /// As `open`, on any disk.
    ///
    /// # Errors
    /// As `open`.
    pub fn open_on(disk: Arc<dyn Disk>) -> Result<Self> {
        recovery::control(disk.as_ref())?;
        Ok(Self { disk, tell: None })
    }

    /// Whatever is asked next reads the log, and tells at each of its virtual log files how far it is, as a recovery
    /// does that reads all of it.
    #[must_use]
    pub fn telling(self, tell: impl FnMut(RecoveryProgress) + 'a) -> Self {
        Self { tell: Some(RefCell::new(Box::new(tell))), ..self }
    }

    /// Tells that it is at `lsn`, of so much log at most.
    fn tell(&self, control: &Control, lsn: Lsn, bytes_total: u64, begun: Instant) {
        let Some(tell) = &self.tell else { return };
        let bytes = control.redo.lsn.bytes_to(lsn, control.geometry.vlf_bytes);
        tell.borrow_mut()(RecoveryProgress {
            phase: RecoveryPhase::ReadingLog,
            pages: 0,
            pages_left: 0,
            bytes,
            bytes_total: bytes_total.max(bytes),
            elapsed: begun.elapsed(),
        });
    }

    /// Every block from the redo LSN on; then the slots as the chain left them.
    fn walk(
        &self,
        control: &Control,
        mut visit: impl FnMut(&BlockHeader, &[u8]) -> Result<()>,
    ) -> Result<(LogFile<'_>, Vec<Slot>, Lsn)> {
        let begun = Instant::now();
        let log = LogFile::open(self.disk.as_ref(), control.geometry, READING)?;
        let bytes_total = recovery::bytes_from(&log, control.redo.lsn);
        let mut vlf = None;
        let tells = |header: &BlockHeader, used: &[u8]| {
            if vlf.replace(header.vlf) != Some(header.vlf) {
                self.tell(control, Lsn::new(header.vlf, header.unit, 0), bytes_total, begun);
            }
            visit(header, used)
        };
        let end = log.scan(control.redo_slot as usize, control.redo, control.known(), READING, tells)?;
        let slots = log.slots(&end.chain);
        Ok((log, slots, end.last.max(control.durable)))
    }

    /// The log as a whole.
    ///
    /// # Errors
    /// When acknowledged log is damaged, or an I/O fails.
    pub fn info(&self) -> Result<LogInfo> {
        self.settled(|control| self.info_by(control))
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
            let active = matches!(state, Slot::Active { .. });
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

    /// The records of the active log that the filter takes, in order, told to `visit` as they are met, until it breaks
    /// off: nothing of the log is read after that.
    ///
    /// # Errors
    /// When acknowledged log is damaged, after the records before it; or an I/O fails.
    pub fn records(
        &self,
        filter: Filter,
        mut visit: impl FnMut(RecordInfo) -> ControlFlow<()>,
    ) -> Result<()> {
        let mut told = Lsn::ZERO;
        let mut enough = false;
        let mut tell = |header: &BlockHeader, used: &[u8]| {
            each(header, used, |lsn, tx, record, bytes| {
                if enough || lsn <= told {
                    return;
                }
                told = lsn;
                enough = filter.is_past(lsn);
                let page = if let Record::Page { page, .. } = record { Some(page) } else { None };
                if filter.takes(lsn, tx, page) {
                    let sequence =
                        if let Record::Commit { sequence } = record { Some(sequence) } else { None };
                    let text = record.to_string();
                    let own = RecordInfo { lsn, tx, kind: record.name(), page, sequence, bytes, text };
                    enough = visit(own).is_break();
                }
            })?;
            // The scan goes on until something is wrong: this is taken back below.
            if enough { Err(Error::io("read", FileId::Log, ErrorKind::Interrupted.into())) } else { Ok(()) }
        };
        let read = self.settled(|control| self.walk(control, &mut tell).map(|_| ()));
        if enough { Ok(()) } else { read }
    }

    /// What keeps the log from being reused.
    ///
    /// # Errors
    /// As `info`.
    pub fn why(&self) -> Result<WhyHeld> {
        self.settled(|control| self.why_by(control))
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
                        open.filter(|(own, ..)| *own == tx).map_or((lsn, 0), |(_, lsn, n)| (lsn, n));
                    open = Some((tx, first, records + 1));
                }
                _ => {}
            })?;
            analysis.add_block(header, used, redo)
        })?;
        Ok(WhyHeld {
            redo,
            last,
            active: slots.iter().filter(|slot| matches!(slot, Slot::Active { .. })).count(),
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

    /// What commit `sequence`, or the last one, is made of; `None` when the active log has no such commit.
    ///
    /// # Errors
    /// As `info`.
    pub fn anatomy(&self, sequence: Option<u64>) -> Result<Option<Anatomy>> {
        self.settled(|control| self.anatomy_by(control, sequence))
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
                if growing.as_ref().is_none_or(|own| own.tx != tx) {
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
                let Some(own) = &mut growing else { return };
                own.lsns.1 = lsn;
                if own.blocks.last().is_none_or(|last| last.lsn != block.lsn) {
                    own.blocks.push(block);
                }
                match record {
                    Record::Page { image, .. } => {
                        let (count, sum) = if image { &mut own.images } else { &mut own.deltas };
                        *count += 1;
                        *sum += bytes as u64;
                    }
                    Record::Commit { sequence: number } => {
                        own.sequence = number;
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
        let (tx, record) = record.map_err(|why| Error::CorruptLog { lsn, why: why.into() })?;
        visit(lsn, tx, record, before - rest.left());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Durability, Layout, Options, Store};

    #[test]
    fn a_crashed_store_tells_its_commits_records_and_what_holds_its_log() {
        let disk = Arc::new(crate::sim::SimDisk::new());
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
        let look = Inspection::open_on(disk.clone()).unwrap();
        let info = look.info().unwrap();
        assert_eq!((info.last_sequence, info.clean, info.vlfs.len()), (12, false, 4));
        assert_eq!((info.vlfs[0].status, info.vlfs[0].parity, info.vlfs[1].status), (2, 64, 0));
        let mut kinds = Vec::new();
        let of_one = Filter { tx: Some(5), ..Filter::default() };
        let told = |record: RecordInfo| {
            kinds.push(record.kind);
            ControlFlow::Continue(())
        };
        look.records(of_one, told).unwrap();
        assert_eq!(kinds, ["page delta", "commit"]);
        let anatomy = look.anatomy(Some(5)).unwrap().unwrap();
        assert_eq!(
            (anatomy.tx, anatomy.deltas.0, anatomy.blocks.len(), anatomy.blocks[0].bytes),
            (5, 1, 1, 4096)
        );
        let why = look.why().unwrap();
        assert_eq!((why.active, why.pages > 0, why.open_transaction), (1, true, None));
        store.checkpoint().unwrap();
        let look = Inspection::open_on(disk).unwrap();
        assert_eq!(look.why().unwrap().pages, 0);
    }
}
