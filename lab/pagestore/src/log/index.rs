//! The index at the end of a virtual log file: which pages its records change, so that opening reads the index
//! instead of the records.
//!
//! ```text
//! … records' blocks | INDEX | INDEX | … | nothing | INDEX_END       all of them blocks of the log, in its chain
//! INDEX       entries, sorted by page: of committed transactions, then of the one that is open at the end
//! INDEX_END   in the last sector, where it is found without reading anything else
//! entry       (page - base) << 1 | image, u32        place: block and record, the low half of the LSN, u32
//! ```
//! Only the records since a page's newest image are listed. Whether the entries of the open transaction count is
//! known from the following indices or records: each index says how the transaction ended that was open at its
//! beginning. An index is trusted if its blocks are whole, belong to this use of the slot, were not cut off by a
//! recovery, and the next virtual log file continues the chain from it. Otherwise the whole virtual log file is
//! read.

use crate::error::Result;
use crate::format::codec::{u32_at, u64_at};
use crate::format::geometry::{Geometry, MAX_BLOCK_BYTES};
use crate::log::block::{self, BLOCK_HEADER_BYTES, BlockHeader, BlockRecord};
use crate::log::record::{ENTRY_BYTES, IndexEnd, Outcome, RECORD_HEADER_BYTES, Record};
use crate::types::{COUNT_MAX, Lsn, PageNo, UNIT_BYTES};

/// Bytes of a block with entries, apart from the entries.
const LEAF_BYTES: usize = BLOCK_HEADER_BYTES + RECORD_HEADER_BYTES + 8;
/// Entries of one block, at most.
const LEAF_ENTRIES_MAX: usize = (MAX_BLOCK_BYTES - LEAF_BYTES) / ENTRY_BYTES;
/// Superseded entries are removed once there are this many.
const COMPACT_FROM: usize = 4096;
/// The largest difference between a page number and the first of its block.
const SPREAD_MAX: u64 = (1 << 31) - 1;

/// The offset of the `INDEX_END` block, in units of 512 bytes.
pub(crate) fn end_unit(geometry: &Geometry) -> u32 {
    ((geometry.vlf_bytes - geometry.sector_bytes as u64) / UNIT_BYTES) as u32
}

/// A record of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Entry {
    pub page: u64,
    /// The low half of its LSN.
    pub place: u32,
    pub image: bool,
}

/// The index of a virtual log file while its records are appended or read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Index {
    /// Totals; those that depend on the position are filled in when the index is written.
    pub end: IndexEnd,
    /// Records of transactions that committed here.
    pub committed: Vec<Entry>,
    /// Records of the open transaction.
    pub open: Vec<Entry>,
    compacted: usize,
}

impl Index {
    /// An index of the records from `from` on, where `open_tx` is open.
    pub(crate) fn begin(from: Lsn, open_tx: u64) -> Self {
        Self { end: IndexEnd { from, open_tx, ..IndexEnd::default() }, ..Self::default() }
    }

    /// Adds the next record.
    pub(crate) fn add_record(&mut self, lsn: Lsn, tx: u64, record: &Record<'_>) {
        self.end.records += 1;
        if tx != 0 && tx != self.end.open_tx {
            // One transaction writes at a time: the one before ended without a commit.
            self.drop_open();
            self.end.open_tx = tx;
            self.end.tx_max = self.end.tx_max.max(tx);
        }
        match record {
            Record::Page { page, image, .. } => {
                self.open.push(Entry { page: page.0, place: lsn.packed() as u32, image: *image });
            }
            Record::Commit { sequence } => {
                self.end.commits += 1;
                self.end.sequence = self.end.sequence.max(*sequence);
                self.committed.append(&mut self.open);
                self.set_carried(Outcome::Committed);
                if self.committed.len() >= COMPACT_FROM.max(2 * self.compacted) {
                    compact(&mut self.committed);
                    self.compacted = self.committed.len();
                }
            }
            Record::Abort => self.drop_open(),
            _ => {}
        }
    }

    /// Adds the records of a block from `redo` on, except index records.
    pub(crate) fn add_block(&mut self, header: &BlockHeader, used: &[u8], redo: Lsn) -> Result<()> {
        for found in block::records(header, used) {
            let BlockRecord { lsn, tx, record } = found?;
            if lsn >= redo && !matches!(record, Record::Index { .. } | Record::IndexEnd(_)) {
                self.add_record(lsn, tx, &record);
            }
        }
        Ok(())
    }

    fn drop_open(&mut self) {
        self.end.dropped += self.open.len() as u64;
        self.open.clear();
        self.set_carried(Outcome::Dropped);
    }

    fn set_carried(&mut self, outcome: Outcome) {
        if self.end.carried == Outcome::Open {
            self.end.carried = outcome;
        }
    }

    /// An upper bound of the bytes of the blocks that hold the index and one more entry.
    pub(crate) fn blocks_bytes(&self, sector_bytes: usize) -> u64 {
        let entries = self.committed.len() + self.open.len() + 1;
        let blocks = entries / LEAF_ENTRIES_MAX + 2;
        (entries * ENTRY_BYTES + blocks * (LEAF_BYTES + sector_bytes)) as u64
    }

    /// Sorts the entries and removes those that a later image supersedes.
    pub(crate) fn sort(&mut self) {
        compact(&mut self.committed);
        compact(&mut self.open);
        (self.end.entries, self.end.open_entries) = (self.committed.len() as u32, self.open.len() as u32);
    }

    /// The sorted entries as INDEX records, each for a block of its own.
    pub(crate) fn records(&self) -> Vec<Vec<u8>> {
        let mut records = Vec::new();
        let mut bytes = Vec::new();
        for (entries, open) in [(&self.committed, false), (&self.open, true)] {
            let mut rest = entries.as_slice();
            while let Some(first) = rest.first() {
                let near = rest.partition_point(|entry| entry.page - first.page <= SPREAD_MAX);
                let (leaf, later) = rest.split_at(near.min(LEAF_ENTRIES_MAX));
                rest = later;
                bytes.clear();
                for entry in leaf {
                    let page = ((entry.page - first.page) as u32) << 1 | u32::from(entry.image);
                    bytes.extend_from_slice(&page.to_le_bytes());
                    bytes.extend_from_slice(&entry.place.to_le_bytes());
                }
                let mut record = Vec::new();
                Record::Index { open, base: PageNo(first.page), entries: &bytes }.encode(0, &mut record);
                records.push(record);
            }
        }
        records
    }

    /// Reads an index from its contiguous blocks and its end; `None` if they do not match.
    pub(crate) fn read(blocks: &[u8], end: IndexEnd) -> Option<Self> {
        if blocks.len() / ENTRY_BYTES < end.entries as usize {
            return None;
        }
        let mut index = Self { committed: Vec::with_capacity(end.entries as usize), end, ..Self::default() };
        let (mut rest, mut crc) = (blocks, 0);
        while !rest.is_empty() {
            if rest.len() < LEAF_BYTES {
                return None;
            }
            let (length, used) = (u32_at(rest, 16) as usize, u32_at(rest, 20) as usize);
            if !(LEAF_BYTES..=length).contains(&used) || length > rest.len() {
                return None;
            }
            let record = &rest[BLOCK_HEADER_BYTES..used];
            crc = crc32c::crc32c_append(crc, record);
            index.add_entries(record)?;
            rest = &rest[length..];
        }
        if crc != end.crc {
            return None;
        }
        let counted =
            (index.committed.len(), index.open.len()) == (end.entries as usize, end.open_entries as usize);
        counted.then_some(index)
    }

    /// Adds the entries of one record. Its checksum is part of that over all records, which the caller checks.
    fn add_entries(&mut self, record: &[u8]) -> Option<()> {
        let base = u64_at(record, RECORD_HEADER_BYTES);
        if base >= COUNT_MAX {
            return None;
        }
        let to = if record[1] & 1 == 1 { &mut self.open } else { &mut self.committed };
        to.extend(record[RECORD_HEADER_BYTES + 8..].chunks_exact(ENTRY_BYTES).map(|entry| {
            let page = u32_at(entry, 0);
            Entry { page: base + u64::from(page >> 1), place: u32_at(entry, 4), image: page & 1 == 1 }
        }));
        Some(())
    }
}

/// Sorts by page and place, and removes the entries of each page before its newest image.
fn compact(entries: &mut Vec<Entry>) {
    entries.sort_unstable();
    let mut kept = 0;
    let mut page_start = 0;
    for at in 0..entries.len() {
        let entry = entries[at];
        if kept == 0 || entries[kept - 1].page != entry.page {
            page_start = kept;
        } else if entry.image {
            kept = page_start;
        }
        entries[kept] = entry;
        kept += 1;
    }
    entries.truncate(kept);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn page(index: &mut Index, unit: u32, tx: u64, page: u64, image: bool) {
        index.add_record(Lsn::new(1, unit, 1), tx, &Record::Page { page: PageNo(page), image, runs: &[] });
    }

    #[test]
    fn it_lists_what_committed_since_each_pages_newest_image_and_what_is_open_apart() {
        let mut index = Index::begin(Lsn::new(1, 8, 1), 4);
        page(&mut index, 8, 4, 70, false);
        index.add_record(Lsn::new(1, 8, 2), 4, &Record::Commit { sequence: 9 });
        assert_eq!(index.end.carried, Outcome::Committed);
        for (unit, image) in [(9, true), (10, false), (11, true), (12, false)] {
            page(&mut index, unit, 5, 7, image);
        }
        index.add_record(Lsn::new(1, 13, 1), 5, &Record::Commit { sequence: 10 });
        page(&mut index, 14, 6, 7, true);
        page(&mut index, 15, 7, 8, true);
        index.sort();
        let found: Vec<_> = index.committed.iter().map(|entry| (entry.page, entry.place >> 12)).collect();
        assert_eq!(found, [(7, 11), (7, 12), (70, 8)]);
        assert_eq!(index.open.iter().map(|entry| entry.page).collect::<Vec<_>>(), [8]);
        assert_eq!((index.end.open_tx, index.end.dropped, index.end.sequence), (7, 1, 10));
    }

    #[test]
    fn more_entries_than_its_blocks_can_hold_are_refused_before_there_is_memory_for_them() {
        let end = IndexEnd { entries: u32::MAX, ..IndexEnd::default() };
        assert!(Index::read(&[0; 512], end).is_none());
    }

    proptest! {
        #[test]
        fn entries_read_back_from_their_blocks_and_a_wrong_bit_is_refused(
            pages in proptest::collection::vec((0..1_u64 << 40, any::<u32>(), any::<bool>()), 1..300),
            wrong in any::<proptest::sample::Index>(),
        ) {
            let mut index = Index::default();
            index.committed.extend(pages.iter().map(|(page, place, image)| Entry {
                page: *page, place: *place, image: *image,
            }));
            index.sort();
            let mut blocks = Vec::new();
            for record in index.records() {
                index.end.crc = crc32c::crc32c_append(index.end.crc, &record);
                let mut header = [0; BLOCK_HEADER_BYTES];
                let length = (BLOCK_HEADER_BYTES + record.len()).next_multiple_of(512);
                crate::format::codec::put_u32(&mut header, 16, length as u32);
                crate::format::codec::put_u32(&mut header, 20, (BLOCK_HEADER_BYTES + record.len()) as u32);
                let end = blocks.len() + length;
                blocks.extend_from_slice(&header);
                blocks.extend_from_slice(&record);
                blocks.resize(end, 0);
            }
            prop_assert_eq!(&Index::read(&blocks, index.end).unwrap().committed, &index.committed);
            let at = wrong.index(index.records()[0].len());
            blocks[BLOCK_HEADER_BYTES + at] ^= 1;
            prop_assert!(Index::read(&blocks, index.end).is_none());
        }
    }
}
