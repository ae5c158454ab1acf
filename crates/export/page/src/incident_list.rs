//! `/api/v1/incidents`: as `headroom history incidents --json` prints them.

use crate::answer::Refused;
use history::{History, IncidentId};
use report::NumberedIncident;
use serde_json::Value;

/// Incidents that are listed, the newest.
const LISTED_MAX: usize = 100;

/// The newest incidents.
pub(crate) fn list(history: &History) -> Result<Value, Refused> {
    let found = history.incidents(LISTED_MAX)?.into_iter();
    let found: Vec<NumberedIncident> =
        found.map(|(id, incident)| NumberedIncident { id: id.0, incident }).collect();
    Ok(report::json::incidents(&found))
}

/// One of them.
pub(crate) fn one(history: &History, id: i64) -> Result<Value, Refused> {
    let incident = history.incident(IncidentId(id))?.ok_or_else(|| {
        Refused::not_found(format!("there is no incident {id}"), "/api/v1/incidents lists those there are")
    })?;
    Ok(report::json::incident(&NumberedIncident { id, incident }))
}
