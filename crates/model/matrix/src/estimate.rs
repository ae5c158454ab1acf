use serde::{Deserialize, Serialize};
use statistics::{half_width, mean};

/// A figure estimated from the repeats of a point.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "RepeatedFigure"))]
pub struct Estimate {
    /// The mean of up to five repeats, the median of more.
    pub value: f64,
    /// Repeats behind it.
    pub repeats: u32,
    /// Where the value of endless repeats lies, with 95 % confidence; one run alone does not say.
    pub interval: Option<Interval>,
}

/// A 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "ConfidenceInterval"))]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// How it was found.
    pub method: Method,
}

/// How an interval was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "IntervalMethod"))]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Student's t about the mean. Supposes that the runs' figures are normally distributed, as far as means
    /// over thousands of I/Os are; fewer than six runs leave no other choice.
    MeanT,
    /// Between two of the runs, by the binomial distribution of how many lie below the median. Supposes
    /// nothing, and storage is seldom normal (Maricq et al., OSDI 2018); at 95 % it needs six runs.
    MedianOrder,
}

impl Estimate {
    /// From values of a rate, which are never negative; `None` without any.
    pub fn from_values(values: &[f64]) -> Option<Estimate> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let n = sorted.len();
        let repeats = n as u32;
        match n {
            0 => None,
            1 => Some(Estimate { value: sorted[0], repeats, interval: None }),
            2..=5 => {
                let mean = mean(&sorted);
                let half = half_width(&sorted, mean);
                let interval =
                    Interval { low: (mean - half).max(0.0), high: mean + half, method: Method::MeanT };
                Some(Estimate { value: mean, repeats, interval: Some(interval) })
            }
            _ => {
                let median = (sorted[(n - 1) / 2] + sorted[n / 2]) / 2.0;
                let rank = median_rank(n);
                let (low, high) = (sorted[rank - 1], sorted[n - rank]);
                let interval = Interval { low, high, method: Method::MedianOrder };
                Some(Estimate { value: median, repeats, interval: Some(interval) })
            }
        }
    }

    /// Half the interval's width as a share of the value; `None` for one run, or a value of 0.
    pub fn relative_half_width(&self) -> Option<f64> {
        let interval = self.interval?;
        (self.value > 0.0).then(|| (interval.high - interval.low) / 2.0 / self.value)
    }
}

/// The highest rank k such that the k-th smallest and the k-th largest of n values hold the median between
/// them with at least 95 %: 1 - 2 P(Bin(n, 1/2) < k). Exact up to [`REPEATS_MAX`](crate::Matrix::REPEATS_MAX).
fn median_rank(n: usize) -> usize {
    let mut below = 0.0;
    let mut probability = 0.5_f64.powi(n as i32);
    let mut rank = 0;
    while rank < n / 2 {
        below += probability;
        if 2.0 * below > 0.05 {
            break;
        }
        probability *= (n - rank) as f64 / (rank + 1) as f64;
        rank += 1;
    }
    rank.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ranks_are_those_of_the_tables() {
        // Conover, Practical Nonparametric Statistics: 95 % intervals of the median.
        let ranks = [(6, 1), (8, 1), (9, 2), (11, 2), (12, 3), (15, 4), (20, 6), (25, 8), (50, 18)];
        for (n, rank) in ranks {
            assert_eq!(median_rank(n), rank, "of {n}");
        }
    }

    #[test]
    fn few_repeats_have_a_mean_many_a_median() {
        assert_eq!(Estimate::from_values(&[]), None);
        assert_eq!(Estimate::from_values(&[5.0]).unwrap().interval, None);
        let two = Estimate::from_values(&[99.0, 101.0]).unwrap();
        assert!((two.interval.unwrap().low - (100.0 - 12.706)).abs() < 1e-9);
        let six = Estimate::from_values(&[1.0, 2.0, 3.0, 4.0, 5.0, 600.0]).unwrap();
        assert_eq!((six.value, six.interval.unwrap().high), (3.5, 600.0));
        assert_eq!(six.interval.unwrap().method, Method::MedianOrder);
    }

    proptest! {
        #[test]
        fn the_interval_holds_its_value(values in prop::collection::vec(1.0_f64..1e6, 2..60)) {
            let estimate = Estimate::from_values(&values).unwrap();
            let interval = estimate.interval.unwrap();
            prop_assert!(interval.low <= estimate.value && estimate.value <= interval.high);
        }

        #[test]
        fn the_interval_covers_the_median_of_a_skewed_distribution(seed in any::<u64>()) {
            // Exponential: median ln 2. 400 trials of 9 runs: coverage within 7 deviations of 96 %, as there are many seeds.
            let mut state = seed | 1;
            let mut uniform = || {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                (state >> 11) as f64 / (1_u64 << 53) as f64
            };
            let covered = (0..400).filter(|_| {
                let runs: Vec<f64> = (0..9).map(|_| -(1.0 - uniform()).ln()).collect();
                let interval = Estimate::from_values(&runs).unwrap().interval.unwrap();
                (interval.low..=interval.high).contains(&std::f64::consts::LN_2)
            });
            prop_assert!(covered.count() >= 357);
        }
    }
}
