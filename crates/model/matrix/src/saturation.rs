//! Points that are left out since more outstanding I/Os give no more throughput.

use crate::{Point, Progress};
use std::collections::HashMap;

/// Points that differ in nothing but their outstanding I/Os, by rising outstanding: what a curve is drawn of.
pub(crate) fn series(points: &[Point]) -> Vec<Vec<usize>> {
    let mut lines: HashMap<Point, Vec<usize>> = HashMap::new();
    for (at, point) in points.iter().enumerate() {
        lines.entry(Point { outstanding: 0, ..point.clone() }).or_default().push(at);
    }
    let mut series: Vec<Vec<usize>> = lines.into_values().collect();
    series.iter_mut().for_each(|line| line.sort_by_key(|at| points[*at].outstanding));
    series.sort();
    series
}

/// Where a curve is seen to be saturated: nothing above `outstanding` is worth a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Saturated {
    /// Outstanding I/Os of the last point that is.
    pub outstanding: u32,
    /// From a quarter of that, or less.
    pub from: u32,
    /// The highest rate between them, beyond that at `from`, in percent.
    pub gained_percent: f64,
}

/// The lowest place where doubling the outstanding I/Os twice gained less than `percent`.
pub(crate) fn saturated(
    line: &[usize],
    points: &[Point],
    progress: &Progress,
    percent: f64,
) -> Option<Saturated> {
    let measured: Vec<(u32, f64)> =
        line.iter().filter_map(|at| Some((points[*at].outstanding, progress.mean(*at)?.0))).collect();
    let places = measured.iter().enumerate().filter_map(|(at, (outstanding, _))| {
        let first = measured[..at].iter().rposition(|(from, _)| from.saturating_mul(4) <= *outstanding)?;
        let (from, iops) = measured[first];
        let highest = measured[first + 1..=at].iter().map(|(_, iops)| *iops).fold(0.0, f64::max);
        let gained_percent = (highest / iops - 1.0) * 100.0;
        (gained_percent < percent).then_some(Saturated { outstanding: *outstanding, from, gained_percent })
    });
    places.min_by_key(|place| place.outstanding)
}

impl Saturated {
    /// For the person who misses the point.
    pub fn reason(&self, percent: f64) -> String {
        format!(
            "beyond saturation: from {} to {} outstanding a thread gained {:.1} % IOPS, less than {percent} %",
            self.from, self.outstanding, self.gained_percent
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Figures, Matrix, RunKey, RunState};
    use proptest::prelude::*;

    fn curve(iops: &[f64]) -> (Vec<Point>, Progress, Vec<usize>) {
        let mut matrix = Matrix::default();
        matrix.axes.outstanding = (0..iops.len()).map(|at| 1 << at).collect();
        let mut progress = Progress::new(&matrix);
        for (point, iops) in iops.iter().enumerate() {
            let figures = Figures { iops: *iops, latency_ns: 1e6, ..Figures::default() };
            progress.set(RunKey { point, repeat: 0 }, RunState::Done(figures));
        }
        let points = matrix.points();
        let line = series(&points).remove(0);
        (points, progress, line)
    }

    #[test]
    fn a_plateau_saturates_where_two_doublings_gained_nothing() {
        let (points, progress, line) = curve(&[100.0, 200.0, 390.0, 400.0, 404.0, 405.0]);
        let place = saturated(&line, &points, &progress, 5.0).unwrap();
        assert_eq!((place.from, place.outstanding), (4, 16));
        let reason = place.reason(5.0);
        assert!(reason.contains("from 4 to 16") && reason.contains("gained 3.6 %"), "{reason}");
        let (points, progress, line) = curve(&[100.0, 200.0, 400.0, 800.0]);
        assert_eq!(saturated(&line, &points, &progress, 5.0), None);
    }

    proptest! {
        #[test]
        fn a_larger_threshold_never_saturates_later(
            iops in prop::collection::vec(1.0_f64..1000.0, 1..12), small in 0.0_f64..50.0, more in 0.0_f64..50.0,
        ) {
            let (points, progress, line) = curve(&iops);
            let at = |percent| saturated(&line, &points, &progress, percent).map_or(u32::MAX, |it| it.outstanding);
            prop_assert!(at(small + more) <= at(small));
        }

        #[test]
        fn what_is_measured_beyond_changes_nothing(iops in prop::collection::vec(1.0_f64..1000.0, 3..12)) {
            let (points, progress, line) = curve(&iops);
            let Some(place) = saturated(&line, &points, &progress, 10.0) else { return Ok(()) };
            let kept = iops.len().min(place.outstanding.ilog2() as usize + 1);
            let (points, progress, line) = curve(&iops[..kept]);
            prop_assert_eq!(saturated(&line, &points, &progress, 10.0), Some(place));
        }
    }
}
