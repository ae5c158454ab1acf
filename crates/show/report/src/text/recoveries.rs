use super::style::{Ink, Style};
use super::table::{Align, Cell, Table};
use super::wrap::{clean, wrap};
use crate::number;
use experiments::{LeftOut, RecoverResult, RecoverStudy};

/// Crashed engines opened again: a row for each recovery, then the conclusions.
pub fn recoveries(study: &RecoverStudy, style: &Style) -> String {
    let title = format!("{}; recovered on {}, {}", study.work(), study.storage(), clean(&study.dir));
    let mut lines = wrap(&title, style.columns(), 3);
    lines.iter_mut().for_each(|line| *line = style.heading(line));
    lines.push(String::new());
    let mut table = Table::new(&[
        ("engine", Align::Left),
        ("recovery", Align::Left),
        ("first read", Align::Right),
        ("first write", Align::Right),
        ("all", Align::Right),
        ("pages", Align::Right),
        ("MiB/s", Align::Right),
        ("log", Align::Right),
        ("I/Os", Align::Right),
        ("N", Align::Right),
    ])
    .naming_left_out();
    study.results.iter().for_each(|result| table.push(row(result)));
    study.left_out.iter().for_each(|out| table.push(left_out(out)));
    lines.extend(table.lines(style));
    if study.results.is_empty() && study.left_out.is_empty() {
        lines.push("  nothing was measured".into());
    }
    lines.push(String::new());
    for sentence in study.sentences() {
        lines.extend(wrap(&clean(&sentence), style.columns(), 12));
    }
    for note in study.all_notes() {
        let note = wrap(&format!("note: {}", clean(&note)), style.columns(), 6);
        lines.extend(note.iter().map(|line| style.paint(Ink::Dim, line)));
    }
    lines.join("\n") + "\n"
}

fn row(result: &RecoverResult) -> Vec<Cell> {
    vec![
        result.engine.as_str().into(),
        result.strategy.name().into(),
        number::time(result.first_read_s * 1e9).into(),
        number::time(result.first_write_s * 1e9).into(),
        number::time(result.full_s * 1e9).into(),
        number::or_dash(result.pages, number::count).into(),
        number::or_dash(result.mib_per_s(), number::rate).into(),
        number::bytes(result.log_bytes as f64).into(),
        number::or_dash(result.io.ios(), number::count).into(),
        number::or_dash(result.n(), number::rate).into(),
    ]
}

/// A requested engine without figures has a row; a note has the reason.
fn left_out(out: &LeftOut) -> Vec<Cell> {
    let mut cells = vec![Cell::from(out.engine.as_str()), Cell::inked("left out", Ink::Dim)];
    cells.extend((0..8).map(|_| Cell::from(number::NONE)));
    cells
}
