use super::page::{Banner, Tile, chart, judged_by, legend, page, tiles};
use super::sentence::sentence;
use super::table::{Table, class, figure, tag};
use crate::wording::analysis::{coverage, short_path, when};
use crate::{AnalysisReport, ChartSubject, HistoryChart, Tone, number};
use analyze::{Analysis, BusyFile, Direction, Finding, Span};
use charts::escape;
use charts::{HISTORY_INKS, HistorySeries, Ink, Mark, Size};
use filestats::{FileKind, IoClass, Ops};
use findings::Weight;
use std::collections::HashSet;
use std::ops::Range;

/// Pixels of a chart of outstanding I/Os.
const LOW: Size = Size { width: Size::WIDE.width, height: 190 };
/// Names a problem in tags and legends.
const PROBLEM: &str = "problem";
/// Busiest files of a source that have a chart without a finding.
const BUSY_MAX: usize = 3;

/// The analysis as a page: the answer, then source by source its files over time, the findings, and the busiest files.
/// `charts` are those that were made while the history was read.
pub fn analysis(report: &AnalysisReport, charts: &[HistoryChart], command: &str) -> String {
    let mut body = banner(report) + &tiles(&answer(report));
    for (at, source) in report.sources.iter().enumerate() {
        let charts: Vec<&HistoryChart> = charts.iter().filter(|chart| chart.source == at).collect();
        let series =
            |subject| charts.iter().find(|chart| chart.subject == subject).map(|chart| &chart.series);
        body.push_str(&format!("<h2>{}</h2>\n", escape(&source.source)));
        body.push_str(&format!("<p class=\"small\">{}</p>\n", sentence(&coverage(&source.coverage))));
        body.push_str(&kinds(&charts, source, report));
        body.push_str(&findings_by_file(source, &series, report));
        body.push_str(&busiest(&source.busiest));
        for (number, busy) in source.busiest.iter().enumerate() {
            if let Some(series) = series(ChartSubject::Busy(number)) {
                let class = class_of(busy.file.kind, None);
                let drawn = LatencyChart { series, class, marked: &[], mark: PROBLEM };
                body.push_str(&file_charts(&busy.file.path, &drawn, report));
            }
        }
    }
    if !report.gaps.is_empty() {
        let table = Table::from_items(&report.gaps)
            .text("gap of", |gap| escape(&gap.source))
            .text("from", |gap| number::instant(gap.from_unix_ns))
            .long("reason", |gap| sentence(&gap.reason));
        body.push_str(&format!("<h2>Gaps of the recorder</h2>\n{}", table.html()));
    }
    body.push_str(HOW_TO_READ);
    body.push_str(&super::runs::repeat(command));
    let footer = judged_by(&report.version, &report.service_level, &report.profile);
    page("What the history shows", &body, &footer)
}

fn banner(report: &AnalysisReport) -> String {
    let findings = || report.sources.iter().flat_map(|source| &source.findings);
    let count = |weight| findings().filter(|finding| finding.weight == weight).count();
    let (bad, notes) = (count(Weight::Warning), count(Weight::Note));
    let (tone, title) = match (report.says_anything(), bad) {
        (false, _) => (Tone::Neutral, "nothing can be said".to_owned()),
        (true, 0) => (Tone::Good, "no problems".to_owned()),
        (true, 1) => (Tone::Bad, "1 problem".to_owned()),
        (true, many) => (Tone::Bad, format!("{many} problems")),
    };
    let notes = match notes {
        0 => "no notes".to_owned(),
        1 => "1 note".to_owned(),
        many => format!("{} notes", number::count(many as u64)),
    };
    let first = findings().find(|finding| finding.weight == Weight::Warning);
    let kept = || findings().find(|finding| finding.weight == Weight::Good);
    let words = first
        .or_else(kept)
        .map_or(String::new(), |finding| sentence(&format!("{}.", finding.summary(short_path))));
    let (from, until) = (report.from_unix_ns, report.until_unix_ns);
    let banner = Banner {
        tone,
        subject: format!("{} to {}", number::instant(from), number::instant(until)),
        beside: notes,
        title: &title,
        sentence: words,
        more: String::new(),
    };
    banner.html()
}

/// The number of problems, the file most waited for, and the known share of the time.
fn answer(report: &AnalysisReport) -> Vec<Tile> {
    if !report.says_anything() {
        return Vec::new();
    }
    let findings = || report.sources.iter().flat_map(|source| &source.findings);
    let count = |weight| findings().filter(|finding| finding.weight == weight).count() as u64;
    let (bad, notes) = (count(Weight::Warning), count(Weight::Note));
    let tone = if bad == 0 { Tone::Good } else { Tone::Bad };
    let note = format!("and {} note{}", number::count(notes), if notes == 1 { "" } else { "s" });
    let mut all = vec![Tile { tone, ..Tile::new("problems", Some(number::count(bad)), note) }];
    let busiest = report.sources.iter().flat_map(|source| &source.busiest);
    if let Some(busy) = busiest.max_by_key(|busy| busy.stall_known_ns()) {
        let note = format!("of the time waited: {}", short_path(&busy.file.path));
        all.push(Tile::new("busiest file", busy.share.map(number::share), note));
    }
    // The source of which the least is known.
    let known = report.sources.iter().filter_map(|source| source.coverage.known_share);
    if let Some(least) = known.min_by(f64::total_cmp) {
        let captures: u64 = report.sources.iter().map(|source| source.coverage.captures as u64).sum();
        let note = format!("of the files' time is known, from {} captures", number::count(captures));
        all.push(Tile::new("known", Some(number::share_of_whole(least)), note));
    }
    all
}

/// The files of each kind over time, with the times of all problems of the source.
fn kinds(charts: &[&HistoryChart], source: &Analysis, report: &AnalysisReport) -> String {
    let bad = source.findings.iter().filter(|finding| finding.weight == Weight::Warning);
    let marked = merged(bad.flat_map(|finding| finding.when.iter().copied()).collect());
    let mut latencies = String::new();
    let mut outstanding: Vec<(&HistorySeries, Ink, &str)> = Vec::new();
    for chart in charts {
        let ChartSubject::Kind(kind) = chart.subject else { continue };
        let (title, name) = match kind {
            FileKind::Data => ("All data files", "data files"),
            FileKind::Log | FileKind::Journal => ("All logs", "logs"),
            FileKind::Temp => ("All temporary files", "temporary files"),
            FileKind::Device | FileKind::Other => ("All other files", "other files"),
        };
        let drawn = LatencyChart {
            series: &chart.series,
            class: class_of(kind, None),
            marked: &marked,
            mark: PROBLEM,
        };
        latencies.push_str(&drawn.latency(title, report));
        outstanding.push((&chart.series, Ink::series(outstanding.len() + 4), name));
    }
    if outstanding.is_empty() {
        return String::new();
    }
    let mut keys: Vec<(Mark, Ink, &str)> =
        outstanding.iter().map(|(_, ink, name)| (Mark::Line, *ink, *name)).collect();
    if !marked.is_empty() {
        keys.push((Mark::Area, Ink::Worse, PROBLEM));
    }
    let lines: Vec<(&HistorySeries, Ink)> =
        outstanding.iter().map(|(series, ink, _)| (*series, *ink)).collect();
    let load =
        chart("Outstanding I/Os (N)", "The demand, on the same time axis.", &legend(&keys), LOW, |size| {
            HistorySeries::outstanding(&lines, &marked, size)
        });
    format!("<div class=\"charts wide\" style=\"margin-top:14px\">\n{latencies}{load}</div>\n")
}

/// The spans, overlapping ones merged, so that none is marked twice.
fn merged(mut spans: Vec<Span>) -> Vec<Range<u64>> {
    spans.sort_by_key(|span| span.from_unix_ns);
    let mut all: Vec<Range<u64>> = Vec::new();
    for span in spans {
        match all.last_mut().filter(|last| span.from_unix_ns <= last.end) {
            Some(last) => last.end = last.end.max(span.until_unix_ns),
            None => all.push(span.from_unix_ns..span.until_unix_ns),
        }
    }
    all
}

/// The findings in their order. Where the file of one has a chart, the chart comes once, and all findings of that file beneath it.
fn findings_by_file<'a>(
    source: &Analysis,
    series: &impl Fn(ChartSubject) -> Option<&'a HistorySeries>,
    report: &AnalysisReport,
) -> String {
    let all = || source.findings.iter().enumerate();
    let mut drawn: Vec<(&str, &str)> = Vec::new();
    let mut html = String::new();
    for (_, finding) in all() {
        let of_file = |file| all().filter(move |(_, other)| other.file() == Some(file));
        let charted = finding.file().and_then(|file| {
            let with_chart =
                of_file(file).find_map(|(at, one)| Some((one, series(ChartSubject::Finding(at))?)));
            Some((file, with_chart?))
        });
        match charted {
            None => html.push_str(&finding_section(finding)),
            Some((file, _)) if drawn.contains(&file) => {}
            Some((file, (first, series))) => {
                drawn.push(file);
                let of_file: Vec<&Finding> = of_file(file).map(|(_, finding)| finding).collect();
                html.push_str(&file_findings(first, &of_file, series, report));
            }
        }
    }
    html
}

/// The chart of a file, on which the times of its worst findings are marked, and all its findings.
fn file_findings(
    first: &Finding,
    all: &[&Finding],
    series: &HistorySeries,
    report: &AnalysisReport,
) -> String {
    let kind = if series.is_log { FileKind::Log } else { FileKind::Data };
    let worst = all.iter().map(|finding| finding.weight).max().unwrap_or(Weight::Note);
    let mark = if worst == Weight::Warning { PROBLEM } else { "note" };
    let worst = all.iter().filter(|finding| finding.weight == worst);
    let marked = merged(worst.flat_map(|finding| finding.when.iter().copied()).collect());
    let path = first.path.as_deref().unwrap_or_default();
    let class = class_of(kind, first.direction);
    let charts = file_charts(path, &LatencyChart { series, class, marked: &marked, mark }, report);
    charts + &all.iter().map(|finding| finding_section(finding)).collect::<String>()
}

fn finding_section(finding: &Finding) -> String {
    let (tone, word) = match finding.weight {
        Weight::Good => (Tone::Good, "good"),
        Weight::Note => (Tone::Neutral, "note"),
        Weight::Warning => (Tone::Bad, PROBLEM),
    };
    let line = |title: &str, words: Option<String>| {
        words.map_or(String::new(), |words| format!("<p class=\"small\"><b>{title}</b> {words}</p>\n"))
    };
    format!(
        "<section class=\"card banner {}\" style=\"margin-top:14px\">\n<p>{} {}</p>\n{}{}</section>\n",
        class(tone),
        tag(word, tone),
        sentence(&finding.text),
        line("When", when(finding)),
        line("Next", finding.next.as_deref().map(sentence)),
    )
}

/// The class whose bands are behind the latencies of files of a kind, of one direction or of all.
fn class_of(kind: FileKind, direction: Option<Direction>) -> IoClass {
    let is_log = matches!(kind, FileKind::Log | FileKind::Journal);
    match (direction, is_log) {
        (Some(Direction::Write | Direction::Sync) | None, true) => IoClass::LogWrite,
        (Some(Direction::Write | Direction::Sync), false) => IoClass::Write,
        _ => IoClass::Read,
    }
}

/// Contents of a chart of latencies.
struct LatencyChart<'a> {
    series: &'a HistorySeries,
    class: IoClass,
    marked: &'a [Range<u64>],
    /// Name of the marks.
    mark: &'a str,
}

impl LatencyChart<'_> {
    fn latency(&self, title: &str, report: &AnalysisReport) -> String {
        let LatencyChart { series, class, marked, mark } = *self;
        let level = &report.service_level;
        let mut keys: Vec<(Mark, Ink, &str)> = Vec::new();
        let levels = series.levels(level);
        for (at, (name, level_name)) in [
            ("reads", "service level of reads"),
            ("writes", "service level of writes"),
            ("syncs", "service level of syncs"),
        ]
        .into_iter()
        .enumerate()
        {
            if series.has()[at] {
                keys.push((Mark::Line, HISTORY_INKS[at], name));
            }
            if levels[at].is_some() {
                keys.push((Mark::Dashed, HISTORY_INKS[at], level_name));
            }
        }
        if !marked.is_empty() {
            keys.push((Mark::Area, Ink::Worse, mark));
        }
        if series.has_unknown() {
            keys.push((Mark::Area, Ink::Gap, "not known"));
        }
        let each = match series.intervals_each {
            1 => String::new(),
            many => format!(" Each point is the mean of {many} intervals; dotted: the worst of them."),
        };
        let note = format!("Background: the bands of the profile “{}”.{each}", report.profile.name);
        chart(title, &note, &legend(&keys), Size::WIDE, |size| {
            series.latency(&report.profile, class, level, marked, size)
        })
    }
}

fn file_charts(path: &str, drawn: &LatencyChart, report: &AnalysisReport) -> String {
    let latency = drawn.latency(path, report);
    let outstanding = chart("Outstanding I/Os (N)", "", "", LOW, |size| {
        HistorySeries::outstanding(&[(drawn.series, Ink::Database)], drawn.marked, size)
    });
    format!("<div class=\"charts wide\" style=\"margin-top:14px\">\n{latency}{outstanding}</div>\n")
}

fn busiest(files: &[BusyFile]) -> String {
    if files.is_empty() {
        return String::new();
    }
    let ms = |ops: Ops| figure(ops.latency_ns(), number::millis);
    let kib = |ops: Ops| number::or_dash(ops.average_bytes(), |bytes| number::rate(bytes / 1024.0));
    let p99 = |ns: Option<u64>| ns.map_or(number::NONE.into(), |ns| number::millis(ns as f64));
    let table = Table::from_items(files)
        .path("most waited for", |busy| busy.file.path.clone())
        .number("share", |busy| busy.share.map_or(number::NONE.into(), number::share))
        .number("N", |busy| number::or_dash(busy.outstanding(), number::rate))
        .number("reads", |busy| number::count(busy.counters.read.count))
        .number("read ms", |busy| ms(busy.counters.read))
        .number("p99 at most", |busy| p99(busy.p99_at_most_ns.read_ns))
        .number("KiB", |busy| kib(busy.counters.read))
        .number("writes", |busy| number::count(busy.counters.write.count))
        .number("write ms", |busy| ms(busy.counters.write))
        .number("p99 at most", |busy| p99(busy.p99_at_most_ns.write_ns))
        .number("KiB", |busy| kib(busy.counters.write))
        .number("syncs", |busy| number::or_dash(busy.counters.sync, |sync| number::count(sync.count)))
        .number("sync ms", |busy| number::or_dash(busy.counters.sync, ms))
        .number("p99 at most", |busy| p99(busy.p99_at_most_ns.sync_ns));
    format!("<h3 style=\"margin-top:18px\">The files most waited for</h3>\n{}", table.html())
}

const HOW_TO_READ: &str = "<h2>How to read this</h2>\n<div class=\"card\">\n\
<p><b>Latencies are means of intervals</b>, from counters that only grow: what was before a restart or a reset is not in \
them, and an interval across one is not known. A long interval hides its worst moments.</p>\n\
<p><b>p99 at most</b>: 99 of 100 operations of the series did not take longer, in ms. It is the upper end of a bucket of the \
source’s histogram, up to a quarter above the true figure; – where the source keeps none.</p>\n\
<p><b>Outstanding I/Os (N)</b> is the time waited divided by the time that passed (Little’s law).</p>\n\
<p><b>“Looks like”</b> is what the counters resemble; the evidence stands beside it.</p>\n\
<p><b>A slow file is not yet slow storage.</b> headroom check places the demand on what the storage gave when it was \
measured.</p>\n</div>\n";

/// Files worth a chart of their own, the worst first: those of findings, then the busiest ones that no finding is about.
/// Each with the number of its source.
pub fn files_worth_a_chart(sources: &[Analysis], most: usize) -> Vec<(usize, ChartSubject)> {
    let all = sources.iter().enumerate().flat_map(|(at, source)| {
        source.findings.iter().enumerate().map(move |(number, finding)| (at, number, finding))
    });
    let mut with_file: Vec<_> = all.filter(|(_, _, finding)| finding.path.is_some()).collect();
    with_file.sort_by_key(|(_, _, finding)| std::cmp::Reverse((finding.weight, finding.stall_ns)));
    // A file has one chart, whatever the number of its findings.
    let mut files = HashSet::new();
    with_file.retain(|(at, _, finding)| files.insert((*at, finding.file())));
    with_file.truncate(most);
    let drawn = |at: usize, busy: &BusyFile| files.contains(&(at, Some(busy.file.key())));
    let mut busy: Vec<(usize, usize, &BusyFile)> = Vec::new();
    for (at, source) in sources.iter().enumerate() {
        let first = source.busiest.iter().enumerate().take(BUSY_MAX);
        busy.extend(first.filter(|(_, busy)| !drawn(at, busy)).map(|(number, busy)| (at, number, busy)));
    }
    busy.sort_by_key(|(_, _, busy)| std::cmp::Reverse(busy.stall_known_ns()));
    let found = with_file.iter().map(|(at, number, _)| (*at, ChartSubject::Finding(*number)));
    found.chain(busy.iter().map(|(at, number, _)| (*at, ChartSubject::Busy(*number)))).take(most).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_that_overlap_are_marked_once() {
        let span = |from_unix_ns, until_unix_ns| Span { from_unix_ns, until_unix_ns };
        let all = merged(vec![span(50, 60), span(10, 20), span(15, 30), span(30, 31), span(16, 17)]);
        assert_eq!(all, [10..31, 50..60]);
    }
}
