//! The statistics that measuring and judging share, each rule once.
//!
//! ```text
//! values ── mean, squared_deviations ──> half_width   95 % interval of the mean, by Student's t  (student.rs)
//! count  ── poisson_half_width                        where only a count is known
//! rounds ── steady::RoundSpread ──> is_steady         SNIA's rule                                (steady.rs)
//! count  ── supports_percentile, IOS_MIN              how many samples a figure needs
//! ```
//!
//! Pure functions of plain numbers: no I/O, no clock, no random numbers.

pub mod steady;
pub mod student;

/// Fewer I/Os than this prove nothing: no verdict, finding or analysis rests on them.
pub const IOS_MIN: u64 = 100;

/// A percentile with fewer samples above it than this is little more than the maximum.
pub const SAMPLES_ABOVE_MIN: f64 = 10.0;

/// Whether enough of `count` samples lie above the percentile `percent` (0 to 100).
pub fn supports_percentile(count: u64, percent: f64) -> bool {
    // 1 - 0.9999 is a little less than 0.0001: exactly enough samples must be enough.
    count as f64 * (1.0 - percent / 100.0) >= SAMPLES_ABOVE_MIN - 1e-6
}

/// Arithmetic mean; 0 without values.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Sum of the squared distances from the mean.
pub fn squared_deviations(values: &[f64]) -> f64 {
    let mean = mean(values);
    values.iter().map(|value| (value - mean).powi(2)).sum()
}

/// Half the width of the 95 % confidence interval about `mean`, an estimate of the mean of independent values.
/// Infinite or NaN with fewer than two of them.
pub fn half_width(values: &[f64], mean: f64) -> f64 {
    let degrees = values.len() as f64 - 1.0;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    student::t_95(degrees) * (squares / degrees / values.len() as f64).sqrt()
}

/// Half the width of the 95 % confidence interval of a rate of which only the count of its events is known (Poisson).
pub fn poisson_half_width(rate: f64, count: u64) -> f64 {
    1.96 * rate / (count.max(1) as f64).sqrt()
}

/// Slope of the least-squares line through equally distant values, by distance; `None` with fewer than two.
pub fn slope(values: &[f64]) -> Option<f64> {
    let (mean, middle) = (mean(values), (values.len() as f64 - 1.0) / 2.0);
    let (mut products, mut squares) = (0.0, 0.0);
    for (at, value) in values.iter().enumerate() {
        let x = at as f64 - middle;
        products += x * (value - mean);
        squares += x * x;
    }
    (squares > 0.0).then(|| products / squares)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_ten_samples_above_a_percentile_support_it() {
        for (count, percent) in [(100, 90.0), (1_000, 99.0), (10_000, 99.9), (100_000, 99.99)] {
            assert!(supports_percentile(count, percent), "{percent}");
            assert!(!supports_percentile(count - 1, percent), "{percent}");
        }
    }

    #[test]
    fn the_half_width_is_that_of_the_tables() {
        let values = [99.0, 101.0];
        assert!((half_width(&values, mean(&values)) - 12.706).abs() < 1e-3);
    }
}
