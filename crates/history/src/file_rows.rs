//! A [`Sample`] as the columns of `files` and `file_changes`, and back.

use crate::exact::{Exact, Json, Word};
use filestats::{Counters, Epoch, Figure, FileIdentity, Latencies, Ops, Reason, Sample};
use rusqlite::types::Type;
use rusqlite::{Connection, Row, named_params};

/// The columns [`sample`] reads, from the view `file_stats` or a join of its tables.
pub(crate) const COLUMNS: &str = "instance, database_name, database_id, file_id, kind, path, drive, handle, \
    epoch, reads, read_bytes, read_stall_ns, read_stall_unknown, writes, write_bytes, write_stall_ns, \
    write_stall_unknown, syncs, syncs_unknown, sync_bytes, sync_stall_ns, sync_stall_unknown, busy_ns, \
    busy_unknown, size_bytes, size_unknown, latencies";

/// Reads a sample from a row with [`COLUMNS`].
pub(crate) fn sample(row: &Row<'_>) -> rusqlite::Result<Sample> {
    let file = FileIdentity {
        instance: row.get("instance")?,
        database: row.get("database_name")?,
        database_id: row.get::<_, Option<Exact>>("database_id")?.map(|Exact(id)| id),
        file_id: row.get("file_id")?,
        kind: word(row, "kind")?,
        path: row.get("path")?,
        drive: row.get("drive")?,
        handle: row.get("handle")?,
    };
    let read = Ops {
        count: exact(row, "reads")?,
        bytes: exact(row, "read_bytes")?,
        stall_ns: figure(row, "read_stall_ns", "read_stall_unknown")?,
    };
    let write = Ops {
        count: exact(row, "writes")?,
        bytes: exact(row, "write_bytes")?,
        stall_ns: figure(row, "write_stall_ns", "write_stall_unknown")?,
    };
    let sync = match figure(row, "syncs", "syncs_unknown")? {
        Figure::Unknown { unknown } => Figure::unknown(unknown),
        Figure::Known(count) => Figure::Known(Ops {
            count,
            bytes: exact(row, "sync_bytes")?,
            stall_ns: figure(row, "sync_stall_ns", "sync_stall_unknown")?,
        }),
    };
    Ok(Sample {
        file,
        epoch: Epoch(row.get("epoch")?),
        counters: Counters { read, write, sync, busy_ns: figure(row, "busy_ns", "busy_unknown")? },
        size_bytes: figure(row, "size_bytes", "size_unknown")?,
        latencies: row.get::<_, Option<Json<Latencies>>>("latencies")?.map(|Json(latencies)| latencies),
    })
}

/// Adds a file that was not in the capture before; its number.
pub(crate) fn insert_file(
    connection: &Connection,
    source: &str,
    capture: i64,
    sample: &Sample,
) -> rusqlite::Result<i64> {
    let file = &sample.file;
    connection
        .prepare_cached(
            "INSERT INTO files (source, first_capture_id, instance, database_name, database_id, file_id, \
             kind, path, drive, handle, epoch) VALUES (:source, :capture, :instance, :database_name, \
             :database_id, :file_id, :kind, :path, :drive, :handle, :epoch)",
        )?
        .execute(named_params! {
            ":source": source,
            ":capture": capture,
            ":instance": file.instance,
            ":database_name": file.database,
            ":database_id": file.database_id.map(Exact),
            ":file_id": file.file_id,
            ":kind": Word(file.kind),
            ":path": file.path,
            ":drive": file.drive,
            ":handle": file.handle,
            ":epoch": sample.epoch.0,
        })?;
    Ok(connection.last_insert_rowid())
}

/// Adds the counters of a file as they are from this capture on.
pub(crate) fn insert_change(
    connection: &Connection,
    file: i64,
    capture: i64,
    sample: &Sample,
) -> rusqlite::Result<()> {
    let Counters { read, write, sync, busy_ns } = &sample.counters;
    let (read_stall_ns, read_stall_unknown) = columns(read.stall_ns);
    let (write_stall_ns, write_stall_unknown) = columns(write.stall_ns);
    let (syncs, syncs_unknown) = columns(sync.map(|sync| sync.count));
    let (sync_stall_ns, sync_stall_unknown) =
        sync.known().map_or((None, None), |sync| columns(sync.stall_ns));
    let (busy_ns, busy_unknown) = columns(*busy_ns);
    let (size_bytes, size_unknown) = columns(sample.size_bytes);
    connection
        .prepare_cached(
            "INSERT INTO file_changes (file, capture_id, reads, read_bytes, read_stall_ns, \
             read_stall_unknown, writes, write_bytes, write_stall_ns, write_stall_unknown, syncs, \
             syncs_unknown, sync_bytes, sync_stall_ns, sync_stall_unknown, busy_ns, busy_unknown, \
             size_bytes, size_unknown, latencies) VALUES (:file, :capture, :reads, :read_bytes, :read_stall_ns, :read_stall_unknown, \
             :writes, :write_bytes, :write_stall_ns, :write_stall_unknown, :syncs, :syncs_unknown, \
             :sync_bytes, :sync_stall_ns, :sync_stall_unknown, :busy_ns, :busy_unknown, :size_bytes, \
             :size_unknown, :latencies)",
        )?
        .execute(named_params! {
            ":file": file,
            ":capture": capture,
            ":reads": Exact(read.count),
            ":read_bytes": Exact(read.bytes),
            ":read_stall_ns": read_stall_ns,
            ":read_stall_unknown": read_stall_unknown,
            ":writes": Exact(write.count),
            ":write_bytes": Exact(write.bytes),
            ":write_stall_ns": write_stall_ns,
            ":write_stall_unknown": write_stall_unknown,
            ":syncs": syncs,
            ":syncs_unknown": syncs_unknown,
            ":sync_bytes": sync.known().map(|sync| Exact(sync.bytes)),
            ":sync_stall_ns": sync_stall_ns,
            ":sync_stall_unknown": sync_stall_unknown,
            ":busy_ns": busy_ns,
            ":busy_unknown": busy_unknown,
            ":size_bytes": size_bytes,
            ":size_unknown": size_unknown,
            ":latencies": sample.latencies.as_ref().map(Json),
        })?;
    Ok(())
}

fn columns(figure: Figure<u64>) -> (Option<Exact>, Option<Word<Reason>>) {
    (figure.known().map(Exact), figure.reason().map(Word))
}

fn exact(row: &Row<'_>, column: &str) -> rusqlite::Result<u64> {
    row.get::<_, Exact>(column).map(|Exact(value)| value)
}

fn word<T: serde::de::DeserializeOwned>(row: &Row<'_>, column: &str) -> rusqlite::Result<T> {
    row.get::<_, Word<T>>(column).map(|Word(value)| value)
}

fn figure(row: &Row<'_>, value: &str, reason: &str) -> rusqlite::Result<Figure<u64>> {
    if let Some(Exact(value)) = row.get(value)? {
        return Ok(Figure::Known(value));
    }
    match row.get::<_, Option<Word<Reason>>>(reason)? {
        Some(Word(unknown)) => Ok(Figure::unknown(unknown)),
        None => {
            let at = row.as_ref().column_index(reason)?;
            let what = format!("{value} and {reason} are both NULL: somebody changed the row");
            Err(rusqlite::Error::FromSqlConversionFailure(at, Type::Null, what.into()))
        }
    }
}
