use crate::chooser::{Choice, Chooser, ThreadIndex};
use crate::pace::Pace;
use std::collections::VecDeque;
use std::ops::Range;
use workload::{Trace, TraceKind, Workload};

/// The I/Os of one thread of a workload. The caller executes each [`next`](IoStream::next) step and reports completions.
///
/// ```text
/// next ──> Io          submit it ─────────> completed
///      ──> Sync        make writes durable ─> synced
///      ──> Later       call again at that time
///      ──> Completion  call again after a completion
///      ──> Done
/// ```
#[derive(Clone, Debug)]
pub struct IoStream<'a> {
    /// Offsets, sizes and directions, and every random choice.
    pub chooser: Chooser,
    /// When I/Os may or must be issued.
    pub pace: Pace,
    replay: Option<Replay<'a>>,
    syncs: Option<Syncs>,
    /// Writes that wait for a sync.
    held: VecDeque<IoRequest>,
    /// Free slots. A stack: the slot that completed last is reused first, while its buffer is in the cache.
    free: Vec<u32>,
    in_flight: u32,
    /// Completed I/Os that count towards `ios_max`; kept by the caller.
    pub counted: u64,
    ios_max: u64,
}

/// The recorded I/Os of one thread: every `step`-th of the trace.
#[derive(Clone, Debug)]
struct Replay<'a> {
    trace: &'a Trace,
    next: usize,
    step: usize,
}

/// The writes of a thread between two syncs.
#[derive(Clone, Copy, Debug)]
struct Syncs {
    every: u32,
    /// Writes since the last sync.
    writes: u32,
    /// Those of them that are outstanding.
    writing: u32,
    syncing: bool,
}

/// The next step of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextStep {
    /// Submit this I/O.
    Io(IoRequest),
    /// Make the writes durable.
    Sync,
    /// Wait until that time.
    Later(u64),
    /// Wait for a completion.
    Completion,
    /// End.
    Done,
}

/// An I/O to submit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IoRequest {
    /// Its slot among the outstanding I/Os.
    pub slot: u32,
    /// Read, write, or a recorded sync.
    pub kind: TraceKind,
    /// Of its first byte.
    pub offset: u64,
    /// Its size; 0 for a sync.
    pub bytes: u32,
    /// When it should start.
    pub intended_ns: u64,
}

/// Offsets that a write tries to claim before it waits for a completion.
const CLAIMS_MAX: u32 = 64;

impl<'a> IoStream<'a> {
    /// The stream of the chooser's thread. `slots` are the numbers of its outstanding I/Os; `trace` replaces chosen I/Os;
    /// `ios_max` is the number of I/Os of all threads.
    pub fn new(
        workload: &Workload,
        chooser: Chooser,
        trace: Option<&'a Trace>,
        ios_max: Option<u64>,
        slots: Range<u32>,
    ) -> IoStream<'a> {
        let ThreadIndex { index, count } = chooser.thread;
        let part = |ios: u64| ios / u64::from(count) + u64::from(u64::from(index) < ios % u64::from(count));
        let sync =
            |sync: workload::SyncEvery| Syncs { every: sync.writes, writes: 0, writing: 0, syncing: false };
        IoStream {
            pace: Pace::new(workload, chooser.thread),
            chooser,
            replay: trace.map(|trace| Replay { trace, next: index as usize, step: count as usize }),
            syncs: workload.sync.map(sync),
            held: VecDeque::new(),
            free: slots.rev().collect(),
            in_flight: 0,
            counted: 0,
            ios_max: ios_max.map_or(u64::MAX, part),
        }
    }

    /// Starts its schedule.
    pub fn begin(&mut self, now_ns: u64) {
        self.pace.begin(now_ns, &mut self.chooser.random);
    }

    /// Whether an I/O only ever waits for a free slot: [`next_plain`](IoStream::next_plain) then gives it.
    pub fn is_plain(&self) -> bool {
        self.pace.is_free() && self.syncs.is_none() && self.replay.is_none()
    }

    /// Whether a slot is free.
    #[inline]
    pub fn has_free_slot(&self) -> bool {
        !self.free.is_empty()
    }

    /// Number of free slots.
    pub fn free_slots(&self) -> usize {
        self.free.len()
    }

    /// The next I/O of a plain stream, if a slot is free. The caller must submit it.
    #[inline]
    pub fn next_plain(&mut self, now_ns: u64) -> Option<IoRequest> {
        if self.counted + u64::from(self.in_flight) >= self.ios_max {
            return None;
        }
        let slot = self.free.pop()?;
        self.in_flight += 1;
        Some(request(self.chooser.choose(slot), slot, now_ns))
    }

    /// The step at `now_ns`; the caller must execute an I/O or sync. A write goes only to an offset that `claim` permits.
    #[inline]
    pub fn next(&mut self, now_ns: u64, mut claim: impl FnMut(u64) -> bool) -> NextStep {
        if self.counted >= self.ios_max {
            return NextStep::Done;
        }
        if self.counted + u64::from(self.in_flight) >= self.ios_max {
            return NextStep::Completion;
        }
        if self.is_sync_due() {
            return NextStep::Sync;
        }
        let Some(slot) = self.free.last().copied() else { return NextStep::Completion };
        if self.replay.is_some() {
            return self.next_recorded(slot, now_ns);
        }
        if self.may_write()
            && let Some(held) = self.held.pop_front()
        {
            return self.issue(IoRequest { slot, ..held });
        }
        // A write that is held back occupies a slot.
        while self.held.len() < self.free.len() {
            let mut intended_ns = now_ns;
            if !self.pace.is_free() {
                let due_ns = self.pace.due_ns(0);
                if due_ns > now_ns {
                    return NextStep::Later(due_ns);
                }
                intended_ns = if self.pace.is_open() { due_ns } else { now_ns };
            }
            let mut choice = self.chooser.choose(slot);
            let mut claims = 0;
            while choice.write && !claim(choice.offset) {
                claims += 1;
                if claims == CLAIMS_MAX {
                    return NextStep::Completion;
                }
                choice = Choice { write: true, ..self.chooser.choose(slot) };
            }
            if !self.pace.is_free() {
                self.pace.advance(now_ns, choice.bytes, &mut self.chooser.random);
            }
            let io = request(choice, slot, intended_ns);
            if !choice.write || self.may_write() {
                return self.issue(io);
            }
            // It waits for the sync; reads continue.
            self.held.push_back(io);
        }
        NextStep::Completion
    }

    fn next_recorded(&mut self, slot: u32, now_ns: u64) -> NextStep {
        let Some(replay) = &mut self.replay else { return NextStep::Done };
        let Some(io) = replay.trace.ios.get(replay.next) else {
            return if self.in_flight > 0 { NextStep::Completion } else { NextStep::Done };
        };
        let mut intended_ns = now_ns;
        if self.pace.is_open() {
            intended_ns = self.pace.due_ns(io.at_ns);
            if intended_ns > now_ns {
                return NextStep::Later(intended_ns);
            }
        }
        replay.next += replay.step;
        let bytes = if io.kind == TraceKind::Sync { 0 } else { io.bytes };
        self.issue(IoRequest { slot, kind: io.kind, offset: io.offset_bytes, bytes, intended_ns })
    }

    #[inline]
    fn issue(&mut self, io: IoRequest) -> NextStep {
        self.free.pop();
        self.in_flight += 1;
        if let Some(syncs) = &mut self.syncs
            && io.kind != TraceKind::Read
        {
            syncs.writes += 1;
            syncs.writing += 1;
        }
        NextStep::Io(io)
    }

    /// A sync is due once its writes have completed.
    #[inline]
    fn is_sync_due(&mut self) -> bool {
        let Some(syncs) = &mut self.syncs else { return false };
        let due = syncs.writes >= syncs.every && syncs.writing == 0 && !syncs.syncing;
        syncs.syncing |= due;
        due
    }

    /// Writes wait while a group of them is not yet synced.
    #[inline]
    fn may_write(&self) -> bool {
        self.syncs.as_ref().is_none_or(|syncs| syncs.writes < syncs.every)
    }

    /// An I/O has completed or failed: frees its slot.
    #[inline]
    pub fn completed(&mut self, slot: u32, read: bool) {
        self.free.push(slot);
        self.in_flight -= 1;
        if let Some(syncs) = &mut self.syncs
            && !read
        {
            syncs.writing -= 1;
        }
    }

    /// A sync has completed: writes may continue.
    pub fn synced(&mut self) {
        if let Some(syncs) = &mut self.syncs {
            (syncs.writes, syncs.syncing) = (0, false);
        }
    }

    /// Whether its count is reached, or its trace at an end.
    pub fn is_finished(&self) -> bool {
        let is_replayed = |replay: &Replay<'_>| replay.next >= replay.trace.ios.len() && self.in_flight == 0;
        self.counted >= self.ios_max || self.replay.as_ref().is_some_and(is_replayed)
    }

    /// Takes the writes that still wait for a sync, when the run ends.
    pub fn take_held(&mut self) -> impl Iterator<Item = IoRequest> + '_ {
        self.held.drain(..)
    }

    /// For an open loop at the end of its measured part: the number of I/Os that were due before `until_ns` and have not
    /// completed, and how long the oldest has waited. `intended` holds slots and the times when their I/Os should start.
    pub fn waiting(&mut self, until_ns: u64, intended: impl Iterator<Item = (u32, u64)>) -> (u64, u64) {
        let (mut waiting, mut oldest_ns) = self.overdue(until_ns);
        let free: std::collections::HashSet<u32> = self.free.iter().copied().collect();
        for (slot, intended_ns) in intended {
            if !free.contains(&slot) && intended_ns < until_ns {
                waiting += 1;
                oldest_ns = oldest_ns.min(intended_ns);
            }
        }
        (waiting, if waiting > 0 { until_ns.saturating_sub(oldest_ns) } else { 0 })
    }

    /// Number of I/Os that are due before `until_ns` and were not issued, and when the oldest is due.
    fn overdue(&mut self, until_ns: u64) -> (u64, u64) {
        match &self.replay {
            Some(replay) => {
                let due = |at: usize| replay.trace.ios.get(at).map(|io| self.pace.due_ns(io.at_ns));
                let all = (replay.next..replay.trace.ios.len()).step_by(replay.step);
                let count = all.take_while(|at| due(*at).is_some_and(|due_ns| due_ns < until_ns)).count();
                (count as u64, due(replay.next).unwrap_or(until_ns))
            }
            None => {
                let (count, first_ns) = self.pace.clone().overdue(until_ns, &mut self.chooser.random);
                let held_ns = self.held.front().map_or(first_ns, |io| io.intended_ns);
                (count + self.held.len() as u64, first_ns.min(held_ns))
            }
        }
    }
}

#[inline]
fn request(choice: Choice, slot: u32, intended_ns: u64) -> IoRequest {
    let kind = if choice.write { TraceKind::Write } else { TraceKind::Read };
    IoRequest { slot, kind, offset: choice.offset, bytes: choice.bytes, intended_ns }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use workload::{Arrival, Shape, SyncEvery, SyncKind, TraceIo};

    fn stream<'a>(workload: &Workload, trace: Option<&'a Trace>, ios_max: Option<u64>) -> IoStream<'a> {
        let chooser = Chooser::new(workload, 0..1 << 20, ThreadIndex::ONLY, &Arc::default());
        let mut stream = IoStream::new(workload, chooser, trace, ios_max, 0..workload.outstanding);
        stream.begin(0);
        stream
    }

    fn io(step: NextStep) -> IoRequest {
        let NextStep::Io(io) = step else { panic!("{step:?} is no I/O") };
        io
    }

    #[test]
    fn a_closed_loop_issues_ios_until_all_slots_are_taken() {
        let mut plain = stream(&Workload::from(Shape::random_read(4096)).with_outstanding(2), None, Some(3));
        assert!(plain.is_plain());
        let (first, second) = (plain.next_plain(7).unwrap(), plain.next_plain(7).unwrap());
        assert_eq!((first.slot, second.slot, first.intended_ns), (0, 1, 7));
        assert_eq!(plain.next_plain(7), None, "no room");
        plain.completed(second.slot, true);
        plain.counted = 2;
        assert_eq!(plain.next_plain(7), None, "one of three is still outstanding");
        plain.completed(first.slot, true);
        assert_eq!(plain.next_plain(8).unwrap().slot, 0, "what came back last goes first");
    }

    #[test]
    fn writes_wait_for_their_sync_and_the_sync_for_its_writes() {
        let sync = Some(SyncEvery { writes: 2, how: SyncKind::Fsync });
        let workload = Workload { sync, ..Workload::from(Shape::random_write(4096)).with_outstanding(4) };
        let mut writes = stream(&workload, None, None);
        let (first, second) = (io(writes.next(0, |_| true)), io(writes.next(0, |_| true)));
        assert_eq!(writes.next(0, |_| true), NextStep::Completion, "the group is complete");
        writes.completed(first.slot, false);
        assert_eq!(writes.next(0, |_| true), NextStep::Completion, "one of it is outstanding");
        writes.completed(second.slot, false);
        assert_eq!(writes.next(0, |_| true), NextStep::Sync);
        assert_eq!(writes.next(0, |_| true), NextStep::Completion, "one sync at a time");
        writes.synced();
        assert_eq!(io(writes.next(0, |_| true)).kind, TraceKind::Write);
        assert_eq!(writes.take_held().count(), 3, "those that were chosen and held back");
    }

    #[test]
    fn a_write_goes_only_to_an_offset_that_it_can_claim() {
        let workload = Workload::from(Shape::random_write(4096)).with_outstanding(4);
        let mut writes = stream(&workload, None, None);
        assert_eq!(writes.next(0, |_| false), NextStep::Completion);
        assert!(io(writes.next(0, |offset| offset >= 512 << 10)).offset >= 512 << 10);
    }

    #[test]
    fn an_open_loop_follows_its_schedule_and_counts_waiting_ios() {
        let arrival = Arrival::Constant { iops: 1000.0 };
        let workload = Workload { arrival, ..Workload::from(Shape::random_read(4096)).with_outstanding(2) };
        let mut open = stream(&workload, None, None);
        assert_eq!(io(open.next(500_000, |_| true)).intended_ns, 0);
        assert_eq!(open.next(500_000, |_| true), NextStep::Later(1_000_000));
        let late = io(open.next(1_700_000, |_| true));
        assert_eq!(late.intended_ns, 1_000_000);
        open.completed(0, true);
        // Those due at 2, 3 and 4 ms were not issued, and the one of slot 1 has not completed.
        let slots = [(0, 0), (1, late.intended_ns)];
        assert_eq!(open.waiting(5_000_000, slots.into_iter()), (4, 4_000_000));
    }

    #[test]
    fn threads_share_a_trace_and_the_number_of_ios() {
        let at = |ms: u64| TraceIo { at_ns: ms, kind: TraceKind::Read, offset_bytes: ms * 4096, bytes: 512 };
        let trace = Trace { ios: (0..5).map(at).collect() };
        let workload = Workload::from(Shape::random_read(4096)).with_outstanding(8);
        let offsets = |thread| {
            let thread = ThreadIndex { index: thread, count: 2 };
            let chooser = Chooser::new(&workload, 0..1 << 20, thread, &Arc::default());
            let mut stream = IoStream::new(&workload, chooser, Some(&trace), Some(5), 0..8);
            let mut offsets = Vec::new();
            while let NextStep::Io(io) = stream.next(0, |_| true) {
                offsets.push(io.offset / 4096);
            }
            offsets
        };
        assert_eq!((offsets(0), offsets(1)), (vec![0, 2, 4], vec![1, 3]));
    }
}
