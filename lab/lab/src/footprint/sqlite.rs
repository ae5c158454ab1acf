use super::{Reads, empty_footprint};
use crate::Error;
use collect::Source;
use collect::sqlite::InProcess;
use experiments::{Footprint, ObjectFootprint};
use filestats::{Figure, Reason, Rules, intervals};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags, ffi};
use sqlite_vfs::{Registry, VFS_NAME};
use std::ffi::c_int;
use std::fs;
use std::path::Path;

pub(super) fn footprint(path: &Path, query: &str, registry: &'static Registry) -> Result<Footprint, Error> {
    let none = |why| Error::NoDatabase { path: path.into(), why };
    let failed = |source: rusqlite::Error| match source.sqlite_error_code() {
        Some(rusqlite::ErrorCode::NotADatabase) => none("it is no SQLite database"),
        _ => Error::sqlite("run the query", path)(source),
    };
    let wrong = |why: &str| Error::Query { on: path.display().to_string(), why: why.into() };
    let real = fs::canonicalize(path);
    let real = real.map_err(|source| match source.kind() {
        std::io::ErrorKind::NotFound => none("there is no such file"),
        _ => Error::io("find", path)(source),
    })?;
    if real.is_dir() {
        return Err(none("it is a directory"));
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags_and_vfs(&real, flags, VFS_NAME).map_err(failed)?;
    connection.pragma_update(None, "query_only", true).map_err(failed)?;
    // Reads through a memory map cannot be counted.
    connection.pragma_update(None, "mmap_size", 0).map_err(failed)?;
    let page_bytes: i64 =
        connection.pragma_query_value(None, "page_size", |row| row.get(0)).map_err(failed)?;
    let mut footprint = empty_footprint(query, page_bytes.unsigned_abs());
    // Reads of the schema are not counted for the query.
    let mut statement = connection.prepare(query).map_err(failed)?;
    if !statement.readonly() || statement.column_count() == 0 {
        return Err(wrong("it is no SELECT"));
    }
    let mut counters = InProcess::new(registry);
    let reads = Reads::begin(Some(std::process::id()));
    let before = counters.snapshot()?;
    let (hits, misses) = page_cache(&connection);
    let (mut rows, mut column_bytes) = (0, 0);
    let columns = statement.column_count();
    let mut result = statement.query([]).map_err(failed)?;
    while let Some(row) = result.next().map_err(failed)? {
        rows += 1;
        for column in 0..columns {
            column_bytes += row.get_ref(column).map(value_bytes).map_err(failed)?;
        }
    }
    drop(result);
    let (hits_after, misses_after) = page_cache(&connection);
    let files = intervals(&before, &counters.snapshot()?, Rules::default());
    let of_database =
        files.iter().filter(|row| Path::new(&row.file.path) == real || is_log(&row.file.path, &real));
    let read = super::sum_reads(of_database);
    footprint.file_reads = read.map(|ops| ops.count);
    footprint.file_read_bytes = read.map(|ops| ops.bytes);
    reads.end(&mut footprint)?;
    footprint.rows = rows;
    footprint.column_bytes = Figure::Known(column_bytes);
    footprint.pages_touched = Figure::Known((hits_after - hits) + (misses_after - misses));
    footprint.pages_read = Figure::Known(misses_after - misses);
    footprint.pages_read_ahead = Figure::Known(0);
    footprint.client_bytes = Figure::unknown(Reason::NoOperations);
    footprint.notes.push("SQLite runs in the program: nothing is sent".into());
    drop(statement);
    footprint.objects = objects(&connection, query).map_err(failed)?;
    Ok(footprint)
}

fn is_log(path: &str, database: &Path) -> bool {
    path.strip_suffix("-wal").is_some_and(|main| Path::new(main) == database)
}

/// Pages found in the connection's cache, and pages that were not.
fn page_cache(connection: &Connection) -> (u64, u64) {
    let counter = |which: c_int| {
        let (mut current, mut highest) = (0, 0);
        // SAFETY: the handle is that of an open connection, used by this thread only; both pointers are to integers.
        unsafe { ffi::sqlite3_db_status(connection.handle(), which, &mut current, &mut highest, 0) };
        u64::from(current.unsigned_abs())
    };
    (counter(ffi::SQLITE_DBSTATUS_CACHE_HIT), counter(ffi::SQLITE_DBSTATUS_CACHE_MISS))
}

/// Bytes of a value in a record (section 2.1 of SQLite's file format).
fn value_bytes(value: ValueRef<'_>) -> u64 {
    match value {
        ValueRef::Null | ValueRef::Integer(0 | 1) => 0,
        ValueRef::Integer(n) => [8, 16, 24, 32, 48]
            .into_iter()
            .find(|bits| (-(1_i64 << (bits - 1))..1 << (bits - 1)).contains(&n))
            .map_or(8, |bits| bits / 8),
        ValueRef::Real(_) => 8,
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes.len() as u64,
    }
}

/// The tables and indexes that the query's bytecode opens.
fn objects(connection: &Connection, query: &str) -> rusqlite::Result<Vec<ObjectFootprint>> {
    let mut explained = connection.prepare(&format!("EXPLAIN {query}"))?;
    let opened = explained.query_map([], |row| {
        Ok((row.get::<_, String>("opcode")?, row.get::<_, i64>("p2")?, row.get::<_, i64>("p3")?))
    })?;
    let mut roots: Vec<i64> = Vec::new();
    for step in opened {
        // p3 is 0 for the main database.
        if let (opcode, root, 0) = step?
            && opcode == "OpenRead"
            && !roots.contains(&root)
        {
            roots.push(root);
        }
    }
    let mut named = connection.prepare(
        "SELECT name, type = 'table' FROM sqlite_schema WHERE rootpage = ?1 UNION ALL SELECT 'sqlite_schema', 1 WHERE ?1 = 1",
    )?;
    // Entries of a table are only in its leaves, those of an index in all its pages.
    let mut counted = connection.prepare(
        "SELECT coalesce(sum(CASE WHEN pagetype = 'leaf' OR NOT ?2 THEN ncell ELSE 0 END), 0), coalesce(sum(payload), 0),
                count(*), coalesce(sum(pgsize), 0) FROM dbstat WHERE name = ?1",
    )?;
    let mut objects = Vec::new();
    for root in roots {
        let Ok((name, table)) =
            named.query_row([root], |row| Ok((row.get::<_, String>(0)?, row.get::<_, bool>(1)?)))
        else {
            continue;
        };
        let counts = counted.query_row((&name, table), |row| {
            Ok([row.get::<_, i64>(0)?, row.get(1)?, row.get(2)?, row.get(3)?])
        });
        let [rows, record_bytes, pages, bytes] = match counts {
            Ok(counts) => counts.map(|count| Figure::Known(count.unsigned_abs())),
            Err(_) => [Figure::unknown(Reason::NotCounted); 4],
        };
        objects.push(ObjectFootprint { name, rows, record_bytes, pages, bytes });
    }
    Ok(objects)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_takes_as_many_bytes_as_the_file_format_says() {
        let integers =
            [(0, 0), (1, 0), (-1, 1), (127, 1), (128, 2), (-32_768, 2), (32_768, 3), (8_388_608, 4)];
        for (n, bytes) in integers {
            assert_eq!(value_bytes(ValueRef::Integer(n)), bytes, "{n}");
        }
        assert_eq!(value_bytes(ValueRef::Integer(1 << 31)), 6);
        assert_eq!(value_bytes(ValueRef::Integer(1 << 47)), 8);
        assert_eq!(value_bytes(ValueRef::Integer(i64::MIN)), 8);
        assert_eq!(value_bytes(ValueRef::Text(b"four")), 4);
        assert_eq!((value_bytes(ValueRef::Null), value_bytes(ValueRef::Real(0.5))), (0, 8));
    }
}
