use charts::number;
use experiments::{CommitStudy, Durability};
use report::text::Style;
use report::text::parts::{Ink, Table, clean};

/// Rows committed in batches: a row for each engine and batch, then the conclusions.
pub fn commits(study: &CommitStudy, style: &Style) -> String {
    let title = format!("{} rows, one INSERT each, in {}", number::count(study.rows), clean(&study.dir));
    let mut table = Table::from_items(&study.results).left("engine", |result| result.engine.as_str());
    if study.results.iter().any(|result| result.durability == Durability::Delayed) {
        table = table.left("durable", |result| match result.durability {
            Durability::Full => "full",
            Durability::Delayed => "delayed",
        });
    }
    let table = table
        .right("batch", |result| number::count(result.batch))
        .right("commits", |result| number::count(result.commits))
        .right("time", |result| number::time(result.seconds * 1e9))
        .right("rows/s", |result| number::rate(result.rows_per_s().round()))
        .right("log writes", |result| number::or_dash(result.log.writes, number::count))
        .right("mean", |result| number::or_dash(result.log.write_bytes_mean(), number::bytes))
        .right("syncs", |result| number::or_dash(result.syncs(), number::count))
        .right("waiting", |result| number::or_dash(result.wait_share(), number::share));
    study_lines(&title, &table, &study.sentences(), &study.notes, style)
}

/// A study's description, its table, the conclusions and the notes.
pub(super) fn study_lines<R>(
    title: &str,
    table: &Table<R>,
    sentences: &[String],
    notes: &[String],
    style: &Style,
) -> String {
    let mut lines = style.paragraph(Ink::Bold, title, 0, 3);
    lines.push(String::new());
    lines.extend(table.lines(style));
    if table.is_empty() {
        lines.push("  nothing was measured".into());
    }
    lines.push(String::new());
    lines.extend(sentences.iter().flat_map(|sentence| style.paragraph(Ink::Plain, sentence, 0, 12)));
    lines.extend(notes.iter().flat_map(|note| style.note(note)));
    lines.join("\n") + "\n"
}
