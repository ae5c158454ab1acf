//! MySQL and MariaDB servers, by the Performance Schema: the reads and writes of each file with their times, and the
//! waits of threads.
//!
//! ```text
//! file_summary_by_instance    ─ files   ─> a Sample of each file          (counts, bytes, time; syncs not apart)
//! global status of InnoDB     ─ engine  ─> the redo log, syncs; all of it where the Performance Schema is off
//! file_summary_by_event_name  ─ waits   ─> a WaitSample of each event and operation
//! setup_instruments, threads  ─ notes   ─> what is off, and the line that switches it on
//! server start, last snapshot ─ resets  ─> Epoch { run, reset }
//! ```
//!
//! Main path: [`Mysql::open`] reads the connection text and the option files and connects; [`Source::snapshot`] runs a
//! few queries over that connection. After a failure the next snapshot connects again. Opening and each snapshot, a new
//! connection included, take [`ANSWER_SECONDS`] at most.
//!
//! The meaning of the figures, and those that the server does not report: docs/how-to/source-mysql.md.
//!
//! Never: writes anything to the server, puts a password into a name, an error or a `Debug` text.

mod address;
mod argument;
mod client;
mod discover;
mod engine;
mod error;
mod files;
mod notes;
mod option_file;
mod protocol;
mod resets;
mod server;
mod session;
mod statistics;
mod waits;

pub use argument::KIND;
pub use client::Client;
pub use error::MysqlError;
pub use protocol::{Column, Parameter, Row, Statement};
#[cfg(fuzzing)]
pub use session::read_answers;

use crate::error::SourceError;
use crate::source::Source;
use error::ANSWER_TIMEOUT;
use files::Owner;
use filestats::Snapshot;
use resets::Resets;
use server::Server;
use session::{Login, Session};
use statistics::{Schema, Statistics};
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::time::Instant;

/// The longest that a server can hold up a snapshot.
pub const ANSWER_SECONDS: u64 = ANSWER_TIMEOUT.as_secs();

/// One server.
pub struct Mysql {
    name: String,
    login: Login,
    /// None after a failure, until the next snapshot.
    session: Option<Session>,
    /// As of the last connection.
    server: Server,
    processes: Vec<u32>,
    resets: Resets,
    /// Of the last snapshot.
    remarks: Vec<String>,
    commits: Commits,
}

/// Transactions that the server committed. `Handler_commit` counts each statement of a transaction as well: it is the number of
/// transactions only while each statement is one.
#[derive(Debug, Default)]
struct Commits {
    /// `COMMIT` statements until the last snapshot.
    explicit: Option<u64>,
    total: Option<u64>,
}

impl Commits {
    fn observe(&mut self, status: &BTreeMap<String, u64>) {
        let explicit = status.get("com_commit").copied();
        let only_implicit = self.explicit.is_none() || explicit == self.explicit;
        self.explicit = explicit;
        self.total = status.get("handler_commit").copied().filter(|_| only_implicit);
    }
}

impl Mysql {
    /// Connects to `mysql://USER@HOST:PORT/`, `mysql://USER@/PATH/OF/SOCKET` or what the option files of the MySQL
    /// clients say (`mysql:`). The password comes from them or from MYSQL_PWD.
    ///
    /// # Errors
    /// [`MysqlError`]: the text is malformed, no server answers, or it refuses the login.
    pub fn open(connection: &str) -> Result<Mysql, SourceError> {
        let login = Login::new(connection)?;
        let session = Session::open(&login, Instant::now() + ANSWER_TIMEOUT);
        let session = session.map_err(|fault| SourceError::of_server(&login.name(), fault))?;
        Ok(Mysql::begin(login, session))
    }

    fn begin(login: Login, session: Session) -> Mysql {
        let mut mysql = Mysql {
            name: login.name(),
            login,
            session: None,
            server: Server::default(),
            processes: Vec::new(),
            resets: Resets::new(),
            remarks: Vec::new(),
            commits: Commits::default(),
        };
        mysql.keep_server(&session);
        mysql.session = Some(session);
        mysql
    }

    fn keep_server(&mut self, session: &Session) {
        self.server = session.server.clone();
        self.processes = self.server.process.iter().map(|process| process.pid).collect();
    }

    /// Uses the open connection, or makes one. A connection that was lost since the last snapshot, because the server
    /// restarted, is replaced at once; a server that does not answer is not tried twice.
    fn read_statistics(&mut self) -> Result<(Session, Statistics), MysqlError> {
        let deadline = Instant::now() + ANSWER_TIMEOUT;
        if let Some(mut session) = self.session.take() {
            session.set_deadline(deadline);
            match session.read_statistics() {
                Ok(statistics) => return Ok((session, statistics)),
                Err(error) if !Session::is_lost(&error) => return Err(error),
                Err(_) => {}
            }
        }
        let mut session = Session::open(&self.login, deadline)?;
        let statistics = session.read_statistics()?;
        Ok((session, statistics))
    }
}

impl Source for Mysql {
    fn name(&self) -> &str {
        &self.name
    }

    fn directory(&self) -> Option<&Path> {
        self.server.process.as_ref().map(|_| self.server.data_directory.as_path())
    }

    fn processes(&self) -> &[u32] {
        &self.processes
    }

    fn commits(&self) -> Option<u64> {
        self.commits.total
    }

    fn version(&self) -> Option<String> {
        let (major, minor) = self.server.version;
        (major > 0).then(|| format!("{major}.{minor}"))
    }

    fn remarks(&self) -> &[String] {
        &self.remarks
    }

    fn snapshot(&mut self) -> Result<Snapshot, SourceError> {
        let read = self.read_statistics().map_err(|fault| SourceError::of_server(&self.name, fault));
        let (session, mut statistics) = read?;
        self.keep_server(&session);
        let run = session.server.run(statistics.started_unix_s);
        if let Schema::On(counted) = &mut statistics.schema {
            counted.locate_files(&session.server);
            self.resets.observe(&run, counted, statistics.taken_unix_ns / 1_000_000);
        }
        let complete = statistics.is_complete().then(|| self.resets.complete());
        let owner = Owner { name: &self.name, run: &run, server: &session.server, resets: &self.resets };
        let mut samples = match &statistics.schema {
            Schema::On(counted) => files::samples(counted, &owner),
            Schema::Off | Schema::Denied => Vec::new(),
        };
        samples.extend(engine::samples(&statistics, &owner, &samples));
        let mut notes = notes::notes(&statistics, &session.server, &session.user);
        self.login.notes().iter().for_each(|note| notes.add_lack(note));
        self.remarks = notes.remarks;
        self.commits.observe(&statistics.status);
        let snapshot = Snapshot {
            source: self.name.replacen(' ', ":", 1),
            taken_unix_ns: statistics.taken_unix_ns,
            clock_ns: statistics.clock_ns,
            samples,
            waits: waits::samples(&statistics, &owner),
            notes: notes.texts,
            complete,
        };
        self.session = Some(session);
        Ok(snapshot)
    }
}

impl fmt::Debug for Mysql {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mysql").field("name", &self.name).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transactions_are_counted_only_while_each_statement_is_one() {
        let mut commits = Commits::default();
        let mut total = |handler: u64, explicit: u64| {
            let status = [("handler_commit", handler), ("com_commit", explicit)];
            commits.observe(&status.map(|(name, count)| (name.to_owned(), count)).into());
            commits.total
        };
        assert_eq!(total(100, 5), Some(100));
        assert_eq!(total(150, 5), Some(150));
        assert_eq!(total(161, 6), None, "ten statements and a COMMIT");
        assert_eq!(total(170, 6), Some(170));
        commits.observe(&BTreeMap::new());
        assert_eq!(commits.total, None);
    }
}
