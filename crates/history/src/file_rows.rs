//! A [`Sample`] as the columns of `files` and `file_changes`, and back.

use crate::exact::{Exact, Json, Why, Word};
use crate::packed::Packed;
use filestats::{Counters, Epoch, Figure, FileIdentity, Latencies, Meaning, Ops, Sample};
use rusqlite::types::Type;
use rusqlite::{Connection, Row, named_params};

/// The columns [`sample`] reads, from the view `file_stats` or a join of its tables.
pub(crate) const COLUMNS: &str = "instance, database_name, database_id, file_id, kind, path, drive, handle, object, \
    epoch, epoch_reset, meaning, reads, read_bytes, read_stall_ns, read_stall_unknown, writes, write_bytes, write_stall_ns, \
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
        object: row.get("object")?,
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
        epoch: Epoch { run: row.get("epoch")?, reset: row.get("epoch_reset")? },
        meaning: row.get::<_, Json<Meaning>>("meaning").map(|Json(meaning)| meaning)?,
        counters: Counters { read, write, sync, busy_ns: figure(row, "busy_ns", "busy_unknown")? },
        size_bytes: figure(row, "size_bytes", "size_unknown")?,
        latencies: row.get::<_, Option<Packed<Latencies>>>("latencies")?.map(|Packed(latencies)| latencies),
    })
}

/// Adds a file that was not in the capture before; its number. `from_zero`: all that it has was done since then.
pub(crate) fn insert_file(
    connection: &Connection,
    source: &str,
    capture: i64,
    from_zero: bool,
    sample: &Sample,
) -> rusqlite::Result<i64> {
    let file = &sample.file;
    connection
        .prepare_cached(
            "INSERT INTO files (source, first_capture_id, instance, database_name, database_id, file_id, \
             kind, path, drive, handle, object, epoch, epoch_reset, meaning, from_zero) VALUES (:source, :capture, :instance, \
             :database_name, :database_id, :file_id, :kind, :path, :drive, :handle, :object, :epoch, :epoch_reset, \
             :meaning, :from_zero)",
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
            ":object": file.object,
            ":epoch": sample.epoch.run,
            ":epoch_reset": sample.epoch.reset,
            ":meaning": Json(sample.meaning),
            ":from_zero": from_zero,
        })?;
    Ok(connection.last_insert_rowid())
}

/// Writes down what is in a file that goes on.
pub(crate) fn name_object(connection: &Connection, file: i64, object: Option<&str>) -> rusqlite::Result<()> {
    connection.prepare_cached("UPDATE files SET object = ? WHERE id = ?")?.execute((object, file))?;
    Ok(())
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
            ":latencies": sample.latencies.as_ref().map(Packed),
        })?;
    Ok(())
}

pub(crate) fn columns(figure: Figure<u64>) -> (Option<Exact>, Option<Why>) {
    (figure.known().map(Exact), figure.reason().map(Why))
}

fn exact(row: &Row<'_>, column: &str) -> rusqlite::Result<u64> {
    row.get::<_, Exact>(column).map(|Exact(value)| value)
}

pub(crate) fn word<T: serde::de::DeserializeOwned>(row: &Row<'_>, column: &str) -> rusqlite::Result<T> {
    row.get::<_, Word<T>>(column).map(|Word(value)| value)
}

pub(crate) fn figure(row: &Row<'_>, value: &str, reason: &str) -> rusqlite::Result<Figure<u64>> {
    if let Some(Exact(value)) = row.get(value)? {
        return Ok(Figure::Known(value));
    }
    match row.get::<_, Option<Why>>(reason)? {
        Some(Why(unknown)) => Ok(Figure::unknown(unknown)),
        None => {
            let at = row.as_ref().column_index(reason)?;
            let what = format!("{value} and {reason} are both NULL: somebody changed the row");
            Err(rusqlite::Error::FromSqlConversionFailure(at, Type::Null, what.into()))
        }
    }
}

/// The columns of `file_changes` that [`counters_at`] reads, of a table or alias: first of all in a query.
pub(crate) fn columns_of(table: &str) -> String {
    const CHANGED: [&str; 17] = [
        "reads",
        "read_bytes",
        "read_stall_ns",
        "read_stall_unknown",
        "writes",
        "write_bytes",
        "write_stall_ns",
        "write_stall_unknown",
        "syncs",
        "syncs_unknown",
        "sync_bytes",
        "sync_stall_ns",
        "sync_stall_unknown",
        "busy_ns",
        "busy_unknown",
        "size_bytes",
        "size_unknown",
    ];
    CHANGED.map(|column| format!("{table}.{column}")).join(", ")
}

/// Counters and size of a file, by the numbers of the columns: there are millions of such rows.
pub(crate) fn counters_at(row: &Row<'_>) -> rusqlite::Result<(Counters, Figure<u64>)> {
    let exact = |at: usize| row.get::<_, Exact>(at).map(|Exact(value)| value);
    let figure = |value: usize, reason: usize| -> rusqlite::Result<Figure<u64>> {
        if let Some(Exact(value)) = row.get(value)? {
            return Ok(Figure::Known(value));
        }
        row.get::<_, Why>(reason).map(|Why(unknown)| Figure::unknown(unknown))
    };
    let ops = |at: usize| -> rusqlite::Result<Ops> {
        Ok(Ops { count: exact(at)?, bytes: exact(at + 1)?, stall_ns: figure(at + 2, at + 3)? })
    };
    let sync = match figure(8, 9)? {
        Figure::Unknown { unknown } => Figure::unknown(unknown),
        Figure::Known(count) => Figure::Known(Ops { count, bytes: exact(10)?, stall_ns: figure(11, 12)? }),
    };
    Ok((Counters { read: ops(0)?, write: ops(4)?, sync, busy_ns: figure(13, 14)? }, figure(15, 16)?))
}
