//! What an open store reports about itself: statistics, I/O, the times of commits, and what holds the log.

use super::{Inner, Store, lock};
use crate::awake::AwakeTrial;
use crate::log::vlf::Slot;
use crate::types::{Lsn, PageNo};
use pagestore_counters::{Certificate, CommitTimes, FileStatistics, LogState, VlfState};
use std::path::Path;
use std::sync::atomic::Ordering;

/// Dirty pages that are examined under one hold of the page table's lock.
const DIRTY_PAGES_PER_LOCK: usize = 256;

/// Statistics of an open store since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Writes to the log.
    pub log_writes: u64,
    /// Bytes of these writes.
    pub log_write_bytes: u64,
    /// Total time of these writes, in nanoseconds.
    pub log_write_ns: u64,
    /// Transactions that committed.
    pub commits: u64,
    /// The newest commit that is durable; commits are numbered from 1.
    pub durable_sequence: u64,
    /// The newest commit.
    pub last_sequence: u64,
    /// Bytes of log that wait to be written.
    pub log_waiting_bytes: u64,
    /// Pages read from the data file.
    pub page_reads: u64,
    /// Pages redone from the log.
    pub pages_redone: u64,
    /// Writes to the data file; one may hold many pages.
    pub page_writes: u64,
    /// Bytes of these writes.
    pub page_write_bytes: u64,
    /// Syncs of the data file.
    pub data_syncs: u64,
    /// Completed checkpoints.
    pub checkpoints: u64,
    /// Pages whose newest version is not in the data file yet.
    pub dirty_pages: u64,
    /// Memory of cached pages, including older versions, in bytes.
    pub cached_bytes: u64,
    /// Virtual log files that can be reused.
    pub vlfs_reusable: u64,
    /// All virtual log files.
    pub vlfs: u64,
}

/// Why the log's beginning cannot be reused, in the order in which the reasons would have to go away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogHolders {
    /// The redo position.
    pub redo: Lsn,
    /// The position of the next record.
    pub next: Lsn,
    /// The first record of the active transaction.
    pub active_transaction: Option<Lsn>,
    /// The dirty page with the oldest first record, and that record.
    pub oldest_dirty_page: Option<(PageNo, Lsn)>,
    /// The proof of the last checkpoint.
    pub last_certificate: Option<Certificate>,
}

impl Store {
    /// The statistics since the store was opened.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let inner = &self.inner;
        let (dirty, cached) = {
            let pages = lock(&inner.pages);
            (pages.dirty_pages() as u64, pages.cached_bytes() as u64)
        };
        let (reusable, vlfs, waiting) = inner.journal.with_writer(|writer| {
            (writer.vlfs.available() as u64, writer.vlfs.slots().len() as u64, writer.waiting_bytes() as u64)
        });
        let counts = inner.counters.counts();
        Stats {
            log_writes: counts.log_writes,
            log_write_bytes: counts.log_write_bytes,
            log_write_ns: counts.log_write_ns,
            commits: counts.commits,
            durable_sequence: inner.journal.durable_sequence(),
            last_sequence: inner.last_sequence.load(Ordering::Acquire),
            log_waiting_bytes: waiting,
            page_reads: counts.page_reads,
            pages_redone: counts.pages_redone,
            page_writes: counts.page_writes,
            page_write_bytes: counts.page_write_bytes,
            data_syncs: counts.data_syncs,
            checkpoints: counts.checkpoints,
            dirty_pages: dirty,
            cached_bytes: cached,
            vlfs_reusable: reusable,
            vlfs,
        }
    }

    /// The I/O on the store's files since it was opened, including its recovery: the same figures that other
    /// processes see.
    #[must_use]
    pub fn file_statistics(&self) -> [FileStatistics; 3] {
        self.inner.counters.file_statistics()
    }

    /// The time that commits acknowledged as durable spent in each phase.
    #[must_use]
    pub fn commit_times(&self) -> CommitTimes {
        self.inner.counters.commits.read()
    }

    /// The last result of measuring whether spinning shortens the commits of a lone thread (`KeepAwake::Auto`);
    /// `None` before 128 such commits, and where it is not measured.
    #[must_use]
    pub fn awake_trial(&self) -> Option<AwakeTrial> {
        self.inner.journal.idle_guard.as_ref()?.last_trial()
    }

    /// The file through which other processes see the counters.
    ///
    /// # Errors
    /// Why they are not published.
    pub fn published(&self) -> Result<&Path, &str> {
        self.inner.counters.path()
    }

    /// What keeps the log from being reused.
    #[must_use]
    pub fn log_holders(&self) -> LogHolders {
        self.inner.log_holders()
    }
}

impl Inner {
    /// Publishes the state of the log if another process has requested it.
    pub(crate) fn publish_requested_state(&self) {
        if self.counters.state.is_asked() {
            self.publish_state();
        }
    }

    /// Publishes the state of the log to other processes.
    pub(crate) fn publish_state(&self) {
        let Ok(_one) = self.publishing.try_lock() else { return };
        self.counters.state.answer(|| self.log_state());
    }

    fn log_state(&self) -> LogState {
        let holders = self.log_holders();
        let (checkpointing, dirty_pages) =
            (self.checkpointing.try_lock().is_err(), lock(&self.pages).dirty_pages() as u64);
        let (waiting_bytes, vlfs) = self.journal.with_writer(|writer| {
            let vlfs: Vec<_> = writer.vlfs.slots().iter().map(vlf_state).collect();
            (writer.waiting_bytes() as u64, vlfs)
        });
        LogState {
            at_ns: 0,
            redo: holders.redo,
            next: holders.next,
            durable: self.journal.durable(),
            last_sequence: self.last_sequence.load(Ordering::Acquire),
            durable_sequence: self.journal.durable_sequence(),
            waiting_bytes,
            active: holders.active_transaction.map(|lsn| (self.last_tx.load(Ordering::Acquire), lsn)),
            dirty_pages,
            oldest_dirty_page: holders.oldest_dirty_page,
            last_certificate: holders.last_certificate,
            checkpointing,
            read_only: self.journal.check().is_err(),
            vlfs_total: vlfs.len() as u64,
            vlfs,
        }
    }

    /// The dirty page with the oldest first record, of all pages that are dirty throughout the call. Examines a few
    /// under one hold of the lock.
    fn oldest_dirty(&self) -> Option<(PageNo, Lsn)> {
        let runs = lock(&self.pages).runs();
        let mut oldest = runs.and_then(|runs| runs.oldest());
        let mut from = Some(PageNo(0));
        while let Some(next) = from {
            let found;
            (found, from) = lock(&self.pages).oldest_dirty(next, DIRTY_PAGES_PER_LOCK);
            oldest = oldest.into_iter().chain(found).min_by_key(|(_, lsn)| *lsn);
        }
        oldest
    }

    pub(crate) fn log_holders(&self) -> LogHolders {
        let (next, active) = self
            .journal
            .with_writer(|writer| (writer.position().lsn, writer.oldest_active.map(|position| position.lsn)));
        LogHolders {
            redo: Lsn::from_packed(self.redo.load(Ordering::Acquire)),
            next,
            active_transaction: active,
            oldest_dirty_page: self.oldest_dirty(),
            last_certificate: self.checkpointing.try_lock().ok().and_then(|checkpoints| checkpoints.last),
        }
    }
}

fn vlf_state(slot: &Slot) -> VlfState {
    match *slot {
        Slot::Unused => VlfState { vlf: 0, status: 0, parity: 0 },
        Slot::Active { vlf, parity } => VlfState { vlf, status: 2, parity },
        Slot::Reusable { vlf, parity, .. } => VlfState { vlf, status: 0, parity },
    }
}
