//! When a volume's utilisation reaches 1 at today's growth.
//!
//! ```text
//! U of a day (its 95th percentile)   1 ┤- - - - - - - - - - - - - - -/- - -+- - -
//!                                      │                          /  . '
//!      straight line by least squares  │      x   x      x ____/. '
//!      band: where the line lies       │  x_____x_____/'x   . '      band reaches 1:  earliest
//!      with 95 %, t(n - 2)             │x    x                       line: at this growth
//!                                      └──────────────────────┬──── its other edge:   latest; none: it may never
//!                                                            today
//! ```
//!
//! Days are not independent of each other (weeks, months), so that the true band is wider. That today's growth goes on is
//! an assumption, not a finding.

use statistics::student;

/// Fewer days than these give no trend: a week has a shape of its own.
pub const DAYS_MIN: usize = 14;
/// Days ahead that are predicted, at most.
const AHEAD_DAYS_MAX: u32 = 365;

/// How the utilisation of a volume grows.
#[derive(Clone, Debug, PartialEq)]
pub struct Trend {
    /// Days that are known.
    pub days: usize,
    /// Growth of U a day.
    pub per_day: f64,
    /// Half the width of its 95 % interval.
    pub per_day_half_width: f64,
    /// U today by the line.
    pub today: f64,
    /// When U reaches 1; `None` where it does not within a year.
    pub reach: Option<Reach>,
}

/// Days from today until U reaches 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reach {
    /// By the line.
    pub days: u32,
    /// By the upper edge of the band.
    pub earliest: u32,
    /// By the lower edge; `None` where that does not reach it within a year.
    pub latest: Option<u32>,
}

impl Trend {
    /// The trend of daily values, (day, U); `None` for too few days, or where all are the same day.
    pub fn fit(daily: &[(f64, f64)], today: f64) -> Option<Trend> {
        let known: Vec<(f64, f64)> =
            daily.iter().copied().filter(|(day, value)| day.is_finite() && value.is_finite()).collect();
        let count = known.len() as f64;
        if known.len() < DAYS_MIN {
            return None;
        }
        let mean = |value: fn(&(f64, f64)) -> f64| known.iter().map(value).sum::<f64>() / count;
        let (day_mean, value_mean) = (mean(|one| one.0), mean(|one| one.1));
        let squares = known.iter().map(|(day, _)| (day - day_mean).powi(2)).sum::<f64>();
        if squares <= 0.0 {
            return None;
        }
        let products = known.iter().map(|(day, value)| (day - day_mean) * (value - value_mean)).sum::<f64>();
        let per_day = products / squares;
        let line = |day: f64| value_mean + per_day * (day - day_mean);
        let residual = known.iter().map(|(day, value)| (value - line(*day)).powi(2)).sum::<f64>();
        let spread = (residual / (count - 2.0)).sqrt();
        let times = student::quantile(0.95, count - 2.0);
        let half_width =
            |day: f64| times * spread * (1.0 / count + (day - day_mean).powi(2) / squares).sqrt();
        let first = |value: &dyn Fn(f64) -> f64| {
            (0..=AHEAD_DAYS_MAX).find(|ahead| value(today + f64::from(*ahead)) >= 1.0)
        };
        let reach = first(&line).map(|days| Reach {
            days,
            earliest: first(&|day| line(day) + half_width(day)).unwrap_or(days),
            latest: first(&|day| line(day) - half_width(day)),
        });
        Some(Trend {
            days: known.len(),
            per_day,
            per_day_half_width: times * spread / squares.sqrt(),
            today: line(today),
            // A line that falls and still lies above 1 is no growth: the verdict says what is now.
            reach: reach.filter(|_| per_day > 0.0),
        })
    }

    /// Whether U reaches 1 within `days` at today's growth.
    pub fn runs_out_within(&self, days: u32) -> bool {
        self.reach.is_some_and(|reach| reach.days <= days)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn growing(days: u32, from: f64, per_day: f64, noise: f64) -> Vec<(f64, f64)> {
        // The days of a week in another order stand for noise: a sawtooth would be a trend.
        let saw = |day: u32| noise * (f64::from(day * 3 % 7) / 6.0 - 0.5);
        (0..days).map(|day| (f64::from(day), from + per_day * f64::from(day) + saw(day))).collect()
    }

    #[test]
    fn a_straight_growth_reaches_one_when_it_must() {
        let trend = Trend::fit(&growing(41, 0.4, 0.01, 0.0), 40.0).unwrap();
        assert!((trend.today - 0.8).abs() < 1e-9 && (trend.per_day - 0.01).abs() < 1e-9);
        assert_eq!(trend.reach.unwrap().days, 20);
        assert!(trend.runs_out_within(30) && !trend.runs_out_within(19));
    }

    #[test]
    fn noise_widens_the_range_and_may_leave_no_latest_day() {
        let little = Trend::fit(&growing(42, 0.4, 0.01, 0.05), 41.0).unwrap().reach.unwrap();
        let much = Trend::fit(&growing(42, 0.4, 0.01, 0.4), 41.0).unwrap().reach.unwrap();
        assert!(much.earliest < little.earliest && little.earliest <= little.days);
        assert!(little.latest.unwrap() < much.latest.unwrap_or(u32::MAX));
        let drowned = Trend::fit(&growing(14, 0.4, 0.005, 1.0), 13.0).unwrap();
        assert!(drowned.per_day_half_width > drowned.per_day.abs());
        assert_eq!(drowned.reach.and_then(|reach| reach.latest), None);
    }

    #[test]
    fn what_does_not_grow_does_not_run_out_and_a_week_is_no_trend() {
        assert_eq!(Trend::fit(&growing(30, 0.5, 0.0, 0.0), 29.0).unwrap().reach, None);
        assert_eq!(Trend::fit(&growing(30, 1.5, -0.01, 0.0), 29.0).unwrap().reach, None);
        assert_eq!(Trend::fit(&growing(13, 0.5, 0.1, 0.0), 12.0), None);
        assert_eq!(Trend::fit(&[(1.0, 0.5); 20], 1.0), None);
    }

    proptest! {
        #[test]
        fn the_range_holds_the_line(days in 14_u32..60, from in 0.0..0.9_f64, per_day in -0.02..0.05_f64,
                                    noise in 0.0..0.3_f64) {
            let daily = growing(days, from, per_day, noise);
            let trend = Trend::fit(&daily, f64::from(days - 1)).unwrap();
            if let Some(reach) = trend.reach {
                prop_assert!(reach.earliest <= reach.days);
                prop_assert!(reach.latest.is_none_or(|latest| latest >= reach.days));
            }
        }
    }
}
