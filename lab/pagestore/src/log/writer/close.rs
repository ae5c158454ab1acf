//! Closing a virtual log file: its index, and the block in its last sector that locates the index.

use super::LogWriter;
use crate::format::geometry::MAX_WRITE_BYTES;
use crate::log::block::BLOCK_HEADER_BYTES;
use crate::log::directory::Filter;
use crate::log::index::{self, Index};
use crate::log::record::{IndexEnd, Record};
use crate::types::UNIT_BYTES;

impl LogWriter {
    /// Bytes reserved for closing the virtual log file.
    pub(super) fn closing_bytes(&self) -> u64 {
        self.index.blocks_bytes(self.geometry.sector_bytes) + self.geometry.sector_bytes as u64
    }

    /// Writes the index and the end block. A virtual log file that recovery found with its end block is left
    /// unchanged; one whose index was torn may have no space for another, and its end block says so.
    pub(super) fn close_vlf(&mut self) {
        self.seal_block();
        let end_unit = index::end_unit(&self.geometry);
        if self.unit > end_unit {
            return;
        }
        let sector = self.geometry.sector_bytes;
        let mut index = std::mem::take(&mut self.index);
        index.sort();
        let records = index.records();
        let length = |record: &Vec<u8>| (BLOCK_HEADER_BYTES + record.len()).next_multiple_of(sector);
        let bytes: usize = records.iter().map(length).sum();
        let fits = u64::from(self.unit) * UNIT_BYTES + bytes as u64 <= u64::from(end_unit) * UNIT_BYTES;
        let mut end = IndexEnd { missing: !fits, unit: self.unit, bytes: bytes as u32, ..index.end };
        if fits {
            for record in &records {
                end.crc = crc32c::crc32c_append(end.crc, record);
                self.put(record);
                self.seal_block();
            }
        }
        self.skip_to(end_unit);
        let mut record = Vec::new();
        Record::IndexEnd(end).encode(0, &mut record);
        self.put(&record);
        self.seal_block();
        let pages = index.committed.iter().chain(&index.open).map(|entry| entry.page);
        self.closed = Some((end, Filter::from_pages(pages, self.vlf, self.geometry.store)));
        // The next index begins with the transaction that is open here.
        self.index = Index::begin(self.last, end.open_tx);
    }

    /// Moves the open block, which is empty, to `unit`; within the same write if the gap is small.
    fn skip_to(&mut self, unit: u32) {
        let gap = (u64::from(unit - self.unit) * UNIT_BYTES) as usize;
        if gap == 0 {
            return;
        }
        if self.run.blocks > 0 && self.open_at + gap <= MAX_WRITE_BYTES {
            self.run.buffer.extend_zeros(gap);
            self.open_at += gap;
        } else {
            let next = self.run.offset + (self.open_at + gap) as u64;
            self.finish_run(next);
        }
        self.unit = unit;
    }
}
