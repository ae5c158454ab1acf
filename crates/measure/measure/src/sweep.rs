use crate::point::{POINT_TIME_MIN, PointRun};
use crate::{MeasureError, Plan};
use capability::{Curve, Knee, KneeReason, Point, StorageLimits, find_knee};
use std::time::{Duration, Instant};
use workload::Shape;

/// Throughput that rises by less over a doubling of N has stopped rising.
pub(crate) const GAIN_MIN: f64 = 0.04;
/// The sweep continues to this many times the knee, to measure the plateau.
const BEYOND_KNEE: f64 = 4.0;
/// Factors of the knee's N where points are added.
const AROUND_KNEE: [f64; 4] = [1.0, 1.5, 0.7, 2.5];
/// A point is added only where the ratio of its N to that of every other point is at least this.
const APART_MIN: f64 = 1.2;

/// Sweeps N for one shape within the time allotted. Points that are `known` already are not measured again.
pub fn curve(
    run: &mut PointRun,
    shape: &Shape,
    plan: &Plan,
    context: &StorageLimits,
    (allotted, known): (Duration, &[Point]),
) -> Result<Curve, MeasureError> {
    let (began, extra_before) = (Instant::now(), run.carried.extra);
    // Time that bursty points take beyond theirs is added to the plan's, not taken from this curve's.
    let left = |run: &PointRun| (allotted + run.carried.extra - extra_before).saturating_sub(began.elapsed());
    let measured = |run: &mut PointRun, outstanding: u32, time_max: Duration| {
        let known = known.iter().find(|point| point.outstanding == outstanding);
        known.map_or_else(|| run.point(shape, outstanding, time_max), |known| Ok(known.clone()))
    };
    let mut points: Vec<Point> = Vec::new();
    // Rising N: the number of points is unknown, so that each gets an equal part of the time left for ten.
    let mut outstanding = 1;
    while outstanding <= plan.outstanding_max {
        let left = left(run);
        let expected = (10 - points.len().min(7)) as u32;
        let time_max = (left / expected).clamp(POINT_TIME_MIN, plan.point_time_max);
        let point = measured(run, outstanding, time_max)?;
        if point.ios > 0 {
            points.push(point);
        }
        if run.stopped || has_flattened(&points) && is_far_beyond(&points, shape, context) {
            break;
        }
        outstanding *= 2;
    }
    for point in known {
        if points.iter().all(|other| other.outstanding != point.outstanding) {
            insert(&mut points, point.clone());
        }
    }
    while !run.stopped
        && let Some(outstanding) = next_around_knee(&points, shape, plan.outstanding_max, context)
    {
        let left = left(run);
        if left < POINT_TIME_MIN {
            break;
        }
        let point = measured(run, outstanding, left.min(plan.point_time_max))?;
        if point.ios == 0 {
            break;
        }
        insert(&mut points, point);
    }
    let knee = find_knee(shape, &points, context);
    Ok(Curve { workload: *shape, points, knee })
}

/// Adds a point to points by rising N.
pub(crate) fn insert(points: &mut Vec<Point>, point: Point) {
    let at = points.partition_point(|other| other.outstanding < point.outstanding);
    points.insert(at, point);
}

/// The next N of an adaptive sweep up to `outstanding_max`: doublings until throughput has stopped rising and the plateau
/// is measured, then points around the knee; `None` at the end. `points` by rising N.
pub fn next_step(
    points: &[Point],
    shape: &Shape,
    outstanding_max: u32,
    context: &StorageLimits,
) -> Option<u32> {
    let doublings: Vec<Point> =
        points.iter().filter(|point| point.outstanding.is_power_of_two()).cloned().collect();
    let last = doublings.last().map_or(0, |point| point.outstanding);
    let rising = !(has_flattened(&doublings) && is_far_beyond(&doublings, shape, context));
    match (last * 2).max(1) {
        next if rising && next <= outstanding_max => Some(next),
        _ => next_around_knee(points, shape, outstanding_max, context),
    }
}

/// Whether neither of the last two doublings raised throughput.
fn has_flattened(points: &[Point]) -> bool {
    let [.., before, middle, last] = points else { return false };
    middle.iops < before.iops * (1.0 + GAIN_MIN) && last.iops < middle.iops * (1.0 + GAIN_MIN)
}

fn is_far_beyond(points: &[Point], shape: &Shape, context: &StorageLimits) -> bool {
    let last = points.last().map_or(0, |point| point.outstanding);
    find_knee(shape, points, context).is_none_or(|knee| f64::from(last) >= BEYOND_KNEE * knee.outstanding)
}

fn next_around_knee(
    points: &[Point],
    shape: &Shape,
    outstanding_max: u32,
    context: &StorageLimits,
) -> Option<u32> {
    let knee: Knee =
        find_knee(shape, points, context).filter(|knee| knee.reason != KneeReason::NotReached)?;
    let candidates = AROUND_KNEE.iter().map(|factor| (knee.outstanding * factor).round() as u32);
    candidates.filter(|n| (2..=outstanding_max).contains(n)).find(|n| is_apart(*n, points))
}

/// Whether a point at N is far enough from all others to be worth its time.
pub(crate) fn is_apart(outstanding: u32, points: &[Point]) -> bool {
    points.iter().all(|point| {
        let ratio = f64::from(point.outstanding) / f64::from(outstanding);
        ratio.max(1.0 / ratio) >= APART_MIN
    })
}
