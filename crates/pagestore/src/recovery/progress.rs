//! How far the writing of recovered pages is while the store already serves.

use crate::store::Store;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// What recovery has written of the pages that it found in the log.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RecoveryProgress {
    /// Pages to be written in all; at most, as [`pages`](super::RecoveryReport::pages) is.
    pub pages: u64,
    /// Of them, those that are not written yet.
    pub pages_left: u64,
    /// Bytes written.
    pub bytes: u64,
    /// Since the store was open.
    pub elapsed: Duration,
}

impl RecoveryProgress {
    /// Pages written a second.
    #[must_use]
    pub fn pages_per_s(&self) -> f64 {
        self.per_s((self.pages - self.pages_left) as f64)
    }

    /// Megabytes (a million bytes) written a second.
    #[must_use]
    pub fn mb_per_s(&self) -> f64 {
        self.per_s(self.bytes as f64 / 1e6)
    }

    /// Until all is written, at the pace so far; unknown before the first page is.
    #[must_use]
    pub fn time_left(&self) -> Option<Duration> {
        let written = self.pages - self.pages_left;
        (written > 0).then(|| self.elapsed.mul_f64(self.pages_left as f64 / written as f64))
    }

    fn per_s(&self, amount: f64) -> f64 {
        if self.elapsed.is_zero() { 0.0 } else { amount / self.elapsed.as_secs_f64() }
    }
}

impl Store {
    /// The pages that recovery found in the log and has not written yet.
    #[must_use]
    pub fn recovery_pages_left(&self) -> u64 {
        self.recovery_progress().map_or(0, |progress| progress.pages_left)
    }

    /// How far recovery is; `None` once all is written and synced, or where nothing had to be. Only `Recovery::Instant`
    /// leaves any of it to do once the store is open.
    #[must_use]
    pub fn recovery_progress(&self) -> Option<RecoveryProgress> {
        let (inner, report) = (&self.inner, self.recovery_report());
        if report.pages == 0 || inner.counters.checkpoints.load(Ordering::Acquire) > 0 {
            return None;
        }
        let bytes = inner.counters.page_write_bytes.load(Ordering::Relaxed);
        let pages = inner.recovering.load(Ordering::Acquire);
        // Until the sync over them succeeds, at least one is not done.
        let pages_left = pages.saturating_sub(bytes / inner.geometry.page_bytes as u64).max(1);
        Some(RecoveryProgress {
            pages: pages.max(pages_left),
            pages_left,
            bytes,
            elapsed: self.opened.elapsed(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pace_so_far_tells_the_time_left() {
        let progress = RecoveryProgress {
            pages: 1_000,
            pages_left: 750,
            bytes: 250 * 4_096,
            elapsed: Duration::from_millis(500),
        };
        assert_eq!((progress.pages_per_s(), progress.mb_per_s()), (500.0, 2.048));
        assert_eq!(progress.time_left(), Some(Duration::from_millis(1_500)));
        let first = RecoveryProgress { pages_left: 1_000, bytes: 0, elapsed: Duration::ZERO, ..progress };
        assert_eq!((first.pages_per_s(), first.time_left()), (0.0, None));
    }
}
