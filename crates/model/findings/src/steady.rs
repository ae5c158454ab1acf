//! The steady part of a run, by SNIA's rule: charts and comparisons take their figures from it.
//!
//! Solid State Storage Performance Test Specification: over a window of five rounds, the largest and the
//! smallest differ by at most 20 % of the mean, and the least-squares line moves by at most 10 % of the mean
//! *over the window* (not by its slope a round, as some re-implementations test).
//!
//! A run has no rounds of its own. A stretch from a row to the run's end is cut into five rounds of equal
//! length; the longest stretch that satisfies the rule is the steady part. So a drift that hides from five
//! neighbouring seconds shows over the stretch, and bursts (a token bucket's refills) even out in rounds
//! that hold several of them. Rows at its beginning that stand out from the rest are left out as well.

use crate::course::{Measure, RunSeries};
use crate::limits::{STEADY_EXCURSION, STEADY_RANGE, STEADY_ROUNDS, STEADY_SHARE};
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

/// Looks for the steady part: of the rate, or of the latency where the rate is given (open loops, limits).
pub fn steadiness(result: &RunResult) -> Steadiness {
    of(&RunSeries::from_result(result))
}

pub(crate) fn of(course: &RunSeries) -> Steadiness {
    let rows = course.rows.len();
    if rows < STEADY_ROUNDS {
        return Steadiness::TooShort { rows };
    }
    let least = STEADY_ROUNDS.max((rows as f64 * STEADY_SHARE).ceil() as usize);
    let steady = |first: &usize| rounds(course, *first).is_some_and(Rounds::holds);
    let stands_out = |first: usize| {
        let mean = course.value(first..rows).unwrap_or(0.0);
        course.value(first..first + 1).is_none_or(|value| (value - mean).abs() > STEADY_RANGE * mean)
    };
    let mut candidates = (0..=rows - least).filter(steady);
    let earliest = candidates.next();
    let settled = earliest.filter(|first| !stands_out(*first));
    let settled = settled.or_else(|| {
        // The transient itself is left out, but no more than that: a row is noisy now and then.
        let transient_max = earliest? + (rows - earliest?) / STEADY_ROUNDS;
        candidates.take_while(|first| *first <= transient_max).find(|first| !stands_out(*first))
    });
    match settled.or(earliest).and_then(|first| Some((first, rounds(course, first)?))) {
        Some((first, rounds)) => Steadiness::Steady(window(course, first, rounds)),
        None => {
            let whole =
                rounds(course, 0).unwrap_or(Rounds { range: f64::INFINITY, excursion: f64::INFINITY });
            Steadiness::Unsteady(window(course, 0, whole))
        }
    }
}

#[derive(Clone, Copy)]
struct Rounds {
    range: f64,
    excursion: f64,
}

impl Rounds {
    fn holds(self) -> bool {
        self.range <= STEADY_RANGE && self.excursion.abs() <= STEADY_EXCURSION
    }
}

/// Five equal rounds from a row to the end; `None` where one of them has no value.
fn rounds(course: &RunSeries, first: usize) -> Option<Rounds> {
    let rows = course.rows.len() - first;
    let edge = |round: usize| first + rows * round / STEADY_ROUNDS;
    let mut values = [0.0; STEADY_ROUNDS];
    for (round, value) in values.iter_mut().enumerate() {
        *value = course.value(edge(round)..edge(round + 1))?;
    }
    let mean = values.iter().sum::<f64>() / STEADY_ROUNDS as f64;
    let highest = values.iter().copied().fold(f64::MIN, f64::max);
    let lowest = values.iter().copied().fold(f64::MAX, f64::min);
    (mean > 0.0 && mean.is_finite())
        .then(|| Rounds { range: (highest - lowest) / mean, excursion: excursion(&values) })
}

/// How far the least-squares line through equally distant values moves from the first to the last of them,
/// as a share of their mean; 0 without values.
pub(crate) fn excursion(values: &[f64]) -> f64 {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let middle = (count - 1.0) / 2.0;
    let (mut products, mut squares) = (0.0, 0.0);
    for (at, value) in values.iter().enumerate() {
        let x = at as f64 - middle;
        products += x * (value - mean);
        squares += x * x;
    }
    if squares > 0.0 && mean > 0.0 { products / squares * (count - 1.0) / mean } else { 0.0 }
}

fn window(course: &RunSeries, first: usize, rounds: Rounds) -> Window {
    let (begin, end) = (&course.rows[first], &course.rows[course.rows.len() - 1]);
    Window {
        first: begin.at,
        last: end.at,
        from_ns: begin.from_ns,
        until_ns: end.end_ns,
        range: rounds.range,
        excursion: rounds.excursion,
    }
}

impl RunSeries {
    /// Rate (I/Os a second) or mean latency (ns) over some rows; `None` where there is none.
    fn value(&self, rows: std::ops::Range<usize>) -> Option<f64> {
        let (ios, stall_ns, ns) = self.sums(rows);
        match self.measure {
            Measure::Rate => (ns > 0.0).then(|| ios * 1e9 / ns),
            Measure::Latency => (ios > 0.0).then(|| stall_ns / ios),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::tests::of_rates;
    use proptest::prelude::*;

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
                prop_assert!(window.range <= STEADY_RANGE && window.excursion.abs() <= STEADY_EXCURSION);
                prop_assert!(window.last - window.first + 1 >= STEADY_ROUNDS);
            }
        }
    }
}
