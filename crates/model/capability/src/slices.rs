use statistics::half_width;
use statistics::steady::{ROUNDS, RoundSpread};
use std::time::Duration;

/// The throughput of a run in slices: whether it is steady, and how precisely its mean is known.
#[derive(Clone, Debug, Default)]
pub struct ThroughputSlices {
    /// I/Os and seconds of each slice.
    slices: Vec<(f64, f64)>,
    /// Where the current slice began: time and I/Os since the run began.
    begun: Option<(Duration, u64)>,
}

/// A mean and its precision.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeanInterval {
    /// Mean I/Os a second over the slices.
    pub mean: f64,
    /// Half the width of its 95 % confidence interval; `None` with fewer than five slices.
    pub half_width: Option<f64>,
}

/// Length of a slice. It ends by the clock alone: one that ended with an I/O would hold, at the end of a run
/// of bursts, one burst more than its time accounts for.
const SLICE: Duration = Duration::from_millis(50);
impl ThroughputSlices {
    /// Records the run's clock and count; true if this closed a slice.
    pub fn record(&mut self, elapsed: Duration, ios: u64) -> bool {
        let Some((since, ios_then)) = self.begun else {
            self.begun = Some((elapsed, ios));
            return false;
        };
        let length = elapsed.saturating_sub(since);
        let count = ios.saturating_sub(ios_then);
        let full = length >= SLICE;
        if full {
            self.slices.push((count as f64, length.as_secs_f64()));
            self.begun = Some((elapsed, ios));
        }
        full
    }

    /// Drops all slices, those of the warm-up.
    pub fn restart(&mut self) {
        self.slices.clear();
        self.begun = None;
    }

    /// Whether the last five slices are steady by SNIA's rule. Periodic bursts (a token bucket's refills) are judged in
    /// batches of slices long enough to hold several of them.
    pub fn is_steady(&self) -> bool {
        self.batches().any(|batches| {
            let last = rates(&batches[batches.len() - ROUNDS..]);
            RoundSpread::from_rounds(&last).is_some_and(RoundSpread::is_steady)
        })
    }

    /// Mean and its confidence interval.
    pub fn mean_interval(&self) -> MeanInterval {
        let seconds: f64 = self.slices.iter().map(|(_, seconds)| seconds).sum();
        let ios: f64 = self.slices.iter().map(|(ios, _)| ios).sum();
        let mean = if seconds > 0.0 { ios / seconds } else { 0.0 };
        // The longest batches there are five of: the least dependent on each other.
        let half_width = self.batches().last().map(|batches| half_width(&rates(&batches), mean));
        MeanInterval { mean, half_width }
    }

    /// The slices themselves, then pairs, fours, eights of them, as long as there are five or more: batch means
    /// of a bursty flow are independent only once a batch is longer than a burst and its pause.
    fn batches(&self) -> impl Iterator<Item = Vec<(f64, f64)>> + '_ {
        let sizes = std::iter::successors(Some(1_usize), |size| Some(size * 2));
        sizes.take_while(|size| self.slices.len() / size >= ROUNDS).map(|size| {
            // The newest slices are kept; what does not fill a batch is the oldest.
            let rest = self.slices.len() % size;
            let sum = |batch: &[(f64, f64)]| batch.iter().fold((0.0, 0.0), |a, b| (a.0 + b.0, a.1 + b.1));
            self.slices[rest..].chunks(size).map(sum).collect()
        })
    }
}

/// The rates of batches, I/Os a second.
fn rates(batches: &[(f64, f64)]) -> Vec<f64> {
    batches.iter().map(|(ios, seconds)| ios / seconds).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn fed(rates: &[u64]) -> ThroughputSlices {
        let mut slices = ThroughputSlices::default();
        let mut ios = 0;
        slices.record(Duration::ZERO, 0);
        for (at, rate) in rates.iter().enumerate() {
            ios += rate;
            slices.record(SLICE * (at as u32 + 1), ios);
        }
        slices
    }

    #[test]
    fn level_throughput_is_steady_and_a_transient_is_not() {
        assert!(fed(&[100, 101, 99, 100, 102]).is_steady());
        assert!(!fed(&[300, 200, 150, 120, 100]).is_steady(), "still falling");
        assert!(fed(&[900, 300, 100, 101, 99, 100, 102]).is_steady(), "the fall is over");
        assert!(!fed(&[100, 100, 100, 100]).is_steady(), "too short to know");
    }

    #[test]
    fn a_drift_of_more_than_a_tenth_is_not_steady_however_smooth() {
        assert!(!fed(&[100, 103, 106, 109, 112]).is_steady());
        assert!(fed(&[100, 101, 102, 103, 104]).is_steady());
    }

    #[test]
    fn an_interval_needs_five_slices_and_narrows() {
        assert_eq!(fed(&[100, 110, 90, 100]).mean_interval().half_width, None);
        let wave: Vec<u64> = (0..40).map(|at| if at % 2 == 0 { 90 } else { 110 }).collect();
        let few = fed(&wave[..6]).mean_interval().half_width.unwrap();
        let many = fed(&wave).mean_interval().half_width.unwrap();
        assert!(many < few, "{few} {many}");
    }

    #[test]
    fn bursts_are_steady_once_looked_at_in_slices_longer_than_their_period() {
        let bursts: Vec<u64> = (0..200).map(|at| if at % 3 == 0 { 300 } else { 0 }).collect();
        let slices = fed(&bursts);
        let interval = slices.mean_interval();
        assert!(slices.is_steady());
        assert!(interval.half_width.unwrap() < 0.2 * interval.mean, "{interval:?}");
        assert!(!fed(&bursts[..8]).is_steady(), "too few bursts to know");
    }

    #[test]
    fn a_slice_ends_by_the_clock_whatever_it_holds() {
        let mut slices = ThroughputSlices::default();
        let ios = |at: u32| if at < 3 { 0 } else { 1000 };
        let closed = (0..=10).filter(|at| slices.record(SLICE * *at, ios(*at))).count();
        assert_eq!(closed, 10);
    }

    proptest! {
        #[test]
        fn the_true_mean_lies_in_the_interval_nearly_always(seed in any::<u64>()) {
            use generator::noise;
            let inside = (0..200)
                .filter(|run| {
                    let rates = noise(seed ^ (run * 7919), 20);
                    let interval = fed(&rates).mean_interval();
                    (interval.mean - 1000.0 / SLICE.as_secs_f64()).abs() <= interval.half_width.unwrap()
                })
                .count();
            prop_assert!(inside >= 170, "{} of 200", inside);
        }
    }

    /// Normal-like noise around 1000 I/Os a slice, from a tiny generator of the test's own.
    mod generator {
        pub fn noise(seed: u64, count: usize) -> Vec<u64> {
            let mut state = seed;
            let mut next = || {
                state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
                let mut z = state;
                z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
                z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
                (z ^ (z >> 31)) % 41
            };
            (0..count).map(|_| 1000 + (0..6).map(|_| next()).sum::<u64>() - 120).collect()
        }
    }
}
