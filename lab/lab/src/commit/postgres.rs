use super::{Committer, Processes};
use crate::{Error, add_notes};
use collect::postgres::Client;
use experiments::Durability;
use filestats::Snapshot;
use servers::PostgresPrograms;
use std::fs;
use std::ops::Range;
use std::path::Path;
use tokio_postgres::Statement;

/// A PostgreSQL server: one that we start, or the named one.
pub(super) struct Postgres {
    // Dropped in this order: the connection before its server.
    client: Client,
    processes: Processes,
    insert: Option<Statement>,
    notes: Vec<String>,
    /// This run created the schema: no other one is ever dropped.
    has_schema: bool,
    server: Option<servers::Postgres>,
}

const SCHEMA: &str = "schema headroom_lab";
/// Comment on the schema: the next run may drop what a killed one left.
const MARK: &str = "made by headroom lab; may be dropped";
/// "headroom lab" as a number: the advisory lock that excludes a second experiment on the server.
const LOCK: i64 = 0x6865_6164_6c61_6221;
/// In the socket's name: the server listens on nothing else.
const PORT: u16 = 5432;

impl Postgres {
    pub(super) fn open(dir: &Path, named: Option<&str>) -> Result<Postgres, Error> {
        let server = match named {
            Some(_) => None,
            None => Some(start(dir)?),
        };
        let own = server.as_ref().map(servers::Postgres::connection);
        let client = Client::connect(named.or(own.as_deref()).unwrap_or_default())?;
        let pid = server.as_ref().map_or_else(|| client.postmaster, servers::Postgres::pid);
        let processes = Processes::open("postgres", pid);
        let mut postgres =
            Postgres { client, processes, insert: None, notes: Vec::new(), has_schema: false, server };
        postgres.take_schema()?;
        Ok(postgres)
    }

    /// Locks the schema for this connection.
    fn take_schema(&mut self) -> Result<(), Error> {
        let locked = self.client.run(async |client| {
            let row = client.query_one("SELECT pg_try_advisory_lock($1)", &[&LOCK]).await?;
            row.try_get::<_, bool>(0)
        })?;
        if !locked {
            return Err(Error::InUse);
        }
        let comment = self.client.run(async |client| {
            let of_schema = "SELECT coalesce(obj_description(oid, 'pg_namespace'), '') FROM pg_namespace \
                             WHERE nspname = 'headroom_lab'";
            let row = client.query_opt(of_schema, &[]).await?;
            row.map(|row| row.try_get::<_, String>(0)).transpose()
        })?;
        match comment {
            Some(comment) if comment != MARK => return Err(Error::NotOursThere { what: SCHEMA }),
            Some(_) => self.sql("DROP SCHEMA headroom_lab CASCADE")?,
            None => {}
        }
        // One transaction: there is never a schema without its mark.
        self.sql(&format!(
            "BEGIN; CREATE SCHEMA headroom_lab; COMMENT ON SCHEMA headroom_lab IS '{MARK}'; COMMIT"
        ))?;
        self.has_schema = true;
        Ok(())
    }

    fn sql(&self, statements: &str) -> Result<(), Error> {
        Ok(self.client.run(async |client| client.batch_execute(statements).await)?)
    }

    /// Fails silently if the role lacks the right on a named server; the figures are then a little higher.
    fn try_sql(&mut self, statement: &str, note: &str) {
        if let Err(error) = self.sql(statement) {
            add_notes(&mut self.notes, [format!("{note}: {error}")]);
        }
    }
}

fn start(dir: &Path) -> Result<servers::Postgres, Error> {
    let programs = PostgresPrograms::find()?;
    let data = dir.join("data");
    fs::create_dir(&data).map_err(Error::io("make", &data))?;
    // Nothing but the rows is to write; all else is as it is delivered.
    let settings = ["listen_addresses=", "autovacuum=off"].map(str::to_owned).to_vec();
    let mut server = servers::Postgres::initialise(&programs, dir, &data, PORT, settings)?.tied_to_thread();
    server.launch()?;
    Ok(server)
}

impl Committer for Postgres {
    fn begin(&mut self, _: &Path, durability: Durability) -> Result<(), Error> {
        // Old pages are written, so that each step logs the same full pages; and the segment of the log that the step
        // writes to is there before it begins.
        self.try_sql("CHECKPOINT", "there was no checkpoint before each step of postgres");
        if self.server.is_some() {
            self.sql("SELECT pg_switch_wal()")?;
        }
        let synchronous = match durability {
            Durability::Full => "on",
            Durability::Delayed => "off",
        };
        self.sql(&format!(
            "SET synchronous_commit = on; CREATE TABLE headroom_lab.numbers (n integer); \
             SET synchronous_commit = {synchronous}"
        ))?;
        let insert = "INSERT INTO headroom_lab.numbers VALUES ($1)";
        self.insert = Some(self.client.run(async |client| client.prepare(insert).await)?);
        // The segment was made under another name; what a look finds under a new one is not known of the time before.
        self.processes.counters().map(drop)
    }

    fn commit(&mut self, rows: Range<u64>) -> Result<(), Error> {
        let insert = self.insert.as_ref().expect("begun");
        Ok(self.client.run(async |client| {
            let alone = rows.end - rows.start == 1;
            if !alone {
                client.batch_execute("BEGIN").await?;
            }
            for n in rows {
                client.execute(insert, &[&(n as i32)]).await?;
            }
            if !alone {
                client.batch_execute("COMMIT").await?;
            }
            Ok(())
        })?)
    }

    fn settle(&mut self) -> Result<(), Error> {
        // A commit that changed something waits for its own log, and so for all that was logged before it.
        self.sql("SET synchronous_commit = on; COMMENT ON TABLE headroom_lab.numbers IS 'settled'")
    }

    fn counters(&mut self) -> Result<Option<Snapshot>, Error> {
        self.processes.counters()
    }

    fn end(&mut self) -> Result<(), Error> {
        self.insert = None;
        self.sql("DROP TABLE headroom_lab.numbers")
    }

    fn notes(&self) -> Vec<String> {
        [self.processes.notes.as_slice(), &self.notes].concat()
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        if self.has_schema && self.server.is_none() {
            // If it stays, it has its mark, and the next experiment drops it.
            let _ = self.sql("DROP SCHEMA headroom_lab CASCADE");
        }
    }
}
