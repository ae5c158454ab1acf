//! An interval of a source: files, devices, waits.

use super::plain::plain;
use crate::{WatchedDevice, WatchedFile, WatchedInterval, number, wording};
use filestats::waits::Reconciled;
use filestats::{
    Counters, Delta, Figure, FileInterval, FileKind, Interval, Meaning, Ops, Profile, Reason, WaitClass,
    WaitInterval,
};
use serde::Serialize;
use serde_json::Value;

/// One interval of a source: a line of `headroom watch --json`.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Watch"))]
pub(super) struct Output<'a> {
    /// End of the interval, RFC 3339.
    at: Option<String>,
    /// End of the interval, nanoseconds since 1970.
    at_unix_ns: u64,
    /// The source as it was named, without credentials.
    source: &'a str,
    /// Length of the interval on the source's clock, nanoseconds; null where it could not be read.
    elapsed_ns: Option<u64>,
    /// Its files.
    files: Vec<FileOutput<'a>>,
    /// The part of the I/O below the page cache, where the source counts it. It is in `files` already.
    below: Vec<FileOutput<'a>>,
    /// The devices that the files lie on, or that the source counts.
    devices: Vec<DeviceOutput<'a>>,
    /// Notes that a reader must know, sentences.
    notes: &'a [String],
    #[serde(flatten)]
    waits: WaitsOutput<'a>,
}

/// The waits of an interval.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Waits"))]
pub struct WaitsOutput<'a> {
    /// Waits of sessions.
    waits: Vec<WaitOutput<'a>>,
    /// Each class of waits compared with the files that it is for.
    reconciled: Vec<ReconciledOutput<'a>>,
}

/// The interval of a file.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "WatchedFile"))]
struct FileOutput<'a> {
    #[serde(flatten)]
    row: RowOutput<'a>,
    /// Size at the end of the interval, bytes.
    size_bytes: Figure<u64>,
    /// The meaning of its counters.
    meaning: Meaning,
    /// The engine's name of its content; null where not known.
    object: Option<&'a str>,
}

/// The interval of a device. Comparisons with its capability are null where that is not in the history.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "WatchedDevice"))]
struct DeviceOutput<'a> {
    #[serde(flatten)]
    row: RowOutput<'a>,
    /// Share of the storage in use, 1 = all.
    utilisation: Option<f64>,
    /// The multiple of this load that can be carried; null also with too little I/O.
    headroom: Option<f64>,
    /// Latency of reads expected at this load, nanoseconds.
    read_expected_ns: Option<f64>,
    /// Latency of writes expected at this load, nanoseconds.
    write_expected_ns: Option<f64>,
}

/// The interval of a file or device. Where nothing is known of it, `unknown` is the reason and the figures are absent.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "WatchedRow"))]
struct RowOutput<'a> {
    /// The file; a PostgreSQL row is named by who does the I/O.
    path: &'a str,
    /// The process or server that counts it.
    instance: &'a str,
    /// Its database; null where it has none.
    database: Option<&'a str>,
    /// The use of the file.
    kind: FileKind,
    /// Distinguishes it from another of its name.
    file_id: &'a str,
    /// Mount point; null where not known.
    drive: Option<&'a str>,
    /// Worst band of its latencies; null without I/O.
    band: Option<&'static str>,
    /// Why the interval is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    unknown: Option<Reason>,
    #[serde(flatten)]
    figures: Option<FiguresOutput>,
}

/// The figures of a known interval.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "WatchedFigures"))]
struct FiguresOutput {
    /// Reads.
    reads: u64,
    /// Bytes read, as returned.
    read_bytes: u64,
    /// Summed time of the reads, nanoseconds.
    read_ns: Figure<u64>,
    /// Mean latency of a read, nanoseconds.
    read_latency_ns: Figure<f64>,
    /// Writes.
    writes: u64,
    /// Bytes written.
    write_bytes: u64,
    /// Summed time of the writes, nanoseconds.
    write_ns: Figure<u64>,
    /// Mean latency of a write, nanoseconds.
    write_latency_ns: Figure<f64>,
    /// Syncs.
    syncs: Figure<u64>,
    /// Summed time of the syncs, nanoseconds.
    sync_ns: Figure<u64>,
    /// Mean latency of a sync, nanoseconds.
    sync_latency_ns: Figure<f64>,
    /// Of devices: time with any I/O outstanding, nanoseconds.
    busy_ns: Figure<u64>,
    /// Mean outstanding I/Os: stall / elapsed.
    outstanding: Figure<f64>,
    /// Reads and writes a second.
    iops: f64,
    /// Their MiB a second.
    mib_per_s: f64,
}

/// A wait event. Where nothing is known of it, `unknown` is the reason and the figures are absent.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Wait"))]
struct WaitOutput<'a> {
    /// The process or server that counts it.
    instance: &'a str,
    /// The engine's name of it.
    event: &'a str,
    /// Its class.
    class: WaitClass,
    /// The cause that a wait of its class implies, a sentence.
    implies: &'static str,
    /// Why the interval is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    unknown: Option<Reason>,
    #[serde(flatten)]
    figures: Option<WaitFigures>,
}

/// The figures of a known interval of a wait event.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct WaitFigures {
    /// Waits.
    waits: Figure<u64>,
    /// Their summed time, nanoseconds.
    wait_ns: Figure<u64>,
    /// Mean time of a wait, nanoseconds.
    mean_ns: Figure<f64>,
    /// Mean number of sessions that waited.
    sessions: Figure<f64>,
}

/// A class of waits compared with its files.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "ReconciledWaits"))]
struct ReconciledOutput<'a> {
    #[serde(flatten)]
    reconciled: &'a Reconciled,
    /// The comparison as a sentence.
    text: String,
}

/// One interval of a source, as `headroom watch --json` prints it in a line.
pub fn watch(interval: &WatchedInterval, profile: &Profile) -> Value {
    plain(&Output {
        at: number::rfc3339(interval.ended_unix_ns),
        at_unix_ns: interval.ended_unix_ns,
        source: &interval.source,
        elapsed_ns: interval.elapsed_ns,
        files: interval.files.iter().map(|file| watched_file(file, profile)).collect(),
        below: interval.below.iter().map(|file| watched_file(file, profile)).collect(),
        devices: interval.devices.iter().map(watched_device).collect(),
        notes: &interval.notes,
        waits: waits(interval),
    })
}

/// The waits of an interval compared with the times of the files: `waits` and `reconciled`.
pub fn waits(interval: &WatchedInterval) -> WaitsOutput<'_> {
    let reconciled =
        |reconciled| ReconciledOutput { reconciled, text: wording::waits::reconciliation(reconciled) };
    WaitsOutput {
        waits: interval.waits.iter().map(wait).collect(),
        reconciled: interval.reconciled.iter().map(reconciled).collect(),
    }
}

fn watched_device(device: &WatchedDevice) -> DeviceOutput<'_> {
    let load = device.load.unwrap_or_default();
    DeviceOutput {
        row: watched(&device.row, None),
        utilisation: load.utilisation,
        headroom: load.headroom,
        read_expected_ns: load.read_expected_ns,
        write_expected_ns: load.write_expected_ns,
    }
}

fn watched_file<'a>(file: &'a WatchedFile, profile: &Profile) -> FileOutput<'a> {
    FileOutput {
        row: watched(&file.row, file.band(profile).map(|band| band.name)),
        size_bytes: file.size_bytes,
        meaning: file.row.meaning,
        object: file.row.file.object.as_deref(),
    }
}

fn watched<'a>(row: &'a FileInterval, band: Option<&'static str>) -> RowOutput<'a> {
    let (unknown, figures) = match &row.interval {
        Interval::Unknown(reason) => (Some(*reason), None),
        Interval::Known(delta) => (None, Some(figures(delta))),
    };
    RowOutput {
        path: &row.file.path,
        instance: &row.file.instance,
        database: row.file.database.as_deref(),
        kind: row.file.kind,
        file_id: &row.file.file_id,
        drive: row.file.drive.as_deref(),
        band,
        unknown,
        figures,
    }
}

fn figures(delta: &Delta) -> FiguresOutput {
    let Counters { read, write, sync, busy_ns } = delta.counters;
    FiguresOutput {
        reads: read.count,
        read_bytes: read.bytes,
        read_ns: read.stall_ns,
        read_latency_ns: read.latency_ns(),
        writes: write.count,
        write_bytes: write.bytes,
        write_ns: write.stall_ns,
        write_latency_ns: write.latency_ns(),
        syncs: sync.map(|sync| sync.count),
        sync_ns: sync.map(|sync| sync.stall_ns).flatten(),
        sync_latency_ns: sync.map(|sync: Ops| sync.latency_ns()).flatten(),
        busy_ns,
        outstanding: delta.outstanding(),
        iops: delta.iops(),
        mib_per_s: delta.mib_per_s(),
    }
}

fn wait(wait: &WaitInterval) -> WaitOutput<'_> {
    let figures = wait.interval.known().map(|delta| WaitFigures {
        waits: delta.count,
        wait_ns: delta.wait_ns,
        mean_ns: delta.mean_ns(),
        sessions: delta.sessions(),
    });
    WaitOutput {
        instance: &wait.instance,
        event: &wait.event,
        class: wait.class,
        implies: wait.class.implies(),
        unknown: wait.interval.reason(),
        figures,
    }
}
