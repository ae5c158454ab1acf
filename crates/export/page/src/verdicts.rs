//! `/api/v1/verdicts`: the verdicts, each with its begin and end.

use crate::answer::Refused;
use crate::series::{APART_MAX_NS, judged_minutes};
use history::History;
use incidents::Subject;
use serde_json::{Value, json};
use timeline::{Gap, Span, Stretch, joined, stretches};
use verdict::VerdictKind;

const MINUTE_NS: u64 = 60_000_000_000;
/// Incidents that are linked, the newest.
const INCIDENTS_MAX: usize = 1_000;

/// The document. `watched` are the watched spans in memory, beside the minutes of the history.
pub(crate) fn verdicts(
    subject: &Subject,
    watched: &[Span],
    gaps: &[Gap],
    history: &History,
    span: Span,
) -> Result<Value, Refused> {
    let changes = history.verdict_changes(subject)?;
    let (from, until) = (span.from_ns / MINUTE_NS, span.to_ns.div_ceil(MINUTE_NS) + 1);
    let rows = judged_minutes(history, subject, (from, until))?;
    let minutes = rows.into_iter().map(|(minute, _)| {
        let to_ns = minute.saturating_mul(MINUTE_NS);
        Span { from_ns: to_ns.saturating_sub(MINUTE_NS), to_ns }
    });
    let watched = joined(minutes.chain(watched.iter().copied()).collect(), APART_MAX_NS);
    let incidents = history.incidents_between(span.from_ns, span.to_ns, INCIDENTS_MAX)?;
    let incident_of = |stretch: &Stretch<VerdictKind>| {
        let is_bad = stretch.kind.is_some_and(VerdictKind::needs_action);
        let of_it = incidents.iter().filter(|(_, incident)| {
            let ended_ns = incident.ended_unix_ns.unwrap_or(u64::MAX);
            incident.affects(subject)
                && incident.started_unix_ns < stretch.span.to_ns
                && stretch.span.from_ns <= ended_ns
        });
        of_it.map(|(id, _)| id.0).next().filter(|_| is_bad)
    };
    let one = |stretch: &Stretch<VerdictKind>| {
        let reason = match (stretch.watched, stretch.kind) {
            (_, Some(_)) => None,
            (false, None) => Some("no agent ran".to_owned()),
            (true, None) => {
                let gap = gaps.iter().find(|gap| gap.span.within(stretch.span).is_some());
                Some(gap.map_or("nothing was known of the source", |gap| gap.reason.as_str()).to_owned())
            }
        };
        json!({
            "from_unix_ns": stretch.span.from_ns,
            "to_unix_ns": stretch.span.to_ns,
            "verdict": stretch.kind,
            "incident": incident_of(stretch),
            "reason": reason,
        })
    };
    let found = stretches(&changes, &watched, span);
    Ok(json!({ "stretches": found.iter().map(one).collect::<Vec<_>>() }))
}
