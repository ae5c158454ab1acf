mod submission;

use crate::accounting::{Accounting, PendingIo};
use crate::clock::now_ns;
use crate::lane::Lane;
use crate::ring::{Ring, Wait};
use rustix::io::Errno;
use std::time::Duration;
use storage::MEMBERS_MAX;
use stream::{NextStep, choose_weighted};
use submission::Submission;
use workload::TraceKind;

/// Most I/Os submitted in one system call through the page cache, where most complete within the call.
/// Larger batches gain little and make the last of a batch wait for the first ones.
pub const BATCH: usize = 16;
/// Most direct I/Os submitted in one system call. The kernel holds all requests of a larger batch back until the
/// last one is prepared (io_uring plugs above two), which leaves the device idle: at 64 outstanding, batches of 16
/// gave about 5 % fewer IOPS than pairs (scripts/bench load, 2026-11).
pub const BATCH_DIRECT: usize = 2;

/// An I/O due within this time is waited for by polling: a timer wakes the thread later than that.
const POLL_NS: u64 = 20_000;

/// The tag of an entry: the slot of an I/O, and on a volume the member in the bits above. With the highest bit set it
/// is the sync of the lane that the other bits name.
#[derive(Clone, Copy, Debug)]
struct SlotTag {
    slot: u32,
    member: u32,
}

impl SlotTag {
    const MEMBER_SHIFT: u32 = 23;
    const SYNC: u32 = 1 << 31;

    #[inline]
    fn encode(self) -> u32 {
        self.slot | self.member << Self::MEMBER_SHIFT
    }

    #[inline]
    fn decode(tag: u32) -> SlotTag {
        SlotTag { slot: tag & ((1 << Self::MEMBER_SHIFT) - 1), member: tag >> Self::MEMBER_SHIFT }
    }

    fn sync_of_lane(lane: usize) -> u32 {
        Self::SYNC | lane as u32
    }

    /// The lane, if the tag is that of a lane's sync.
    #[inline]
    fn synced_lane(tag: u32) -> Option<usize> {
        (tag & Self::SYNC != 0).then_some((tag & !Self::SYNC) as usize)
    }
}

const _: () = assert!(MEMBERS_MAX <= 1 << (31 - SlotTag::MEMBER_SHIFT));

/// One thread's lanes over one ring.
pub struct RingLoop<'a> {
    // Dropped before the lanes, see `into_lanes`.
    pub ring: Ring<'a>,
    pub lanes: Vec<Lane<'a>>,
    /// Number of the buffer that slot 0 writes from.
    pub write_buffers: u32,
    /// In a pool that shares outstanding I/Os: most of all lanes in flight, and each lane's weight.
    pub shared_depth: Option<(u32, Vec<u32>)>,
    pub direct: bool,
    pub accounting: Accounting<'a>,
}

/// The state of a running loop.
struct State {
    submission: Submission,
    /// The last call returned completions although it did not have to wait: those of the page cache are there when the
    /// call that submits them returns. A call that does not wait is shorter: 1.09 x the IOPS at one outstanding
    /// (2026-11).
    inline: bool,
    /// Reads may be tried without the ring: one at a time, through the page cache.
    try_nowait: bool,
}

/// When the loop must queue again.
struct Queued {
    /// The next I/O is due then; `u64::MAX`: after a completion.
    due_ns: u64,
    /// The batch was full before the lanes were.
    more: bool,
}

impl<'a> RingLoop<'a> {
    /// Runs until the time is over, every lane is, or the ring fails; then the CPU time used in the measured part.
    ///
    /// The loop is compiled twice: a single plain lane, the usual case, is spared the checks of what it does not use.
    /// They took a third of the instructions (2026-11).
    pub fn run(&mut self) -> std::io::Result<u64> {
        let plain = self.shared_depth.is_none() && self.lanes.len() == 1 && self.lanes[0].is_plain();
        if plain { self.run_as::<true>() } else { self.run_as::<false>() }
    }

    /// Waits for the I/Os in flight, which may read from a lane's memory; then the lanes.
    pub fn into_lanes(self) -> Vec<Lane<'a>> {
        drop(self.ring);
        self.lanes
    }

    fn run_as<const PLAIN: bool>(&mut self) -> std::io::Result<u64> {
        let slots: usize = self.lanes.iter().map(|lane| lane.stream.free_slots()).sum();
        let mut state = State {
            submission: Submission::new(slots, self.lanes.len(), self.write_buffers, PLAIN),
            inline: !self.direct,
            try_nowait: !self.direct && slots == 1,
        };
        let mut now = now_ns();
        self.lanes.iter_mut().for_each(|lane| lane.begin(now));
        let mut first = 0;
        loop {
            let read = if PLAIN && state.try_nowait && state.inline {
                self.read_nowait(&mut state, now)
            } else {
                None
            };
            if read.is_none() {
                let wait = self.queue::<PLAIN>(&mut state, first, now);
                first = if first + 1 >= self.lanes.len() { 0 } else { first + 1 };
                self.ring.submit(wait)?;
            }
            now = now_ns();
            if self.accounting.must_close(now) {
                // Before the completions: they came too late to count.
                self.close(&state.submission);
            }
            let reaped = self.reap::<PLAIN>(&mut state.submission, now, read);
            state.inline = reaped > 0 && !self.direct;
            if self.accounting.run_has_ended(now) || self.lanes.iter().all(Lane::is_over) {
                break;
            }
        }
        self.close(&state.submission);
        Ok(self.accounting.cpu_ns)
    }

    /// Queues the next I/Os of the lanes, up to a batch; how to wait for completions.
    #[inline]
    fn queue<const PLAIN: bool>(&mut self, state: &mut State, first: usize, now: u64) -> Wait {
        let submission = &mut state.submission;
        let batch_max = if self.direct { BATCH_DIRECT } else { BATCH }.min(self.ring.free_entries());
        if !PLAIN {
            submission.entries = 0;
        }
        let Queued { due_ns, more } = match &self.shared_depth {
            _ if PLAIN => self.queue_plain(submission, batch_max, now),
            Some(_) => self.queue_by_weight(submission, batch_max, now),
            None => self.queue_in_turn(submission, batch_max, first, now),
        };
        let submitted_ns = now_ns();
        let from_ns = self.accounting.window().from_ns;
        for slot in &submission.batch {
            let io = &mut submission.ios[*slot as usize];
            io.submitted_ns = submitted_ns;
            if !PLAIN && submitted_ns >= from_ns {
                self.lanes[usize::from(io.lane)].record_lateness(io.intended_ns, submitted_ns);
            }
        }
        submission.batch.clear();
        if !submission.sync_batch.is_empty() {
            for lane in submission.sync_batch.drain(..) {
                submission.sync_submitted_ns[usize::from(lane)] = submitted_ns;
            }
        }
        if more && self.has_free_slot(submission.in_flight) {
            return Wait::No;
        }
        if due_ns == u64::MAX {
            return if state.inline { Wait::No } else { Wait::Completion };
        }
        match due_ns.saturating_sub(submitted_ns) {
            near if near <= POLL_NS => Wait::No,
            far => Wait::AtMost(Duration::from_nanos(far - POLL_NS / 2)),
        }
    }

    /// Queues I/Os of the only lane.
    #[inline]
    fn queue_plain(&mut self, submission: &mut Submission, batch_max: usize, now: u64) -> Queued {
        let lane = &mut self.lanes[0];
        let mut queue = self.ring.queue();
        while submission.batch.len() < batch_max {
            let Some(io) = lane.next_plain(now) else { return Queued { due_ns: u64::MAX, more: false } };
            submission.push::<true>(&mut queue, lane, 0, io);
        }
        Queued { due_ns: u64::MAX, more: true }
    }

    /// Executes the next read of the only lane if the page cache has the data; otherwise queues it. The slot of what was
    /// read.
    #[inline]
    fn read_nowait(&mut self, state: &mut State, now: u64) -> Option<u32> {
        let (lane, submission) = (&mut self.lanes[0], &mut state.submission);
        let io = lane.next_plain(now)?;
        if io.kind != TraceKind::Read {
            submission.push::<true>(&mut self.ring.queue(), lane, 0, io);
            return None;
        }
        let submitted_ns = now_ns();
        // SAFETY: the ring has a buffer of the largest block for each slot; the slot is free, so that no I/O uses it.
        let read = unsafe { self.ring.read_nowait(0, io.slot, io.offset, io.bytes) };
        if read.is_ok() {
            let pending = PendingIo { submitted_ns, offset: io.offset, bytes: io.bytes, ..PendingIo::NONE };
            submission.ios[io.slot as usize] = pending;
            submission.in_flight += 1;
            return Some(io.slot);
        }
        // Through the ring, which waits, or reports the error. The attempt may have started the device's read: latency
        // counts from there.
        state.inline = false;
        state.try_nowait = read != Err(Errno::OPNOTSUPP);
        submission.push::<true>(&mut self.ring.queue(), lane, 0, io);
        submission.batch.clear();
        submission.ios[io.slot as usize].submitted_ns = submitted_ns;
        None
    }

    /// Queues I/Os of the lanes in turn, beginning with lane `first`.
    fn queue_in_turn(
        &mut self,
        submission: &mut Submission,
        batch_max: usize,
        first: usize,
        now: u64,
    ) -> Queued {
        let mut queued = Queued { due_ns: u64::MAX, more: false };
        let free_entries = self.ring.free_entries();
        let mut queue = self.ring.queue();
        let lanes = self.lanes.len();
        for at in (first..lanes).chain(0..first) {
            let lane = &mut self.lanes[at];
            loop {
                if submission.is_full(lane, batch_max, free_entries) {
                    queued.more = true;
                    break;
                }
                match lane.next(now) {
                    NextStep::Io(io) => submission.push::<false>(&mut queue, lane, at, io),
                    NextStep::Sync => submission.push_sync(&mut queue, lane, at),
                    NextStep::Later(ns) => {
                        queued.due_ns = queued.due_ns.min(ns);
                        break;
                    }
                    NextStep::Completion | NextStep::Done => break,
                }
            }
        }
        queued
    }

    /// Queues I/Os of lanes that share what may be in flight: each time of a lane chosen at random, in proportion to the
    /// weights of those that have an I/O.
    fn queue_by_weight(&mut self, submission: &mut Submission, batch_max: usize, now: u64) -> Queued {
        let mut queued = Queued { due_ns: u64::MAX, more: false };
        let Some((depth, mut weights)) = self.shared_depth.clone() else { return queued };
        let free_entries = self.ring.free_entries();
        let mut queue = self.ring.queue();
        while submission.in_flight < depth && weights.iter().any(|weight| *weight > 0) {
            let at = choose_weighted(&weights, &mut self.lanes[0].stream.chooser);
            let lane = &mut self.lanes[at];
            if submission.is_full(lane, batch_max, free_entries) {
                queued.more = true;
                return queued;
            }
            match lane.next(now) {
                NextStep::Io(io) => submission.push::<false>(&mut queue, lane, at, io),
                NextStep::Sync => submission.push_sync(&mut queue, lane, at),
                NextStep::Later(ns) => {
                    queued.due_ns = queued.due_ns.min(ns);
                    weights[at] = 0;
                }
                NextStep::Completion | NextStep::Done => weights[at] = 0,
            }
        }
        queued
    }

    fn has_free_slot(&self, in_flight: u32) -> bool {
        match &self.shared_depth {
            Some((depth, _)) => in_flight < *depth,
            None => self.lanes.iter().any(|lane| lane.stream.has_free_slot()),
        }
    }

    /// Accounts for completions: those of the ring, and the slot that was read without it.
    #[inline]
    fn reap<const PLAIN: bool>(
        &mut self,
        submission: &mut Submission,
        now: u64,
        read_slot: Option<u32>,
    ) -> u32 {
        let mut batch = self.accounting.begin_batch(&mut self.lanes, now);
        let lanes = &mut self.lanes;
        let buffers = self.ring.buffers_start();
        let shared_depth = self.shared_depth.as_ref().map(|(depth, _)| *depth);
        let mut pool_was_full = false;
        let read = read_slot.map(|slot| (slot, submission.ios[slot as usize].bytes as i32));
        let reaped = self.ring.reap(read, |tag, mut result| {
            if !PLAIN && let Some(at) = SlotTag::synced_lane(tag) {
                let Some(result) = submission.sync_parts[at].complete(result) else { return };
                batch.complete_sync(&mut lanes[at], result, now - submission.sync_submitted_ns[at]);
                lanes[at].synced(now);
                return;
            }
            let SlotTag { slot, member } =
                if PLAIN { SlotTag { slot: tag, member: 0 } } else { SlotTag::decode(tag) };
            let io = submission.ios[slot as usize];
            let lane = &mut lanes[if PLAIN { 0 } else { usize::from(io.lane) }];
            if !PLAIN && lane.volume.is_some() {
                if batch.counts() && io.kind != TraceKind::Sync {
                    let write = io.kind == TraceKind::Write;
                    lane.recorder.member_part(member as usize, write, result, now - io.submitted_ns);
                }
                match submission.parts[slot as usize].complete(result) {
                    Some(all) => result = all,
                    None => return,
                }
            }
            pool_was_full |= shared_depth == Some(submission.in_flight);
            submission.in_flight -= 1;
            // SAFETY: the read of the slot is complete and its buffer not used again before the slot is; buffers hold the
            // largest block.
            let block =
                || unsafe { std::slice::from_raw_parts_mut(buffers.pointer(slot), io.bytes as usize) };
            batch.complete::<PLAIN>(lane, slot, &io, result, block);
        });
        self.accounting.end_batch(batch, submission.in_flight);
        if pool_was_full {
            self.lanes.iter_mut().for_each(|lane| lane.free_since_ns = now);
        }
        reaped
    }

    /// Ends the measured part, and records which I/Os of open loops still wait.
    fn close(&mut self, submission: &Submission) {
        let Some(until_ns) = self.accounting.close() else { return };
        for (at, lane) in self.lanes.iter_mut().enumerate() {
            let in_flight = (0_u32..).zip(&submission.ios).filter_map(|(slot, io)| {
                (io.submitted_ns > 0 && usize::from(io.lane) == at).then_some((slot, io.intended_ns))
            });
            lane.record_waiting(until_ns, in_flight);
        }
    }
}
