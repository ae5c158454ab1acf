//! The files of a checked database.

use crate::files::FileRow;
use filestats::{Delta, Figure, FileKind};
use serde::Serialize;

/// A file of a checked database.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "CheckedFile"))]
pub(super) struct FileOutput {
    /// The process or server that counts, `sqlite pid 812`.
    instance: String,
    /// Its database; null where it has none.
    database: Option<String>,
    /// Full name.
    path: String,
    /// The use of the file.
    kind: FileKind,
    /// Mount point or drive.
    drive: Option<String>,
    /// Time that these figures cover, nanoseconds.
    elapsed_ns: Figure<u64>,
    /// Reads.
    reads: Figure<u64>,
    /// Bytes read.
    read_bytes: Figure<u64>,
    /// Mean latency of a read, nanoseconds.
    read_latency_ns: Figure<f64>,
    /// Writes.
    writes: Figure<u64>,
    /// Bytes written.
    write_bytes: Figure<u64>,
    /// Mean latency of a write, nanoseconds.
    write_latency_ns: Figure<f64>,
    /// Syncs.
    syncs: Figure<u64>,
    /// Mean latency of a sync, nanoseconds.
    sync_latency_ns: Figure<f64>,
    /// Mean size of a read or write, bytes.
    average_bytes: Figure<f64>,
    /// Reads and writes a second.
    iops: Figure<f64>,
    /// Time waited for it, nanoseconds, all operations.
    stall_ns: Figure<u64>,
    /// Its share of the time waited for all files, 0 to 1.
    stall_share: Option<f64>,
    /// Mean outstanding operations.
    outstanding: Figure<f64>,
    /// Latency band of the operations most waited for; null without any.
    band: Option<&'static str>,
    /// Those operations: `read`, `write`, `sync`.
    band_of: Option<&'static str>,
}

impl From<FileRow> for FileOutput {
    fn from(file: FileRow) -> FileOutput {
        let counters = |of: fn(&Delta) -> u64| file.figure(|delta| Figure::Known(of(delta)));
        FileOutput {
            instance: file.row.file.instance.clone(),
            database: file.row.file.database.clone(),
            path: file.row.file.path.clone(),
            kind: file.row.file.kind,
            drive: file.row.file.drive.clone(),
            elapsed_ns: counters(|delta| delta.elapsed_ns),
            reads: counters(|delta| delta.counters.read.count),
            read_bytes: counters(|delta| delta.counters.read.bytes),
            read_latency_ns: file.figure(Delta::read_latency_ns),
            writes: counters(|delta| delta.counters.write.count),
            write_bytes: counters(|delta| delta.counters.write.bytes),
            write_latency_ns: file.figure(Delta::write_latency_ns),
            syncs: file.figure(|delta| delta.counters.sync.map(|sync| sync.count)),
            sync_latency_ns: file.figure(Delta::sync_latency_ns),
            average_bytes: file.average_bytes(),
            iops: file.figure(|delta| Figure::Known(delta.iops())),
            stall_ns: file.stall_ns(),
            stall_share: file.stall_share,
            outstanding: file.figure(Delta::outstanding),
            band: file.grade.map(|grade| grade.band.name),
            band_of: file.grade.map(|grade| grade.of),
        }
    }
}
