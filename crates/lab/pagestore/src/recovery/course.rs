//! Where recovery is, kept by who recovers and read by who opens and, afterwards, by who has the store.
//!
//! ```text
//! begin ── reads_log ── writes_pages ── end                  progress, from any thread, at any time
//! ```
//! What was read and written is counted where I/O is counted anyway (`counters`): nothing is done for an I/O.

use super::progress::{RecoveryEnd, RecoveryPhase, RecoveryProgress};
use crate::disk::FileId;
use crate::options::Recovery;
use pagestore_counters::Publisher;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Who opens is told this often.
const TELL_EVERY: Duration = Duration::from_millis(200);

/// See the module.
pub(crate) struct Course {
    counters: Arc<Publisher>,
    recovery: Recovery,
    pub(super) begun: Instant,
    at: Mutex<At>,
    end: OnceLock<RecoveryEnd>,
}

/// A phase, and what is to be done in it.
#[derive(Clone, Copy)]
struct At {
    phase: RecoveryPhase,
    begun: Instant,
    /// What had been read of the log, or written to the data file, before it.
    bytes_before: u64,
    bytes_total: u64,
    pages: u64,
    page_bytes: u64,
}

impl Course {
    /// Of a store that is about to be opened.
    pub(crate) fn begin(counters: &Arc<Publisher>, recovery: Recovery) -> Arc<Self> {
        let begun = Instant::now();
        let at = At {
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

    /// Of a store that has just been created: there is nothing to recover.
    pub(crate) fn none(counters: &Arc<Publisher>) -> Arc<Self> {
        let course = Self::begin(counters, Recovery::default());
        let _ = course.end.set(RecoveryEnd::default());
        course
    }

    /// The log is read from here on, so much of it at most.
    pub(super) fn reads_log(&self, bytes: u64) {
        self.enter(RecoveryPhase::ReadingLog, |at| at.bytes_total = bytes);
    }

    /// So many pages are written from here on.
    pub(super) fn writes_pages(&self, pages: u64, page_bytes: u64) {
        self.enter(RecoveryPhase::WritingPages, |at| (at.pages, at.page_bytes) = (pages, page_bytes));
    }

    /// How many pages there are is known better.
    pub(super) fn pages_are(&self, pages: u64) {
        self.at().pages = pages;
    }

    /// All is redone, written and synced. What is told again counts for nothing.
    pub(crate) fn end(&self) {
        let pages = self.at().pages;
        self.end.get_or_init(|| {
            let [control, data, log] = self.counters.file_statistics().map(|file| file.counters);
            // A store that serves already reads pages for others.
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

    /// What it took, once it has ended.
    pub(crate) fn ended(&self) -> Option<RecoveryEnd> {
        self.end.get().copied()
    }

    /// How far it is.
    pub(super) fn progress(&self) -> RecoveryProgress {
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
        // Until the sync over them succeeds, at least one is not done.
        let unsynced = at.pages.min(1);
        let left = at.pages.saturating_sub(bytes / at.page_bytes).max(unsynced);
        RecoveryProgress {
            pages: at.pages,
            pages_left: if self.end.get().is_some() { 0 } else { left },
            bytes_total: (at.pages * at.page_bytes).max(bytes),
            ..progress
        }
    }

    /// Has a thread of its own `open`, and tells meanwhile: whoever does an I/O has nothing to do with it. Where no thread
    /// is to be had nothing is told.
    pub(super) fn tell_while<T: Send>(
        &self,
        open: impl FnOnce() -> T + Send,
        tell: &mut impl FnMut(RecoveryProgress),
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
            while waiting.recv_timeout(TELL_EVERY) == Err(RecvTimeoutError::Timeout) {
                tell(self.progress());
            }
            opening.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        opened.unwrap_or_else(|| {
            let open = open.into_inner().unwrap_or_else(PoisonError::into_inner);
            open.expect("it has not been begun")()
        })
    }

    fn enter(&self, phase: RecoveryPhase, set: impl FnOnce(&mut At)) {
        let mut at = self.at();
        (at.phase, at.begun, at.bytes_before) = (phase, Instant::now(), self.bytes(phase));
        set(&mut at);
    }

    /// What a phase counts.
    fn bytes(&self, phase: RecoveryPhase) -> u64 {
        match phase {
            RecoveryPhase::ReadingLog => self.counters.file(FileId::Log).reads.bytes(),
            RecoveryPhase::WritingPages => self.counters.file(FileId::Data).writes.bytes(),
        }
    }

    fn at(&self) -> MutexGuard<'_, At> {
        // Nothing in it depends on anything else in it.
        self.at.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
