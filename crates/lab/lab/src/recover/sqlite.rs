//! SQLite of this program with a write-ahead log.

use super::child::Reporter;
use super::files::Files;
use super::victim::{Recovered, wrong};
use super::work::{BODY_BYTES, Crash, Order, Probe};
use super::{Context, Engine, Strategy};
use crate::Error;
use collect::Source;
use collect::sqlite::InProcess;
use everyday::PageCache;
use experiments::RecoveryIo;
use filestats::Figure;
use headroom_sqlite::VFS_NAME;
use rusqlite::{Connection, OpenFlags};
use std::convert::Infallible;
use std::fs;
use std::path::Path;
use std::time::Instant;

pub(super) const FILES: Files =
    Files { write, recover, strategies: &[Strategy::Own], page_bytes: 4_096, data_times: 1, log_bytes: None };

const DATABASE: &str = "pages.db";
/// Rows that one transaction adds when the database is created.
const FILL: u64 = 4_096;
const UPDATE: &str = "UPDATE pages SET body = ?2 WHERE id = ?1";
const SELECT: &str = "SELECT body FROM pages WHERE id = ?1";

fn failed(doing: &'static str, dir: &Path) -> impl Fn(rusqlite::Error) -> Error {
    move |source| Error::Sqlite { doing, path: dir.join(DATABASE), source }
}

fn flags() -> OpenFlags {
    OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX
}

fn write(dir: &Path, order: &Order, reporter: &mut Reporter) -> Result<Infallible, Error> {
    let failed = failed("write", dir);
    let path = dir.join(DATABASE);
    fill(&path, order.work.data_pages, reporter, &failed)?;
    let cache = PageCache::open(&path)?;
    cache.write_out()?;
    cache.evict()?;
    drop(cache);
    let connection = Connection::open_with_flags(&path, flags()).map_err(&failed)?;
    let settle = || -> rusqlite::Result<()> {
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.pragma_update(None, "wal_autocheckpoint", 0)
    };
    settle().map_err(&failed)?;
    let log = dir.join(format!("{DATABASE}-wal"));
    let mut body = vec![0; BODY_BYTES];
    let mut commits = 0;
    loop {
        let mut commit = || -> rusqlite::Result<()> {
            connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
            for write in Order::writes(commits) {
                order.fill(write, &mut body);
                connection.prepare_cached(UPDATE)?.execute((order.place(write) as i64, &body))?;
            }
            connection.prepare_cached("COMMIT")?.execute([])?;
            Ok(())
        };
        commit().map_err(&failed)?;
        commits += 1;
        let length = fs::metadata(&log);
        let length = length.map_err(|source| Error::Io { doing: "look at", path: log.clone(), source })?;
        reporter.committed(commits, length.len())?;
    }
}

/// Creates the table; each row fills a page of 4 KiB.
fn fill(
    path: &Path,
    rows: u64,
    reporter: &mut Reporter,
    failed: &impl Fn(rusqlite::Error) -> Error,
) -> Result<(), Error> {
    let connection = Connection::open_with_flags(path, flags()).map_err(failed)?;
    let prepare = || -> rusqlite::Result<()> {
        connection.pragma_update(None, "page_size", 4_096)?;
        connection.pragma_update(None, "journal_mode", "OFF")?;
        connection.pragma_update(None, "synchronous", "OFF")?;
        connection.execute_batch("CREATE TABLE pages (id INTEGER PRIMARY KEY, body BLOB NOT NULL)")
    };
    prepare().map_err(failed)?;
    let mut done = 0;
    while done < rows {
        let end = (done + FILL).min(rows);
        let add = || -> rusqlite::Result<()> {
            connection.execute_batch("BEGIN")?;
            let mut insert = connection.prepare_cached("INSERT INTO pages VALUES (?1, zeroblob(?2))")?;
            for id in done..end {
                insert.execute((id as i64, BODY_BYTES as i64))?;
            }
            connection.execute_batch("COMMIT")
        };
        add().map_err(failed)?;
        done = end;
        reporter.made(done, rows)?;
    }
    connection.close().map_err(|(_, error)| failed(error))
}

fn recover(dir: &Path, strategy: Strategy, crash: &Crash, run: &Context) -> Result<Recovered, Error> {
    let failed = failed("recover", dir);
    let wrong = wrong(Engine::SqliteWal, strategy);
    let [first, second] = run.order.first_pages(crash);
    let body = run.order.page_after_recovery();
    let mut counters = InProcess::new(run.registry);

    let began = Instant::now();
    let connection =
        Connection::open_with_flags_and_vfs(dir.join(DATABASE), flags(), VFS_NAME).map_err(&failed)?;
    let prepare = || -> rusqlite::Result<i64> {
        connection.pragma_update(None, "wal_autocheckpoint", 0)?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        // The first access to the database: it rebuilds the log's index from the whole log.
        connection.pragma_query_value(None, "schema_version", |row| row.get(0))
    };
    prepare().map_err(&failed)?;
    let opened = began.elapsed();
    let read =
        |probe: Probe| connection.query_row(SELECT, [probe.place as i64], |row| row.get::<_, Vec<u8>>(0));
    let found = read(first).map_err(&failed)?;
    let first_read = began.elapsed();
    connection.execute(UPDATE, (second.place as i64, &body)).map_err(&failed)?;
    let first_write = began.elapsed();
    let busy: i64 =
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0)).map_err(&failed)?;
    let full = began.elapsed();
    if busy != 0 {
        return Err(wrong("its checkpoint was kept from its end".into()));
    }
    let snapshot = counters.snapshot()?;
    // The counters may name files by their canonical paths.
    let real = fs::canonicalize(dir).unwrap_or_else(|_| dir.into());
    let ours = |path: &str| Path::new(path).starts_with(dir) || Path::new(path).starts_with(&real);
    let io = RecoveryIo::from_counters(
        snapshot.samples.iter().filter(|sample| ours(&sample.file.path)).map(|sample| sample.counters),
    );

    let compared = run.order.compare(crash, &found, |probe| read(probe).map_err(&failed), wrong)?;
    Ok(Recovered {
        opened,
        first_read,
        first_write,
        full,
        pages: Figure::Known(run.order.pages_written(crash)),
        // None of them is written before the checkpoint.
        pages_left: Figure::Known(run.order.pages_written(crash)),
        compared,
        io,
        counted_by: "SQLite's VFS".into(),
        notes: Vec::new(),
    })
}
