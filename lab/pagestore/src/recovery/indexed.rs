//! Finds the end of the log and collects its records: from the indices that can be trusted, and otherwise from the
//! records themselves, which includes the virtual log file that was being written.

use super::runs::{Run, Runs};
use crate::error::Result;
use crate::format::control::Control;
use crate::format::geometry::Geometry;
use crate::log::block::{self, BlockHeader};
use crate::log::directory::{Filter, VlfEnd};
use crate::log::index::{self, Index};
use crate::log::record::{IndexEnd, Outcome, Record, Records};
use crate::log::scan::{FIRST_UNIT, LogFile, Reading, ScanCursor};
use crate::types::{Lsn, Position, UNIT_BYTES};
use pagestore_disk::Disk;
use std::collections::HashMap;
use std::sync::Arc;

/// The index of a virtual log file: read (or built from its records), or stored in this slot and read when a page
/// needs it.
enum Part {
    Read(Index),
    Stored(usize, VlfEnd),
}

impl Part {
    fn end(&self) -> &IndexEnd {
        match self {
            Self::Read(index) => &index.end,
            Self::Stored(_, stored) => &stored.end,
        }
    }
}

/// The indices of the virtual log files, in order.
pub(super) struct Collected {
    redo: Lsn,
    vlf: u32,
    /// The index of the current virtual log file.
    pub last: Index,
    /// The indices of those before; empty unless `all` are kept.
    before: Vec<(u32, Part)>,
    all: bool,
    pub indexed: u64,
    /// Filters by virtual log file, as far as they were read.
    pub filters: HashMap<u32, Option<Filter>>,
}

impl Collected {
    pub(super) fn begin(control: &Control, all: bool) -> Self {
        let redo = control.redo.lsn;
        let last = Index::begin(redo, 0);
        Self { redo, vlf: redo.vlf(), last, before: Vec::new(), all, indexed: 0, filters: HashMap::new() }
    }

    /// Moves on to a later virtual log file.
    pub(super) fn begin_vlf(&mut self, vlf: u32) {
        if vlf == self.vlf {
            return;
        }
        let next = Index::begin(Lsn::new(vlf, FIRST_UNIT, 1), self.last.end.open_tx);
        let mut done = std::mem::replace(&mut self.last, next);
        if self.all {
            done.sort();
            self.before.push((self.vlf, Part::Read(done)));
        }
        self.vlf = vlf;
    }

    /// Skips a virtual log file, which begins here, by its entry in the directory.
    pub(super) fn skip_vlf(&mut self, slot: usize, stored: VlfEnd) {
        self.before.push((self.vlf, Part::Stored(slot, stored)));
        self.indexed += 1;
        self.vlf += 1;
        self.last = Index::begin(Lsn::new(self.vlf, FIRST_UNIT, 1), stored.end.open_tx);
    }

    /// Adds the records of a block.
    pub(super) fn add_block(&mut self, header: &BlockHeader, used: &[u8]) -> Result<()> {
        self.begin_vlf(header.vlf);
        self.last.add_block(header, used, self.redo)
    }

    /// The runs of committed records, newest first, and the totals.
    pub(super) fn runs(mut self, disk: Arc<dyn Disk>, geometry: Geometry) -> (Runs, IndexEnd) {
        let mut last = self.last;
        last.sort();
        let mut sums = IndexEnd::default();
        let mut runs = Vec::new();
        // How the transaction ended that is open at the end of a virtual log file.
        let mut open_outcome = Outcome::Open;
        for (vlf, part) in self.before.into_iter().chain([(self.vlf, Part::Read(last))]).rev() {
            let end = *part.end();
            sums.records += end.records;
            sums.commits += end.commits;
            sums.sequence = sums.sequence.max(end.sequence);
            sums.tx_max = sums.tx_max.max(end.tx_max);
            sums.dropped += end.dropped;
            let committed = open_outcome == Outcome::Committed;
            if !committed {
                sums.dropped += u64::from(end.open_entries);
            }
            match part {
                Part::Stored(slot, stored) => {
                    let filter = self.filters.remove(&vlf);
                    runs.push(Run::stored(vlf, (slot, stored), committed, filter, self.redo));
                }
                Part::Read(index) => {
                    for entries in [if committed { index.open } else { Vec::new() }, index.committed] {
                        if !entries.is_empty() {
                            runs.push(Run::new(vlf, entries, self.redo));
                        }
                    }
                }
            }
            if end.carried != Outcome::Open {
                open_outcome = end.carried;
            }
        }
        (Runs::new(runs, disk, geometry), sums)
    }
}

/// A virtual log file with a valid index end, which another one continues.
struct IndexedVlf {
    vlf: u32,
    slot: usize,
    /// The slot of the next one, and the checksum from which it continues.
    next: usize,
    previous: u32,
    epoch: u32,
    end: IndexEnd,
}

/// Reads the log from the redo LSN on, by indices that can be trusted; returns where it ends.
pub(super) fn read(
    log: &LogFile<'_>,
    control: &Control,
    reading: Reading,
) -> Result<(ScanCursor, Collected)> {
    let mut indices = indices(log, control, reading)?;
    let mut collected = Collected::begin(control, true);
    let mut cursor = ScanCursor::begin(control.redo_slot as usize, control.redo);
    loop {
        let vlf = cursor.position.lsn.vlf();
        let position =
            indices.iter().position(|(ended, _)| ended.slot == cursor.slot && ended.epoch >= cursor.epoch);
        if let Some((ended, index)) = position.map(|position| indices.swap_remove(position)) {
            collected.begin_vlf(vlf);
            collected.last = index;
            collected.indexed += 1;
            let lsn = Lsn::new(vlf, index::end_unit(&control.geometry), 1);
            (cursor.last, cursor.epoch) = (lsn, ended.epoch);
            cursor.position = Position { lsn, previous: ended.previous };
            cursor.enter(ended.next);
            continue;
        }
        let until = indices.iter().map(|(ended, _)| ended.vlf).filter(|start| *start > vlf).min();
        let known = control.known();
        let ended =
            log.scan_until(&mut cursor, until.unwrap_or(u32::MAX), known, reading, |header, used| {
                collected.add_block(header, used)
            })?;
        if ended {
            collected.begin_vlf(cursor.position.lsn.vlf());
            return Ok((cursor, collected));
        }
    }
}

/// The indices that can be trusted.
fn indices(log: &LogFile<'_>, control: &Control, reading: Reading) -> Result<Vec<(IndexedVlf, Index)>> {
    let ends = ends(log, control, reading)?;
    let geometry = control.geometry;
    let places = ends
        .iter()
        .map(|ended| {
            let within = u64::from(ended.end.unit) * UNIT_BYTES;
            (geometry.slot_offset(ended.slot) + within, ended.end.bytes as usize)
        })
        .collect::<Vec<_>>();
    let read = log.read_places(&places, reading.parallel, |at, blocks| Index::read(blocks, ends[at].end))?;
    Ok(ends.into_iter().zip(read).filter_map(|(ended, index)| Some((ended, index?))).collect())
}

/// The index ends of virtual log files from redo on that are whole, belong to this use of the slot, were not cut
/// off, describe an index that covers what is needed, and are continued by another virtual log file.
fn ends(log: &LogFile<'_>, control: &Control, reading: Reading) -> Result<Vec<IndexedVlf>> {
    let (geometry, known, redo) = (control.geometry, control.known(), control.redo.lsn);
    let unit = index::end_unit(&geometry);
    let headers = log.headers().to_vec();
    let slots: Vec<usize> = (0..headers.len())
        .filter(|slot| headers[*slot].is_some_and(|header| header.vlf >= redo.vlf()))
        .collect();
    let within = u64::from(unit) * UNIT_BYTES;
    let places: Vec<_> =
        slots.iter().map(|slot| (geometry.slot_offset(*slot) + within, geometry.sector_bytes)).collect();
    let found = log.read_places(&places, reading.parallel, |at, sector| {
        let vlf_header = headers[slots[at]]?;
        let vlf = vlf_header.vlf;
        let (block, used) = block::open(sector, &geometry, vlf, unit)?;
        let next = headers.iter().position(|header| {
            header.is_some_and(|next| {
                next.vlf == vlf + 1 && next.previous == block.crc && next.epoch >= block.epoch
            })
        })?;
        let Some(Ok((_, Record::IndexEnd(end)))) = Records::new(used).next() else { return None };
        let not_cut_off = block.epoch >= known.epoch || block.last() <= known.durable;
        let from = Lsn::new(vlf, FIRST_UNIT, 1).max(redo);
        let inside = u64::from(end.unit) * UNIT_BYTES + u64::from(end.bytes) <= within;
        let usable =
            !end.missing && end.from <= from && inside && block.epoch >= vlf_header.epoch && not_cut_off;
        let previous = headers[next]?.previous;
        usable.then(|| IndexedVlf { vlf, slot: slots[at], next, previous, epoch: block.epoch, end })
    })?;
    Ok(found.into_iter().flatten().collect())
}
