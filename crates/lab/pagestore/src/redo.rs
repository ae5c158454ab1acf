//! Pages put together from their log records, each block that is needed read and checked once for all of them.
//!
//! Records are wanted in the order of the log. One read brings the blocks of as many as lie near each other, and a
//! page's records come in their order, whichever pages' records lie between.
//!
//! ```text
//! reader 1   read, check, apply       | apply | read, check, apply | …     each its own part of the log; pages that
//! reader 2   read, check, apply | wait        | apply | read, check, …     have several records in turns
//! ```

use crate::aligned::{ALIGNMENT, AlignedBuffer, InOnePiece};
use crate::cache::Page;
use crate::delta;
use crate::disk::FileId;
use crate::error::{Error, Result};
use crate::log::block;
use crate::log::record::{Record, Records};
use crate::log::{Geometry, MAX_BLOCK_BYTES};
use crate::store::{Inner, lock};
use crate::sync::{Mutex, thread, together};
use crate::types::{Lsn, UNIT_BYTES};
use std::sync::atomic::Ordering;

/// The largest read, and of one block: it begins and ends where direct I/O may.
const READ_BYTES_MAX: usize = 512 << 10;
const BLOCK_READ_BYTES: usize = MAX_BLOCK_BYTES + ALIGNMENT;
/// Blocks are read over that nobody wants, rather than left out, where there are no more than this.
const GAP_BYTES_MAX: u64 = 128 << 10;

/// A record, and which of the pages that are put together it belongs to.
pub(crate) type Wanted = (Lsn, usize);

/// What is wanted of a block, and its records.
type Checked<'a> = (&'a [Wanted], &'a [u8]);

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
        let whole = ALIGNMENT as u64;
        let end =
            |lsn| (block_start(lsn) + MAX_BLOCK_BYTES as u64).next_multiple_of(whole).min(geometry.vlf_bytes);
        let first = wanted[0].0;
        let from = block_start(first) / whole * whole;
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

/// Memory to read the log into, for so many who read at once.
pub(crate) struct Windows(InOnePiece);

impl Windows {
    pub(crate) fn new(readers: usize) -> Self {
        Self(InOnePiece::new(readers * READ_BYTES_MAX))
    }

    pub(crate) fn each(&mut self) -> Vec<&mut [u8]> {
        self.0.bytes_mut().chunks_exact_mut(READ_BYTES_MAX).collect()
    }
}

/// What has not been read of the log yet.
struct Ahead<'a> {
    wanted: &'a [Wanted],
    number: u64,
}

impl<'a> Ahead<'a> {
    /// The next read, its number, and what it brings.
    fn next(&mut self, geometry: &Geometry, bytes_max: usize) -> Option<(u64, Stretch, &'a [Wanted])> {
        if self.wanted.is_empty() {
            return None;
        }
        let stretch = Stretch::first(self.wanted, geometry, bytes_max);
        let own;
        (own, self.wanted) = self.wanted.split_at(stretch.records);
        self.number += 1;
        Some((self.number - 1, stretch, own))
    }
}

/// The pages that are put together.
struct Pages<'a> {
    /// Each for whoever applies a record of it.
    bytes: Vec<Mutex<&'a mut [u8]>>,
    /// Of which there is more than one record.
    in_turn: Vec<bool>,
}

impl<'a> Pages<'a> {
    fn new(pages: impl Iterator<Item = &'a mut [u8]>, wanted: &[Wanted]) -> Self {
        let bytes: Vec<_> = pages.map(Mutex::new).collect();
        let mut begun = vec![false; bytes.len()];
        let mut in_turn = vec![false; bytes.len()];
        for (_, at) in wanted {
            in_turn[*at] = std::mem::replace(&mut begun[*at], true);
        }
        Self { bytes, in_turn }
    }
}

/// Where a page has several records, they are applied in the order of the log: each read has its turn.
#[derive(Default)]
struct Turns {
    state: Mutex<Turn>,
}

#[derive(Default)]
struct Turn {
    /// Whose it is.
    number: u64,
    /// What is missing cannot be gone over.
    failed: bool,
    waiting: Vec<(u64, thread::Thread)>,
}

impl Turns {
    /// Waits for turn `number`, applies, and lets the next one go on. After an error of another nothing is applied.
    fn take(&self, number: u64, apply: impl FnOnce() -> Result<()>) -> Result<()> {
        let mut turn = lock(&self.state);
        while turn.number != number {
            if !turn.waiting.iter().any(|(waits_for, _)| *waits_for == number) {
                turn.waiting.push((number, thread::current()));
            }
            drop(turn);
            thread::park();
            turn = lock(&self.state);
        }
        let failed = turn.failed;
        drop(turn);
        let applied = if failed { Ok(()) } else { apply() };
        let mut turn = lock(&self.state);
        turn.failed |= applied.is_err();
        turn.number += 1;
        if let Some(at) = turn.waiting.iter().position(|(waits_for, _)| *waits_for == number + 1) {
            turn.waiting.swap_remove(at).1.unpark();
        }
        applied
    }
}

impl Inner {
    /// Applies the `wanted` records, which are sorted, each to its own of `pages`. The first of each page is an image. As
    /// many reads at once as there are windows, all of one length.
    pub(crate) fn redo_into<'a>(
        &self,
        wanted: &[Wanted],
        windows: Vec<&mut [u8]>,
        pages: impl Iterator<Item = &'a mut [u8]>,
    ) -> Result<()> {
        let bytes_max = windows[0].len();
        let one_read =
            wanted.is_empty() || Stretch::first(wanted, &self.geometry, bytes_max).records == wanted.len();
        let readers = if one_read { 1 } else { windows.len() };
        let windows = Mutex::new(windows.into_iter());
        let ahead = Mutex::new(Ahead { wanted, number: 0 });
        let turns = Turns::default();
        let pages = Pages::new(pages, wanted);
        let work = || {
            let window = lock(&windows).next().expect("each has its own");
            loop {
                let next = lock(&ahead).next(&self.geometry, bytes_max);
                let Some((number, stretch, own)) = next else { return Ok(()) };
                let checked = self.read_checked(&stretch, own, window);
                let blocks = checked.and_then(|blocks| {
                    self.redo_blocks(&blocks, &pages, false)?;
                    Ok(blocks)
                });
                // Whether it could be read or not: those behind it wait for its turn to be over.
                let applied = turns.take(number, || self.redo_blocks(&blocks?, &pages, true));
                // There is no use in the rest.
                applied.inspect_err(|_| lock(&ahead).wanted = &[])?;
            }
        };
        together(readers, work).map(|_| ())
    }

    /// The blocks of a part of the log, each with what is wanted of it.
    fn read_checked<'a>(
        &self,
        stretch: &Stretch,
        wanted: &'a [Wanted],
        window: &'a mut [u8],
    ) -> Result<Vec<Checked<'a>>> {
        let bytes = &mut window[..stretch.bytes];
        self.read_stretch(wanted[0].0, stretch.from, bytes)?;
        let bytes = &*bytes;
        wanted
            .chunk_by(|(a, _), (b, _)| block_start(*a) == block_start(*b))
            .map(|own| {
                let first = own[0].0;
                let at = (block_start(first) - stretch.from) as usize;
                let (_, used) = block::open(&bytes[at..], &self.geometry, first.vlf(), first.unit())
                    .ok_or_else(|| damaged(first, "its block cannot be read any more"))?;
                Ok((own, used))
            })
            .collect()
    }

    fn read_stretch(&self, lsn: Lsn, from: u64, bytes: &mut [u8]) -> Result<()> {
        let slot = self.journal.with(|writer| writer.vlfs.slot_of(lsn.vlf()));
        let slot = slot.ok_or_else(|| damaged(lsn, "its space has been reused"))?;
        self.disk
            .read(FileId::Log, self.geometry.slot_offset(slot) + from, bytes)
            .map_err(|error| Error::io("read", FileId::Log, error))
    }

    /// Applies the records of those pages that are to be done in turn, or of the others.
    fn redo_blocks(&self, blocks: &[Checked<'_>], pages: &Pages<'_>, in_turn: bool) -> Result<()> {
        for (wanted, used) in blocks {
            let mut records = Records::of(used).zip(1..);
            for (lsn, at) in wanted.iter().filter(|(_, at)| pages.in_turn[*at] == in_turn) {
                let (record, _) = records
                    .find(|(_, number)| *number == lsn.record())
                    .ok_or_else(|| damaged(*lsn, "the block has no such record"))?;
                let (_, record) = record.map_err(|why| damaged(*lsn, why))?;
                let Record::Page { image, runs, .. } = record else {
                    return Err(damaged(*lsn, "it is not a page's record"));
                };
                let mut page = lock(&pages.bytes[*at]);
                if image {
                    page.fill(0);
                }
                delta::apply(runs, &mut page).map_err(|why| damaged(*lsn, why))?;
            }
        }
        Ok(())
    }

    /// A page put together from its log records, the first of which is an image.
    pub(crate) fn redo(&self, chain: &[Lsn]) -> Result<Page> {
        let mut bytes = vec![0; self.geometry.page_bytes];
        let wanted: Vec<_> = chain.iter().map(|lsn| (*lsn, 0)).collect();
        let mut window = AlignedBuffer::new(BLOCK_READ_BYTES);
        window.resize(BLOCK_READ_BYTES);
        self.redo_into(&wanted, vec![window.bytes_mut()], std::iter::once(&mut bytes[..]))?;
        self.counters.engine.page_redone.fetch_add(1, Ordering::Relaxed);
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
            let bytes_max = if wide { READ_BYTES_MAX } else { BLOCK_READ_BYTES };
            let mut rest = wanted.as_slice();
            let mut read = 0;
            while !rest.is_empty() {
                let stretch = Stretch::first(rest, &geometry(), bytes_max);
                prop_assert!(stretch.records > 0 && stretch.bytes <= bytes_max);
                prop_assert!(stretch.from >= VLF_HEADER_BYTES as u64);
                let to = stretch.from + stretch.bytes as u64;
                prop_assert!(to <= VLF_BYTES);
                prop_assert!(stretch.from.is_multiple_of(ALIGNMENT as u64));
                prop_assert!(stretch.bytes.is_multiple_of(ALIGNMENT));
                for (lsn, _) in &rest[..stretch.records] {
                    prop_assert_eq!(lsn.vlf(), rest[0].0.vlf());
                    let end = (block_start(*lsn) + MAX_BLOCK_BYTES as u64).min(VLF_BYTES);
                    prop_assert!(block_start(*lsn) >= stretch.from && end <= to);
                }
                // What is not wanted is read over only where that is less than what a read costs.
                let blocks = stretch.records as u64 * BLOCK_READ_BYTES as u64;
                prop_assert!(stretch.bytes as u64 <= blocks + (stretch.records as u64 - 1) * GAP_BYTES_MAX);
                read += stretch.records;
                rest = &rest[stretch.records..];
            }
            prop_assert_eq!(read, wanted.len());
        }
    }
}
