use super::style::{Ink, Style};
use super::table::{Cell, Table};
use crate::{Tone, number, wording};
use filestats::waits::{Agreement, Reconciled};
use filestats::{Figure, Reason, WaitClass, WaitDelta, WaitInterval};

/// Events that are shown, the longest waits first.
const WAITS_MAX: usize = 8;

/// Waits of sessions in an interval, and whether the files account for them.
pub(super) fn waits(waits: &[WaitInterval], reconciled: &[Reconciled], style: &Style) -> Vec<String> {
    let mut lines = table(waits, style);
    lines.extend(unknown(waits, style));
    for one in reconciled {
        let tone = match one.agreement {
            Agreement::NotTheDisk => Tone::Warning,
            Agreement::Agrees | Agreement::CannotSay => Tone::Neutral,
            Agreement::NobodyWaits => continue,
        };
        lines.extend(style.paragraph(Ink::Tone(tone), &wording::waits::reconciliation(one), 0, 2));
    }
    let hardly = reconciled.iter().filter(|one| one.agreement == Agreement::NobodyWaits);
    let hardly: Vec<String> = hardly.map(|one| one.class.to_string()).collect();
    if !hardly.is_empty() {
        let words = format!("hardly any session waits for: {}", hardly.join(", "));
        lines.extend(style.paragraph(Ink::Dim, &words, 0, 2));
    }
    lines.extend(implied(waits, reconciled, style));
    lines
}

fn table(waits: &[WaitInterval], style: &Style) -> Vec<String> {
    let known = waits.iter().filter_map(|wait| Some((wait, *wait.interval.as_known()?)));
    let mut known: Vec<(&WaitInterval, WaitDelta)> = known.filter(|(_, delta)| delta.is_any()).collect();
    if known.is_empty() {
        return Vec::new();
    }
    let waited_ns = |delta: &WaitDelta| delta.wait_ns.known().unwrap_or(0);
    known.sort_by_key(|(_, delta)| std::cmp::Reverse(waited_ns(delta)));
    let more = known.len().saturating_sub(WAITS_MAX);
    let table = Table::from_items(known.into_iter().take(WAITS_MAX))
        .left("wait", |(wait, _)| wait.event.as_str())
        .left("for", |(wait, _)| wait.class.to_string())
        .right("waits", |(_, delta)| cell(delta.count.map(|count| count as f64), number::rate))
        .right("ms each", |(_, delta)| cell(delta.mean_ns(), number::millis))
        .right("all", |(_, delta)| cell(delta.wait_ns.map(|ns| ns as f64), number::time))
        .right("sessions", |(_, delta)| cell(delta.sessions(), number::rate))
        .flexible(0);
    let mut lines = table.lines(style);
    if more > 0 {
        lines.push(style.paint(Ink::Dim, &format!("  {more} more waits")));
    }
    lines
}

/// The meaning of the class with the longest waits, except for classes that do not wait for the files.
fn implied(waits: &[WaitInterval], reconciled: &[Reconciled], style: &Style) -> Vec<String> {
    let counts = |class: WaitClass| {
        let one = reconciled.iter().find(|one| one.class == class);
        one.is_none_or(|one| !matches!(one.agreement, Agreement::NotTheDisk | Agreement::NobodyWaits))
    };
    let mut sums: Vec<(WaitClass, u64)> = Vec::new();
    for wait in waits.iter().filter(|wait| counts(wait.class)) {
        let ns = wait.interval.known().and_then(|delta| delta.wait_ns.known()).unwrap_or(0);
        match sums.iter_mut().find(|(class, _)| *class == wait.class) {
            Some((_, sum)) => *sum = sum.saturating_add(ns),
            None => sums.push((wait.class, ns)),
        }
    }
    let longest = sums.into_iter().filter(|(_, sum)| *sum > 0).max_by_key(|(_, sum)| *sum);
    let Some((class, _)) = longest else { return Vec::new() };
    let words = format!("{class}: {}", class.implies());
    style.paragraph(Ink::Dim, &words, 0, 2)
}

fn cell(figure: Figure<f64>, write: fn(f64) -> String) -> Cell {
    match figure {
        Figure::Known(value) => write(value).into(),
        Figure::Unknown { unknown: Reason::NoOperations } => Cell::inked(number::NONE, Ink::Dim),
        Figure::Unknown { .. } => Cell::inked("?", Ink::Dim),
    }
}

/// Unknown waits by reason.
fn unknown(waits: &[WaitInterval], style: &Style) -> Vec<String> {
    let mut reasons: Vec<Reason> = waits.iter().filter_map(|wait| wait.interval.reason()).collect();
    reasons.sort_unstable();
    let of = |group: &[Reason]| {
        let (count, reason) = (group.len(), group[0]);
        let waits = if count == 1 { "wait" } else { "waits" };
        style.paint(Ink::Dim, &format!("  {count} {waits} unknown: {reason}"))
    };
    reasons.chunk_by(|a, b| a == b).map(of).collect()
}
