//! Measures the capability of a target, in about a minute.
//!
//! ```text
//! measure(target, plan, watch)
//!   for each shape of the plan
//!     sweep   N = 1, 2, 4, ... until throughput stops rising, then points around the knee
//!       point   load::run until steady, then until the confidence interval is narrow
//!     find_knee
//!   maxima of further sizes and mixes, one point each -> CostModel::fit, some of them held out
//! -> Capability
//! ```
//!
//! A point counts from the moment it is *steady*: over the last five slices the range is within 20 % of their mean and
//! the least-squares line moves by at most 10 % (the rule of SNIA's SSS Performance Test Specification, with slices of
//! 50 ms instead of rounds of a minute). It ends when the 95 % confidence interval of the mean, by Student's t over the
//! slices as batch means (Law and Kelton), is narrower than the plan's precision, or when its time is up.
//!
//! Reads run before writes, small blocks before large ones: a device's write cache must not be full of the previous
//! point. This crate opens nothing; it overwrites the region it is given if the plan writes.

mod plan;
mod point;
mod refresh;
mod sweep;

pub use plan::Plan;
pub use refresh::refresh;
pub use sweep::next_step;

use capability::{Capability, Conditions, CostModel, Curve, Maximum, Origin, StorageLimits};
use point::PointRun;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};
use storage::Region;
use workload::{Backend, Caching, Shape, TargetFacts};

/// Progress of a measurement.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasureProgress {
    /// The point that runs: "random read 8 KiB, 16 outstanding".
    pub doing: String,
    /// Time since the measurement began.
    pub elapsed: Duration,
    /// Estimated time until it ends.
    pub left: Duration,
    /// I/Os a second of that point so far.
    pub iops: f64,
}

/// Why there is no capability.
#[derive(Debug, thiserror::Error)]
pub enum MeasureError {
    /// The load could not run.
    #[error(transparent)]
    Load(#[from] load::LoadError),
    /// It ended before the first point was known.
    #[error("nothing was measured: it was ended before the first point was known")]
    Nothing,
}

/// What is measured.
#[derive(Clone, Copy, Debug)]
pub struct MeasuredTarget<'a> {
    /// The region that I/Os run on.
    pub region: &'a Region,
    /// For commits: an empty file on the same storage, opened through the page cache. Its size limits its growth.
    pub log: Option<&'a Region>,
    /// The facts of the target.
    pub facts: &'a TargetFacts,
    /// I/Os a second of other processes on its device before.
    pub foreign_iops: Option<f64>,
}

/// Measures a target. `watch` is called about every 20 ms; its break ends the measurement, and what was measured is kept.
///
/// # Errors
/// Where the load cannot run, or it was stopped before the first point was known.
pub fn measure(
    target: MeasuredTarget<'_>,
    plan: &Plan,
    watch: &mut dyn FnMut(&MeasureProgress) -> ControlFlow<()>,
) -> Result<Capability, MeasureError> {
    let MeasuredTarget { region, log, facts, foreign_iops } = target;
    let began = Instant::now();
    let measured_unix_ns = host::unix_ns();
    let mut run = PointRun::new(region, plan, began, watch);
    let context = knee_context(facts);
    let mut remarks = plan.remarks();
    let curves = curves(&mut run, log, plan, &context)?;
    if curves.iter().all(|curve| curve.points.is_empty()) {
        return Err(MeasureError::Nothing);
    }
    let mut cost_model = None;
    if !run.stopped {
        let (fitted, held_out) = maxima(&mut run, plan, &curves)?;
        match CostModel::fit(&fitted, &held_out) {
            Ok(model) => cost_model = Some(model),
            Err(error) => remarks.push(error.to_string()),
        }
        if run.stopped {
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
            headroom_version: env!("CARGO_PKG_VERSION").into(),
            kernel: host::release(),
            backend: run.backend.unwrap_or(Backend::IoUring),
            caching: if direct { Caching::Direct } else { Caching::Buffered },
            region_bytes: region.bytes,
            foreign_iops,
            took_s: began.elapsed().as_secs_f64(),
            effort: plan.effort,
            remarks,
        },
        curves,
        cost_model,
        origin: Origin::Measured,
    })
}

/// The facts of a target that are needed to name the reason of a knee.
pub fn knee_context(facts: &TargetFacts) -> StorageLimits {
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
    context: &StorageLimits,
) -> Result<Vec<Curve>, MeasureError> {
    let mut curves = Vec::new();
    let shapes = plan.curves();
    let mut weight_left: f64 = shapes.iter().map(|(_, weight)| weight).sum();
    for (shape, weight) in shapes {
        let allotted = run.time_left().saturating_sub(plan.maxima_time()).mul_f64(weight / weight_left);
        weight_left -= weight;
        let curve = sweep::curve(run, &shape, plan, context, allotted)?;
        if !curve.points.is_empty() {
            curves.push(curve);
        }
        if run.stopped {
            return Ok(curves);
        }
    }
    let writes = plan.log_shapes(Shape::log_write).into_iter().map(|shape| (plan.shape(shape), None));
    let appends =
        plan.log_shapes(Shape::log_append).into_iter().filter_map(|shape| Some((shape, Some(log?))));
    for (shape, log) in writes.chain(appends) {
        let point = match log {
            None => run.point(&shape, 1, plan.point_time_max)?,
            Some(log) => run.append(log, &shape, plan.point_time_max)?,
        };
        // Without a completed I/O there is no point.
        if point.ios > 0 {
            curves.push(Curve { workload: shape, points: vec![point], knee: None });
        }
        if run.stopped {
            break;
        }
    }
    Ok(curves)
}

/// The highest rates for the cost model, of the curves and of one point each for further shapes: those that it is fitted
/// to, and those kept out of the fit to test it.
fn maxima(
    run: &mut PointRun,
    plan: &Plan,
    curves: &[Curve],
) -> Result<(Vec<Maximum>, Vec<Maximum>), MeasureError> {
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
        let point = run.point(&shape, saturating(&shape, curves), time_max)?;
        let list = if fit { &mut fitted } else { &mut held_out };
        if point.ios > 0 {
            list.push(Maximum { workload: shape, iops: point.iops, iops_half_width: point.iops_half_width });
        }
        if run.stopped {
            break;
        }
    }
    Ok((fitted, held_out))
}

/// An N that saturates a shape: twice what the most similar curve needed for its full throughput.
fn saturating(shape: &Shape, curves: &[Curve]) -> u32 {
    let knees = curves.iter().filter_map(|curve| curve.knee.as_ref().map(|knee| (curve.workload, knee)));
    let nearest = knees.min_by_key(|(other, _)| {
        (other.write_percent.abs_diff(shape.write_percent), other.block_bytes.abs_diff(shape.block_bytes))
    });
    nearest.map_or(32, |(_, knee)| (2 * knee.outstanding_full).clamp(8, 256))
}
