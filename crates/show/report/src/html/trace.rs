use super::page::{Tile, page, run_chart, tiles};
use super::runs::{opening, repeat};
use super::table::Table;
use crate::{OpTotals, Tone, TraceSummary, number};
use charts::escape;

/// Files of the table.
const FILES_MAX: usize = 50;

/// A trace as a page: its subject, the charts, kinds of I/O, files, how to read them.
pub fn trace(traced: &TraceSummary, command: &str, version: &str) -> String {
    let title = "Trace of I/Os";
    let summary = format!(
        "{} I/Os, {} in {}: {}",
        number::count(traced.ios()),
        number::bytes(traced.bytes() as f64),
        number::duration(traced.elapsed_ns as f64 / 1e9),
        traced.of
    );
    let mut sentences = Vec::new();
    if traced.lost > 0 {
        sentences.push(format!(
            "{} I/Os more were lost, because the buffer was full: this trace is not complete.",
            number::count(traced.lost)
        ));
    }
    sentences.extend(traced.notes.iter().map(|note| format!("Note: {note}.")));
    let mut body = opening(title, &summary, &sentences);
    body.push_str(&tiles(&answer(traced)));
    body.push_str(&run_chart(&traced.chart()));
    body.push_str(&format!("<h2>Kinds</h2>\n{}<h2>Files</h2>\n{}", kinds(traced), files(traced)));
    body.push_str(HOW_TO_READ);
    body.push_str(&repeat(command));
    page(title, &body, &format!("Headroom {}", escape(version)))
}

/// Where the time went: the slowest kind, the busiest file, and whether all of it is here.
fn answer(traced: &TraceSummary) -> Vec<Tile> {
    let all_ns: u64 = traced.ops.iter().map(|totals| totals.stall_ns).sum();
    let share = |ns: u64| number::share(ns as f64 / all_ns.max(1) as f64);
    let mut answer = Vec::new();
    if let Some((op, totals)) = traced.by_op().max_by_key(|(_, totals)| totals.stall_ns) {
        let note = format!(
            "of the {}s, {} of the time waited; mean {}",
            op.word(),
            share(totals.stall_ns),
            number::time(totals.mean_ns())
        );
        answer.push(Tile::new("p99 latency", totals.percentile_ns(99.0).map(number::time), note));
    }
    if let Some(file) = traced.files.iter().max_by_key(|file| file.stall_ns) {
        let note = format!("of the time waited, {} I/Os: {}", number::count(file.ios), file.path);
        answer.push(Tile::new("busiest file", Some(share(file.stall_ns)), note));
    }
    let (tone, note) = match traced.lost {
        0 => (Tone::Good, "none was lost".to_owned()),
        lost => (Tone::Bad, format!("{} more were lost: the buffer was full", number::count(lost))),
    };
    answer.push(Tile { tone, ..Tile::new("I/Os traced", Some(number::count(traced.ios())), note) });
    answer
}

const HOW_TO_READ: &str = "<h2>How to read this</h2>\n<div class=\"card\">\n\
    <p><b>Offset.</b> A rising line is a sequential reader or writer; several of them are as many streams; a cloud is \
    random. A level line of writes is a place that is written again and again, as the head of a log is.</p>\n\
    <p><b>Latency</b> is until the I/O was done, on a logarithmic axis. Two layers of reads are mostly the page cache \
    and the device. A column that reaches high up at one time is a stall that all had together.</p>\n</div>\n";

fn kinds(traced: &TraceSummary) -> String {
    let at = |totals: &OpTotals, percent: f64| {
        totals.percentile_ns(percent).map_or(number::NONE.into(), number::time)
    };
    Table::from_items(traced.by_op())
        .long("kind", |(op, _)| op.word().into())
        .number("I/Os", |(_, totals)| number::count(totals.ios))
        .number("bytes", |(_, totals)| number::bytes(totals.bytes as f64))
        .number("mean", |(_, totals)| number::time(totals.mean_ns()))
        .number("p50", |(_, totals)| at(totals, 50.0))
        .number("p99", |(_, totals)| at(totals, 99.0))
        .number("longest", |(_, totals)| number::time(totals.max_ns as f64))
        .html()
}

fn files(traced: &TraceSummary) -> String {
    let mut files: Vec<_> = traced.files.iter().collect();
    files.sort_by_key(|file| std::cmp::Reverse(file.ios));
    let more = files.len().saturating_sub(FILES_MAX);
    let more =
        if more > 0 { format!("<p class=\"small\">and {more} more files</p>\n") } else { String::new() };
    let table = Table::from_items(files.into_iter().take(FILES_MAX))
        .path("file", |file| file.path.to_string())
        .number("I/Os", |file| number::count(file.ios))
        .number("bytes", |file| number::bytes(file.bytes as f64))
        .number("mean latency", |file| number::time(file.stall_ns as f64 / file.ios.max(1) as f64));
    table.html() + &more
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace_summary::tests::{io, trace as traced};
    use filestats::{TracedIo, TracedOp};

    #[test]
    fn a_page_states_lost_ios_and_escapes_names() {
        let mut all = traced(10);
        all.lost = 5;
        all.add(&TracedIo { file: "/<b>.db".into(), ..io(0, TracedOp::Read, 0, 1) });
        let page = trace(&all, "headroom trace --source process:812", "1.0");
        assert!(page.contains("I/Os more were lost"), "{page}");
        assert!(page.contains("/&lt;b&gt;.db") && !page.contains("<b>.db"));
    }
}
