//! The I/Os of a trace, and their totals.

use crate::{OpTotals, TraceFile, TraceSummary};
use filestats::{Served, TracedIo, TracedOp};
use serde_json::{Value, json};

/// One I/O, as `headroom trace --json` prints it in a line.
pub fn traced_io(io: &TracedIo) -> Value {
    json!({
        "at_ns": io.at_ns,
        "pid": io.pid,
        "tid": io.tid,
        "comm": &*io.comm,
        "op": io.op.word(),
        "file": &*io.file,
        "offset_bytes": io.offset_bytes,
        "bytes": io.bytes,
        "latency_ns": io.latency_ns,
        "flags": io.flags.words().collect::<Vec<_>>(),
        "served_by": io.served.map(Served::word),
        "outstanding": io.n,
    })
}

/// The totals of a trace: the last line of `headroom trace --json`.
pub fn trace(traced: &TraceSummary) -> Value {
    let op = |(op, totals): (TracedOp, &OpTotals)| {
        let at = |percent| totals.percentile_ns(percent);
        json!({
            "op": op.word(),
            "ios": totals.ios,
            "bytes": totals.bytes,
            "stall_ns": totals.stall_ns,
            "latency_ns": {
                "mean": totals.mean_ns(),
                "p50": at(50.0),
                "p99": at(99.0),
                "max": totals.max_ns,
            },
        })
    };
    let file = |file: &TraceFile| {
        json!({
            "path": &*file.path,
            "ios": file.ios,
            "bytes": file.bytes,
            "stall_ns": file.stall_ns,
            "trace": file.trace,
        })
    };
    json!({
        "trace": {
            "of": traced.of,
            "elapsed_ns": traced.elapsed_ns,
            "ios": traced.ios(),
            "bytes": traced.bytes(),
            "lost": traced.lost,
            "complete": traced.lost == 0,
            "ops": traced.by_op().map(op).collect::<Vec<Value>>(),
            "files": traced.files.iter().map(file).collect::<Vec<Value>>(),
            "other_files_ios": traced.other_files_ios,
            "notes": traced.notes,
        },
    })
}
