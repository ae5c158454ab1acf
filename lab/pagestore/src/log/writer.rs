//! The log writer, without I/O: records go in, writes come out, completions go in.

mod close;

use crate::disk::aligned::AlignedBuffer;
use crate::format::geometry::{Geometry, MAX_BLOCK_BYTES, MAX_WRITE_BYTES, VLF_HEADER_BYTES};
use crate::log::block::{self, BLOCK_HEADER_BYTES, BlockHeader, VlfHeader};
use crate::log::directory::{Directory, Entry, Filter, Pending, VlfEnd};
use crate::log::index::Index;
use crate::log::record::{IndexEnd, Record, Records};
use crate::log::segments::{SPARE_SLOTS, VlfTable};
use crate::types::{Lsn, Position, UNIT_BYTES};
use std::collections::VecDeque;
use std::ops::RangeInclusive;

/// A write that must reach the medium before its records may be acknowledged.
pub(crate) struct LogWrite {
    /// Identifies the write when it completes.
    pub id: u64,
    /// Offset in the log file.
    pub offset: u64,
    /// Whole blocks, preceded by the header of the virtual log file if they are its first.
    pub buffer: AlignedBuffer,
    /// The last record in it.
    pub end: Lsn,
}

/// No slot is free for another virtual log file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NoSpace;

/// Where a log continues after recovery.
#[derive(Default)]
pub(crate) struct ResumePoint {
    /// The next record goes here.
    pub position: Position,
    /// The last record, durable.
    pub last: Lsn,
    /// The index of the virtual log file that is not full.
    pub index: Index,
}

struct InFlight {
    id: u64,
    end: Lsn,
    done: bool,
}

/// See the module. Used by one thread at a time; the writes that it hands out may be in flight concurrently.
pub(crate) struct LogWriter {
    geometry: Geometry,
    pub(crate) vlfs: VlfTable,
    epoch: u32,
    vlf: u32,
    /// Where the open block will lie.
    unit: u32,
    previous: u32,
    /// Sealed blocks and the open block at the end, all contiguous.
    run: Run,
    open_at: usize,
    open_records: u16,
    /// Complete runs, in log order.
    sealed: VecDeque<Run>,
    in_flight: VecDeque<InFlight>,
    in_flight_max: usize,
    next_id: u64,
    last: Lsn,
    durable: Lsn,
    /// Where the oldest transaction began that has written records and has not ended.
    pub(crate) oldest_active: Option<Position>,
    /// Bytes of records that the writing transaction was promised and has not appended: the log is not shortened below them, and
    /// notes leave them.
    promised_bytes: u64,
    failed: bool,
    spare: Vec<AlignedBuffer>,
    /// The index of the virtual log file that is being written.
    index: Index,
    pub(crate) directory: Directory,
    /// The end of a virtual log file that was closed and has no successor yet.
    closed: Option<(IndexEnd, Filter)>,
}

struct Run {
    offset: u64,
    buffer: AlignedBuffer,
    blocks: u32,
    end: Lsn,
}

/// The header of a virtual log file, a full write, and one more block that did not fit.
pub(crate) const RUN_CAPACITY: usize = MAX_WRITE_BYTES + MAX_BLOCK_BYTES + VLF_HEADER_BYTES;

impl LogWriter {
    /// A writer of an empty log, which begins with virtual log file 1 in the first slot.
    pub(crate) fn create(geometry: Geometry, slots: usize, in_flight_max: usize) -> Self {
        let mut vlfs = VlfTable::default();
        vlfs.grow(slots);
        let mut writer = Self::resume(geometry, vlfs, 1, ResumePoint::default(), in_flight_max);
        writer.directory = Directory::new(geometry.store, vec![None; slots]);
        writer.next_vlf().expect("an empty log has a slot");
        writer
    }

    /// A writer that continues at `at` (the position of a block in an active virtual log file) after `last`, up to
    /// which all is durable; `index` is that virtual log file's.
    pub(crate) fn resume(
        geometry: Geometry,
        vlfs: VlfTable,
        epoch: u32,
        from: ResumePoint,
        in_flight_max: usize,
    ) -> Self {
        let ResumePoint { position: at, last, index } = from;
        let slot = vlfs.slot_of(at.lsn.vlf());
        let offset =
            slot.map_or(0, |slot| geometry.slot_offset(slot) + u64::from(at.lsn.unit()) * UNIT_BYTES);
        let mut writer = Self {
            geometry,
            vlfs,
            epoch,
            vlf: at.lsn.vlf(),
            unit: at.lsn.unit(),
            previous: at.previous,
            run: Run { offset, buffer: AlignedBuffer::new(RUN_CAPACITY), blocks: 0, end: last },
            open_at: 0,
            open_records: 0,
            sealed: VecDeque::new(),
            in_flight: VecDeque::new(),
            in_flight_max,
            next_id: 0,
            last,
            durable: last,
            oldest_active: None,
            promised_bytes: 0,
            failed: false,
            spare: Vec::new(),
            index,
            directory: Directory::default(),
            closed: None,
        };
        writer.run.buffer.extend_zeros(BLOCK_HEADER_BYTES);
        writer
    }

    pub(crate) fn durable(&self) -> Lsn {
        self.durable
    }

    /// The last record that was appended.
    pub(crate) fn last(&self) -> Lsn {
        self.last
    }

    /// From now on no write is handed out and nothing becomes durable.
    pub(crate) fn fail(&mut self) {
        self.failed = true;
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// Bytes that wait to be taken by a write.
    pub(crate) fn waiting_bytes(&self) -> usize {
        let open = self.run.buffer.len() - self.open_at - BLOCK_HEADER_BYTES;
        self.sealed.iter().map(|run| run.buffer.len()).sum::<usize>() + self.open_at + open
    }

    /// The earliest position of the next record, for a reader that begins there.
    pub(crate) fn position(&self) -> Position {
        Position { lsn: Lsn::new(self.vlf, self.unit, self.open_records + 1), previous: self.previous }
    }

    /// Promises space for `bytes` of records to the writing transaction, if there is enough. Returns whether there is.
    pub(crate) fn promise(&mut self, bytes: u64) -> bool {
        let has_space = self.space(SPARE_SLOTS) >= bytes;
        if has_space {
            self.promised_bytes = bytes;
        }
        has_space
    }

    /// Appends a record of the writing transaction, for which space was promised.
    pub(crate) fn append_promised(&mut self, record: &[u8]) -> Result<Lsn, NoSpace> {
        self.promised_bytes = self.promised_bytes.saturating_sub(record.len() as u64);
        self.append(record)
    }

    /// The writing transaction ended: it needs no more space.
    pub(crate) fn end_promise(&mut self) {
        self.promised_bytes = 0;
    }

    /// Whether `bytes` of a record on which nothing depends fit beside the promised space.
    pub(crate) fn has_space_for_note(&self, bytes: u64) -> bool {
        self.space(SPARE_SLOTS) >= self.promised_bytes.saturating_add(bytes)
    }

    /// The least number of slots, `least` at least, that a shortened log keeps: those in use and those of the promised space.
    pub(crate) fn slots_kept(&self, least: usize) -> usize {
        let all = self.vlfs.slots().len();
        let mut kept = self.vlfs.used_end().max(least).min(all);
        while kept < all && self.space_in(self.vlfs.available_below(kept), SPARE_SLOTS) < self.promised_bytes
        {
            kept += 1;
        }
        kept
    }

    /// Bytes of records, with their index, that certainly fit into the open virtual log file and the free slots
    /// except `spare_slots`.
    pub(crate) fn space(&self, spare_slots: usize) -> u64 {
        self.space_in(self.vlfs.available(), spare_slots)
    }

    /// As `space`, with `free` free slots.
    fn space_in(&self, free: usize, spare_slots: usize) -> u64 {
        // Up to a block may be lost at the end of a virtual log file, and every block has a header and padding.
        let sector_bytes = self.geometry.sector_bytes;
        let lost = MAX_BLOCK_BYTES as u64 + Index::default().blocks_bytes(sector_bytes) + sector_bytes as u64;
        let here = self.geometry.vlf_bytes.saturating_sub(
            u64::from(self.unit) * UNIT_BYTES
                + (self.run.buffer.len() - self.open_at) as u64
                + self.index.blocks_bytes(sector_bytes)
                + lost,
        );
        let slots = free.saturating_sub(spare_slots) as u64;
        let slot = self.geometry.vlf_bytes.saturating_sub(VLF_HEADER_BYTES as u64 + lost);
        (here + slots * slot) / 16 * 15
    }

    /// Appends a record; it is durable once `durable()` has reached the returned LSN.
    pub(crate) fn append(&mut self, record: &[u8]) -> Result<Lsn, NoSpace> {
        let used = self.run.buffer.len() - self.open_at;
        if used + record.len() > MAX_BLOCK_BYTES || self.open_records == Lsn::MAX_RECORD {
            self.seal_block();
        }
        let used = self.run.buffer.len() - self.open_at;
        let length = (used + record.len()).next_multiple_of(self.geometry.sector_bytes) as u64;
        if u64::from(self.unit) * UNIT_BYTES + length + self.closing_bytes() > self.geometry.vlf_bytes {
            self.close_vlf();
            self.next_vlf()?;
        }
        self.put(record);
        if let Some(Ok((tx, parsed))) = Records::new(record).next() {
            self.index.add_record(self.last, tx, &parsed);
        }
        Ok(self.last)
    }

    /// Puts a record into the open block, which has space for it.
    fn put(&mut self, record: &[u8]) {
        self.run.buffer.extend(record);
        self.open_records += 1;
        self.last = Lsn::new(self.vlf, self.unit, self.open_records);
        self.run.end = self.last;
    }

    fn seal_block(&mut self) {
        if self.open_records == 0 {
            return;
        }
        let used = self.run.buffer.len() - self.open_at;
        let length = used.next_multiple_of(self.geometry.sector_bytes);
        self.run.buffer.extend_zeros(length - used);
        let header = BlockHeader {
            vlf: self.vlf,
            unit: self.unit,
            length,
            used,
            records: self.open_records,
            epoch: self.epoch,
            previous: self.previous,
            witness: self.durable,
            oldest: self.oldest_active.map_or(Lsn::ZERO, |position| position.lsn),
            crc: 0,
        };
        self.previous =
            block::seal(&mut self.run.buffer.bytes_mut()[self.open_at..], &self.geometry, &header);
        self.unit = header.next_unit();
        self.open_at += length;
        self.open_records = 0;
        self.run.blocks += 1;
        if self.open_at >= MAX_WRITE_BYTES {
            let next = self.run.offset + self.open_at as u64;
            self.finish_run(next);
        } else {
            self.run.buffer.extend_zeros(BLOCK_HEADER_BYTES);
        }
    }

    /// Queues the run of sealed blocks and begins another at `next`.
    fn finish_run(&mut self, next: u64) {
        let buffer = self.spare.pop().unwrap_or_else(|| AlignedBuffer::new(RUN_CAPACITY));
        let mut done =
            std::mem::replace(&mut self.run, Run { offset: next, buffer, blocks: 0, end: self.last });
        done.buffer.resize(self.open_at);
        if done.buffer.len() > 0 {
            self.sealed.push_back(done);
        } else {
            self.spare.push(done.buffer);
        }
        self.run.buffer.clear();
        self.open_at = 0;
        self.run.buffer.extend_zeros(BLOCK_HEADER_BYTES);
    }

    fn next_vlf(&mut self) -> Result<(), NoSpace> {
        let vlf = self.vlf + 1;
        let before = self.vlfs.slot_of(self.vlf);
        let (slot, parity) = self.vlfs.take(vlf).ok_or(NoSpace)?;
        // Nothing is before the first virtual log file of the log.
        if let Some(before) = before {
            let (slot, entry, filter) = match self.closed.take() {
                Some((end, filter)) => {
                    let ended = VlfEnd { epoch: self.epoch, crc: self.previous, next_slot: slot as u32, end };
                    let parity = self.vlfs.slots()[before].parity;
                    (before, Entry { vlf: self.vlf, parity, ended: Some(ended) }, Some(filter))
                }
                None => (slot, Entry { vlf, parity, ended: None }, None),
            };
            self.directory.vlf_ended(Pending { after: self.last, slot, entry, filter });
        }
        self.finish_run(self.geometry.slot_offset(slot));
        let header =
            VlfHeader { vlf, parity, epoch: self.epoch, previous: self.previous, created: self.last };
        self.run.buffer.clear();
        self.run.buffer.extend(&block::vlf_header(&header, &self.geometry));
        self.run.buffer.extend_zeros(BLOCK_HEADER_BYTES);
        self.open_at = VLF_HEADER_BYTES;
        self.vlf = vlf;
        self.unit = (VLF_HEADER_BYTES as u64 / UNIT_BYTES) as u32;
        self.index = Index::begin(Lsn::new(vlf, self.unit, 1), self.index.end.open_tx);
        Ok(())
    }

    /// Ends the open virtual log file early and begins the next one, with a record that says nothing.
    pub(crate) fn switch_vlf(&mut self) -> Result<(), NoSpace> {
        self.close_vlf();
        self.next_vlf()?;
        let mut mark = Vec::new();
        Record::Mark.encode(0, &mut mark);
        self.append(&mark).map(drop)
    }

    /// The slot of the virtual log file that is being written.
    pub(crate) fn slot(&self) -> usize {
        self.vlfs.slot_of(self.vlf).expect("what is written is active")
    }

    /// The next write, or `None` if nothing waits or the maximum is in flight, which is by `more_in_flight` higher now. Seals the open block if no other
    /// block waits.
    pub(crate) fn take_write(&mut self, more_in_flight: usize) -> Option<LogWrite> {
        if self.failed || self.in_flight.len() >= self.in_flight_max + more_in_flight {
            return None;
        }
        if self.sealed.is_empty() {
            // The header of a virtual log file is written together with its first block.
            if self.open_records == 0 && self.run.blocks == 0 {
                return None;
            }
            self.seal_block();
            if self.sealed.is_empty() {
                let next = self.run.offset + self.open_at as u64;
                self.finish_run(next);
            }
        }
        // A virtual log file is begun only when the one before is complete on the medium: its header then proves
        // that all of that, including its index, is there.
        if !self.in_flight.is_empty() && self.geometry.is_slot_offset(self.sealed.front()?.offset) {
            return None;
        }
        let run = self.sealed.pop_front()?;
        let id = self.next_id;
        self.next_id += 1;
        self.in_flight.push_back(InFlight { id, end: run.end, done: false });
        Some(LogWrite { id, offset: run.offset, buffer: run.buffer, end: run.end })
    }

    /// The id of the write that will take this record, or has taken it and is not acknowledged.
    pub(crate) fn write_id_of(&self, lsn: Lsn) -> u64 {
        if let Some(pending) = self.in_flight.iter().find(|pending| pending.end >= lsn) {
            return pending.id;
        }
        let sealed = self.sealed.iter().position(|run| run.end >= lsn);
        self.next_id + sealed.unwrap_or(self.sealed.len()) as u64
    }

    /// The id of the first write that is not acknowledged.
    pub(crate) fn first_unacknowledged(&self) -> u64 {
        self.in_flight.front().map_or(self.next_id, |pending| pending.id)
    }

    /// The ids of unacknowledged writes for records appended so far, including the one that will take the open
    /// block.
    pub(crate) fn unacknowledged(&self) -> RangeInclusive<u64> {
        self.first_unacknowledged()..=self.next_id + self.sealed.len() as u64
    }

    /// A write completed. The durable position advances only over completed writes without a gap before them.
    pub(crate) fn complete(&mut self, write: LogWrite) {
        if let Some(pending) = self.in_flight.iter_mut().find(|pending| pending.id == write.id) {
            pending.done = true;
        }
        self.spare.push(write.buffer);
        while let Some(first) = self.in_flight.front()
            && first.done
            && !self.failed
        {
            self.durable = first.end;
            self.in_flight.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::control::KnownLog;
    use crate::format::geometry::LOG_HEAD_BYTES;
    use crate::log::scan::{LogFile, Reading};
    use crashlab::{Chance, SimDisk};
    use pagestore_disk::{Disk, FileId};
    use proptest::prelude::*;

    const GEOMETRY: Geometry =
        Geometry { store: 7, page_bytes: 4096, sector_bytes: 512, vlf_bytes: 128 << 10 };

    /// The sequences of the commits that a scan from the beginning finds.
    fn found(disk: &SimDisk) -> Vec<u64> {
        let reading = Reading { read_bytes: 64 << 10, parallel: 1 };
        let start = Position { lsn: Lsn::new(1, 8, 1), previous: 0 };
        let mut commits = Vec::new();
        let log = LogFile::open(disk, GEOMETRY, reading).unwrap();
        log.scan(0, start, KnownLog::default(), reading, |_, used| {
            commits.extend(Records::new(used).filter_map(|record| match record.unwrap().1 {
                Record::Commit { sequence } => Some(sequence),
                Record::Index { .. } | Record::IndexEnd(_) => None,
                other => panic!("{other:?} was never written"),
            }));
            Ok(())
        })
        .unwrap();
        commits
    }

    proptest! {
        // Up to four writes in flight complete in any order, some never: what is reported durable is on the medium,
        // in order, and no gap is skipped.
        #[test]
        fn whatever_order_writes_complete_in_what_is_durable_is_a_prefix_that_is_there(seed in any::<u64>()) {
            let mut chance = Chance::new(seed);
            let mut writer = LogWriter::create(GEOMETRY, 8, 4);
            let disk = SimDisk::new();
            disk.write(FileId::Log, 0, &vec![0; (LOG_HEAD_BYTES + 8 * GEOMETRY.vlf_bytes) as usize]).unwrap();
            let mut lsns = Vec::new();
            let mut in_flight: Vec<LogWrite> = Vec::new();
            for sequence in 0..chance.below(400) {
                let mut record = Vec::new();
                Record::Commit { sequence }.encode(1, &mut record);
                lsns.push(writer.append(&record).unwrap());
                if chance.once_in(3)
                    && let Some(write) = writer.take_write(0)
                {
                    let begins = GEOMETRY.is_slot_offset(write.offset);
                    prop_assert!(!begins || in_flight.is_empty(), "begun before the one before it was whole");
                    in_flight.push(write);
                }
                if chance.once_in(4) && !in_flight.is_empty() {
                    let write = in_flight.swap_remove(chance.below(in_flight.len() as u64) as usize);
                    disk.write(FileId::Log, write.offset, write.buffer.bytes()).unwrap();
                    writer.complete(write);
                }
            }
            // The crash: some of the writes in flight have reached the medium.
            for write in in_flight {
                if chance.once_in(2) {
                    disk.write(FileId::Log, write.offset, write.buffer.bytes()).unwrap();
                }
            }
            let durable = lsns.iter().filter(|lsn| **lsn <= writer.durable()).count();
            let commits = found(&disk);
            prop_assert!(commits.len() >= durable, "{durable} were durable, {} are there", commits.len());
            prop_assert!(commits.iter().copied().eq(0..commits.len() as u64));
        }
    }

    #[test]
    fn fifteen_thousand_small_records_take_few_writes_of_full_blocks() {
        let geometry = Geometry { vlf_bytes: 16 << 20, sector_bytes: 4096, ..GEOMETRY };
        let mut writer = LogWriter::create(geometry, 2, 1);
        let mut record = Vec::new();
        Record::Page { page: crate::PageNo(1), image: false, runs: &[0; 80] }.encode(1, &mut record);
        let mut last = Lsn::ZERO;
        for _ in 0..15_000 {
            last = writer.append(&record).unwrap();
        }
        let mut writes = 0;
        while let Some(write) = writer.take_write(0) {
            assert!(write.buffer.len() <= RUN_CAPACITY);
            writes += 1;
            writer.complete(write);
        }
        assert_eq!(writer.durable(), last);
        assert!(writes <= 4, "{writes} writes for 1.5 MB");
    }
}
