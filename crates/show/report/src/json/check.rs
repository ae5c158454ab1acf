//! A verdict: its evidence, the files, the course.

use super::capability::{cost_model, curve};
use super::plain;
use crate::files::{FileRow, worst_first};
use crate::volumes::{VolumeRow, volumes};
use crate::{Check, number};
use capability::Origin;
use filestats::{Delta, Figure, Reason};
use serde_json::{Value, json};
use verdict::{CapUse, Evidence, Figures, LogTiming, Moment};

/// One number that supports a verdict.
pub(super) fn evidence(fact: &Evidence) -> Value {
    let (at, at_time) = (fact.at, number::rfc3339(fact.at));
    json!({
        "what": fact.what, "value": fact.value, "unit": fact.unit, "source": fact.source,
        "at": at, "at_time": at_time,
    })
}

/// A verdict with its evidence, the files, the curves and the course.
pub fn check(check: &Check) -> Value {
    let verdict = &check.verdict;
    let evidence: Vec<Value> = verdict.evidence.iter().map(evidence).collect();
    let moments: Vec<Value> = check.observation.moments.iter().map(moment).collect();
    let target = check.capability.as_ref().map(|capability| plain(&capability.target));
    json!({
        "headroom_version": check.version,
        "source": check.source,
        "target_path": check.target,
        "verdict": verdict.verdict,
        "confidence": verdict.confidence,
        "preliminary": check.is_preliminary(),
        "first_answer": check.first_answer,
        "cause": verdict.cause,
        "summary": verdict.summary,
        "doubts": verdict.doubts,
        "utilisation": verdict.utilisation,
        "headroom": verdict.headroom,
        "headroom_low": verdict.headroom_low,
        "headroom_high": verdict.headroom_high,
        "headroom_reason": verdict.headroom_reason,
        "headroom_volume": check.headroom_on,
        "binding": verdict.binding,
        "place": verdict.place,
        "evidence": evidence,
        "next_step": verdict.next_step,
        "service_level": check.service_level,
        "profile": check.profile.name,
        "advice": check.advice,
        "phases": check.phases,
        "volumes": volumes(check).iter().map(volume).collect::<Vec<_>>(),
        "files": worst_first(check).iter().map(file).collect::<Vec<Value>>(),
        "moments": moments,
        "caps": check.observation.caps,
        "log_timing": log_timing(&check.observation.log_timing),
        "neighbours": check.observation.neighbours,
        "curves": check.capability.iter().flat_map(|capability| &capability.curves).map(curve).collect::<Vec<_>>(),
        "cost_model": check.capability.as_ref().and_then(|capability| capability.cost_model.as_ref()).map(cost_model),
        "target": target,
        "conditions": check.capability.as_ref().map(|capability| plain(&capability.conditions)),
        "measured_at": check.capability.as_ref().and_then(|capability| number::rfc3339(capability.measured_unix_ns)),
        "capability_from": capability_from(check),
    })
}

/// Where what is known of the storage comes from; `None` where nothing is known that the verdict rests on.
fn capability_from(check: &Check) -> Option<Origin> {
    let seen = check.own_verdict().headroom.map(|_| Origin::Seen);
    check.capability.as_ref().map(|capability| capability.origin).or(seen)
}

/// The verdict on one volume alone.
fn volume(row: &VolumeRow) -> Value {
    let (check, verdict) = (row.check, row.verdict);
    json!({
        "target_path": check.target,
        "roles": check.observation.roles(),
        "share_waited": row.share_waited,
        "verdict": verdict.verdict,
        "confidence": verdict.confidence,
        "summary": verdict.summary,
        "doubts": verdict.doubts,
        "utilisation": verdict.utilisation,
        "headroom": verdict.headroom,
        "headroom_low": verdict.headroom_low,
        "headroom_high": verdict.headroom_high,
        "headroom_reason": verdict.headroom_reason,
        "binding": verdict.binding,
        "next_step": verdict.next_step,
        "measured_at": check.capability.as_ref().and_then(|capability| number::rfc3339(capability.measured_unix_ns)),
        "capability_from": capability_from(check),
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

fn log_timing(timing: &LogTiming) -> Value {
    let (by, why) = match timing {
        LogTiming::Database => ("database", None),
        LogTiming::Kernel => ("kernel", None),
        LogTiming::Untimed { why } => ("untimed", Some(why)),
    };
    json!({ "by": by, "why": why })
}

fn cap_use(used: &CapUse) -> Value {
    json!({ "kind": used.cap.kind, "origin": used.cap.origin, "per_second": used.per_second() })
}

fn moment(moment: &Moment) -> Value {
    let database = moment.database();
    let unknown = moment.files.iter().find_map(|file| file.interval.reason()).unwrap_or(Reason::NotCounted);
    let of = |delta: Option<&Delta>, reason: Reason, figure: fn(&Delta) -> Figure<f64>| {
        delta.map_or(Figure::unknown(reason), figure)
    };
    let files = |figure| of(database.as_ref(), unknown, figure);
    let device_unknown =
        moment.device.as_ref().and_then(|device| device.interval.reason()).unwrap_or(Reason::NotCounted);
    let device = |figure| of(moment.device(), device_unknown, figure);
    let commit_ns = Figures::from_moments(std::slice::from_ref(moment), None).commit_ns();
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
        "stalled": moment.pressure.share(moment.pressure.host_ns),
        "group_stalled": moment.pressure.share(moment.pressure.group_ns),
        "busiest_device": moment.pressure.share(moment.pressure.device_ns),
        "caps": moment.caps.iter().map(cap_use).collect::<Vec<Value>>(),
    })
}
