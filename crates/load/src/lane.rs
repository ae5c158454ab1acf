use crate::content::Writer;
use crate::ledger::Ledger;
use crate::recorder::Recorder;
use std::collections::VecDeque;
use std::sync::Arc;
use storage::Laid;
use storage::ring::Op;
use stream::Pace;
use stream::{Choice, Chooser};
use workload::{Durability, SyncKind, Trace, TraceKind, Verify};

/// One workload in one thread: decides what to ask for next, and keeps account of what came back.
pub struct Lane<'a> {
    /// Which of the jobs, and which of its threads.
    pub job: usize,
    pub chooser: Chooser,
    pub pace: Pace,
    pub writer: Writer,
    pub recorder: Recorder,
    pub trace: Option<Replay<'a>>,
    pub ledger: Option<Arc<Ledger>>,
    /// Reads are checked as they come: the workload only reads what a run with the same seed wrote.
    pub checks_reads: bool,
    pub checked: workload::Verification,
    pub write_op: Op,
    /// The members that its I/Os are cut for, and the ring's number of the first.
    pub laid: Option<&'a Laid>,
    pub first_file: u16,
    /// Most entries of the ring that one I/O or sync of it takes.
    pub parts_max: usize,
    syncs: Option<Syncs>,
    /// Writes that wait for a sync.
    held: VecDeque<Ask>,
    /// Slots without an I/O. A stack: what completed last is used first, while its buffer is in the cache.
    pub free: Vec<u32>,
    pub in_flight: u32,
    ios_max: u64,
    /// Since when there is room for another I/O.
    pub room_ns: u64,
    pub failures: u32,
    pub done: bool,
}

/// The recorded I/Os of one thread: every `step`-th of the trace.
pub struct Replay<'a> {
    pub trace: &'a Trace,
    pub next: usize,
    pub step: usize,
}

/// Where the writes of a lane stand between two syncs.
struct Syncs {
    op: Op,
    every: u32,
    /// Writes since the last sync, and those of them that are outstanding.
    writes: u32,
    writing: u32,
    syncing: bool,
}

/// What a lane wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// This I/O, which was meant to start then.
    Io(Ask),
    /// Make durable what was written.
    Sync(Op),
    /// Nothing before that time.
    Later(u64),
    /// Nothing before a completion.
    Completion,
    /// Nothing more.
    Done,
}

/// An I/O to be submitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    pub slot: u32,
    pub op: Op,
    pub offset: u64,
    pub bytes: u32,
    pub intended_ns: u64,
}

impl Ask {
    pub fn writes(&self) -> bool {
        self.op != Op::Read
    }
}

/// A lane ends after this many failures without a success between them.
const FAILURES_MAX: u32 = 1000;
/// So many damaged blocks are told one by one.
pub const FIRST_BAD_MAX: usize = 10;
/// A write looks so often for a place that no other write is outstanding on, then waits for a completion.
const CLAIMS_MAX: u32 = 64;

impl<'a> Lane<'a> {
    /// The lane that those parts make; `slots` are its own.
    #[expect(clippy::too_many_arguments, reason = "each is a part of its own, named where the lane is built")]
    pub fn new(
        job: usize,
        workload: &workload::Workload,
        chooser: Chooser,
        pace: Pace,
        writer: Writer,
        recorder: Recorder,
        trace: Option<Replay<'a>>,
        ledger: Option<Arc<Ledger>>,
        ios_max: Option<u64>,
        slots: std::ops::Range<u32>,
    ) -> Lane<'a> {
        let syncs = workload.sync.map(|sync| Syncs {
            op: match sync.how {
                SyncKind::Fsync => Op::Fsync,
                SyncKind::Fdatasync => Op::Fdatasync,
            },
            every: sync.writes,
            writes: 0,
            writing: 0,
            syncing: false,
        });
        let through = workload.shape.durability == Durability::WriteThrough;
        Lane {
            job,
            chooser,
            pace,
            writer,
            recorder,
            trace,
            ledger,
            checks_reads: workload.verify == Some(Verify::Content) && !workload.shape.writes(),
            checked: workload::Verification::default(),
            write_op: if through { Op::WriteThrough } else { Op::Write },
            laid: None,
            first_file: 0,
            parts_max: 1,
            syncs,
            held: VecDeque::new(),
            free: slots.rev().collect(),
            in_flight: 0,
            ios_max: ios_max.unwrap_or(u64::MAX),
            room_ns: 0,
            failures: 0,
            done: false,
        }
    }

    /// Whether it asks for the next I/O whenever there is room, and nothing else is to be looked at.
    pub fn is_plain(&self) -> bool {
        let waits = !self.pace.is_free() || self.syncs.is_some() || self.recorder.response.is_some();
        !waits && self.laid.is_none() && self.trace.is_none() && self.ledger.is_none() && !self.checks_reads
    }

    /// What a plain lane asks for next; nothing while there is no room, or once it is done.
    #[inline]
    pub fn want_plain(&mut self, now_ns: u64) -> Option<Ask> {
        if self.done || self.recorder.counted + u64::from(self.in_flight) >= self.ios_max {
            return None;
        }
        let slot = self.free.pop()?;
        self.in_flight += 1;
        let choice = self.chooser.choose(slot);
        let op = if choice.write { self.write_op } else { Op::Read };
        Some(Ask { slot, op, offset: choice.offset, bytes: choice.bytes, intended_ns: now_ns })
    }

    /// What to do at `now_ns`. An I/O or sync that is wanted must be submitted: the lane counts it as
    /// outstanding from here on.
    #[inline]
    pub fn want(&mut self, now_ns: u64) -> Want {
        if self.done || self.recorder.counted >= self.ios_max {
            return Want::Done;
        }
        if self.recorder.counted + u64::from(self.in_flight) >= self.ios_max {
            return Want::Completion;
        }
        if let Some(op) = self.due_sync() {
            return Want::Sync(op);
        }
        let Some(slot) = self.free.last().copied() else { return Want::Completion };
        if self.trace.is_some() {
            return self.want_recorded(slot, now_ns);
        }
        if !self.held.is_empty() && self.may_write() {
            let held = self.held.pop_front().expect("just seen");
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
            if let Some(ledger) = &self.ledger {
                let mut claims = 0;
                // No two writes of one place are outstanding together.
                while choice.write && !ledger.claim(choice.offset) {
                    claims += 1;
                    if claims == CLAIMS_MAX {
                        return Want::Completion;
                    }
                    choice = Choice { write: true, ..self.chooser.choose(slot) };
                }
            }
            if !self.pace.is_free() {
                self.pace.take(now_ns, choice.bytes, &mut self.chooser.random);
            }
            let op = if choice.write { self.write_op } else { Op::Read };
            let ask = Ask { slot, op, offset: choice.offset, bytes: choice.bytes, intended_ns };
            if !choice.write || self.may_write() {
                return self.asked(ask);
            }
            // It waits for the sync; reads go on.
            self.held.push_back(ask);
        }
        Want::Completion
    }

    fn want_recorded(&mut self, slot: u32, now_ns: u64) -> Want {
        let Some(replay) = &mut self.trace else { return Want::Done };
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
        let op = match io.kind {
            TraceKind::Read => Op::Read,
            TraceKind::Write => self.write_op,
            TraceKind::Sync => Op::Fdatasync,
        };
        replay.next += replay.step;
        let bytes = if io.kind == TraceKind::Sync { 0 } else { io.bytes };
        self.asked(Ask { slot, op, offset: io.offset_bytes, bytes, intended_ns })
    }

    #[inline]
    fn asked(&mut self, ask: Ask) -> Want {
        self.free.pop();
        self.in_flight += 1;
        if let Some(syncs) = &mut self.syncs
            && ask.writes()
        {
            syncs.writes += 1;
            syncs.writing += 1;
        }
        Want::Io(ask)
    }

    /// A sync is due once its writes are all back.
    #[inline]
    fn due_sync(&mut self) -> Option<Op> {
        let syncs = self.syncs.as_mut()?;
        let due = syncs.writes >= syncs.every && syncs.writing == 0 && !syncs.syncing;
        due.then(|| {
            syncs.syncing = true;
            syncs.op
        })
    }

    /// Writes wait while a group of them is complete and not yet synced.
    fn may_write(&self) -> bool {
        self.syncs.as_ref().is_none_or(|syncs| syncs.writes < syncs.every)
    }

    /// An I/O came back, well or not: its slot is free again.
    #[inline]
    pub fn returned(&mut self, slot: u32, write: bool, now_ns: u64) {
        if self.free.is_empty() {
            self.room_ns = now_ns;
        }
        self.free.push(slot);
        self.in_flight -= 1;
        if let Some(syncs) = &mut self.syncs
            && write
        {
            syncs.writing -= 1;
        }
    }

    /// A sync came back: what waited for it may go.
    pub fn synced(&mut self, now_ns: u64) {
        self.room_ns = now_ns;
        if let Some(syncs) = &mut self.syncs {
            (syncs.writes, syncs.syncing) = (0, false);
        }
    }

    /// The lane ends: writes that still wait for a sync were not done.
    pub fn end(&mut self) {
        let Some(ledger) = &self.ledger else { return };
        self.held.drain(..).filter(Ask::writes).for_each(|ask| ledger.unclaim(ask.offset));
    }

    /// Counts a failure; the lane ends where nothing else comes back.
    #[cold]
    pub fn failed(&mut self) {
        self.failures += 1;
        self.done |= self.failures >= FAILURES_MAX;
    }

    /// Its count is done, or its trace at an end.
    pub fn is_finished(&self) -> bool {
        let played = |replay: &Replay<'_>| replay.next >= replay.trace.ios.len() && self.in_flight == 0;
        self.recorder.counted >= self.ios_max || self.trace.as_ref().is_some_and(played)
    }

    /// Checks a block that was read against what a run with the same seed wrote.
    #[cold]
    pub fn check_read(&mut self, block: &mut [u8], offset: u64) {
        let Some(ledger) = &self.ledger else { return };
        self.checked.blocks += 1;
        if let Some(bad) = ledger.check(block, offset, 0) {
            self.checked.bad += 1;
            if self.checked.first_bad.len() < FIRST_BAD_MAX {
                self.checked.first_bad.push(bad);
            }
        }
    }

    /// Ended because only failures came back.
    pub fn gave_up(&self) -> bool {
        self.failures >= FAILURES_MAX
    }

    /// Of an open loop: how many I/Os are due before `until_ns` and were not asked for, and the oldest.
    pub fn overdue(&mut self, until_ns: u64) -> (u64, u64) {
        match &self.trace {
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
