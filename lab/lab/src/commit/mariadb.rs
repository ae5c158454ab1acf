use super::{Committer, Processes};
use crate::Error;
use collect::mysql::{Client, Parameter, Statement};
use experiments::Durability;
use filestats::Snapshot;
use servers::MariadbPrograms;
use std::ops::Range;
use std::path::Path;

/// A MariaDB or MySQL server: one that we start, or the named one.
pub(super) struct Mariadb {
    // Dropped in this order: the connection before its server.
    client: Client,
    processes: Processes,
    insert: Option<Statement>,
    /// This run created the database: no other one is ever dropped.
    has_database: bool,
    server: Option<servers::Mariadb>,
}

const DATABASE: &str = "database headroom_lab";
/// A table of this name in it says that it may be dropped.
const MARK: &str = "made_by_headroom_lab";

impl Mariadb {
    pub(super) fn open(dir: &Path, named: Option<&str>) -> Result<Mariadb, Error> {
        let server = match named {
            Some(_) => None,
            None => {
                let mut server =
                    servers::Mariadb::initialise(&MariadbPrograms::find()?, dir, &dir.join("data"), &[])?;
                server.launch()?;
                Some(server)
            }
        };
        let own = server.as_ref().map(servers::Mariadb::url);
        let client = Client::connect(named.or(own.as_deref()).unwrap_or_default())?;
        let pid = server.as_ref().map_or_else(|| client.process, servers::Mariadb::pid);
        let processes = Processes::open("mariadb", pid);
        let mut mariadb = Mariadb { client, processes, insert: None, has_database: false, server };
        mariadb.take_database()?;
        Ok(mariadb)
    }

    /// Locks the database for this connection.
    fn take_database(&mut self) -> Result<(), Error> {
        if self.client.query("SELECT GET_LOCK('headroom_lab', 0)", 1)? != [["1"]] {
            return Err(Error::InUse);
        }
        let is_there =
            "SELECT SCHEMA_NAME FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = 'headroom_lab'";
        if !self.client.query(is_there, 1)?.is_empty() {
            let tables = self.client.query("SHOW TABLES IN headroom_lab", 1)?;
            if !tables.iter().any(|table| table[0] == MARK) {
                return Err(Error::NotOursThere { what: DATABASE });
            }
        }
        self.sql(&[
            "DROP DATABASE IF EXISTS headroom_lab",
            "CREATE DATABASE headroom_lab",
            &format!("CREATE TABLE headroom_lab.{MARK} (n INT)"),
        ])?;
        self.has_database = true;
        Ok(())
    }

    fn sql(&mut self, statements: &[&str]) -> Result<(), Error> {
        Ok(self.client.execute(statements)?)
    }

    /// Changes a global setting, only on a server that we started.
    fn flush_at_commit(&mut self, when: u8) -> Result<(), Error> {
        match self.server {
            Some(_) => self.sql(&[&format!("SET GLOBAL innodb_flush_log_at_trx_commit = {when}")]),
            None => Ok(()),
        }
    }
}

impl Committer for Mariadb {
    fn begin(&mut self, _: &Path, durability: Durability) -> Result<(), Error> {
        self.flush_at_commit(1)?;
        self.sql(&["CREATE TABLE headroom_lab.numbers (n INT) ENGINE = InnoDB"])?;
        // Logged pages are written first, so that all later I/O belongs to the rows.
        if self.client.is_mariadb {
            self.sql(&["FLUSH ENGINE LOGS"])?;
        }
        if durability == Durability::Delayed {
            self.flush_at_commit(0)?;
        }
        self.insert = Some(self.client.prepare("INSERT INTO headroom_lab.numbers VALUES (?)")?);
        Ok(())
    }

    fn commit(&mut self, rows: Range<u64>) -> Result<(), Error> {
        let insert = self.insert.as_ref().expect("begun");
        let alone = rows.end - rows.start == 1;
        if !alone {
            self.client.execute(&["BEGIN"])?;
        }
        for n in rows {
            self.client.execute_prepared(insert, &[Parameter::Number(n)])?;
        }
        if !alone {
            self.client.execute(&["COMMIT"])?;
        }
        Ok(())
    }

    fn settle(&mut self) -> Result<(), Error> {
        self.flush_at_commit(1)?;
        self.sql(&["FLUSH ENGINE LOGS"])
    }

    fn counters(&mut self) -> Result<Option<Snapshot>, Error> {
        self.processes.counters()
    }

    fn end(&mut self) -> Result<(), Error> {
        if let Some(insert) = self.insert.take() {
            self.client.close(insert)?;
        }
        self.sql(&["DROP TABLE headroom_lab.numbers"])
    }

    fn notes(&self) -> Vec<String> {
        self.processes.notes.clone()
    }
}

impl Drop for Mariadb {
    fn drop(&mut self) {
        if self.has_database && self.server.is_none() {
            // If it stays, it has its mark, and the next experiment drops it.
            let _ = self.sql(&["DROP DATABASE headroom_lab"]);
        }
    }
}
