//! What who opens a store, and who has it, is told of its recovery: how far it is, and what it took.

use super::course::Course;
use super::{RecoveryReport, open};
use crate::disk::counted::CountedDisk;
use crate::disk::{Disk, open_directory};
use crate::error::Result;
use crate::options::Options;
use crate::store::{Store, in_directory};
use pagestore_counters::Publisher;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// What recovery is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecoveryPhase {
    /// It reads the log, to find its end and the pages that are in it.
    ReadingLog,
    /// It puts pages together from the log and writes them to the data file.
    WritingPages,
}

/// How far recovery is. Bytes and time are of the phase that it is in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RecoveryProgress {
    /// What it is at.
    pub phase: RecoveryPhase,
    /// Pages to be written in all; 0 until the log has been read. With `Recovery::Instant` at most, as
    /// [`pages`](RecoveryReport::pages) is, until the background has read the indices; `Serial` and `Prefetch` write a
    /// page once for each of its changes, and here it counts as often.
    pub pages: u64,
    /// Of them, those that are not written and synced yet.
    pub pages_left: u64,
    /// Bytes read of the log, or written to the data file.
    pub bytes: u64,
    /// Bytes to be read, at most, or written.
    pub bytes_total: u64,
    /// Since the phase began.
    pub elapsed: Duration,
}

impl RecoveryProgress {
    /// Pages written a second; 0 while the log is read.
    #[must_use]
    pub fn pages_per_s(&self) -> f64 {
        per_s((self.pages - self.pages_left) as f64, self.elapsed)
    }

    /// Megabytes (a million bytes) read or written a second.
    #[must_use]
    pub fn mb_per_s(&self) -> f64 {
        per_s(self.bytes as f64 / 1e6, self.elapsed)
    }

    /// Until the phase ends, at its pace so far: until the log is read, or until all pages are written. Unknown before
    /// the first is.
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

/// What recovery took until all was redone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecoveryEnd {
    /// From the beginning of opening until the last page was written and synced.
    pub took: Duration,
    /// Pages written, counted as [`RecoveryProgress::pages`] is.
    pub pages: u64,
    /// Reads of the control file and the log, and of the pages that `Serial` and `Prefetch` change in their places.
    /// With `Recovery::Instant` those of the log for who asked for a page meanwhile too.
    pub reads: u64,
    /// Bytes that they read.
    pub read_bytes: u64,
    /// Writes to the data file; one may hold many pages. With `Recovery::Instant` those of pages too that were changed
    /// before the background came to them.
    pub writes: u64,
    /// Bytes that they wrote.
    pub write_bytes: u64,
    /// Syncs of the data file.
    pub syncs: u64,
}

impl RecoveryEnd {
    /// Pages written a second.
    #[must_use]
    pub fn pages_per_s(&self) -> f64 {
        per_s(self.pages as f64, self.took)
    }

    /// Megabytes (a million bytes) read a second.
    #[must_use]
    pub fn read_mb_per_s(&self) -> f64 {
        per_s(self.read_bytes as f64 / 1e6, self.took)
    }

    /// Megabytes (a million bytes) written a second.
    #[must_use]
    pub fn write_mb_per_s(&self) -> f64 {
        per_s(self.write_bytes as f64 / 1e6, self.took)
    }
}

fn per_s(amount: f64, time: Duration) -> f64 {
    if time.is_zero() { 0.0 } else { amount / time.as_secs_f64() }
}

impl Store {
    /// As [`open`](Self::open), and tells how far it is: this thread calls `tell` five times a second while another one
    /// recovers, and once more when the store is open. With `Recovery::Instant` pages are left then:
    /// [`recovery_progress`](Self::recovery_progress) tells the rest.
    ///
    /// # Errors
    /// As `open`.
    pub fn open_with(directory: &Path, options: Options, tell: impl FnMut(RecoveryProgress)) -> Result<Self> {
        Self::open_on_with(open_directory(directory)?, options, tell)
            .map_err(|error| in_directory(error, directory))
    }

    /// As `open_with`, on any disk.
    ///
    /// # Errors
    /// As `open`.
    pub fn open_on_with(
        disk: Arc<dyn Disk>,
        options: Options,
        mut tell: impl FnMut(RecoveryProgress),
    ) -> Result<Self> {
        let counters = Publisher::new(disk.directory().filter(|_| options.publish));
        let course = Course::begin(&counters, options.recovery);
        let own = Arc::clone(&course);
        let opened = course
            .tell_while(move || open(CountedDisk::wrap(disk, &counters), counters, options, own), &mut tell);
        let (inner, report) = opened?;
        let store = Self::start(inner, report)?;
        tell(course.progress());
        Ok(store)
    }

    /// How it was opened, and what recovery took once it has ended.
    #[must_use]
    pub fn recovery_report(&self) -> RecoveryReport {
        RecoveryReport { end: self.inner.course.ended(), ..self.report.clone() }
    }

    /// The pages that recovery found in the log and has not written yet.
    #[must_use]
    pub fn recovery_pages_left(&self) -> u64 {
        self.recovery_progress().map_or(0, |progress| progress.pages_left)
    }

    /// How far recovery is; `None` once all is written and synced, or where nothing had to be. Only `Recovery::Instant`
    /// leaves any of it to do once the store is open.
    #[must_use]
    pub fn recovery_progress(&self) -> Option<RecoveryProgress> {
        let course = &self.inner.course;
        course.ended().is_none().then(|| course.progress())
    }
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
        assert_eq!((end.pages_per_s(), end.read_mb_per_s(), end.write_mb_per_s()), (2_000.0, 16.0, 8.0));
    }
}
