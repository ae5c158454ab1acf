//! Progress and totals of recovery, for those that open a store and use it.

use std::time::Duration;

/// A phase of recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecoveryPhase {
    /// Reading the log, to find its end and the pages in it.
    ReadingLog,
    /// Redoing pages from the log and writing them to the data file.
    WritingPages,
}

/// The progress of recovery. Bytes and time are those of the current phase.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RecoveryProgress {
    /// The current phase.
    pub phase: RecoveryPhase,
    /// Pages to be written in all; 0 until the log has been read. With `Recovery::Instant` an upper bound, like
    /// [`pages`](crate::RecoveryReport::pages), until the background thread has read the indices. `Serial` and `Prefetch`
    /// write a page once for each of its changes, and it counts each time.
    pub pages: u64,
    /// Those that are not written and synced yet.
    pub pages_left: u64,
    /// Bytes read from the log, or written to the data file.
    pub bytes: u64,
    /// Bytes to be read (at most) or written.
    pub bytes_total: u64,
    /// Time since the phase began.
    pub elapsed: Duration,
}

impl RecoveryProgress {
    /// Pages written per second; 0 while the log is read.
    #[must_use]
    pub fn pages_per_s(&self) -> f64 {
        per_s((self.pages - self.pages_left) as f64, self.elapsed)
    }

    /// Megabytes (10^6 bytes) read or written per second.
    #[must_use]
    pub fn mb_per_s(&self) -> f64 {
        per_s(self.bytes as f64 / 1e6, self.elapsed)
    }

    /// Estimated time until the phase ends, at its rate so far: until the log is read, or until all pages are
    /// written. `None` before the first is.
    #[must_use]
    pub fn time_left(&self) -> Option<Duration> {
        let (all, left) = match self.phase {
            RecoveryPhase::ReadingLog => (self.bytes_total, self.bytes_total - self.bytes),
            RecoveryPhase::WritingPages => (self.pages, self.pages_left),
        };
        let done = all - left;
        (done > 0).then(|| self.elapsed.mul_f64(left as f64 / done as f64))
    }
}

/// Totals of a complete recovery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecoveryEnd {
    /// From the start of opening until the last page was written and synced.
    pub took: Duration,
    /// Pages written, counted as in [`RecoveryProgress::pages`].
    pub pages: u64,
    /// Reads of the control file and the log, and of the pages that `Serial` and `Prefetch` change in place. With
    /// `Recovery::Instant` including reads of the log for pages that were requested meanwhile.
    pub reads: u64,
    /// Bytes of these reads.
    pub read_bytes: u64,
    /// Writes to the data file; one may hold many pages. With `Recovery::Instant` including those of pages that
    /// were changed before they were redone.
    pub writes: u64,
    /// Bytes of these writes.
    pub write_bytes: u64,
    /// Syncs of the data file.
    pub syncs: u64,
}

impl RecoveryEnd {
    /// Pages written per second.
    #[must_use]
    pub fn pages_per_s(&self) -> f64 {
        per_s(self.pages as f64, self.took)
    }
}

fn per_s(amount: f64, time: Duration) -> f64 {
    if time.is_zero() { 0.0 } else { amount / time.as_secs_f64() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pace_so_far_tells_the_time_left() {
        let progress = RecoveryProgress {
            phase: RecoveryPhase::WritingPages,
            pages: 1_000,
            pages_left: 750,
            bytes: 250 * 4_096,
            bytes_total: 1_000 * 4_096,
            elapsed: Duration::from_millis(500),
        };
        assert_eq!((progress.pages_per_s(), progress.mb_per_s()), (500.0, 2.048));
        assert_eq!(progress.time_left(), Some(Duration::from_millis(1_500)));
        let first = RecoveryProgress { pages_left: 1_000, bytes: 0, elapsed: Duration::ZERO, ..progress };
        assert_eq!((first.pages_per_s(), first.time_left()), (0.0, None));
        let reading = RecoveryProgress {
            phase: RecoveryPhase::ReadingLog,
            pages: 0,
            pages_left: 0,
            bytes: 10_000_000,
            bytes_total: 40_000_000,
            ..progress
        };
        assert_eq!((reading.pages_per_s(), reading.mb_per_s()), (0.0, 20.0));
        assert_eq!(reading.time_left(), Some(Duration::from_millis(1_500)));
    }

    #[test]
    fn the_end_tells_what_was_done_a_second() {
        let end = RecoveryEnd {
            took: Duration::from_millis(500),
            pages: 1_000,
            reads: 8,
            read_bytes: 8_000_000,
            writes: 500,
            write_bytes: 4_000_000,
            syncs: 1,
        };
        assert_eq!(end.pages_per_s(), 2_000.0);
    }
}
