//! The I/Os of a trace, and their totals.

use super::plain::plain;
use crate::{OpTotals, TraceFile, TraceSummary};
use filestats::{Served, TracedIo, TracedOp};
use serde::Serialize;
use serde_json::Value;

/// One I/O: a line of `headroom trace --json`, in the order of their ends.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "TracedIo"))]
pub(super) struct IoOutput<'a> {
    /// When it was issued, nanoseconds since the trace began.
    at_ns: u64,
    /// The process.
    pid: u32,
    /// The thread that issued it.
    tid: u32,
    /// The thread's name.
    comm: &'a str,
    /// `read`, `write`, `sync`, or `fault` (a page of a mapped file that was not in memory).
    op: &'static str,
    /// Full name of its file.
    file: &'a str,
    /// Where in the file, bytes; null without an offset, or where it is unknown.
    offset_bytes: Option<u64>,
    /// Bytes moved; 0 of a sync.
    bytes: u64,
    /// Nanoseconds until it was done.
    latency_ns: u64,
    /// How it was issued: `uring`, `aio`, `mmap`, `copy`; `direct`, `dsync`, `osync`, `append` of the open file; `hipri`,
    /// `rwf-dsync`, `rwf-sync`, `nowait`, `rwf-append`, `dontcache` of the call; `fsync`, `fdatasync`, `range`, `msync` of
    /// a sync.
    flags: Vec<&'static str>,
    /// `cache` or `device`; null where that is unknown.
    served_by: Option<&'static str>,
    /// I/Os of its process in flight when it was issued, itself included.
    outstanding: u32,
}

/// The totals of a trace: the last line of `headroom trace --json`.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Trace"))]
pub(super) struct TraceOutput<'a> {
    /// The totals.
    trace: Totals<'a>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "TraceTotals"))]
/// The totals of a trace.
struct Totals<'a> {
    /// The traced I/Os, in words.
    of: &'a str,
    /// How long was traced, nanoseconds.
    elapsed_ns: u64,
    /// I/Os that were printed.
    ios: u64,
    /// Bytes that they moved.
    bytes: u64,
    /// I/Os that were lost because the buffer was full.
    lost: u64,
    /// True: none was lost.
    complete: bool,
    /// Each kind of I/O.
    ops: Vec<OpOutput>,
    /// Each file, in the order of their first I/Os.
    files: Vec<FileOutput<'a>>,
    /// I/Os of files beyond the first 1,000.
    other_files_ios: u64,
    /// Events that this kernel does not report, and how the command ended.
    notes: &'a [String],
}

/// The totals of one kind of I/O.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "TracedOp"))]
struct OpOutput {
    /// The kind of I/O.
    op: &'static str,
    /// Number of I/Os.
    ios: u64,
    /// Bytes that they moved.
    bytes: u64,
    /// Sum of their latencies, nanoseconds.
    stall_ns: u64,
    /// Their latencies.
    latency_ns: LatencyOutput,
}

/// Latencies of one kind of I/O.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "TracedLatency"))]
struct LatencyOutput {
    /// Mean, nanoseconds.
    mean: f64,
    /// Median, nanoseconds.
    p50: Option<f64>,
    /// 99th percentile, nanoseconds.
    p99: Option<f64>,
    /// The longest, nanoseconds.
    max: u64,
}

/// The totals of one file.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "TracedFile"))]
struct FileOutput<'a> {
    /// Full name.
    path: &'a str,
    /// I/Os.
    ios: u64,
    /// Bytes that they moved.
    bytes: u64,
    /// Sum of their latencies, nanoseconds.
    stall_ns: u64,
    /// The trace for `run --replay` that was written of it; null where none was.
    trace: Option<&'a str>,
}

/// One I/O, as `headroom trace --json` prints it in a line.
pub fn traced_io(io: &TracedIo) -> Value {
    plain(&IoOutput {
        at_ns: io.at_ns,
        pid: io.pid,
        tid: io.tid,
        comm: &io.comm,
        op: io.op.word(),
        file: &io.file,
        offset_bytes: io.offset_bytes,
        bytes: io.bytes,
        latency_ns: io.latency_ns,
        flags: io.flags.words().collect(),
        served_by: io.served.map(Served::word),
        outstanding: io.n,
    })
}

/// The totals of a trace: the last line of `headroom trace --json`.
pub fn trace(traced: &TraceSummary) -> Value {
    plain(&TraceOutput {
        trace: Totals {
            of: &traced.of,
            elapsed_ns: traced.elapsed_ns,
            ios: traced.ios(),
            bytes: traced.bytes(),
            lost: traced.lost,
            complete: traced.lost == 0,
            ops: traced.by_op().map(op).collect(),
            files: traced.files.iter().map(file).collect(),
            other_files_ios: traced.other_files_ios,
            notes: &traced.notes,
        },
    })
}

fn op((op, totals): (TracedOp, &OpTotals)) -> OpOutput {
    OpOutput {
        op: op.word(),
        ios: totals.ios,
        bytes: totals.bytes,
        stall_ns: totals.stall_ns,
        latency_ns: LatencyOutput {
            mean: totals.mean_ns(),
            p50: totals.percentile_ns(50.0),
            p99: totals.percentile_ns(99.0),
            max: totals.max_ns,
        },
    }
}

fn file(file: &TraceFile) -> FileOutput<'_> {
    FileOutput {
        path: &file.path,
        ios: file.ios,
        bytes: file.bytes,
        stall_ns: file.stall_ns,
        trace: file.trace.as_deref(),
    }
}
