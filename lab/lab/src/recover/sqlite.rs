//! SQLite of this program with a write-ahead log.

use super::victim::{Counted, Recovered, Served, time_recovery, wrong};
use super::work::{BODY_BYTES, Crash, Order};
use super::{Context, Engine, Strategy, child};
use crate::Error;
use collect::Source;
use collect::sqlite::InProcess;
use everyday::PageCache;
use experiments::RecoveryIo;
use filestats::Figure;
use rusqlite::{Connection, OpenFlags};
use sqlite_vfs::VFS_NAME;
use std::convert::Infallible;
use std::fs;
use std::path::Path;

const DATABASE: &str = "pages.db";
const UPDATE: &str = "UPDATE pages SET body = ?2 WHERE id = ?1";
const SELECT: &str = "SELECT body FROM pages WHERE id = ?1";

fn flags() -> OpenFlags {
    OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX
}

pub(super) fn write(dir: &Path, order: &Order) -> Result<Infallible, Error> {
    let path = dir.join(DATABASE);
    let failed = Error::sqlite("write", &path);
    fill(&path, order.work.data_pages, &failed)?;
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
        let length = fs::metadata(&log).map_err(Error::io("look at", &log))?.len();
        child::report_commits(commits, length)?;
    }
}

/// Creates the table; each row fills a page of 4 KiB.
fn fill(path: &Path, rows: u64, failed: &impl Fn(rusqlite::Error) -> Error) -> Result<(), Error> {
    let connection = Connection::open_with_flags(path, flags()).map_err(failed)?;
    let prepare = || -> rusqlite::Result<()> {
        connection.pragma_update(None, "page_size", 4_096)?;
        connection.pragma_update(None, "journal_mode", "OFF")?;
        connection.pragma_update(None, "synchronous", "OFF")?;
        connection.execute_batch("CREATE TABLE pages (id INTEGER PRIMARY KEY, body BLOB NOT NULL)")
    };
    prepare().map_err(failed)?;
    child::fill(rows, |ids| {
        let add = || -> rusqlite::Result<()> {
            connection.execute_batch("BEGIN")?;
            let mut insert = connection.prepare_cached("INSERT INTO pages VALUES (?1, zeroblob(?2))")?;
            for id in ids {
                insert.execute((id as i64, BODY_BYTES as i64))?;
            }
            connection.execute_batch("COMMIT")
        };
        add().map_err(failed)
    })?;
    connection.close().map_err(|(_, error)| failed(error))
}

struct Opened<'a> {
    connection: Connection,
    counters: InProcess,
    dir: &'a Path,
    pages: Figure<u64>,
}

impl Served for Opened<'_> {
    fn read(&mut self, place: u64) -> Result<Vec<u8>, Error> {
        let read = self.connection.query_row(SELECT, [place as i64], |row| row.get(0));
        read.map_err(failed(self.dir))
    }

    fn write(&mut self, place: u64, body: &[u8]) -> Result<(), Error> {
        self.connection.execute(UPDATE, (place as i64, body)).map(drop).map_err(failed(self.dir))
    }

    fn settle(&mut self) -> Result<(), Error> {
        let busy = self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0));
        match busy.map_err(failed(self.dir))? {
            0_i64 => Ok(()),
            _ => Err(wrong(Engine::SqliteWal, Strategy::Own)("its checkpoint was kept from its end".into())),
        }
    }

    fn counted(&mut self) -> Result<Counted, Error> {
        let snapshot = self.counters.snapshot()?;
        // The counters may name files by their canonical paths.
        let real = fs::canonicalize(self.dir).unwrap_or_else(|_| self.dir.into());
        let ours = |path: &str| Path::new(path).starts_with(self.dir) || Path::new(path).starts_with(&real);
        let ours = snapshot.samples.iter().filter(|sample| ours(&sample.file.path));
        Ok(Counted {
            pages: self.pages,
            // None of them is written before the checkpoint.
            pages_left: self.pages,
            io: RecoveryIo::from_counters(ours.map(|sample| sample.counters)),
            counted_by: "SQLite's VFS",
            notes: Vec::new(),
        })
    }
}

fn failed(dir: &Path) -> impl Fn(rusqlite::Error) -> Error {
    move |source| Error::sqlite("recover", &dir.join(DATABASE))(source)
}

pub(super) fn recover(dir: &Path, crash: &Crash, run: &Context) -> Result<Recovered, Error> {
    let counters = InProcess::new(run.registry);
    let pages = Figure::Known(run.order.pages_written(crash));
    let open = || -> rusqlite::Result<Connection> {
        let connection = Connection::open_with_flags_and_vfs(dir.join(DATABASE), flags(), VFS_NAME)?;
        connection.pragma_update(None, "wal_autocheckpoint", 0)?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        // The first access to the database: it rebuilds the log's index from the whole log.
        connection.pragma_query_value(None, "schema_version", |row| row.get::<_, i64>(0))?;
        Ok(connection)
    };
    time_recovery(crash, run, wrong(Engine::SqliteWal, Strategy::Own), || {
        Ok(Opened { connection: open().map_err(failed(dir))?, counters, dir, pages })
    })
}
