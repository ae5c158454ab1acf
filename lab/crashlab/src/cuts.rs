//! Files that are shorter after a crash: truncated, or copied in part. Such a store is refused as damaged, or the missing
//! part had nothing in it that was acknowledged.

use crate::disk::SECTOR;
use crate::{Chance, Files, Medium, Op};
use pagestore::internals::{LOG_HEAD_BYTES, VLF_HEADER_BYTES};
use pagestore_disk::FileId;

/// One in this many crashed operations is crashed with a truncated file as well.
const CUT_ONE_IN: u64 = 8;

/// Whether the next crash is repeated with a truncated file; returns the generator for it. It does not advance `chance`, so
/// that the other draws stay the same.
pub(crate) fn is_drawn(chance: &Chance) -> Option<Chance> {
    let mut aside = Chance::new(chance.clone().draw() ^ 0xc07);
    aside.once_in(CUT_ONE_IN).then_some(aside)
}

/// The files after a crash, one of them truncated: mostly the log, and there often where a virtual log file begins.
pub(crate) fn cut(medium: &Medium, in_flight: Option<&Op>, vlf_bytes: u64, chance: &mut Chance) -> Files {
    let mut files = medium.crash(in_flight, chance);
    let file = [FileId::Control, FileId::Data].get(chance.below(8) as usize).copied().unwrap_or(FileId::Log);
    let bytes = &mut files[file as usize];
    let length = match chance.below(4) {
        0 => chance.below(bytes.len() as u64 + 1),
        1 => chance.below(bytes.len() as u64 / SECTOR as u64 + 1) * SECTOR as u64,
        drawn => {
            let slots = (bytes.len() as u64).saturating_sub(LOG_HEAD_BYTES) / vlf_bytes;
            let begin = LOG_HEAD_BYTES + chance.below(slots + 1) * vlf_bytes;
            // At the boundary, in the header after it, or in the first blocks.
            if drawn == 2 { begin } else { begin + chance.below(4 * VLF_HEADER_BYTES as u64) }
        }
    };
    bytes.truncate(length as usize);
    files
}
