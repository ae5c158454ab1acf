//! The error of a mean whose values depend on each other: batch means.

use statistics::{mean, squared_deviations};

/// Fewer values than this say nothing about how they depend on each other.
pub(crate) const VALUES_MIN: usize = 10;
/// Fewer batches than this say nothing about how batches scatter.
const BATCHES_MIN: usize = 5;
/// More batches than this gain little, and shorter ones depend on each other more.
const BATCHES_MAX: usize = 20;
/// Batches whose correlation is below this are long enough.
const CORRELATION_MAX: f64 = 0.2;
/// Correlation that is believed at most: beyond it the factor has no bound.
const CORRELATION_BELIEVED_MAX: f64 = 0.9;

/// How surely a mean is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct MeanError {
    /// Standard error.
    pub error: f64,
    /// Degrees of freedom: batches less one.
    pub degrees: f64,
}

/// The standard error of the mean of a series of which neighbours resemble each other; `None` with fewer than
/// [`VALUES_MIN`] values.
///
/// Batches grow until the correlation of neighbouring ones, corrected for its bias in short series (Marriott
/// and Pope 1954), is small, as long as there are five. The remaining correlation, plus half its own standard
/// error because it is only estimated, widens the error by (1 + r) / (1 - r), exact for a first-order
/// autoregressive series (Law and Kelton 2000, 9.5.3).
pub(crate) fn mean_error(values: &[f64]) -> Option<MeanError> {
    if values.len() < VALUES_MIN {
        return None;
    }
    let mut length = values.len().div_ceil(BATCHES_MAX);
    loop {
        // Values that do not fill a batch are left out at the beginning, where a run may still be settling.
        let rest = values.len() % length;
        let batches: Vec<f64> = values[rest..].chunks(length).map(mean).collect();
        let count = batches.len() as f64;
        let found = correlation(&batches);
        let unbiased = found + (1.0 + 4.0 * found) / count;
        let longer = length + length.div_ceil(4);
        if unbiased > CORRELATION_MAX && values.len() / longer >= BATCHES_MIN {
            length = longer;
            continue;
        }
        let believed = (unbiased + 0.5 / count.sqrt()).clamp(0.0, CORRELATION_BELIEVED_MAX);
        let variance = squared_deviations(&batches) / (count - 1.0) / count;
        let error = (variance * (1.0 + believed) / (1.0 - believed)).sqrt();
        return Some(MeanError { error, degrees: count - 1.0 });
    }
}

fn correlation(values: &[f64]) -> f64 {
    let (mean, squares) = (mean(values), squared_deviations(values));
    if squares <= 0.0 {
        return 0.0;
    }
    values.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum::<f64>() / squares
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependent_values_have_the_larger_error() {
        // Ten values in both cases, alternating and in two blocks: only their order differs.
        let alternating: Vec<f64> = (0..40).map(|at| f64::from(at % 2)).collect();
        let blocks: Vec<f64> = (0..40).map(|at| f64::from(at / 10 % 2)).collect();
        let (free, dependent) = (mean_error(&alternating).unwrap(), mean_error(&blocks).unwrap());
        assert!(dependent.error > 3.0 * free.error, "{dependent:?} {free:?}");
    }

    #[test]
    fn a_short_series_has_no_error() {
        assert_eq!(mean_error(&[1.0; VALUES_MIN - 1]), None);
        assert_eq!(mean_error(&[1.0; VALUES_MIN]).unwrap().error, 0.0);
    }
}
