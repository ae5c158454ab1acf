//! When the last log writes were submitted, completed and durable.

use crate::types::Lsn;
use pagestore_counters::monotonic_ns;
use std::collections::VecDeque;

/// Writes whose times are kept for the commits in them.
const WRITES_KEPT: usize = 64;

/// When a write was submitted, when it completed, and when all writes before it had completed too (0: not yet), on
/// the monotonic clock in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WriteTimes {
    /// The last record in the write.
    pub(super) end: Lsn,
    pub submitted: u64,
    pub written: u64,
    pub durable: u64,
}

/// The times of the last writes, in log order.
pub(super) struct RecentWrites(VecDeque<WriteTimes>);

impl Default for RecentWrites {
    fn default() -> Self {
        Self(VecDeque::with_capacity(WRITES_KEPT + 1))
    }
}

impl RecentWrites {
    /// Adds a completed write, and notes for each write up to `durable` that it became durable with this one.
    pub(super) fn add(&mut self, write: WriteTimes, durable: Lsn) {
        // Almost always 0.
        let later = self.0.iter().rev().take_while(|kept| kept.end > write.end).count();
        self.0.insert(self.0.len() - later, write);
        if self.0.len() > WRITES_KEPT {
            self.0.pop_front();
        }
        // A write that completed in order was durable at its completion.
        let now = if later == 0 { write.written } else { monotonic_ns() };
        for kept in self.0.iter_mut().rev().filter(|kept| kept.end <= durable) {
            if kept.durable > 0 {
                break;
            }
            kept.durable = now;
        }
    }

    /// The times of the write that made `lsn` durable; `None` if they are no longer kept.
    pub(super) fn find(&self, lsn: Lsn) -> Option<WriteTimes> {
        let back = self.0.iter().rev().take_while(|kept| kept.end >= lsn).count();
        // If all kept writes end at or after `lsn`, the one that holds it may already have been dropped.
        let is_known = back < WRITES_KEPT;
        let first = self.0.len() - back;
        self.0.get(first).copied().filter(|kept| is_known && kept.durable > 0)
    }
}
