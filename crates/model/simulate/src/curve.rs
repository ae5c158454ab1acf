use crate::interval::intervals;
use crate::job::Job;
use crate::machine::Machine;
use crate::model::{SimulationError, Storage};
use capability::{Curve, KneeReason, Point, StorageLimits, find_knee};
use std::time::Duration;
use workload::{Phase, RunLength, RunResult, Shape, Workload, format_ns};

/// Simulates one workload alone on all of a storage, with about `ios` I/Os in its measured part. A pilot run of a tenth
/// of them tells how long that takes.
///
/// # Errors
/// Where it cannot be simulated.
pub fn simulate_alone(
    storage: &Storage,
    workload: &Workload,
    ios: u64,
) -> Result<RunResult, SimulationError> {
    let outstanding = u64::from(workload.outstanding_total());
    let pilot = (ios / 10).max(outstanding * 2).max(50);
    let length = RunLength { duration: LONGEST, ios_max: Some(pilot), ..RunLength::default() };
    let piloted = alone(storage, workload, length, LONGEST)?;
    let each_ns = piloted.elapsed_ns as f64 / piloted.ios().max(1) as f64;
    let mut ns = each_ns * ios.max(outstanding * 10) as f64;
    // Whole periods of stalls and refills.
    let stalls = storage.disks.iter().filter_map(|disk| disk.stall.map(|stall| stall.every_ns));
    let steps = storage
        .disks
        .iter()
        .flat_map(|disk| &disk.limits)
        .chain(&storage.limits)
        .map(|limit| limit.refill_ns);
    if let Some(period_ns) = stalls.chain(steps).max().filter(|period_ns| *period_ns > 0) {
        ns = (ns / period_ns as f64).ceil().max(10.0) * period_ns as f64;
    }
    let duration = Duration::from_nanos((ns as u64).max(ROWS * 1_000_000)).min(LONGEST);
    let length = RunLength { warm_up: duration.mul_f64(0.25), duration, ..RunLength::default() };
    alone(storage, workload, length, duration)
}

/// A day of virtual time.
const LONGEST: Duration = Duration::from_secs(86_400);
/// Rows of the series: several for each batch of the intervals.
const ROWS: u64 = 40;

fn alone(
    storage: &Storage,
    workload: &Workload,
    length: RunLength,
    duration: Duration,
) -> Result<RunResult, SimulationError> {
    let mut machine = Machine::new(storage)?;
    let slice = (duration / ROWS as u32).max(Duration::from_millis(1));
    let phase = Phase { slice, ..Phase::single(workload.clone(), length) };
    let bytes = storage.size_bytes();
    let job = Job { workload, target: "simulated".into(), offset: 0, bytes, weight: 1, trace: None };
    let results = machine.run(&phase, &[job], &mut |_, _| true)?;
    Ok(results.into_iter().next().expect("a result for the one job"))
}

/// The point of a curve that a run gives.
pub fn point(result: &RunResult) -> Point {
    let few = || statistics::poisson_half_width(result.iops(), result.ios());
    let half_width = intervals(result).map_or_else(few, |(rate, _)| rate.half_width);
    Point { humps: None, ..Point::new(result, half_width, true) }
}

/// The curve of a closed loop of a shape on a storage.
///
/// # Errors
/// Where it cannot be simulated.
pub fn curve(
    storage: &Storage,
    shape: &Shape,
    outstanding: &[u32],
    ios: u64,
) -> Result<Curve, SimulationError> {
    let mut points = Vec::new();
    for outstanding in outstanding {
        let workload = Workload::from(*shape).with_outstanding(*outstanding);
        points.push(point(&simulate_alone(storage, &workload, ios)?));
    }
    let mut knee = find_knee(shape, &points, &StorageLimits::default());
    if let Some(knee) = &mut knee
        && knee.reason != KneeReason::NotReached
    {
        // A simulated plateau is flatter than any real one, but the model knows its cause.
        let limits = storage.disks.iter().flat_map(|disk| &disk.limits).chain(&storage.limits);
        let metered = limits.clone().any(|limit| limit.of.tokens(false, 1) + limit.of.tokens(true, 1) > 0.0);
        let floor = format_ns(knee.latency_ns_floor);
        knee.reason = if metered { KneeReason::Cap } else { KneeReason::Device };
        knee.why =
            format!("simulated: {:.0} I/Os a second at most, {floor} with nothing in the way", knee.iops);
    }
    Ok(Curve { workload: *shape, points, knee })
}
