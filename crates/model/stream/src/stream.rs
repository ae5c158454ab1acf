use crate::{Choice, Chooser, Pace};
use std::collections::VecDeque;
use std::ops::Range;
use workload::{Trace, TraceKind, Workload};

/// The I/Os of one thread of a workload, as it asks for them: who runs it asks what is [`next`](Stream::next), does it,
/// and tells what came back.
///
/// ```text
/// next ──> Io       do it ──────────────> returned
///     ──> Sync     make durable ───────> synced
///     ──> Later    ask again then
///     ──> Completion  ask again when something came back        ──> Done
/// ```
#[derive(Clone, Debug)]
pub struct Stream<'a> {
    /// Where I/Os go, and every random choice.
    pub chooser: Chooser,
    /// When they may or must go.
    pub pace: Pace,
    replay: Option<Replay<'a>>,
    syncs: Option<Syncs>,
    /// Writes that wait for a sync.
    held: VecDeque<Ask>,
    /// Slots without an I/O. A stack: what completed last is used first, while its buffer is in the cache.
    free: Vec<u32>,
    in_flight: u32,
    /// I/Os that count towards the most that are asked for, kept by who runs it.
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

/// Where the writes of a thread stand between two syncs.
#[derive(Clone, Copy, Debug)]
struct Syncs {
    every: u32,
    /// Writes since the last sync, and those of them that are outstanding.
    writes: u32,
    writing: u32,
    syncing: bool,
}

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// This I/O.
    Io(Ask),
    /// Make durable what was written.
    Sync,
    /// Nothing before that time.
    Later(u64),
    /// Nothing before something comes back.
    Completion,
    /// Nothing more.
    Done,
}

/// An I/O that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// Which of those that can be outstanding.
    pub slot: u32,
    /// Read, write, or a recorded sync.
    pub kind: TraceKind,
    /// Of its first byte.
    pub offset: u64,
    /// How many; of a sync none.
    pub bytes: u32,
    /// When it was meant to start.
    pub intended_ns: u64,
}

/// A write looks so often for a place that it may have, then waits for something to come back.
const CLAIMS_MAX: u32 = 64;

impl<'a> Stream<'a> {
    /// Thread `at` of `threads`. `slots` number the I/Os that can be outstanding; `trace` is asked for in place of chosen
    /// I/Os; `ios_max` is the most of all threads.
    pub fn new(
        workload: &Workload,
        chooser: Chooser,
        (at, threads): (u32, u32),
        trace: Option<&'a Trace>,
        ios_max: Option<u64>,
        slots: Range<u32>,
    ) -> Stream<'a> {
        let part =
            |most: u64| most / u64::from(threads) + u64::from(u64::from(at) < most % u64::from(threads));
        let sync =
            |sync: workload::SyncEvery| Syncs { every: sync.writes, writes: 0, writing: 0, syncing: false };
        Stream {
            chooser,
            pace: Pace::new(workload, at, threads),
            replay: trace.map(|trace| Replay { trace, next: at as usize, step: threads as usize }),
            syncs: workload.sync.map(sync),
            held: VecDeque::new(),
            free: slots.rev().collect(),
            in_flight: 0,
            counted: 0,
            ios_max: ios_max.map_or(u64::MAX, part),
        }
    }

    /// Its times begin now.
    pub fn begin(&mut self, now_ns: u64) {
        self.pace.begin(now_ns, &mut self.chooser.random);
    }

    /// Whether there is nothing to wait for but room: [`next_plain`](Stream::next_plain) says what comes.
    pub fn is_plain(&self) -> bool {
        self.pace.is_free() && self.syncs.is_none() && self.replay.is_none()
    }

    /// Whether another I/O can be outstanding.
    #[inline]
    pub fn has_room(&self) -> bool {
        !self.free.is_empty()
    }

    /// How many more can be.
    pub fn room(&self) -> usize {
        self.free.len()
    }

    /// Of a plain stream: the next I/O, if there is room for one. It must be done.
    #[inline]
    pub fn next_plain(&mut self, now_ns: u64) -> Option<Ask> {
        if self.counted + u64::from(self.in_flight) >= self.ios_max {
            return None;
        }
        let slot = self.free.pop()?;
        self.in_flight += 1;
        Some(ask_for(self.chooser.choose(slot), slot, now_ns))
    }

    /// What comes at `now_ns`; an I/O or sync must be done. A write goes only where `claim` allows it.
    #[inline]
    pub fn next(&mut self, now_ns: u64, mut claim: impl FnMut(u64) -> bool) -> Want {
        if self.counted >= self.ios_max {
            return Want::Done;
        }
        if self.counted + u64::from(self.in_flight) >= self.ios_max {
            return Want::Completion;
        }
        if self.is_sync_due() {
            return Want::Sync;
        }
        let Some(slot) = self.free.last().copied() else { return Want::Completion };
        if self.replay.is_some() {
            return self.next_recorded(slot, now_ns);
        }
        if self.may_write()
            && let Some(held) = self.held.pop_front()
        {
            return self.asked(Ask { slot, ..held });
        }
        // A write that waits has the place of an outstanding I/O.
        while self.held.len() < self.free.len() {
            let mut intended_ns = now_ns;
            if !self.pace.is_free() {
                let due_ns = self.pace.due_ns(0);
                if due_ns > now_ns {
                    return Want::Later(due_ns);
                }
                intended_ns = if self.pace.is_open() { due_ns } else { now_ns };
            }
            let mut choice = self.chooser.choose(slot);
            let mut claims = 0;
            while choice.write && !claim(choice.offset) {
                claims += 1;
                if claims == CLAIMS_MAX {
                    return Want::Completion;
                }
                choice = Choice { write: true, ..self.chooser.choose(slot) };
            }
            if !self.pace.is_free() {
                self.pace.take(now_ns, choice.bytes, &mut self.chooser.random);
            }
            let ask = ask_for(choice, slot, intended_ns);
            if !choice.write || self.may_write() {
                return self.asked(ask);
            }
            // It waits for the sync; reads go on.
            self.held.push_back(ask);
        }
        Want::Completion
    }

    fn next_recorded(&mut self, slot: u32, now_ns: u64) -> Want {
        let Some(replay) = &mut self.replay else { return Want::Done };
        let Some(io) = replay.trace.ios.get(replay.next) else {
            return if self.in_flight > 0 { Want::Completion } else { Want::Done };
        };
        let mut intended_ns = now_ns;
        if self.pace.is_open() {
            intended_ns = self.pace.due_ns(io.at_ns);
            if intended_ns > now_ns {
                return Want::Later(intended_ns);
            }
        }
        replay.next += replay.step;
        let bytes = if io.kind == TraceKind::Sync { 0 } else { io.bytes };
        self.asked(Ask { slot, kind: io.kind, offset: io.offset_bytes, bytes, intended_ns })
    }

    #[inline]
    fn asked(&mut self, ask: Ask) -> Want {
        self.free.pop();
        self.in_flight += 1;
        if let Some(syncs) = &mut self.syncs
            && ask.kind != TraceKind::Read
        {
            syncs.writes += 1;
            syncs.writing += 1;
        }
        Want::Io(ask)
    }

    /// A sync is due once its writes are all back.
    #[inline]
    fn is_sync_due(&mut self) -> bool {
        let Some(syncs) = &mut self.syncs else { return false };
        let due = syncs.writes >= syncs.every && syncs.writing == 0 && !syncs.syncing;
        syncs.syncing |= due;
        due
    }

    /// Writes wait while a group of them is complete and not yet synced.
    #[inline]
    fn may_write(&self) -> bool {
        self.syncs.as_ref().is_none_or(|syncs| syncs.writes < syncs.every)
    }

    /// An I/O came back, well or not: its slot is free again.
    #[inline]
    pub fn returned(&mut self, slot: u32, read: bool) {
        self.free.push(slot);
        self.in_flight -= 1;
        if let Some(syncs) = &mut self.syncs
            && !read
        {
            syncs.writing -= 1;
        }
    }

    /// A sync came back: what waited for it may go.
    pub fn synced(&mut self) {
        if let Some(syncs) = &mut self.syncs {
            (syncs.writes, syncs.syncing) = (0, false);
        }
    }

    /// Its count is done, or its trace at an end.
    pub fn is_finished(&self) -> bool {
        let played = |replay: &Replay<'_>| replay.next >= replay.trace.ios.len() && self.in_flight == 0;
        self.counted >= self.ios_max || self.replay.as_ref().is_some_and(played)
    }

    /// It ends: the writes that still wait for a sync are not done.
    pub fn end(&mut self) -> impl Iterator<Item = Ask> + '_ {
        self.held.drain(..)
    }

    /// Of an open loop at the end of its measured part: I/Os that were due before `until_ns` and did not come back, and
    /// how long the oldest has waited. `intended_ns` says when that of a slot was meant to start, if one ever was.
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

    /// How many I/Os are due before `until_ns` and were not asked for, and the oldest.
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
                let held_ns = self.held.front().map_or(first_ns, |ask| ask.intended_ns);
                (count + self.held.len() as u64, first_ns.min(held_ns))
            }
        }
    }
}

#[inline]
fn ask_for(choice: Choice, slot: u32, intended_ns: u64) -> Ask {
    let kind = if choice.write { TraceKind::Write } else { TraceKind::Read };
    Ask { slot, kind, offset: choice.offset, bytes: choice.bytes, intended_ns }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use workload::{Arrival, Shape, SyncEvery, SyncKind, TraceIo};

    fn stream<'a>(workload: &Workload, trace: Option<&'a Trace>, ios_max: Option<u64>) -> Stream<'a> {
        let chooser = Chooser::new(workload, 0, 1 << 20, 0, 1, &Arc::default());
        let mut stream = Stream::new(workload, chooser, (0, 1), trace, ios_max, 0..workload.outstanding);
        stream.begin(0);
        stream
    }

    fn io(want: Want) -> Ask {
        let Want::Io(ask) = want else { panic!("{want:?} is no I/O") };
        ask
    }

    #[test]
    fn a_closed_loop_asks_until_it_has_as_many_outstanding_as_it_may() {
        let mut plain = stream(&Workload::from(Shape::random_read(4096)).with_outstanding(2), None, Some(3));
        assert!(plain.is_plain());
        let (first, second) = (plain.next_plain(7).unwrap(), plain.next_plain(7).unwrap());
        assert_eq!((first.slot, second.slot, first.intended_ns), (0, 1, 7));
        assert_eq!(plain.next_plain(7), None, "no room");
        plain.returned(second.slot, true);
        plain.counted = 2;
        assert_eq!(plain.next_plain(7), None, "one of three is still outstanding");
        plain.returned(first.slot, true);
        assert_eq!(plain.next_plain(8).unwrap().slot, 0, "what came back last goes first");
    }

    #[test]
    fn writes_wait_for_their_sync_and_the_sync_for_its_writes() {
        let sync = Some(SyncEvery { writes: 2, how: SyncKind::Fsync });
        let workload = Workload { sync, ..Workload::from(Shape::random_write(4096)).with_outstanding(4) };
        let mut writes = stream(&workload, None, None);
        let (first, second) = (io(writes.next(0, |_| true)), io(writes.next(0, |_| true)));
        assert_eq!(writes.next(0, |_| true), Want::Completion, "the group is complete");
        writes.returned(first.slot, false);
        assert_eq!(writes.next(0, |_| true), Want::Completion, "one of it is outstanding");
        writes.returned(second.slot, false);
        assert_eq!(writes.next(0, |_| true), Want::Sync);
        assert_eq!(writes.next(0, |_| true), Want::Completion, "one sync at a time");
        writes.synced();
        assert_eq!(io(writes.next(0, |_| true)).kind, TraceKind::Write);
        assert_eq!(writes.end().count(), 3, "those that were chosen and held back");
    }

    #[test]
    fn a_write_goes_only_where_it_may() {
        let workload = Workload::from(Shape::random_write(4096)).with_outstanding(4);
        let mut writes = stream(&workload, None, None);
        assert_eq!(writes.next(0, |_| false), Want::Completion);
        assert!(io(writes.next(0, |offset| offset >= 512 << 10)).offset >= 512 << 10);
    }

    #[test]
    fn an_open_loop_goes_by_its_times_and_tells_who_waits() {
        let arrival = Arrival::Constant { iops: 1000.0 };
        let workload = Workload { arrival, ..Workload::from(Shape::random_read(4096)).with_outstanding(2) };
        let mut open = stream(&workload, None, None);
        assert_eq!(io(open.next(500_000, |_| true)).intended_ns, 0);
        assert_eq!(open.next(500_000, |_| true), Want::Later(1_000_000));
        let late = io(open.next(1_700_000, |_| true));
        assert_eq!(late.intended_ns, 1_000_000);
        open.returned(0, true);
        // Those due at 2, 3 and 4 ms were not asked for, and the one of slot 1 is not back.
        let slots = [(0, 0), (1, late.intended_ns)];
        assert_eq!(open.waiting(5_000_000, slots.into_iter()), (4, 4_000_000));
    }

    #[test]
    fn threads_share_a_trace_and_what_is_counted() {
        let at = |ms: u64| TraceIo { at_ns: ms, kind: TraceKind::Read, offset_bytes: ms * 4096, bytes: 512 };
        let trace = Trace { ios: (0..5).map(at).collect() };
        let workload = Workload::from(Shape::random_read(4096)).with_outstanding(8);
        let offsets = |thread| {
            let chooser = Chooser::new(&workload, 0, 1 << 20, thread, 2, &Arc::default());
            let mut of = Stream::new(&workload, chooser, (thread, 2), Some(&trace), Some(5), 0..8);
            let mut asked = Vec::new();
            while let Want::Io(ask) = of.next(0, |_| true) {
                asked.push(ask.offset / 4096);
            }
            asked
        };
        assert_eq!((offsets(0), offsets(1)), (vec![0, 2, 4], vec![1, 3]));
    }
}
