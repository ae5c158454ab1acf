//! The analysis of a stored stretch.

use super::plain::plain;
use crate::{AnalysisReport, number};
use analyze::{Analysis, AtMost, BusyFile, Coverage, Finding, Gap};
use filestats::{Counters, Figure, FileKind, Meaning, ServiceLevel};
use serde::Serialize;
use serde_json::Value;

/// Output of `headroom history analyze --json`.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Analyze"))]
pub(super) struct Output<'a> {
    /// Version of Headroom that analysed.
    headroom_version: &'a str,
    /// Begin of the stretch, nanoseconds since 1970.
    from_unix_ns: u64,
    /// `from_unix_ns` as RFC 3339.
    from_time: Option<String>,
    /// End of the stretch, nanoseconds since 1970.
    until_unix_ns: u64,
    /// `until_unix_ns` as RFC 3339.
    until_time: Option<String>,
    /// Promised mean latencies.
    service_level: ServiceLevel,
    /// Name of the scale of bands.
    profile: &'static str,
    /// Whether any finding is a warning; then the exit code is 1.
    has_problems: bool,
    /// Each source in the history.
    sources: Vec<Source<'a>>,
    /// Gaps of recorded sources that never gave a capture.
    gaps: &'a [Gap],
}

/// One source of an analysis.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "AnalysedSource"))]
struct Source<'a> {
    /// Its name in the history.
    source: &'a str,
    /// The known part of the stretch.
    coverage: &'a Coverage,
    /// The findings, the worst first.
    findings: &'a [Finding],
    /// The 10 files with the longest time waited.
    busiest: Vec<AnalysedFile<'a>>,
}

/// A file of an analysis.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct AnalysedFile<'a> {
    /// Full name.
    path: &'a str,
    /// The process or server that counts it.
    instance: &'a str,
    /// Its database.
    database: Option<&'a str>,
    /// The use of the file.
    kind: FileKind,
    /// Mount point or drive.
    drive: Option<&'a str>,
    /// The meaning of its counters.
    meaning: Meaning,
    /// Its share of the time waited for all files, 0 to 1.
    share: Option<f64>,
    /// Time waited for it, nanoseconds, all operations.
    stall_ns: Figure<u64>,
    /// Time that these figures cover, nanoseconds.
    known_ns: u64,
    /// Mean outstanding operations.
    outstanding: Figure<f64>,
    /// Size on disk, bytes.
    size_bytes: Figure<u64>,
    /// Reads.
    reads: u64,
    /// Bytes read.
    read_bytes: u64,
    /// Mean latency of a read, nanoseconds.
    read_latency_ns: Figure<f64>,
    /// Writes.
    writes: u64,
    /// Bytes written.
    write_bytes: u64,
    /// Mean latency of a write, nanoseconds.
    write_latency_ns: Figure<f64>,
    /// Syncs.
    syncs: Figure<u64>,
    /// Mean latency of a sync, nanoseconds.
    sync_latency_ns: Figure<f64>,
    /// Latency that 99 of 100 operations did not exceed: the upper end of a histogram's bucket, up to a quarter above
    /// the true figure.
    p99_at_most_ns: AtMost,
}

/// The analysis of a stored stretch, source by source.
pub fn analysis(report: &AnalysisReport) -> Value {
    plain(&Output {
        headroom_version: &report.version,
        from_unix_ns: report.from_unix_ns,
        from_time: number::rfc3339(report.from_unix_ns),
        until_unix_ns: report.until_unix_ns,
        until_time: number::rfc3339(report.until_unix_ns),
        service_level: report.service_level,
        profile: report.profile.name,
        has_problems: report.is_bad(),
        sources: report.sources.iter().map(source).collect(),
        gaps: &report.gaps,
    })
}

fn source(source: &Analysis) -> Source<'_> {
    Source {
        source: &source.source,
        coverage: &source.coverage,
        findings: &source.findings,
        busiest: source.busiest.iter().map(analysed_file).collect(),
    }
}

fn analysed_file(busy: &BusyFile) -> AnalysedFile<'_> {
    let Counters { read, write, sync, .. } = busy.counters;
    AnalysedFile {
        path: &busy.file.path,
        instance: &busy.file.instance,
        database: busy.file.database.as_deref(),
        kind: busy.file.kind,
        drive: busy.file.drive.as_deref(),
        meaning: busy.meaning,
        share: busy.share,
        stall_ns: busy.stall_ns,
        known_ns: busy.known_ns,
        outstanding: busy.outstanding(),
        size_bytes: busy.size_bytes,
        reads: read.count,
        read_bytes: read.bytes,
        read_latency_ns: read.latency_ns(),
        writes: write.count,
        write_bytes: write.bytes,
        write_latency_ns: write.latency_ns(),
        syncs: sync.map(|sync| sync.count),
        sync_latency_ns: busy.counters.sync_latency_ns(),
        p99_at_most_ns: busy.p99_at_most_ns,
    }
}
