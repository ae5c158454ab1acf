//! A verdict: its evidence, the files, the moments over time.

mod files;
mod moments;

use super::capability::{CostModelOutput, CurveOutput, cost_model, curve};
use super::plain::plain;
use crate::files::worst_first;
use crate::volumes::{VolumeRow, volumes};
use crate::{Check, FirstAnswer, Phase, number};
use capability::{Binding, Conditions, Origin};
use files::FileOutput;
use filestats::{FileKind, ServiceLevel};
use moments::MomentOutput;
use serde::Serialize;
use serde_json::Value;
use simulate::Advice;
use std::collections::BTreeSet;
use verdict::{Cause, Confidence, Evidence, LogTiming, Neighbour, Place, VerdictKind};
use workload::{Cap, TargetFacts, Unit};

/// Output of `headroom check --json`.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Check"))]
pub(super) struct Output<'a> {
    /// Version of Headroom that judged.
    headroom_version: &'a str,
    /// Where the demand comes from, `sqlite:/data/sales.db`.
    source: &'a str,
    /// The subject of the verdict.
    target_path: &'a str,
    /// The verdict.
    verdict: VerdictKind,
    /// How far to trust it: each caveat takes one step off.
    confidence: Confidence,
    /// True: the answer rests on a measurement of which only the points that decide are known.
    preliminary: bool,
    /// The first, preliminary answer; null where the storage was not measured meanwhile.
    first_answer: Option<&'a FirstAnswer>,
    /// The cause; null where it is neither.
    cause: Option<Cause>,
    /// The verdict in one sentence.
    summary: &'a str,
    /// Caveats: facts that contradict the verdict, sentences.
    doubts: &'a [String],
    /// Share of the storage in use, 1 = all; null where not known.
    utilisation: Option<f64>,
    /// The multiple of this work that can be carried, the figure to plan with; null where not known or the verdict is
    /// `cannot-say`.
    headroom: Option<f64>,
    /// Low end of its range.
    headroom_low: Option<f64>,
    /// High end; null where the storage was not measured and may give more: `headroom` is then a lower bound.
    headroom_high: Option<f64>,
    /// Reason for the range, the limit where it is not the storage, or the meaning of the figure where the storage is
    /// saturated; null otherwise.
    headroom_reason: Option<&'a str>,
    /// The volume whose headroom it is, where that is another than `target_path`; null otherwise.
    headroom_volume: Option<&'a str>,
    /// The resource that runs out first.
    binding: Option<Binding>,
    /// Where the demand lies on which curve; null where it cannot be placed.
    place: Option<&'a Place>,
    /// The numbers that prove it.
    evidence: Vec<EvidenceOutput<'a>>,
    /// The recommended action.
    next_step: &'a str,
    /// Promised mean latencies.
    service_level: ServiceLevel,
    /// Name of the scale of bands.
    profile: &'static str,
    /// How far remedies would carry, by simulation; null where the demand does not exceed the capability.
    advice: Option<&'a Advice>,
    /// Named stretches of the observation.
    phases: &'a [Phase],
    /// The volumes that the database's files lie on; the one that binds comes first, and the keys above are about it.
    volumes: Vec<VolumeOutput<'a>>,
    /// The database's files; the one most waited for comes first.
    files: Vec<FileOutput>,
    /// The observation over time.
    moments: Vec<MomentOutput>,
    /// Throttles in force now.
    caps: &'a [Cap],
    /// Origin of the times of the writes and syncs of the database's log.
    log_timing: LogTimingOutput<'a>,
    /// Other programs of this host that used the same storage.
    neighbours: &'a [Neighbour],
    /// The curves of the storage; empty where it was never measured.
    curves: Vec<CurveOutput<'a>>,
    /// Cost of an I/O; null where not known.
    cost_model: Option<CostModelOutput<'a>>,
    /// The storage; null where it was never measured.
    target: Option<&'a TargetFacts>,
    /// Under which conditions it was measured; null where it was never.
    conditions: Option<&'a Conditions>,
    /// When it was measured, RFC 3339; null for never.
    measured_at: Option<String>,
    /// Origin of the capability; null where nothing is known.
    capability_from: Option<Origin>,
}

/// One number that supports a verdict.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Evidence"))]
pub(super) struct EvidenceOutput<'a> {
    /// Name of the number.
    what: &'a str,
    /// The number.
    value: f64,
    /// Its unit.
    unit: &'a Unit,
    /// Where it comes from.
    source: &'a str,
    /// Until when it was observed or when it was measured, nanoseconds since 1970.
    at: u64,
    /// `at` as RFC 3339; null for never.
    at_time: Option<String>,
    /// The number it is compared with, in the same unit; null where nothing is expected of it.
    expected: Option<f64>,
    /// Where that comes from; null without.
    expected_source: Option<&'a str>,
    /// Observed over expected; null without.
    ratio: Option<f64>,
}

/// The verdict on one volume alone.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "CheckedVolume"))]
struct VolumeOutput<'a> {
    /// A directory on the volume, or its mount point.
    target_path: &'a str,
    /// Uses of the files on it, as `files[].kind`.
    roles: BTreeSet<FileKind>,
    /// Its part of the time that sessions wait for all volumes, 0 to 1; null where none waits.
    share_waited: Option<f64>,
    /// The verdict on this volume.
    verdict: VerdictKind,
    /// How far to trust it.
    confidence: Confidence,
    /// The verdict in one sentence.
    summary: &'a str,
    /// Its caveats.
    doubts: &'a [String],
    /// Share of this volume in use, 1 = all; null where not known.
    utilisation: Option<f64>,
    /// Headroom of this volume; null where not known.
    headroom: Option<f64>,
    /// Low end of its range.
    headroom_low: Option<f64>,
    /// High end of its range.
    headroom_high: Option<f64>,
    /// Why it is a range; null otherwise.
    headroom_reason: Option<&'a str>,
    /// Its resource that runs out first.
    binding: Option<Binding>,
    /// The recommended action for this volume.
    next_step: &'a str,
    /// When it was measured, RFC 3339; null for never.
    measured_at: Option<String>,
    /// Origin of its capability.
    capability_from: Option<Origin>,
}

/// Origin of the times of the writes and syncs of a database's log.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "LogTiming"))]
struct LogTimingOutput<'a> {
    /// `database`, `kernel` (its processes were watched) or `untimed`.
    by: &'static str,
    /// Why the processes were not watched, with what would allow it; null unless it is `untimed`.
    why: Option<&'a str>,
}

/// One number that supports a verdict.
pub(super) fn evidence(fact: &Evidence) -> EvidenceOutput<'_> {
    EvidenceOutput {
        what: &fact.what,
        value: fact.value,
        unit: &fact.unit,
        source: &fact.source,
        at: fact.at,
        at_time: number::rfc3339(fact.at),
        expected: fact.expected.as_ref().map(|expected| expected.value),
        expected_source: fact.expected.as_ref().map(|expected| expected.source.as_str()),
        ratio: fact.ratio(),
    }
}

/// A verdict with its evidence, the files, the curves and the moments.
pub fn check(check: &Check) -> Value {
    let verdict = &check.verdict;
    let capability = check.capability.as_ref();
    plain(&Output {
        headroom_version: &check.version,
        source: &check.source,
        target_path: &check.target,
        verdict: verdict.verdict,
        confidence: verdict.confidence,
        preliminary: check.is_preliminary(),
        first_answer: check.first_answer.as_ref(),
        cause: verdict.cause,
        summary: &verdict.summary,
        doubts: &verdict.doubts,
        utilisation: verdict.utilisation,
        headroom: verdict.headroom,
        headroom_low: verdict.headroom_low,
        headroom_high: verdict.headroom_high,
        headroom_reason: verdict.headroom_reason.as_deref(),
        headroom_volume: check.headroom_on.as_deref(),
        binding: verdict.binding,
        place: verdict.place.as_ref(),
        evidence: verdict.evidence.iter().map(evidence).collect(),
        next_step: &verdict.next_step,
        service_level: check.service_level,
        profile: check.profile.name,
        advice: check.advice.as_ref(),
        phases: &check.phases,
        volumes: volumes(check).iter().map(volume).collect(),
        files: worst_first(check).into_iter().map(FileOutput::from).collect(),
        moments: check.observation.moments.iter().map(MomentOutput::from).collect(),
        caps: &check.observation.caps,
        log_timing: log_timing(&check.observation.log_timing),
        neighbours: &check.observation.neighbours,
        curves: capability.iter().flat_map(|capability| &capability.curves).map(curve).collect(),
        cost_model: capability.and_then(|capability| capability.cost_model.as_ref()).map(cost_model),
        target: capability.map(|capability| &capability.target),
        conditions: capability.map(|capability| &capability.conditions),
        measured_at: measured_at(check),
        capability_from: capability_from(check),
    })
}

fn measured_at(check: &Check) -> Option<String> {
    check.capability.as_ref().and_then(|capability| number::rfc3339(capability.measured_unix_ns))
}

/// Origin of the capability; `None` where nothing is known that the verdict rests on.
fn capability_from(check: &Check) -> Option<Origin> {
    let seen = check.own_verdict().headroom.map(|_| Origin::Seen);
    check.capability.as_ref().map(|capability| capability.origin).or(seen)
}

fn volume<'a>(row: &VolumeRow<'a>) -> VolumeOutput<'a> {
    let (check, verdict) = (row.check, row.verdict);
    VolumeOutput {
        target_path: &check.target,
        roles: check.observation.roles(),
        share_waited: row.share_waited,
        verdict: verdict.verdict,
        confidence: verdict.confidence,
        summary: &verdict.summary,
        doubts: &verdict.doubts,
        utilisation: verdict.utilisation,
        headroom: verdict.headroom,
        headroom_low: verdict.headroom_low,
        headroom_high: verdict.headroom_high,
        headroom_reason: verdict.headroom_reason.as_deref(),
        binding: verdict.binding,
        next_step: &verdict.next_step,
        measured_at: measured_at(check),
        capability_from: capability_from(check),
    }
}

fn log_timing(timing: &LogTiming) -> LogTimingOutput<'_> {
    match timing {
        LogTiming::Database => LogTimingOutput { by: "database", why: None },
        LogTiming::Kernel => LogTimingOutput { by: "kernel", why: None },
        LogTiming::Untimed { why } => LogTimingOutput { by: "untimed", why: Some(why) },
    }
}
