use crate::{Knee, KneeReason, Point, Surroundings, find_knee};
use serde::{Deserialize, Serialize};
use workload::{RunResult, Shape};

/// One step of a sweep: load at a fixed number of outstanding I/Os, and what a monitor would have seen of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SweepStep {
    /// Its figures with their confidence interval.
    pub point: Point,
    /// The run behind them.
    pub result: RunResult,
    /// The queue below, where the kernel counts one.
    pub queue: Option<QueueSeen>,
}

/// The I/Os in flight on a target's devices, as the kernel counts them all the time and as somebody sees them who looks
/// now and then.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct QueueSeen {
    /// Mean over time: the growth of the kernel's weighted time in flight (`/proc/diskstats`, field 11) a second.
    pub weighted: f64,
    /// Each look at "I/Os in flight" (field 9).
    pub samples: Vec<u64>,
}

/// Steps of one target by rising outstanding I/Os, and what the curve says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sweep {
    /// The target, or the layout and its members.
    pub target: String,
    /// By rising outstanding I/Os.
    pub steps: Vec<SweepStep>,
    /// What they say.
    pub saturation: Saturation,
}

/// What a curve of latency and IOPS over outstanding I/Os says.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Saturation {
    /// Where it saturates.
    pub knee: Option<Knee>,
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
pub struct Linear {
    /// Its lowest N.
    pub outstanding_from: u32,
    /// Its highest.
    pub outstanding_to: u32,
    /// What one more outstanding I/O adds to the latency, nanoseconds: 1 / Xmax where a curve is saturated.
    pub ns_per_outstanding: f64,
}

/// Where the mean latency passes a bound, between two steps by a straight line.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
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
/// A level has so many points at least.
const LEVEL_POINTS_MIN: usize = 3;
/// Two levels differ by this share at least.
const LEVELS_APART_MIN: f64 = 0.08;
/// A straight line leaves no point further away than this share of its latency.
const LINEAR_OFF_MAX: f64 = 0.05;
/// A stretch is called linear from so many points on.
const LINEAR_POINTS_MIN: usize = 4;

impl Saturation {
    /// What points by rising N say.
    pub fn of(shape: &Shape, points: &[Point], around: &Surroundings) -> Saturation {
        let floor = points.iter().map(|point| point.latency_ns).min_by(f64::total_cmp);
        Saturation {
            knee: find_knee(shape, points, around),
            levels: levels(points),
            linear: linear(points),
            latency_ns_floor: floor,
            degraded: crossing(points, DEGRADED_NS),
            critical: crossing(points, CRITICAL_NS),
        }
    }
}

impl QueueSeen {
    /// What the looks give on average; `None` without any.
    pub fn sampled(&self) -> Option<f64> {
        let sum: u64 = self.samples.iter().sum();
        (!self.samples.is_empty()).then(|| sum as f64 / self.samples.len() as f64)
    }

    /// How wrong the looks are on average, as a share of the mean over time: -0.5 is half of it.
    pub fn error(&self) -> Option<f64> {
        (self.weighted > 0.0).then_some(())?;
        Some(self.sampled()? / self.weighted - 1.0)
    }

    /// How wrong the worst single look is.
    pub fn error_max(&self) -> Option<f64> {
        (self.weighted > 0.0).then_some(())?;
        let errors = self.samples.iter().map(|sample| *sample as f64 / self.weighted - 1.0);
        errors.max_by(|a, b| a.abs().total_cmp(&b.abs()))
    }
}

/// Greedy from the left: the longest run of points within the spread, then on from its end. Runs of about the same
/// height that meet are one.
fn levels(points: &[Point]) -> Vec<Level> {
    let within = |run: &[Point]| {
        let mean = run.iter().map(|point| point.iops).sum::<f64>() / run.len() as f64;
        run.iter().all(|point| {
            let doubt = point.iops_half_width.min(LEVEL_SPREAD_MAX * mean);
            (point.iops - mean).abs() <= LEVEL_SPREAD_MAX / 2.0 * mean + doubt
        })
    };
    let mut levels: Vec<Level> = Vec::new();
    let mut at = 0;
    while at + LEVEL_POINTS_MIN <= points.len() {
        let mut end = at + LEVEL_POINTS_MIN;
        // Three points a few I/Os apart lie close on any curve: N must grow by half as well.
        let wide = |end: usize| points[end - 1].outstanding * 2 >= points[at].outstanding * 3;
        while end < points.len() && !wide(end) {
            end += 1;
        }
        if !within(&points[at..end]) || !wide(end) {
            at += 1;
            continue;
        }
        while end < points.len() && within(&points[at..=end]) {
            end += 1;
        }
        let level = level(&points[at..end]);
        match levels.last_mut() {
            Some(last) if (level.iops / last.iops - 1.0).abs() < LEVELS_APART_MIN => {
                last.outstanding_to = level.outstanding_to;
                last.latency_ns_to = level.latency_ns_to;
                last.spread = last.spread.max(level.spread);
            }
            _ => levels.push(level),
        }
        at = end;
    }
    levels
}

fn level(run: &[Point]) -> Level {
    let iops = run.iter().map(|point| point.iops).sum::<f64>() / run.len() as f64;
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

/// Two sweeps of one kind of I/O beside each other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SweepComparison {
    /// Highest throughput of the second over that of the first.
    pub throughput_ratio: f64,
    /// Knee of the second over that of the first.
    pub knee_ratio: f64,
    /// The 95 % confidence interval of the knees' ratio.
    pub knee_ratio_interval: (f64, f64),
}

impl SweepComparison {
    /// Of two curves that both saturated; `None` where one did not.
    pub fn of(first: &Saturation, second: &Saturation) -> Option<SweepComparison> {
        let reached = |saturation: &'_ Saturation| {
            saturation.knee.clone().filter(|knee| knee.reason != KneeReason::NotReached)
        };
        let (one, two) = (&reached(first)?, &reached(second)?);
        let ratio = two.outstanding / one.outstanding;
        // Relative errors of a ratio add as squares.
        let relative = |knee: &Knee| (knee.high - knee.low) / 2.0 / knee.outstanding;
        let both = relative(one).hypot(relative(two));
        Some(SweepComparison {
            throughput_ratio: two.iops / one.iops,
            knee_ratio: ratio,
            knee_ratio_interval: (ratio * (1.0 - both).max(0.0), ratio * (1.0 + both)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::knee::tests::point;

    /// A disk of so many units of 20 ms, swept 8 to 256 by 8 as in the study.
    fn studied(units: f64) -> Vec<Point> {
        let latency = |n: u32| 20e6 * (f64::from(n) / units).max(1.0);
        (1..=32).map(|step| point(step * 8, latency(step * 8))).collect()
    }

    fn saturation(points: &[Point]) -> Saturation {
        Saturation::of(&Shape::random_read(65536), points, &Surroundings::default())
    }

    #[test]
    fn three_disks_striped_saturate_at_three_times_the_outstanding() {
        let (span, stripe) = (saturation(&studied(16.0)), saturation(&studied(48.0)));
        let compared = SweepComparison::of(&span, &stripe).unwrap();
        assert!((compared.throughput_ratio - 3.0).abs() < 0.01, "{compared:?}");
        let (low, high) = compared.knee_ratio_interval;
        assert!(low < 3.0 && 3.0 < high, "{compared:?}");
        assert_eq!((span.levels.len(), span.levels[0].outstanding_from), (1, 16));
        let linear = span.linear.unwrap();
        // One more outstanding I/O waits for 1/800 s.
        assert!((linear.ns_per_outstanding / 1.25e6 - 1.0).abs() < 0.02, "{linear:?}");
        assert_eq!(span.latency_ns_floor, Some(20e6));
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
    fn a_second_level_is_told_from_the_first() {
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
        let told: Vec<(u32, u32)> =
            levels.iter().map(|level| (level.outstanding_from, level.outstanding_to)).collect();
        assert_eq!(told, [(32, 64), (96, 192)], "{levels:?}");
    }

    #[test]
    fn looks_are_held_against_the_mean_over_time() {
        let seen = QueueSeen { weighted: 4.0, samples: vec![0, 2, 16] };
        assert_eq!((seen.sampled(), seen.error(), seen.error_max()), (Some(6.0), Some(0.5), Some(3.0)));
        assert_eq!(QueueSeen::default().error(), None);
    }
}
