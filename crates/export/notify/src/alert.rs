//! Alerts of Alertmanager's API v2: `POST /api/v2/alerts` with a list of them. An alert is known by its labels.

use crate::Notification;
use incidents::Incident;
use jiff::Timestamp;
use serde_json::{Value, json};

/// Time after which an open alert ends where it is not sent again: five times the interval at which it is repeated.
pub const EXPIRES_NS: u64 = 300 * 1_000_000_000;

/// The labels by which Alertmanager knows the alert. No sentence and no path is among them.
pub fn labels(notification: &Notification) -> Value {
    let incident = &notification.incident;
    let mut labels = json!({
        "alertname": "HeadroomIncident",
        "severity": "warning",
        "verdict": incident.verdict,
        "instance": notification.instance,
        "mount": incident.subject.mount,
        "source": incident.subject.database,
        "incident": notification.id.to_string(),
    });
    for (name, value) in &notification.labels {
        // The alert's own count more.
        if labels.get(name).is_none() {
            labels[name] = Value::from(value.as_str());
        }
    }
    labels
}

/// The alert. One that is open ends later than now.
pub fn alert(notification: &Notification, now_unix_ns: u64) -> Value {
    let incident = &notification.incident;
    let worst = incident.worst();
    json!({
        "labels": labels(notification),
        "annotations": {
            "summary": format!("{}: {}", incident.verdict, incident.subject),
            "description": worst.map_or("", |worst| &worst.summary),
            "next_step": worst.map_or("", |worst| &worst.next_step),
        },
        "startsAt": rfc3339(started(incident)),
        "endsAt": rfc3339(incident.ended_unix_ns.map_or(now_unix_ns.saturating_add(EXPIRES_NS), |_| now_unix_ns)),
    })
}

/// An alert with other labels, which this one replaces, ends now.
pub fn replaced(labels: &Value, notification: &Notification, now_unix_ns: u64) -> Value {
    let starts = rfc3339(started(&notification.incident));
    json!({ "labels": labels, "startsAt": starts, "endsAt": rfc3339(now_unix_ns) })
}

/// When it last began.
fn started(incident: &Incident) -> u64 {
    incident.recurrence.starts_unix_ns.last().copied().unwrap_or(incident.started_unix_ns)
}

fn rfc3339(unix_ns: u64) -> String {
    Timestamp::from_nanosecond(i128::from(unix_ns)).unwrap_or_default().to_string()
}
