//! Latency with nothing in the way, and whether it became another one.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Latencies of small I/Os in windows with at most about one outstanding.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Rest {
    /// Windows by the logarithm of their mean latency, eight bins for each doubling.
    bins: BTreeMap<i32, u32>,
    /// Page's sums: how far latency lay above and below the median lately, in deviations.
    above: f64,
    below: f64,
}

const BINS_PER_DOUBLING: f64 = 8.0;
/// Windows before a change can be noticed: two minutes.
const REFERENCE_MIN: u32 = 24;
/// Counts are halved from here on, so that what was long ago counts less.
const WINDOWS_MAX: u32 = 20_000;
/// Doublings of latency that are an ordinary deviation, at least.
const DEVIATION_MIN: f64 = 0.3;
/// Deviations that do not count towards a change.
const ALLOWED: f64 = 1.0;
/// Deviations of one window that count at most: a stall of a minute is no change.
const DEVIATION_MAX: f64 = 4.0;
/// The sum that is a change: ten minutes of windows far away, or half an hour of windows twice the allowed deviation.
const CHANGED: f64 = 360.0;

impl Rest {
    /// Adds the mean latency of a window. Returns whether latency changed for good.
    pub(crate) fn add(&mut self, latency_ns: f64) -> bool {
        if !(latency_ns > 0.0 && latency_ns.is_finite()) {
            return false;
        }
        let doublings = latency_ns.log2();
        if let Some((median, deviation)) = self.reference() {
            let distance = ((doublings - median) / deviation).clamp(-DEVIATION_MAX, DEVIATION_MAX);
            self.above = (self.above + distance - ALLOWED).max(0.0);
            self.below = (self.below - distance - ALLOWED).max(0.0);
            if self.above.max(self.below) >= CHANGED {
                return true;
            }
            // A latency that may be a change is not part of its own reference.
            if distance.abs() > ALLOWED {
                return false;
            }
        }
        *self.bins.entry((doublings * BINS_PER_DOUBLING).floor() as i32).or_default() += 1;
        if self.windows() > WINDOWS_MAX {
            self.bins.values_mut().for_each(|count| *count /= 2);
            self.bins.retain(|_, count| *count > 0);
        }
        false
    }

    fn windows(&self) -> u32 {
        self.bins.values().sum()
    }

    /// Median and deviation in doublings; `None` before there is enough to compare with.
    fn reference(&self) -> Option<(f64, f64)> {
        if self.windows() < REFERENCE_MIN {
            return None;
        }
        let quantile = |share| self.quantile_doublings(share);
        // Half of a normal distribution lies within 0.67 deviations.
        let deviation = (quantile(0.75)? - quantile(0.25)?) / 1.35;
        Some((quantile(0.5)?, deviation.max(DEVIATION_MIN)))
    }

    fn quantile_doublings(&self, share: f64) -> Option<f64> {
        let wanted = f64::from(self.windows()) * share;
        let mut passed = 0.0;
        self.bins.iter().find_map(|(bin, count)| {
            passed += f64::from(*count);
            (passed >= wanted && passed > 0.0).then(|| (f64::from(*bin) + 0.5) / BINS_PER_DOUBLING)
        })
    }

    fn quantile_ns(&self, share: f64) -> Option<f64> {
        self.quantile_doublings(share).map(f64::exp2)
    }

    /// The median, nanoseconds; `None` where none was seen.
    pub fn median_ns(&self) -> Option<f64> {
        self.quantile_ns(0.5)
    }

    /// The median, once enough was seen that something can be compared with it.
    pub fn known_median_ns(&self) -> Option<f64> {
        self.median_ns().filter(|_| self.windows() >= REFERENCE_MIN)
    }

    /// Latencies between which half of the windows lie, nanoseconds.
    pub fn middle_half_ns(&self) -> Option<(f64, f64)> {
        self.quantile_ns(0.25).zip(self.quantile_ns(0.75))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Windows until a latency is a change, at most `most`.
    fn noticed_after(latency_ns: f64, most: u32) -> Option<u32> {
        let mut rest = Rest::default();
        for window in 0..200 {
            assert!(!rest.add(1e6 * (1.0 + f64::from(window % 7) / 50.0)));
        }
        (0..most).find(|_| rest.add(latency_ns))
    }

    #[test]
    fn another_latency_for_ten_minutes_is_a_change_and_a_stall_is_none() {
        assert!((100..=125).contains(&noticed_after(4e6, 1_000).unwrap()));
        assert!(noticed_after(0.2e6, 1_000).is_some());
        assert_eq!(noticed_after(100e6, 60), None, "five minutes");
        assert_eq!(noticed_after(1.15e6, 100_000), None, "a seventh more");
    }

    #[test]
    fn the_median_is_within_a_bin() {
        let mut rest = Rest::default();
        assert!(!(0..50).any(|_| rest.add(0.6e6)), "the same latency is no change");
        let median = rest.median_ns().unwrap();
        assert!((median / 0.6e6 - 1.0).abs() < 0.06, "{median}");
    }
}
