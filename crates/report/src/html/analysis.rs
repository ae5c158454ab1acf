use super::page::{chart, legend, page};
use super::table::{Column, Table, class, tag};
use super::{escape, sentence};
use crate::chart::{INKS, Ink, Mark, Size, Stretch};
use crate::{Analysed, FindingCourse, Tone, number, text};
use analyze::{Analysis, BusyFile, Finding};
use filestats::{Counters, Ops};
use findings::Weight;

/// Pixels of the smaller of a finding's two charts.
const LOW: Size = Size { width: Size::WIDE.width, height: 190 };

/// The analysis as a page: the answer, then source by source what was found, with a chart of the file where `courses`
/// has one.
pub fn analysis(analysed: &Analysed, courses: &[FindingCourse], command: &str) -> String {
    let mut body = banner(analysed);
    for (at, source) in analysed.sources.iter().enumerate() {
        body.push_str(&format!("<h2>{}</h2>\n", escape(&source.source)));
        body.push_str(&format!("<p class=\"small\">{}</p>\n", sentence(&text::coverage(&source.coverage))));
        for (number, finding) in source.findings.iter().enumerate() {
            let course = courses.iter().find(|course| (course.source, course.finding) == (at, number));
            body.push_str(&found(finding, course, analysed));
        }
        body.push_str(&busiest(&source.busiest));
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
    let footer = format!(
        "Headroom {}; service level: reads {}, writes {}, log writes {}; bands: {} ({})",
        escape(&analysed.version),
        number::time(analysed.service_level.read_ns as f64),
        number::time(analysed.service_level.write_ns as f64),
        number::time(analysed.service_level.log_write_ns as f64),
        analysed.profile.name,
        escape(analysed.profile.origin)
    );
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
    let first = findings().find(|finding| finding.weight == Weight::Warning);
    let kept = || findings().find(|finding| finding.weight == Weight::Good);
    let words = first.or_else(kept).map_or(String::new(), |finding| sentence(&finding.text));
    format!(
        "<header class=\"card banner {}\">\n<div class=\"top\"><span class=\"small\">{} to {}</span>\
         <span class=\"confidence\">{} notes</span></div>\n<h1>{title}</h1>\n<p class=\"sentence\">{words}</p>\n</header>\n",
        class(tone),
        number::instant(analysed.from_unix_ns),
        number::instant(analysed.until_unix_ns),
        number::count(notes as u64),
    )
}

fn found(finding: &Finding, course: Option<&FindingCourse>, analysed: &Analysed) -> String {
    let (tone, word) = match finding.weight {
        Weight::Good => (Tone::Good, "good"),
        Weight::Note => (Tone::Neutral, "note"),
        Weight::Warning => (Tone::Bad, "bad news"),
    };
    let line = |title: &str, words: Option<String>| {
        words.map_or(String::new(), |words| format!("<p class=\"small\"><b>{title}</b> {words}</p>\n"))
    };
    let charts = course.map_or(String::new(), |course| charts(finding, course, analysed));
    format!(
        "<section class=\"card banner {}\" style=\"margin-top:14px\">\n<p>{} {}</p>\n{}{}</section>\n{charts}",
        class(tone),
        tag(word, tone),
        sentence(&finding.text),
        line("When", text::when(finding)),
        line("Next", finding.next.as_deref().map(sentence)),
    )
}

fn charts(finding: &Finding, course: &FindingCourse, analysed: &Analysed) -> String {
    let stretch = Stretch::of(course, finding);
    let mut keys: Vec<(Mark, Ink, &str)> = Vec::new();
    for ((name, ink), there) in ["reads", "writes", "syncs"].into_iter().zip(INKS).zip(stretch.has()) {
        if there {
            keys.push((Mark::Line, ink, name));
        }
    }
    if !finding.when.is_empty() {
        keys.push((Mark::Area, Ink::Worse, "what was found"));
    }
    if stretch.has_unknown() {
        keys.push((Mark::Area, Ink::Gap, "not known"));
    }
    let each = match stretch.each {
        1 => String::new(),
        many => format!(" Each point is the mean of {many} intervals; dotted: the worst of them."),
    };
    let note = format!("Background: the bands of the profile “{}”.{each}", analysed.profile.name);
    let latency = chart(&course.file.file.path, &note, &legend(&keys), Size::WIDE, |size| {
        stretch.latency(&analysed.profile, size)
    });
    let outstanding = chart("Outstanding I/Os (N)", "", "", LOW, |size| stretch.outstanding(size));
    format!("<div class=\"charts wide\">\n{latency}{outstanding}</div>\n")
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

/// Findings that are worth a chart, the worst first: which source, which finding.
pub fn worth_a_chart(sources: &[Analysis], most: usize) -> Vec<(usize, usize)> {
    let all = sources.iter().enumerate().flat_map(|(at, source)| {
        source.findings.iter().enumerate().map(move |(number, finding)| (at, number, finding))
    });
    let mut with_file: Vec<_> = all.filter(|(_, _, finding)| finding.path.is_some()).collect();
    with_file.sort_by_key(|(_, _, finding)| std::cmp::Reverse((finding.weight, finding.stall_ns)));
    with_file.into_iter().take(most).map(|(at, number, _)| (at, number)).collect()
}
