//! Where another run adds most knowledge. Both kinds of not knowing are shares of the value, so that they compare:
//!
//! * a point that was not run: how far its neighbours lie from the straight line between theirs (the second
//!   difference of log IOPS and log latency over log outstanding), times the doublings to the nearest one;
//! * a point that was run: the half-width of its repeats' interval.

use crate::{Estimate, Point, Progress, RunKey};

/// Taken for a bend or a disagreement as long as none is known.
const UNKNOWN: f64 = 0.05;

/// A measured point of a curve.
#[derive(Clone, Copy)]
struct Measured {
    doublings: f64,
    log_iops: f64,
    log_latency: f64,
}

/// The run to be done next; `None` where none is planned.
pub(crate) fn most_telling(
    series: &[Vec<usize>],
    points: &[Point],
    progress: &Progress,
    repeats: u32,
) -> Option<RunKey> {
    let doublings = |at: usize| f64::from(points[at].outstanding).log2();
    let measured: Vec<Vec<Measured>> = series
        .iter()
        .map(|line| {
            let place = |at: &usize| {
                let (iops, latency_ns) = progress.mean(*at)?;
                Some(Measured {
                    doublings: doublings(*at),
                    log_iops: iops.ln(),
                    log_latency: latency_ns.ln(),
                })
            };
            line.iter().filter_map(place).collect()
        })
        .collect();
    let typical_bend = median(measured.iter().flat_map(|line| bends(line)).map(|(_, bend)| bend));
    let widths = (0..points.len()).filter_map(|at| disagreement(progress, at));
    let typical_width = median(widths);

    let mut best: Option<(f64, RunKey)> = None;
    for (line, measured) in series.iter().zip(&measured) {
        let bends = bends(measured);
        for &point in line {
            let Some(repeat) =
                (0..repeats).find(|repeat| progress.is_planned(RunKey { point, repeat: *repeat }))
            else {
                continue;
            };
            let unknown = if progress.done(point).next().is_some() {
                disagreement(progress, point).unwrap_or(typical_width)
            } else {
                let here = doublings(point);
                let distance = measured.iter().map(|it| (it.doublings - here).abs()).min_by(f64::total_cmp);
                // A curve that nothing is known of is farther away than any point of a known one.
                let distance = distance.unwrap_or(doublings(line[line.len() - 1]) - doublings(line[0]) + 1.0);
                bend_near(&bends, here).unwrap_or(typical_bend) * distance
            };
            let key = RunKey { point, repeat };
            if best.is_none_or(|(most, first)| unknown > most || (unknown == most && key < first)) {
                best = Some((unknown, key));
            }
        }
    }
    best.map(|(_, key)| key)
}

/// Departure of each inner point from the line between its neighbours, with its place.
fn bends(line: &[Measured]) -> Vec<(f64, f64)> {
    let bend = |three: &[Measured]| {
        let [a, m, b] = [three[0], three[1], three[2]];
        let share = (m.doublings - a.doublings) / (b.doublings - a.doublings);
        let departure = |a: f64, m: f64, b: f64| (m - a - (b - a) * share).abs();
        let iops = departure(a.log_iops, m.log_iops, b.log_iops);
        (m.doublings, iops.max(departure(a.log_latency, m.log_latency, b.log_latency)))
    };
    line.windows(3).map(bend).collect()
}

/// The larger bend of the inner points on both sides.
fn bend_near(bends: &[(f64, f64)], here: f64) -> Option<f64> {
    let left = bends.iter().rev().find(|(at, _)| *at <= here);
    let right = bends.iter().find(|(at, _)| *at >= here);
    left.into_iter().chain(right).map(|(_, bend)| *bend).max_by(f64::total_cmp)
}

fn disagreement(progress: &Progress, point: usize) -> Option<f64> {
    let iops: Vec<f64> = progress.done(point).map(|figures| figures.iops).collect();
    Estimate::from_values(&iops)?.relative_half_width()
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(UNKNOWN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::saturation::series;
    use crate::{Figures, Matrix, RunState};

    fn run(progress: &mut Progress, point: usize, repeat: u32, iops: f64) {
        let figures = Figures { iops, latency_ns: 1e9 / iops, ..Figures::default() };
        progress.set(RunKey { point, repeat }, RunState::Done(figures));
    }

    fn next(matrix: &Matrix, progress: &Progress) -> Option<RunKey> {
        let points = matrix.points();
        most_telling(&series(&points), &points, progress, matrix.runs.repeats)
    }

    #[test]
    fn the_curve_that_bends_is_filled_before_the_straight_one() {
        let mut matrix = Matrix::default();
        matrix.axes.threads = vec![1, 2];
        matrix.axes.outstanding = vec![1, 2, 4, 8, 16];
        let mut progress = Progress::new(&matrix);
        for (at, [straight, bent]) in [(0, [100.0, 100.0]), (2, [400.0, 390.0]), (4, [1600.0, 400.0])] {
            run(&mut progress, at, 0, straight);
            run(&mut progress, 5 + at, 0, bent);
        }
        let next = next(&matrix, &progress).unwrap();
        assert!(next.point > 5, "{next:?}");
    }

    #[test]
    fn repeats_that_disagree_are_repeated() {
        let mut matrix = Matrix::default();
        matrix.axes.outstanding = vec![1, 2];
        matrix.runs.repeats = 4;
        let mut progress = Progress::new(&matrix);
        for (point, iops) in [(0, [100.0, 100.5, 99.5]), (1, [100.0, 150.0, 80.0])] {
            iops.iter()
                .enumerate()
                .for_each(|(repeat, iops)| run(&mut progress, point, repeat as u32, *iops));
        }
        assert_eq!(next(&matrix, &progress), Some(RunKey { point: 1, repeat: 3 }));
    }
}
