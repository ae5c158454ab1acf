//! Reads a log from a disk, block by block along the chain, and decides where it ends.
//!
//! The end is the first place where no block continues the chain. It is an honest end (what was being written
//! when the power went) unless there is a witness: a later block, or the control file, that says that the place
//! had been durable. Then acknowledged data is damaged, and that is an error and never a cut.

use crate::codec::u32_at;
use crate::disk::{Disk, FileId};
use crate::error::{Error, Result};
use crate::log::block::{self, BLOCK_HEADER_BYTES, BlockHeader, VlfHeader};
use crate::log::vlf::Slot;
use crate::log::writer::{Position, RUN_CAPACITY};
use crate::log::{Geometry, LOG_HEAD_BYTES, MAX_BLOCK_BYTES, VLF_HEADER_BYTES};
use crate::lsn::{Lsn, UNIT_BYTES};

const FIRST_UNIT: u32 = (VLF_HEADER_BYTES as u64 / UNIT_BYTES) as u32;

/// How the log is read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    /// Bytes a read.
    pub read_bytes: usize,
    /// Reads in flight.
    pub parallel: usize,
}

/// What the control file knows of the log.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Known {
    /// This had been durable.
    pub durable: Lsn,
    /// Every block after `durable` is of this opening or a later one. What lies there of an earlier one had been
    /// cut off, and stays so: a torn write over it can make whole what was not whole when the log was cut.
    pub epoch: u32,
}

/// A log on a disk: which virtual log file each slot says it holds.
pub(crate) struct LogFile<'a> {
    disk: &'a dyn Disk,
    geometry: Geometry,
    headers: Vec<Option<VlfHeader>>,
    pub(crate) bytes_read: u64,
    pub(crate) reads: u64,
}

/// Where a scan ended.
#[derive(Debug)]
pub(crate) struct End {
    /// The next block goes here.
    pub position: Position,
    /// The last record.
    pub last: Lsn,
    /// The slots that were walked through: virtual log file and slot.
    pub chain: Vec<(u32, usize)>,
}

/// The bytes of a slot, read as they are needed.
struct Window {
    slot: usize,
    bytes: Vec<u8>,
    loaded: usize,
}

impl<'a> LogFile<'a> {
    /// Reads the slots' headers.
    pub(crate) fn open(disk: &'a dyn Disk, geometry: Geometry, reading: Reading) -> Result<Self> {
        let length = disk.len(FileId::Log).map_err(|error| Error::io("measure", FileId::Log, error))?;
        let slots = (length.saturating_sub(LOG_HEAD_BYTES) / geometry.vlf_bytes) as usize;
        let mut sectors = vec![[0; VLF_HEADER_BYTES]; slots];
        let per_thread = slots.div_ceil(reading.parallel.max(1)).max(1);
        let read_part = |first: usize, part: &mut [[u8; VLF_HEADER_BYTES]]| {
            part.iter_mut().enumerate().try_for_each(|(index, sector)| {
                disk.read(FileId::Log, geometry.slot_offset(first + index), sector)
                    .map_err(|error| Error::io("read", FileId::Log, error))
            })
        };
        if reading.parallel <= 1 {
            read_part(0, &mut sectors)?;
        } else {
            std::thread::scope(|scope| {
                let parts: Vec<_> = sectors
                    .chunks_mut(per_thread)
                    .enumerate()
                    .map(|(index, part)| scope.spawn(move || read_part(index * per_thread, part)))
                    .collect();
                parts
                    .into_iter()
                    .try_for_each(|part| part.join().expect("a reader of headers does not panic"))
            })?;
        }
        let headers = sectors.iter().map(|sector| block::read_vlf_header(sector, &geometry)).collect();
        let bytes_read = (slots * VLF_HEADER_BYTES) as u64;
        Ok(Self { disk, geometry, headers, bytes_read, reads: slots as u64 })
    }

    pub(crate) fn headers(&self) -> &[Option<VlfHeader>] {
        &self.headers
    }

    /// The slots as they are after a scan that walked through `chain`.
    pub(crate) fn slots(&self, chain: &[(u32, usize)]) -> Vec<Slot> {
        self.headers
            .iter()
            .enumerate()
            .map(|(slot, header)| {
                let parity = header.map_or(0, |header| header.parity);
                match (chain.iter().find(|(_, own)| *own == slot), header) {
                    (Some((vlf, _)), _) => Slot::Active { vlf: *vlf, parity },
                    (None, Some(header)) => Slot::Reusable { vlf: header.vlf, parity, certificate: None },
                    (None, None) => Slot::Unused,
                }
            })
            .collect()
    }

    /// Walks along the chain from `start`, which lies in `slot`; `visit` gets each block's header and records.
    /// `known` is what the control file says of it.
    pub(crate) fn scan(
        &mut self,
        slot: usize,
        start: Position,
        known: Known,
        reading: Reading,
        mut visit: impl FnMut(&BlockHeader, &[u8]) -> Result<()>,
    ) -> Result<End> {
        if slot >= self.headers.len() {
            return Err(Error::CorruptLog { lsn: start.lsn, why: "the log file ends before it".into() });
        }
        let (mut vlf, mut unit, mut previous) = (start.lsn.vlf(), start.lsn.unit(), start.previous);
        let mut window = self.window(slot, unit);
        let mut chain = vec![(vlf, slot)];
        let mut last = Lsn::ZERO;
        let mut epoch = 0;
        loop {
            let at = (u64::from(unit) * UNIT_BYTES) as usize;
            self.load(&mut window, at + MAX_BLOCK_BYTES, reading)?;
            let found =
                block::open(&window.bytes[at.min(window.loaded)..window.loaded], &self.geometry, vlf, unit);
            if let Some((header, records)) = found
                && header.previous == previous
                && header.epoch >= epoch
                && (header.epoch >= known.epoch || Lsn::new(vlf, unit, 1) <= known.durable)
            {
                visit(&header, records)?;
                (last, previous, epoch) = (header.last(), header.crc, header.epoch);
                unit = header.next_unit();
                continue;
            }
            let next = self.headers.iter().position(|header| {
                header.is_some_and(|header| {
                    header.vlf == vlf + 1 && header.previous == previous && header.epoch >= epoch
                })
            });
            let Some(slot) = next else { break };
            vlf += 1;
            unit = FIRST_UNIT;
            chain.push((vlf, slot));
            window = self.window(slot, unit);
        }
        let position = Position { lsn: Lsn::new(vlf, unit, 1), previous };
        self.honest_end(&mut window, position, known.durable, &chain, reading)?;
        Ok(End { position, last, chain })
    }

    /// Refuses an end that a witness contradicts.
    fn honest_end(
        &mut self,
        window: &mut Window,
        end: Position,
        witness: Lsn,
        chain: &[(u32, usize)],
        reading: Reading,
    ) -> Result<()> {
        let damaged = |why: String| Err(Error::CorruptLog { lsn: end.lsn, why });
        if witness >= end.lsn {
            return damaged(format!(
                "no block there continues the log, and the control file knows {witness} as durable"
            ));
        }
        let from = end.lsn.unit() + (self.geometry.sector_bytes as u64 / UNIT_BYTES) as u32;
        if let Some(block) = self.witness_in(window, from, end.lsn, reading)? {
            return damaged(format!(
                "no block there continues the log, and the block at {} was written when {} was durable",
                Lsn::new(block.vlf, block.unit, 1),
                block.witness
            ));
        }
        // Where one write may have held the end of this virtual log file and the beginning of the next, that
        // beginning cannot be asked which it is.
        let left = self.geometry.vlf_bytes - u64::from(end.lsn.unit()) * UNIT_BYTES;
        let may_be_next = left <= (RUN_CAPACITY + MAX_BLOCK_BYTES) as u64;
        for slot in 0..self.headers.len() {
            if chain.iter().any(|(_, own)| *own == slot) {
                continue;
            }
            let mut window = self.window(slot, FIRST_UNIT);
            self.load(&mut window, VLF_HEADER_BYTES + self.geometry.sector_bytes, reading)?;
            // Whatever its header says: the first block names its virtual log file.
            let vlf = u32_at(&window.bytes, VLF_HEADER_BYTES + 8);
            if !may_be_next && (vlf <= end.lsn.vlf() || vlf == u32::MAX) {
                continue;
            }
            if let Some(block) = self.witness_in(&mut window, FIRST_UNIT, end.lsn, reading)? {
                return damaged(format!(
                    "the log does not go on from there, and the block at {} was written when {} was durable",
                    Lsn::new(block.vlf, block.unit, 1),
                    block.witness
                ));
            }
        }
        Ok(())
    }

    /// The first whole block at or after `from`, of whatever virtual log file, that was written when `end` was
    /// durable. What an earlier use of the space left says less.
    fn witness_in(
        &mut self,
        window: &mut Window,
        from: u32,
        end: Lsn,
        reading: Reading,
    ) -> Result<Option<BlockHeader>> {
        self.load(window, window.bytes.len(), reading)?;
        let step = self.geometry.sector_bytes;
        for at in ((u64::from(from) * UNIT_BYTES) as usize..window.loaded).step_by(step) {
            let unit = (at as u64 / UNIT_BYTES) as u32;
            let bytes = &window.bytes[at..];
            if bytes.len() < BLOCK_HEADER_BYTES {
                break;
            }
            if let Some((header, _)) = block::open(bytes, &self.geometry, u32_at(bytes, 8), unit)
                && header.witness >= end
            {
                return Ok(Some(header));
            }
        }
        Ok(None)
    }

    fn window(&self, slot: usize, unit: u32) -> Window {
        // What lies before `unit` is not read.
        let loaded = (u64::from(unit) * UNIT_BYTES) as usize;
        Window { slot, bytes: vec![0; self.geometry.vlf_bytes as usize], loaded }
    }

    fn load(&mut self, window: &mut Window, upto: usize, reading: Reading) -> Result<()> {
        let upto = upto.min(window.bytes.len());
        while window.loaded < upto {
            let from = window.loaded;
            let to = (from + reading.read_bytes * reading.parallel.max(1)).min(window.bytes.len());
            let base = self.geometry.slot_offset(window.slot);
            let disk = self.disk;
            let read = |at: usize, part: &mut [u8]| {
                disk.read(FileId::Log, base + at as u64, part)
                    .map_err(|error| Error::io("read", FileId::Log, error))
            };
            let target = &mut window.bytes[from..to];
            if reading.parallel <= 1 || target.len() <= reading.read_bytes {
                read(from, target)?;
                self.reads += 1;
            } else {
                self.reads += target.len().div_ceil(reading.read_bytes) as u64;
                std::thread::scope(|scope| {
                    let read = &read;
                    let parts: Vec<_> = target
                        .chunks_mut(reading.read_bytes)
                        .enumerate()
                        .map(|(index, part)| {
                            scope.spawn(move || read(from + index * reading.read_bytes, part))
                        })
                        .collect();
                    parts
                        .into_iter()
                        .try_for_each(|part| part.join().expect("a reader of the log does not panic"))
                })?;
            }
            self.bytes_read += (to - from) as u64;
            window.loaded = to;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::record::Record;
    use crate::log::vlf::VlfTable;
    use crate::log::writer::{LogWrite, LogWriter};
    use crate::sim::SimDisk;

    const GEOMETRY: Geometry =
        Geometry { store: 7, page_bytes: 4096, sector_bytes: 4096, vlf_bytes: 128 << 10 };
    const READING: Reading = Reading { read_bytes: 64 << 10, parallel: 1 };

    fn disk() -> SimDisk {
        let disk = SimDisk::new();
        disk.write(FileId::Log, 0, &vec![0; (LOG_HEAD_BYTES + 3 * GEOMETRY.vlf_bytes) as usize]).unwrap();
        disk
    }

    fn commit(writer: &mut LogWriter, sequence: u64) -> LogWrite {
        let mut record = Vec::new();
        Record::Commit { sequence }.encode(1, &mut record);
        writer.append(&record).unwrap();
        writer.take_write().expect("there is something to write")
    }

    fn put(disk: &SimDisk, write: &LogWrite) {
        disk.write(FileId::Log, write.offset, write.buffer.bytes()).unwrap();
    }

    fn scan(disk: &SimDisk, known: Known) -> Result<End> {
        let start = Position { lsn: Lsn::new(1, 8, 1), previous: 0 };
        LogFile::open(disk, GEOMETRY, READING)?.scan(0, start, known, READING, |_, _| Ok(()))
    }

    #[test]
    fn a_lost_beginning_of_a_virtual_log_file_is_damage_as_soon_as_a_block_follows_it() {
        let disk = disk();
        let mut writer = LogWriter::create(GEOMETRY, 3, 1);
        let mut lost = 0;
        for sequence in 1.. {
            let write = commit(&mut writer, sequence);
            let begins_another = writer.position().lsn.vlf() == 2;
            if begins_another && lost == 0 {
                lost = sequence;
                assert_eq!(scan(&disk, Known::default()).unwrap().position.lsn.vlf(), 1);
            } else {
                put(&disk, &write);
            }
            writer.complete(write);
            if lost != 0 && sequence > lost {
                break;
            }
        }
        let error = scan(&disk, Known::default()).unwrap_err();
        assert!(matches!(error, Error::CorruptLog { .. }), "{error}");
    }

    // A torn block was cut off. The padding of the first block that is written over it makes it whole again.
    #[test]
    fn a_block_that_was_cut_off_stays_so_when_a_later_write_makes_it_whole() {
        let disk = disk();
        let mut writer = LogWriter::create(GEOMETRY, 3, 1);
        let first = commit(&mut writer, 1);
        put(&disk, &first);
        writer.complete(first);
        let second = commit(&mut writer, 2);
        put(&disk, &second);
        disk.write(FileId::Log, second.offset + 3584, &[9; 512]).unwrap();
        let end = scan(&disk, Known { durable: Lsn::ZERO, epoch: 1 }).unwrap();
        assert_eq!(end.last, Lsn::new(1, 8, 1), "the second is torn");

        let known = Known { durable: end.last, epoch: 2 };
        let vlfs = VlfTable::new(LogFile::open(&disk, GEOMETRY, READING).unwrap().slots(&end.chain));
        let mut writer = LogWriter::resume(GEOMETRY, vlfs, known.epoch, end.position, end.last, 1);
        let third = commit(&mut writer, 3);
        assert_eq!(third.offset, second.offset);
        disk.write(FileId::Log, third.offset + 3584, &third.buffer.bytes()[3584..]).unwrap();
        assert_eq!(scan(&disk, Known { durable: end.last, epoch: 1 }).unwrap().last, Lsn::new(1, 16, 1));
        assert_eq!(scan(&disk, known).unwrap().last, end.last);
        put(&disk, &third);
        assert_eq!(scan(&disk, known).unwrap().last, Lsn::new(1, 16, 1));
    }
}
