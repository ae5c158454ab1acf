//! JSON for programs. Keys are stable and documented in docs/json.md; a figure that is not known is
//! `{"unknown": "<reason>"}` or null, never 0.

use crate::files::{FileRow, worst_first};
use crate::{
    Analysed, Check, Estimate, FileGlance, Glance, OpTotals, Simulation, Traced, TracedFile, number, wording,
};
use analyze::{Analysis, BusyFile};
use capability::{Capability, CostModel, Curve, Sweep, SweepComparison, SweepStep};
use experiments::{CommitResult, CommitStudy, Footprint, RecoverResult, RecoverStudy};
use filestats::waits::Reconciled;
use filestats::{
    Counters, Delta, Figure, FileInterval, Interval, Ops, Profile, Reason, Served, TracedIo, TracedOp,
    WaitInterval,
};
use findings::Finding;
use findings::ladder::LADDER;
use serde::Serialize;
use serde_json::{Value, json};
use simulate::{Fit, Prediction};
use verdict::{Figures, Moment};
use workload::{LatencyHistogram, PhaseResult, RunResult};

/// A verdict with its evidence, the files, the curves and the course.
pub fn check(check: &Check) -> Value {
    let verdict = &check.verdict;
    let evidence: Vec<Value> = verdict
        .evidence
        .iter()
        .map(|fact| {
            let (at, at_time) = (fact.at, number::rfc3339(fact.at));
            json!({
                "what": fact.what, "value": fact.value, "unit": fact.unit, "source": fact.source,
                "at": at, "at_time": at_time,
            })
        })
        .collect();
    let moments: Vec<Value> = check.observation.moments.iter().map(moment).collect();
    let target = check.capability.as_ref().map(|capability| plain(&capability.target));
    json!({
        "headroom_version": check.version,
        "source": check.source,
        "target_path": check.target,
        "verdict": verdict.verdict,
        "confidence": verdict.confidence,
        "summary": verdict.summary,
        "doubts": verdict.doubts,
        "utilisation": verdict.utilisation,
        "headroom": verdict.headroom,
        "binding": verdict.binding,
        "place": verdict.place,
        "evidence": evidence,
        "next_step": verdict.next_step,
        "service_level": check.service_level,
        "profile": check.profile.name,
        "advice": check.advice,
        "phases": check.phases,
        "files": worst_first(check).iter().map(file).collect::<Vec<Value>>(),
        "moments": moments,
        "caps": check.observation.caps,
        "curves": check.capability.iter().flat_map(|capability| &capability.curves).map(curve).collect::<Vec<_>>(),
        "cost_model": check.capability.as_ref().and_then(|capability| capability.cost_model.as_ref()).map(cost_model),
        "target": target,
        "conditions": check.capability.as_ref().map(|capability| plain(&capability.conditions)),
        "measured_at": check.capability.as_ref().and_then(|capability| number::rfc3339(capability.measured_unix_ns)),
    })
}

/// One I/O, as `headroom trace --json` prints it in a line.
pub fn traced_io(io: &TracedIo) -> Value {
    json!({
        "at_ns": io.at_ns,
        "pid": io.pid,
        "tid": io.tid,
        "comm": &*io.comm,
        "op": io.op.word(),
        "file": &*io.file,
        "offset_bytes": io.offset_bytes,
        "bytes": io.bytes,
        "latency_ns": io.latency_ns,
        "flags": io.flags.words().collect::<Vec<_>>(),
        "served_by": io.served.map(Served::word),
        "outstanding": io.n,
    })
}

/// What a trace came to: the last line of `headroom trace --json`.
pub fn trace(traced: &Traced) -> Value {
    let op = |(op, totals): (TracedOp, &OpTotals)| {
        let at = |percent| totals.percentile_ns(percent);
        json!({
            "op": op.word(),
            "ios": totals.ios,
            "bytes": totals.bytes,
            "stall_ns": totals.stall_ns,
            "latency_ns": {
                "mean": totals.mean_ns(),
                "p50": at(50.0),
                "p99": at(99.0),
                "max": totals.max_ns,
            },
        })
    };
    let file = |file: &TracedFile| {
        json!({
            "path": &*file.path,
            "ios": file.ios,
            "bytes": file.bytes,
            "stall_ns": file.stall_ns,
            "trace": file.trace,
        })
    };
    json!({
        "trace": {
            "of": traced.of,
            "elapsed_ns": traced.elapsed_ns,
            "ios": traced.ios(),
            "bytes": traced.bytes(),
            "lost": traced.lost,
            "complete": traced.lost == 0,
            "ops": traced.by_op().map(op).collect::<Vec<Value>>(),
            "files": traced.files.iter().map(file).collect::<Vec<Value>>(),
            "other_files_ios": traced.other_files_ios,
            "notes": traced.notes,
        },
    })
}

/// One interval of a source, as `headroom watch --json` prints it in a line.
pub fn watch(glance: &Glance, profile: &Profile) -> Value {
    let mut value = waits(glance);
    let more = json!({
        "at": number::rfc3339(glance.ended_unix_ns),
        "at_unix_ns": glance.ended_unix_ns,
        "source": glance.source,
        "elapsed_ns": glance.elapsed_ns,
        "files": glance.files.iter().map(|file| watched_file(file, profile)).collect::<Vec<Value>>(),
        "below": glance.below.iter().map(|file| watched_file(file, profile)).collect::<Vec<Value>>(),
        "devices": glance.devices.iter().map(|device| watched(device, None)).collect::<Vec<Value>>(),
        "notes": glance.notes,
    });
    add(&mut value, more);
    value
}

/// What was waited for in an interval, beside what the files took: `waits` and `reconciled`.
pub fn waits(glance: &Glance) -> Value {
    let reconciled = |one: &Reconciled| {
        let mut value = plain(one);
        value["text"] = json!(wording::reconciled(one));
        value
    };
    json!({
        "waits": glance.waits.iter().map(wait).collect::<Vec<Value>>(),
        "reconciled": glance.reconciled.iter().map(reconciled).collect::<Vec<Value>>(),
    })
}

fn add(value: &mut Value, more: Value) {
    if let (Value::Object(fields), Value::Object(more)) = (value, more) {
        fields.extend(more);
    }
}

/// What a stored stretch showed, source by source.
pub fn analysis(analysed: &Analysed) -> Value {
    json!({
        "headroom_version": analysed.version,
        "from_unix_ns": analysed.from_unix_ns,
        "from_time": number::rfc3339(analysed.from_unix_ns),
        "until_unix_ns": analysed.until_unix_ns,
        "until_time": number::rfc3339(analysed.until_unix_ns),
        "service_level": analysed.service_level,
        "profile": analysed.profile.name,
        "bad_news": analysed.is_bad(),
        "sources": analysed.sources.iter().map(analysed_source).collect::<Vec<Value>>(),
        "gaps": analysed.gaps,
    })
}

fn analysed_source(source: &Analysis) -> Value {
    json!({
        "source": source.source,
        "coverage": source.coverage,
        "findings": source.findings,
        "busiest": source.busiest.iter().map(busy_file).collect::<Vec<Value>>(),
    })
}

fn busy_file(busy: &BusyFile) -> Value {
    let Counters { read, write, sync, .. } = busy.counters;
    json!({
        "path": busy.file.path,
        "instance": busy.file.instance,
        "database": busy.file.database,
        "kind": busy.file.kind,
        "drive": busy.file.drive,
        "meaning": busy.meaning,
        "share": busy.share,
        "stall_ns": busy.stall_ns,
        "known_ns": busy.known_ns,
        "outstanding": busy.outstanding(),
        "size_bytes": busy.size_bytes,
        "reads": read.count,
        "read_bytes": read.bytes,
        "read_latency_ns": read.latency_ns(),
        "writes": write.count,
        "write_bytes": write.bytes,
        "write_latency_ns": write.latency_ns(),
        "syncs": sync.map(|sync| sync.count),
        "sync_latency_ns": match sync {
            Figure::Known(sync) => sync.latency_ns(),
            Figure::Unknown { unknown } => Figure::unknown(unknown),
        },
        "p99_at_most_ns": busy.p99_at_most_ns,
    })
}

fn watched_file(file: &FileGlance, profile: &Profile) -> Value {
    let mut value = watched(&file.row, file.band(profile).map(|band| band.name));
    value["size_bytes"] = json!(file.size_bytes);
    value["meaning"] = json!(file.row.meaning);
    value["object"] = json!(file.row.file.object);
    value
}

fn watched(row: &FileInterval, band: Option<&str>) -> Value {
    let mut value = json!({
        "path": row.file.path,
        "instance": row.file.instance,
        "database": row.file.database,
        "kind": row.file.kind,
        "file_id": row.file.file_id,
        "drive": row.file.drive,
        "band": band,
    });
    let delta = match &row.interval {
        Interval::Unknown(reason) => {
            value["unknown"] = json!(reason);
            return value;
        }
        Interval::Known(delta) => delta,
    };
    let Counters { read, write, sync, busy_ns } = delta.counters;
    let sync_figure = |of: fn(&Ops) -> Value| match sync {
        Figure::Known(sync) => of(&sync),
        Figure::Unknown { unknown } => json!(Figure::<u64>::unknown(unknown)),
    };
    for (key, figure) in [
        ("reads", json!(read.count)),
        ("read_bytes", json!(read.bytes)),
        ("read_ns", json!(read.stall_ns)),
        ("read_latency_ns", json!(read.latency_ns())),
        ("writes", json!(write.count)),
        ("write_bytes", json!(write.bytes)),
        ("write_ns", json!(write.stall_ns)),
        ("write_latency_ns", json!(write.latency_ns())),
        ("syncs", sync_figure(|sync| json!(sync.count))),
        ("sync_ns", sync_figure(|sync| json!(sync.stall_ns))),
        ("sync_latency_ns", sync_figure(|sync| json!(sync.latency_ns()))),
        ("busy_ns", json!(busy_ns)),
        ("outstanding", json!(delta.outstanding())),
        ("iops", json!(delta.iops())),
        ("mib_per_s", json!(delta.mib_per_s())),
    ] {
        value[key] = figure;
    }
    value
}

fn wait(wait: &WaitInterval) -> Value {
    let mut value = json!({
        "instance": wait.instance, "event": wait.event, "class": wait.class, "implies": wait.class.implies(),
    });
    match wait.interval {
        Figure::Unknown { unknown } => value["unknown"] = json!(unknown),
        Figure::Known(delta) => {
            value["waits"] = json!(delta.count);
            value["wait_ns"] = json!(delta.wait_ns);
            value["mean_ns"] = json!(delta.mean_ns());
            value["sessions"] = json!(delta.sessions());
        }
    }
    value
}

/// What a target can give.
pub fn capability(capability: &Capability) -> Value {
    json!({
        "target": capability.target,
        "measured_at": number::rfc3339(capability.measured_unix_ns),
        "conditions": capability.conditions,
        "curves": capability.curves.iter().map(curve).collect::<Vec<Value>>(),
        "cost_model": capability.cost_model.as_ref().map(cost_model),
    })
}

/// A run: the result as it is stored, the figures that follow from it, and what it means.
pub fn run(result: &RunResult, findings: &[Finding]) -> Value {
    let mut value = plain(result);
    let latency = result.latency();
    let waited = result.response.as_ref().map(|response| {
        let mut both = response.read.clone();
        both.merge(&response.write);
        both
    });
    let percentile = |of: Option<&LatencyHistogram>, percent| of.and_then(|each| each.percentile_ns(percent));
    let percentiles: Vec<Value> = LADDER
        .iter()
        .map(|rung| {
            json!({
                "name": rung.name, "percent": rung.percent, "ios_needed": rung.ios_needed,
                "stands": rung.stands(&latency),
                "read_ns": percentile(Some(&result.read.latency), rung.percent),
                "write_ns": percentile(Some(&result.write.latency), rung.percent),
                "total_ns": percentile(Some(&latency), rung.percent),
                "response_ns": percentile(waited.as_ref(), rung.percent),
            })
        })
        .collect();
    let derived = json!({
        "iops": result.iops(),
        "mib_per_s": result.mib_per_s(),
        "outstanding_mean": result.outstanding(),
        "latency_ns_mean": latency.mean_ns(),
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

/// A plan on storage that is not there: `phases[].results[]` as of a run, and the model.
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

/// What a measured storage would give if it were changed.
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

/// What a matrix gave: a row for each point, with its runs.
pub fn matrix(summary: &matrix::Summary) -> Value {
    json!({
        "matrix": summary.id,
        "definition": summary.matrix,
        "left": summary.left,
        "points": summary.rows,
    })
}

/// Sweeps: their steps, what the curves say, and how the second compares with the first.
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

/// Rows committed in batches.
pub fn commits(study: &CommitStudy, version: &str) -> Value {
    let result = |result: &CommitResult| {
        json!({
            "engine": result.engine,
            "durability": result.durability,
            "batch": result.batch,
            "rows": result.rows,
            "commits": result.commits,
            "seconds": result.seconds,
            "rows_per_s": result.rows_per_s(),
            "commit_ns": result.commit_ns(),
            "log_writes": result.log.writes,
            "log_writes_per_commit": result.log_writes_per_commit(),
            "log_write_bytes": result.log.write_bytes,
            "log_write_bytes_mean": result.log.write_bytes_mean(),
            "log_syncs": result.log.syncs,
            "log_wait_ns": result.log.wait_ns,
            "data_writes": result.data.writes,
            "data_write_bytes": result.data.write_bytes,
            "data_syncs": result.data.syncs,
            "data_wait_ns": result.data.wait_ns,
            "syncs": result.syncs(),
            "wait_share": result.wait_share(),
        })
    };
    json!({
        "headroom_version": version,
        "dir": study.dir,
        "rows": study.rows,
        "results": study.results.iter().map(result).collect::<Vec<Value>>(),
        "sentences": study.sentences(),
        "notes": study.notes,
    })
}

/// Crashed engines opened again.
pub fn recoveries(study: &RecoverStudy, version: &str) -> Value {
    let result = |result: &RecoverResult| {
        json!({
            "engine": result.engine,
            "strategy": result.strategy,
            "opened_ms": result.opened_s * 1e3,
            "first_read_ms": result.first_read_s * 1e3,
            "first_write_ms": result.first_write_s * 1e3,
            "full_recovery_s": result.full_s,
            "pages": result.pages,
            "page_bytes": result.page_bytes,
            "pages_left_at_first_read": result.pages_left,
            "pages_per_s": result.pages_per_s(),
            "mib_per_s": result.mib_per_s(),
            "log_bytes": result.log_bytes,
            "commits": result.commits,
            "pages_compared": result.checked,
            "ios": result.io.ios(),
            "reads": result.io.reads,
            "read_bytes": result.io.read_bytes,
            "writes": result.io.writes,
            "write_bytes": result.io.write_bytes,
            "syncs": result.io.syncs,
            "stall_ns": result.io.stall_ns,
            "n": result.n(),
            "n_max": result.io.n_max,
            "counted_by": result.counted_by,
        })
    };
    json!({
        "headroom_version": version,
        "dir": study.dir,
        "emulated": study.emulated,
        "pages": study.pages,
        "data_pages": study.data_pages,
        "log_bytes": study.log_bytes,
        "results": study.results.iter().map(result).collect::<Vec<Value>>(),
        "left_out": study.left_out,
        "sentences": study.sentences(),
        "notes": study.all_notes(),
    })
}

/// What a query moves at each level: the value, the bytes of its pages, and the sentence.
pub fn footprint(footprint: &Footprint, version: &str) -> Value {
    let mut value = plain(footprint);
    let more = json!({
        "headroom_version": version,
        "touched_bytes": footprint.touched_bytes(),
        "read_bytes": footprint.read_bytes(),
        "sentence": footprint.sentence(),
    });
    add(&mut value, more);
    value
}

/// The value as it serialises; none of the types here can fail to.
fn plain(value: &impl Serialize) -> Value {
    serde_json::to_value(value).unwrap_or(Value::Null)
}

fn curve(curve: &Curve) -> Value {
    json!({
        "name": curve.workload.to_string(),
        "workload": curve.workload,
        "points": curve.points,
        "knee": curve.knee,
    })
}

fn cost_model(model: &CostModel) -> Value {
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
    json!({
        "read_random": model.read_random,
        "read_sequential": model.read_sequential,
        "write_random": model.write_random,
        "write_sequential": model.write_sequential,
        "sharing": model.sharing,
        "held_out": held_out,
        "error": model.error,
    })
}

fn file(file: &FileRow) -> Value {
    let identity = &file.row.file;
    json!({
        "instance": identity.instance,
        "database": identity.database,
        "path": identity.path,
        "kind": identity.kind,
        "drive": identity.drive,
        "elapsed_ns": file.figure(|delta| Figure::Known(delta.elapsed_ns)),
        "reads": file.figure(|delta| Figure::Known(delta.counters.read.count)),
        "read_bytes": file.figure(|delta| Figure::Known(delta.counters.read.bytes)),
        "read_latency_ns": file.figure(Delta::read_latency_ns),
        "writes": file.figure(|delta| Figure::Known(delta.counters.write.count)),
        "write_bytes": file.figure(|delta| Figure::Known(delta.counters.write.bytes)),
        "write_latency_ns": file.figure(Delta::write_latency_ns),
        "syncs": file.figure(|delta| delta.counters.sync.map(|sync| sync.count)),
        "sync_latency_ns": file.figure(Delta::sync_latency_ns),
        "average_bytes": file.average_bytes(),
        "iops": file.figure(|delta| Figure::Known(delta.iops())),
        "stall_ns": file.stall_ns(),
        "stall_share": file.stall_share,
        "outstanding": file.figure(Delta::outstanding),
        "band": file.grade.map(|grade| grade.band.name),
        "band_of": file.grade.map(|grade| grade.of),
    })
}

fn moment(moment: &Moment) -> Value {
    let database = moment.database();
    let unknown = || {
        moment.files.iter().find_map(|file| match file.interval {
            Interval::Unknown(reason) => Some(reason),
            Interval::Known(_) => None,
        })
    };
    let of = |delta: Option<&Delta>, reason: Reason, figure: fn(&Delta) -> Figure<f64>| {
        delta.map_or(Figure::unknown(reason), figure)
    };
    let files = |figure| of(database.as_ref(), unknown().unwrap_or(Reason::NotCounted), figure);
    let device_reason = moment.device.as_ref().map_or(Reason::NotCounted, |device| match device.interval {
        Interval::Unknown(reason) => reason,
        Interval::Known(_) => Reason::NotCounted,
    });
    let device = |figure| of(moment.device(), device_reason, figure);
    let commit_ns = Figures::of(std::slice::from_ref(moment), None).commit_ns();
    json!({
        "ended": moment.ended_unix_ns,
        "ended_time": number::rfc3339(moment.ended_unix_ns),
        "iops": files(|delta| Figure::Known(delta.iops())),
        "mib_per_s": files(|delta| Figure::Known(delta.mib_per_s())),
        "outstanding": files(Delta::outstanding),
        "read_latency_ns": files(Delta::read_latency_ns),
        "write_latency_ns": files(Delta::write_latency_ns),
        "sync_latency_ns": files(Delta::sync_latency_ns),
        "commit_latency_ns": commit_ns,
        "device_iops": device(|delta| Figure::Known(delta.iops())),
        "device_mib_per_s": device(|delta| Figure::Known(delta.mib_per_s())),
        "device_outstanding": device(Delta::outstanding),
        "device_read_latency_ns": device(Delta::read_latency_ns),
        "device_write_latency_ns": device(Delta::write_latency_ns),
    })
}
