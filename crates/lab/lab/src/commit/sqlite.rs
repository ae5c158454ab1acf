use super::Committer;
use crate::Error;
use collect::Source;
use collect::sqlite::InProcess;
use experiments::Durability;
use filestats::{FileInterval, Snapshot};
use headroom_sqlite::{Registry, VFS_NAME};
use rusqlite::{Connection, OpenFlags};
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// How SQLite makes a commit durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Journal {
    /// Old pages go into a journal, which is deleted when the new ones are in the database.
    Rollback,
    /// New pages are appended to a log.
    WriteAhead,
}

/// SQLite in this program. Each step has a database of its own, counted by the VFS shim.
pub(super) struct Sqlite {
    dir: PathBuf,
    journal: Journal,
    counters: InProcess,
    step: u32,
    connection: Option<Connection>,
}

const INSERT: &str = "INSERT INTO numbers VALUES (?1)";

impl Sqlite {
    pub(super) fn open(dir: PathBuf, journal: Journal, registry: &'static Registry) -> Sqlite {
        Sqlite { dir, journal, counters: InProcess::new(registry), step: 0, connection: None }
    }

    fn step_dir(&self) -> PathBuf {
        self.dir.join(self.step.to_string())
    }

    fn database(&self) -> PathBuf {
        self.step_dir().join("numbers.db")
    }

    fn connect(&self, path: &Path, durability: Durability) -> rusqlite::Result<Connection> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags_and_vfs(path, flags, VFS_NAME)?;
        let mode = match self.journal {
            Journal::Rollback => "DELETE",
            Journal::WriteAhead => "WAL",
        };
        connection.pragma_update(None, "journal_mode", mode)?;
        let synchronous = match durability {
            Durability::Full => "FULL",
            Durability::Delayed => "NORMAL",
        };
        connection.pragma_update(None, "synchronous", synchronous)?;
        // The first commit creates the journal or log, which is counted from then on.
        connection.execute_batch("CREATE TABLE numbers (n INTEGER)")?;
        if self.journal == Journal::WriteAhead {
            connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
        }
        Ok(connection)
    }

    fn doing<T>(
        &self,
        doing: &'static str,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, Error> {
        let failed = |source| Error::Sqlite { doing, path: self.database(), source };
        work(self.connection.as_ref().expect("begun")).map_err(failed)
    }
}

impl Committer for Sqlite {
    fn begin(&mut self, durability: Durability) -> Result<(), Error> {
        self.step += 1;
        let dir = self.step_dir();
        fs::create_dir(&dir).map_err(|source| Error::Io { doing: "make", path: dir, source })?;
        let path = self.database();
        let connected = self.connect(&path, durability);
        let failed = |source| Error::Sqlite { doing: "make the table", path, source };
        self.connection = Some(connected.map_err(failed)?);
        Ok(())
    }

    fn commit(&mut self, rows: Range<u64>) -> Result<(), Error> {
        self.doing("insert", |connection| {
            let mut insert = connection.prepare_cached(INSERT)?;
            let alone = rows.end - rows.start == 1;
            if !alone {
                connection.prepare_cached("BEGIN")?.execute([])?;
            }
            for n in rows {
                insert.execute([n as i64])?;
            }
            if !alone {
                connection.prepare_cached("COMMIT")?.execute([])?;
            }
            Ok(())
        })
    }

    fn settle(&mut self) -> Result<(), Error> {
        self.doing("write a checkpoint", |connection| {
            connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))
        })
    }

    fn counters(&mut self) -> Result<Option<Snapshot>, Error> {
        Ok(Some(self.counters.snapshot()?))
    }

    fn is_counted(&self, file: &FileInterval) -> bool {
        Path::new(&file.file.path).starts_with(self.step_dir())
    }

    fn end(&mut self) -> Result<(), Error> {
        self.connection = None;
        let dir = self.step_dir();
        fs::remove_dir_all(&dir).map_err(|source| Error::Io { doing: "remove", path: dir, source })
    }

    fn notes(&self) -> Vec<String> {
        match self.journal {
            Journal::Rollback => Vec::new(),
            Journal::WriteAhead => {
                vec!["sqlite-wal writes a frame in two: its header of 24 bytes and the page".into()]
            }
        }
    }
}
