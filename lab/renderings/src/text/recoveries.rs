use super::commits::study_lines;
use charts::number;
use experiments::{LeftOut, RecoverStudy};
use report::text::Style;
use report::text::parts::{Cell, Ink, Table, clean};

/// Crashed engines opened again: a row for each recovery, then the conclusions.
pub fn recoveries(study: &RecoverStudy, style: &Style) -> String {
    let title = format!("{}; recovered on {}, {}", study.work(), study.storage(), clean(&study.dir));
    let mut table = Table::from_items(&study.results)
        .left("engine", |result| result.engine.as_str())
        .left("recovery", |result| result.strategy.name())
        .right("first read", |result| number::time(result.first_read_s * 1e9))
        .right("first write", |result| number::time(result.first_write_s * 1e9))
        .right("all", |result| number::time(result.full_s * 1e9))
        .right("pages", |result| number::or_dash(result.pages, number::count))
        .right("MiB/s", |result| number::or_dash(result.mib_per_s(), number::rate))
        .right("log", |result| number::bytes(result.log_bytes as f64))
        .right("I/Os", |result| number::or_dash(result.io.ios(), number::count))
        .right("N", |result| number::or_dash(result.n(), number::rate))
        .naming_left_out();
    study.left_out.iter().for_each(|out| table.push(left_out(out)));
    study_lines(&title, &table, &study.sentences(), &study.all_notes(), style)
}

/// A requested engine without figures has a row; a note has the reason.
fn left_out(out: &LeftOut) -> Vec<Cell> {
    let mut cells = vec![Cell::from(out.engine.as_str()), Cell::inked("left out", Ink::Dim)];
    cells.extend((0..8).map(|_| Cell::from(number::NONE)));
    cells
}
