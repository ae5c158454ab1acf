//! Figures of an open store: statistics, I/O, the times of commits, and what holds the log.

use crate::engine::state::LogHolders;
use crate::engine::store::Store;
use crate::log::idle_guard::AwakeTrial;
use crate::recovery::{RecoveryProgress, RecoveryReport};
use crate::sync::lock;
use pagestore_counters::{CommitTimes, FileStatistics};
use published::Reading;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

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
    /// Memory of all pages, used and free, in bytes. It does not shrink while the store is open.
    pub page_memory_bytes: u64,
    /// Virtual log files that can be reused.
    pub vlfs_reusable: u64,
    /// All virtual log files.
    pub vlfs: u64,
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
            page_memory_bytes: inner.memory.bytes() as u64,
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

    /// All that other processes read of it as of any engine: files, commits, log records, the writer's time.
    #[must_use]
    pub fn counters(&self) -> Reading {
        self.inner.counters.reading()
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
    pub fn published(&self) -> Result<PathBuf, String> {
        self.inner.counters.path()
    }

    /// Transactions and pages that keep the log from being reused.
    #[must_use]
    pub fn log_holders(&self) -> LogHolders {
        self.inner.log_holders()
    }

    /// How the store was opened, and the totals of recovery once it has ended.
    #[must_use]
    pub fn recovery_report(&self) -> RecoveryReport {
        RecoveryReport { end: self.inner.tracker.ended(), ..self.report.clone() }
    }

    /// Pages that recovery found in the log and has not written yet.
    #[must_use]
    pub fn recovery_pages_left(&self) -> u64 {
        self.recovery_progress().map_or(0, |progress| progress.pages_left)
    }

    /// The progress of recovery; `None` once everything is written and synced, or if there was nothing to recover.
    /// Only `Recovery::Instant` leaves work for the time after the store is open.
    #[must_use]
    pub fn recovery_progress(&self) -> Option<RecoveryProgress> {
        let tracker = &self.inner.tracker;
        tracker.ended().is_none().then(|| tracker.progress())
    }
}
