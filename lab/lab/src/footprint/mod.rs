//! Data that one query moves at each level: values, rows, pages, files, storage, client.
//!
//! ```text
//! sqlite     values by their serial types; pages by the page cache's hits and misses; files by the VFS shim; tables by dbstat
//! postgres   EXPLAIN (ANALYZE, BUFFERS); pg_column_size; the messages of the protocol, counted
//! mysql      status variables of session and server, before and after
//! all        reads from the storage, and the kernel's read-ahead, by the process source
//! ```
//!
//! The query only reads: each engine is switched to read-only first and refuses everything else.

mod mysql;
mod postgres;
mod sqlite;

use crate::{Error, open_process, with_remedy};
use collect::Source;
use collect::process::{Layer, Process};
use experiments::Footprint;
use filestats::{Cache, Figure, FileInterval, FileKind, Interval, Ops, Reason, Rules, Snapshot, intervals};
use sqlite_vfs::Registry;
use std::collections::HashSet;
use std::path::PathBuf;

/// Where the query runs.
#[derive(Clone, Debug)]
pub enum Place {
    /// In this program, on a database file.
    Sqlite(PathBuf),
    /// On a server: a URL or `name=value` pairs.
    Postgres(String),
    /// On a MySQL or MariaDB server.
    Mysql(String),
}

/// Runs the query and returns what it moved. `database` is the database to use on a MySQL server.
///
/// # Errors
/// The server does not answer, or the query cannot be run.
pub fn footprint(
    place: &Place,
    query: &str,
    database: Option<&str>,
    registry: &'static Registry,
) -> Result<Footprint, Error> {
    let query = query.trim().trim_end_matches(';').trim_end();
    match place {
        Place::Sqlite(path) => sqlite::footprint(path, query, registry),
        Place::Postgres(connection) => postgres::footprint(connection, query),
        Place::Mysql(connection) => mysql::footprint(connection, query, database),
    }
}

/// A footprint without any figures.
fn empty_footprint(query: &str, page_bytes: u64) -> Footprint {
    let unknown = Figure::unknown(Reason::NotCounted);
    Footprint {
        source: String::new(),
        query: query.into(),
        rows: 0,
        column_bytes: unknown,
        rows_examined: unknown,
        page_bytes,
        pages_touched: unknown,
        pages_read: unknown,
        pages_read_ahead: unknown,
        file_reads: unknown,
        file_read_bytes: unknown,
        storage_bytes: unknown,
        storage_read_ahead_bytes: unknown,
        client_bytes: unknown,
        objects: Vec::new(),
        notes: Vec::new(),
    }
}

/// Reads of a process, counted in the kernel from [`Reads::begin`] on.
struct Reads {
    counting: Option<(u32, Process, Snapshot)>,
    notes: Vec<String>,
}

impl Reads {
    /// Starts to count, if the process is on this machine and may be watched; else a note gives the reason.
    fn begin(pid: Option<u32>) -> Reads {
        let unknown = || "the server's process is not found on this machine".to_owned();
        let begun = pid.ok_or_else(unknown).and_then(|pid| {
            let mut source = open_process(pid)?;
            let before = source.snapshot().map_err(|error| with_remedy(&error))?;
            Ok((pid, source, before))
        });
        match begun {
            Ok(counting) => Reads { counting: Some(counting), notes: Vec::new() },
            Err(why) => {
                let note = format!("what came from the storage is not counted: {why}");
                Reads { counting: None, notes: vec![note] }
            }
        }
    }

    /// Enters the reads of data since then into the footprint.
    fn end(self, footprint: &mut Footprint) -> Result<(), Error> {
        footprint.notes.extend(self.notes);
        let Some((pid, mut source, before)) = self.counting else { return Ok(()) };
        let after = source.snapshot()?;
        let mut files = intervals(&before, &after, Rules::default());
        files.retain(|row| matches!(row.file.kind, FileKind::Data | FileKind::Temp | FileKind::Log));
        let read = |chosen: &dyn Fn(&FileInterval) -> bool| sum_reads(files.iter().filter(|row| chosen(row)));
        let issued = read(&|row| row.meaning.cache == Cache::Included);
        let layer = |row: &FileInterval| Layer::from_instance(&row.file.instance);
        let stored = read(&|row| layer(row) == Layer::Block);
        // Direct I/O bypasses the page cache, so the kernel reads nothing ahead for it.
        let direct = open_directly(pid);
        let cached = |row: &FileInterval| !direct.contains(&row.file.path);
        let through = read(&|row| layer(row) == Layer::Block && cached(row));
        let missed = read(&|row| matches!(layer(row), Layer::Misses | Layer::Faults) && cached(row));
        if footprint.file_reads.known().is_none() {
            footprint.file_reads = issued.map(|ops| ops.count);
            footprint.file_read_bytes = issued.map(|ops| ops.bytes);
        }
        footprint.storage_bytes = stored.map(|ops| ops.bytes);
        footprint.storage_read_ahead_bytes =
            through.zip(missed, |through, missed| through.bytes.saturating_sub(missed.bytes));
        footprint.notes.extend(after.notes);
        Ok(())
    }
}

/// The files that a process has open for direct I/O.
fn open_directly(pid: u32) -> HashSet<String> {
    let descriptors = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let direct = descriptors.filter_map(|descriptor| {
        let number = descriptor.file_name().into_string().ok()?;
        let info = std::fs::read_to_string(format!("/proc/{pid}/fdinfo/{number}")).ok()?;
        let flags = info.lines().find_map(|line| line.strip_prefix("flags:"))?;
        let flags = i32::from_str_radix(flags.trim(), 8).ok()?;
        let path = std::fs::read_link(descriptor.path()).ok()?.into_os_string().into_string().ok()?;
        (flags & libc::O_DIRECT != 0).then_some(path)
    });
    direct.collect()
}

/// The sum of the reads of files.
fn sum_reads<'a>(files: impl Iterator<Item = &'a FileInterval>) -> Figure<Ops> {
    let mut all = Ops::ZERO;
    for row in files {
        match &row.interval {
            Interval::Known(delta) => all = all.plus(delta.counters.read),
            Interval::Unknown(reason) => return Figure::unknown(*reason),
        }
    }
    Figure::Known(all)
}
