use super::style::{Ink, Style};
use super::table::{Align, Cell, Table};
use super::wrap::{clean, wrap};
use crate::number;
use experiments::{CommitResult, CommitStudy, Durability};

/// Rows committed in batches: a row for each engine and batch, then the conclusions.
pub fn commits(study: &CommitStudy, style: &Style) -> String {
    let title = format!("{} rows, one INSERT each, in {}", number::count(study.rows), clean(&study.dir));
    let mut lines = wrap(&title, style.columns(), 3);
    lines.iter_mut().for_each(|line| *line = style.heading(line));
    lines.push(String::new());
    let delayed = study.results.iter().any(|result| result.durability == Durability::Delayed);
    let mut titles = vec![
        ("engine", Align::Left),
        ("batch", Align::Right),
        ("commits", Align::Right),
        ("time", Align::Right),
        ("rows/s", Align::Right),
        ("log writes", Align::Right),
        ("mean", Align::Right),
        ("syncs", Align::Right),
        ("waiting", Align::Right),
    ];
    if delayed {
        titles.insert(1, ("durable", Align::Left));
    }
    let mut table = Table::new(&titles);
    for result in &study.results {
        table.push(row(result, delayed));
    }
    lines.extend(table.lines(style));
    if study.results.is_empty() {
        lines.push("  nothing was measured".into());
    }
    lines.push(String::new());
    for sentence in study.sentences() {
        lines.extend(wrap(&clean(&sentence), style.columns(), 12));
    }
    for note in &study.notes {
        let note = wrap(&format!("note: {}", clean(note)), style.columns(), 6);
        lines.extend(note.iter().map(|line| style.paint(Ink::Dim, line)));
    }
    lines.join("\n") + "\n"
}

fn row(result: &CommitResult, delayed: bool) -> Vec<Cell> {
    let mut cells: Vec<Cell> = vec![
        result.engine.as_str().into(),
        number::count(result.batch).into(),
        number::count(result.commits).into(),
        number::time(result.seconds * 1e9).into(),
        number::rate(result.rows_per_s().round()).into(),
        number::or_dash(result.log.writes, number::count).into(),
        number::or_dash(result.log.write_bytes_mean(), number::bytes).into(),
        number::or_dash(result.syncs(), number::count).into(),
        number::or_dash(result.wait_share(), number::share).into(),
    ];
    if delayed {
        let durability = match result.durability {
            Durability::Full => "full",
            Durability::Delayed => "delayed",
        };
        cells.insert(1, durability.into());
    }
    cells
}
