//! Capabilities: curves, the cost model, sweeps.

use super::add;
use crate::number;
use capability::{Capability, CostModel, Curve, Sweep, SweepComparison, SweepStep};
use serde_json::{Value, json};

/// A capability.
pub fn capability(capability: &Capability) -> Value {
    json!({
        "target": capability.target,
        "measured_at": number::rfc3339(capability.measured_unix_ns),
        "capability_from": capability.origin,
        "conditions": capability.conditions,
        "curves": capability.curves.iter().map(curve).collect::<Vec<Value>>(),
        "cost_model": capability.cost_model.as_ref().map(cost_model),
    })
}

/// Sweeps: their steps, the saturation of their curves, and how the second compares with the first.
pub fn sweeps(sweeps: &[Sweep], compared: Option<&SweepComparison>) -> Value {
    let step = |step: &SweepStep| {
        let queue = step.queue.as_ref().map(|queue| {
            json!({
                "weighted": queue.weighted, "sampled_mean": queue.sampled(), "samples": queue.samples,
                "sample_every_ns": queue.every_ns,
                "sampled_mean_error": queue.error(), "sample_error_max": queue.error_max(),
            })
        });
        json!({ "point": step.point, "queue": queue, "members": step.result.members })
    };
    let one = |sweep: &Sweep| {
        json!({
            "target": sweep.target,
            "layout": sweep.layout(),
            "steps": sweep.steps.iter().map(step).collect::<Vec<Value>>(),
            "saturation": sweep.saturation,
        })
    };
    json!({ "sweeps": sweeps.iter().map(one).collect::<Vec<Value>>(), "comparison": compared })
}

pub(super) fn curve(curve: &Curve) -> Value {
    json!({
        "name": curve.workload.to_string(),
        "workload": curve.workload,
        "points": curve.points,
        "knee": curve.knee,
    })
}

pub(super) fn cost_model(model: &CostModel) -> Value {
    let held_out: Vec<Value> = model
        .held_out
        .iter()
        .map(|held| {
            json!({
                "name": held.workload.to_string(), "workload": held.workload,
                "measured_iops": held.measured_iops, "predicted_iops": held.predicted_iops,
            })
        })
        .collect();
    let mut value = json!({
        "read_random": model.read_random,
        "read_sequential": model.read_sequential,
        "write_random": model.write_random,
        "write_sequential": model.write_sequential,
        "sharing": model.sharing,
        "held_out": held_out,
        "error": model.error,
    });
    if !model.limits.is_empty() {
        add(&mut value, json!({ "limits": model.limits }));
    }
    value
}
