//! `/api/v1/incidents`: as `headroom incidents --json` prints them.

use crate::answer::Refused;
use history::{History, IncidentId};
use report::NumberedIncident;
use serde_json::{Value, json};

/// Incidents that are listed, the newest.
const LISTED_MAX: usize = 100;

/// The newest incidents.
pub(crate) fn list(history: Option<&History>) -> Result<Value, Refused> {
    let Some(history) = history else { return Ok(json!({ "incidents": [] })) };
    let found = history.incidents(LISTED_MAX)?.into_iter();
    let found: Vec<NumberedIncident> =
        found.map(|(id, incident)| NumberedIncident { id: id.0, incident }).collect();
    Ok(report::json::incidents(&found))
}

/// One of them.
pub(crate) fn one(history: Option<&History>, id: &str) -> Result<Value, Refused> {
    let remedy = "/api/v1/incidents lists those there are";
    let number: i64 =
        id.parse().map_err(|_| Refused::wrong(format!("no number of an incident: {id}"), remedy))?;
    let found = history.map(|history| history.incident(IncidentId(number))).transpose()?.flatten();
    let incident =
        found.ok_or_else(|| Refused::not_found(format!("there is no incident {number}"), remedy))?;
    Ok(report::json::incident(&NumberedIncident { id: number, incident }))
}
