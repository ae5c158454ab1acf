//! Tables for spreadsheets: comma separated, a heading, one row a point. A figure that is not known is empty.

use crate::{AnalysisReport, WatchedInterval, number};
use filestats::{Counters, Figure, Interval, Served, TracedIo};
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

/// One I/O of a trace. Flags are separated by spaces; an unknown figure is empty.
pub fn traced_io(io: &TracedIo) -> String {
    let offset = io.offset_bytes.map_or(String::new(), |offset| offset.to_string());
    let flags = io.flags.words().collect::<Vec<_>>().join(" ");
    format!(
        "{},{},{},{},{},{},{offset},{},{},{flags},{},{}",
        io.at_ns,
        io.pid,
        io.tid,
        field(&io.comm),
        io.op.word(),
        field(&io.file),
        io.bytes,
        io.latency_ns,
        io.served.map_or("", Served::word),
        io.n
    )
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
            let fields = [
                field(&source.source),
                weight.into(),
                kind.as_ref().and_then(|kind| kind.as_str()).unwrap_or_default().to_owned(),
                field(finding.instance.as_deref().unwrap_or_default()),
                field(finding.path.as_deref().unwrap_or_default()),
                finding.direction.map_or(String::new(), |direction| direction.to_string()),
                instant(finding.when.first().map(|span| span.from_unix_ns)),
                instant(finding.when.first().map(|span| span.until_unix_ns)),
                finding.stretches.to_string(),
                finding.stall_ns.to_string(),
                field(&finding.text),
                field(&facts.collect::<Vec<String>>().join("; ")),
                field(finding.next.as_deref().unwrap_or_default()),
            ];
            text.push_str(&fields.join(","));
            text.push('\n');
        }
    }
    text
}

/// The rows of one interval of a source without the heading: one for each file, then one for each event that was waited for.
pub fn watch(interval: &WatchedInterval) -> String {
    let when = [
        number::rfc3339(interval.ended_unix_ns).unwrap_or_default(),
        interval.elapsed_ns.map_or(String::new(), |ns| ns.to_string()),
    ];
    let mut text = String::new();
    let mut push = |fields: Vec<String>| {
        text.push_str(&when.iter().chain(&fields).map(String::as_str).collect::<Vec<_>>().join(","));
        text.push('\n');
    };
    for file in &interval.files {
        let identity = &file.row.file;
        let mut fields = vec![
            field(&identity.instance),
            field(identity.database.as_deref().unwrap_or_default()),
            identity.kind.to_string(),
            field(&identity.path),
        ];
        match &file.row.interval {
            Interval::Known(delta) => {
                let Counters { read, write, sync, .. } = delta.counters;
                for ops in [read, write] {
                    fields.extend([ops.count.to_string(), ops.bytes.to_string(), exact(ops.stall_ns)]);
                }
                fields.push(exact(sync.map(|sync| sync.count)));
                fields.push(sync.known().map_or(String::new(), |sync| exact(sync.stall_ns)));
                fields.push(delta.outstanding().known().map_or(String::new(), decimal));
                fields.push(String::new());
            }
            Interval::Unknown(reason) => {
                fields.extend(empty(FILE_COLUMNS));
                fields.push(field(&reason.to_string()));
            }
        }
        fields.push(field(identity.object.as_deref().unwrap_or_default()));
        fields.extend(empty(WAIT_COLUMNS));
        push(fields);
    }
    for wait in &interval.waits {
        let delta = wait.interval.known();
        if delta.is_some_and(|delta| !delta.is_any()) {
            continue;
        }
        let mut fields = vec![field(&wait.instance), String::new(), "wait".into(), field(&wait.event)];
        fields.extend(empty(FILE_COLUMNS));
        fields.push(wait.interval.reason().map_or(String::new(), |reason| field(&reason.to_string())));
        fields.push(String::new());
        fields.push(wait.class.to_string());
        fields.extend([delta.map(|delta| delta.count), delta.map(|delta| delta.wait_ns)].map(given));
        let class = interval.reconciled.iter().find(|one| one.class == wait.class);
        fields.extend([class.map(|one| one.wait_ns), class.map(|one| one.stall_ns)].map(given));
        fields.push(class.map_or(String::new(), |one| one.agreement.to_string()));
        push(fields);
    }
    text
}

fn exact(figure: Figure<u64>) -> String {
    figure.known().map_or(String::new(), |value| value.to_string())
}

fn given(figure: Option<Figure<u64>>) -> String {
    figure.map_or(String::new(), exact)
}

fn empty(columns: usize) -> impl Iterator<Item = String> {
    std::iter::repeat_n(String::new(), columns)
}

/// The results of a matrix, a row for each point.
pub fn matrix(summary: &Summary) -> String {
    let mut text = format!("{MATRIX_HEADING}\n");
    for row in &summary.rows {
        let interval = row.iops.and_then(|estimate| estimate.interval);
        let method = interval.map_or("", |interval| match interval.method {
            Method::MeanT => "mean-t",
            Method::MedianOrder => "median-order",
        });
        let fields = [
            summary.id.to_string(),
            field(&row.target_path),
            row.point.pattern.to_string(),
            row.point.write_percent.to_string(),
            row.point.block_bytes.to_string(),
            row.point.outstanding.to_string(),
            row.point.threads.to_string(),
            row.runs.len().to_string(),
            value(&row.iops),
            interval.map_or(String::new(), |interval| decimal(interval.low)),
            interval.map_or(String::new(), |interval| decimal(interval.high)),
            method.into(),
            value(&row.mib_per_s),
            row.latency_ns.map_or(String::new(), decimal),
            row.latency_ns_p99.map_or(String::new(), |ns| ns.to_string()),
            row.failed.to_string(),
            field(row.skipped.as_deref().unwrap_or_default()),
        ];
        text.push_str(&fields.join(","));
        text.push('\n');
    }
    text
}

fn value(estimate: &Option<Estimate>) -> String {
    estimate.map_or(String::new(), |estimate| decimal(estimate.value))
}

fn decimal(value: f64) -> String {
    format!("{value:.3}")
}

/// RFC 4180. What a spreadsheet would take for a formula by its first character is made text; some skip white space there.
fn field(text: &str) -> String {
    let text =
        if text.trim_start().starts_with(['=', '+', '-', '@']) { format!("'{text}") } else { text.into() };
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}
