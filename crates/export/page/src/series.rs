//! `/api/v1/series`: figures over time, the newest from memory and older ones from the history.

use crate::Instant;
use crate::answer::{Refused, short};
use history::{History, MINUTES_MAX};
use incidents::{Mark, Readings, Subject};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use timeline::{Gap, Grid, Reading, Sample, Span, joined};

/// The part of a volume's series that is in memory.
pub(crate) struct Remembered {
    pub instants: Vec<Instant>,
    pub gaps: Vec<Gap>,
    pub marks: Vec<Mark>,
    /// Older values are in the history.
    pub begin_ns: u64,
}

const MINUTE_NS: u64 = 60_000_000_000;
/// Minutes further apart than this were not watched. An agent that is started again keeps its first row at the end of a minute.
pub(crate) const APART_MAX_NS: u64 = 2 * MINUTE_NS;
/// Minutes that one answer reads: more than a history keeps until its next retention.
const MINUTES_READ_MAX: usize = 2 * MINUTES_MAX;
/// Incidents that are drawn, the newest.
const INCIDENTS_MAX: usize = 1_000;

/// The document.
pub(crate) fn series(
    subject: &Subject,
    remembered: &Remembered,
    history: &History,
    grid: &Grid,
) -> Result<Value, Refused> {
    let old = Span { from_ns: grid.from_ns, to_ns: remembered.begin_ns.min(grid.span().to_ns) };
    let minutes = if old.len_ns() > 0 { minutes(history, subject, old)? } else { Vec::new() };
    let newest: Vec<Sample> = remembered.instants.iter().map(|instant| instant.sample).collect();
    let figures = Reading::FIGURES.iter().map(|(name, figure)| {
        let envelope = grid.envelope(minutes.iter().chain(&newest), |sample| figure(&sample.reading));
        let column = |values: &[Option<f64>]| values.iter().map(|value| short(*value)).collect::<Vec<_>>();
        let columns = json!({
            "min": column(&envelope.min), "mean": column(&envelope.mean), "max": column(&envelope.max),
        });
        ((*name).to_owned(), columns)
    });
    let series: Map<String, Value> = figures.collect();
    Ok(json!({
        "from_unix_ns": grid.from_ns,
        "to_unix_ns": grid.span().to_ns,
        "step_ns": grid.step_ns,
        "times_unix_s": grid.starts_ns().map(|ns| ns as f64 / 1e9).collect::<Vec<f64>>(),
        "series": series,
        "gaps": gaps(&minutes, remembered, old, grid.span()).iter().map(gap_json).collect::<Vec<_>>(),
        "marks": marks(subject, remembered, history, grid.span())?,
    }))
}

/// The figures of a subject from one minute to another. A stretch of any length has few: only another program's history has more.
pub(crate) fn judged_minutes(
    history: &History,
    subject: &Subject,
    stretch: (u64, u64),
) -> Result<Vec<(u64, Readings)>, Refused> {
    let rows = history.judged_minutes(subject, stretch, MINUTES_READ_MAX + 1)?;
    match rows.len() > MINUTES_READ_MAX {
        true => Err(Refused::wrong(
            format!("more than {MINUTES_READ_MAX} minutes are kept of this stretch"),
            "a shorter stretch of time",
        )),
        false => Ok(rows),
    }
}

/// A sample for each minute that the history keeps.
fn minutes(history: &History, subject: &Subject, span: Span) -> Result<Vec<Sample>, Refused> {
    let rows = judged_minutes(history, subject, (span.from_ns / MINUTE_NS, span.to_ns.div_ceil(MINUTE_NS)))?;
    let sample = |(minute, readings): (u64, Readings)| {
        let to_ns = minute.saturating_mul(MINUTE_NS);
        let all = Span { from_ns: to_ns.saturating_sub(MINUTE_NS), to_ns };
        let reading = Reading {
            utilisation: readings.utilisation,
            outstanding: readings.outstanding,
            latency_ns: readings.latency_ns,
            expected_latency_ns: readings.expected_ns,
            iops: readings.iops,
            read_bytes_per_second: readings.read_bytes_per_second,
            written_bytes_per_second: readings.written_bytes_per_second,
        };
        // The newest seconds are those of memory, exactly.
        Some(Sample { span: all.within(Span { from_ns: 0, to_ns: span.to_ns })?, reading })
    };
    Ok(rows.into_iter().filter_map(sample).collect())
}

/// Where nothing is known, and why.
fn gaps(minutes: &[Sample], remembered: &Remembered, old: Span, span: Span) -> Vec<Gap> {
    let mut gaps = Vec::new();
    let mut at = old.from_ns;
    let watched = joined(minutes.iter().map(|minute| minute.span).collect(), APART_MAX_NS);
    let reason = "nothing was kept: no agent ran, or its source gave nothing";
    let ends = watched.iter().copied().chain([Span { from_ns: old.to_ns, to_ns: old.to_ns }]);
    for part in ends {
        let hole = Span { from_ns: at, to_ns: part.from_ns };
        let is_end = part.from_ns == part.to_ns;
        // The first seconds of memory may belong to a minute without a row.
        if hole.len_ns() > if is_end { APART_MAX_NS } else { 0 } {
            gaps.push(Gap { span: hole, reason: reason.to_owned() });
        }
        at = at.max(part.to_ns);
    }
    gaps.extend(remembered.gaps.iter().cloned());
    gaps.retain_mut(|gap| gap.span.within(span).map(|part| gap.span = part).is_some());
    gaps
}

fn gap_json(gap: &Gap) -> Value {
    json!({ "from_unix_ns": gap.span.from_ns, "to_unix_ns": gap.span.to_ns, "reason": gap.reason })
}

fn marks(
    subject: &Subject,
    remembered: &Remembered,
    history: &History,
    span: Span,
) -> Result<Vec<Value>, Refused> {
    let is_within = |at: u64| span.from_ns <= at && at < span.to_ns;
    // The newest are in memory and, a moment later, in the history too.
    let mut set: BTreeSet<Mark> = history.marks(subject, span.from_ns, span.to_ns)?.into_iter().collect();
    set.extend(remembered.marks.iter().filter(|mark| is_within(mark.at_unix_ns)).cloned());
    let mut marks: Vec<(u64, Value)> = set.iter().map(|mark| (mark.at_unix_ns, mark_json(mark))).collect();
    for (id, incident) in history.incidents_between(span.from_ns, span.to_ns, INCIDENTS_MAX)? {
        if incident.affects(subject) && is_within(incident.started_unix_ns) {
            let at = incident.started_unix_ns;
            let text =
                incident.worst().map_or_else(|| incident.verdict.to_string(), |worst| worst.summary.clone());
            marks.push((at, json!({ "unix_ns": at, "kind": "incident", "text": text, "incident": id })));
        }
    }
    marks.sort_by_key(|(at, _)| *at);
    Ok(marks.into_iter().map(|(_, mark)| mark).collect())
}

fn mark_json(mark: &Mark) -> Value {
    json!({ "unix_ns": mark.at_unix_ns, "kind": mark.kind, "text": mark.text, "incident": null })
}
