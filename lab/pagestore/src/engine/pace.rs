//! When a checkpoint begins and how fast it is written, from the time that recovery would take now. No I/O.
//!
//! ```text
//! redo      log bytes / measured rate of reading it (twice, where recovery reads it to analyse it and then for the
//!           pages) + dirty pages x measured time of writing one
//! begin     at half of the target (`Options::redo_target`)
//! pace      the written share follows redo from there to nine tenths of the target, and time, so that in an idle
//!           store the checkpoint is complete within ten seconds
//! ```
//! Measurements are smoothed: one slow write does not change the pace much. Recovery writes many pages at once, so
//! only writes done that way are a measure of its page time: a checkpoint begins with a sample of them.
//!
//! A checkpoint pauses for a while when a commit of many pages appends its records: beside it log writes would take several
//! times as long. It does so even if it is late: continuing would slow the commit, and not reduce the log that it adds.
//!
//! One write at a time disturbs commits least. A disk with high latency needs more in flight to keep the pace: as
//! long as a checkpoint is behind, its number of concurrent writes grows.

use crate::options::Recovery;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Shares of the target at which a checkpoint begins, and by which it is to be complete.
const BEGIN_SHARE: f64 = 0.5;
const END_SHARE: f64 = 0.9;
/// The longest time over which a checkpoint is spread.
const SPREAD_MAX: Duration = Duration::from_secs(10);
/// Until they are measured: 100 us per page, 4 ms per mebibyte of log.
const PAGE_NS: u64 = 100_000;
const LOG_MIB_NS: u64 = 4_000_000;
/// The weight of a new measurement, in eighths.
const NEW_EIGHTHS: u64 = 2;

/// The measured cost of redo; 0 where it was not measured yet.
#[derive(Debug)]
pub(crate) struct RedoCost {
    log_passes: u64,
    page_ns: AtomicU64,
    log_mib_ns: AtomicU64,
}

impl RedoCost {
    /// For a store that is recovered with this strategy.
    pub(crate) fn new(recovery: Recovery) -> Self {
        // Indices list the pages; without them the log is read once to find the pages and once more to redo them.
        let log_passes = if recovery == Recovery::Instant { 1 } else { 2 };
        Self { log_passes, page_ns: AtomicU64::new(0), log_mib_ns: AtomicU64::new(0) }
    }

    /// `pages` were written in this time, with as many writes at once as recovery would do. It includes their share
    /// of the sync, and excludes the time of rebuilding them from the log.
    pub(crate) fn pages_written(&self, pages: u64, took: Duration) {
        if let Some(each) = (took.as_nanos() as u64).checked_div(pages) {
            blend(&self.page_ns, each);
        }
    }

    /// `bytes` of log were read and processed in this time: to analyse them, or to rebuild all of their pages.
    pub(crate) fn log_read(&self, bytes: u64, took: Duration) {
        if bytes >= 8 << 20 {
            blend(&self.log_mib_ns, (took.as_nanos() as u64).saturating_mul(1 << 20) / bytes);
        }
    }

    /// Estimated duration of recovery.
    pub(crate) fn redo(&self, log_bytes: u64, pages: u64) -> Duration {
        let known = |measured: &AtomicU64, until_then: u64| match measured.load(Ordering::Relaxed) {
            0 => until_then as f64,
            measured => measured as f64,
        };
        let log_bytes = (log_bytes * self.log_passes) as f64;
        let log_ns = known(&self.log_mib_ns, LOG_MIB_NS) * log_bytes / f64::from(1 << 20);
        let pages_ns = known(&self.page_ns, PAGE_NS) * pages as f64;
        Duration::from_secs_f64((log_ns + pages_ns) / 1e9)
    }
}

fn blend(known: &AtomicU64, new: u64) {
    let new = new.max(1);
    let next = match known.load(Ordering::Relaxed) {
        0 => new,
        old => (old * (8 - NEW_EIGHTHS) + new * NEW_EIGHTHS).div_ceil(8),
    };
    known.store(next, Ordering::Relaxed);
}

/// Whether the estimate has come so close to the target that a checkpoint must begin.
pub(crate) fn should_begin(redo: Duration, target: Duration) -> bool {
    redo >= target.mul_f64(BEGIN_SHARE)
}

/// The pace of one checkpoint.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// Estimated redo when the checkpoint began.
    from: Duration,
    upto: Duration,
}

impl Pace {
    pub(crate) fn new(redo: Duration, target: Duration) -> Self {
        Self { from: redo, upto: target.mul_f64(END_SHARE) }
    }

    /// The share that must be written by now; 1 or more means all.
    pub(crate) fn due(&self, redo: Duration, elapsed: Duration) -> f64 {
        let room = self.upto.saturating_sub(self.from);
        if room.is_zero() {
            return 1.0;
        }
        let by_redo = redo.saturating_sub(self.from).as_secs_f64() / room.as_secs_f64();
        by_redo.max(elapsed.as_secs_f64() / SPREAD_MAX.as_secs_f64())
    }
}

/// How long a checkpoint pauses for commits of many pages, in all.
const PAUSES_MAX: Duration = Duration::from_millis(500);

/// The pauses of a checkpoint that is behind, for commits of many pages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pauses {
    left: Duration,
}

impl Pauses {
    pub(crate) fn new() -> Self {
        Self { left: PAUSES_MAX }
    }

    /// Whether to pause once more.
    pub(crate) fn pause(&mut self, pause: Duration) -> bool {
        let pauses = self.left >= pause;
        self.left = if pauses { self.left - pause } else { self.left };
        pauses
    }
}

/// Writes of a checkpoint's first step per write that recovery has in flight: a sample for the page time of
/// recovery.
const SAMPLE_DEPTH: usize = 4;
/// Steps without a pause after which the number of concurrent writes doubles.
const STEPS_A_WIDTH: u32 = 16;

/// The number of writes that a paced checkpoint has in flight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Width {
    most: usize,
    sampled: bool,
    steps_behind: u32,
}

impl Width {
    pub(crate) fn new(most: usize) -> Self {
        Self { most: most.max(1), sampled: false, steps_behind: 0 }
    }

    /// Writes of the next step.
    pub(crate) fn writes(&self) -> usize {
        if !self.sampled {
            return self.most * SAMPLE_DEPTH;
        }
        1_usize.checked_shl(self.steps_behind / STEPS_A_WIDTH).map_or(self.most, |wide| wide.min(self.most))
    }

    /// A step is done.
    pub(crate) fn step(&mut self) {
        if std::mem::replace(&mut self.sampled, true) {
            self.steps_behind = self.steps_behind.saturating_add(1);
        }
    }

    /// The checkpoint is ahead of its pace.
    pub(crate) fn rest(&mut self) {
        self.steps_behind = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TARGET: Duration = Duration::from_secs(2);

    #[test]
    fn a_checkpoint_begins_when_redo_would_take_half_of_the_target() {
        let cost = RedoCost::new(Recovery::Instant);
        (0..50).for_each(|_| cost.pages_written(100, Duration::from_millis(10)));
        (0..50).for_each(|_| cost.log_read(100 << 20, Duration::from_millis(200)));
        // 2 ms per mebibyte, 100 us per page.
        assert!(!should_begin(cost.redo(100 << 20, 7_800), TARGET), "{:?}", cost.redo(100 << 20, 7_800));
        assert!(should_begin(cost.redo(100 << 20, 8_200), TARGET), "{:?}", cost.redo(100 << 20, 8_200));
        assert!(should_begin(cost.redo(520 << 20, 0), TARGET));
    }

    #[test]
    fn what_is_assumed_gives_way_to_the_first_measurement_and_that_moves_slowly() {
        let (ms, mib) = (Duration::from_millis, 1 << 20);
        let cost = RedoCost::new(Recovery::Instant);
        assert_eq!(cost.redo(100 * mib, 1000), ms(400 + 100));
        cost.log_read(8 * mib, ms(8));
        cost.pages_written(100, ms(1));
        assert_eq!(cost.redo(100 * mib, 1000), ms(100 + 10));
        cost.log_read(8 * mib, ms(40));
        assert_eq!(cost.redo(100 * mib, 0), ms(200), "a quarter of the way from 1 ms a mebibyte to 5");
        cost.log_read(mib, ms(1000));
        assert_eq!(cost.redo(100 * mib, 0), ms(200), "little log tells nothing of its rate");
    }

    #[test]
    fn a_recovery_without_indices_reads_the_log_twice() {
        for (recovery, expected_ms) in [(Recovery::Instant, 110), (Recovery::Wide, 210)] {
            let cost = RedoCost::new(recovery);
            cost.log_read(100 << 20, Duration::from_millis(100));
            cost.pages_written(100, Duration::from_millis(1));
            assert_eq!(cost.redo(100 << 20, 1000), Duration::from_millis(expected_ms), "{recovery:?}");
        }
    }

    #[test]
    fn what_is_written_keeps_step_with_the_log_and_with_time() {
        let ms = Duration::from_millis;
        let pace = Pace::new(ms(1000), TARGET);
        assert!(pace.due(ms(1000), Duration::ZERO).abs() < 0.01);
        assert!((pace.due(ms(1400), ms(50)) - 0.5).abs() < 0.01, "half of the way to 1.8 s");
        assert!(pace.due(ms(1800), ms(50)) >= 0.99);
        assert!((pace.due(ms(1000), ms(5000)) - 0.5).abs() < 0.01, "half of the ten seconds");
        assert!(Pace::new(ms(1900), TARGET).due(ms(1900), Duration::ZERO) >= 1.0, "it is late");
    }

    #[test]
    fn a_checkpoint_pauses_for_half_a_second_in_all() {
        let mut pauses = Pauses::new();
        assert!(pauses.pause(PAUSES_MAX / 2) && pauses.pause(PAUSES_MAX / 2));
        assert!(!pauses.pause(Duration::from_millis(1)));
    }

    #[test]
    fn a_checkpoint_samples_then_goes_one_by_one_and_wider_only_while_it_stays_behind() {
        let mut width = Width::new(16);
        let steps = |count: u32, width: &mut Width| (0..count).for_each(|_| width.step());
        assert_eq!(width.writes(), 64);
        steps(1, &mut width);
        assert_eq!(width.writes(), 1);
        steps(15, &mut width);
        assert_eq!(width.writes(), 1, "a burst after a rest");
        steps(1, &mut width);
        assert_eq!(width.writes(), 2);
        steps(1000, &mut width);
        assert_eq!(width.writes(), 16);
        width.rest();
        assert_eq!(width.writes(), 1);
    }
}
