//! Finds out what a target can give, in about a minute.
//!
//! ```text
//! measure(region, facts, plan, watch)
//!   for each shape of the plan
//!     sweep   N = 1, 2, 4, ... until throughput stops rising, then points around the knee
//!       point   load::run until steady, then until the confidence interval is narrow
//!     find_knee
//!   maxima of further sizes and mixes, one point each -> CostModel::fit, some of them held out
//! -> Capability
//! ```
//!
//! A point runs until it is known, not for a fixed minute. Its throughput counts from the moment it is
//! *steady*: over the last five slices the range is within 20 % of their mean and the least-squares line
//! moves by at most 10 % (the rule of SNIA's SSS Performance Test Specification, with slices of 50 ms
//! instead of rounds of a minute). It ends when the 95 % confidence interval of the mean, by Student's t
//! over the slices as batch means (Law and Kelton), is narrower than the plan's precision, or when the
//! plan's time is up; then the point says that it was not steady.
//!
//! Reads run before writes, small blocks before large ones: a device's write cache must not be full of the
//! previous point. This crate opens nothing; the region it gets may be overwritten if the plan writes.

mod plan;
mod point;
mod sweep;

pub use plan::{Effort, Plan};
pub use sweep::next_step;

use capability::{Capability, Conditions, CostModel, Curve, Maximum, StorageLimits, find_knee};
use point::{PointRun, Stopped};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use storage::Region;
use workload::{Backend, Caching, Shape, TargetFacts};

/// How far a measurement is.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// What is running: "random read 8 KiB, 16 outstanding".
    pub doing: String,
    /// Time since the measurement began.
    pub elapsed: Duration,
    /// Time until it ends, estimated.
    pub left: Duration,
    /// I/Os a second of the point that runs, so far.
    pub iops: f64,
}

/// What the watcher wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Go {
    /// Go on.
    On,
    /// End now and keep what was measured.
    Stop,
}

/// Why there is no capability.
#[derive(Debug, thiserror::Error)]
pub enum MeasureError {
    /// The load could not run.
    #[error(transparent)]
    Load(#[from] load::LoadError),
    /// Ended before the first curve was known.
    #[error("nothing was measured: it was ended before the first point was known")]
    Nothing,
}

/// What a measurement leaves besides the region and the facts of the target.
#[derive(Clone, Debug, Default)]
pub struct Circumstances {
    /// Version of Headroom, for the record.
    pub version: String,
    /// Kernel release, for the record.
    pub kernel: String,
    /// I/Os a second of others on the device, seen before.
    pub foreign_iops: Option<f64>,
}

/// Measures a region, and commits in `log`, an empty file on the same storage opened through the page cache
/// (its region's bytes bound how far it may grow). `watch` is called about every 20 ms.
///
/// # Errors
/// Where the load cannot run at all, or it was stopped before anything was known.
pub fn measure(
    region: &Region,
    log: Option<&Region>,
    facts: &TargetFacts,
    plan: &Plan,
    circumstances: Circumstances,
    watch: &mut dyn FnMut(&Progress) -> Go,
) -> Result<Capability, MeasureError> {
    let began = Instant::now();
    let measured_unix_ns =
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos() as u64);
    let mut run = PointRun::new(region, plan, began, watch);
    let around = surroundings(facts);
    let mut remarks = plan.remarks();
    let (curves, stopped) = curves(&mut run, log, plan, &around)?;
    if curves.iter().all(|curve| curve.points.is_empty()) {
        return Err(MeasureError::Nothing);
    }
    let mut cost_model = None;
    if stopped.is_none() {
        let (maxima, held_out, stopped_later) = maxima(&mut run, plan, &curves)?;
        match CostModel::fit(&maxima, &held_out) {
            Ok(model) => cost_model = Some(model),
            Err(error) => remarks.push(error.to_string()),
        }
        if stopped_later.is_some() {
            remarks.push("ended early: the cost model stands on fewer points".into());
        }
    } else {
        remarks.push("ended early by the user: the later curves are missing".into());
    }
    let failed: u64 = curves.iter().flat_map(|curve| &curve.points).map(|point| point.failed).sum();
    if failed > 0 {
        remarks.push(format!("{failed} I/Os failed during the measurement"));
    }
    let direct = region.direct && plan.caching == Caching::Direct;
    Ok(Capability {
        target: facts.clone(),
        measured_unix_ns,
        conditions: Conditions {
            headroom_version: circumstances.version,
            kernel: circumstances.kernel,
            backend: run.backend.unwrap_or(Backend::IoUring),
            caching: if direct { Caching::Direct } else { Caching::Buffered },
            region_bytes: region.bytes,
            foreign_iops: circumstances.foreign_iops,
            took_s: began.elapsed().as_secs_f64(),
            effort: plan.effort.to_string(),
            remarks,
        },
        curves,
        cost_model,
    })
}

/// One curve by the adaptive sweep, within the time allotted.
///
/// # Errors
/// Where the load cannot run.
pub fn sweep_adaptive(
    region: &Region,
    shape: &Shape,
    plan: &Plan,
    around: &StorageLimits,
    allotted: Duration,
    watch: &mut dyn FnMut(&Progress) -> Go,
) -> Result<Curve, MeasureError> {
    let mut run = PointRun::new(region, plan, Instant::now(), watch);
    Ok(sweep::curve(&mut run, shape, plan, around, allotted)?.0)
}

/// One curve by the numbers of outstanding I/Os given, each point for a fixed time.
///
/// # Errors
/// Where the load cannot run.
pub fn sweep_fixed(
    region: &Region,
    shape: &Shape,
    plan: &Plan,
    around: &StorageLimits,
    steps: &[u32],
    each: Duration,
    watch: &mut dyn FnMut(&Progress) -> Go,
) -> Result<Curve, MeasureError> {
    // No precision is ever enough, so that every point takes its whole time.
    let plan = Plan { precision: 0.0, ..plan.clone() };
    let mut run = PointRun::new(region, &plan, Instant::now(), watch);
    let mut points = Vec::new();
    for outstanding in steps {
        let (point, stopped) = run.point(shape, *outstanding, each)?;
        points.push(point);
        if stopped.is_some() {
            break;
        }
    }
    let knee = find_knee(shape, &points, around);
    Ok(Curve { workload: *shape, points, knee })
}

/// What must be known of a target to name a knee's reason.
pub fn surroundings(facts: &TargetFacts) -> StorageLimits {
    let requests_max = facts
        .devices
        .first()
        .and_then(|device| Some(device.requests_max? * device.queues.unwrap_or(1).max(1)));
    StorageLimits { caps: facts.caps.clone(), requests_max }
}

fn curves(
    run: &mut PointRun,
    log: Option<&Region>,
    plan: &Plan,
    around: &StorageLimits,
) -> Result<(Vec<Curve>, Option<Stopped>), MeasureError> {
    let mut curves = Vec::new();
    let shapes = plan.curves();
    let mut weight_left: f64 = shapes.iter().map(|(_, weight)| weight).sum();
    for (shape, weight) in shapes {
        let allotted = run.time_left().saturating_sub(plan.maxima_time()).mul_f64(weight / weight_left);
        weight_left -= weight;
        let (curve, stopped) = sweep::curve(run, &shape, plan, around, allotted)?;
        if !curve.points.is_empty() {
            curves.push(curve);
        }
        if stopped.is_some() {
            return Ok((curves, stopped));
        }
    }
    let writes = plan.log_writes().into_iter().map(|shape| (shape, None));
    let appends = plan.log_appends().into_iter().filter_map(|shape| Some((shape, Some(log?))));
    for (shape, log) in writes.chain(appends) {
        let (point, stopped) = match log {
            None => run.point(&shape, 1, plan.point_time_max)?,
            Some(log) => run.append(log, &shape, plan.point_time_max)?,
        };
        // A storage that did nothing in all that time has no point there.
        if point.ios > 0 {
            curves.push(Curve { workload: shape, points: vec![point], knee: None });
        }
        if stopped.is_some() {
            return Ok((curves, stopped));
        }
    }
    Ok((curves, None))
}

/// Highest rates for the cost model: those of the curves, and one point each for further shapes. The
/// second list takes no part in the fit.
#[expect(clippy::type_complexity, reason = "two lists and whether they are whole, used once")]
fn maxima(
    run: &mut PointRun,
    plan: &Plan,
    curves: &[Curve],
) -> Result<(Vec<Maximum>, Vec<Maximum>, Option<Stopped>), MeasureError> {
    let mut fitted: Vec<Maximum> = curves
        .iter()
        .filter_map(|curve| {
            let knee = curve.knee.as_ref()?;
            let (low, high) = knee.iops_interval;
            Some(Maximum { workload: curve.workload, iops: knee.iops, iops_half_width: (high - low) / 2.0 })
        })
        .collect();
    let mut held_out = Vec::new();
    let shapes = plan.maxima();
    let mut left = shapes.len() as u32;
    for (shape, fit) in shapes {
        let time_max = (run.time_left() / left).min(plan.point_time_max);
        left -= 1;
        let (point, stopped) = run.point(&shape, saturating(&shape, curves), time_max)?;
        let list = if fit { &mut fitted } else { &mut held_out };
        if point.ios > 0 {
            list.push(Maximum { workload: shape, iops: point.iops, iops_half_width: point.iops_half_width });
        }
        if stopped.is_some() {
            return Ok((fitted, held_out, stopped));
        }
    }
    Ok((fitted, held_out, None))
}

/// An N that surely saturates a shape: twice what the nearest curve needed for its whole throughput.
fn saturating(shape: &Shape, curves: &[Curve]) -> u32 {
    let knees = curves.iter().filter_map(|curve| curve.knee.as_ref().map(|knee| (curve.workload, knee)));
    let nearest = knees.min_by_key(|(other, _)| {
        (other.write_percent.abs_diff(shape.write_percent), other.block_bytes.abs_diff(shape.block_bytes))
    });
    nearest.map_or(32, |(_, knee)| (2 * knee.outstanding_full).clamp(8, 256))
}
