//! Incidents: a line each, and one of them whole.

use super::style::{Ink, Style};
use super::table::{Cell, Table};
use super::wrap::{clean, wrap};
use crate::incident::{kinds, lasted, recurrence, utilisation};
use crate::{NumberedIncident, Tone, number, wording};
use incidents::Detail;

/// Lines of a sentence.
const SENTENCE_LINES_MAX: usize = 4;
/// Numbers of the evidence.
const EVIDENCE_MAX: usize = 8;

/// A line for each.
pub fn incidents(incidents: &[NumberedIncident], style: &Style) -> String {
    if incidents.is_empty() {
        return "no incident is kept: headroom agent opens one when a bad verdict holds\n".into();
    }
    let table = Table::from_items(incidents)
        .right("", |one| one.id.to_string())
        .left("began", |one| number::instant(one.incident.started_unix_ns))
        .left("lasted", |one| lasted(&one.incident))
        .left("verdict", |one| {
            let tone = Tone::from_verdict(one.incident.verdict);
            Cell::inked(one.incident.verdict.to_string(), Ink::Tone(tone))
        })
        .right("highest U", |one| utilisation(one.incident.utilisation_max))
        .left("volume", |one| one.incident.subject.mount.clone())
        .left("database", |one| one.incident.subject.database.clone());
    table.lines(style).join("\n") + "\n"
}

/// One of them: what happened, the evidence of its worst moment, and what to do.
pub fn incident(numbered: &NumberedIncident, style: &Style) -> String {
    let NumberedIncident { id, incident } = numbered;
    let name = format!("INCIDENT {id}: {}", incident.verdict.to_string().to_uppercase());
    let mut lines = vec![style.paint(Ink::Tone(Tone::from_verdict(incident.verdict)), &name)];
    let subject = format!("{} on {}", clean(&incident.subject.database), clean(&incident.subject.mount));
    lines.push(format!(
        "{subject}, from {}, {}",
        number::instant(incident.started_unix_ns),
        lasted(incident)
    ));
    lines.push(format!(
        "utilisation {} at most, {} on average; {}",
        utilisation(incident.utilisation_max),
        utilisation(incident.utilisation_mean),
        kinds(incident)
    ));
    let also: Vec<String> = incident.also_affected().iter().map(|one| clean(one)).collect();
    if !also.is_empty() {
        lines.push(format!("also affects {}", also.join(", ")));
    }
    lines.extend(recurrence(incident));
    if let Some(worst) = incident.worst() {
        lines.extend(moment(worst, style));
    }
    lines.join("\n") + "\n"
}

/// The worst moment.
fn moment(worst: &Detail, style: &Style) -> Vec<String> {
    let mut lines = vec![String::new()];
    lines.push(style.heading(&format!("Worst moment, until {}", number::instant(worst.at_unix_ns))));
    let indented = |text: &str| {
        let width = style.columns().saturating_sub(2);
        wrap(text, width, SENTENCE_LINES_MAX).into_iter().map(|line| format!("  {line}")).collect::<Vec<_>>()
    };
    lines.extend(indented(&worst.summary));
    let evidence = Table::from_items(worst.evidence.iter().take(EVIDENCE_MAX))
        .left("", |fact| fact.what.clone())
        .right("observed", |fact| Cell::inked(wording::evidence::observed(fact), Ink::Bold))
        .right("expected", |fact| wording::evidence::expected(fact))
        .right("ratio", |fact| Cell::inked(wording::evidence::ratio(fact), Ink::Bold))
        .flexible(0);
    lines.extend(evidence.lines(style));
    let mut table = |title: &str, rows: Vec<(String, String)>| {
        if !rows.is_empty() {
            lines.push(style.heading(title));
            let table = Table::from_items(&rows).left("", |row| row.0.clone()).right("", |row| row.1.clone());
            lines.extend(table.flexible(0).lines(style));
        }
    };
    let files = worst.files.iter().map(|file| {
        (
            file.path.clone(),
            format!("{}/s, {}/s", number::rate(file.operations_per_s), number::bytes(file.bytes_per_s)),
        )
    });
    table("Files", files.collect());
    let processes = worst.processes.iter().map(|one| {
        let device = one.device.as_deref().unwrap_or("the device");
        let share = number::share(one.share);
        (format!("{} (pid {})", one.command, one.pid), format!("{share} of {device}'s I/O"))
    });
    table("Other programs", processes.collect());
    let waits = worst.waits.iter().map(|wait| (wait.event.clone(), format!("{:.2} sessions", wait.sessions)));
    table("Waits", waits.collect());
    lines.push(style.heading("Next step"));
    lines.extend(indented(&worst.next_step));
    lines
}
