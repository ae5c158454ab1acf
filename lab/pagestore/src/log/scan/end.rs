//! Whether the log ends where no block continues the chain, or is damaged there.
//!
//! It is a torn end (what was being written during the crash) unless there is a witness: a later block, or the
//! control file, that says that the position had been durable. Then acknowledged data is damaged, which is an
//! error; the log is not cut there. Later blocks are searched for in the 16 MiB after the end: longer damage in one
//! piece right at the end of the log would be mistaken for a torn end. The blocks after the end may also lie in a
//! part of the log file that is missing: see `truncation`.

use super::truncation::BegunVlf;
use super::window::Window;
use super::{FIRST_UNIT, LogFile, ScanCursor, not_walked};
use crate::error::{Error, Result};
use crate::format::codec::u32_at;
use crate::format::geometry::MAX_BLOCK_BYTES;
use crate::log::block::{self, BLOCK_HEADER_BYTES, BlockHeader};
use crate::log::writer::RUN_CAPACITY;
use crate::types::{Lsn, UNIT_BYTES};

/// How far a witness is searched for after the end: much more than can have been in flight.
const LOOK_AHEAD_BYTES: u64 = 16 << 20;

impl LogFile<'_> {
    /// Fails if a witness contradicts that the log ends at the cursor.
    pub(super) fn check_end(&self, window: &mut Window<'_>, cursor: &ScanCursor, witness: Lsn) -> Result<()> {
        let end = cursor.position;
        let damaged = |why: String| Err(Error::CorruptLog { lsn: end.lsn, why });
        // Recovery may begin after some records of a block. What says that one of them was durable is a witness for the block.
        let missing = Lsn::new(end.lsn.vlf(), end.lsn.unit(), 1);
        if witness >= missing {
            return damaged(format!(
                "no block there continues the log, and the control file knows {witness} as durable"
            ));
        }
        let from = end.lsn.unit() + (self.geometry.sector_bytes as u64 / UNIT_BYTES) as u32;
        if let Some(block) = self.witness_in(window, (cursor.slot, from), missing)? {
            return damaged(format!(
                "no block there continues the log, and the block at {} was written when {} was durable",
                Lsn::new(block.vlf, block.unit, 1),
                block.witness
            ));
        }
        for slot in self.may_follow(end.lsn, &cursor.chain) {
            if let Some(block) = self.witness_in(window, (slot, FIRST_UNIT), missing)? {
                return damaged(format!(
                    "the log does not go on from there, and the block at {} was written when {} was durable",
                    Lsn::new(block.vlf, block.unit, 1),
                    block.witness
                ));
            }
        }
        if let Some(BegunVlf { vlf, slot }) = self.missing_vlf(end.lsn.vlf())? {
            let slots = self.headers.len();
            return damaged(format!(
                "the log went on to virtual log file {vlf:08x} in slot {slot}, and the log file has {slots} whole slots: \
                 it was cut, or copied in part"
            ));
        }
        Ok(())
    }

    /// The slots that may hold what came after `end`. The first block of a slot names its virtual log file even if
    /// the slot's header is damaged. If one write may have held the end of this virtual log file and the beginning
    /// of the next, that beginning may be damaged and not name it; but then only the slot whose last use is oldest,
    /// or the first unused slot, can have been taken.
    fn may_follow(&self, end: Lsn, chain: &[(u32, usize)]) -> Vec<usize> {
        let left = self.geometry.vlf_bytes - u64::from(end.unit()) * UNIT_BYTES;
        let may_be_next = left <= (RUN_CAPACITY + MAX_BLOCK_BYTES) as u64;
        let (mut others, oldest) = not_walked(&self.headers, chain);
        let unused = others.iter().copied().find(|slot| self.first_blocks[*slot].empty);
        others.retain(|slot| {
            let first = self.first_blocks[*slot];
            let named = first.vlf > end.vlf() && first.vlf < u32::MAX;
            let damaged = self.headers[*slot].is_none() && !first.empty;
            named || may_be_next && (damaged || oldest == Some(*slot) || unused == Some(*slot))
        });
        others
    }

    /// The first whole block at or after `from`, of any virtual log file, that was written when `missing` was durable.
    /// Blocks of an earlier use of the space have older witnesses.
    fn witness_in(
        &self,
        window: &mut Window<'_>,
        (slot, from): (usize, u32),
        missing: Lsn,
    ) -> Result<Option<BlockHeader>> {
        let from = u64::from(from) * UNIT_BYTES;
        let to = (from + LOOK_AHEAD_BYTES).min(self.geometry.vlf_bytes);
        for at in (from..to).step_by(self.geometry.sector_bytes) {
            let unit = (at / UNIT_BYTES) as u32;
            let bytes = window.at(slot, unit)?;
            if bytes.len() < BLOCK_HEADER_BYTES {
                break;
            }
            if let Some((header, _)) = block::open(bytes, &self.geometry, u32_at(bytes, 8), unit)
                && header.witness >= missing
            {
                return Ok(Some(header));
            }
        }
        Ok(None)
    }
}
