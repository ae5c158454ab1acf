//! Finds the index blocks of a log, the block within which recovery begins, and the writes that no later write confirms: the
//! laboratory aims at them, since a random fault or bit flip rarely hits one.

use crate::disk::SECTOR;
use crate::{Chance, Files, Op, SimDisk};
use pagestore::Lsn;
use pagestore::internals::{
    BLOCK_HEADER_BYTES, BLOCK_MAGIC, INDEX_ENTRY_BYTES, LOG_HEAD_BYTES, RECORD_HEADER_BYTES, Record,
    newest_control, put_u32, records, u32_at,
};
use pagestore_disk::FileId;
use std::collections::BTreeMap;

/// The blocks in these bytes of a log: the offset of their records, and the records.
fn blocks(bytes: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    (0..bytes.len()).step_by(SECTOR).filter_map(|at| {
        let block = &bytes[at..];
        let is_block = block.get(..4)? == BLOCK_MAGIC;
        let used = block.get(BLOCK_HEADER_BYTES..u32_at(block, 20) as usize).filter(|_| is_block)?;
        Some((at + BLOCK_HEADER_BYTES, used))
    })
}

/// The first record of each block in these bytes of a log, with the offset and length of its records.
fn first_records(bytes: &[u8]) -> impl Iterator<Item = (usize, usize, Record<'_>)> {
    blocks(bytes).filter_map(|(at, used)| {
        let record = records(used).next()?;
        Some((at, used.len(), record))
    })
}

/// Commits whose writes are the last before the first page of a checkpoint: if the device loses one of them, no later block
/// says that it was durable. Each with the operation that syncs the pages of that checkpoint.
pub(crate) fn commits_right_under_pages(trace: &[Op]) -> Vec<(usize, usize)> {
    let commits = |bytes: &[u8]| {
        blocks(bytes)
            .flat_map(|(_, used)| records(used))
            .any(|record| matches!(record, Record::Commit { .. }))
    };
    let mut found = Vec::new();
    let (mut last, mut is_written) = (None, false);
    for (at, op) in trace.iter().enumerate() {
        match op {
            Op::Write { file: FileId::Log, bytes, .. } => last = commits(bytes).then_some(at),
            Op::Write { file: FileId::Data, .. } if !is_written => {
                is_written = true;
                let synced = |op: &Op| matches!(op, Op::Sync { file: FileId::Data });
                let end = trace[at..].iter().position(synced).map_or(trace.len(), |after| at + after);
                found.extend(last.map(|last| (last, end)));
            }
            Op::Sync { file: FileId::Data } => is_written = false,
            _ => {}
        }
    }
    found
}

/// The records of index blocks in these bytes of a log: offset and length.
fn indices(bytes: &[u8]) -> Vec<(usize, usize)> {
    first_records(bytes)
        .filter(|(_, _, record)| matches!(record, Record::Index { .. } | Record::IndexEnd(_)))
        .map(|(at, length, _)| (at, length))
        .collect()
}

/// The operations that write the end of a virtual log file over a whole index of an earlier use of its space: if one of
/// them is lost, that index is found there.
pub(crate) fn writes_over_indices(trace: &[Op], vlf_bytes: u64) -> Vec<usize> {
    // The offset where the blocks of an index begin, by the offset of its end.
    let mut begins: BTreeMap<u64, u64> = BTreeMap::new();
    let mut over = Vec::new();
    for (at, op) in trace.iter().enumerate() {
        let Op::Write { file: FileId::Log, offset, bytes, through: true } = op else { continue };
        for (within, _, record) in first_records(bytes) {
            let Record::IndexEnd(end) = record else { continue };
            let place = offset + within as u64;
            let begin = place - (place - LOG_HEAD_BYTES) % vlf_bytes + u64::from(end.unit) * Lsn::UNIT_BYTES;
            if begins.insert(place, begin).is_some_and(|earlier| earlier >= *offset) {
                over.push(at);
            }
        }
    }
    over
}

/// The offset of a random byte of an index in a log file.
pub(crate) fn byte_of_index(log: &[u8], chance: &mut Chance) -> Option<usize> {
    let all = indices(log);
    let (at, bytes) = *all.get(chance.below(all.len() as u64) as usize)?;
    Some(at + chance.below(bytes as u64) as usize)
}

/// The offset of a random byte of the block that holds the LSN where recovery begins.
pub(crate) fn byte_of_first_block(files: &Files, vlf_bytes: u64, chance: &mut Chance) -> Option<usize> {
    let redo = newest_control(&SimDisk::holding(files.clone())).ok()??.redo;
    let log = &files[FileId::Log as usize];
    let is_first = |at: usize| {
        let in_vlf = (at as u64).checked_sub(LOG_HEAD_BYTES).map(|offset| offset % vlf_bytes);
        u32_at(log, at + 8) == redo.vlf() && in_vlf == Some(u64::from(redo.unit()) * Lsn::UNIT_BYTES)
    };
    let (at, used) = blocks(log)
        .map(|(records, used)| (records - BLOCK_HEADER_BYTES, BLOCK_HEADER_BYTES + used.len()))
        .find(|(at, _)| is_first(*at))?;
    Some(at + chance.below(used as u64) as usize)
}

/// Changes one entry of an index that recovery needs. Order and counts of the index stay valid; the entry names another
/// page, another record, or a change instead of an image. Returns its offset in the log file.
pub(crate) fn mislead(files: &mut Files, chance: &mut Chance) -> Option<usize> {
    let redo = newest_control(&SimDisk::holding(files.clone())).ok()??.redo;
    let log = &mut files[FileId::Log as usize];
    let needed = |at: usize| u32_at(log, at - BLOCK_HEADER_BYTES + 8) >= redo.vlf();
    let all: Vec<(usize, usize)> = first_records(log)
        .filter_map(|(at, _, record)| match record {
            Record::Index { open: false, entries, .. } if needed(at) => {
                Some((at + RECORD_HEADER_BYTES + 8, entries.len() / INDEX_ENTRY_BYTES))
            }
            _ => None,
        })
        .collect();
    let (first, count) = *all.get(chance.below(all.len() as u64) as usize)?;
    let index = chance.below(count as u64) as usize;
    let entry = |index: usize| first + index * INDEX_ENTRY_BYTES;
    let page = |index: usize| u32_at(log, entry(index)) >> 1;
    let at = entry(index);
    let image = u32_at(log, at) & 1;
    match chance.below(3) {
        0 => {
            let least = if index > 0 { page(index - 1) } else { page(index) };
            let most = if index + 1 < count { page(index + 1) } else { page(index) + 8 };
            let other = least + chance.below(u64::from(most - least) + 1) as u32;
            put_u32(log, at, other << 1 | image);
        }
        1 => {
            let other = u32_at(log, entry(chance.below(count as u64) as usize) + 4);
            put_u32(log, at + 4, other);
        }
        _ => log[at] ^= 1,
    }
    Some(at)
}

/// A random operation that writes an index.
pub(crate) fn write_of_index(trace: &[Op], chance: &mut Chance) -> Option<usize> {
    let writes =
        |op: &Op| matches!(op, Op::Write { file: FileId::Log, bytes, .. } if !indices(bytes).is_empty());
    let all: Vec<usize> = (0..trace.len()).filter(|at| writes(&trace[*at])).collect();
    all.get(chance.below(all.len() as u64) as usize).copied()
}
