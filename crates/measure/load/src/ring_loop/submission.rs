//! Puts I/Os into a ring's queue, and keeps what must be known of them until they complete.

use super::{BATCH, SlotTag};
use crate::accounting::PendingIo;
use crate::lane::Lane;
use crate::ring::{Io, Memory, Op, Queue};
use storage::Volume;
use stream::IoRequest;
use workload::TraceKind;

/// The parts of an I/O or sync on a volume.
#[derive(Clone, Copy, Debug, Default)]
pub struct Parts {
    in_flight: u32,
    /// Of the completed parts: their bytes, or the first error.
    result: i32,
}

impl Parts {
    /// One more part has completed: the result of all parts, once it was the last.
    pub fn complete(&mut self, result: i32) -> Option<i32> {
        self.in_flight -= 1;
        self.result = match (self.result, result) {
            (failed, _) if failed < 0 => failed,
            (_, failed) if failed < 0 => failed,
            (sum, more) => sum + more,
        };
        (self.in_flight == 0).then_some(self.result)
    }
}

/// The I/Os of a ring that are queued or in flight.
pub struct Submission {
    /// Of each slot.
    pub ios: Vec<PendingIo>,
    /// Of each slot, on a volume.
    pub parts: Vec<Parts>,
    /// Of each lane's sync.
    pub sync_parts: Vec<Parts>,
    pub sync_submitted_ns: Vec<u64>,
    /// Slots that were queued since the last submission.
    pub batch: Vec<u32>,
    /// Lanes whose sync was queued since then.
    pub sync_batch: Vec<u16>,
    /// Queue entries that those take.
    pub entries: usize,
    pub in_flight: u32,
    /// Number of the buffer that slot 0 writes from; a lane that both reads and writes has two for each slot.
    write_buffers: u32,
}

impl Submission {
    /// For lanes with that many slots in total; `plain` for a single plain lane.
    pub fn new(slots: usize, lanes: usize, write_buffers: u32, plain: bool) -> Submission {
        Submission {
            ios: vec![PendingIo::NONE; slots],
            parts: if plain { Vec::new() } else { vec![Parts::default(); slots] },
            sync_parts: vec![Parts::default(); lanes],
            sync_submitted_ns: vec![0; lanes],
            batch: Vec::with_capacity(BATCH),
            sync_batch: Vec::new(),
            entries: 0,
            in_flight: 0,
            write_buffers,
        }
    }

    /// Whether the batch is full, or the ring has no entries for another I/O of the lane.
    #[inline]
    pub fn is_full(&self, lane: &Lane<'_>, batch_max: usize, free_entries: usize) -> bool {
        self.batch.len() + self.sync_batch.len() >= batch_max || self.entries + lane.parts_max > free_entries
    }

    /// Queues an I/O of lane `at`.
    #[inline(always)]
    pub fn push<const PLAIN: bool>(
        &mut self,
        queue: &mut Queue<'_>,
        lane: &mut Lane<'_>,
        at: usize,
        io: IoRequest,
    ) {
        let mut memory = Memory::Buffer(io.slot);
        if io.kind == TraceKind::Write {
            let buffer = io.slot + self.write_buffers;
            // SAFETY: the ring has a buffer of the largest block for each slot, here those from `write_buffers` on. The slot
            // is free, so that neither the kernel nor another I/O accesses its buffer.
            let block = unsafe { std::slice::from_raw_parts_mut(queue.buffer(buffer), io.bytes as usize) };
            memory = match lane.writer.next(block, io.offset, &mut lane.stream.chooser) {
                Some(source) => Memory::Foreign(source.as_ptr()),
                None => Memory::Buffer(buffer),
            };
        }
        let file = if PLAIN { 0 } else { lane.first_file };
        let entry =
            Io { op: lane.op(io.kind), file, offset: io.offset, bytes: io.bytes, memory, tag: io.slot };
        match lane.volume {
            Some(volume) if !PLAIN => self.push_parts(queue, volume, entry),
            // SAFETY: a slot's buffers exist and are used by one I/O at a time. A source belongs to the lane's writer, and
            // `RingLoop::into_lanes` drops the ring, which waits for its I/Os, before it releases the lanes.
            _ => unsafe { queue.push(entry) },
        }
        if !PLAIN {
            self.entries += lane.parts_max;
        }
        self.ios[io.slot as usize] = PendingIo {
            submitted_ns: 0,
            intended_ns: io.intended_ns,
            offset: io.offset,
            bytes: io.bytes,
            lane: at as u16,
            kind: io.kind,
        };
        self.batch.push(io.slot);
        self.in_flight += 1;
    }

    /// Queues an I/O on a volume: a part for each contiguous range of a member, a sync for each member. It has completed
    /// when the last part has.
    fn push_parts(&mut self, queue: &mut Queue<'_>, volume: &Volume, io: Io) {
        let first_file = io.file;
        let mut in_flight = 0;
        let mut push = |member: usize, offset: u64, bytes: u32, memory: Memory| {
            let tag = SlotTag { slot: io.tag, member: member as u32 }.encode();
            // SAFETY: as for a whole I/O: the parts lie in its memory and do not overlap.
            unsafe { queue.push(Io { file: first_file + member as u16, offset, bytes, memory, tag, ..io }) };
            in_flight += 1;
        };
        if matches!(io.op, Op::Fsync | Op::Fdatasync) {
            (0..volume.members.len()).for_each(|member| push(member, 0, 0, io.memory));
        } else {
            let mut from = 0;
            for part in volume.map.parts(io.offset, io.bytes.into()) {
                let memory = match io.memory {
                    Memory::Buffer(at) => Memory::Within(at, from),
                    Memory::Within(at, within) => Memory::Within(at, within + from),
                    Memory::Foreign(start) => Memory::Foreign(start.wrapping_add(from as usize)),
                };
                let offset = volume.members[part.member].offset_bytes + part.offset;
                push(part.member, offset, part.bytes as u32, memory);
                from += part.bytes as u32;
            }
        }
        self.parts[io.tag as usize] = Parts { in_flight, result: 0 };
    }

    /// Queues the sync of lane `at`, on all members of a volume.
    #[cold]
    pub fn push_sync(&mut self, queue: &mut Queue<'_>, lane: &Lane<'_>, at: usize) {
        let (members, op) = (lane.volume.map_or(1, |volume| volume.members.len()), lane.sync_op);
        for member in 0..members {
            let file = lane.first_file + member as u16;
            let tag = SlotTag::sync_of_lane(at);
            let io = Io { op, file, offset: 0, bytes: 0, memory: Memory::Buffer(0), tag };
            // SAFETY: a sync accesses no memory.
            unsafe { queue.push(io) };
        }
        self.sync_parts[at] = Parts { in_flight: members as u32, result: 0 };
        self.entries += lane.parts_max;
        self.sync_batch.push(at as u16);
    }
}
