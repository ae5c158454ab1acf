use crate::cpu::{now_ns, thread_cpu_ns};
use crate::lane::Lane;
use crate::live::{Progress, Shared, Told};
use rustix::io::Errno;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use storage::ring::{Io, Memory, Op, Queue, Ring, Wait};
use storage::{Laid, MEMBERS_MAX};
use stream::{Ask, Want, Window, weighted};
use workload::TraceKind;

/// Most I/Os handed over in one system call through the page cache, where most complete within the call.
/// Larger batches gain little and make the last of a batch wait for the first ones.
pub const BATCH: usize = 16;
/// The same of direct I/O. Of larger batches the kernel holds all requests back until the last one is
/// prepared (io_uring plugs above two), which leaves the device idle: at 64 outstanding, batches of 16 gave
/// about 5 % fewer IOPS than pairs (scripts/bench load, 2026-11).
pub const BATCH_DIRECT: usize = 2;

/// An I/O due within that time is waited for awake: a timer's wake-up comes later than that.
const AWAKE_NS: u64 = 20_000;
/// Of a layout: the tag's bits from here on, up to the sync's, are the member of an I/O's part; those below, its slot.
const MEMBER_SHIFT: u32 = 23;
const _: () = assert!(MEMBERS_MAX <= 1 << (31 - MEMBER_SHIFT));
const SLOT: u32 = (1 << MEMBER_SHIFT) - 1;
/// Completions with this bit in their tag are syncs of the lane that the other bits name.
const SYNC: u32 = 1 << 31;

/// One thread's lanes over one ring.
pub struct RingLoop<'a> {
    pub ring: Ring,
    pub lanes: Vec<Lane<'a>>,
    /// The buffer that the writes of slot 0 start from; a lane that both reads and writes has two for a slot.
    pub write_buffers: u32,
    /// Most I/Os in flight over all lanes (of a pool that shares them), and each lane's weight.
    pub shared_depth: Option<(u32, Vec<u32>)>,
    pub direct: bool,
    pub shared: &'a Shared,
    pub progress: &'a Progress,
}

/// An I/O in flight.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    submitted_ns: u64,
    intended_ns: u64,
    offset: u64,
    bytes: u32,
    lane: u16,
    write: bool,
    /// A recorded sync takes a slot like any other I/O.
    sync: bool,
}

/// The parts of an I/O or sync on a layout that are in flight, and what came of the others: bytes, or the first error.
#[derive(Clone, Copy, Debug, Default)]
struct Parts {
    left: u32,
    result: i32,
}

impl Parts {
    /// One more is back: what all of them gave, once it was the last.
    fn back(&mut self, result: i32) -> Option<i32> {
        self.left -= 1;
        self.result = match (self.result, result) {
            (failed, _) if failed < 0 => failed,
            (_, failed) if failed < 0 => failed,
            (sum, more) => sum + more,
        };
        (self.left == 0).then_some(self.result)
    }
}

/// What the loop knows while it runs.
struct State {
    slots: Vec<Slot>,
    /// Of each slot, on a layout.
    parts: Vec<Parts>,
    /// Entries of the ring's queue that wait to be handed over.
    entries: usize,
    sync_submitted_ns: Vec<u64>,
    /// Of each lane's sync.
    sync_parts: Vec<Parts>,
    batch: Vec<u32>,
    sync_batch: Vec<u16>,
    told: Told,
    in_flight: u32,
    cpu_start_ns: Option<u64>,
    /// CPU time used in the measured part, once that is over.
    cpu_ns: u64,
    closed: bool,
    /// The last call came back with completions although it may not have waited for any: those of the page
    /// cache are there when the call that asks for them returns. A call that does not wait is shorter: 1.09 x
    /// the IOPS at one outstanding (2026-11).
    inline: bool,
    /// Reads may be tried without the ring: one at a time, through the page cache.
    at_once: bool,
}

impl RingLoop<'_> {
    /// Runs until the time is over, every lane is done, or the ring itself fails; then the CPU time used in
    /// the measured part.
    ///
    /// The loop is compiled twice: a single plain lane, the usual case, is spared all questions about what it
    /// does not use. They took a third of the instructions (2026-11).
    pub fn run(&mut self) -> std::io::Result<u64> {
        let plain = self.shared_depth.is_none() && self.lanes.len() == 1 && self.lanes[0].is_plain();
        if plain { self.run_as::<true>() } else { self.run_as::<false>() }
    }

    fn run_as<const PLAIN: bool>(&mut self) -> std::io::Result<u64> {
        let slots: usize = self.lanes.iter().map(|lane| lane.stream.room()).sum();
        let mut state = State {
            slots: vec![Slot::default(); slots],
            parts: if PLAIN { Vec::new() } else { vec![Parts::default(); slots] },
            entries: 0,
            sync_submitted_ns: vec![0; self.lanes.len()],
            sync_parts: vec![Parts::default(); self.lanes.len()],
            batch: Vec::with_capacity(BATCH),
            sync_batch: Vec::new(),
            told: Told::default(),
            in_flight: 0,
            cpu_start_ns: None,
            cpu_ns: 0,
            closed: false,
            inline: !self.direct,
            at_once: !self.direct && slots == 1,
        };
        let mut now = now_ns();
        for lane in &mut self.lanes {
            lane.stream.begin(now);
            lane.room_ns = now;
        }
        let mut first = 0;
        loop {
            let read =
                if PLAIN && state.at_once && state.inline { self.ask_at_once(&mut state, now) } else { None };
            if read.is_none() {
                let wait = self.ask::<PLAIN>(&mut state, first, now);
                first = if first + 1 >= self.lanes.len() { 0 } else { first + 1 };
                self.ring.submit(wait)?;
            }
            now = now_ns();
            if now >= self.shared.until_ns.load(Relaxed) && !state.closed {
                // Before what came back now is taken for done: it came too late to count.
                self.close(&mut state);
            }
            let reaped = self.reap::<PLAIN>(&mut state, now, read);
            state.inline = reaped > 0 && !self.direct;
            state.told.in_flight = u64::from(state.in_flight);
            self.progress.tell(state.told);
            if now >= self.shared.end_ns.load(Relaxed) || self.lanes.iter().all(is_over) {
                break;
            }
        }
        if !state.closed {
            self.close(&mut state);
        }
        Ok(state.cpu_ns)
    }

    /// Queues what the lanes want, up to a batch; how to wait for what comes.
    #[inline]
    fn ask<const PLAIN: bool>(&mut self, state: &mut State, first: usize, now: u64) -> Wait {
        let room = self.ring.room();
        let batch_max = if self.direct { BATCH_DIRECT } else { BATCH }.min(room);
        if !PLAIN {
            state.entries = 0;
        }
        let (due_ns, more) = match &self.shared_depth {
            _ if PLAIN => (u64::MAX, self.ask_plain(state, batch_max, now)),
            Some(_) => self.ask_by_weight(state, batch_max, room, now),
            None => self.ask_in_turn(state, batch_max, room, first, now),
        };
        let submitted_ns = now_ns();
        let from_ns = self.shared.from_ns.load(Relaxed);
        for at in &state.batch {
            let slot = &mut state.slots[*at as usize];
            slot.submitted_ns = submitted_ns;
            if PLAIN {
                continue;
            }
            let lane = &mut self.lanes[usize::from(slot.lane)];
            let could_ns = slot.intended_ns.max(lane.room_ns);
            if let Some(responses) = lane.recorder.responses()
                && submitted_ns >= from_ns
            {
                responses.late_ns_max = responses.late_ns_max.max(submitted_ns.saturating_sub(could_ns));
            }
        }
        state.batch.clear();
        if !state.sync_batch.is_empty() {
            for lane in state.sync_batch.drain(..) {
                state.sync_submitted_ns[usize::from(lane)] = submitted_ns;
            }
        }
        if more && self.has_room(state) {
            return Wait::No;
        }
        if due_ns == u64::MAX {
            return if state.inline { Wait::No } else { Wait::Completion };
        }
        match due_ns.saturating_sub(submitted_ns) {
            near if near <= AWAKE_NS => Wait::No,
            far => Wait::AtMost(Duration::from_nanos(far - AWAKE_NS / 2)),
        }
    }

    /// Queues what the only lane has room for; whether there is more to ask for.
    #[inline]
    fn ask_plain(&mut self, state: &mut State, batch_max: usize, now: u64) -> bool {
        let lane = &mut self.lanes[0];
        let mut queue = self.ring.queue();
        while state.batch.len() < batch_max {
            let Some(ask) = lane.want_plain(now) else { return false };
            push::<true>(&mut queue, self.write_buffers, state, lane, 0, ask);
        }
        true
    }

    /// Reads what the only lane wants next, if the page cache has it; else queues it. The slot of what was read.
    #[inline]
    fn ask_at_once(&mut self, state: &mut State, now: u64) -> Option<u32> {
        let lane = &mut self.lanes[0];
        let ask = lane.want_plain(now)?;
        if ask.kind != TraceKind::Read {
            push::<true>(&mut self.ring.queue(), self.write_buffers, state, lane, 0, ask);
            return None;
        }
        let submitted_ns = now_ns();
        // SAFETY: the slot is free, so its buffer is no other I/O's; it holds the largest block.
        let read = unsafe { self.ring.read_at_once(0, ask.slot, ask.offset, ask.bytes) };
        if read.is_ok() {
            state.slots[ask.slot as usize] =
                Slot { submitted_ns, offset: ask.offset, bytes: ask.bytes, ..Slot::default() };
            state.in_flight += 1;
            return Some(ask.slot);
        }
        // The ring waits for it, or is told why not. The device was asked by the attempt: the time counts from
        // there.
        state.inline = false;
        state.at_once = read != Err(Errno::OPNOTSUPP);
        push::<true>(&mut self.ring.queue(), self.write_buffers, state, lane, 0, ask);
        state.batch.clear();
        state.slots[ask.slot as usize].submitted_ns = submitted_ns;
        None
    }

    /// Queues what the lanes want, one after the other. When the next is due, and whether there is more to
    /// ask for.
    fn ask_in_turn(
        &mut self,
        state: &mut State,
        batch_max: usize,
        room: usize,
        first: usize,
        now: u64,
    ) -> (u64, bool) {
        let (mut due_ns, mut more) = (u64::MAX, false);
        let mut queue = self.ring.queue();
        let lanes = self.lanes.len();
        for at in (first..lanes).chain(0..first) {
            let lane = &mut self.lanes[at];
            loop {
                if is_full(state, lane, batch_max, room) {
                    more = true;
                    break;
                }
                match lane.want(now) {
                    Want::Io(ask) => push::<false>(&mut queue, self.write_buffers, state, lane, at, ask),
                    Want::Sync => push_sync(&mut queue, state, lane, at),
                    Want::Later(ns) => {
                        due_ns = due_ns.min(ns);
                        break;
                    }
                    Want::Completion | Want::Done => break,
                }
            }
        }
        (due_ns, more)
    }

    /// The same where lanes share what may be in flight: each I/O is a lane's by chance, in proportion to the
    /// weights of those that want one.
    fn ask_by_weight(&mut self, state: &mut State, batch_max: usize, room: usize, now: u64) -> (u64, bool) {
        let Some((depth, mut weights)) = self.shared_depth.clone() else { return (u64::MAX, false) };
        let mut due_ns = u64::MAX;
        let mut queue = self.ring.queue();
        while state.in_flight < depth && weights.iter().any(|weight| *weight > 0) {
            let at = weighted(&weights, &mut self.lanes[0].stream.chooser);
            let lane = &mut self.lanes[at];
            if is_full(state, lane, batch_max, room) {
                return (due_ns, true);
            }
            match lane.want(now) {
                Want::Io(ask) => push::<false>(&mut queue, self.write_buffers, state, lane, at, ask),
                Want::Sync => push_sync(&mut queue, state, lane, at),
                Want::Later(ns) => {
                    due_ns = due_ns.min(ns);
                    weights[at] = 0;
                }
                Want::Completion | Want::Done => weights[at] = 0,
            }
        }
        (due_ns, false)
    }

    fn has_room(&self, state: &State) -> bool {
        match &self.shared_depth {
            Some((depth, _)) => state.in_flight < *depth,
            None => self.lanes.iter().any(|lane| lane.stream.has_room()),
        }
    }

    /// Counts what came back: over the ring, or what was read without it.
    #[inline]
    fn reap<const PLAIN: bool>(&mut self, state: &mut State, now: u64, read: Option<u32>) -> u32 {
        let from_ns = self.shared.from_ns.load(Relaxed);
        let counts = Window { from_ns, until_ns: self.shared.until_ns.load(Relaxed) }.counts(now);
        if counts {
            if state.cpu_start_ns.is_none() {
                state.cpu_start_ns = Some(thread_cpu_ns());
            }
            self.lanes.iter_mut().for_each(|lane| lane.recorder.at(now - from_ns));
        }
        let (lanes, progress, ring) = (&mut self.lanes, self.progress, &mut self.ring);
        let buffers = ring.buffers_start();
        let (mut run_ns, mut run) = (0, 0);
        let shared_depth = self.shared_depth.as_ref().map(|(depth, _)| *depth);
        let mut pool_was_full = false;
        let mut told = state.told;
        let read = read.map(|slot| (slot, state.slots[slot as usize].bytes as i32));
        let reaped = ring.reap(read, |tag, result| {
            if !PLAIN && tag & SYNC != 0 {
                let at = (tag & !SYNC) as usize;
                let Some(result) = state.sync_parts[at].back(result) else { return };
                synced(&mut lanes[at], result, now - state.sync_submitted_ns[at], counts);
                lanes[at].synced(now);
                return;
            }
            let (tag, member) = if PLAIN { (tag, 0) } else { (tag & SLOT, tag >> MEMBER_SHIFT) };
            let slot = state.slots[tag as usize];
            let lane = &mut lanes[if PLAIN { 0 } else { usize::from(slot.lane) }];
            let latency_ns = now - slot.submitted_ns;
            let mut result = result;
            if !PLAIN && lane.laid.is_some() {
                if counts && !slot.sync {
                    lane.recorder.part(member as usize, slot.write, result, latency_ns);
                }
                match state.parts[tag as usize].back(result) {
                    Some(all) => result = all,
                    None => return,
                }
            }
            state.in_flight -= 1;
            lane.returned(tag, slot.write, now);
            pool_was_full |= shared_depth == Some(state.in_flight + 1);
            if !PLAIN && slot.sync {
                synced(lane, result, latency_ns, counts);
                return;
            }
            let well = result == slot.bytes as i32;
            if !PLAIN
                && slot.write
                && let Some(ledger) = &lane.ledger
            {
                ledger.release(slot.offset, well);
            }
            if !well {
                lane.recorder.failed(slot.write, errno_of(result));
                lane.failed();
                return;
            }
            lane.failures = 0;
            told.ios += 1;
            told.bytes += u64::from(slot.bytes);
            told.stall_ns += latency_ns;
            if latency_ns != run_ns {
                if run > 0 {
                    progress.took(run_ns, run);
                }
                (run_ns, run) = (latency_ns, 0);
            }
            run += 1;
            if !PLAIN && lane.checks_reads && !slot.write {
                // SAFETY: the read is complete, and its buffer not yet used again.
                let block = unsafe { std::slice::from_raw_parts_mut(buffers.of(tag), slot.bytes as usize) };
                lane.check_read(block, slot.offset);
            }
            if counts {
                lane.recorder.last_ns = now;
                lane.stream.counted += 1;
                lane.recorder.completed(slot.write, slot.bytes, latency_ns);
                if !PLAIN && let Some(responses) = lane.recorder.responses() {
                    responses.record(slot.write, now.saturating_sub(slot.intended_ns));
                }
            }
        });
        if run > 0 {
            progress.took(run_ns, run);
        }
        state.told = told;
        if pool_was_full {
            self.lanes.iter_mut().for_each(|lane| lane.room_ns = now);
        }
        reaped
    }

    /// The measured part is over: what of an open loop still waits?
    fn close(&mut self, state: &mut State) {
        state.closed = true;
        state.cpu_ns = state.cpu_start_ns.map_or(0, |start| thread_cpu_ns() - start);
        let until_ns = self.shared.until_ns.load(Relaxed).min(now_ns());
        for (at, lane) in self.lanes.iter_mut().enumerate() {
            if lane.recorder.record.responses.is_none() {
                continue;
            }
            let flies = |(slot, io): (u32, &Slot)| {
                (io.submitted_ns > 0 && usize::from(io.lane) == at).then_some((slot, io.intended_ns))
            };
            let waiting = lane.stream.waiting(until_ns, (0_u32..).zip(&state.slots).filter_map(flies));
            if let Some(responses) = lane.recorder.responses() {
                responses.wait(waiting);
            }
        }
    }
}

/// Queues an I/O of a lane.
#[inline(always)]
fn push<const PLAIN: bool>(
    queue: &mut Queue<'_>,
    write_buffers: u32,
    state: &mut State,
    lane: &mut Lane<'_>,
    at: usize,
    ask: Ask,
) {
    let write = ask.kind != TraceKind::Read;
    let sync = ask.kind == TraceKind::Sync;
    let mut memory = Memory::Buffer(ask.slot);
    if ask.kind == TraceKind::Write {
        let buffer = ask.slot + write_buffers;
        // SAFETY: the slot is free, so nothing else touches its buffer, which holds the largest block.
        let block = unsafe { std::slice::from_raw_parts_mut(queue.buffer(buffer), ask.bytes as usize) };
        memory = match lane.writer.next(block, ask.offset, &mut lane.stream.chooser) {
            Some(elsewhere) => Memory::Foreign(elsewhere),
            None => Memory::Buffer(buffer),
        };
    }
    let file = if PLAIN { 0 } else { lane.first_file };
    let io = Io { op: lane.op(ask.kind), file, offset: ask.offset, bytes: ask.bytes, memory, tag: ask.slot };
    match lane.laid {
        Some(laid) if !PLAIN => push_parts(queue, state, laid, io),
        // SAFETY: a slot's buffers are its own; a writer's source lives as long as its lane, which outlives
        // the ring's I/Os: the ring is dropped, and waits, first.
        _ => unsafe { queue.push(io) },
    }
    if !PLAIN {
        state.entries += lane.parts_max;
    }
    state.slots[ask.slot as usize] = Slot {
        submitted_ns: 0,
        intended_ns: ask.intended_ns,
        offset: ask.offset,
        bytes: ask.bytes,
        lane: at as u16,
        write,
        sync,
    };
    state.batch.push(ask.slot);
    state.in_flight += 1;
}

/// Whether the batch is, or the ring has no room for what the lane may ask for next.
#[inline]
fn is_full(state: &State, lane: &Lane<'_>, batch_max: usize, room: usize) -> bool {
    state.batch.len() + state.sync_batch.len() >= batch_max || state.entries + lane.parts_max > room
}

/// Queues an I/O on a layout: a part for each stretch that lies together on a member, a sync for each member. It is
/// done when the last of them is.
fn push_parts(queue: &mut Queue<'_>, state: &mut State, laid: &Laid, io: Io) {
    let first_file = io.file;
    let mut left = 0;
    let mut push = |member: usize, offset: u64, bytes: u32, memory: Memory| {
        let tag = io.tag | (member as u32) << MEMBER_SHIFT;
        // SAFETY: as for a whole I/O: the parts lie in its buffer, and do not overlap.
        unsafe { queue.push(Io { file: first_file + member as u16, offset, bytes, memory, tag, ..io }) };
        left += 1;
    };
    if matches!(io.op, Op::Fsync | Op::Fdatasync) {
        (0..laid.members.len()).for_each(|member| push(member, 0, 0, io.memory));
    } else {
        let mut from = 0;
        for part in laid.map.parts(io.offset, io.bytes.into()) {
            let memory = match io.memory {
                Memory::Buffer(at) => Memory::Within(at, from),
                Memory::Within(at, within) => Memory::Within(at, within + from),
                Memory::Foreign(start) => Memory::Foreign(start.wrapping_add(from as usize)),
            };
            let offset = laid.members[part.member].offset_bytes + part.offset;
            push(part.member, offset, part.bytes as u32, memory);
            from += part.bytes as u32;
        }
    }
    state.parts[io.tag as usize] = Parts { left, result: 0 };
}

#[cold]
fn push_sync(queue: &mut Queue<'_>, state: &mut State, lane: &Lane<'_>, at: usize) {
    let (members, op) = (lane.laid.map_or(1, |laid| laid.members.len()), lane.sync_op);
    for member in 0..members {
        let file = lane.first_file + member as u16;
        let io = Io { op, file, offset: 0, bytes: 0, memory: Memory::Buffer(0), tag: SYNC | at as u32 };
        // SAFETY: a sync touches no memory.
        unsafe { queue.push(io) };
    }
    state.sync_parts[at] = Parts { left: members as u32, result: 0 };
    state.entries += lane.parts_max;
    state.sync_batch.push(at as u16);
}

fn synced(lane: &mut Lane<'_>, result: i32, latency_ns: u64, counts: bool) {
    if result < 0 {
        lane.recorder.sync_failed(-result);
        lane.failed();
    } else if counts {
        lane.recorder.record.synced(latency_ns);
    }
}

/// A lane that will ask for nothing more and waits for nothing.
pub fn is_over(lane: &Lane<'_>) -> bool {
    lane.gave_up() || lane.stream.is_finished()
}

/// Of a short transfer: `ENODATA` where nothing was there, as behind the end of a file that shrank.
pub fn errno_of(result: i32) -> i32 {
    match result {
        0 => libc::ENODATA,
        short if short > 0 => libc::EIO,
        failed => -failed,
    }
}
