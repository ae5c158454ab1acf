//! The points that decide a first verdict, in the order in which they are measured. Pure: what comes next follows from the
//! points so far.

use crate::Plan;
use crate::sweep::{GAIN_MIN, is_apart};
use capability::{KneeReason, Point, StorageLimits, find_knee};
use std::time::Duration;
use workload::Shape;

/// Time of one point: warm-up, and six slices of throughput.
pub const POINT_TIME: Duration = Duration::from_millis(500);

/// Outstanding I/Os that every first curve is measured at, as far as throughput rises: at rest, and the plateau.
const LADDER: [u32; 4] = [1, 16, 64, 256];
/// Points of the ladder that are always measured: a knee needs two on the plateau, four times apart.
const LADDER_MIN: usize = 3;

/// One step of the first pass.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step {
    /// A curve: at rest, the plateau, the neighbourhood of the knee.
    Curve(Shape),
    /// One writer of durable writes.
    LogWrite(Shape),
    /// One writer that appends and syncs.
    Append(Shape),
    /// The highest rate of a shape, for the cost model.
    Maximum(Shape),
}

/// The steps. Points that every verdict needs come first: reads, and the log writes that a commit waits for. Then what the
/// cost model needs, reads before writes.
pub fn steps(plan: &Plan) -> Vec<Step> {
    const KIB: u32 = 1024;
    let append = plan.log_shapes(Shape::log_append).into_iter().map(Step::Append);
    let log_write = plan.log_shapes(Shape::log_write).into_iter().map(Step::LogWrite);
    let reads = [
        Step::Maximum(Shape::random_read(64 * KIB)),
        Step::Maximum(Shape::sequential_read(64 * KIB)),
        Step::Maximum(Shape::sequential_read(512 * KIB)),
    ];
    let writes = [
        Step::Curve(Shape::random_read(8 * KIB).with_writes(30)),
        Step::Curve(Shape::random_write(8 * KIB)),
        Step::Maximum(Shape::random_write(64 * KIB)),
        Step::Maximum(Shape::sequential_write(64 * KIB)),
        Step::Maximum(Shape::sequential_write(512 * KIB)),
    ];
    let all = std::iter::once(Step::Curve(Shape::random_read(8 * KIB))).chain(append).chain(reads);
    let all = all.chain(log_write).chain(writes);
    let allowed = all.filter(|step| plan.writes || !step.shape().writes());
    allowed.map(|step| step.with_shape(|shape| plan.shape(shape))).collect()
}

impl Step {
    /// Shape of its I/Os.
    pub fn shape(&self) -> Shape {
        match self {
            Step::Curve(shape) | Step::LogWrite(shape) | Step::Append(shape) | Step::Maximum(shape) => *shape,
        }
    }

    /// Appends go through the page cache, whatever the plan says.
    fn with_shape(self, change: impl Fn(Shape) -> Shape) -> Step {
        match self {
            Step::Curve(shape) => Step::Curve(change(shape)),
            Step::LogWrite(shape) => Step::LogWrite(change(shape)),
            Step::Append(shape) => Step::Append(shape),
            Step::Maximum(shape) => Step::Maximum(change(shape)),
        }
    }
}

/// The next N of a first curve; `None` where its points are enough for a preliminary one: at rest, two on the plateau, and one
/// at the knee. `points` by rising N.
pub fn next_step(
    points: &[Point],
    shape: &Shape,
    outstanding_max: u32,
    context: &StorageLimits,
) -> Option<u32> {
    let on_ladder: Vec<&Point> = points.iter().filter(|point| LADDER.contains(&point.outstanding)).collect();
    let next = LADDER.get(on_ladder.len()).filter(|next| **next <= outstanding_max);
    if let Some(next) = next
        && (on_ladder.len() < LADDER_MIN || is_rising(&on_ladder))
    {
        return Some(*next);
    }
    if on_ladder.len() < points.len() {
        // The knee's neighbourhood is one point.
        return None;
    }
    let knee = find_knee(shape, points, context).filter(|knee| knee.reason != KneeReason::NotReached)?;
    let at_knee = knee.outstanding.round() as u32;
    ((2..=outstanding_max).contains(&at_knee) && is_apart(at_knee, points)).then_some(at_knee)
}

fn is_rising(points: &[&Point]) -> bool {
    let [.., before, last] = points else { return true };
    last.iops >= before.iops * (1.0 + GAIN_MIN)
}

/// Whether a point of the first pass need not be measured again by the plan's own precision.
pub fn is_as_good(point: &Point, plan: &Plan) -> bool {
    point.steady && point.failed == 0 && point.iops_half_width <= plan.precision * point.iops
}

#[cfg(test)]
mod tests {
    use super::*;
    use capability::Effort;

    const LATENCY_NS: f64 = 100_000.0;

    /// A point of storage that answers after 0.1 ms, `width` I/Os at once.
    fn point(outstanding: u32, width: f64) -> Point {
        let iops = f64::from(outstanding).min(width) * 1e9 / LATENCY_NS;
        Point {
            outstanding,
            iops,
            iops_half_width: iops * 0.01,
            mib_per_s: iops / 128.0,
            latency_ns: f64::from(outstanding) * 1e9 / iops,
            latency_ns_p50: 1,
            latency_ns_p99: None,
            latency_ns_max: 1,
            outstanding_measured: f64::from(outstanding),
            ios: 1_000,
            failed: 0,
            seconds: 0.3,
            steady: true,
            cpu_ns_per_io: 1_000.0,
            client_busy: 0.1,
            humps: None,
        }
    }

    /// The N of all points of a first curve, in the order in which they are measured.
    fn measured(width: f64, outstanding_max: u32) -> Vec<u32> {
        let (shape, context) = (Shape::random_read(8192), StorageLimits::default());
        let (mut points, mut order) = (Vec::new(), Vec::new());
        while let Some(next) = next_step(&points, &shape, outstanding_max, &context) {
            assert!(order.len() < 8, "it must end: {order:?}");
            crate::sweep::insert(&mut points, point(next, width));
            order.push(next);
        }
        order
    }

    #[test]
    fn a_first_curve_is_at_rest_on_the_plateau_and_at_the_knee() {
        assert_eq!(measured(6.0, 512), [1, 16, 64, 6]);
        assert_eq!(measured(40.0, 512), [1, 16, 64, 256, 40]);
    }

    #[test]
    fn storage_that_takes_one_at_a_time_needs_no_point_at_the_knee() {
        assert_eq!(measured(1.0, 512), [1, 16, 64]);
    }

    #[test]
    fn where_throughput_still_rises_at_the_end_there_is_no_knee_to_measure() {
        assert_eq!(measured(1_000.0, 512), [1, 16, 64, 256]);
        assert_eq!(measured(1_000.0, 32), [1, 16]);
    }

    #[test]
    fn reads_and_commits_come_first_and_nothing_is_written_that_may_not_be() {
        let steps_of = |writes| steps(&Plan { writes, ..Plan::new(Effort::Default) });
        let all = steps_of(true);
        assert_eq!(all[0], Step::Curve(Shape::random_read(8192)));
        assert_eq!(all[1..3], [4096, 61_440].map(|bytes| Step::Append(Shape::log_append(bytes))));
        let random = |step: &Step| matches!(step, Step::Curve(_) | Step::Maximum(_));
        let writes: Vec<bool> = all.iter().filter(|it| random(it)).map(|it| it.shape().writes()).collect();
        assert!(writes.is_sorted(), "a write cache must not be full when reads are measured: {writes:?}");
        assert!(steps_of(false).iter().all(|step| !step.shape().writes()));
    }

    #[test]
    fn the_first_pass_is_short() {
        let steps = steps(&Plan::new(Effort::Default));
        let points = |step: &Step| if matches!(step, Step::Curve(_)) { LADDER.len() + 1 } else { 1 };
        let points: usize = steps.iter().map(points).sum();
        assert!(POINT_TIME * points as u32 <= Duration::from_secs(13), "{points} points");
    }

    #[test]
    fn a_first_point_is_kept_only_where_it_is_as_good_as_the_plan_wants() {
        let plan = Plan::new(Effort::Default);
        let good = point(1, 6.0);
        assert!(is_as_good(&good, &plan));
        assert!(!is_as_good(&Point { iops_half_width: good.iops * 0.03, ..good.clone() }, &plan));
        assert!(!is_as_good(&Point { steady: false, ..good.clone() }, &plan));
        assert!(!is_as_good(&Point { failed: 1, ..good }, &plan));
    }
}
