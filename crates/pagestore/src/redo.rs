//! Pages put together from their log records, each block that is needed read and checked once for all of them.
//!
//! Records are wanted in the order of the log. One read brings the blocks of as many as lie near each other, and a
//! page's records come in their order, whichever pages' records lie between.

use crate::aligned::AlignedBuffer;
use crate::cache::Page;
use crate::delta;
use crate::disk::FileId;
use crate::error::{Error, Result};
use crate::log::block;
use crate::log::record::{Record, Records};
use crate::log::{Geometry, MAX_BLOCK_BYTES};
use crate::lsn::{Lsn, UNIT_BYTES};
use crate::store::Inner;
use std::sync::atomic::Ordering;

/// The largest read.
const READ_BYTES_MAX: usize = 512 << 10;
/// Blocks are read over that nobody wants, rather than left out, where there are no more than this.
const GAP_BYTES_MAX: u64 = 128 << 10;

/// A record, and which of the pages that are put together it belongs to.
pub(crate) type Wanted = (Lsn, usize);

/// One read of the log.
#[derive(Debug, PartialEq, Eq)]
struct Stretch {
    /// Where in the virtual log file.
    from: u64,
    bytes: usize,
    /// How many of the wanted records it brings.
    records: usize,
}

/// Where a record's block begins in its virtual log file.
fn block_start(lsn: Lsn) -> u64 {
    u64::from(lsn.unit()) * UNIT_BYTES
}

impl Stretch {
    /// The one that begins with the first of `wanted`, which are sorted. How long a block is, only itself tells.
    fn first(wanted: &[Wanted], geometry: &Geometry, bytes_max: usize) -> Self {
        let end = |lsn| (block_start(lsn) + MAX_BLOCK_BYTES as u64).min(geometry.vlf_bytes);
        let first = wanted[0].0;
        let from = block_start(first);
        let (mut to, mut records) = (end(first), 0);
        for (lsn, _) in wanted {
            let near = lsn.vlf() == first.vlf() && block_start(*lsn) <= to + GAP_BYTES_MAX;
            if !near || end(*lsn) - from > bytes_max as u64 {
                break;
            }
            to = to.max(end(*lsn));
            records += 1;
        }
        Self { from, bytes: (to - from) as usize, records: records.max(1) }
    }
}

/// The part of the log that was read last.
pub(crate) struct Window(AlignedBuffer);

impl Window {
    /// For records that lie anywhere.
    pub(crate) fn wide() -> Self {
        Self(AlignedBuffer::new(READ_BYTES_MAX))
    }

    /// For those of one page.
    fn of_one_block() -> Self {
        Self(AlignedBuffer::new(MAX_BLOCK_BYTES))
    }
}

impl Inner {
    /// Applies the `wanted` records, which are sorted, each to its own of `pages`, which lie one after the other. The
    /// first of each page is an image.
    pub(crate) fn redo_into(
        &self,
        mut wanted: &[Wanted],
        window: &mut Window,
        pages: &mut [u8],
    ) -> Result<()> {
        while !wanted.is_empty() {
            let stretch = Stretch::first(wanted, &self.geometry, window.0.capacity());
            let (own, rest) = wanted.split_at(stretch.records);
            wanted = rest;
            self.read_stretch(own[0].0, &stretch, &mut window.0)?;
            for own in own.chunk_by(|(a, _), (b, _)| block_start(*a) == block_start(*b)) {
                let bytes = &window.0.bytes()[(block_start(own[0].0) - stretch.from) as usize..];
                self.redo_block(own, bytes, pages)?;
            }
        }
        Ok(())
    }

    fn read_stretch(&self, lsn: Lsn, stretch: &Stretch, buffer: &mut AlignedBuffer) -> Result<()> {
        let slot = self.journal.with(|writer| writer.vlfs.slot_of(lsn.vlf()));
        let slot = slot.ok_or_else(|| damaged(lsn, "its space has been reused"))?;
        buffer.resize(stretch.bytes);
        self.disk
            .read(FileId::Log, self.geometry.slot_offset(slot) + stretch.from, buffer.bytes_mut())
            .map_err(|error| Error::io("read", FileId::Log, error))
    }

    /// Applies the records of one block, at the beginning of `bytes`.
    fn redo_block(&self, wanted: &[Wanted], bytes: &[u8], pages: &mut [u8]) -> Result<()> {
        let first = wanted[0].0;
        let (_, used) = block::open(bytes, &self.geometry, first.vlf(), first.unit())
            .ok_or_else(|| damaged(first, "its block cannot be read any more"))?;
        let page_bytes = self.geometry.page_bytes;
        let mut records = Records::of(used).zip(1..);
        for (lsn, at) in wanted {
            let (record, _) = records
                .find(|(_, number)| *number == lsn.record())
                .ok_or_else(|| damaged(*lsn, "the block has no such record"))?;
            let (_, record) = record.map_err(|why| damaged(*lsn, why))?;
            let Record::Page { image, runs, .. } = record else {
                return Err(damaged(*lsn, "it is not a page's record"));
            };
            let page = &mut pages[at * page_bytes..][..page_bytes];
            if image {
                page.fill(0);
            }
            delta::apply(runs, page).map_err(|why| damaged(*lsn, why))?;
        }
        Ok(())
    }

    /// A page put together from its log records, the first of which is an image.
    pub(crate) fn redo(&self, chain: &[Lsn]) -> Result<Page> {
        let mut bytes = vec![0; self.geometry.page_bytes];
        let wanted: Vec<_> = chain.iter().map(|lsn| (*lsn, 0)).collect();
        self.redo_into(&wanted, &mut Window::of_one_block(), &mut bytes)?;
        self.counters.page_redone.fetch_add(1, Ordering::Relaxed);
        Ok(Page::from(bytes))
    }
}

fn damaged(lsn: Lsn, why: &str) -> Error {
    Error::CorruptLog { lsn, why: why.into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::VLF_HEADER_BYTES;
    use proptest::prelude::*;

    const VLF_BYTES: u64 = 4 << 20;

    fn geometry() -> Geometry {
        Geometry { store: 1, page_bytes: 4096, sector_bytes: 512, vlf_bytes: VLF_BYTES }
    }

    proptest! {
        #[test]
        fn every_record_lies_in_the_read_that_brings_it_and_no_read_is_larger_than_its_buffer_or_file(
            units in proptest::collection::btree_set((1..4_u32, 8..(VLF_BYTES / 512 - 1) as u32), 1..200),
            wide in any::<bool>(),
        ) {
            let wanted: Vec<Wanted> =
                units.iter().enumerate().map(|(at, (vlf, unit))| (Lsn::new(*vlf, *unit, 1), at)).collect();
            let bytes_max = if wide { READ_BYTES_MAX } else { MAX_BLOCK_BYTES };
            let mut rest = wanted.as_slice();
            let mut read = 0;
            while !rest.is_empty() {
                let stretch = Stretch::first(rest, &geometry(), bytes_max);
                prop_assert!(stretch.records > 0 && stretch.bytes <= bytes_max);
                prop_assert!(stretch.from >= VLF_HEADER_BYTES as u64);
                let to = stretch.from + stretch.bytes as u64;
                prop_assert!(to <= VLF_BYTES);
                for (lsn, _) in &rest[..stretch.records] {
                    prop_assert_eq!(lsn.vlf(), rest[0].0.vlf());
                    let end = (block_start(*lsn) + MAX_BLOCK_BYTES as u64).min(VLF_BYTES);
                    prop_assert!(block_start(*lsn) >= stretch.from && end <= to);
                }
                // What is not wanted is read over only where that is less than what a read costs.
                let blocks = stretch.records as u64 * MAX_BLOCK_BYTES as u64;
                prop_assert!(stretch.bytes as u64 <= blocks + (stretch.records as u64 - 1) * GAP_BYTES_MAX);
                read += stretch.records;
                rest = &rest[stretch.records..];
            }
            prop_assert_eq!(read, wanted.len());
        }
    }
}
