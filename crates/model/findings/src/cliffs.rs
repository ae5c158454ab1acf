//! Where the speed fell for good: a write cache that is full, burst credits that are used up, throttling.
//!
//! The run is cut where two levels fit it best (least squares), and its parts again. A cut is a cliff where
//! the step explains the stretch between its neighbouring cuts better than a line does, the level falls by
//! enough, and nearly all rows of the run before and after it lie on their side of it.

use crate::limits::{CLIFF_FALL, CLIFF_LASTING, CLIFF_ROWS};
use crate::run_series::{Measure, Row, RunSeries};
use statistics::{mean, slope, squared_deviations};
use std::ops::Range;

/// A lasting fall of the rate, or rise of the latency.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cliff {
    pub at_ns: u64,
    /// Rate (I/Os a second) or latency (ns) before it and after it.
    pub before: f64,
    pub after: f64,
    /// Share of the speed that was lost.
    pub fall: f64,
    /// Bytes moved until then.
    pub bytes_before: f64,
}

/// A stretch is cut at most this many times within itself.
const CUTS_DEEP: usize = 3;

/// All cliffs of a run, in their order.
pub fn find_cliffs(series: &RunSeries) -> Vec<Cliff> {
    let speeds: Vec<f64> = series.rows.iter().map(|row| speed(series.measure, row)).collect();
    let rows_min = CLIFF_ROWS.max(speeds.len() / 20);
    let mut cuts = vec![0, speeds.len()];
    cut(&speeds, 0..speeds.len(), rows_min, CUTS_DEEP, &mut cuts);
    cuts.sort_unstable();
    let of = |speed: f64| match series.measure {
        Measure::Rate => speed,
        Measure::Latency => 1.0 / speed,
    };
    let cliff = |neighbours: &[usize]| {
        let [from, at, to] = *neighbours else { return None };
        let (before, after) = (mean(&speeds[from..at]), mean(&speeds[at..to]));
        (is_step(&speeds[from..to], at - from) && falls_for_good(&speeds, from, at, to)).then(|| Cliff {
            at_ns: series.rows[at].from_ns,
            before: of(before),
            after: of(after),
            fall: 1.0 - after / before,
            bytes_before: series.rows[..at].iter().map(|row| row.bytes).sum(),
        })
    };
    cuts.windows(3).filter_map(cliff).collect()
}

/// The more the better: the rate, or the inverse of the latency.
fn speed(measure: Measure, row: &Row) -> f64 {
    match measure {
        Measure::Rate => row.rate(),
        Measure::Latency if row.stall_ns > 0.0 => row.ios / row.stall_ns,
        Measure::Latency => 0.0,
    }
}

/// Cuts a stretch where two levels fit it best, and both parts again.
fn cut(speeds: &[f64], range: Range<usize>, rows_min: usize, deep: usize, cuts: &mut Vec<usize>) {
    if deep == 0 || range.len() < 2 * rows_min {
        return;
    }
    let Some(at) = best_step(&speeds[range.clone()], rows_min) else { return };
    let at = range.start + at;
    cuts.push(at);
    cut(speeds, range.start..at, rows_min, deep - 1, cuts);
    cut(speeds, at..range.end, rows_min, deep - 1, cuts);
}

/// Where two levels leave the least squares.
fn best_step(stretch: &[f64], rows_min: usize) -> Option<usize> {
    let total: f64 = stretch.iter().sum();
    let mut left = 0.0;
    let mut best: Option<(usize, f64)> = None;
    for (at, value) in stretch.iter().enumerate().take(stretch.len() - rows_min + 1) {
        if at >= rows_min {
            let (before, after) = (at as f64, (stretch.len() - at) as f64);
            // The squares of the values themselves are the same for every cut.
            let explained = left * left / before + (total - left).powi(2) / after;
            if best.is_none_or(|(_, most)| explained > most) {
                best = Some((at, explained));
            }
        }
        left += value;
    }
    best.map(|(at, _)| at)
}

/// Whether two levels explain a stretch better than a line does.
fn is_step(stretch: &[f64], at: usize) -> bool {
    let count = stretch.len() as f64;
    // Sum of the squared distances of 0, 1 ... count - 1 from their mean.
    let squares = count * (count * count - 1.0) / 12.0;
    let line = squared_deviations(stretch) - slope(stretch).unwrap_or(0.0).powi(2) * squares;
    squared_deviations(&stretch[..at]) + squared_deviations(&stretch[at..]) < line
}

/// Whether the level falls by enough at a cut, for all the rest of the run, to where it never was before.
fn falls_for_good(speeds: &[f64], from: usize, at: usize, to: usize) -> bool {
    let (before, step, rest) = (mean(&speeds[from..at]), mean(&speeds[at..to]), mean(&speeds[at..]));
    let middle = (before + step) / 2.0;
    let lasting = |rows: &[f64], on_side: fn(&f64, &f64) -> bool| {
        rows.iter().filter(|value| on_side(value, &middle)).count() as f64
            >= CLIFF_LASTING * rows.len() as f64
    };
    before > 0.0
        && step.max(rest) <= (1.0 - CLIFF_FALL) * before
        && lasting(&speeds[..at], |value, middle| value > middle)
        && lasting(&speeds[at..], |value, middle| value < middle)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::tests::of_rates;

    fn times(rates: &[u64]) -> Vec<u64> {
        find_cliffs(&RunSeries::from_result(&of_rates(rates)))
            .iter()
            .map(|cliff| cliff.at_ns / 1_000_000_000)
            .collect()
    }

    fn levels(levels: &[(u64, usize)]) -> Vec<u64> {
        let noise = |at: usize| [0, 3, 1, 4, 2][at % 5];
        levels.iter().flat_map(|(rate, rows)| (0..*rows).map(move |at| rate + noise(at))).collect()
    }

    #[test]
    fn a_fall_by_a_quarter_that_lasts_is_one() {
        assert_eq!(times(&levels(&[(1000, 20), (745, 20)])), [20]);
        assert!(times(&levels(&[(1000, 20), (760, 20)])).is_empty());
    }

    #[test]
    fn two_falls_are_two() {
        assert_eq!(times(&levels(&[(1000, 20), (500, 20), (200, 20)])), [20, 40]);
    }

    #[test]
    fn a_fall_that_recovers_a_rise_and_a_slow_decline_are_none() {
        assert!(times(&levels(&[(1000, 20), (300, 8), (1000, 20)])).is_empty());
        assert!(times(&levels(&[(300, 20), (1000, 20)])).is_empty());
        assert!(times(&(0..60).map(|at| 10_000 - 100 * at).collect::<Vec<u64>>()).is_empty());
    }

    #[test]
    fn swings_that_come_again_are_none() {
        assert!(times(&levels(&[(1000, 9), (300, 9), (1000, 9), (300, 9)])).is_empty());
    }
}
