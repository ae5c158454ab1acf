use super::estimate::advice;
use super::sketch;
use super::style::{Ink, Style};
use super::table::{Align, Cell, Table};
use super::wrap::{clean, clip, wrap};
use crate::files::{FileRow, worst_first};
use crate::headline::headlines;
use crate::volumes::volumes;
use crate::{Check, Tone, number, wording};
use filestats::{Delta, Figure, Reason};
use std::path::Path;
use verdict::Figures;

/// The answer fits on a screen of this many lines.
const LINES_MAX: usize = 40;
const EVIDENCE_MAX: usize = 8;
/// Columns that the figures of the evidence and their source take.
const EVIDENCE_COLUMNS: usize = 46;
const DOUBTS_MAX: usize = 3;
const FILES_MAX: usize = 5;
const VOLUMES_MAX: usize = 4;
const SKETCH_LINES_MAX: usize = 6;
const NEXT_LINES_MAX: usize = 6;

/// The verdict on one screen of at most 40 lines.
pub fn check(check: &Check, style: &Style) -> String {
    let figures = Figures::from_moments(&check.observation.moments, check.capability.as_ref());
    let mut lines = banner(check, style);
    lines.push(String::new());
    lines.extend(three_figures(check, &figures, style));
    lines.push(String::new());
    lines.extend(evidence(check, style));
    lines.extend(doubts(check, style));
    lines.extend(other_volumes(check, style));
    lines.extend(files(check, style));
    let mut next = next_step(check, style);
    let room = LINES_MAX.saturating_sub(lines.len() + next.len());
    next.extend(advice(check, room, style));
    if let Some(curve) = check.curve() {
        // The curve takes the rest of the screen; it is left out where too little is left.
        let left = LINES_MAX.saturating_sub(lines.len() + next.len() + 2);
        let rows = sketch::sketch(curve, check.verdict.place.as_ref(), style, left.min(SKETCH_LINES_MAX));
        if rows.len() >= 3 || rows.len() == curve.points.len() && !rows.is_empty() {
            lines.push(String::new());
            lines.push(style.heading(&format!("Storage, {} by outstanding I/Os", curve.workload)));
            lines.extend(rows);
        }
    }
    lines.extend(next);
    lines.join("\n") + "\n"
}

fn banner(check: &Check, style: &Style) -> Vec<String> {
    let verdict = &check.verdict;
    let name = check.verdict_title().to_uppercase();
    let confidence = format!("confidence: {}", verdict.confidence);
    let gap = style.columns().saturating_sub(name.chars().count() + confidence.chars().count());
    let name = if style.color {
        let tone = style.paint(Ink::Tone(Tone::from_verdict(verdict.verdict)), &name);
        style.paint(Ink::Bold, &tone)
    } else {
        name
    };
    let mut lines = vec![format!("{name}{}{}", " ".repeat(gap), style.paint(Ink::Dim, &confidence))];
    lines.extend(wrap(&verdict.summary, style.columns(), 3));
    let about = format!(
        "{} on {}, until {}",
        clean(&check.source),
        clean(&check.target),
        number::instant(check.observation.ended_unix_ns())
    );
    lines.push(style.paint(Ink::Dim, &clip(&about, style.columns())));
    lines
}

fn three_figures(check: &Check, figures: &Figures, style: &Style) -> Vec<String> {
    let lines = |headline: &crate::headline::Headline| -> Vec<String> {
        let text =
            format!("  {:<17}{:>9}   ", headline.title, headline.value.as_deref().unwrap_or(number::NONE));
        let indent = text.chars().count();
        let note = wrap(&headline.note, style.columns().saturating_sub(indent), 2);
        let note = note.iter().map(|line| style.paint(Ink::Dim, line)).enumerate();
        let before = |at: usize| if at == 0 { style.heading(&text) } else { " ".repeat(indent) };
        note.map(|(at, line)| format!("{}{line}", before(at))).collect()
    };
    headlines(check, figures).iter().flat_map(lines).collect()
}

fn evidence(check: &Check, style: &Style) -> Vec<String> {
    let evidence = &check.verdict.evidence;
    if evidence.is_empty() {
        return vec![style.heading("Evidence: none")];
    }
    let table = Table::from_items(evidence.iter().take(EVIDENCE_MAX))
        .left("Evidence", |fact| clip(&clean(&fact.what), style.columns().saturating_sub(EVIDENCE_COLUMNS)))
        .right("observed", |fact| Cell::inked(wording::evidence::observed(fact), Ink::Bold))
        .right("expected", |fact| wording::evidence::expected(fact))
        .right("ratio", |fact| Cell::inked(wording::evidence::ratio(fact), Ink::Bold))
        .left("from", |fact| Cell::inked(in_short(&fact.source), Ink::Dim));
    let mut lines = table.lines(style);
    lines.extend(and_more(evidence.len(), EVIDENCE_MAX, style));
    lines
}

/// The source of a number in a few words.
fn in_short(source: &str) -> &str {
    let source = source.strip_prefix("the ").unwrap_or(source);
    let source = source.split([',', '(']).next().unwrap_or(source).trim_end();
    match source {
        "database's file statistics" => "database",
        "kernel's times of the server's own log writes and syncs" => "kernel",
        "device's counters" => "device",
        "database or the device" => "larger",
        "device rates x measured cost model" | "device rates x borrowed cost model" => "cost model",
        "device rates over declared limits" => "declared limits",
        "what this storage was seen to do" => "seen",
        other => other.strip_suffix(" capability").unwrap_or(other),
    }
}

fn doubts(check: &Check, style: &Style) -> Vec<String> {
    let doubts = &check.verdict.doubts;
    let doubt = |text: &String| style.marked("  but ", text, 6, 2);
    let warning = |line: String| style.paint(Ink::Tone(Tone::Warning), &line);
    let mut lines: Vec<String> = doubts.iter().take(DOUBTS_MAX).flat_map(doubt).map(warning).collect();
    lines.extend(and_more(doubts.len(), DOUBTS_MAX, style));
    lines
}

/// The volumes that do not bind, and what measures those that never were.
fn other_volumes(check: &Check, style: &Style) -> Vec<String> {
    let others = &volumes(check)[1..];
    if others.is_empty() {
        return Vec::new();
    }
    let table = Table::from_items(others.iter().take(VOLUMES_MAX))
        .left("volume", |row| row.check.target.clone())
        .left("holds", |row| row.roles())
        .left("verdict", |row| Cell::inked(row.verdict_text(), Ink::Tone(row.tone())))
        .right("utilisation", |row| row.utilisation())
        .right("headroom", |row| row.headroom())
        .right("time waited", |row| row.waited())
        .flexible(0);
    let mut lines = vec![String::new(), style.heading("Other volumes")];
    lines.extend(table.lines(style));
    lines.extend(and_more(others.len(), VOLUMES_MAX, style));
    if let Some(row) = others.iter().find(|row| row.is_unmeasured()) {
        let advice = format!("  to have it judged: headroom measure {}", clean(&row.check.target));
        lines.push(style.paint(Ink::Dim, &clip(&advice, style.columns())));
    }
    lines
}

fn files(check: &Check, style: &Style) -> Vec<String> {
    let files = worst_first(check);
    if files.is_empty() {
        return Vec::new();
    }
    let mut table = Table::new(&[
        ("file", Align::Left),
        ("kind", Align::Left),
        ("reads/s", Align::Right),
        ("writes/s", Align::Right),
        ("read ms", Align::Right),
        ("write", Align::Right),
        ("sync", Align::Right),
        ("KiB", Align::Right),
        ("band", Align::Left),
    ])
    .flexible(0);
    for file in files.iter().take(FILES_MAX) {
        table.push(file_row(file, style));
    }
    let mut lines = vec![String::new(), style.heading("Files, by time waited")];
    lines.extend(table.lines(style));
    lines.extend(and_more(files.len(), FILES_MAX, style));
    lines
}

fn file_row(file: &FileRow, style: &Style) -> Vec<Cell> {
    let identity = &file.row.file;
    let name = Path::new(&identity.path).file_name().map_or(identity.path.clone(), |name| {
        if style.columns() >= 110 { identity.path.clone() } else { name.to_string_lossy().into_owned() }
    });
    let name = match &identity.database {
        Some(database) if style.columns() >= 100 && !name.contains(database.as_str()) => {
            format!("{database} {name}")
        }
        _ => name,
    };
    let kind = identity.kind.to_string();
    let Some(delta) = file.delta() else {
        let reason =
            file.row.interval.reason().map_or(String::new(), |reason| format!("no figures: {reason}"));
        return vec![name.into(), kind.into(), Cell::inked(reason, Ink::Dim)];
    };
    let millis = |figure: Figure<f64>| match figure.reason() {
        Some(Reason::BelowResolution) => number::BELOW_MILLISECOND.into(),
        _ => Cell::from(number::or_dash(figure, number::millis)),
    };
    let per_second = |of: fn(&Delta) -> u64| Cell::from(number::rate(of(delta) as f64 / delta.elapsed_s()));
    let band = file.grade.map_or(number::NONE.into(), |grade| {
        Cell::inked(grade.band.name, Ink::Tone(Tone::from_rank(grade.band.rank, grade.bands)))
    });
    vec![
        name.into(),
        kind.into(),
        per_second(|delta| delta.counters.read.count),
        per_second(|delta| delta.counters.write.count),
        millis(delta.read_latency_ns()),
        millis(delta.write_latency_ns()),
        millis(delta.sync_latency_ns()),
        number::or_dash(file.average_bytes(), |bytes| number::rate(bytes / 1024.0)).into(),
        band,
    ]
}

fn next_step(check: &Check, style: &Style) -> Vec<String> {
    let mut lines = vec![String::new()];
    lines.extend(style.marked(&style.heading("Next  "), &check.verdict.next_step, 6, NEXT_LINES_MAX));
    lines
}

fn and_more(all: usize, shown: usize, style: &Style) -> Option<String> {
    let more = all.checked_sub(shown).filter(|more| *more > 0)?;
    Some(style.paint(Ink::Dim, &format!("  and {more} more in the JSON and HTML reports")))
}
