//! When a checkpoint begins and how fast it goes, from what recovery would take if it came now. Pure.
//!
//! ```text
//! redo      log bytes / measured rate of reading it (twice, where recovery reads it to analyse it and then for the
//!           pages) + dirty pages x measured time of writing one
//! begin     at half of the target (`Options::redo_target`)
//! pace      what is written keeps step with how far redo has come from there to nine tenths of the target,
//!           and with time, so that a quiet store is done within ten seconds
//! ```
//! What is measured moves slowly: one slow write does not turn the pace over. Recovery writes many pages at once, so
//! only what was written so tells what a page takes it: a checkpoint begins with a sample.
//!
//! One write at a time is what those who commit feel least. A disk that answers slowly needs more in flight to keep the
//! pace: as long as a checkpoint stays behind, it goes wider.

use crate::options::Recovery;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Shares of the target at which a checkpoint begins, and by which it has ended.
const BEGIN_SHARE: f64 = 0.5;
const END_SHARE: f64 = 0.9;
/// A checkpoint does not take longer than this because there is time.
const SPREAD_MAX: Duration = Duration::from_secs(10);
/// Until they are measured: a page in 100 us, a mebibyte of log in 4 ms.
const PAGE_NS: u64 = 100_000;
const LOG_MIB_NS: u64 = 4_000_000;
/// Of a new measurement, in eighths.
const NEW_EIGHTHS: u64 = 2;

/// What redo costs here; 0 where it was not measured yet.
#[derive(Debug)]
pub(crate) struct RedoCost {
    log_passes: u64,
    page_ns: AtomicU64,
    log_mib_ns: AtomicU64,
}

impl RedoCost {
    /// Of a store that is recovered so.
    pub(crate) fn of(recovery: Recovery) -> Self {
        // Indices tell which pages there are; without them all of the log is read for that, and again for the pages.
        let log_passes = if recovery == Recovery::Instant { 1 } else { 2 };
        Self { log_passes, page_ns: AtomicU64::new(0), log_mib_ns: AtomicU64::new(0) }
    }

    /// So many pages were written in this time, as many at once as recovery would, their part of the sync included, and
    /// not the time in which they were put together.
    pub(crate) fn pages_written(&self, pages: u64, took: Duration) {
        if let Some(each) = (took.as_nanos() as u64).checked_div(pages) {
            blend(&self.page_ns, each);
        }
    }

    /// So much log was read and taken in, in this time: to analyse it, or to put all pages together that it is of.
    pub(crate) fn log_read(&self, bytes: u64, took: Duration) {
        if bytes >= 8 << 20 {
            blend(&self.log_mib_ns, (took.as_nanos() as u64).saturating_mul(1 << 20) / bytes);
        }
    }

    /// What recovery would take.
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

/// Whether redo has come so far that a checkpoint begins.
pub(crate) fn begins(redo: Duration, target: Duration) -> bool {
    redo >= target.mul_f64(BEGIN_SHARE)
}

/// The pace of one checkpoint.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// Of redo when it began.
    from: Duration,
    upto: Duration,
}

impl Pace {
    pub(crate) fn new(redo: Duration, target: Duration) -> Self {
        Self { from: redo, upto: target.mul_f64(END_SHARE) }
    }

    /// The share that is to be written by now, 1 or more for all.
    pub(crate) fn due(&self, redo: Duration, elapsed: Duration) -> f64 {
        let room = self.upto.saturating_sub(self.from);
        if room.is_zero() {
            return 1.0;
        }
        let by_redo = redo.saturating_sub(self.from).as_secs_f64() / room.as_secs_f64();
        by_redo.max(elapsed.as_secs_f64() / SPREAD_MAX.as_secs_f64())
    }
}

/// Writes of a checkpoint's first step, for each that recovery has in flight: a sample of what a page takes it.
const SAMPLE_DEPTH: usize = 4;
/// Steps without a rest after which twice as many writes go at once.
const STEPS_A_WIDTH: u32 = 16;

/// How many writes a paced checkpoint has in flight.
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

    /// Of the next step.
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

    /// It is ahead of its time.
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
        let cost = RedoCost::of(Recovery::Instant);
        (0..50).for_each(|_| cost.pages_written(100, Duration::from_millis(10)));
        (0..50).for_each(|_| cost.log_read(100 << 20, Duration::from_millis(200)));
        // 2 ms a mebibyte, 100 us a page.
        assert!(!begins(cost.redo(100 << 20, 7_800), TARGET), "{:?}", cost.redo(100 << 20, 7_800));
        assert!(begins(cost.redo(100 << 20, 8_200), TARGET), "{:?}", cost.redo(100 << 20, 8_200));
        assert!(begins(cost.redo(520 << 20, 0), TARGET));
    }

    #[test]
    fn what_is_assumed_gives_way_to_the_first_measurement_and_that_moves_slowly() {
        let (ms, mib) = (Duration::from_millis, 1 << 20);
        let cost = RedoCost::of(Recovery::Instant);
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
            let cost = RedoCost::of(recovery);
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
