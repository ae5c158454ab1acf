//! A stored stretch: of each source how much is known, the findings, and the files with the longest waits.

use super::style::{Ink, Style};
use super::table::{Align, Cell, Table};
use super::watch::SHORT_MARK;
use super::wrap::wrap;
use crate::wording::analysis::{coverage, when};
use crate::{AnalysisReport, Tone, number};
use analyze::{Analysis, BusyFile, Finding, Gap};
use filestats::{Counters, Figure, Ops, Reason, Time};
use findings::Weight;

/// Lines of one sentence.
const LINES_MAX: usize = 9;
/// Gaps that are listed.
const GAPS_MAX: usize = 10;

/// The analysis of all sources.
pub fn analysis(report: &AnalysisReport, style: &Style) -> String {
    let mut lines = vec![style.heading(&format!(
        "{} to {}",
        number::instant(report.from_unix_ns),
        number::instant(report.until_unix_ns)
    ))];
    for source in &report.sources {
        lines.push(String::new());
        lines.extend(source_lines(source, style));
    }
    if !report.gaps.is_empty() {
        lines.push(String::new());
        lines.push(style.heading("Gaps of the recorder"));
        for gap in report.gaps.iter().take(GAPS_MAX) {
            lines.extend(indented(&gap_line(gap), 2, style, Ink::Plain));
        }
        let more = report.gaps.len().saturating_sub(GAPS_MAX);
        if more > 0 {
            lines.push(format!("  and {more} more"));
        }
    }
    lines.join("\n") + "\n"
}

fn source_lines(source: &Analysis, style: &Style) -> Vec<String> {
    let mut lines = vec![style.heading(&super::wrap::clean(&source.source))];
    lines.extend(indented(&coverage(&source.coverage), 2, style, Ink::Dim));
    for finding in &source.findings {
        lines.extend(finding_lines(finding, style));
    }
    if !source.busiest.is_empty() {
        lines.push(String::new());
        lines.extend(busiest(&source.busiest, style));
    }
    lines
}

fn finding_lines(finding: &Finding, style: &Style) -> Vec<String> {
    let (mark, ink) = match finding.weight {
        Weight::Good => ("+", Ink::Tone(Tone::Good)),
        Weight::Note => ("-", Ink::Bold),
        Weight::Warning => ("!", Ink::Tone(Tone::Bad)),
    };
    let mut lines = Vec::new();
    for (at, line) in wrap(&finding.text, style.columns() - 4, LINES_MAX).iter().enumerate() {
        let mark = if at == 0 { style.paint(ink, mark) } else { " ".into() };
        lines.push(format!("  {mark} {line}"));
    }
    if let Some(when) = when(finding) {
        lines.extend(indented(&format!("when: {when}"), 6, style, Ink::Dim));
    }
    if let Some(next) = &finding.next {
        lines.extend(indented(&format!("next: {next}"), 6, style, Ink::Dim));
    }
    lines
}

fn indented(text: &str, by: usize, style: &Style, ink: Ink) -> Vec<String> {
    let lines = wrap(text, style.columns() - by, LINES_MAX);
    lines.iter().map(|line| format!("{}{}", " ".repeat(by), style.paint(ink, line))).collect()
}

fn gap_line(gap: &Gap) -> String {
    let until = gap.until_unix_ns.map_or("its end is not known".into(), number::instant);
    format!(
        "{} {} to {until}: {}",
        super::wrap::source_heading(&gap.source),
        number::instant(gap.from_unix_ns),
        gap.reason
    )
}

/// The files with the longest waits, size beside latency.
fn busiest(files: &[BusyFile], style: &Style) -> Vec<String> {
    let mut table = Table::new(&[
        ("most waited for", Align::Left),
        ("share", Align::Right),
        ("N", Align::Right),
        ("reads", Align::Right),
        ("ms", Align::Right),
        ("KiB", Align::Right),
        ("writes", Align::Right),
        ("ms", Align::Right),
        ("KiB", Align::Right),
        ("syncs", Align::Right),
        ("ms", Align::Right),
    ])
    .flexible(0);
    let mut has_short_times = false;
    for busy in files {
        let Counters { read, write, sync, .. } = busy.counters;
        let ms = |ops: &Ops, time: Time| match ops.latency_ns() {
            Figure::Known(ns) if time == Time::ToCompletion => number::millis(ns),
            Figure::Known(ns) => format!("{}{SHORT_MARK}", number::millis(ns)),
            Figure::Unknown { unknown: Reason::NoOperations } => number::NONE.into(),
            Figure::Unknown { .. } => "?".into(),
        };
        let kib = |ops: &Ops| {
            number::or_dash(ops.average_bytes(), |bytes| number::rate((bytes / 1024.0 * 10.0).round() / 10.0))
        };
        let sync = sync.known();
        has_short_times |=
            [busy.meaning.read_time, busy.meaning.write_time].iter().any(|time| *time != Time::ToCompletion);
        let cells = [
            busy.file.path.clone(),
            busy.share.map_or("?".into(), number::share),
            busy.outstanding().known().map_or("?".into(), number::rate),
            number::tick(rounded(read.count)),
            ms(&read, busy.meaning.read_time),
            kib(&read),
            number::tick(rounded(write.count)),
            ms(&write, busy.meaning.write_time),
            kib(&write),
            sync.map_or("?".into(), |sync| number::tick(rounded(sync.count))),
            sync.map_or("?".into(), |sync| ms(&sync, Time::ToCompletion)),
        ];
        table.push(cells.into_iter().map(Cell::from).collect());
    }
    let mut lines = table.lines(style);
    lines.extend(files.iter().filter_map(p99).flat_map(|text| indented(&text, 2, style, Ink::Dim)));
    if has_short_times {
        let words = "  * the time ends before the storage is done, or begins after it began";
        lines.push(style.paint(Ink::Dim, words));
    }
    lines
}

/// "p99 of /data/shop: reads at most 12.0 ms, syncs at most 40.0 ms"; `None` without a histogram.
fn p99(busy: &BusyFile) -> Option<String> {
    let percentile = |(word, ns): (&str, Option<u64>)| {
        ns.map(|ns| format!("{word} at most {} ms", number::millis(ns as f64)))
    };
    let p99 = busy.p99_at_most_ns;
    let all = [("reads", p99.read_ns), ("writes", p99.write_ns), ("syncs", p99.sync_ns)];
    let all: Vec<String> = all.into_iter().filter_map(percentile).collect();
    (!all.is_empty()).then(|| format!("p99 of {}: {}", busy.file.path, all.join(", ")))
}

/// A count rounded to three digits.
fn rounded(count: u64) -> f64 {
    let value = count as f64;
    if value < 1000.0 {
        return value;
    }
    let unit = 10_f64.powi(value.log10().floor() as i32 - 2);
    (value / unit).round() * unit
}
