//! The table of percentiles. Those with too few I/Os behind them are marked.

use super::style::{Ink, Style};
use super::table::{Align, Cell, Table};
use super::wrap::clean;
use crate::number;
use findings::ladder::{LADDER, Rung};
use std::borrow::Cow;
use workload::{LatencyFigures, RunResult};

/// A column: its title and its latencies.
fn columns(result: &RunResult) -> Vec<(&'static str, LatencyFigures<'_>)> {
    let (read, write, sync) = (result.read_latency(), result.write_latency(), result.sync_latency());
    let mut columns = Vec::new();
    let both = read.count() > 0 && write.count() > 0;
    if read.count() > 0 {
        columns.push(("read", read));
    }
    if write.count() > 0 {
        columns.push(("write", write));
    }
    if both {
        columns.push(("total", result.total_latency()));
    }
    if let Some(response) = &result.response {
        columns.push(("response", LatencyFigures::Counted(Cow::Owned(response.total()))));
    }
    if sync.count() > 0 {
        columns.push(("sync", sync));
    }
    columns
}

pub(super) fn percentiles(result: &RunResult, style: &Style) -> Vec<String> {
    let columns = columns(result);
    if columns.iter().all(|(_, latencies)| latencies.count() == 0) {
        let why = match result.ios() {
            0 => "no I/O completed",
            _ => "the tool that ran this reported none",
        };
        return vec![format!("No latencies: {why}")];
    }
    let known =
        |percent: f64| columns.iter().any(|(_, latencies)| latencies.percentile_ns(percent).is_some());
    if !LADDER.iter().any(|rung| known(rung.percent)) && !known(100.0) {
        return vec!["No percentiles: the tool that ran this reported none".into()];
    }
    let mut titles = vec![("percentile", Align::Right)];
    titles.extend(columns.iter().map(|(title, _)| (*title, Align::Right)));
    let mut table = Table::new(&titles);
    let mut push = |name: &'static str, cell: &dyn Fn(&LatencyFigures) -> Cell| {
        let mut row: Vec<Cell> = vec![name.into()];
        row.extend(columns.iter().map(|(_, latencies)| cell(latencies)));
        table.push(row);
    };
    push("min", &|latencies| certain(latencies.min_ns()));
    let stands = |rung: &&Rung| columns.iter().any(|(_, latencies)| rung.stands(latencies.count()));
    // The known ones and the first unknown one: the others would repeat the maximum.
    let shown = LADDER.iter().filter(stands).count() + 1;
    for rung in LADDER.iter().take(shown).filter(|rung| known(rung.percent)) {
        push(rung.name, &|latencies| match latencies.percentile_ns(rung.percent) {
            Some(ns) if !rung.stands(latencies.count()) => {
                Cell::inked(format!("{}*", number::time(ns as f64)), Ink::Dim)
            }
            ns => certain(ns),
        });
    }
    push("max", &|latencies| certain(latencies.max_ns()));
    let is_marked = |rung: &Rung, latencies: &LatencyFigures| {
        !rung.stands(latencies.count()) && latencies.percentile_ns(rung.percent).is_some()
    };
    let marked =
        LADDER.iter().take(shown).any(|rung| columns.iter().any(|(_, latencies)| is_marked(rung, latencies)));
    let mut lines = table.lines(style);
    if marked {
        lines.push("  * fewer than ten I/Os took longer: little more than the maximum".into());
    }
    if columns.iter().any(|(_, latencies)| latencies.histogram().is_none()) {
        let tool = clean(result.tool.as_deref().unwrap_or("another tool"));
        let total = columns.iter().find(|(title, _)| *title == "total");
        let lacks_total = total.is_some_and(|(_, both)| both.percentile_ns(50.0).is_none());
        let lacking = if lacks_total { "; it reported none of reads and writes together" } else { "" };
        lines.push(format!("  as {tool} reported them{lacking}"));
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
