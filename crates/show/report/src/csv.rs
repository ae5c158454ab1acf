//! Tables for spreadsheets: comma separated, a heading, one row a point. A figure that is not known is empty.

mod cell;

pub use cell::{Cell, row};

use crate::{AnalysisReport, WatchedInterval, number};
use filestats::{Counters, Interval, Served, TracedIo};
use findings::Weight;
use matrix::{Estimate, Method, Summary};

/// The heading of [`matrix`], by which a file is recognised.
pub const MATRIX_HEADING: &str = "matrix,target,pattern,write_percent,block_bytes,outstanding,threads,runs,\
    iops,iops_low,iops_high,interval,mib_per_s,latency_ns,latency_ns_p99,failed,skipped";

/// The heading of [`watch`]. Times are nanoseconds, rates a second.
pub const WATCH_HEADING: &str = "at,elapsed_ns,instance,database,kind,path,reads,read_bytes,read_ns,writes,\
    write_bytes,write_ns,syncs,sync_ns,outstanding,unknown,object,class,waits,wait_ns,class_wait_ns,\
    class_stall_ns,agreement";
/// Columns that only files have, and columns that only waits have.
const FILE_COLUMNS: usize = 9;
const WAIT_COLUMNS: usize = 6;

/// The heading of [`traced_io`].
pub const TRACE_HEADING: &str =
    "at_ns,pid,tid,comm,op,file,offset_bytes,bytes,latency_ns,flags,served_by,outstanding";

/// One I/O of a trace, without a line break. Flags are separated by spaces; an unknown figure is empty.
pub fn traced_io(io: &TracedIo) -> String {
    let mut line = row([
        io.at_ns.into(),
        io.pid.into(),
        io.tid.into(),
        (*io.comm).into(),
        io.op.word().into(),
        (*io.file).into(),
        io.offset_bytes.into(),
        io.bytes.into(),
        io.latency_ns.into(),
        io.flags.words().collect::<Vec<_>>().join(" ").into(),
        io.served.map(Served::word).into(),
        io.n.into(),
    ]);
    line.pop();
    line
}

/// The heading of [`analysis`].
pub const ANALYSIS_HEADING: &str =
    "source,weight,kind,instance,path,direction,from,until,stretches,stall_ns,text,facts,next";

/// The findings of all sources, a row each. Facts are `what=value unit`, with `;` between; from and until are those of
/// the longest stretch.
pub fn analysis(report: &AnalysisReport) -> String {
    let mut text = format!("{ANALYSIS_HEADING}\n");
    for source in &report.sources {
        for finding in &source.findings {
            let weight = match finding.weight {
                Weight::Good => "good",
                Weight::Note => "note",
                Weight::Warning => "warning",
            };
            // Kinds are plain words in JSON.
            let kind = serde_json::to_value(finding.kind).ok();
            let instant = |unix_ns: Option<u64>| unix_ns.and_then(number::rfc3339).unwrap_or_default();
            let facts =
                finding.facts.iter().map(|fact| format!("{}={} {}", fact.what, fact.value, fact.unit));
            text.push_str(&row([
                source.source.as_str().into(),
                weight.into(),
                kind.as_ref().and_then(|kind| kind.as_str()).into(),
                finding.instance.as_deref().into(),
                finding.path.as_deref().into(),
                finding.direction.map(|direction| direction.to_string()).into(),
                instant(finding.when.first().map(|span| span.from_unix_ns)).into(),
                instant(finding.when.first().map(|span| span.until_unix_ns)).into(),
                finding.stretches.into(),
                finding.stall_ns.into(),
                finding.text.as_str().into(),
                facts.collect::<Vec<String>>().join("; ").into(),
                finding.next.as_deref().into(),
            ]));
        }
    }
    text
}

/// The rows of one interval of a source without the heading: one for each file, then one for each event that was waited for.
pub fn watch(interval: &WatchedInterval) -> String {
    let when: [Cell; 2] = [number::rfc3339(interval.ended_unix_ns).into(), interval.elapsed_ns.into()];
    let mut text = String::new();
    let mut push = |cells: Vec<Cell>| text.push_str(&row(when.iter().cloned().chain(cells)));
    for file in &interval.files {
        let identity = &file.row.file;
        let mut cells: Vec<Cell> = vec![
            identity.instance.as_str().into(),
            identity.database.as_deref().into(),
            identity.kind.to_string().into(),
            identity.path.as_str().into(),
        ];
        match &file.row.interval {
            Interval::Known(delta) => {
                let Counters { read, write, sync, .. } = delta.counters;
                for ops in [read, write] {
                    cells.extend([ops.count.into(), ops.bytes.into(), ops.stall_ns.into()]);
                }
                cells.push(sync.map(|sync| sync.count).into());
                cells.push(sync.known().map(|sync| sync.stall_ns).into());
                cells.push(delta.outstanding().known().map(Cell::decimal).into());
                cells.push(Cell::default());
            }
            Interval::Unknown(reason) => {
                cells.extend(empty(FILE_COLUMNS));
                cells.push(reason.to_string().into());
            }
        }
        cells.push(identity.object.as_deref().into());
        cells.extend(empty(WAIT_COLUMNS));
        push(cells);
    }
    for wait in &interval.waits {
        let delta = wait.interval.known();
        if delta.is_some_and(|delta| !delta.is_any()) {
            continue;
        }
        let mut cells: Vec<Cell> =
            vec![wait.instance.as_str().into(), Cell::default(), "wait".into(), wait.event.as_str().into()];
        cells.extend(empty(FILE_COLUMNS));
        cells.push(wait.interval.reason().map(|reason| reason.to_string()).into());
        cells.push(Cell::default());
        cells.push(wait.class.to_string().into());
        cells.extend([delta.map(|delta| delta.count), delta.map(|delta| delta.wait_ns)].map(Cell::from));
        let class = interval.reconciled.iter().find(|one| one.class == wait.class);
        cells.extend([class.map(|one| one.wait_ns), class.map(|one| one.stall_ns)].map(Cell::from));
        cells.push(class.map(|one| one.agreement.to_string()).into());
        push(cells);
    }
    text
}

fn empty(columns: usize) -> impl Iterator<Item = Cell> {
    std::iter::repeat_n(Cell::default(), columns)
}

/// The results of a matrix, a row for each point.
pub fn matrix(summary: &Summary) -> String {
    let mut text = format!("{MATRIX_HEADING}\n");
    for point in &summary.rows {
        let interval = point.iops.and_then(|estimate| estimate.interval);
        let method = interval.map_or("", |interval| match interval.method {
            Method::MeanT => "mean-t",
            Method::MedianOrder => "median-order",
        });
        text.push_str(&row([
            summary.id.into(),
            point.target_path.as_str().into(),
            point.point.pattern.to_string().into(),
            u64::from(point.point.write_percent).into(),
            point.point.block_bytes.into(),
            point.point.outstanding.into(),
            point.point.threads.into(),
            point.runs.len().into(),
            value(&point.iops),
            interval.map(|interval| Cell::decimal(interval.low)).into(),
            interval.map(|interval| Cell::decimal(interval.high)).into(),
            method.into(),
            value(&point.mib_per_s),
            point.latency_ns.map(Cell::decimal).into(),
            point.latency_ns_p99.into(),
            point.failed.into(),
            point.skipped.as_deref().into(),
        ]));
    }
    text
}

fn value(estimate: &Option<Estimate>) -> Cell {
    estimate.map(|estimate| Cell::decimal(estimate.value)).into()
}
