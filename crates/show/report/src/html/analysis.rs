use super::page::{Banner, chart, judged_by, legend, page};
use super::table::{Column, Table, class, tag};
use super::{escape, sentence};
use crate::chart::{INKS, Ink, Mark, Size, Stretch};
use crate::{Analysed, Charted, StretchChart, Tone, number, text};
use analyze::{Analysis, BusyFile, Direction, Finding, Span};
use filestats::{Counters, FileKind, IoClass, Ops};
use findings::Weight;

/// Pixels of a chart of outstanding I/Os.
const LOW: Size = Size { width: Size::WIDE.width, height: 190 };
/// Busiest files of a source that a page draws, where no finding draws them.
const BUSY_MAX: usize = 3;

/// The analysis as a page: the answer, then source by source how its files were over the stretch, what was found, and the
/// busiest files; with the charts that there are.
pub fn analysis(analysed: &Analysed, charts: &[StretchChart], command: &str) -> String {
    let mut body = banner(analysed);
    for (at, source) in analysed.sources.iter().enumerate() {
        let charts: Vec<&StretchChart> = charts.iter().filter(|chart| chart.source == at).collect();
        let of = |what: Charted| charts.iter().find(|chart| chart.of == what).map(|chart| &chart.stretch);
        body.push_str(&format!("<h2>{}</h2>\n", escape(&source.source)));
        body.push_str(&format!("<p class=\"small\">{}</p>\n", sentence(&text::coverage(&source.coverage))));
        body.push_str(&kinds(&charts, source, analysed));
        for (number, finding) in source.findings.iter().enumerate() {
            body.push_str(&found(finding, of(Charted::Finding(number)), analysed));
        }
        body.push_str(&busiest(&source.busiest));
        for (number, busy) in source.busiest.iter().enumerate() {
            if let Some(stretch) = of(Charted::Busy(number)) {
                let class = class_of(busy.file.kind, None);
                body.push_str(&file_charts(&busy.file.path, stretch, class, &[], analysed));
            }
        }
    }
    if !analysed.gaps.is_empty() {
        let mut table =
            Table::new(&[("gap of", Column::Text), ("from", Column::Text), ("reason", Column::Long)]);
        for gap in &analysed.gaps {
            table.push(&[escape(&gap.source), number::instant(gap.from_unix_ns), sentence(&gap.reason)]);
        }
        body.push_str(&format!("<h2>Gaps of the recorder</h2>\n{}", table.html()));
    }
    body.push_str(HOW_TO_READ);
    body.push_str(&super::runs::repeat(command));
    let footer = judged_by(&analysed.version, &analysed.service_level, &analysed.profile);
    page("What the history shows", &body, &footer)
}

fn banner(analysed: &Analysed) -> String {
    let findings = || analysed.sources.iter().flat_map(|source| &source.findings);
    let count = |weight| findings().filter(|finding| finding.weight == weight).count();
    let (bad, notes) = (count(Weight::Warning), count(Weight::Note));
    let (tone, title) = match (analysed.says_anything(), bad) {
        (false, _) => (Tone::Neutral, "nothing can be said".to_owned()),
        (true, 0) => (Tone::Good, "no bad news".to_owned()),
        (true, 1) => (Tone::Bad, "1 piece of bad news".to_owned()),
        (true, many) => (Tone::Bad, format!("{many} pieces of bad news")),
    };
    let notes = match notes {
        0 => "no notes".to_owned(),
        1 => "1 note".to_owned(),
        many => format!("{} notes", number::count(many as u64)),
    };
    let first = findings().find(|finding| finding.weight == Weight::Warning);
    let kept = || findings().find(|finding| finding.weight == Weight::Good);
    let words = first.or_else(kept).map_or(String::new(), |finding| sentence(&finding.text));
    let (from, until) = (analysed.from_unix_ns, analysed.until_unix_ns);
    let banner = Banner {
        tone,
        of: format!("{} to {}", number::instant(from), number::instant(until)),
        beside: notes,
        title: &title,
        sentence: words,
        more: String::new(),
    };
    banner.html()
}

/// How the files of each kind were over the stretch, with the times of all bad news of the source.
fn kinds(charts: &[&StretchChart], source: &Analysis, analysed: &Analysed) -> String {
    let bad = source.findings.iter().filter(|finding| finding.weight == Weight::Warning);
    let marked = together(bad.flat_map(|finding| finding.when.iter().copied()).collect());
    let mut latencies = String::new();
    let mut outstanding: Vec<(&Stretch, Ink, &str)> = Vec::new();
    for chart in charts {
        let Charted::Kind(kind) = chart.of else { continue };
        let (title, name) = match kind {
            FileKind::Data => ("All data files", "data files"),
            FileKind::Log | FileKind::Journal => ("All logs", "logs"),
            FileKind::Temp => ("All temporary files", "temporary files"),
            FileKind::Device | FileKind::Other => ("All other files", "other files"),
        };
        let drawn =
            Drawn { stretch: &chart.stretch, class: class_of(kind, None), marked: &marked, what: "bad news" };
        latencies.push_str(&drawn.latency(title, analysed));
        outstanding.push((&chart.stretch, Ink::series(outstanding.len() + 4), name));
    }
    if outstanding.is_empty() {
        return String::new();
    }
    let mut keys: Vec<(Mark, Ink, &str)> =
        outstanding.iter().map(|(_, ink, name)| (Mark::Line, *ink, *name)).collect();
    if !marked.is_empty() {
        keys.push((Mark::Area, Ink::Worse, "bad news"));
    }
    let lines: Vec<(&Stretch, Ink)> = outstanding.iter().map(|(stretch, ink, _)| (*stretch, *ink)).collect();
    let load = chart(
        "Outstanding I/Os (N)",
        "How much was asked: the same time axis.",
        &legend(&keys),
        LOW,
        |size| Stretch::outstanding(&lines, &marked, size),
    );
    format!("<div class=\"charts wide\" style=\"margin-top:14px\">\n{latencies}{load}</div>\n")
}

/// Spans that overlap as one, so that none is marked twice.
fn together(mut spans: Vec<Span>) -> Vec<Span> {
    spans.sort_by_key(|span| span.from_unix_ns);
    let mut all: Vec<Span> = Vec::new();
    for span in spans {
        match all.last_mut().filter(|last| span.from_unix_ns <= last.until_unix_ns) {
            Some(last) => last.until_unix_ns = last.until_unix_ns.max(span.until_unix_ns),
            None => all.push(span),
        }
    }
    all
}

fn found(finding: &Finding, stretch: Option<&Stretch>, analysed: &Analysed) -> String {
    let (tone, word) = match finding.weight {
        Weight::Good => (Tone::Good, "good"),
        Weight::Note => (Tone::Neutral, "note"),
        Weight::Warning => (Tone::Bad, "bad news"),
    };
    let line = |title: &str, words: Option<String>| {
        words.map_or(String::new(), |words| format!("<p class=\"small\"><b>{title}</b> {words}</p>\n"))
    };
    let path = finding.path.as_deref().unwrap_or_default();
    let charts = stretch.map_or(String::new(), |stretch| {
        let kind = if stretch.is_log() { FileKind::Log } else { FileKind::Data };
        file_charts(path, stretch, class_of(kind, finding.direction), &finding.when, analysed)
    });
    format!(
        "<section class=\"card banner {}\" style=\"margin-top:14px\">\n<p>{} {}</p>\n{}{}</section>\n{charts}",
        class(tone),
        tag(word, tone),
        sentence(&finding.text),
        line("When", text::when(finding)),
        line("Next", finding.next.as_deref().map(sentence)),
    )
}

/// Whose bands stand behind the latencies of files of a kind, where one direction is looked at or all.
fn class_of(kind: FileKind, direction: Option<Direction>) -> IoClass {
    let is_log = matches!(kind, FileKind::Log | FileKind::Journal);
    match (direction, is_log) {
        (Some(Direction::Write | Direction::Sync) | None, true) => IoClass::LogWrite,
        (Some(Direction::Write | Direction::Sync), false) => IoClass::Write,
        _ => IoClass::Read,
    }
}

/// What a latency chart shows.
struct Drawn<'a> {
    stretch: &'a Stretch,
    class: IoClass,
    marked: &'a [Span],
    /// What the marks are.
    what: &'a str,
}

impl Drawn<'_> {
    fn latency(&self, title: &str, analysed: &Analysed) -> String {
        let Drawn { stretch, class, marked, what } = *self;
        let level = &analysed.service_level;
        let mut keys: Vec<(Mark, Ink, &str)> = Vec::new();
        let promised = stretch.levels(level);
        for (at, (name, level)) in [
            ("reads", "service level of reads"),
            ("writes", "service level of writes"),
            ("syncs", "service level of syncs"),
        ]
        .into_iter()
        .enumerate()
        {
            if stretch.has()[at] {
                keys.push((Mark::Line, INKS[at], name));
            }
            if promised[at].is_some() {
                keys.push((Mark::Dashed, INKS[at], level));
            }
        }
        if !marked.is_empty() {
            keys.push((Mark::Area, Ink::Worse, what));
        }
        if stretch.has_unknown() {
            keys.push((Mark::Area, Ink::Gap, "not known"));
        }
        let each = match stretch.each {
            1 => String::new(),
            many => format!(" Each point is the mean of {many} intervals; dotted: the worst of them."),
        };
        let note = format!("Background: the bands of the profile “{}”.{each}", analysed.profile.name);
        chart(title, &note, &legend(&keys), Size::WIDE, |size| {
            stretch.latency(&analysed.profile, class, level, marked, size)
        })
    }
}

fn file_charts(
    path: &str,
    stretch: &Stretch,
    class: IoClass,
    marked: &[Span],
    analysed: &Analysed,
) -> String {
    let latency = Drawn { stretch, class, marked, what: "what was found" }.latency(path, analysed);
    let outstanding = chart("Outstanding I/Os (N)", "", "", LOW, |size| {
        Stretch::outstanding(&[(stretch, Ink::Database)], marked, size)
    });
    format!("<div class=\"charts wide\" style=\"margin-top:14px\">\n{latency}{outstanding}</div>\n")
}

fn busiest(files: &[BusyFile]) -> String {
    if files.is_empty() {
        return String::new();
    }
    let mut table = Table::new(&[
        ("most waited for", Column::Long),
        ("share", Column::Number),
        ("N", Column::Number),
        ("reads", Column::Number),
        ("read ms", Column::Number),
        ("p99 at most", Column::Number),
        ("KiB", Column::Number),
        ("writes", Column::Number),
        ("write ms", Column::Number),
        ("p99 at most", Column::Number),
        ("KiB", Column::Number),
        ("syncs", Column::Number),
        ("sync ms", Column::Number),
        ("p99 at most", Column::Number),
    ]);
    for busy in files {
        let Counters { read, write, sync, .. } = busy.counters;
        let ms = |ops: &Ops| super::table::figure(ops.latency_ns(), number::millis);
        let kib = |ops: &Ops| number::or_dash(ops.average_bytes(), |bytes| number::rate(bytes / 1024.0));
        let sync = sync.known();
        let p99 = |ns: Option<u64>| ns.map_or(number::NONE.into(), |ns| number::millis(ns as f64));
        table.push(&[
            escape(&busy.file.path),
            busy.share.map_or(number::NONE.into(), number::share),
            number::or_dash(busy.outstanding(), number::rate),
            number::count(read.count),
            ms(&read),
            p99(busy.p99_at_most_ns.read_ns),
            kib(&read),
            number::count(write.count),
            ms(&write),
            p99(busy.p99_at_most_ns.write_ns),
            kib(&write),
            sync.map_or(number::NONE.into(), |sync| number::count(sync.count)),
            sync.map_or(number::NONE.into(), |sync| ms(&sync)),
            p99(busy.p99_at_most_ns.sync_ns),
        ]);
    }
    format!("<h3 style=\"margin-top:18px\">The files most waited for</h3>\n{}", table.html())
}

const HOW_TO_READ: &str = "<h2>How to read this</h2>\n<div class=\"card\">\n\
<p><b>Latencies are means of intervals</b>, from counters that only grow: what was before a restart or a reset is not in \
them, and an interval across one is not known. A long interval hides its worst moments.</p>\n\
<p><b>p99 at most</b>: 99 of 100 operations of the stretch did not take longer, in ms. It is the upper end of a bucket of the \
source’s histogram, up to a quarter above the true figure; – where the source keeps none.</p>\n\
<p><b>Outstanding I/Os (N)</b> is the time waited divided by the time that passed (Little’s law).</p>\n\
<p><b>“Looks like”</b> is what the counters resemble; the evidence stands beside it.</p>\n\
<p><b>A slow file is not yet slow storage.</b> headroom check places the demand on what the storage gave when it was \
measured.</p>\n</div>\n";

/// Files that are worth a chart beside those of all files of a kind, the worst first: of findings, then the busiest ones
/// that no finding draws. Each with its source.
pub fn worth_a_chart(sources: &[Analysis], most: usize) -> Vec<(usize, Charted)> {
    let all = sources.iter().enumerate().flat_map(|(at, source)| {
        source.findings.iter().enumerate().map(move |(number, finding)| (at, number, finding))
    });
    let mut with_file: Vec<_> = all.filter(|(_, _, finding)| finding.path.is_some()).collect();
    with_file.sort_by_key(|(_, _, finding)| std::cmp::Reverse((finding.weight, finding.stall_ns)));
    with_file.truncate(most);
    let drawn = |at: usize, busy: &BusyFile| {
        let key = (at, Some(busy.file.instance.as_str()), Some(busy.file.path.as_str()));
        with_file
            .iter()
            .any(|(at, _, finding)| (*at, finding.instance.as_deref(), finding.path.as_deref()) == key)
    };
    let mut busy: Vec<(usize, usize, &BusyFile)> = Vec::new();
    for (at, source) in sources.iter().enumerate() {
        let first = source.busiest.iter().enumerate().take(BUSY_MAX);
        busy.extend(first.filter(|(_, busy)| !drawn(at, busy)).map(|(number, busy)| (at, number, busy)));
    }
    busy.sort_by_key(|(_, _, busy)| std::cmp::Reverse(busy.stall_known_ns()));
    let found = with_file.iter().map(|(at, number, _)| (*at, Charted::Finding(*number)));
    found.chain(busy.iter().map(|(at, number, _)| (*at, Charted::Busy(*number)))).take(most).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_that_overlap_are_marked_once() {
        let span = |from_unix_ns, until_unix_ns| Span { from_unix_ns, until_unix_ns };
        let all = together(vec![span(50, 60), span(10, 20), span(15, 30), span(30, 31), span(16, 17)]);
        assert_eq!(all, [span(10, 31), span(50, 60)]);
    }
}
