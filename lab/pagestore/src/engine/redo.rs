//! Redo: rebuilds pages from their log records. Each block that is needed is read and checked once for all pages.
//!
//! Records are requested in the order of the log. One read fetches the blocks of as many records as are near each
//! other. The records of a page are applied in order, even if other pages' records lie between them.
//!
//! ```text
//! reader 1   read, check, apply       | apply | read, check, apply | …     each its own part of the log; pages that
//! reader 2   read, check, apply | wait        | apply | read, check, …     have several records in turns
//! ```

use crate::disk::aligned::{ALIGNMENT, AlignedBuffer, HugePageBuffer};
use crate::engine::cache::Page;
use crate::engine::inner::Inner;
use crate::error::{Error, Result};
use crate::format::delta;
use crate::format::geometry::{Geometry, MAX_BLOCK_BYTES};
use crate::log::block;
use crate::log::record::{Record, Records};
use crate::sync::{Mutex, lock, run_on_threads, thread};
use crate::types::{Lsn, UNIT_BYTES};
use pagestore_disk::FileId;
use std::sync::atomic::Ordering;

/// The largest read, and a read of one block; both begin and end where direct I/O allows.
const READ_BYTES_MAX: usize = 512 << 10;
const BLOCK_READ_BYTES: usize = MAX_BLOCK_BYTES + ALIGNMENT;
/// Unwanted blocks between two wanted ones are read along with them, up to this many bytes.
const GAP_BYTES_MAX: u64 = 128 << 10;

/// A record, and the index of the page that it belongs to.
pub(crate) type Wanted = (Lsn, usize);

/// The wanted records of a block, and its bytes.
type Checked<'a> = (&'a [Wanted], &'a [u8]);

/// One read of the log.
#[derive(Debug, PartialEq, Eq)]
struct LogRead {
    /// Offset in the virtual log file.
    from: u64,
    bytes: usize,
    /// How many of the wanted records it fetches.
    records: usize,
}

/// The offset of a record's block in its virtual log file.
fn block_start(lsn: Lsn) -> u64 {
    u64::from(lsn.unit()) * UNIT_BYTES
}

impl LogRead {
    /// The read that begins with the first of `wanted`, which are sorted. The length of a block is known only once
    /// it is read, so the largest is assumed.
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

/// Buffers for this many concurrent readers of the log.
pub(crate) struct Windows(HugePageBuffer);

impl Windows {
    pub(crate) fn new(readers: usize) -> Self {
        Self(HugePageBuffer::new(readers * READ_BYTES_MAX))
    }

    pub(crate) fn each(&mut self) -> Vec<&mut [u8]> {
        self.0.bytes_mut().chunks_exact_mut(READ_BYTES_MAX).collect()
    }
}

/// The part of the log that has not been read yet.
struct PendingReads<'a> {
    wanted: &'a [Wanted],
    number: u64,
}

impl<'a> PendingReads<'a> {
    /// The next read, its number, and the records that it fetches.
    fn next(&mut self, geometry: &Geometry, bytes_max: usize) -> Option<(u64, LogRead, &'a [Wanted])> {
        if self.wanted.is_empty() {
            return None;
        }
        let log_read = LogRead::first(self.wanted, geometry, bytes_max);
        let records;
        (records, self.wanted) = self.wanted.split_at(log_read.records);
        self.number += 1;
        Some((self.number - 1, log_read, records))
    }
}

/// The pages that are rebuilt.
struct Pages<'a> {
    /// Locked while a record is applied.
    bytes: Vec<Mutex<&'a mut [u8]>>,
    /// Pages with more than one record.
    is_ordered: Vec<bool>,
}

impl<'a> Pages<'a> {
    fn new(pages: impl Iterator<Item = &'a mut [u8]>, wanted: &[Wanted]) -> Self {
        let bytes: Vec<_> = pages.map(Mutex::new).collect();
        let mut begun = vec![false; bytes.len()];
        let mut is_ordered = vec![false; bytes.len()];
        for (_, at) in wanted {
            is_ordered[*at] = std::mem::replace(&mut begun[*at], true);
        }
        Self { bytes, is_ordered }
    }
}

/// Pages with several records need them in the order of the log, so the reads apply those in turns.
#[derive(Default)]
struct Turns {
    state: Mutex<Turn>,
}

#[derive(Default)]
struct Turn {
    /// The number of the read whose turn it is.
    number: u64,
    /// A read failed; later records must not be applied without its records.
    failed: bool,
    waiting: Vec<(u64, thread::Thread)>,
}

impl Turns {
    /// Waits for turn `number`, applies, and starts the next turn. After an error of another turn nothing is
    /// applied.
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
    /// Applies the `wanted` records, which are sorted, to their `pages`. The first record of each page is an image.
    /// Does as many reads at once as there are windows, all of one length.
    pub(crate) fn redo_into<'a>(
        &self,
        wanted: &[Wanted],
        windows: Vec<&mut [u8]>,
        pages: impl Iterator<Item = &'a mut [u8]>,
    ) -> Result<()> {
        let bytes_max = windows[0].len();
        let one_read =
            wanted.is_empty() || LogRead::first(wanted, &self.geometry, bytes_max).records == wanted.len();
        let readers = if one_read { 1 } else { windows.len() };
        let windows = Mutex::new(windows.into_iter());
        let pending = Mutex::new(PendingReads { wanted, number: 0 });
        let turns = Turns::default();
        let pages = Pages::new(pages, wanted);
        let work = || {
            let window = lock(&windows).next().expect("each has its own");
            loop {
                let next = lock(&pending).next(&self.geometry, bytes_max);
                let Some((number, log_read, records)) = next else { return Ok(()) };
                let checked = self.read_checked(&log_read, records, window);
                let blocks = checked.and_then(|blocks| {
                    self.redo_blocks(&blocks, &pages, false)?;
                    Ok(blocks)
                });
                // Takes its turn even if the read failed: later turns wait for it.
                let applied = turns.take(number, || self.redo_blocks(&blocks?, &pages, true));
                // The remaining reads are useless.
                applied.inspect_err(|_| lock(&pending).wanted = &[])?;
            }
        };
        run_on_threads(readers, work).map(|_| ())
    }

    /// Reads the blocks of a part of the log, each with its wanted records.
    fn read_checked<'a>(
        &self,
        log_read: &LogRead,
        wanted: &'a [Wanted],
        window: &'a mut [u8],
    ) -> Result<Vec<Checked<'a>>> {
        let bytes = &mut window[..log_read.bytes];
        self.read_log(wanted[0].0, log_read.from, bytes)?;
        let bytes = &*bytes;
        wanted
            .chunk_by(|(a, _), (b, _)| block_start(*a) == block_start(*b))
            .map(|block_records| {
                let first = block_records[0].0;
                let at = (block_start(first) - log_read.from) as usize;
                let (_, used) = block::open(&bytes[at..], &self.geometry, first.vlf(), first.unit())
                    .ok_or_else(|| damaged(first, "its block cannot be read any more"))?;
                Ok((block_records, used))
            })
            .collect()
    }

    fn read_log(&self, lsn: Lsn, from: u64, bytes: &mut [u8]) -> Result<()> {
        let slot = self.journal.with_writer(|writer| writer.vlfs.slot_of(lsn.vlf()));
        let slot = slot.ok_or_else(|| damaged(lsn, "its space has been reused"))?;
        self.disk
            .read(FileId::Log, self.geometry.slot_offset(slot) + from, bytes)
            .map_err(Error::during("read", FileId::Log))
    }

    /// Applies the records of the pages that need them in order, or those of the others.
    fn redo_blocks(&self, blocks: &[Checked<'_>], pages: &Pages<'_>, is_ordered: bool) -> Result<()> {
        for (wanted, used) in blocks {
            let mut records = Records::new(used).zip(1..);
            for (lsn, at) in wanted.iter().filter(|(_, at)| pages.is_ordered[*at] == is_ordered) {
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

    /// Rebuilds a page from its log records, the first of which is an image.
    pub(crate) fn redo(&self, chain: &[Lsn]) -> Result<Page> {
        let mut page = self.memory.allocate();
        let wanted: Vec<_> = chain.iter().map(|lsn| (*lsn, 0)).collect();
        let mut window = AlignedBuffer::new(BLOCK_READ_BYTES);
        window.resize(BLOCK_READ_BYTES);
        self.redo_into(&wanted, vec![window.bytes_mut()], std::iter::once(page.make_mut()))?;
        self.counters.engine.page_redone.fetch_add(1, Ordering::Relaxed);
        Ok(page)
    }
}

fn damaged(lsn: Lsn, why: &str) -> Error {
    Error::corrupt_log(lsn, why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::geometry::VLF_HEADER_BYTES;
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
                let log_read = LogRead::first(rest, &geometry(), bytes_max);
                prop_assert!(log_read.records > 0 && log_read.bytes <= bytes_max);
                prop_assert!(log_read.from >= VLF_HEADER_BYTES as u64);
                let to = log_read.from + log_read.bytes as u64;
                prop_assert!(to <= VLF_BYTES);
                prop_assert!(log_read.from.is_multiple_of(ALIGNMENT as u64));
                prop_assert!(log_read.bytes.is_multiple_of(ALIGNMENT));
                for (lsn, _) in &rest[..log_read.records] {
                    prop_assert_eq!(lsn.vlf(), rest[0].0.vlf());
                    let end = (block_start(*lsn) + MAX_BLOCK_BYTES as u64).min(VLF_BYTES);
                    prop_assert!(block_start(*lsn) >= log_read.from && end <= to);
                }
                // Unwanted bytes are read only if that costs less than another read.
                let blocks = log_read.records as u64 * BLOCK_READ_BYTES as u64;
                prop_assert!(log_read.bytes as u64 <= blocks + (log_read.records as u64 - 1) * GAP_BYTES_MAX);
                read += log_read.records;
                rest = &rest[log_read.records..];
            }
            prop_assert_eq!(read, wanted.len());
        }
    }
}
