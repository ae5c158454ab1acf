//! Capabilities: curves, the cost model, sweeps.

use super::plain::plain;
use crate::number;
use capability::{
    Capability, Conditions, CostModel, Curve, Demand, Knee, Origin, Point, RateLimit, Saturation, Sharing,
    Sweep, SweepComparison, SweepStep,
};
use serde::Serialize;
use serde_json::Value;
use workload::{MemberShare, Shape, TargetFacts};

/// Output of `headroom measure --json`: the capability of a target.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Capability"))]
pub(super) struct Output<'a> {
    /// The target and the devices below it.
    target: &'a TargetFacts,
    /// When it was measured or declared, RFC 3339.
    measured_at: Option<String>,
    /// Where the figures come from.
    capability_from: Origin,
    /// Under which conditions it was measured.
    conditions: &'a Conditions,
    /// A curve for each measured workload.
    curves: Vec<CurveOutput<'a>>,
    /// Cost of an I/O; null where none could be fitted.
    cost_model: Option<CostModelOutput<'a>>,
}

/// How one workload behaves as more of its I/Os are outstanding.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Curve"))]
pub(super) struct CurveOutput<'a> {
    /// The workload in words.
    name: String,
    /// The shape of each I/O.
    workload: Shape,
    /// The points, by rising outstanding I/Os.
    points: &'a [Point],
    /// Where it saturates; null for a single point.
    knee: Option<&'a Knee>,
}

/// Cost of an I/O to the storage: its time is `fixed_ns + per_byte_ns * bytes`.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "CostModel"))]
pub(super) struct CostModelOutput<'a> {
    /// Random reads.
    read_random: Demand,
    /// Sequential reads.
    read_sequential: Demand,
    /// Random writes.
    write_random: Demand,
    /// Sequential writes.
    write_sequential: Demand,
    /// Shares of the costs that reads and writes have in common.
    sharing: Sharing,
    /// Workloads kept out of the fit, to test it.
    held_out: Vec<HeldOut>,
    /// Mean error over `held_out`, a share; null where nothing was kept out.
    error: Option<f64>,
    /// Declared limits; absent where nothing is declared.
    #[serde(skip_serializing_if = "<[RateLimit]>::is_empty")]
    limits: &'a [RateLimit],
}

/// A workload kept out of the fit of a cost model.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct HeldOut {
    /// The workload in words.
    name: String,
    /// The shape of each I/O.
    workload: Shape,
    /// Its measured highest rate, I/Os a second.
    measured_iops: f64,
    /// The rate that the model predicts, I/Os a second.
    predicted_iops: f64,
}

/// Output of `headroom run --sweep --json`.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Sweeps"))]
pub(super) struct Sweeps<'a> {
    /// A sweep for each target or layout.
    sweeps: Vec<SweepOutput<'a>>,
    /// The second sweep against the first; null for one sweep or without knees.
    comparison: Option<&'a SweepComparison>,
}

/// One sweep.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Sweep"))]
struct SweepOutput<'a> {
    /// The target, or the layout and its members.
    target: &'a str,
    /// `span`, `stripe:64K`; null for one target.
    layout: Option<workload::Layout>,
    /// Its steps, by rising outstanding I/Os.
    steps: Vec<Step<'a>>,
    /// Where the storage saturates.
    saturation: &'a Saturation,
    /// The operating limit for these I/Os by the cost model of the target's measurement; null: there is none.
    operating_limit_iops: Option<f64>,
}

/// One step of a sweep.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "SweepStep"))]
struct Step<'a> {
    /// Its figures.
    point: &'a Point,
    /// The queue of the devices; null where the kernel counts none.
    queue: Option<Queue<'a>>,
    /// Work of each member of a layout.
    members: &'a [MemberShare],
}

/// The queue of the devices during a step.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Queue<'a> {
    /// Mean length over time, by the kernel.
    weighted: f64,
    /// Mean of the samples; null without any.
    sampled_mean: Option<f64>,
    /// Each sample.
    samples: &'a [u64],
    /// From one sample to the next, nanoseconds.
    sample_every_ns: u64,
    /// How far `sampled_mean` is off, as a share of `weighted`: -0.5 is half of it.
    sampled_mean_error: Option<f64>,
    /// How far the worst sample is off.
    sample_error_max: Option<f64>,
}

/// A capability.
pub fn capability(capability: &Capability) -> Value {
    plain(&Output {
        target: &capability.target,
        measured_at: number::rfc3339(capability.measured_unix_ns),
        capability_from: capability.origin,
        conditions: &capability.conditions,
        curves: capability.curves.iter().map(curve).collect(),
        cost_model: capability.cost_model.as_ref().map(cost_model),
    })
}

/// Sweeps: their steps, the saturation of their curves, and how the second compares with the first.
pub fn sweeps(sweeps: &[Sweep], compared: Option<&SweepComparison>) -> Value {
    plain(&Sweeps { sweeps: sweeps.iter().map(sweep).collect(), comparison: compared })
}

fn sweep(sweep: &Sweep) -> SweepOutput<'_> {
    SweepOutput {
        target: &sweep.target,
        layout: sweep.layout(),
        steps: sweep.steps.iter().map(step).collect(),
        saturation: &sweep.saturation,
        operating_limit_iops: sweep.operating_limit_iops,
    }
}

fn step(step: &SweepStep) -> Step<'_> {
    let queue = step.queue.as_ref().map(|queue| Queue {
        weighted: queue.weighted,
        sampled_mean: queue.sampled(),
        samples: &queue.samples,
        sample_every_ns: queue.every_ns,
        sampled_mean_error: queue.error(),
        sample_error_max: queue.error_max(),
    });
    Step { point: &step.point, queue, members: &step.result.members }
}

pub(super) fn curve(curve: &Curve) -> CurveOutput<'_> {
    CurveOutput {
        name: curve.workload.to_string(),
        workload: curve.workload,
        points: &curve.points,
        knee: curve.knee.as_ref(),
    }
}

pub(super) fn cost_model(model: &CostModel) -> CostModelOutput<'_> {
    let held_out = model.held_out.iter().map(|held| HeldOut {
        name: held.workload.to_string(),
        workload: held.workload,
        measured_iops: held.measured_iops,
        predicted_iops: held.predicted_iops,
    });
    CostModelOutput {
        read_random: model.read_random,
        read_sequential: model.read_sequential,
        write_random: model.write_random,
        write_sequential: model.write_sequential,
        sharing: model.sharing,
        held_out: held_out.collect(),
        error: model.error,
        limits: &model.limits,
    }
}
