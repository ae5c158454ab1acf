//! Reads a log from a disk block by block along the chain, up to the first position where no block continues it.

mod end;
mod truncation;
mod window;

use crate::disk::aligned::AlignedBuffer;
use crate::error::{Error, Result};
use crate::format::codec::u32_at;
use crate::format::control::KnownLog;
use crate::format::geometry::{Geometry, LOG_HEAD_BYTES, VLF_HEADER_BYTES};
use crate::log::block::{self, BlockHeader, VlfHeader};
use crate::log::index;
use crate::log::segments::Slot;
use crate::sync::run_on_threads;
use crate::types::{Lsn, Position, UNIT_BYTES};
use pagestore_disk::{Disk, FileId};
use std::sync::atomic::{AtomicUsize, Ordering};
use window::Window;

/// A slot's header and the first sector after it, of at most 4 KiB.
const HEAD_BYTES: usize = VLF_HEADER_BYTES + 4096;
pub(crate) const FIRST_UNIT: u32 = (VLF_HEADER_BYTES as u64 / UNIT_BYTES) as u32;

/// How the log is read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    /// Bytes of a read.
    pub read_bytes: usize,
    /// Reads in flight.
    pub parallel: usize,
}

/// A log on a disk, with the headers of its slots.
pub(crate) struct LogFile<'a> {
    pub(crate) disk: &'a dyn Disk,
    pub(crate) geometry: Geometry,
    headers: Vec<Option<VlfHeader>>,
    first_blocks: Vec<FirstBlock>,
}

/// Content of the first sector after a slot's header.
#[derive(Clone, Copy, Default)]
struct FirstBlock {
    /// The virtual log file named in the block's header.
    vlf: u32,
    /// The sector and the slot's header are all zeros.
    empty: bool,
}

/// The position of a scan in the chain.
#[derive(Clone, Debug)]
pub(crate) struct ScanCursor {
    /// The next block.
    pub position: Position,
    /// The slot that holds it.
    pub slot: usize,
    /// The epoch of the last block; blocks of earlier epochs do not follow it.
    pub epoch: u32,
    /// The last record.
    pub last: Lsn,
    /// The virtual log files that were scanned: number and slot.
    pub chain: Vec<(u32, usize)>,
}

impl ScanCursor {
    /// At the start of a scan.
    pub(crate) fn begin(slot: usize, position: Position) -> Self {
        Self { position, slot, epoch: 0, last: Lsn::ZERO, chain: vec![(position.lsn.vlf(), slot)] }
    }

    /// Moves to the beginning of the next virtual log file.
    pub(crate) fn enter(&mut self, slot: usize) {
        let vlf = self.position.lsn.vlf() + 1;
        self.position.lsn = Lsn::new(vlf, FIRST_UNIT, 1);
        self.slot = slot;
        self.chain.push((vlf, slot));
    }
}

/// For each slot, the virtual log file that was scanned in it.
fn walked(chain: &[(u32, usize)], slots: usize) -> Vec<Option<u32>> {
    let mut walked = vec![None; slots];
    for (vlf, slot) in chain {
        if let Some(entry) = walked.get_mut(*slot) {
            *entry = Some(*vlf);
        }
    }
    walked
}

/// The slots that were not scanned, and the one of them whose last use is oldest.
fn not_walked(headers: &[Option<VlfHeader>], chain: &[(u32, usize)]) -> (Vec<usize>, Option<usize>) {
    let walked = walked(chain, headers.len());
    let others: Vec<_> = (0..headers.len()).filter(|slot| walked[*slot].is_none()).collect();
    let used = others.iter().filter_map(|slot| Some((headers[*slot]?.vlf, *slot)));
    let oldest = used.min().map(|(_, slot)| slot);
    (others, oldest)
}

impl<'a> LogFile<'a> {
    /// Reads the headers of all slots, and the sectors after them.
    pub(crate) fn open(disk: &'a dyn Disk, geometry: Geometry, reading: Reading) -> Result<Self> {
        let slots: Vec<usize> = (0..Self::slots_in(disk, &geometry)?).collect();
        Self::with_headers(disk, geometry, vec![None; slots.len()], &slots, reading)
    }

    /// Reads the headers of the slots in `read`; those of the others are given in `headers`.
    pub(crate) fn with_headers(
        disk: &'a dyn Disk,
        geometry: Geometry,
        headers: Vec<Option<VlfHeader>>,
        read: &[usize],
        reading: Reading,
    ) -> Result<Self> {
        let first_block = |header: &Option<VlfHeader>| FirstBlock { vlf: 0, empty: header.is_none() };
        let first_blocks = headers.iter().map(first_block).collect();
        let mut log = Self { disk, geometry, headers, first_blocks };
        let found = log.read_heads(read, reading.parallel)?;
        for (slot, (header, first)) in read.iter().zip(found) {
            (log.headers[*slot], log.first_blocks[*slot]) = (header, first);
        }
        Ok(log)
    }

    /// Reads the headers of `slots`, and the sectors after them.
    fn read_heads(&self, slots: &[usize], parallel: usize) -> Result<Vec<(Option<VlfHeader>, FirstBlock)>> {
        let geometry = self.geometry;
        let places: Vec<_> = slots.iter().map(|slot| (geometry.slot_offset(*slot), HEAD_BYTES)).collect();
        self.read_places(&places, parallel, |_, head| {
            let vlf = u32_at(head, VLF_HEADER_BYTES + 8);
            let first = FirstBlock { vlf, empty: head.iter().all(|byte| *byte == 0) };
            (block::read_vlf_header(head, &geometry), first)
        })
    }

    /// The number of slots that the log file holds whole.
    pub(crate) fn slots_in(disk: &dyn Disk, geometry: &Geometry) -> Result<usize> {
        let length = disk.len(FileId::Log).map_err(Error::during("measure", FileId::Log))?;
        Ok((length.saturating_sub(LOG_HEAD_BYTES) / geometry.vlf_bytes) as usize)
    }

    /// The slots that may have been taken for the next virtual log file: see `may_follow`.
    pub(crate) fn next_taken(headers: &[Option<VlfHeader>], chain: &[(u32, usize)]) -> Vec<usize> {
        let (others, oldest) = not_walked(headers, chain);
        let unused = others.into_iter().find(|slot| headers[*slot].is_none());
        oldest.into_iter().chain(unused).collect()
    }

    /// Reads places (offset, length) of the log file, several at once, and returns what `parse` makes of each.
    pub(crate) fn read_places<T: Send + 'static>(
        &self,
        places: &[(u64, usize)],
        parallel: usize,
        parse: impl Fn(usize, &[u8]) -> T + Sync,
    ) -> Result<Vec<T>> {
        let (disk, next) = (self.disk, AtomicUsize::new(0));
        let largest = places.iter().map(|(_, bytes)| *bytes).max().unwrap_or(0);
        let work = || {
            let mut seen = Vec::new();
            let mut buffer = AlignedBuffer::new(largest);
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some((offset, bytes)) = places.get(index) else { return Ok(seen) };
                buffer.resize(*bytes);
                disk.read(FileId::Log, *offset, buffer.bytes_mut())
                    .map_err(Error::during("read", FileId::Log))?;
                seen.push((index, parse(index, buffer.bytes())));
            }
        };
        let mut seen: Vec<_> =
            run_on_threads(parallel.min(places.len()), work)?.into_iter().flatten().collect();
        seen.sort_by_key(|(index, _)| *index);
        Ok(seen.into_iter().map(|(_, seen)| seen).collect())
    }

    pub(crate) fn headers(&self) -> &[Option<VlfHeader>] {
        &self.headers
    }

    /// The states of the slots after a scan of `chain`.
    pub(crate) fn slots(&self, chain: &[(u32, usize)]) -> Vec<Slot> {
        self.headers
            .iter()
            .zip(walked(chain, self.headers.len()))
            .map(|(header, walked)| Slot {
                vlf: walked.or(header.map(|header| header.vlf)).unwrap_or(0),
                parity: header.map_or(0, |header| header.parity),
                is_active: walked.is_some(),
            })
            .collect()
    }

    /// Follows the chain from `start`, which lies in `slot`, to its end; `visit` is called with each block's header
    /// and records. `known` is what the control file says about the log.
    pub(crate) fn scan(
        &self,
        slot: usize,
        start: Position,
        known: KnownLog,
        reading: Reading,
        visit: impl FnMut(&BlockHeader, &[u8]) -> Result<()>,
    ) -> Result<ScanCursor> {
        let mut cursor = ScanCursor::begin(slot, start);
        self.scan_until(&mut cursor, u32::MAX, known, reading, visit)?;
        Ok(cursor)
    }

    /// Follows the chain to its end (returns true) or to the beginning of virtual log file `until` (returns false).
    pub(crate) fn scan_until(
        &self,
        cursor: &mut ScanCursor,
        until: u32,
        known: KnownLog,
        reading: Reading,
        mut visit: impl FnMut(&BlockHeader, &[u8]) -> Result<()>,
    ) -> Result<bool> {
        if cursor.slot >= self.headers.len() {
            let end = self.geometry.slot_offset(cursor.slot) + self.geometry.vlf_bytes;
            let length = self.disk.len(FileId::Log).map_err(Error::during("measure", FileId::Log))?;
            return Err(Error::CorruptLog {
                lsn: cursor.position.lsn,
                why: format!(
                    "its virtual log file ends at byte {end} of the log file, of which {length} bytes are left: it was \
                     cut, or copied in part"
                ),
            });
        }
        let mut window = Window::new(self, reading);
        while cursor.position.lsn.vlf() < until {
            self.walk(cursor, &mut window, known, &mut visit)?;
            match self.next_slot(cursor) {
                Some(slot) => cursor.enter(slot),
                None => {
                    self.check_end(&mut window, cursor, known.durable)?;
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Reads the blocks of the virtual log file that `cursor` is in, and no further.
    pub(crate) fn walk_one(
        &self,
        cursor: &mut ScanCursor,
        known: KnownLog,
        reading: Reading,
        mut visit: impl FnMut(&BlockHeader, &[u8]) -> Result<()>,
    ) -> Result<()> {
        self.walk(cursor, &mut Window::new(self, reading), known, &mut visit)
    }

    /// The slot in which the chain continues after the end of a virtual log file.
    pub(crate) fn next_slot(&self, cursor: &ScanCursor) -> Option<usize> {
        self.headers.iter().position(|header| {
            header.is_some_and(|header| {
                header.vlf == cursor.position.lsn.vlf() + 1
                    && header.previous == cursor.position.previous
                    && header.epoch >= cursor.epoch
            })
        })
    }

    /// Reads the blocks of one virtual log file, including the one in its last sector.
    fn walk(
        &self,
        cursor: &mut ScanCursor,
        window: &mut Window<'_>,
        known: KnownLog,
        visit: &mut impl FnMut(&BlockHeader, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let vlf = cursor.position.lsn.vlf();
        let mut unit = cursor.position.lsn.unit();
        let end_unit = index::end_unit(&self.geometry);
        let mut skipped = false;
        loop {
            let bytes =
                if skipped { window.end_sector(cursor.slot)? } else { window.at(cursor.slot, unit)? };
            if let Some((header, records)) = block::open(bytes, &self.geometry, vlf, unit)
                && header.previous == cursor.position.previous
                && header.epoch >= cursor.epoch
                && (header.epoch >= known.epoch || Lsn::new(vlf, unit, 1) <= known.durable)
            {
                visit(&header, records)?;
                (cursor.last, cursor.epoch) = (header.last(), header.epoch);
                unit = header.next_unit();
                cursor.position = Position { lsn: Lsn::new(vlf, unit, 1), previous: header.crc };
            } else if unit < end_unit {
                // There may be a gap before the block in the last sector.
                (unit, skipped) = (end_unit, true);
            } else {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::index::Index;
    use crate::log::record::Record;
    use crate::log::segments::VlfTable;
    use crate::log::writer::{LogWrite, LogWriter, ResumePoint};
    use crashlab::SimDisk;

    const GEOMETRY: Geometry =
        Geometry { store: 7, page_bytes: 4096, sector_bytes: 4096, vlf_bytes: 128 << 10 };
    const READING: Reading = Reading { read_bytes: 64 << 10, parallel: 1 };

    fn disk() -> SimDisk {
        let disk = SimDisk::new();
        disk.write(FileId::Log, 0, &vec![0; (LOG_HEAD_BYTES + 3 * GEOMETRY.vlf_bytes) as usize]).unwrap();
        disk
    }

    /// Appends a commit and returns the write that holds it; writes the end of the previous virtual log file if
    /// there is one.
    fn commit(disk: &SimDisk, writer: &mut LogWriter, sequence: u64) -> LogWrite {
        let mut record = Vec::new();
        Record::Commit { sequence }.encode(1, &mut record);
        let lsn = writer.append(&record).unwrap();
        loop {
            let write = writer.take_write(0).expect("there is something to write");
            let offset = GEOMETRY.slot_offset(writer.vlfs.slot_of(lsn.vlf()).unwrap());
            if write.offset >= offset && write.offset < offset + GEOMETRY.vlf_bytes {
                return write;
            }
            put(disk, &write);
            writer.complete(write);
        }
    }

    fn put(disk: &SimDisk, write: &LogWrite) {
        disk.write(FileId::Log, write.offset, write.buffer.bytes()).unwrap();
    }

    fn scan(disk: &SimDisk, known: KnownLog) -> Result<ScanCursor> {
        let start = Position { lsn: Lsn::new(1, 8, 1), previous: 0 };
        LogFile::open(disk, GEOMETRY, READING)?.scan(0, start, known, READING, |_, _| Ok(()))
    }

    #[test]
    fn a_lost_beginning_of_a_virtual_log_file_is_damage_as_soon_as_a_block_follows_it() {
        let disk = disk();
        let mut writer = LogWriter::create(GEOMETRY, 3, 1);
        let mut lost = 0;
        for sequence in 1.. {
            let write = commit(&disk, &mut writer, sequence);
            let begins_another = writer.position().lsn.vlf() == 2;
            if begins_another && lost == 0 {
                lost = sequence;
                assert_eq!(scan(&disk, KnownLog::default()).unwrap().position.lsn.vlf(), 1);
            } else {
                put(&disk, &write);
            }
            writer.complete(write);
            if lost != 0 && sequence > lost {
                break;
            }
        }
        let error = scan(&disk, KnownLog::default()).unwrap_err();
        assert!(matches!(error, Error::CorruptLog { .. }), "{error}");
    }

    // Recovery begins after a record of a block, so that it reads that block first.
    #[test]
    fn damage_to_the_block_within_which_recovery_begins_is_no_end_of_the_log() {
        let disk = disk();
        let mut writer = LogWriter::create(GEOMETRY, 3, 1);
        let first = commit(&disk, &mut writer, 1);
        let after_first = Position { lsn: Lsn::new(1, 8, 2), previous: 0 };
        let scan = |known| {
            LogFile::open(&disk, GEOMETRY, READING)?.scan(0, after_first, known, READING, |_, _| Ok(()))
        };
        assert_eq!(
            scan(KnownLog::default()).unwrap().position.lsn,
            after_first.lsn,
            "nothing was written there"
        );
        let known = KnownLog { durable: Lsn::new(1, 8, 1), epoch: 1 };
        assert!(
            matches!(scan(known), Err(Error::CorruptLog { .. })),
            "the control file knows that there was a block"
        );
        writer.complete(first);
        let second = commit(&disk, &mut writer, 2);
        put(&disk, &second);
        assert!(
            matches!(scan(KnownLog::default()), Err(Error::CorruptLog { .. })),
            "so does the block after it"
        );
    }

    // A torn block was cut off. The padding of the first block that is written over it makes it whole again.
    #[test]
    fn a_block_that_was_cut_off_stays_so_when_a_later_write_makes_it_whole() {
        let disk = disk();
        let mut writer = LogWriter::create(GEOMETRY, 3, 1);
        let first = commit(&disk, &mut writer, 1);
        put(&disk, &first);
        writer.complete(first);
        let second = commit(&disk, &mut writer, 2);
        put(&disk, &second);
        disk.write(FileId::Log, second.offset + 3584, &[9; 512]).unwrap();
        let end = scan(&disk, KnownLog { durable: Lsn::ZERO, epoch: 1 }).unwrap();
        assert_eq!(end.last, Lsn::new(1, 8, 1), "the second is torn");

        let known = KnownLog { durable: end.last, epoch: 2 };
        let vlfs = VlfTable::new(LogFile::open(&disk, GEOMETRY, READING).unwrap().slots(&end.chain));
        let mut writer = LogWriter::resume(
            GEOMETRY,
            vlfs,
            known.epoch,
            ResumePoint { position: end.position, last: end.last, index: Index::default() },
            1,
        );
        let third = commit(&disk, &mut writer, 3);
        assert_eq!(third.offset, second.offset);
        disk.write(FileId::Log, third.offset + 3584, &third.buffer.bytes()[3584..]).unwrap();
        assert_eq!(scan(&disk, KnownLog { durable: end.last, epoch: 1 }).unwrap().last, Lsn::new(1, 16, 1));
        assert_eq!(scan(&disk, known).unwrap().last, end.last);
        put(&disk, &third);
        assert_eq!(scan(&disk, known).unwrap().last, Lsn::new(1, 16, 1));
    }
}
