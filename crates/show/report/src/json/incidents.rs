//! Incidents, the newest first.

use super::check::evidence;
use crate::{NumberedIncident, number};
use incidents::{Detail, Held};
use serde_json::{Value, json};

/// A list of incidents.
pub fn incidents(incidents: &[NumberedIncident]) -> Value {
    json!({ "incidents": incidents.iter().map(incident).collect::<Vec<_>>() })
}

/// What is kept of one: also what a webhook receives.
pub fn incident(numbered: &NumberedIncident) -> Value {
    let NumberedIncident { id, incident } = numbered;
    let worst = incident.worst();
    json!({
        "id": id,
        "verdict": incident.verdict,
        "mount": incident.subject.mount,
        "database": incident.subject.database,
        "also": incident.also,
        "started_unix_ns": incident.started_unix_ns,
        "started_time": number::rfc3339(incident.started_unix_ns),
        "opened_unix_ns": incident.opened_unix_ns,
        "ended_unix_ns": incident.ended_unix_ns,
        "ended_time": incident.ended_unix_ns.and_then(number::rfc3339),
        "ending": incident.ending,
        "held_ns": incident.held_ns(),
        "utilisation_max": incident.utilisation_max,
        "utilisation_mean": incident.utilisation_mean,
        "occurrences": incident.recurrence.repeated.saturating_add(1),
        "period_ns": incident.recurrence.period_ns(),
        "kinds": incident.held.iter().map(kind).collect::<Vec<_>>(),
        "cause": worst.and_then(|worst| worst.cause),
        "summary": worst.map(|worst| &worst.summary),
        "next_step": worst.map(|worst| &worst.next_step),
        "worst": worst.map(detail),
    })
}

fn kind(held: &Held) -> Value {
    json!({ "verdict": held.verdict, "held_ns": held.held_ns, "summary": held.worst.summary })
}

fn detail(worst: &Detail) -> Value {
    let readings = &worst.readings;
    json!({
        "at_unix_ns": worst.at_unix_ns,
        "at_time": number::rfc3339(worst.at_unix_ns),
        "confidence": worst.confidence,
        "utilisation": readings.utilisation,
        "outstanding": readings.outstanding,
        "latency_ns": readings.latency_ns,
        "expected_ns": readings.expected_ns,
        "evidence": worst.evidence.iter().map(evidence).collect::<Vec<_>>(),
        "files": worst.files,
        "processes": worst.processes,
        "waits": worst.waits,
    })
}
