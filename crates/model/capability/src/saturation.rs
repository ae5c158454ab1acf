use crate::{Knee, KneeReason, Point, StorageLimits, find_knee};
use serde::{Deserialize, Serialize};
use workload::Shape;

/// Features of a curve of latency and IOPS over outstanding I/Os.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Saturation {
    /// Where it saturates.
    pub knee: Option<Knee>,
    /// The first step was saturated already: the knee lies there or below, and the floor is below what was measured.
    pub full_from_first: bool,
    /// Stretches in which throughput stays, lowest load first. A second one lies higher and is not to be planned with.
    pub levels: Vec<Level>,
    /// The longest stretch in which latency grows in step with load.
    pub linear: Option<Linear>,
    /// The lowest mean latency, nanoseconds.
    pub latency_ns_floor: Option<f64>,
    /// Where the mean latency rises above 15 ms.
    pub degraded: Option<Crossing>,
    /// Where it rises above 20 ms.
    pub critical: Option<Crossing>,
}

/// A stretch in which more outstanding I/Os bring no more throughput.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Level {
    /// Its lowest N.
    pub outstanding_from: u32,
    /// Its highest.
    pub outstanding_to: u32,
    /// Mean I/Os a second.
    pub iops: f64,
    /// Mean latency at its beginning, nanoseconds.
    pub latency_ns_from: f64,
    /// At its end.
    pub latency_ns_to: f64,
    /// How far its points lie apart: highest less lowest, as a share of the mean.
    pub spread: f64,
}

/// A stretch in which latency is a straight line over N.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Linear {
    /// Its lowest N.
    pub outstanding_from: u32,
    /// Its highest.
    pub outstanding_to: u32,
    /// Latency that one more outstanding I/O adds, nanoseconds: 1 / Xmax where a curve is saturated.
    pub ns_per_outstanding: f64,
}

/// Where the mean latency passes a bound, between two steps by a straight line.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Crossing {
    /// The bound, nanoseconds.
    pub latency_ns: f64,
    /// Outstanding I/Os there.
    pub outstanding: f64,
    /// I/Os a second there.
    pub iops: f64,
}

/// From here on a disk is called degraded (the study's bound), nanoseconds.
pub const DEGRADED_NS: f64 = 15e6;
/// From here on critical.
pub const CRITICAL_NS: f64 = 20e6;
/// Points of one level lie within this share of their mean, or within their own intervals.
const LEVEL_SPREAD_MAX: f64 = 0.05;
/// A level has this many points at least.
const LEVEL_POINTS_MIN: usize = 3;
/// Two levels differ by this share at least.
const LEVELS_APART_MIN: f64 = 0.08;
/// A straight line leaves no point further away than this share of its latency.
const LINEAR_OFF_MAX: f64 = 0.05;
/// A stretch is called linear from this many points on.
const LINEAR_POINTS_MIN: usize = 4;

impl Saturation {
    /// From points by rising N.
    pub fn from_points(shape: &Shape, points: &[Point], limits: &StorageLimits) -> Saturation {
        let floor = points.iter().map(|point| point.latency_ns).min_by(f64::total_cmp);
        let knee = find_knee(shape, points, limits);
        // With one outstanding there is nothing lower to begin with.
        let full_from_first = knee.as_ref().zip(points.first()).is_some_and(|(knee, first)| {
            first.outstanding > 1
                && knee.outstanding_full <= first.outstanding
                && knee.reason != KneeReason::NotReached
        });
        Saturation {
            knee,
            full_from_first,
            levels: levels(points),
            linear: linear(points),
            latency_ns_floor: floor,
            degraded: crossing(points, DEGRADED_NS),
            critical: crossing(points, CRITICAL_NS),
        }
    }
}

/// Greedy from the left: the longest run of points within the spread, then on from its end. Runs of about the same
/// height that meet are one, and so is what follows a run at its height.
fn levels(points: &[Point]) -> Vec<Level> {
    let within = |run: &[Point]| {
        let mean = mean_iops(run);
        // A rise from end to end is no level, however uncertain each point is.
        let rises = run[run.len() - 1].iops > run[0].iops * (1.0 + LEVEL_SPREAD_MAX);
        let close = |point: &Point| {
            let doubt = point.iops_half_width.min(LEVEL_SPREAD_MAX * mean);
            (point.iops - mean).abs() <= LEVEL_SPREAD_MAX / 2.0 * mean + doubt
        };
        !rises && run.iter().all(close)
    };
    let alike = |iops: f64, other: f64| (iops / other - 1.0).abs() < LEVELS_APART_MIN;
    let mut runs: Vec<(usize, usize)> = Vec::new();
    let mut at = 0;
    while at + LEVEL_POINTS_MIN <= points.len() {
        let mut end = at + LEVEL_POINTS_MIN;
        // Three points a few I/Os apart lie close on any curve: N must grow by half as well.
        let wide =
            |end: usize| u64::from(points[end - 1].outstanding) * 2 >= u64::from(points[at].outstanding) * 3;
        while end < points.len() && !wide(end) {
            end += 1;
        }
        if !wide(end) || !within(&points[at..end]) {
            at += 1;
            continue;
        }
        while end < points.len() && within(&points[at..=end]) {
            end += 1;
        }
        match runs.last_mut() {
            Some((from, to)) if alike(mean_iops(&points[at..end]), mean_iops(&points[*from..*to])) => {
                *to = end;
            }
            _ => runs.push((at, end)),
        }
        at = end;
    }
    for run in 0..runs.len() {
        let (from, mut to) = runs[run];
        let next = runs.get(run + 1).map_or(points.len(), |(from, _)| *from);
        while to < next && alike(points[to].iops, mean_iops(&points[from..to])) {
            to += 1;
        }
        runs[run].1 = to;
    }
    runs.into_iter().map(|(from, to)| level(&points[from..to])).collect()
}

fn mean_iops(run: &[Point]) -> f64 {
    run.iter().map(|point| point.iops).sum::<f64>() / run.len() as f64
}

fn level(run: &[Point]) -> Level {
    let iops = mean_iops(run);
    let high = run.iter().map(|point| point.iops).fold(f64::MIN, f64::max);
    let low = run.iter().map(|point| point.iops).fold(f64::MAX, f64::min);
    let (first, last) = (&run[0], &run[run.len() - 1]);
    Level {
        outstanding_from: first.outstanding,
        outstanding_to: last.outstanding,
        iops,
        latency_ns_from: first.latency_ns,
        latency_ns_to: last.latency_ns,
        spread: if iops > 0.0 { (high - low) / iops } else { 0.0 },
    }
}

/// The longest stretch, by number of points, whose latencies lie on a rising line.
fn linear(points: &[Point]) -> Option<Linear> {
    let mut best: Option<(usize, Linear)> = None;
    for from in 0..points.len() {
        for to in (from + LINEAR_POINTS_MIN)..=points.len() {
            let run = &points[from..to];
            let Some(slope) = fits_line(run) else { continue };
            if best.as_ref().is_none_or(|(count, _)| run.len() > *count) {
                let linear = Linear {
                    outstanding_from: run[0].outstanding,
                    outstanding_to: run[run.len() - 1].outstanding,
                    ns_per_outstanding: slope,
                };
                best = Some((run.len(), linear));
            }
        }
    }
    best.map(|(_, linear)| linear)
}

/// Least squares; the slope, if no point lies far off and the line rises by more than that.
fn fits_line(run: &[Point]) -> Option<f64> {
    let count = run.len() as f64;
    let x = |point: &Point| f64::from(point.outstanding);
    let mean_x = run.iter().map(x).sum::<f64>() / count;
    let mean_y = run.iter().map(|point| point.latency_ns).sum::<f64>() / count;
    let squares: f64 = run.iter().map(|point| (x(point) - mean_x).powi(2)).sum();
    let products: f64 = run.iter().map(|point| (x(point) - mean_x) * (point.latency_ns - mean_y)).sum();
    let slope = products / squares;
    let line = |point: &Point| mean_y + slope * (x(point) - mean_x);
    let close = run.iter().all(|point| (point.latency_ns / line(point) - 1.0).abs() <= LINEAR_OFF_MAX);
    let (first, last) = (&run[0], &run[run.len() - 1]);
    let rises = line(last) > line(first) * (1.0 + 4.0 * LINEAR_OFF_MAX);
    (close && rises).then_some(slope)
}

fn crossing(points: &[Point], bound_ns: f64) -> Option<Crossing> {
    let first = points.first()?;
    if first.latency_ns > bound_ns {
        let (outstanding, iops) = (f64::from(first.outstanding), first.iops);
        return Some(Crossing { latency_ns: bound_ns, outstanding, iops });
    }
    let pair = points.windows(2).find(|pair| pair[1].latency_ns > bound_ns)?;
    let share = (bound_ns - pair[0].latency_ns) / (pair[1].latency_ns - pair[0].latency_ns);
    let between = |of: &dyn Fn(&Point) -> f64| of(&pair[0]) + share * (of(&pair[1]) - of(&pair[0]));
    Some(Crossing {
        latency_ns: bound_ns,
        outstanding: between(&|point| f64::from(point.outstanding)),
        iops: between(&|point| point.iops),
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::knee::tests::point;

    /// A disk of `units` parallel units of 20 ms, swept 8 to 256 by 8 as in the study.
    pub(crate) fn studied(units: f64) -> Vec<Point> {
        let latency = |n: u32| 20e6 * (f64::from(n) / units).max(1.0);
        (1..=32).map(|step| point(step * 8, latency(step * 8))).collect()
    }

    pub(crate) fn saturation(points: &[Point]) -> Saturation {
        Saturation::from_points(&Shape::random_read(65536), points, &StorageLimits::default())
    }

    #[test]
    fn a_saturated_disk_has_one_level_and_grows_in_step_with_load() {
        let span = saturation(&studied(16.0));
        assert_eq!((span.levels.len(), span.levels[0].outstanding_from), (1, 16));
        let linear = span.linear.unwrap();
        // One more outstanding I/O waits for 1/800 s.
        assert!((linear.ns_per_outstanding / 1.25e6 - 1.0).abs() < 0.02, "{linear:?}");
        assert_eq!(span.latency_ns_floor, Some(20e6));
        assert!(!span.full_from_first);
    }

    #[test]
    fn a_first_step_that_is_full_already_bounds_the_knee() {
        let late = saturation(&studied(16.0)[2..]);
        assert!(late.full_from_first && late.knee.unwrap().outstanding > 20.0);
        let serial: Vec<Point> = [1, 2, 4, 8].map(|n| point(n, f64::from(n) * 1e6)).to_vec();
        assert!(!saturation(&serial).full_from_first, "with one outstanding nothing is lower");
    }

    #[test]
    fn crossings_lie_between_the_steps() {
        let fast = [point(1, 5e6), point(10, 10e6), point(20, 20e6), point(40, 40e6)];
        let found = saturation(&fast);
        assert_eq!(found.degraded.map(|crossing| crossing.outstanding), Some(15.0));
        assert_eq!(found.critical.map(|crossing| crossing.outstanding), Some(20.0));
        assert_eq!(saturation(&fast[..2]).degraded, None);
        assert_eq!(saturation(&fast[3..]).critical.unwrap().outstanding, 40.0);
    }

    #[test]
    fn a_second_level_is_separate_from_the_first() {
        let at = |n: u32, iops: f64| point(n, f64::from(n) / iops * 1e9);
        let points = [
            at(8, 800.0),
            at(16, 1600.0),
            at(32, 2400.0),
            at(48, 2420.0),
            at(64, 2390.0),
            at(96, 2750.0),
            at(128, 2800.0),
            at(192, 2780.0),
            at(256, 2300.0),
        ];
        let levels = saturation(&points).levels;
        let found: Vec<(u32, u32)> =
            levels.iter().map(|level| (level.outstanding_from, level.outstanding_to)).collect();
        assert_eq!(found, [(32, 64), (96, 192)], "{levels:?}");
    }

    #[test]
    fn what_rises_is_no_level_and_what_stays_at_its_height_belongs_to_it() {
        let at = |n: u32, iops: f64| {
            let point = point(n, f64::from(n) / iops * 1e9);
            Point { iops_half_width: iops * 0.15, ..point }
        };
        let rising = [at(2, 19_500.0), at(3, 20_500.0), at(4, 21_900.0), at(8, 28_000.0)];
        assert_eq!(saturation(&rising).levels, []);
        let sure = |n: u32, iops: f64| point(n, f64::from(n) / iops * 1e9);
        let wavering = [(48, 2200.0), (64, 2290.0), (80, 2250.0), (96, 2240.0), (104, 2380.0), (112, 2390.0)];
        let wavering: Vec<Point> = wavering.into_iter().map(|(n, iops)| sure(n, iops)).collect();
        let levels = saturation(&wavering).levels;
        let found: Vec<(u32, u32)> =
            levels.iter().map(|level| (level.outstanding_from, level.outstanding_to)).collect();
        assert_eq!(found, [(48, 112)], "{levels:?}");
    }
}
