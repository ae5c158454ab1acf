//! Tracks the progress of recovery; it can be read while the store is opened and afterwards.
//!
//! ```text
//! begin ── begin_reading_log ── begin_writing_pages ── end          progress, from any thread, at any time
//! ```
//! It reads the I/O counters of the store (`counters`), so it adds no work to an I/O.

use super::progress::{RecoveryEnd, RecoveryPhase, RecoveryProgress};
use crate::options::Recovery;
use pagestore_counters::Publisher;
use pagestore_disk::FileId;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The interval of progress reports while a store is opened.
const REPORT_EVERY: Duration = Duration::from_millis(200);

/// See the module.
pub(crate) struct RecoveryTracker {
    counters: Arc<Publisher>,
    recovery: Recovery,
    pub(crate) begun: Instant,
    at: Mutex<PhaseState>,
    end: OnceLock<RecoveryEnd>,
}

/// A phase, and its amount of work.
#[derive(Clone, Copy)]
struct PhaseState {
    phase: RecoveryPhase,
    begun: Instant,
    /// Bytes read from the log, or written to the data file, before the phase.
    bytes_before: u64,
    bytes_total: u64,
    pages: u64,
    page_bytes: u64,
}

impl RecoveryTracker {
    /// For a store that is about to be opened.
    pub(crate) fn begin(counters: &Arc<Publisher>, recovery: Recovery) -> Arc<Self> {
        let begun = Instant::now();
        let at = PhaseState {
            phase: RecoveryPhase::ReadingLog,
            begun,
            bytes_before: 0,
            bytes_total: 0,
            pages: 0,
            page_bytes: 1,
        };
        let counters = Arc::clone(counters);
        Arc::new(Self { counters, recovery, begun, at: Mutex::new(at), end: OnceLock::new() })
    }

    /// For a store that was just created: there is nothing to recover.
    pub(crate) fn finished(counters: &Arc<Publisher>) -> Arc<Self> {
        let tracker = Self::begin(counters, Recovery::default());
        let _ = tracker.end.set(RecoveryEnd::default());
        tracker
    }

    /// The phase of reading the log begins; it reads at most `bytes`.
    pub(super) fn begin_reading_log(&self, bytes: u64) {
        self.enter(RecoveryPhase::ReadingLog, |at| at.bytes_total = bytes);
    }

    /// The phase of writing pages begins.
    pub(super) fn begin_writing_pages(&self, pages: u64, page_bytes: u64) {
        self.enter(RecoveryPhase::WritingPages, |at| (at.pages, at.page_bytes) = (pages, page_bytes));
    }

    /// Corrects the number of pages.
    pub(crate) fn set_pages(&self, pages: u64) {
        self.at().pages = pages;
    }

    /// All is redone, written and synced. Later calls have no effect.
    pub(crate) fn end(&self) {
        let pages = self.at().pages;
        self.end.get_or_init(|| {
            let [control, data, log] = self.counters.file_statistics().map(|file| file.counters);
            // A store that is open already also reads pages for its users.
            let pages_read = (self.recovery != Recovery::Instant).then_some(data.read);
            let read = || [control.read, log.read].into_iter().chain(pages_read);
            RecoveryEnd {
                took: self.begun.elapsed(),
                pages,
                reads: read().map(|ops| ops.count).sum(),
                read_bytes: read().map(|ops| ops.bytes).sum(),
                writes: data.write.count,
                write_bytes: data.write.bytes,
                syncs: data.sync.known().map_or(0, |ops| ops.count),
            }
        });
    }

    /// The totals of recovery, once it has ended.
    pub(crate) fn ended(&self) -> Option<RecoveryEnd> {
        self.end.get().copied()
    }

    /// The current progress.
    pub(crate) fn progress(&self) -> RecoveryProgress {
        let at = *self.at();
        let bytes = self.bytes(at.phase).saturating_sub(at.bytes_before);
        let progress = RecoveryProgress {
            phase: at.phase,
            pages: 0,
            pages_left: 0,
            bytes,
            bytes_total: at.bytes_total.max(bytes),
            elapsed: at.begun.elapsed(),
        };
        if at.phase == RecoveryPhase::ReadingLog {
            return progress;
        }
        // Until the sync succeeds, at least one page counts as not done.
        let unsynced = at.pages.min(1);
        let left = at.pages.saturating_sub(bytes / at.page_bytes).max(unsynced);
        RecoveryProgress {
            pages: at.pages,
            pages_left: if self.end.get().is_some() { 0 } else { left },
            bytes_total: (at.pages * at.page_bytes).max(bytes),
            ..progress
        }
    }

    /// Runs `open` on another thread, and calls `report` on this one meanwhile. If no thread can be started, runs
    /// `open` here without reports.
    pub(crate) fn report_while<T: Send>(
        &self,
        open: impl FnOnce() -> T + Send,
        report: &mut impl FnMut(RecoveryProgress),
    ) -> T {
        let open = Mutex::new(Some(open));
        let opened = thread::scope(|scope| {
            let (done, waiting) = mpsc::channel::<()>();
            let begun = thread::Builder::new().spawn_scoped(scope, || {
                let _done = done;
                let open = open.lock().unwrap_or_else(PoisonError::into_inner).take();
                open.map(|open| open())
            });
            let opening = begun.ok()?;
            while waiting.recv_timeout(REPORT_EVERY) == Err(RecvTimeoutError::Timeout) {
                report(self.progress());
            }
            opening.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        opened.unwrap_or_else(|| {
            let open = open.into_inner().unwrap_or_else(PoisonError::into_inner);
            open.expect("it has not been begun")()
        })
    }

    fn enter(&self, phase: RecoveryPhase, set: impl FnOnce(&mut PhaseState)) {
        let mut at = self.at();
        (at.phase, at.begun, at.bytes_before) = (phase, Instant::now(), self.bytes(phase));
        set(&mut at);
    }

    /// The bytes that a phase counts.
    fn bytes(&self, phase: RecoveryPhase) -> u64 {
        match phase {
            RecoveryPhase::ReadingLog => self.counters.file(FileId::Log).read_bytes(),
            RecoveryPhase::WritingPages => self.counters.file(FileId::Data).write_bytes(),
        }
    }

    fn at(&self) -> MutexGuard<'_, PhaseState> {
        // No invariant connects the fields, so the value is usable after a panic.
        self.at.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
