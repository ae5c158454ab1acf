//! Captures in the shape of the capture table of the SQL Server study (`sys.dm_io_virtual_file_stats`
//! kept in a table): one row for each file of each capture, with cumulative counters and figures derived from them.

use crate::{CaptureFilter, CaptureId, Error, History, rfc3339};
use filestats::{Figure, Sample, Snapshot};
use serde::{Deserialize, Serialize};

/// One file of one capture. All counters are cumulative since the file's epoch began: intervals
/// come from [`History::intervals_between`]. `None` is unknown, or a mean of nothing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CaptureRow {
    /// The capture.
    pub capture_id: CaptureId,
    /// When it was taken, RFC 3339.
    pub capture_date: String,
    /// Mean of all reads, milliseconds.
    pub read_latency_ms: Option<f64>,
    /// Mean of all writes, milliseconds.
    pub write_latency_ms: Option<f64>,
    /// Mean of all reads and writes, milliseconds.
    pub overall_latency_ms: Option<f64>,
    /// Mean bytes of a read.
    pub bytes_per_read: Option<f64>,
    /// Mean bytes of a write.
    pub bytes_per_write: Option<f64>,
    /// Mean bytes of a read or write.
    pub bytes_per_transfer: Option<f64>,
    /// Mount point or drive.
    pub drive: Option<String>,
    /// The database.
    pub database_name: Option<String>,
    /// The engine's number for it.
    pub database_id: Option<u64>,
    /// Distinguishes this file from another of the same name.
    pub file_id: String,
    /// The source's monotonic clock, milliseconds.
    pub sample_ms: f64,
    /// Reads.
    pub reads: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Summed time of the reads, milliseconds.
    pub read_stall_ms: Option<f64>,
    /// Writes.
    pub writes: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// Summed time of the writes, milliseconds.
    pub write_stall_ms: Option<f64>,
    /// Summed time of reads and writes, milliseconds.
    pub total_stall_ms: Option<f64>,
    /// Size on disk, MB (of 1,048,576 bytes).
    pub size_on_disk_mb: Option<f64>,
    /// The engine's handle of the open file.
    pub file_handle: Option<String>,
    /// Full path.
    pub physical_name: String,
}

const NS_PER_MS: f64 = 1e6;

impl History {
    /// Every file of the captures chosen, the oldest capture first.
    ///
    /// # Errors
    /// Where the file cannot be read.
    pub fn captures_table(&self, filter: &CaptureFilter) -> Result<Vec<CaptureRow>, Error> {
        let mut table = Vec::new();
        for capture in self.captures(filter)?.iter().rev() {
            let snapshot = self.snapshot(capture.id)?;
            table
                .extend(snapshot.samples.iter().map(|sample| CaptureRow::new(capture.id, &snapshot, sample)));
        }
        Ok(table)
    }
}

impl CaptureRow {
    fn new(capture_id: CaptureId, snapshot: &Snapshot, sample: &Sample) -> CaptureRow {
        let counters = &sample.counters;
        let transfers = counters.transfers();
        let latency_ms = |latency_ns: Figure<f64>| latency_ns.known().map(|ns| ns / NS_PER_MS);
        let stall_ms = |stall_ns: Figure<u64>| stall_ns.known().map(|ns| ns as f64 / NS_PER_MS);
        CaptureRow {
            capture_id,
            capture_date: rfc3339(snapshot.taken_unix_ns),
            read_latency_ms: latency_ms(counters.read.latency_ns()),
            write_latency_ms: latency_ms(counters.write.latency_ns()),
            overall_latency_ms: latency_ms(transfers.latency_ns()),
            bytes_per_read: counters.read.average_bytes().known(),
            bytes_per_write: counters.write.average_bytes().known(),
            bytes_per_transfer: transfers.average_bytes().known(),
            drive: sample.file.drive.clone(),
            database_name: sample.file.database.clone(),
            database_id: sample.file.database_id,
            file_id: sample.file.file_id.clone(),
            sample_ms: snapshot.clock_ns as f64 / NS_PER_MS,
            reads: counters.read.count,
            bytes_read: counters.read.bytes,
            read_stall_ms: stall_ms(counters.read.stall_ns),
            writes: counters.write.count,
            bytes_written: counters.write.bytes,
            write_stall_ms: stall_ms(counters.write.stall_ns),
            total_stall_ms: stall_ms(transfers.stall_ns),
            size_on_disk_mb: sample.size_bytes.known().map(|bytes| bytes as f64 / (1024.0 * 1024.0)),
            file_handle: sample.file.handle.clone(),
            physical_name: sample.file.path.clone(),
        }
    }
}
