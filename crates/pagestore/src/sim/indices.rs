//! Where the index blocks of a log are: the laboratory aims at them, for a fault or a flipped bit that is drawn
//! anywhere seldom meets one.

use super::disk::SECTOR;
use super::{Chance, Op};
use crate::codec::u32_at;
use crate::disk::FileId;
use crate::log::block::BLOCK_HEADER_BYTES;
use crate::log::record::{Record, Records};

/// The records of index blocks among these bytes of a log: offset and length of each.
fn indices(bytes: &[u8]) -> Vec<(usize, usize)> {
    (0..bytes.len())
        .step_by(SECTOR)
        .filter_map(|at| {
            let block = &bytes[at..];
            if block.get(..4)? != b"HLB1" {
                return None;
            }
            let used = block.get(BLOCK_HEADER_BYTES..u32_at(block, 20) as usize)?;
            let (_, record) = Records::of(used).next()?.ok()?;
            let index = matches!(record, Record::Index { .. } | Record::IndexEnd(_));
            index.then_some((at + BLOCK_HEADER_BYTES, used.len()))
        })
        .collect()
}

/// A byte of an index in a log file.
pub(super) fn byte_of_index(log: &[u8], chance: &mut Chance) -> Option<usize> {
    let all = indices(log);
    let (at, bytes) = *all.get(chance.below(all.len() as u64) as usize)?;
    Some(at + chance.below(bytes as u64) as usize)
}

/// An operation that writes an index.
pub(super) fn write_of_index(trace: &[Op], chance: &mut Chance) -> Option<usize> {
    let writes =
        |op: &Op| matches!(op, Op::Write { file: FileId::Log, bytes, .. } if !indices(bytes).is_empty());
    let all: Vec<usize> = (0..trace.len()).filter(|at| writes(&trace[*at])).collect();
    all.get(chance.below(all.len() as u64) as usize).copied()
}
