//! A [`Sample`] as the columns of `files` and `file_changes`, and back.

use crate::exact::{Exact, Json, Why, Word, exact};
use crate::packed::Packed;
use crate::statements::insert;
use filestats::{Counters, Epoch, Figure, FileIdentity, FileKind, Latencies, Meaning, Ops, Sample};
use rusqlite::types::{Type, Value};
use rusqlite::{Connection, Row, ToSql};

/// The columns that [`sample`] reads, of a join of `files` f and `file_changes` s, in this order from the first on.
pub(crate) fn sample_columns() -> String {
    format!("{}, s.latencies, {IDENTITY}", columns_of("s"))
}

/// The positions of the histograms and of the identity among them.
const LATENCIES: usize = 17;
const WHO: usize = 18;

/// The columns that [`identity`] reads.
pub(crate) const IDENTITY: &str = "instance, database_name, database_id, file_id, kind, path, drive, handle, object, epoch, \
                                   epoch_reset, meaning";

/// Reads the identity of a file, its epoch and the meaning of its counters from the columns [`IDENTITY`], beginning at
/// one. Columns are addressed by number: every capture reads all files of a source, and looking up names took most of
/// the time.
pub(crate) fn identity(row: &Row<'_>, first: usize) -> rusqlite::Result<(FileIdentity, Epoch, Meaning)> {
    let file = FileIdentity {
        instance: row.get(first)?,
        database: row.get(first + 1)?,
        database_id: row.get::<_, Option<Exact>>(first + 2)?.map(|Exact(id)| id),
        file_id: row.get(first + 3)?,
        kind: row.get::<_, Word<FileKind>>(first + 4).map(|Word(kind)| kind)?,
        path: row.get(first + 5)?,
        drive: row.get(first + 6)?,
        handle: row.get(first + 7)?,
        object: row.get(first + 8)?,
    };
    let epoch = Epoch { run: row.get(first + 9)?, reset: row.get(first + 10)? };
    let meaning = row.get::<_, Json<Meaning>>(first + 11).map(|Json(meaning)| meaning)?;
    Ok((file, epoch, meaning))
}

/// Reads a sample from a row that begins with [`sample_columns`].
pub(crate) fn sample(row: &Row<'_>) -> rusqlite::Result<Sample> {
    let (file, epoch, meaning) = identity(row, WHO)?;
    let (counters, size_bytes) = counters_at(row)?;
    let latencies = row.get::<_, Option<Packed<Latencies>>>(LATENCIES)?.map(|Packed(latencies)| latencies);
    Ok(Sample { file: file.into(), epoch, meaning, counters, size_bytes, latencies })
}

/// Adds a file that was not in the capture before, and returns its number. `from_zero`: its counters began at zero since.
pub(crate) fn insert_file(
    connection: &Connection,
    source: &str,
    capture: i64,
    from_zero: bool,
    sample: &Sample,
) -> rusqlite::Result<i64> {
    let file = &sample.file;
    insert(
        connection,
        "files",
        &[
            ("source", &source),
            ("first_capture_id", &capture),
            ("instance", &file.instance),
            ("database_name", &file.database),
            ("database_id", &file.database_id.map(Exact)),
            ("file_id", &file.file_id),
            ("kind", &Word(file.kind)),
            ("path", &file.path),
            ("drive", &file.drive),
            ("handle", &file.handle),
            ("object", &file.object),
            ("epoch", &sample.epoch.run),
            ("epoch_reset", &sample.epoch.reset),
            ("meaning", &Json(sample.meaning)),
            ("from_zero", &from_zero),
        ],
    )
}

/// Adds the counters of a file from this capture on.
pub(crate) fn insert_change(
    connection: &Connection,
    file: i64,
    capture: i64,
    sample: &Sample,
) -> rusqlite::Result<()> {
    let latencies = sample.latencies.as_ref().map(Packed);
    let values: &[(_, &dyn ToSql)] = &[("file", &file), ("capture_id", &capture), ("latencies", &latencies)];
    insert_with_counters(connection, "file_changes", values, &sample.counters, sample.size_bytes)
}

/// Adds a row to a table that has counters among its columns.
pub(crate) fn insert_with_counters(
    connection: &Connection,
    table: &str,
    others: &[(&str, &dyn ToSql)],
    counters: &Counters,
    size_bytes: Figure<u64>,
) -> rusqlite::Result<()> {
    let counters = counter_columns(counters, size_bytes);
    let counters = counters.iter().map(|(column, value)| (*column, value as &dyn ToSql));
    let values: Vec<_> = others.iter().copied().chain(counters).collect();
    insert(connection, table, &values).map(drop)
}

/// The columns of a file's counters and size, in the order in which [`counters_at`] reads them, and their values.
fn counter_columns(counters: &Counters, size_bytes: Figure<u64>) -> [(&'static str, Value); 17] {
    let Counters { read, write, sync, busy_ns } = counters;
    let known = |value: Option<u64>| value.map_or(Value::Null, |value| Exact(value).value());
    let reason = |figure: Figure<u64>| figure.reason().map_or(Value::Null, |reason| Why(reason).value());
    let sync_known = sync.known();
    let sync_stall_ns = sync_known.map(|sync| sync.stall_ns);
    [
        ("reads", known(Some(read.count))),
        ("read_bytes", known(Some(read.bytes))),
        ("read_stall_ns", known(read.stall_ns.known())),
        ("read_stall_unknown", reason(read.stall_ns)),
        ("writes", known(Some(write.count))),
        ("write_bytes", known(Some(write.bytes))),
        ("write_stall_ns", known(write.stall_ns.known())),
        ("write_stall_unknown", reason(write.stall_ns)),
        ("syncs", known(sync_known.map(|sync| sync.count))),
        ("syncs_unknown", reason(sync.map(|sync| sync.count))),
        ("sync_bytes", known(sync_known.map(|sync| sync.bytes))),
        ("sync_stall_ns", known(sync_stall_ns.and_then(Figure::known))),
        ("sync_stall_unknown", sync_stall_ns.map_or(Value::Null, reason)),
        ("busy_ns", known(busy_ns.known())),
        ("busy_unknown", reason(*busy_ns)),
        ("size_bytes", known(size_bytes.known())),
        ("size_unknown", reason(size_bytes)),
    ]
}

pub(crate) fn columns(figure: Figure<u64>) -> (Option<Exact>, Option<Why>) {
    (figure.known().map(Exact), figure.reason().map(Why))
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
            let what = format!("{value} and {reason} are both NULL: the row was changed by another program");
            Err(rusqlite::Error::FromSqlConversionFailure(at, Type::Null, what.into()))
        }
    }
}

/// The columns of `file_changes` that [`counters_at`] reads, of a table or alias. They come first in a query.
pub(crate) fn columns_of(table: &str) -> String {
    let columns = counter_columns(&Counters::ZERO, Figure::Known(0));
    columns.map(|(column, _)| format!("{table}.{column}")).join(", ")
}

/// Counters and size of a file, by column number, because there are millions of such rows.
pub(crate) fn counters_at(row: &Row<'_>) -> rusqlite::Result<(Counters, Figure<u64>)> {
    let figure = |value: usize, reason: usize| -> rusqlite::Result<Figure<u64>> {
        if let Some(Exact(value)) = row.get(value)? {
            return Ok(Figure::Known(value));
        }
        row.get::<_, Why>(reason).map(|Why(unknown)| Figure::unknown(unknown))
    };
    let ops = |at: usize| -> rusqlite::Result<Ops> {
        Ok(Ops { count: exact(row, at)?, bytes: exact(row, at + 1)?, stall_ns: figure(at + 2, at + 3)? })
    };
    let sync = match figure(8, 9)? {
        Figure::Unknown { unknown } => Figure::unknown(unknown),
        Figure::Known(count) => {
            Figure::Known(Ops { count, bytes: exact(row, 10)?, stall_ns: figure(11, 12)? })
        }
    };
    Ok((Counters { read: ops(0)?, write: ops(4)?, sync, busy_ns: figure(13, 14)? }, figure(15, 16)?))
}
