use charts::{escape, number};
use experiments::{RecoverResult, RecoverStudy};
use filestats::Figure;
use report::html::parts::{Table, Tile, opening, page, repeat, run_chart, sentence, tiles};

/// Crashed engines opened again as a page: conclusions, chart, table, how to read them.
pub fn recoveries(study: &RecoverStudy, command: &str, version: &str) -> String {
    let title = "Recovery of one crashed image";
    let summary = format!("{}; recovered on {}, {}", study.work(), study.storage(), study.dir);
    let mut compared = study.comparisons();
    compared.truncate(COMPARED_FIRST);
    let mut body = opening(title, &summary, &compared);
    body.push_str(&tiles(&answer(study)));
    body.push_str(&run_chart(&crate::charts::recoveries(study)));
    body.push_str(&format!("<h2>Results</h2>\n{}{}", table(study), details(study)));
    body.push_str(HOW_TO_READ);
    body.push_str(&repeat(command));
    page(title, &body, &format!("Headroom {}", escape(version)))
}

/// Sentences before the figures.
const COMPARED_FIRST: usize = 2;

/// A sentence for each recovery, further comparisons, and the notes.
fn details(study: &RecoverStudy) -> String {
    let notes = study.all_notes().into_iter().map(|note| format!("Note: {note}."));
    let compared = study.comparisons().into_iter().skip(COMPARED_FIRST);
    let items = study.recoveries().into_iter().chain(compared).chain(notes);
    let items: String = items.map(|text| format!("<li>{}</li>\n", sentence(&text))).collect();
    format!("<ul class=\"plain small\">\n{items}</ul>\n")
}

/// The method that serves first, the one that is done first, and the slowest.
fn answer(study: &RecoverStudy) -> Vec<Tile> {
    let first_read = |result: &&RecoverResult| result.first_read_s;
    let full = |result: &&RecoverResult| result.full_s;
    let results = || study.results.iter();
    let tile = |title: &'static str, result: Option<&RecoverResult>, seconds: fn(&RecoverResult) -> f64| {
        result.map(|one| Tile::new(title, Some(number::time(seconds(one) * 1e9)), one.name()))
    };
    let earliest = results().min_by(|a, b| first_read(a).total_cmp(&first_read(b)));
    let done = results().min_by(|a, b| full(a).total_cmp(&full(b)));
    let slowest = results().max_by(|a, b| full(a).total_cmp(&full(b))).filter(|_| study.results.len() > 1);
    let tiles = [
        tile("earliest first read", earliest, |result| result.first_read_s),
        tile("earliest all written", done, |result| result.full_s),
        tile("latest all written", slowest, |result| result.full_s),
    ];
    tiles.into_iter().flatten().collect()
}

const HOW_TO_READ: &str = "<h2>How to read this</h2>\n<div class=\"card\">\n\
    <p>Every recovery of an engine begins with the same image, which is not in the page cache. Times begin before the \
    engine is opened. <b>First read</b> is that of a page which only the log has; <b>first write</b> a durable commit \
    after it; <b>all</b> is when every page is in the data file, synced, so that the log can be used again.</p>\n\
    <p><b>N</b> is how many reads, writes and syncs were in flight on average until then: their summed time by the time \
    that passed. A recovery with N about 1 waits for one I/O after another; storage that takes many at once cannot \
    help it. The I/Os are counted, not estimated; a dash was not counted.</p>\n\
    <p>Afterwards a page of every acknowledged commit was read and compared.</p>\n</div>\n";

fn table(study: &RecoverStudy) -> String {
    // A note has the reason of an unknown figure: words would move the last columns out of the page.
    let count = |of: Figure<u64>| number::or_dash(of, |count| number::rate(count as f64));
    let time = |seconds: f64| number::time(seconds * 1e9);
    let mut table = Table::from_items(&study.results)
        .long("engine", |result| escape(&result.name()))
        .value("first read", |result| time(result.first_read_s))
        .number("first write", |result| time(result.first_write_s))
        .number("all", |result| time(result.full_s))
        .number("pages", |result| count(result.pages))
        .number("pages/s", |result| number::or_dash(result.pages_per_s(), |rate| number::rate(rate.round())))
        .number("MiB/s", |result| number::or_dash(result.mib_per_s(), number::rate))
        .number("log", |result| number::bytes(result.log_bytes as f64))
        .number("reads", |result| count(result.io.reads))
        .number("writes", |result| count(result.io.writes))
        .number("syncs", |result| count(result.io.syncs))
        .number("N", |result| number::or_dash(result.n(), |n| format!("{n:.1}")))
        .number("compared", |result| number::count(result.checked));
    for out in &study.left_out {
        let mut cells = [number::NONE; 13].map(String::from);
        cells[0] = escape(&out.engine);
        cells[1] = "left out".into();
        table.push(&cells);
    }
    table.html()
}
