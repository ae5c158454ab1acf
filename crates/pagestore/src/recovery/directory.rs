//! The end of the log by its directory: of full virtual log files nothing is read but what it tells, of the last one
//! all. It decides nothing: where it does not lead to an honest end within a virtual log file, the headers and the ends
//! are read themselves (`indexed`), and damage is found there.

use super::indexed::Collected;
use crate::control::Control;
use crate::disk::Disk;
use crate::error::{Error, Result};
use crate::log::block::VlfHeader;
use crate::log::directory::{self, Directory, Ended, Entry};
use crate::log::index;
use crate::log::scan::{FIRST_UNIT, LogFile, Reading, Way};
use crate::log::writer::Position;
use crate::lsn::Lsn;

/// What a virtual log file before the last one is known by.
struct Passed {
    vlf: u32,
    slot: usize,
    ended: Ended,
}

/// Reads the log from the redo LSN on; `None` where the directory does not tell enough.
pub(super) fn read<'a>(
    disk: &'a dyn Disk,
    control: &Control,
    reading: Reading,
) -> Result<Option<(LogFile<'a>, Way, Collected, Directory)>> {
    let geometry = control.geometry;
    let slots = LogFile::slots_in(disk, &geometry)?;
    let Some(entries) = directory::read(disk, geometry.store, slots)? else { return Ok(None) };
    let Some((passed, last_slot)) = passed(control, &entries) else { return Ok(None) };

    // Of the last one the header itself, and of those that may have been taken after it: they show whether the
    // directory is behind.
    let headers: Vec<_> = entries.iter().map(|entry| entry.as_ref().map(header)).collect();
    let last_vlf = control.redo.lsn.vlf() + passed.len() as u32;
    let mut chain: Vec<_> = passed.iter().map(|own| (own.vlf, own.slot)).collect();
    chain.push((last_vlf, last_slot));
    let mut heads = LogFile::next_taken(&headers, &chain);
    heads.push(last_slot);
    let mut log = LogFile::told(disk, geometry, headers, &heads, reading)?;
    let Some(own) = log.headers()[last_slot] else { return Ok(None) };
    let before = passed.last().map(|own| own.ended);
    let continues = before.is_none_or(|before| own.previous == before.crc && own.epoch >= before.epoch);
    let newest = heads.iter().filter_map(|slot| log.headers()[*slot]).map(|header| header.vlf).max();
    if own.vlf != last_vlf || !continues || newest != Some(last_vlf) {
        return Ok(None);
    }

    let mut collected = Collected::begin(control, true);
    let mut way = Way::begin(control.redo_slot as usize, control.redo);
    for own in &passed {
        collected.pass(own.slot, own.ended);
        way.epoch = own.ended.epoch;
        way.last = Lsn::new(own.vlf, index::end_unit(&geometry), 1);
    }
    if let Some(before) = before {
        way.position = Position { lsn: Lsn::new(last_vlf, FIRST_UNIT, 1), previous: before.crc };
        (way.slot, way.chain) = (last_slot, chain);
    }
    let scanned = log.scan_until(&mut way, u32::MAX, control.known(), reading, |header, used| {
        collected.take(header, used)
    });
    match scanned {
        Err(Error::CorruptLog { .. }) => return Ok(None),
        other => other?,
    };
    let within = way.slot == last_slot && way.position.lsn.unit() <= index::end_unit(&geometry);
    Ok(within.then(|| (log, way, collected, Directory::of(geometry.store, entries))))
}

fn header(entry: &Entry) -> VlfHeader {
    VlfHeader { vlf: entry.vlf, parity: entry.parity, epoch: 0, previous: 0, created: Lsn::ZERO }
}

/// The virtual log files from the redo LSN on that have ended, and the slot of the one after them.
fn passed(control: &Control, entries: &[Option<Entry>]) -> Option<(Vec<Passed>, usize)> {
    let (known, redo) = (control.known(), control.redo.lsn);
    let (mut passed, mut vlf, mut slot) = (Vec::<Passed>::new(), redo.vlf(), control.redo_slot as usize);
    while let Some(ended) = entries.get(slot)?.filter(|entry| entry.vlf == vlf).and_then(|entry| entry.ended)
    {
        let end = Lsn::new(vlf, index::end_unit(&control.geometry), 1);
        let covers = ended.end.from <= Lsn::new(vlf, FIRST_UNIT, 1).max(redo);
        let not_cut_off = ended.epoch >= known.epoch || end <= known.durable;
        let in_order = passed.last().is_none_or(|before| ended.epoch >= before.ended.epoch);
        if !covers || !not_cut_off || !in_order {
            return None;
        }
        passed.push(Passed { vlf, slot, ended });
        (vlf, slot) = (vlf + 1, ended.next_slot as usize);
    }
    // A slot that was taken and of which nothing else is known is the last one, or the directory is behind.
    let taken = |entry: &Entry| entry.ended.map(|ended| (entry.vlf + 1, ended.next_slot as usize));
    let unknown = entries.iter().flatten().filter_map(taken).find(|(taken, next)| {
        *next != slot && entries.get(*next).is_none_or(|own| own.is_none_or(|own| own.vlf < *taken))
    });
    unknown.is_none().then_some((passed, slot))
}
