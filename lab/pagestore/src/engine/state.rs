//! The state of the log of an open store: what holds it, and its publication to other processes.

use crate::engine::inner::Inner;
use crate::log::segments::Slot;
use crate::sync::lock;
use crate::types::{Lsn, PageNo};
use pagestore_counters::{Certificate, LogState, VlfState};
use std::sync::atomic::Ordering;

/// Dirty pages that are examined under one hold of the page table's lock.
const DIRTY_PAGES_PER_LOCK: usize = 256;

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

impl Inner {
    /// Publishes the state of the log if another process has requested it.
    pub(crate) fn publish_requested_state(&self) {
        if self.counters.state.is_requested() {
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
            last_certificate: self.checkpointing.try_lock().ok().and_then(|last| *last),
        }
    }

    /// Publishes the counters to other processes.
    pub(super) fn announce(&self) {
        if let Some(directory) = self.disk.directory() {
            let opening = lock(&self.control).opening();
            self.counters.announce(directory, &opening);
        }
        self.publish_state();
    }
}

fn vlf_state(slot: &Slot) -> VlfState {
    VlfState { vlf: slot.vlf, status: if slot.is_active { 2 } else { 0 }, parity: slot.parity }
}
