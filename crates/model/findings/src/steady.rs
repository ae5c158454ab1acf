//! The steady part of a run, by [SNIA's rule](statistics::steady): charts and comparisons take their figures from it.
//!
//! A run has no rounds. A stretch from a row to the run's end is cut into five rounds of equal
//! length; the longest stretch that satisfies the rule is the steady part. So a drift that hides from five
//! neighbouring seconds shows over the stretch, and bursts (a token bucket's refills) even out in rounds
//! that hold several of them. Rows at its beginning that stand out from the rest are left out as well.

use crate::limits::STEADY_SHARE;
use crate::run_series::RunSeries;
use statistics::steady::{RANGE_MAX, ROUNDS, RoundSpread};
use workload::RunResult;

/// Whether a run became steady.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Steadiness {
    /// Fewer rows in the series than the rule needs.
    TooShort {
        /// Full rows there are.
        rows: usize,
    },
    /// Not at its end; the window is the whole run, and shows by how much.
    Unsteady(Window),
    /// From the window's beginning to the end of the run.
    Steady(Window),
}

/// A stretch of a run's series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    /// Its first row in [`RunResult::series`].
    pub first: usize,
    /// Its last row: with `first`, what [`RunResult::part`] takes.
    pub last: usize,
    /// When it begins, nanoseconds since the measured part began.
    pub from_ns: u64,
    /// When it ends.
    pub until_ns: u64,
    /// Largest less smallest of its five rounds, as a share of their mean.
    pub range: f64,
    /// How far the least-squares line moves over it, with its sign, as a share of the mean.
    pub excursion: f64,
}

impl Steadiness {
    /// The steady part, if there is one.
    pub fn window(&self) -> Option<&Window> {
        match self {
            Steadiness::Steady(window) => Some(window),
            Steadiness::TooShort { .. } | Steadiness::Unsteady(_) => None,
        }
    }
}

/// Finds the steady part of a run: of its rate, or of its latency where the rate is given (open loops, limits).
pub fn steadiness(result: &RunResult) -> Steadiness {
    classify(&RunSeries::from_result(result))
}

pub(crate) fn classify(series: &RunSeries) -> Steadiness {
    let rows = series.rows.len();
    if rows < ROUNDS {
        return Steadiness::TooShort { rows };
    }
    let least = ROUNDS.max((rows as f64 * STEADY_SHARE).ceil() as usize);
    let steady = |first: &usize| rounds(series, *first).is_some_and(RoundSpread::is_steady);
    let stands_out = |first: usize| {
        let mean = series.value(first..rows).unwrap_or(0.0);
        series.value(first..first + 1).is_none_or(|value| (value - mean).abs() > RANGE_MAX * mean)
    };
    let mut candidates = (0..=rows - least).filter(steady);
    let earliest = candidates.next();
    let settled = earliest.filter(|first| !stands_out(*first));
    let settled = settled.or_else(|| {
        // The transient itself is left out, but no more than that: a row is noisy now and then.
        let transient_max = earliest? + (rows - earliest?) / ROUNDS;
        candidates.take_while(|first| *first <= transient_max).find(|first| !stands_out(*first))
    });
    match settled.or(earliest).and_then(|first| Some((first, rounds(series, first)?))) {
        Some((first, rounds)) => Steadiness::Steady(window(series, first, rounds)),
        None => {
            let whole =
                rounds(series, 0).unwrap_or(RoundSpread { range: f64::INFINITY, excursion: f64::INFINITY });
            Steadiness::Unsteady(window(series, 0, whole))
        }
    }
}

/// Five equal rounds from a row to the end; `None` where one of them has no value.
fn rounds(series: &RunSeries, first: usize) -> Option<RoundSpread> {
    let rows = series.rows.len() - first;
    let edge = |round: usize| first + rows * round / ROUNDS;
    let mut values = [0.0; ROUNDS];
    for (round, value) in values.iter_mut().enumerate() {
        *value = series.value(edge(round)..edge(round + 1))?;
    }
    RoundSpread::from_rounds(&values)
}

fn window(series: &RunSeries, first: usize, rounds: RoundSpread) -> Window {
    let (begin, end) = (&series.rows[first], &series.rows[series.rows.len() - 1]);
    Window {
        first: begin.at,
        last: end.at,
        from_ns: begin.from_ns,
        until_ns: end.end_ns,
        range: rounds.range,
        excursion: rounds.excursion,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::tests::of_rates;
    use proptest::prelude::*;
    use statistics::steady::EXCURSION_MAX;

    fn steady_from(rates: &[u64]) -> Option<usize> {
        steadiness(&of_rates(rates)).window().map(|window| window.first)
    }

    #[test]
    fn level_throughput_is_steady_from_the_start() {
        assert_eq!(steady_from(&[100, 101, 99, 100, 102]), Some(0));
        assert_eq!(steadiness(&of_rates(&[100; 4])), Steadiness::TooShort { rows: 4 });
    }

    #[test]
    fn both_limits_of_the_rule_are_kept() {
        // Range 20 % with a level line, and just over it.
        assert_eq!(steady_from(&[1000, 1100, 900, 1000, 1000]), Some(0));
        assert_eq!(steady_from(&[1000, 1110, 890, 1000, 1000]), None);
        // An even rise of 2.5 % a round moves 10 % over the window; its raw slope would pass at four times that.
        assert_eq!(steady_from(&[950, 975, 1000, 1025, 1050]), Some(0));
        assert_eq!(steady_from(&[946, 973, 1000, 1027, 1054]), None);
    }

    #[test]
    fn the_transient_is_left_out() {
        let mut rates = vec![900, 700, 400, 200];
        rates.extend([100; 40]);
        assert_eq!(steady_from(&rates), Some(4));
        let short: Vec<u64> = [160].into_iter().chain([100; 59]).collect();
        assert_eq!(steady_from(&short), Some(1), "too little to fail the rule, and still not steady");
    }

    #[test]
    fn a_slow_drift_is_not_steady_however_smooth() {
        let falling: Vec<u64> = (0..60).map(|at| 10_000 - 100 * at).collect();
        let from = steady_from(&falling);
        assert!(from.is_none_or(|from| from >= 45), "{from:?}");
    }

    #[test]
    fn bursts_even_out_and_the_last_seconds_alone_are_luck() {
        let bursts: Vec<u64> = (0..60).map(|at| if at % 3 == 0 { 300 } else { 0 }).collect();
        assert!(steady_from(&bursts).is_some_and(|from| from <= 1));
        let mut wild: Vec<u64> = (0..60).map(|at| 1 + at * at * 7).collect();
        wild.extend([100; 5]);
        assert_eq!(steady_from(&wild), None);
    }

    proptest! {
        #[test]
        fn the_steady_part_ends_with_the_run_and_obeys_the_rule(rates in prop::collection::vec(0_u64..2_000, 0..80)) {
            if let Some(window) = steadiness(&of_rates(&rates)).window() {
                prop_assert_eq!(window.last, rates.len() - 1);
                prop_assert!(window.range <= RANGE_MAX && window.excursion.abs() <= EXCURSION_MAX);
                prop_assert!(window.last - window.first + 1 >= ROUNDS);
            }
        }
    }
}
