//! A stored stretch: of each source how much is known, the findings, and the files with the longest waits.

use super::style::{Ink, Style};
use super::table::Table;
use super::watch::timed;
use crate::wording::analysis::{coverage, when};
use crate::{AnalysisReport, Tone, number};
use analyze::{Analysis, BusyFile, Finding, Gap};
use filestats::{Ops, Time};
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
            lines.extend(style.paragraph(Ink::Plain, &gap_line(gap), 2, LINES_MAX));
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
    lines.extend(style.paragraph(Ink::Dim, &coverage(&source.coverage), 2, LINES_MAX));
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
    let mark = format!("  {} ", style.paint(ink, mark));
    let mut lines = style.marked(&mark, &finding.text, 4, LINES_MAX);
    if let Some(when) = when(finding) {
        lines.extend(style.paragraph(Ink::Dim, &format!("when: {when}"), 6, LINES_MAX));
    }
    if let Some(next) = &finding.next {
        lines.extend(style.paragraph(Ink::Dim, &format!("next: {next}"), 6, LINES_MAX));
    }
    lines
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
    let kib = |ops: Ops| {
        number::or_dash(ops.average_bytes(), |bytes| number::rate((bytes / 1024.0 * 10.0).round() / 10.0))
    };
    let count = |ops: Ops| number::tick(rounded(ops.count));
    let unknown = || String::from("?");
    let table = Table::from_items(files)
        .left("most waited for", |busy| busy.file.path.as_str())
        .right("share", |busy| busy.share.map_or_else(unknown, number::share))
        .right("N", |busy| busy.outstanding().known().map_or_else(unknown, number::rate))
        .right("reads", |busy| count(busy.counters.read))
        .right("ms", |busy| timed(&busy.counters.read, busy.meaning.read_time))
        .right("KiB", |busy| kib(busy.counters.read))
        .right("writes", |busy| count(busy.counters.write))
        .right("ms", |busy| timed(&busy.counters.write, busy.meaning.write_time))
        .right("KiB", |busy| kib(busy.counters.write))
        .right("syncs", |busy| busy.counters.sync.known().map_or_else(unknown, count))
        .right("ms", |busy| {
            let sync = busy.counters.sync.known();
            sync.map_or_else(unknown, |sync| timed(&sync, Time::ToCompletion))
        })
        .flexible(0);
    let has_short_times = files
        .iter()
        .flat_map(|busy| [busy.meaning.read_time, busy.meaning.write_time])
        .any(|time| time != Time::ToCompletion);
    let mut lines = table.lines(style);
    let p99s = files.iter().filter_map(p99);
    lines.extend(p99s.flat_map(|text| style.paragraph(Ink::Dim, &text, 2, LINES_MAX)));
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
