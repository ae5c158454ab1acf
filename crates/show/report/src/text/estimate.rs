//! Simulated results, always with the error of the model beside them.

use super::phases;
use super::style::{Ink, Style};
use super::table::{Cell, Table};
use super::wrap::{clean, wrap};
use crate::estimate::{advice_note, error_note, remedy_rows};
use crate::wording::capability::{and_limit, operating_limit};
use crate::{Check, Estimate, Simulation, number, simulated_note};
use capability::Curve;
use simulate::Prediction;

/// Remedies on a screen.
const REMEDIES_MAX: usize = 6;

/// A simulated plan, in the form of a run.
pub fn simulation(simulation: &Simulation, style: &Style) -> String {
    let note = wrap(&simulated_note(simulation.fit.as_ref()), style.columns(), 3).join("\n");
    let text = phases(&simulation.phases, |_| Vec::new(), style);
    format!("{}\n\n{text}", style.paint(Ink::Dim, &note))
}

/// The curves of the model of a measured storage, now and if it were changed.
pub fn estimate(estimate: &Estimate, style: &Style) -> String {
    let title = match &estimate.changes {
        Some(changes) => format!("Estimate for {}, if {}", clean(&estimate.of), clean(changes)),
        None => format!("Model of {}", clean(&estimate.of)),
    };
    let mut lines = vec![style.heading(&title)];
    lines.extend(wrap(&format!("By simulation; {}.", error_note(&estimate.fit)), style.columns(), 3));
    for missing in &estimate.fit.not_covered {
        lines.extend(wrap(&format!("Not covered: {missing}."), style.columns(), 2));
    }
    for prediction in &estimate.predictions {
        lines.push(String::new());
        lines.extend(prediction_lines(prediction, estimate, style));
    }
    let rows = estimate.predictions.iter().find_map(|prediction| prediction.rows_per_s);
    if let Some((before, after)) = rows {
        let changed = if after == before { String::new() } else { format!(", then {}", number::rate(after)) };
        lines.push(String::new());
        lines.push(format!("Rows that one writer commits a second: {}{changed}", number::rate(before)));
    }
    lines.join("\n") + "\n"
}

fn prediction_lines(prediction: &Prediction, estimate: &Estimate, style: &Style) -> Vec<String> {
    let changed = estimate.changes.is_some();
    let mut lines = vec![style.heading(&prediction.before.workload.to_string())];
    let points = prediction.before.points.iter().zip(&prediction.after.points);
    let then = |text: String| if changed { text } else { String::new() };
    let table = Table::from_items(points)
        .right("N", |(before, _)| before.outstanding.to_string())
        .right("IOPS", |(before, _)| number::rate(before.iops))
        .right("mean", |(before, _)| number::time(before.latency_ns))
        .right(if changed { "then IOPS" } else { "" }, |(_, after)| then(number::rate(after.iops)))
        .right(if changed { "then mean" } else { "" }, |(_, after)| then(number::time(after.latency_ns)));
    lines.extend(table.lines(style));
    let knee = |curve: &Curve| {
        curve.knee.as_ref().map_or("no knee".to_owned(), |knee| {
            format!(
                "knee at {} outstanding, {} IOPS",
                number::rate(knee.outstanding),
                number::rate(knee.iops)
            )
        })
    };
    let limit = and_limit(operating_limit(&prediction.before, estimate.cost_model.as_ref()));
    lines.push(format!("  now:  {}{limit}", knee(&prediction.before)));
    if changed {
        lines.push(format!("  then: {}", knee(&prediction.after)));
    }
    let (now, then) = prediction.headroom;
    let demand = number::rate(prediction.demand_iops);
    let clients = prediction.outstanding.0;
    lines.push(format!("  headroom at {clients} outstanding ({demand} IOPS): {now:.2} x now"));
    if changed {
        lines.push(format!("  headroom at {} outstanding then: {then:.2} x", prediction.outstanding.1));
    }
    lines
}

/// How far each remedy would carry, in at most `room` lines, but always the unchanged storage and the first remedy.
pub(super) fn advice(check: &Check, room: usize, style: &Style) -> Vec<String> {
    let Some(advice) = &check.advice else { return Vec::new() };
    // A heading and the note take two lines.
    let most = room.saturating_sub(2).clamp(2, REMEDIES_MAX);
    let table = Table::from_items(remedy_rows(check).into_iter().take(most))
        .left("", |remedy| remedy.what.clone())
        .right("", |remedy| Cell::inked(remedy.carries.as_str(), Ink::Bold))
        .left("", |remedy| Cell::inked(remedy.latency.as_str(), Ink::Dim))
        .left("", |remedy| Cell::inked(if remedy.enough { "enough, with room" } else { "" }, Ink::Dim));
    let mut lines = vec![style.heading("Remedies, and how many times today's demand each would carry")];
    lines.extend(table.lines(style));
    lines.push(style.paint(Ink::Dim, &format!("  {}", advice_note(advice))));
    lines
}
