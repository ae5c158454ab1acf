//! The analysis of a stored stretch.

use crate::{AnalysisReport, number};
use analyze::{Analysis, BusyFile};
use filestats::Counters;
use serde_json::{Value, json};

/// The analysis of a stored stretch, source by source.
pub fn analysis(report: &AnalysisReport) -> Value {
    json!({
        "headroom_version": report.version,
        "from_unix_ns": report.from_unix_ns,
        "from_time": number::rfc3339(report.from_unix_ns),
        "until_unix_ns": report.until_unix_ns,
        "until_time": number::rfc3339(report.until_unix_ns),
        "service_level": report.service_level,
        "profile": report.profile.name,
        "bad_news": report.is_bad(),
        "sources": report.sources.iter().map(source).collect::<Vec<Value>>(),
        "gaps": report.gaps,
    })
}

fn source(source: &Analysis) -> Value {
    json!({
        "source": source.source,
        "coverage": source.coverage,
        "findings": source.findings,
        "busiest": source.busiest.iter().map(busy_file).collect::<Vec<Value>>(),
    })
}

fn busy_file(busy: &BusyFile) -> Value {
    let Counters { read, write, sync, .. } = busy.counters;
    json!({
        "path": busy.file.path,
        "instance": busy.file.instance,
        "database": busy.file.database,
        "kind": busy.file.kind,
        "drive": busy.file.drive,
        "meaning": busy.meaning,
        "share": busy.share,
        "stall_ns": busy.stall_ns,
        "known_ns": busy.known_ns,
        "outstanding": busy.outstanding(),
        "size_bytes": busy.size_bytes,
        "reads": read.count,
        "read_bytes": read.bytes,
        "read_latency_ns": read.latency_ns(),
        "writes": write.count,
        "write_bytes": write.bytes,
        "write_latency_ns": write.latency_ns(),
        "syncs": sync.map(|sync| sync.count),
        "sync_latency_ns": busy.counters.sync_latency_ns(),
        "p99_at_most_ns": busy.p99_at_most_ns,
    })
}
