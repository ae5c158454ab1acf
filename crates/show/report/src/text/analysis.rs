//! What a stretch showed: of each source how much is known, what was found, and the files that were waited for.

use super::table::{Align, Cell, Table};
use super::watch::SHORT_MARK;
use super::{Ink, Style, wrap};
use crate::{Analysed, Tone, number};
use analyze::{Analysis, BusyFile, Coverage, Finding, Gap, Span};
use filestats::{Counters, Figure, Ops, Reason, Time};
use findings::Weight;

/// Lines of one sentence, at most.
const LINES_MAX: usize = 9;
/// Stretches that are listed with a finding; JSON has more.
const WHEN_MAX: usize = 3;
/// Gaps that are listed.
const GAPS_MAX: usize = 10;

/// The analysis as a terminal shows it.
pub fn analysis(analysed: &Analysed, style: &Style) -> String {
    let mut lines = vec![style.heading(&format!(
        "{} to {}",
        number::instant(analysed.from_unix_ns),
        number::instant(analysed.until_unix_ns)
    ))];
    for source in &analysed.sources {
        lines.push(String::new());
        lines.extend(one(source, style));
    }
    if !analysed.gaps.is_empty() {
        lines.push(String::new());
        lines.push(style.heading("Gaps of the recorder"));
        for gap in analysed.gaps.iter().take(GAPS_MAX) {
            lines.extend(indented(&told(gap), 2, style, Ink::Plain));
        }
        let more = analysed.gaps.len().saturating_sub(GAPS_MAX);
        if more > 0 {
            lines.push(format!("  and {more} more"));
        }
    }
    lines.join("\n") + "\n"
}

fn one(source: &Analysis, style: &Style) -> Vec<String> {
    let mut lines = vec![style.heading(&super::clean(&source.source))];
    lines.extend(indented(&coverage(&source.coverage), 2, style, Ink::Dim));
    for finding in &source.findings {
        lines.extend(found(finding, style));
    }
    if !source.busiest.is_empty() {
        lines.push(String::new());
        lines.extend(busiest(&source.busiest, style));
    }
    lines
}

/// How much is known of the stretch, in a sentence.
pub(crate) fn coverage(coverage: &Coverage) -> String {
    let every = coverage
        .interval_ns
        .map_or(String::new(), |ns| format!(", every {}", number::duration(ns as f64 / 1e9)));
    let known = match coverage.known_share {
        Some(share) => format!("{} of the files' time between them is known", of_all(share)),
        None => "nothing is known between them".into(),
    };
    let mut text = format!(
        "{} captures{every}, cover {} of it; {known}; {}, {} of them used",
        number::count(coverage.captures as u64),
        of_all(coverage.captured_share),
        counted(coverage.files),
        number::count(coverage.files_used as u64),
    );
    if coverage.files_untimed > 0 {
        text.push_str(&format!(", {} not (wholly) timed", number::count(coverage.files_untimed as u64)));
    }
    if coverage.files_unsized > 0 {
        text.push_str(&format!(
            ", {} of unknown size (re-reads and jobs are not looked for there)",
            number::count(coverage.files_unsized as u64)
        ));
    }
    text
}

/// A share that is not all of it, however near.
fn of_all(share: f64) -> String {
    if share > 0.995 && share < 1.0 { "over 99 %".into() } else { number::share(share) }
}

fn counted(files: usize) -> String {
    format!("{} file{}", number::count(files as u64), if files == 1 { "" } else { "s" })
}

fn found(finding: &Finding, style: &Style) -> Vec<String> {
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

/// The longest stretches of a finding in the order of time.
pub(crate) fn when(finding: &Finding) -> Option<String> {
    let mut spans: Vec<Span> = finding.when.iter().take(WHEN_MAX).copied().collect();
    spans.sort_by_key(|span| span.from_unix_ns);
    let mut told: Vec<String> = spans.iter().map(span).collect();
    let more = finding.stretches.saturating_sub(told.len());
    if more > 0 {
        told.push(format!("and {more} more"));
    }
    (!told.is_empty()).then(|| told.join(", "))
}

/// "2026-11-21 02:00:00 to 02:12:15 UTC".
fn span(span: &Span) -> String {
    let (from, until) = (number::instant(span.from_unix_ns), number::instant(span.until_unix_ns));
    match (from.split_once(' '), until.split_once(' ')) {
        (Some((day, begin)), Some((same, end))) if day == same => {
            format!("{day} {} to {end}", begin.trim_end_matches(" UTC"))
        }
        _ => format!("{} to {until}", from.trim_end_matches(" UTC")),
    }
}

fn told(gap: &Gap) -> String {
    let until = gap.until_unix_ns.map_or("its end is not known".into(), number::instant);
    format!("{} {} to {until}: {}", super::of(&gap.source), number::instant(gap.from_unix_ns), gap.reason)
}

/// The files that were waited for longest: how much, one after the other, size beside latency.
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
    let mut short = false;
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
        short |=
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
    if short {
        let words = "  * the time ends before the storage is done, or begins after it began";
        lines.push(style.paint(Ink::Dim, words));
    }
    lines
}

/// "p99 of /data/shop: reads at most 12.0 ms, syncs at most 40.0 ms"; nothing without a histogram.
fn p99(busy: &BusyFile) -> Option<String> {
    let told = |(word, ns): (&str, Option<u64>)| {
        ns.map(|ns| format!("{word} at most {} ms", number::millis(ns as f64)))
    };
    let of = busy.p99_at_most_ns;
    let all = [("reads", of.read_ns), ("writes", of.write_ns), ("syncs", of.sync_ns)];
    let all: Vec<String> = all.into_iter().filter_map(told).collect();
    (!all.is_empty()).then(|| format!("p99 of {}: {}", busy.file.path, all.join(", ")))
}

/// Three digits of a count, for its short form.
fn rounded(count: u64) -> f64 {
    let value = count as f64;
    if value < 1000.0 {
        return value;
    }
    let unit = 10_f64.powi(value.log10().floor() as i32 - 2);
    (value / unit).round() * unit
}
