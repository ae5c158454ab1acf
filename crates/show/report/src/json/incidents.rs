//! Incidents, the newest first.

use super::check::{EvidenceOutput, evidence};
use super::plain::plain;
use crate::{NumberedIncident, number};
use incidents::{BusyFile, BusyProcess, Detail, Ending, Held, LongWait};
use serde::Serialize;
use serde_json::Value;
use verdict::{Cause, Confidence, VerdictKind};

/// Output of `headroom history incidents --json`.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Incidents"))]
pub(super) struct Incidents<'a> {
    /// The newest first.
    incidents: Vec<IncidentOutput<'a>>,
}

/// An incident as it is kept; also as a webhook receives it.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Incident"))]
struct IncidentOutput<'a> {
    /// Its number.
    id: i64,
    /// The verdict that held for the longest time.
    verdict: VerdictKind,
    /// Where the volume is mounted.
    mount: &'a str,
    /// The database: its source, without credentials.
    database: &'a str,
    /// Further databases on the volume, or on another mount of its device, that it affects or affected.
    also: &'a [String],
    /// Further mounts of the volume's device that it affects or affected.
    also_mounts: &'a [String],
    /// When the bad verdict began, nanoseconds since 1970.
    started_unix_ns: u64,
    /// `started_unix_ns` as RFC 3339.
    started_time: Option<String>,
    /// When it had held for long enough, nanoseconds since 1970.
    opened_unix_ns: u64,
    /// When it last held, nanoseconds since 1970; null while the incident is open.
    ended_unix_ns: Option<u64>,
    /// `ended_unix_ns` as RFC 3339.
    ended_time: Option<String>,
    /// Why it was closed; null while it is open.
    ending: Option<Ending>,
    /// How long a bad verdict held, nanoseconds.
    held_ns: u64,
    /// Highest utilisation, 1 = all.
    utilisation_max: Option<f64>,
    /// Mean utilisation while a bad verdict held.
    utilisation_mean: Option<f64>,
    /// How often it occurred: a burst comes again.
    occurrences: u64,
    /// From one occurrence to the next, nanoseconds; null where they are not evenly apart.
    period_ns: Option<u64>,
    /// Each kind of verdict that held.
    kinds: Vec<HeldOutput<'a>>,
    /// The cause at the worst moment.
    cause: Option<Cause>,
    /// The worst moment in one sentence.
    summary: Option<&'a str>,
    /// The recommended action.
    next_step: Option<&'a str>,
    /// The worst moment.
    worst: Option<DetailOutput<'a>>,
}

/// A kind of verdict that held during an incident.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "HeldVerdict"))]
struct HeldOutput<'a> {
    /// The verdict.
    verdict: VerdictKind,
    /// How long it held, nanoseconds.
    held_ns: u64,
    /// Its worst moment in one sentence.
    summary: &'a str,
}

/// The worst moment of an incident.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "WorstMoment"))]
struct DetailOutput<'a> {
    /// When, nanoseconds since 1970.
    at_unix_ns: u64,
    /// `at_unix_ns` as RFC 3339.
    at_time: Option<String>,
    /// How far to trust the verdict.
    confidence: Confidence,
    /// Share of the storage in use, 1 = all.
    utilisation: Option<f64>,
    /// Mean I/Os that the database waited for.
    outstanding: Option<f64>,
    /// Mean latency of the operations that sessions waited for longest, nanoseconds.
    latency_ns: Option<f64>,
    /// Latency that the curves expect there, nanoseconds.
    expected_ns: Option<f64>,
    /// The numbers that prove it.
    evidence: Vec<EvidenceOutput<'a>>,
    /// The files with the longest I/O time.
    files: &'a [BusyFile],
    /// The programs that did most of the device's I/O beside the database.
    processes: &'a [BusyProcess],
    /// The longest waits of sessions.
    waits: &'a [LongWait],
}

/// A list of incidents.
pub fn incidents(incidents: &[NumberedIncident]) -> Value {
    plain(&Incidents { incidents: incidents.iter().map(incident_output).collect() })
}

/// An incident as it is kept: also as a webhook receives it.
pub fn incident(numbered: &NumberedIncident) -> Value {
    plain(&incident_output(numbered))
}

fn incident_output(numbered: &NumberedIncident) -> IncidentOutput<'_> {
    let NumberedIncident { id, incident } = numbered;
    let worst = incident.worst();
    IncidentOutput {
        id: *id,
        verdict: incident.verdict,
        mount: &incident.subject.mount,
        database: &incident.subject.database,
        also: &incident.also,
        also_mounts: &incident.also_mounts,
        started_unix_ns: incident.started_unix_ns,
        started_time: number::rfc3339(incident.started_unix_ns),
        opened_unix_ns: incident.opened_unix_ns,
        ended_unix_ns: incident.ended_unix_ns,
        ended_time: incident.ended_unix_ns.and_then(number::rfc3339),
        ending: incident.ending,
        held_ns: incident.held_ns(),
        utilisation_max: incident.utilisation_max,
        utilisation_mean: incident.utilisation_mean,
        occurrences: incident.recurrence.repeated.saturating_add(1),
        period_ns: incident.recurrence.period_ns(),
        kinds: incident.held.iter().map(held).collect(),
        cause: worst.and_then(|worst| worst.cause),
        summary: worst.map(|worst| worst.summary.as_str()),
        next_step: worst.map(|worst| worst.next_step.as_str()),
        worst: worst.map(detail),
    }
}

fn held(held: &Held) -> HeldOutput<'_> {
    HeldOutput { verdict: held.verdict, held_ns: held.held_ns, summary: &held.worst.summary }
}

fn detail(worst: &Detail) -> DetailOutput<'_> {
    let readings = &worst.readings;
    DetailOutput {
        at_unix_ns: worst.at_unix_ns,
        at_time: number::rfc3339(worst.at_unix_ns),
        confidence: worst.confidence,
        utilisation: readings.utilisation,
        outstanding: readings.outstanding,
        latency_ns: readings.latency_ns,
        expected_ns: readings.expected_ns,
        evidence: worst.evidence.iter().map(evidence).collect(),
        files: &worst.files,
        processes: &worst.processes,
        waits: &worst.waits,
    }
}
