use super::Committer;
use crate::Error;
use collect::Source;
use collect::sqlite::InProcess;
use experiments::Durability;
use filestats::Snapshot;
use rusqlite::{Connection, OpenFlags};
use sqlite_vfs::{Registry, VFS_NAME};
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
    journal: Journal,
    counters: InProcess,
    /// Of the step.
    database: PathBuf,
    connection: Option<Connection>,
}

const INSERT: &str = "INSERT INTO numbers VALUES (?1)";

impl Sqlite {
    pub(super) fn new(journal: Journal, registry: &'static Registry) -> Sqlite {
        Sqlite { journal, counters: InProcess::new(registry), database: PathBuf::new(), connection: None }
    }

    fn connect(&self, durability: Durability) -> rusqlite::Result<Connection> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags_and_vfs(&self.database, flags, VFS_NAME)?;
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
        work(self.connection.as_ref().expect("begun")).map_err(Error::sqlite(doing, &self.database))
    }
}

impl Committer for Sqlite {
    fn begin(&mut self, dir: &Path, durability: Durability) -> Result<(), Error> {
        self.database = dir.join("numbers.db");
        let connected = self.connect(durability).map_err(Error::sqlite("make the table", &self.database));
        self.connection = Some(connected?);
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

    fn end(&mut self) -> Result<(), Error> {
        self.connection = None;
        Ok(())
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
