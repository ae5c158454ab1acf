//! pg_stat_database: the reads of each database, and what its sorts and hashes spilled.

use super::answer::{Columns, Table};
use super::server::{Server, ServerState, Subject, UNCOUNTED, ops, untimed};
use filestats::{Counters, Figure, FileKind, Meaning, Ops, Reason, Sample};
use tokio_postgres::SimpleQueryRow;

/// Of all databases, and of the relations that they share, whose row has no name.
pub(super) const READS: &str = "
    SELECT datid, datname, blks_read, blk_read_time, extract(epoch FROM stats_reset) AS reset
      FROM pg_stat_database";

/// Counted when a temporary file is deleted: bytes then in it.
pub(super) const TEMP_FILES: &str = "
    SELECT datid, datname, temp_bytes, extract(epoch FROM stats_reset) AS reset
      FROM pg_stat_database WHERE datname IS NOT NULL";

/// Blocks read by a database's sessions. Up to 15 the samples of the writers have what is written.
pub(super) fn reads(row: &SimpleQueryRow, server: &Server, now: &ServerState) -> Vec<Sample> {
    let Some(count) = row.count("blks_read") else { return Vec::new() };
    let bytes = count.saturating_mul(server.block_bytes);
    let counters = Counters {
        read: ops(count, bytes, row.ms_as_ns("blk_read_time"), now.timing.io),
        write: Ops::ZERO,
        sync: Figure::unknown(Reason::NotCounted),
        busy_ns: Figure::unknown(Reason::NotCounted),
    };
    let subject = Subject { gap: now.gaps.io, ..subject(row, "database", FileKind::Data) };
    vec![server.sample(now, subject, counters)]
}

/// What was spilled, in blocks, as such files are written. That and how often it was read back, and how long
/// it took, is not kept.
pub(super) fn temp_files(row: &SimpleQueryRow, server: &Server, now: &ServerState) -> Vec<Sample> {
    let Some(bytes) = row.count("temp_bytes") else { return Vec::new() };
    let counters = Counters {
        read: UNCOUNTED,
        write: untimed(bytes.div_ceil(server.block_bytes.max(1)), bytes),
        sync: Figure::unknown(Reason::NotCounted),
        busy_ns: Figure::unknown(Reason::NotCounted),
    };
    vec![server.sample(now, subject(row, "temp files", FileKind::Temp), counters)]
}

/// A database that was dropped and made again has another number.
fn subject(row: &impl Columns, path: &str, kind: FileKind) -> Subject {
    let name = row.text("datname");
    let number = row.text("datid").unwrap_or_default().to_owned();
    Subject {
        path: format!("{path}/{}", name.unwrap_or("(shared)")),
        kind,
        database: name.map(str::to_owned).zip(number.parse().ok()),
        file_id: number,
        reset: row.text("reset").unwrap_or_default().to_owned(),
        gap: None,
        meaning: Meaning::BLOCKS,
    }
}

/// When the statistics of a database, and so those of its relations, were last reset.
pub(super) fn reset_of(table: &Table, database: &str) -> String {
    let row = table.iter().find(|row| row.text("datname") == Some(database));
    row.and_then(|row| row.text("reset")).unwrap_or_default().to_owned()
}
