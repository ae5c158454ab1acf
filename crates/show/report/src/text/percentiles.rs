//! The table of percentiles. Those with too few I/Os behind them are marked.

use super::style::{Ink, Style};
use super::table::{Align, Cell, Table};
use crate::number;
use findings::ladder::{LADDER, Rung};
use workload::{LatencyHistogram, RunResult};

/// A column: its title and its latencies.
fn columns(result: &RunResult) -> Vec<(&'static str, LatencyHistogram)> {
    let (read, write) = (&result.read.latency, &result.write.latency);
    let mut columns = Vec::new();
    let filled = |latencies: &LatencyHistogram| latencies.count() > 0;
    if filled(read) {
        columns.push(("read", read.clone()));
    }
    if filled(write) {
        columns.push(("write", write.clone()));
    }
    if filled(read) && filled(write) {
        columns.push(("total", result.latency()));
    }
    if let Some(response) = &result.response {
        let mut waited = response.read.clone();
        waited.merge(&response.write);
        columns.push(("response", waited));
    }
    if filled(&result.sync.latency) {
        columns.push(("sync", result.sync.latency.clone()));
    }
    columns
}

pub(super) fn percentiles(result: &RunResult, style: &Style) -> Vec<String> {
    let columns = columns(result);
    if columns.iter().all(|(_, latencies)| latencies.count() == 0) {
        return vec!["No latencies: no I/O completed, or the result does not carry them".into()];
    }
    let mut titles = vec![("percentile", Align::Right)];
    titles.extend(columns.iter().map(|(title, _)| (*title, Align::Right)));
    let mut table = Table::new(&titles);
    let mut push = |name: &'static str, cell: &dyn Fn(&LatencyHistogram) -> Cell| {
        let mut row: Vec<Cell> = vec![name.into()];
        row.extend(columns.iter().map(|(_, latencies)| cell(latencies)));
        table.push(row);
    };
    push("min", &|latencies| certain(latencies.min_ns()));
    let stands = |rung: &&Rung| columns.iter().any(|(_, latencies)| rung.stands(latencies));
    // The known ones and the first unknown one: the others would repeat the maximum.
    let shown = LADDER.iter().filter(stands).count() + 1;
    for rung in LADDER.iter().take(shown) {
        push(rung.name, &|latencies| match latencies.percentile_ns(rung.percent) {
            Some(ns) if !rung.stands(latencies) => {
                Cell::inked(format!("{}*", number::time(ns as f64)), Ink::Dim)
            }
            ns => certain(ns),
        });
    }
    push("max", &|latencies| certain(latencies.max_ns()));
    let marked = LADDER
        .iter()
        .take(shown)
        .any(|rung| columns.iter().any(|(_, latencies)| latencies.count() > 0 && !rung.stands(latencies)));
    let mut lines = table.lines(style);
    if marked {
        lines.push("  * fewer than ten I/Os took longer: little more than the maximum".into());
    }
    if result.response.is_some() {
        lines.push("  response: from when an I/O was due, as users wait; the others from submission".into());
    }
    lines
}

/// A time with space for a mark after it.
fn certain(ns: Option<u64>) -> Cell {
    ns.map_or(number::NONE.into(), |ns| format!("{} ", number::time(ns as f64))).into()
}
