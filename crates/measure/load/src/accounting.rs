//! Accounting of completed I/Os: the one place where latencies, counts, errors, verification and the state of the
//! ledger follow from a completion, whichever loop it came from.

use crate::clock::{now_ns, thread_cpu_ns};
use crate::lane::Lane;
use crate::live::{Progress, Shared, Totals};
use std::sync::atomic::Ordering::Relaxed;
use stream::MeasuredWindow;
use workload::TraceKind;

/// The accounting of one thread.
pub struct Accounting<'a> {
    pub shared: &'a Shared,
    progress: &'a Progress,
    totals: Totals,
    /// Set by the first completion in the measured part.
    cpu_start_ns: Option<u64>,
    /// CPU time used in the measured part, once that is closed.
    pub cpu_ns: u64,
    closed: bool,
}

/// The completions seen at one reading of the clock. A value of its own, so that the compiler keeps it in registers.
pub struct CompletionBatch<'a> {
    progress: &'a Progress,
    now_ns: u64,
    counts: bool,
    totals: Totals,
    /// Completions of this latency that were not yet added to the progress: those of a batch often agree.
    latency_ns: u64,
    completions: u64,
}

/// An I/O in flight.
#[derive(Clone, Copy, Debug)]
pub struct PendingIo {
    pub submitted_ns: u64,
    pub intended_ns: u64,
    pub offset: u64,
    pub bytes: u32,
    /// Index of its lane.
    pub lane: u16,
    /// A recorded sync takes a slot like any other I/O.
    pub kind: TraceKind,
}

impl PendingIo {
    /// Content of a slot before its first I/O.
    pub const NONE: PendingIo =
        PendingIo { submitted_ns: 0, intended_ns: 0, offset: 0, bytes: 0, lane: 0, kind: TraceKind::Read };
}

impl<'a> Accounting<'a> {
    pub fn new(shared: &'a Shared, progress: &'a Progress) -> Accounting<'a> {
        let totals = Totals::default();
        Accounting { shared, progress, totals, cpu_start_ns: None, cpu_ns: 0, closed: false }
    }

    /// The measured part, as far as it is known.
    #[inline]
    pub fn window(&self) -> MeasuredWindow {
        MeasuredWindow {
            from_ns: self.shared.from_ns.load(Relaxed),
            until_ns: self.shared.until_ns.load(Relaxed),
        }
    }

    /// Begins the completions seen at `now_ns`.
    #[inline]
    pub fn begin_batch(&mut self, lanes: &mut [Lane<'_>], now_ns: u64) -> CompletionBatch<'a> {
        let window = self.window();
        let counts = window.contains(now_ns);
        if counts {
            if self.cpu_start_ns.is_none() {
                self.cpu_start_ns = Some(thread_cpu_ns());
            }
            lanes.iter_mut().for_each(|lane| lane.recorder.advance_to(now_ns - window.from_ns));
        }
        let (progress, totals) = (self.progress, self.totals);
        CompletionBatch { progress, now_ns, counts, totals, latency_ns: 0, completions: 0 }
    }

    /// Ends a batch, and publishes the totals.
    #[inline]
    pub fn end_batch(&mut self, mut batch: CompletionBatch<'a>, in_flight: u32) {
        batch.flush_latencies();
        self.totals = Totals { in_flight: u64::from(in_flight), ..batch.totals };
        self.progress.publish(self.totals);
    }

    /// Whether the measured part has ended by `now_ns` and is not closed yet.
    #[inline]
    pub fn must_close(&self, now_ns: u64) -> bool {
        now_ns >= self.shared.until_ns.load(Relaxed) && !self.closed
    }

    /// Closes the measured part, unless that was done; its end.
    pub fn close(&mut self) -> Option<u64> {
        if self.closed {
            return None;
        }
        self.closed = true;
        self.cpu_ns = self.cpu_start_ns.map_or(0, |start_ns| thread_cpu_ns() - start_ns);
        Some(self.shared.until_ns.load(Relaxed).min(now_ns()))
    }

    /// Whether the run has ended by `now_ns`.
    #[inline]
    pub fn run_has_ended(&self, now_ns: u64) -> bool {
        now_ns >= self.shared.end_ns.load(Relaxed)
    }
}

impl CompletionBatch<'_> {
    /// Whether these completions are in the measured part.
    #[inline]
    pub fn counts(&self) -> bool {
        self.counts
    }

    /// Accounts for an I/O of `lane` that has completed with `result`, bytes or a negative errno, and frees its slot.
    /// `block` is what a read has filled. A `PLAIN` lane is spared the checks of what it does not use.
    #[inline(always)]
    pub fn complete<'b, const PLAIN: bool>(
        &mut self,
        lane: &mut Lane<'_>,
        slot: u32,
        io: &PendingIo,
        result: i32,
        block: impl FnOnce() -> &'b mut [u8],
    ) {
        let (latency_ns, write) = (self.now_ns - io.submitted_ns, io.kind != TraceKind::Read);
        lane.free_slot(slot, write, self.now_ns);
        if !PLAIN && io.kind == TraceKind::Sync {
            self.complete_sync(lane, result, latency_ns);
            return;
        }
        let succeeded = result == io.bytes as i32;
        if !PLAIN
            && write
            && let Some(ledger) = &lane.ledger
        {
            ledger.release(io.offset, succeeded);
        }
        if !succeeded {
            lane.recorder.failed(write, errno_of(result));
            lane.count_failure();
            return;
        }
        lane.failures = 0;
        self.totals.ios += 1;
        self.totals.bytes += u64::from(io.bytes);
        self.totals.stall_ns += latency_ns;
        if latency_ns != self.latency_ns {
            self.flush_latencies();
            self.latency_ns = latency_ns;
        }
        self.completions += 1;
        if !PLAIN && lane.checks_reads && !write {
            lane.check_read(block(), io.offset);
        }
        if self.counts {
            lane.recorder.last_ns = self.now_ns;
            lane.stream.counted += 1;
            lane.recorder.completed(write, io.bytes, latency_ns);
            if !PLAIN && let Some(responses) = lane.recorder.responses() {
                responses.record(write, self.now_ns.saturating_sub(io.intended_ns));
            }
        }
    }

    /// Accounts for a sync that has completed with 0 or a negative errno.
    pub fn complete_sync(&mut self, lane: &mut Lane<'_>, result: i32, latency_ns: u64) {
        if result < 0 {
            lane.recorder.sync_failed(-result);
            lane.count_failure();
        } else if self.counts {
            lane.recorder.record.synced(latency_ns);
        }
    }

    #[inline]
    fn flush_latencies(&mut self) {
        if self.completions > 0 {
            self.progress.add_latency(self.latency_ns, self.completions);
            self.completions = 0;
        }
    }
}

/// The errno of a short transfer: `ENODATA` where no byte was there, as beyond the end of a file that shrank.
fn errno_of(result: i32) -> i32 {
    match result {
        0 => libc::ENODATA,
        short if short > 0 => libc::EIO,
        failed => -failed,
    }
}
