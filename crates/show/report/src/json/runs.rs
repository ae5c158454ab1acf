//! Runs, real and simulated, and matrices of them.

use super::capability::{CurveOutput, curve};
use super::plain::plain;
use crate::{Estimate, Simulation};
use capability::Demand;
use findings::Finding;
use findings::ladder::LADDER;
use matrix::{Forecast, Matrix, Row};
use serde::Serialize;
use serde_json::Value;
use simulate::{Fit, HeldOutPoint, Prediction, Storage};
use workload::{LatencyFigures, PhaseResult, Response, RunResult};

/// A run: the result as it is stored, the figures that follow from it, and findings.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "RunResult"))]
struct RunOutput<'a> {
    #[serde(flatten)]
    result: &'a RunResult,
    /// I/Os a second, reads and writes.
    iops: f64,
    /// MiB a second.
    mib_per_s: f64,
    /// Mean outstanding I/Os by Little's law; null where another tool reported no latency.
    outstanding_mean: Option<f64>,
    /// Mean latency of reads and writes, nanoseconds; null without I/Os.
    latency_ns_mean: Option<f64>,
    /// CPU time of the load threads for each I/O, nanoseconds; null without I/Os.
    cpu_ns_per_io: Option<f64>,
    /// Percentiles of the latency.
    percentiles: Vec<Percentile>,
    /// False where a finding says that the figures must not be used.
    valid: bool,
    /// Findings on the run; the worst come first.
    findings: Vec<Finding>,
}

/// A percentile of the latencies of a run.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Percentile {
    /// `25` to `99.9999999`.
    name: &'static str,
    /// The percentile as a number.
    percent: f64,
    /// Number of I/Os from which ten lie above it.
    ios_needed: u64,
    /// Whether reads and writes together have as many; where not, it is little more than the maximum.
    stands: bool,
    /// Of the reads, nanoseconds; null without.
    read_ns: Option<u64>,
    /// Of the writes, nanoseconds; null without.
    write_ns: Option<u64>,
    /// Of both, nanoseconds; null without.
    total_ns: Option<u64>,
    /// Of both, nanoseconds from their intended start; null but for open loops.
    response_ns: Option<u64>,
}

/// Output of `headroom run --json`.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Session"))]
pub(super) struct SessionOutput<'a> {
    /// The number under which the history keeps the runs of this command together; null where they could not be kept.
    session: Option<i64>,
    #[serde(flatten)]
    phases: PhasesOutput<'a>,
}

/// The runs of each phase.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Phases"))]
pub(super) struct PhasesOutput<'a> {
    /// In their order.
    phases: Vec<PhaseOutput<'a>>,
}

/// A phase.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "PhaseRuns"))]
struct PhaseOutput<'a> {
    /// Its name.
    name: &'a str,
    /// A run for each of its workloads, in their order.
    results: Vec<RunOutput<'a>>,
}

/// Output of `headroom simulate --json` for a workload file.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Simulation"))]
pub(super) struct SimulationOutput<'a> {
    /// The runs; with `--what-if`, the phases of the unchanged storage come first, named so, then the changed ones.
    #[serde(flatten)]
    phases: PhasesOutput<'a>,
    /// Always true.
    simulated: bool,
    /// The model.
    storage: &'a Storage,
    /// Where the model comes from; null where it was not fitted.
    fit: Option<FitOutput<'a>>,
}

/// Output of `headroom simulate --fit --json` without a workload file.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Estimate"))]
pub(super) struct EstimateOutput<'a> {
    /// Always true.
    simulated: bool,
    /// The measured storage.
    of: &'a str,
    /// The changes, verbatim; null: none.
    changes: Option<&'a str>,
    /// The model.
    storage: &'a Storage,
    /// How the model was fitted.
    fit: FitOutput<'a>,
    /// A prediction for each measured workload.
    predictions: Vec<PredictionOutput<'a>>,
}

/// How a model was fitted.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Fit"))]
struct FitOutput<'a> {
    /// Mean relative error of the simulated I/Os a second on `held_out`; null where none were kept out.
    error: Option<f64>,
    /// Points kept out of the fit.
    held_out: &'a [HeldOutPoint],
    /// Points that the fit was made of.
    trained: usize,
    /// Cases that the model does not cover, sentences.
    not_covered: &'a [String],
    /// Cost of a commit; null where log writes were not measured.
    commit: Option<Demand>,
}

/// Effect of a change of the storage on one workload.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Prediction"))]
struct PredictionOutput<'a> {
    /// The workload in words.
    name: String,
    /// The curve of the unchanged model.
    before: CurveOutput<'a>,
    /// The curve with the changes.
    after: CurveOutput<'a>,
    /// I/Os that today's clients keep outstanding.
    outstanding_before: u32,
    /// I/Os that the changed clients keep outstanding.
    outstanding_after: u32,
    /// I/Os a second that today's clients get.
    demand_iops: f64,
    /// The multiple of today's demand that the storage carries.
    headroom_before: f64,
    /// The multiple of the changed demand that the changed storage carries.
    headroom_after: f64,
    /// Rows that one writer commits a second; null where log writes were not measured.
    rows_per_s_before: Option<f64>,
    /// Rows that one writer commits a second with the changes.
    rows_per_s_after: Option<f64>,
}

/// Output of `headroom run --json` with lists of values.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "MatrixResult"))]
pub(super) struct MatrixOutput<'a> {
    /// Its number in the history.
    matrix: i64,
    /// The matrix.
    definition: &'a Matrix,
    /// The remaining runs; null: finished.
    left: Option<&'a Forecast>,
    /// A row for each point, with its runs.
    points: &'a [Row],
}

/// A run: the result as it is stored, the figures that follow from it, and findings.
pub fn run(result: &RunResult, findings: &[Finding]) -> Value {
    plain(&run_output(result, findings.to_vec()))
}

fn run_output(result: &RunResult, findings: Vec<Finding>) -> RunOutput<'_> {
    let (read, write, total) = (result.read_latency(), result.write_latency(), result.total_latency());
    let waited = result.response.as_ref().map(Response::total);
    let waited = waited.as_ref().map(LatencyFigures::from);
    let percentiles = LADDER.iter().map(|rung| Percentile {
        name: rung.name,
        percent: rung.percent,
        ios_needed: rung.ios_needed,
        stands: rung.stands(total.count()),
        read_ns: read.percentile_ns(rung.percent),
        write_ns: write.percentile_ns(rung.percent),
        total_ns: total.percentile_ns(rung.percent),
        response_ns: waited.as_ref().and_then(|waited| waited.percentile_ns(rung.percent)),
    });
    RunOutput {
        result,
        iops: result.iops(),
        mib_per_s: result.mib_per_s(),
        outstanding_mean: result.outstanding_known(),
        latency_ns_mean: total.mean_ns(),
        cpu_ns_per_io: result.cpu_ns_per_io(),
        percentiles: percentiles.collect(),
        valid: findings::is_valid(&findings),
        findings,
    }
}

/// Several workloads or phases: `phases[].results[]`, each as [`run`], and the number of their session in the history.
pub fn session(
    phases: &[PhaseResult],
    findings_of: impl Fn(&RunResult) -> Vec<Finding>,
    session: Option<i64>,
) -> Value {
    plain(&SessionOutput { session, phases: phases_output(phases, findings_of) })
}

/// Phases of runs that no history keeps.
pub fn phases(phases: &[PhaseResult], findings_of: impl Fn(&RunResult) -> Vec<Finding>) -> Value {
    plain(&phases_output(phases, findings_of))
}

fn phases_output(
    phases: &[PhaseResult],
    findings_of: impl Fn(&RunResult) -> Vec<Finding>,
) -> PhasesOutput<'_> {
    let runs = phases.iter().map(|phase| PhaseOutput {
        name: &phase.name,
        results: phase.results.iter().map(|result| run_output(result, findings_of(result))).collect(),
    });
    PhasesOutput { phases: runs.collect() }
}

/// A simulated plan: `phases[].results[]` as of a run, and the model.
pub fn simulation(simulation: &Simulation) -> Value {
    plain(&SimulationOutput {
        phases: phases_output(&simulation.phases, |_| Vec::new()),
        simulated: true,
        storage: &simulation.storage,
        fit: simulation.fit.as_ref().map(fit),
    })
}

/// An estimate of a changed storage.
pub fn estimate(estimate: &Estimate) -> Value {
    plain(&EstimateOutput {
        simulated: true,
        of: &estimate.of,
        changes: estimate.changes.as_deref(),
        storage: &estimate.fit.storage,
        fit: fit(&estimate.fit),
        predictions: estimate.predictions.iter().map(prediction).collect(),
    })
}

fn prediction(one: &Prediction) -> PredictionOutput<'_> {
    PredictionOutput {
        name: one.after.workload.to_string(),
        before: curve(&one.before),
        after: curve(&one.after),
        outstanding_before: one.outstanding.0,
        outstanding_after: one.outstanding.1,
        demand_iops: one.demand_iops,
        headroom_before: one.headroom.0,
        headroom_after: one.headroom.1,
        rows_per_s_before: one.rows_per_s.map(|rows| rows.0),
        rows_per_s_after: one.rows_per_s.map(|rows| rows.1),
    }
}

fn fit(fit: &Fit) -> FitOutput<'_> {
    FitOutput {
        error: fit.error,
        held_out: &fit.held_out,
        trained: fit.trained,
        not_covered: &fit.not_covered,
        commit: fit.commit,
    }
}

/// The results of a matrix: a row for each point, with its runs.
pub fn matrix(summary: &matrix::Summary) -> Value {
    plain(&MatrixOutput {
        matrix: summary.id,
        definition: &summary.matrix,
        left: summary.left.as_ref(),
        points: &summary.rows,
    })
}
