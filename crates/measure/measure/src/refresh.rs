//! Takes again only what is in doubt of a capability that was measured before: the curves of a few resources.

use crate::point::{Carried, Pass, PointRun};
use crate::{MeasureError, MeasureProgress, MeasuredTarget, Plan, knee_context};
use capability::{Capability, CostModel, Curve, Demand, Point, ResourceName, StorageLimits, find_knee};
use std::ops::ControlFlow;
use std::time::Instant;
use workload::Shape;

/// A refresh takes at most this part of the time of the plan.
const TIME_PART: u32 = 4;
/// Outstanding I/Os of a kind that has no curve.
const OUTSTANDING: u32 = 32;
const PAGE_BYTES: u32 = 8192;
const LARGE_BYTES: u32 = 524_288;
/// Sizes from here on show what a storage gives in bytes.
const LARGE_BYTES_MIN: u32 = 65_536;

/// Measures the resources in doubt again. All else of the capability stays, and a remark says how old it is.
///
/// # Errors
/// As [`measure`](crate::measure()).
pub fn refresh(
    target: MeasuredTarget<'_>,
    plan: &Plan,
    known: &Capability,
    doubted: &[ResourceName],
    watch: &mut dyn FnMut(&MeasureProgress) -> ControlFlow<()>,
) -> Result<Capability, MeasureError> {
    let began = Instant::now();
    let plan = Plan { time_max: plan.time_max / TIME_PART, ..plan.clone() };
    let mut run = PointRun::new(target.region, &plan, Pass::WHOLE, Carried::default(), watch);
    let context = knee_context(target.facts);
    let shapes: Vec<Shape> = shapes_of(doubted).into_iter().map(|shape| plan.shape(shape)).collect();
    let mut fresh = Vec::new();
    for (at, shape) in shapes.iter().enumerate() {
        let time_end = run.time_left().mul_f64(1.0 - 1.0 / (shapes.len() - at) as f64);
        let points = points(&mut run, &plan, &steps(known.curve(shape)), shape, time_end)?;
        if run.stopped {
            return Err(MeasureError::Nothing);
        }
        fresh.extend(curve(shape, points, &context));
    }
    if fresh.is_empty() {
        return Err(MeasureError::Nothing);
    }
    let carried = run.end();
    let now_unix_ns = host::unix_ns();
    let mut refreshed = replaced(known, &fresh);
    let days = now_unix_ns.saturating_sub(known.measured_unix_ns) as f64 / 86_400e9;
    let names: Vec<String> = fresh.iter().map(|curve| curve.workload.to_string()).collect();
    refreshed.target = target.facts.clone();
    refreshed.measured_unix_ns = now_unix_ns;
    refreshed.conditions.foreign_iops = target.foreign_iops;
    refreshed.conditions.took_s = began.elapsed().as_secs_f64();
    refreshed
        .conditions
        .remarks
        .push(format!("measured again: {}; all else is {days:.1} days older", names.join(", ")));
    refreshed.conditions.remarks.extend(carried.stopped.remark());
    refreshed.conditions.target_changes = carried.changes;
    Ok(refreshed)
}

/// The kinds of I/O that show these resources.
fn shapes_of(doubted: &[ResourceName]) -> Vec<Shape> {
    let shape = |name: &ResourceName| match name {
        ResourceName::ReadOperations | ResourceName::ReadLatency => Shape::random_read(PAGE_BYTES),
        ResourceName::WriteOperations | ResourceName::WriteLatency | ResourceName::CommitLatency => {
            Shape::random_write(PAGE_BYTES)
        }
        ResourceName::Operations => Shape::random_read(PAGE_BYTES).with_writes(30),
        ResourceName::ReadBandwidth | ResourceName::Bandwidth => Shape::sequential_read(LARGE_BYTES),
        ResourceName::WriteBandwidth => Shape::sequential_write(LARGE_BYTES),
    };
    let mut shapes: Vec<Shape> = Vec::new();
    for shape in doubted.iter().map(shape) {
        if !shapes.contains(&shape) {
            shapes.push(shape);
        }
    }
    // Reads before writes: a device's write cache must not be full of the previous point.
    shapes.sort_by_key(|shape| (shape.write_percent, shape.block_bytes));
    shapes
}

/// Outstanding I/Os at rest, half-way to the plateau, where it began, and twice that.
fn steps(known: Option<&Curve>) -> Vec<u32> {
    let full = known.and_then(|curve| Some(curve.knee.as_ref()?.outstanding_full)).unwrap_or(OUTSTANDING);
    let mut steps = vec![1, full / 2, full, full * 2];
    steps.retain(|step| *step > 0);
    steps.dedup();
    steps
}

/// Points of one kind until only a given part of the time is left; beyond the last step, doublings while throughput
/// rises.
fn points(
    run: &mut PointRun<'_>,
    plan: &Plan,
    steps: &[u32],
    shape: &Shape,
    time_end: std::time::Duration,
) -> Result<Vec<Point>, MeasureError> {
    let mut points: Vec<Point> = Vec::new();
    let mut waiting: Vec<u32> = steps.to_vec();
    while !waiting.is_empty() && run.time_left() > time_end {
        let outstanding = waiting.remove(0);
        let left = run.time_left().saturating_sub(time_end) / (waiting.len() as u32 + 1);
        let point = run.point(shape, outstanding, left.min(plan.point_time_max))?;
        if point.ios > 0 {
            points.push(point);
        }
        let [.., before, last] = points.as_slice() else { continue };
        if waiting.is_empty() && last.iops > 1.04 * before.iops && outstanding < plan.outstanding_max {
            waiting.push(outstanding * 2);
        }
        if run.stopped {
            break;
        }
    }
    Ok(points)
}

fn curve(shape: &Shape, points: Vec<Point>, context: &StorageLimits) -> Option<Curve> {
    let knee = find_knee(shape, &points, context);
    (!points.is_empty()).then_some(Curve { workload: *shape, points, knee })
}

/// The capability with these curves in the place of the old ones; what an I/O costs follows from them.
fn replaced(known: &Capability, fresh: &[Curve]) -> Capability {
    let mut refreshed = known.clone();
    for curve in fresh {
        let before = known.curve(&curve.workload).and_then(Curve::iops_max);
        let modelled = known.cost_model.as_ref().map(|model| model.iops_max(&curve.workload));
        let times = before.or(modelled).zip(curve.iops_max()).map(|(before, now)| before / now);
        if let (Some(model), Some(times)) = (&mut refreshed.cost_model, times) {
            scale(model, &curve.workload, times);
        }
        match refreshed.curves.iter_mut().find(|old| old.workload == curve.workload) {
            Some(old) => *old = curve.clone(),
            None => refreshed.curves.push(curve.clone()),
        }
    }
    refreshed
}

/// Multiplies the cost of I/Os of this kind by `times`: of small ones the cost of each, of large ones that of
/// their bytes.
fn scale(model: &mut CostModel, shape: &Shape, times: f64) {
    let scaled = |demand: &mut Demand| match shape.block_bytes >= LARGE_BYTES_MIN {
        true => demand.per_byte_ns *= times,
        false => demand.fixed_ns *= times,
    };
    if shape.write_percent < 100 {
        [&mut model.read_random, &mut model.read_sequential].into_iter().for_each(scaled);
    }
    if shape.write_percent > 0 {
        [&mut model.write_random, &mut model.write_sequential].into_iter().for_each(scaled);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use capability::{Binding, Declared, Flow, Side};
    use workload::{Pattern, TargetFacts, TargetKind};

    fn known(iops: f64) -> Capability {
        let mut limits = Declared { latency_ns: Some(1e6), ..Declared::default() };
        limits.set(Binding::ReadOperations, iops);
        limits.set(Binding::WriteOperations, iops);
        let facts = TargetFacts {
            path: "/data".into(),
            kind: TargetKind::Directory,
            filesystem: None,
            mount: None,
            free_bytes: 0,
            devices: Vec::new(),
            direct_align_bytes: None,
            memory_align_bytes: 512,
            caps: Vec::new(),
        };
        let mut known = limits.capability(facts, 1, "0").unwrap();
        let demand = Demand { fixed_ns: 1e9 / iops, per_byte_ns: 0.0 };
        let model = known.cost_model.as_mut().unwrap();
        model.limits.clear();
        (model.read_random, model.write_random) = (demand, demand);
        known
    }

    #[test]
    fn each_resource_is_shown_by_one_kind_of_io_reads_first() {
        let doubted = [ResourceName::WriteBandwidth, ResourceName::ReadOperations, ResourceName::ReadLatency];
        let shapes = shapes_of(&doubted);
        assert_eq!(shapes, [Shape::random_read(8192), Shape::sequential_write(524_288)]);
    }

    #[test]
    fn a_curve_is_taken_again_where_it_was_flat_and_from_rest_on() {
        let known = known(16_000.0);
        let full = known.curve(&Shape::random_read(8192)).unwrap().knee.as_ref().unwrap().outstanding_full;
        assert_eq!(steps(known.curve(&Shape::random_read(8192))), [1, full / 2, full, 2 * full]);
        assert_eq!(steps(None), [1, 16, 32, 64]);
    }

    #[test]
    fn half_of_the_reads_are_twice_as_dear_and_writes_are_as_before() {
        let (old, new) = (known(1_000.0), known(500.0));
        let reads = new.curve(&Shape::random_read(8192)).unwrap().clone();
        let refreshed = replaced(&old, std::slice::from_ref(&reads));
        assert_eq!(refreshed.curve(&reads.workload), Some(&reads));
        let used = |side| {
            let flow = Flow { side, pattern: Pattern::Random, per_second: 100.0, bytes: 8192.0 };
            refreshed.cost_model.as_ref().unwrap().utilisation(&[flow]).value
        };
        assert!((used(Side::Read) - 0.2).abs() < 0.01, "{}", used(Side::Read));
        assert!((used(Side::Write) - 0.1).abs() < 0.01, "{}", used(Side::Write));
        let others = |capability: &Capability| {
            let curves = capability.curves.iter().filter(|curve| curve.workload != reads.workload);
            curves.cloned().collect::<Vec<_>>()
        };
        assert_eq!(others(&refreshed), others(&old));
    }
}
