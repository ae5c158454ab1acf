use crate::number;
use incidents::{Ending, Incident};

/// An incident with its number in the history.
#[derive(Clone, Debug, PartialEq)]
pub struct NumberedIncident {
    /// Its number.
    pub id: i64,
    /// The incident.
    pub incident: Incident,
}

/// How long it lasted, and how it ended.
pub(crate) fn lasted(incident: &Incident) -> String {
    let ns = |until: u64| until.saturating_sub(incident.started_unix_ns) as f64 / 1e9;
    match (incident.ended_unix_ns, incident.ending) {
        (None, _) => format!("open, {} so far", number::duration(ns(incident.last_bad_unix_ns))),
        (Some(ended), None | Some(Ending::Recovered)) => number::duration(ns(ended)),
        (Some(ended), Some(Ending::NothingKnown)) => {
            format!("{}, then nothing was known", number::duration(ns(ended)))
        }
        (Some(ended), Some(Ending::NotWatched)) => {
            format!("{}, then it was not watched", number::duration(ns(ended)))
        }
    }
}

pub(crate) fn utilisation(value: Option<f64>) -> String {
    value.map_or_else(|| number::NONE.into(), number::share)
}

/// "throttled for 2 min, burst for 5 s".
pub(crate) fn kinds(incident: &Incident) -> String {
    let kinds = incident.held.iter();
    let kinds: Vec<String> = kinds
        .map(|held| format!("{} for {}", held.verdict, number::duration(held.held_ns as f64 / 1e9)))
        .collect();
    kinds.join(", ")
}

pub(crate) fn recurrence(incident: &Incident) -> Option<String> {
    let recurrence = &incident.recurrence;
    let times = recurrence.repeated.saturating_add(1);
    let every = recurrence.period_ns().map(|ns| format!(", every {}", number::duration(ns as f64 / 1e9)));
    (times > 1).then(|| format!("{times} times{}", every.unwrap_or_default()))
}
