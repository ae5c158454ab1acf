//! Runs, real and simulated, and matrices of them.

use super::capability::curve;
use super::{add, plain};
use crate::{Estimate, Simulation};
use findings::Finding;
use findings::ladder::LADDER;
use serde_json::{Value, json};
use simulate::{Fit, Prediction};
use workload::{LatencyFigures, PhaseResult, RunResult};

/// A run: the result as it is stored, the figures that follow from it, and what it means.
pub fn run(result: &RunResult, findings: &[Finding]) -> Value {
    let mut value = plain(result);
    let (read, write, total) = (result.read_latency(), result.write_latency(), result.total_latency());
    let waited = result.response.as_ref().map(|response| {
        let mut both = response.read.clone();
        both.merge(&response.write);
        both
    });
    let waited = waited.as_ref().map(LatencyFigures::from);
    let percentiles: Vec<Value> = LADDER
        .iter()
        .map(|rung| {
            json!({
                "name": rung.name, "percent": rung.percent, "ios_needed": rung.ios_needed,
                "stands": rung.stands(total.count()),
                "read_ns": read.percentile_ns(rung.percent),
                "write_ns": write.percentile_ns(rung.percent),
                "total_ns": total.percentile_ns(rung.percent),
                "response_ns": waited.as_ref().and_then(|waited| waited.percentile_ns(rung.percent)),
            })
        })
        .collect();
    let derived = json!({
        "iops": result.iops(),
        "mib_per_s": result.mib_per_s(),
        "outstanding_mean": result.outstanding_known(),
        "latency_ns_mean": total.mean_ns(),
        "cpu_ns_per_io": result.cpu_ns_per_io(),
        "percentiles": percentiles,
        "valid": findings::is_valid(findings),
        "findings": findings,
    });
    add(&mut value, derived);
    value
}

/// Several workloads or phases: `phases[].results[]`, each as [`run`].
pub fn phases(phases: &[PhaseResult], findings_of: impl Fn(&RunResult) -> Vec<Finding>) -> Value {
    let of = |phase: &PhaseResult| {
        let results = phase.results.iter().map(|result| run(result, &findings_of(result)));
        json!({ "name": phase.name, "results": results.collect::<Vec<Value>>() })
    };
    json!({ "phases": phases.iter().map(of).collect::<Vec<Value>>() })
}

/// A simulated plan: `phases[].results[]` as of a run, and the model.
pub fn simulation(simulation: &Simulation) -> Value {
    let mut value = phases(&simulation.phases, |_| Vec::new());
    let more = json!({
        "simulated": true,
        "storage": simulation.storage,
        "fit": simulation.fit.as_ref().map(fit),
    });
    add(&mut value, more);
    value
}

/// An estimate of a changed storage.
pub fn estimate(estimate: &Estimate) -> Value {
    let prediction = |one: &Prediction| {
        json!({
            "name": one.after.workload.to_string(),
            "before": curve(&one.before),
            "after": curve(&one.after),
            "outstanding_before": one.outstanding.0,
            "outstanding_after": one.outstanding.1,
            "demand_iops": one.demand_iops,
            "headroom_before": one.headroom.0,
            "headroom_after": one.headroom.1,
            "rows_per_s_before": one.rows_per_s.map(|rows| rows.0),
            "rows_per_s_after": one.rows_per_s.map(|rows| rows.1),
        })
    };
    json!({
        "simulated": true,
        "of": estimate.of,
        "changes": estimate.changes,
        "storage": estimate.fit.storage,
        "fit": fit(&estimate.fit),
        "predictions": estimate.predictions.iter().map(prediction).collect::<Vec<Value>>(),
    })
}

fn fit(fit: &Fit) -> Value {
    json!({
        "error": fit.error,
        "held_out": fit.held_out,
        "trained": fit.trained,
        "not_covered": fit.not_covered,
        "commit": fit.commit,
    })
}

/// The results of a matrix: a row for each point, with its runs.
pub fn matrix(summary: &matrix::Summary) -> Value {
    json!({
        "matrix": summary.id,
        "definition": summary.matrix,
        "left": summary.left,
        "points": summary.rows,
    })
}
