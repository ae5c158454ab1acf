use charts::{escape, number};
use experiments::{CommitResult, CommitStudy};
use filestats::Figure;
use report::html::parts::{Table, Tile, figure, opening, page, repeat, run_chart, tiles};

/// Rows committed in batches as a page: ranking, chart, table, how to read them.
pub fn commits(study: &CommitStudy, command: &str, version: &str) -> String {
    let title = "Commits in batches";
    let summary = format!("{} rows, one INSERT each, in {}", number::count(study.rows), study.dir);
    let notes: Vec<String> = study.notes.iter().map(|note| format!("Note: {note}.")).collect();
    let mut body = opening(title, &summary, &notes);
    body.push_str(&tiles(&answer(study)));
    body.push_str(&format!("<h2>Ranking</h2>\n{}", ranking(study)));
    body.push_str(&run_chart(&crate::charts::commits(study)));
    body.push_str(&format!("<h2>Results</h2>\n{}", table(study)));
    body.push_str(HOW_TO_READ);
    body.push_str(&repeat(command));
    page(title, &body, &format!("Headroom {}", escape(version)))
}

/// The fastest and the slowest, and those between them.
fn answer(study: &CommitStudy) -> Vec<Tile> {
    let rate = |result: &&CommitResult| result.rows_per_s();
    let fastest = study.results.iter().max_by(|a, b| rate(a).total_cmp(&rate(b)));
    let slowest = study.results.iter().min_by(|a, b| rate(a).total_cmp(&rate(b)));
    let Some((fastest, slowest)) = fastest.zip(slowest) else { return Vec::new() };
    let tile = |title, result: &CommitResult| {
        let rows = if result.batch == 1 { "row" } else { "rows" };
        let note =
            format!("rows a second: {}, {} {rows} a commit", result.name(), number::count(result.batch));
        Tile::new(title, Some(number::rate(result.rows_per_s().round())), note)
    };
    let times = fastest.rows_per_s() / slowest.rows_per_s();
    vec![
        tile("fastest", fastest),
        tile("slowest", slowest),
        Tile::new("between them", times.is_finite().then(|| number::times(times)), "the same rows"),
    ]
}

/// The engines, the fastest first: each with its fastest batch, and with its smallest.
fn ranking(study: &CommitStudy) -> String {
    let mut names: Vec<String> = study.results.iter().map(CommitResult::name).collect();
    names.sort_unstable();
    names.dedup();
    let of_name = |name: &String| {
        let results = || study.results.iter().filter(move |result| result.name() == *name);
        let fastest = results().max_by(|a, b| a.rows_per_s().total_cmp(&b.rows_per_s()))?;
        Some((fastest, results().min_by_key(|result| result.batch)?))
    };
    let mut engines: Vec<(&CommitResult, &CommitResult)> = names.iter().filter_map(of_name).collect();
    engines.sort_by(|a, b| b.0.rows_per_s().total_cmp(&a.0.rows_per_s()));
    let rate = |result: &CommitResult| number::rate(result.rows_per_s().round());
    let writes = |result: &CommitResult| figure(result.log_writes_per_commit(), number::rate);
    Table::from_items(engines.into_iter().enumerate())
        .number("", |(rank, _)| (rank + 1).to_string())
        .long("engine", |(_, (fastest, _))| escape(&fastest.name()))
        .value("rows/s at most", |(_, (fastest, _))| rate(fastest))
        .number("rows a commit", |(_, (fastest, _))| number::count(fastest.batch))
        .number("rows/s in the smallest batch", |(_, (_, smallest))| rate(smallest))
        .number("a commit then", |(_, (_, smallest))| number::time(smallest.commit_ns()))
        .number("log writes a commit", |(_, (_, smallest))| writes(smallest))
        .number("waiting", |(_, (_, smallest))| figure(smallest.wait_share(), number::share))
        .html()
}

const HOW_TO_READ: &str = "<h2>How to read this</h2>\n<div class=\"card\">\n\
    <p><b>Time</b> is that of all rows, from before the first one until the last commit is acknowledged. Each row is \
    one INSERT of one integer, by one client, over the engine's usual interface.</p>\n\
    <p><b>Log writes</b> are counted, not estimated: what the engine asked the system to write to its log or journal, \
    with the mean size of a write. <b>Waiting</b> is the share of the time that those writes and the syncs took (with \
    the data files' where each commit waits for them too): it is what larger batches, or faster log storage, \
    save.</p>\n\
    <p><b>A line that falls</b> from left to right is a workload that waits for one log write after another. It is \
    cured by fewer commits, not by more storage.</p>\n</div>\n";

fn table(study: &CommitStudy) -> String {
    let count = |of: Figure<u64>| figure(of.map(|count| count as f64), number::rate);
    Table::from_items(&study.results)
        .long("engine", |result| escape(&result.name()))
        .number("rows a commit", |result| number::count(result.batch))
        .number("commits", |result| number::count(result.commits))
        .value("time", |result| number::time(result.seconds * 1e9))
        .number("rows/s", |result| number::rate(result.rows_per_s().round()))
        .number("log writes", |result| count(result.log.writes))
        .number("mean size", |result| figure(result.log.write_bytes_mean(), number::bytes))
        .number("log syncs", |result| count(result.log.syncs))
        .number("data writes", |result| count(result.data.writes))
        .number("data syncs", |result| count(result.data.syncs))
        .number("waiting", |result| figure(result.wait_share(), number::share))
        .html()
}
