//! State shared by the threads of a store.

use crate::engine::cache::PageTable;
use crate::engine::cache::front::Front;
use crate::engine::cache::page_memory::PageMemory;
use crate::engine::compaction::state::CompactionState;
use crate::engine::pace::RedoCost;
use crate::engine::roots::MovedRoots;
use crate::engine::tx::buffers::Buffers;
use crate::engine::wake::Wake;
use crate::error::Result;
use crate::format::control::Control;
use crate::format::geometry::Geometry;
use crate::log::idle_guard::IdleGuard;
use crate::log::journal::Journal;
use crate::log::writer::LogWriter;
use crate::options::Options;
use crate::recovery::RecoveryTracker;
use crate::sync::{AtomicU64, Mutex};
use crate::types::{Lsn, PageNo};
use pagestore_counters::{Certificate, Publisher};
use pagestore_disk::{Disk, FileId};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The parts of a store that creation or recovery has prepared.
pub(crate) struct StoreParts {
    pub writer: LogWriter,
    pub pages: PageTable,
    pub next_tx: u64,
    pub sequence: u64,
    pub control: Control,
    pub tracker: Arc<RecoveryTracker>,
}

/// The state of the writing transaction that outlives it.
pub(crate) struct Writing {
    pub next_tx: u64,
    pub sequence: u64,
    pub buffers: Buffers,
    /// The number of the newest table, committed or not.
    pub tables: u32,
    pub cut: CutPages,
}

/// Pages that were cut off the end of the data file, and may still be read there by snapshots from before.
#[derive(Clone, Copy, Default)]
pub(crate) struct CutPages {
    /// Pages from this number on never existed in this opening, or no snapshot reads what they were.
    pub end: u64,
    /// The last commit that cut off any.
    pub sequence: u64,
}

/// State shared by the threads of a store.
pub(crate) struct Inner {
    pub disk: Arc<dyn Disk>,
    pub options: Options,
    pub geometry: Geometry,
    pub journal: Journal,
    pub pages: Mutex<PageTable>,
    /// The way to cached pages without that lock.
    pub front: Arc<Front>,
    pub memory: Arc<PageMemory>,
    /// The writer lock: one transaction writes at a time.
    pub writing: Mutex<Writing>,
    /// The number of the thread that holds it; 0: none. Only compared by a thread with its own number, which it
    /// stored itself.
    pub writer_thread: AtomicUsize,
    /// Makes appending and installing a commit atomic with respect to the beginning of a checkpoint. The checkpoint then captures
    /// pages without it, and waits for it once more before it trusts what it has captured.
    pub gate: Mutex<()>,
    pub control: Mutex<Control>,
    /// Held by the one checkpoint that runs: the proof of the last one.
    pub checkpointing: Mutex<Option<Certificate>>,
    /// The number of the thread that runs it; 0: none. Compared as `writer_thread` is.
    pub checkpoint_thread: AtomicUsize,
    /// Threads that wait for a running checkpoint to end.
    pub checkpoint_waiters: AtomicU64,
    pub growing: Mutex<()>,
    /// Threads that cannot continue before the log has grown.
    pub growth_awaited: AtomicU64,
    /// The redo position, as in the control file.
    pub redo: AtomicU64,
    /// The newest commit.
    pub last_sequence: AtomicU64,
    /// The newest transaction.
    pub last_tx: AtomicU64,
    pub tracker: Arc<RecoveryTracker>,
    pub wake: Wake,
    pub redo_cost: RedoCost,
    pub counters: Arc<Publisher>,
    /// Roots of tables that a compaction has moved.
    pub roots: MovedRoots,
    /// Pages from this number on may be cut off and still be read; 0: not known yet.
    cut_from: AtomicUsize,
    /// Held by the one compaction that runs.
    pub compacting: Mutex<CompactionState>,
    /// Held by the thread that publishes the state of the log.
    pub publishing: Mutex<()>,
    /// The end of the log that recovery found, and of what the opening itself logged after it, which changes no page.
    pub opening: (Lsn, Lsn),
}

impl Inner {
    pub(crate) fn new(
        disk: Arc<dyn Disk>,
        counters: Arc<Publisher>,
        options: Options,
        parts: StoreParts,
    ) -> Self {
        let geometry = parts.control.geometry;
        let idle_guard = options.background.then(|| IdleGuard::new(options.keep_awake)).flatten();
        let journal =
            Journal::new(Arc::clone(&disk), parts.writer, parts.sequence, Arc::clone(&counters), idle_guard);
        if options.background {
            parts.pages.memory().use_thread();
        }
        Self {
            last_tx: AtomicU64::new(parts.next_tx - 1),
            disk,
            options,
            geometry,
            journal,
            front: Arc::clone(parts.pages.front()),
            memory: Arc::clone(parts.pages.memory()),
            pages: Mutex::new(parts.pages),
            writing: Mutex::new(Writing {
                next_tx: parts.next_tx,
                sequence: parts.sequence,
                buffers: Buffers::default(),
                tables: first_table(parts.control.epoch),
                cut: CutPages::default(),
            }),
            writer_thread: AtomicUsize::new(0),
            gate: Mutex::new(()),
            redo: AtomicU64::new(parts.control.redo.lsn.packed()),
            control: Mutex::new(parts.control),
            checkpointing: Mutex::new(None),
            checkpoint_thread: AtomicUsize::new(0),
            checkpoint_waiters: AtomicU64::new(0),
            growing: Mutex::new(()),
            growth_awaited: AtomicU64::new(0),
            last_sequence: AtomicU64::new(parts.sequence),
            tracker: parts.tracker,
            wake: Wake::default(),
            redo_cost: RedoCost::new(options.recovery),
            counters,
            roots: MovedRoots::default(),
            cut_from: AtomicUsize::new(0),
            compacting: Mutex::default(),
            publishing: Mutex::new(()),
            opening: (Lsn::ZERO, Lsn::ZERO),
        }
    }

    /// Whether a page is not below `count`, the number of pages. Most pages are below what it ever was.
    #[inline]
    pub(crate) fn is_cut(&self, page: PageNo, count: impl FnOnce() -> Result<u64>) -> Result<bool> {
        let cut_from = self.cut_from.load(Ordering::Acquire);
        if page.0 < cut_from as u64 || page == PageNo(0) {
            return Ok(false);
        }
        let count = count()?;
        if cut_from == 0 {
            self.note_page_count_at_first(count);
        }
        Ok(page.0 >= count)
    }

    /// The store has this many pages; fewer only after `note_page_count`. The data file may be longer after a crash.
    pub(crate) fn note_page_count_at_first(&self, count: u64) {
        if self.cut_from.load(Ordering::Relaxed) == 0 {
            let length = count * self.geometry.page_bytes as u64;
            let is_exact = self.disk.len(FileId::Data).is_ok_and(|bytes| bytes <= length);
            let count = if is_exact { u64::MAX } else { count };
            let _ = self.cut_from.compare_exchange(0, count as usize, Ordering::AcqRel, Ordering::Relaxed);
        }
    }

    /// The data file ends with the last page.
    pub(crate) fn note_truncated(&self) {
        self.cut_from.store(usize::MAX, Ordering::Release);
    }

    /// The store may have this many pages, fewer than before.
    pub(crate) fn note_page_count(&self, count: u64) {
        self.cut_from.fetch_min(count as usize, Ordering::AcqRel);
    }

    /// Bytes of log that recovery would read if the log ended at `next`.
    pub(crate) fn redo_bytes(&self, next: Lsn) -> u64 {
        let redo = Lsn::from_packed(self.redo.load(Ordering::Acquire));
        redo.bytes_to(next, self.geometry.vlf_bytes)
    }
}

/// The first table number of an opening. Those of other openings are far away, however many there were (Knuth 6.4,
/// multiplication by the golden section).
fn first_table(epoch: u32) -> u32 {
    epoch.wrapping_mul(0x9e37_79b9)
}
