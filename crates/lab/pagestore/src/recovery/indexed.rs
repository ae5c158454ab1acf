//! The end of the log and what its records come to, from the indices where they are to be believed, and from the
//! records themselves where there is none: in the virtual log file that was being written, always.

use super::runs::{Run, Runs};
use crate::control::Control;
use crate::disk::Disk;
use crate::error::Result;
use crate::log::Geometry;
use crate::log::block::{self, BlockHeader};
use crate::log::directory::{Ended as Told, Filter};
use crate::log::index::{self, Index, Outcome};
use crate::log::record::{IndexEnd, Record, Records};
use crate::log::scan::{FIRST_UNIT, LogFile, Reading, Way};
use crate::log::writer::Position;
use crate::types::{Lsn, UNIT_BYTES};
use std::collections::HashMap;
use std::sync::Arc;

/// What the records of a virtual log file come to: as they, or its index, were read, or as the directory tells; its
/// index is in this slot and is read when a page needs it.
enum Part {
    Read(Index),
    Told(usize, Told),
}

impl Part {
    fn end(&self) -> &IndexEnd {
        match self {
            Self::Read(index) => &index.end,
            Self::Told(_, told) => &told.end,
        }
    }

    /// Pages' records of the transaction that is open at the end.
    fn open_entries(&self) -> u64 {
        match self {
            Self::Read(index) => index.open.len() as u64,
            Self::Told(_, told) => u64::from(told.end.open_entries),
        }
    }
}

/// What the records of each virtual log file come to, in order.
pub(super) struct Collected {
    redo: Lsn,
    vlf: u32,
    /// Of the virtual log file that was met last.
    pub last: Index,
    /// Of those before; only the newest counts where not all are wanted.
    before: Vec<(u32, Part)>,
    all: bool,
    pub indexed: u64,
    /// By virtual log file, as far as they were read.
    pub filters: HashMap<u32, Option<Filter>>,
}

impl Collected {
    pub(super) fn begin(control: &Control, all: bool) -> Self {
        let redo = control.redo.lsn;
        let last = Index::begin(redo, 0);
        Self { redo, vlf: redo.vlf(), last, before: Vec::new(), all, indexed: 0, filters: HashMap::new() }
    }

    /// Goes over to a later virtual log file.
    pub(super) fn enter(&mut self, vlf: u32) {
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

    /// Passes over a virtual log file, which begins here, by what the directory tells.
    pub(super) fn pass(&mut self, slot: usize, told: Told) {
        self.before.push((self.vlf, Part::Told(slot, told)));
        self.indexed += 1;
        self.vlf += 1;
        self.last = Index::begin(Lsn::new(self.vlf, FIRST_UNIT, 1), told.end.open_tx);
    }

    /// Takes in the records of a block.
    pub(super) fn take(&mut self, header: &BlockHeader, used: &[u8]) -> Result<()> {
        self.enter(header.vlf);
        self.last.take_block(header, used, self.redo)
    }

    /// The runs of what committed, newest first, and the sums over all.
    pub(super) fn runs(mut self, disk: Arc<dyn Disk>, geometry: Geometry) -> (Runs, IndexEnd) {
        let mut last = self.last;
        last.sort();
        let mut sums = IndexEnd::default();
        let mut runs = Vec::new();
        // Of the transaction that is open where a virtual log file ends.
        let mut fate = Outcome::Open;
        for (vlf, part) in self.before.into_iter().chain([(self.vlf, Part::Read(last))]).rev() {
            let end = *part.end();
            sums.records += end.records;
            sums.commits += end.commits;
            sums.sequence = sums.sequence.max(end.sequence);
            sums.tx_max = sums.tx_max.max(end.tx_max);
            sums.dropped += end.dropped;
            let committed = fate == Outcome::Committed;
            if !committed {
                sums.dropped += part.open_entries();
            }
            match part {
                Part::Told(slot, told) => {
                    let filter = self.filters.remove(&vlf);
                    runs.push(Run::told(vlf, (slot, told), committed, filter, self.redo));
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
                fate = end.carried;
            }
        }
        (Runs::new(runs, disk, geometry), sums)
    }
}

/// The end of a virtual log file that another one continues.
struct Ended {
    vlf: u32,
    slot: usize,
    /// The next one's, and the checksum from which it goes on.
    next: usize,
    previous: u32,
    epoch: u32,
    end: IndexEnd,
}

/// Reads the log from the redo LSN on, by indices where they can be believed; tells where it ends.
pub(super) fn read(log: &LogFile<'_>, control: &Control, reading: Reading) -> Result<(Way, Collected)> {
    let mut indices = indices(log, control, reading)?;
    let mut collected = Collected::begin(control, true);
    let mut way = Way::begin(control.redo_slot as usize, control.redo);
    loop {
        let vlf = way.position.lsn.vlf();
        let own = indices.iter().position(|(ended, _)| ended.slot == way.slot && ended.epoch >= way.epoch);
        if let Some((ended, index)) = own.map(|own| indices.swap_remove(own)) {
            collected.enter(vlf);
            collected.last = index;
            collected.indexed += 1;
            let lsn = Lsn::new(vlf, index::end_unit(&control.geometry), 1);
            (way.last, way.epoch) = (lsn, ended.epoch);
            way.position = Position { lsn, previous: ended.previous };
            way.enter(ended.next);
            continue;
        }
        let until = indices.iter().map(|(ended, _)| ended.vlf).filter(|own| *own > vlf).min();
        let known = control.known();
        let ended = log.scan_until(&mut way, until.unwrap_or(u32::MAX), known, reading, |header, used| {
            collected.take(header, used)
        })?;
        if ended {
            collected.enter(way.position.lsn.vlf());
            return Ok((way, collected));
        }
    }
}

/// The indices that are to be believed.
fn indices(log: &LogFile<'_>, control: &Control, reading: Reading) -> Result<Vec<(Ended, Index)>> {
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

/// The last sectors of the virtual log files from redo on, as far as they are this use's, whole, not cut off, tell
/// of an index that covers what is needed, and are continued by another virtual log file.
fn ends(log: &LogFile<'_>, control: &Control, reading: Reading) -> Result<Vec<Ended>> {
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
        let own = headers[slots[at]]?;
        let vlf = own.vlf;
        let (block, used) = block::open(sector, &geometry, vlf, unit)?;
        let next = headers.iter().position(|header| {
            header.is_some_and(|next| {
                next.vlf == vlf + 1 && next.previous == block.crc && next.epoch >= block.epoch
            })
        })?;
        let Some(Ok((_, Record::IndexEnd(end)))) = Records::of(used).next() else { return None };
        let not_cut_off = block.epoch >= known.epoch || block.last() <= known.durable;
        let from = Lsn::new(vlf, FIRST_UNIT, 1).max(redo);
        let inside = u64::from(end.unit) * UNIT_BYTES + u64::from(end.bytes) <= within;
        let usable = !end.missing && end.from <= from && inside && block.epoch >= own.epoch && not_cut_off;
        let previous = headers[next]?.previous;
        usable.then(|| Ended { vlf, slot: slots[at], next, previous, epoch: block.epoch, end })
    })?;
    Ok(found.into_iter().flatten().collect())
}
