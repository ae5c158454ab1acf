use crate::content::Writer;
use crate::ledger::Ledger;
use crate::recorder::Recorder;
use crate::ring::Op;
use std::sync::Arc;
use storage::Volume;
use stream::{IoRequest, IoStream, NextStep};
use workload::{Durability, SyncKind, TraceKind, Verification, Verify, Workload};

/// One workload in one thread: its [`IoStream`] decides what is issued next, the lane how, and it holds what was
/// measured.
pub struct Lane<'a> {
    pub stream: IoStream<'a>,
    pub writer: Writer,
    pub recorder: Recorder,
    pub ledger: Option<Arc<Ledger>>,
    /// Whether reads are checked as they complete: the workload only reads what a run with the same seed has written.
    pub checks_reads: bool,
    pub checked: Verification,
    write_op: Op,
    /// Of the workload's own syncs; those of a trace are data syncs.
    pub sync_op: Op,
    /// The volume that I/Os are cut into parts for.
    pub volume: Option<&'a Volume>,
    /// The ring's number of the region's first file.
    pub first_file: u16,
    /// Most queue entries that one I/O or sync takes.
    pub parts_max: usize,
    /// Since when a slot is free.
    pub free_since_ns: u64,
    /// Failures since the last success.
    pub failures: u32,
    gave_up: bool,
}

/// A lane gives up after this many failures without a success between them.
const FAILURES_MAX: u32 = 1000;
/// Damaged blocks that are reported one by one.
pub const FIRST_BAD_MAX: usize = 10;

impl<'a> Lane<'a> {
    pub fn new(
        workload: &Workload,
        stream: IoStream<'a>,
        writer: Writer,
        recorder: Recorder,
        ledger: Option<Arc<Ledger>>,
    ) -> Lane<'a> {
        let through = workload.shape.durability == Durability::WriteThrough;
        let fsync = workload.sync.is_some_and(|sync| sync.how == SyncKind::Fsync);
        Lane {
            stream,
            writer,
            recorder,
            ledger,
            checks_reads: workload.verify == Some(Verify::Content) && !workload.shape.writes(),
            checked: Verification::default(),
            write_op: if through { Op::WriteThrough } else { Op::Write },
            sync_op: if fsync { Op::Fsync } else { Op::Fdatasync },
            volume: None,
            first_file: 0,
            parts_max: 1,
            free_since_ns: 0,
            failures: 0,
            gave_up: false,
        }
    }

    /// Whether an I/O only ever waits for a free slot, and needs nothing but counting.
    pub fn is_plain(&self) -> bool {
        self.stream.is_plain()
            && self.recorder.record.responses.is_none()
            && self.volume.is_none()
            && self.ledger.is_none()
            && !self.checks_reads
    }

    /// Starts its schedule.
    pub fn begin(&mut self, now_ns: u64) {
        self.stream.begin(now_ns);
        self.free_since_ns = now_ns;
    }

    /// The next I/O of a plain lane; `None` while no slot is free, and at the end.
    #[inline]
    pub fn next_plain(&mut self, now_ns: u64) -> Option<IoRequest> {
        if self.gave_up { None } else { self.stream.next_plain(now_ns) }
    }

    /// The next step at `now_ns`. The caller must submit an I/O or sync: it counts as outstanding from now on.
    #[inline]
    pub fn next(&mut self, now_ns: u64) -> NextStep {
        if self.gave_up {
            return NextStep::Done;
        }
        // No two writes of one block are outstanding together.
        let ledger = self.ledger.as_deref();
        self.stream.next(now_ns, |offset| ledger.is_none_or(|ledger| ledger.claim(offset)))
    }

    /// The operation of an I/O.
    #[inline]
    pub fn op(&self, kind: TraceKind) -> Op {
        match kind {
            TraceKind::Read => Op::Read,
            TraceKind::Write => self.write_op,
            TraceKind::Sync => Op::Fdatasync,
        }
    }

    /// Records how long an open loop delayed an I/O that was due and had a free slot.
    #[inline]
    pub fn record_lateness(&mut self, intended_ns: u64, submitted_ns: u64) {
        let possible_ns = intended_ns.max(self.free_since_ns);
        if let Some(responses) = self.recorder.responses() {
            responses.late_ns_max = responses.late_ns_max.max(submitted_ns.saturating_sub(possible_ns));
        }
    }

    /// Records the I/Os of an open loop that still wait at the end of the measured part. `in_flight` are slots and the
    /// times when their I/Os should start.
    pub fn record_waiting(&mut self, until_ns: u64, in_flight: impl Iterator<Item = (u32, u64)>) {
        if let Some(responses) = self.recorder.record.responses.as_mut() {
            responses.add_waiting(self.stream.waiting(until_ns, in_flight));
        }
    }

    /// Frees the slot of an I/O that has completed or failed.
    #[inline]
    pub fn free_slot(&mut self, slot: u32, write: bool, now_ns: u64) {
        if !self.stream.has_free_slot() {
            self.free_since_ns = now_ns;
        }
        self.stream.completed(slot, !write);
    }

    /// A sync has completed: writes that waited for it may continue.
    pub fn synced(&mut self, now_ns: u64) {
        self.free_since_ns = now_ns;
        self.stream.synced();
    }

    /// Ends the lane: gives back the claims of writes that still wait for a sync.
    pub fn end(&mut self) {
        let Some(ledger) = &self.ledger else { return };
        let writes = self.stream.take_held().filter(|io| io.kind == TraceKind::Write);
        writes.for_each(|io| ledger.unclaim(io.offset));
    }

    /// Counts a failure; the lane gives up after many of them.
    #[cold]
    pub fn count_failure(&mut self) {
        self.failures += 1;
        self.gave_up |= self.failures >= FAILURES_MAX;
    }

    /// Compares a block that was read with what a run with the same seed has written.
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

    /// Whether it issues nothing more and waits for nothing: its count is reached, its trace at an end, or only failures
    /// were left.
    pub fn is_over(&self) -> bool {
        self.gave_up || self.stream.is_finished()
    }
}
