use crate::content::Writer;
use crate::ledger::Ledger;
use crate::recorder::Recorder;
use std::sync::Arc;
use storage::Laid;
use storage::ring::Op;
use stream::{Ask, Stream, Want};
use workload::{Durability, SyncKind, TraceKind, Verify, Workload};

/// One workload in one thread: its [`Stream`] says what comes next; here is how that is done, and what came of it.
pub struct Lane<'a> {
    /// Which of the jobs.
    pub job: usize,
    pub stream: Stream<'a>,
    pub writer: Writer,
    pub recorder: Recorder,
    pub ledger: Option<Arc<Ledger>>,
    /// Reads are checked as they come: the workload only reads what a run with the same seed wrote.
    pub checks_reads: bool,
    pub checked: workload::Verification,
    write_op: Op,
    /// Of the workload's own syncs; a trace has data syncs.
    pub sync_op: Op,
    /// The members that its I/Os are cut for, and the ring's number of the first.
    pub laid: Option<&'a Laid>,
    pub first_file: u16,
    /// Most entries of the ring that one I/O or sync of it takes.
    pub parts_max: usize,
    /// Since when there is room for another I/O.
    pub room_ns: u64,
    pub failures: u32,
    pub done: bool,
}

/// A lane ends after this many failures without a success between them.
const FAILURES_MAX: u32 = 1000;
/// So many damaged blocks are told one by one.
pub const FIRST_BAD_MAX: usize = 10;

impl<'a> Lane<'a> {
    /// The lane that those parts make.
    pub fn new(
        job: usize,
        workload: &Workload,
        stream: Stream<'a>,
        writer: Writer,
        recorder: Recorder,
        ledger: Option<Arc<Ledger>>,
    ) -> Lane<'a> {
        let through = workload.shape.durability == Durability::WriteThrough;
        let fsync = workload.sync.is_some_and(|sync| sync.how == SyncKind::Fsync);
        Lane {
            job,
            stream,
            writer,
            recorder,
            ledger,
            checks_reads: workload.verify == Some(Verify::Content) && !workload.shape.writes(),
            checked: workload::Verification::default(),
            write_op: if through { Op::WriteThrough } else { Op::Write },
            sync_op: if fsync { Op::Fsync } else { Op::Fdatasync },
            laid: None,
            first_file: 0,
            parts_max: 1,
            room_ns: 0,
            failures: 0,
            done: false,
        }
    }

    /// Whether it asks for the next I/O whenever there is room, and nothing else is to be looked at.
    pub fn is_plain(&self) -> bool {
        self.stream.is_plain()
            && self.recorder.record.responses.is_none()
            && self.laid.is_none()
            && self.ledger.is_none()
            && !self.checks_reads
    }

    /// What a plain lane asks for next; nothing while there is no room, or once it is done.
    #[inline]
    pub fn want_plain(&mut self, now_ns: u64) -> Option<Ask> {
        if self.done { None } else { self.stream.next_plain(now_ns) }
    }

    /// What to do at `now_ns`. An I/O or sync that is wanted must be submitted: the lane counts it as
    /// outstanding from here on.
    #[inline]
    pub fn want(&mut self, now_ns: u64) -> Want {
        if self.done {
            return Want::Done;
        }
        // No two writes of one place are outstanding together.
        let ledger = self.ledger.as_deref();
        self.stream.next(now_ns, |offset| ledger.is_none_or(|ledger| ledger.claim(offset)))
    }

    /// How that I/O is done.
    #[inline]
    pub fn op(&self, kind: TraceKind) -> Op {
        match kind {
            TraceKind::Read => Op::Read,
            TraceKind::Write => self.write_op,
            TraceKind::Sync => Op::Fdatasync,
        }
    }

    /// An I/O came back, well or not: its slot is free again.
    #[inline]
    pub fn returned(&mut self, slot: u32, write: bool, now_ns: u64) {
        if !self.stream.has_room() {
            self.room_ns = now_ns;
        }
        self.stream.returned(slot, !write);
    }

    /// A sync came back: what waited for it may go.
    pub fn synced(&mut self, now_ns: u64) {
        self.room_ns = now_ns;
        self.stream.synced();
    }

    /// The lane ends: writes that still wait for a sync were not done.
    pub fn end(&mut self) {
        let Some(ledger) = &self.ledger else { return };
        let unclaim = |ask: Ask| ledger.unclaim(ask.offset);
        self.stream.end().filter(|ask| ask.kind == TraceKind::Write).for_each(unclaim);
    }

    /// Counts a failure; the lane ends where nothing else comes back.
    #[cold]
    pub fn failed(&mut self) {
        self.failures += 1;
        self.done |= self.failures >= FAILURES_MAX;
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
}
