use super::style::{Ink, Style};
use super::table::{Align, Cell, Table};
use super::wrap::{clean, clip_start};
use crate::{WatchedInterval, number};
use filestats::{Counters, Delta, Figure, FileInterval, Interval, Ops, Reason, Sample, Snapshot};

/// The cumulative figures of files at both captures beside those of the interval between them, then the waits of the
/// interval. `between` is of the same captures, with all of their files.
///
/// A cumulative mean hides the present, so that it never stands alone. An unknown figure has its reason.
pub fn intervals(
    earlier: &Snapshot,
    later: &Snapshot,
    rows: &[FileInterval],
    between: &WatchedInterval,
    style: &Style,
) -> String {
    let elapsed = later
        .clock_ns
        .checked_sub(earlier.clock_ns)
        .map_or(number::NONE.into(), |ns| number::duration(ns as f64 / 1e9));
    let mut lines = vec![style.heading(&clean(&format!(
        "{} {} to {} ({elapsed})",
        super::wrap::source_heading(&later.source),
        number::instant(earlier.taken_unix_ns),
        number::instant(later.taken_unix_ns)
    )))];
    for row in rows {
        lines.push(String::new());
        lines.extend(file(earlier, later, row, style));
    }
    if rows.is_empty() {
        lines.push("no files in either capture".into());
    }
    lines.push(String::new());
    lines.push(style.heading("waits between them, of all sessions and files"));
    let waits = super::waits::waits(&between.waits, &between.reconciled, style);
    match (waits.is_empty(), between.waits.is_empty()) {
        (false, _) => lines.extend(waits),
        (true, false) => lines.push(style.paint(Ink::Dim, "  no session waited for I/O")),
        (true, true) => lines.push(style.paint(Ink::Dim, "  this source reports none")),
    }
    lines.join("\n") + "\n"
}

fn sample<'a>(snapshot: &'a Snapshot, row: &FileInterval) -> Option<&'a Sample> {
    snapshot.samples.iter().find(|sample| sample.file.key() == row.file.key())
}

fn file(earlier: &Snapshot, later: &Snapshot, row: &FileInterval, style: &Style) -> Vec<String> {
    let identity = &row.file;
    let database = identity.database.as_ref().map_or(String::new(), |name| format!("{name}, "));
    let object = identity.object.as_ref().map_or(String::new(), |name| format!("{name}, "));
    let about = clean(&format!("{object}{database}{}, {}", identity.kind, identity.instance));
    let path = clip_start(&clean(&identity.path), style.columns());
    // Where both do not fit, the path has a line of its own.
    let apart =
        if path.chars().count() + 2 + about.chars().count() > style.columns() { "\n  " } else { "  " };
    let mut lines = vec![format!("{}{apart}{}", style.heading(&path), style.paint(Ink::Dim, &about))];

    let mut titles = vec![("", Align::Left)];
    let right = ["reads", "read ms", "KiB", "writes", "write ms", "KiB", "syncs", "sync ms", "N"];
    titles.extend(right.map(|title| (title, Align::Right)));
    let mut table = Table::new(&titles);
    let mut reasons = Vec::new();
    for (name, snapshot, missing) in [
        ("until the earlier capture", earlier, "not there: first seen in the later one"),
        ("until the later capture", later, "not there: gone since the earlier one"),
    ] {
        match sample(snapshot, row) {
            Some(sample) => {
                table.push(figures(name, &sample.counters, None, &mut reasons));
            }
            None => table.push(vec![name.into(), Cell::inked(missing, Ink::Dim)]),
        }
    }
    match &row.interval {
        Interval::Known(delta) => {
            table.push(figures("between them", &delta.counters, Some(delta), &mut reasons));
            table.push(rates(delta));
        }
        Interval::Unknown(reason) => {
            table.push(vec!["between them".into(), format!("unknown: {reason}").into()]);
        }
    }
    lines.extend(table.lines(style));
    with_reasons(lines, reasons, style)
}

fn with_reasons(mut lines: Vec<String>, mut reasons: Vec<Reason>, style: &Style) -> Vec<String> {
    reasons.sort_unstable();
    reasons.dedup();
    reasons.retain(|reason| *reason != Reason::NoOperations);
    if !reasons.is_empty() {
        let words: Vec<String> = reasons.iter().map(ToString::to_string).collect();
        lines.push(style.paint(Ink::Dim, &format!("  ? {}", words.join("; "))));
    }
    lines
}

fn figures(
    name: &'static str,
    counters: &Counters,
    delta: Option<&Delta>,
    reasons: &mut Vec<Reason>,
) -> Vec<Cell> {
    let mut write = |figure: Figure<f64>, write: fn(f64) -> String| match figure {
        Figure::Known(value) => Cell::from(write(value)),
        Figure::Unknown { unknown: Reason::NoOperations } => Cell::inked(number::NONE, Ink::Dim),
        Figure::Unknown { unknown: Reason::BelowResolution } => number::BELOW_MILLISECOND.into(),
        Figure::Unknown { unknown } => {
            reasons.push(unknown);
            Cell::inked("?", Ink::Dim)
        }
    };
    let kib = |bytes: f64| number::rate(bytes / 1024.0);
    let (read, written) = (counters.read, counters.write);
    let syncs = counters.sync.map(|sync| sync.count as f64);
    let sync_ns = counters.sync_latency_ns();
    let outstanding = delta.map_or(Cell::from(""), |delta| write(delta.outstanding(), number::rate));
    let mut cells = vec![Cell::inked(name, if delta.is_some() { Ink::Bold } else { Ink::Plain })];
    for ops in [read, written] {
        cells.push(number::count(ops.count).into());
        cells.push(write(ops.latency_ns(), number::millis));
        cells.push(write(ops.average_bytes(), kib));
    }
    cells.push(write(syncs, number::rate));
    cells.push(write(sync_ns, number::millis));
    cells.push(outstanding);
    cells
}

fn rates(delta: &Delta) -> Vec<Cell> {
    let rate = |ops: &Ops| Cell::from(number::rate(delta.per_second(ops)));
    let syncs = delta.counters.sync.known().map_or(Cell::from(""), |sync| rate(&sync));
    let (read, write) = (delta.counters.read, delta.counters.write);
    let empty = || Cell::from("");
    vec!["a second".into(), rate(&read), empty(), empty(), rate(&write), empty(), empty(), syncs]
}
