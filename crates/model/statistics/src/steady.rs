//! Steadiness by the rule of SNIA's Solid State Storage Performance Test Specification: over a window of five rounds,
//! the largest and the smallest value differ by at most 20 % of the mean, and the least-squares line moves by at most
//! 10 % of the mean *over the window* (not by its slope a round, as some re-implementations test).

use crate::{mean, slope};

/// Rounds of a window.
pub const ROUNDS: usize = 5;
/// Largest less smallest round, as a share of their mean.
pub const RANGE_MAX: f64 = 0.20;
/// How far the least-squares line moves over the window, as a share of the mean.
pub const EXCURSION_MAX: f64 = 0.10;

/// How far the rounds of a window differ.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RoundSpread {
    /// Largest less smallest, as a share of the mean.
    pub range: f64,
    /// How far the least-squares line moves from the first round to the last, with its sign, as a share of the mean.
    pub excursion: f64,
}

impl RoundSpread {
    /// `None` where the mean is not a positive number.
    pub fn from_rounds(rounds: &[f64]) -> Option<RoundSpread> {
        let mean = mean(rounds);
        let highest = rounds.iter().copied().fold(f64::MIN, f64::max);
        let lowest = rounds.iter().copied().fold(f64::MAX, f64::min);
        (mean > 0.0 && mean.is_finite())
            .then(|| RoundSpread { range: (highest - lowest) / mean, excursion: excursion(rounds) })
    }

    /// Whether the window is steady.
    pub fn is_steady(self) -> bool {
        self.range <= RANGE_MAX && self.excursion.abs() <= EXCURSION_MAX
    }
}

/// How far the least-squares line through equally distant values moves from the first to the last of them, as a share
/// of their mean; 0 without values.
pub fn excursion(values: &[f64]) -> f64 {
    let mean = mean(values);
    match slope(values) {
        Some(slope) if mean > 0.0 => slope * (values.len() - 1) as f64 / mean,
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_steady(rounds: [f64; ROUNDS]) -> bool {
        RoundSpread::from_rounds(&rounds).is_some_and(RoundSpread::is_steady)
    }

    #[test]
    fn level_rounds_are_steady_and_wide_or_drifting_ones_are_not() {
        assert!(is_steady([100.0, 101.0, 99.0, 100.0, 102.0]));
        assert!(!is_steady([100.0, 125.0, 100.0, 125.0, 100.0]), "wide");
        assert!(!is_steady([100.0, 103.0, 106.0, 109.0, 112.0]), "drifting");
        assert!(!is_steady([0.0; ROUNDS]));
    }
}
