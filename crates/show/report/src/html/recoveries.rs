use super::page::{page, run_chart};
use super::runs::{opening, repeat};
use super::table::{Column, Table};
use crate::number;
use charts::escape;
use experiments::{RecoverResult, RecoverStudy};
use filestats::Figure;

/// Crashed engines opened again as a page: conclusions, chart, table, how to read them.
pub fn recoveries(study: &RecoverStudy, command: &str, version: &str) -> String {
    let title = "Recovery of one crashed image";
    let summary = format!("{}; recovered on {}, {}", study.work(), study.storage(), study.dir);
    let mut sentences = study.sentences();
    sentences.extend(study.all_notes().iter().map(|note| format!("Note: {note}.")));
    let mut body = opening(title, &summary, &sentences);
    body.push_str(&run_chart(&charts::recoveries(study)));
    body.push_str(&format!("<h2>Results</h2>\n{}", table(study)));
    body.push_str(HOW_TO_READ);
    body.push_str(&repeat(command));
    page(title, &body, &format!("Headroom {}", escape(version)))
}

const HOW_TO_READ: &str = "<h2>How to read this</h2>\n<div class=\"card\">\n\
    <p>Every recovery of an engine begins with the same image, which is not in the page cache. Times begin before the \
    engine is opened. <b>First read</b> is that of a page which only the log has; <b>first write</b> a durable commit \
    after it; <b>all</b> is when every page is in the data file, synced, so that the log can be used again.</p>\n\
    <p><b>N</b> is how many reads, writes and syncs were in flight on average until then: their summed time by the time \
    that passed. A recovery with N about 1 waits for one I/O after the other; storage that takes many at once cannot \
    help it. The I/Os are counted, not reckoned; a dash was not counted.</p>\n\
    <p>Afterwards a page of every acknowledged commit was read and compared.</p>\n</div>\n";

fn table(study: &RecoverStudy) -> String {
    let mut table = Table::new(&[
        ("engine", Column::Long),
        ("first read", Column::Value),
        ("first write", Column::Number),
        ("all", Column::Number),
        ("pages", Column::Number),
        ("pages/s", Column::Number),
        ("MiB/s", Column::Number),
        ("log", Column::Number),
        ("reads", Column::Number),
        ("writes", Column::Number),
        ("syncs", Column::Number),
        ("N", Column::Number),
        ("compared", Column::Number),
    ]);
    study.results.iter().for_each(|result| table.push(&row(result)));
    for out in &study.left_out {
        let mut cells = [const { String::new() }; 13];
        cells[0] = escape(&out.engine);
        cells[1] = "left out".into();
        cells[2..].fill(number::NONE.into());
        table.push(&cells);
    }
    table.html()
}

fn row(result: &RecoverResult) -> [String; 13] {
    // A note has the reason of an unknown figure: words would move the last columns out of the page.
    let count = |of: Figure<u64>| number::or_dash(of, |count| number::rate(count as f64));
    let time = |seconds: f64| number::time(seconds * 1e9);
    [
        escape(&result.name()),
        time(result.first_read_s),
        time(result.first_write_s),
        time(result.full_s),
        count(result.pages),
        number::or_dash(result.pages_per_s(), |rate| number::rate(rate.round())),
        number::or_dash(result.mib_per_s(), number::rate),
        number::bytes(result.log_bytes as f64),
        count(result.io.reads),
        count(result.io.writes),
        count(result.io.syncs),
        number::or_dash(result.n(), number::rate),
        number::count(result.checked),
    ]
}
