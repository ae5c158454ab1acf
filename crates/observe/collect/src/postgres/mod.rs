//! A PostgreSQL server, 14 and later.
//!
//! ```text
//! Postgres::open ──> one thread, one connection ──┬─ a snapshot on request: one round trip, in bounded time
//!                                                 └─ pg_stat_activity twice a second: who waits for what
//!
//! version   a sample is                                                            counts
//! 16 17     a row of pg_stat_io: "client backend/relation/normal"                  blocks
//! 18        the same, and WAL in it: "walwriter/wal/normal"                        requests
//! 14 15     reads of a database: "database/shop"; writes of "checkpointer",        blocks
//!           "background writer", "backends"
//! to 17     "wal", of pg_stat_wal                                                  requests
//! all       "temp files/shop", of pg_stat_database                                 blocks
//! ```
//!
//! No I/O is in two samples of one snapshot: their sum is the server's I/O.
//!
//! Epoch: `run` is the cluster, the start of the postmaster and that of the checkpointer, which restarts when any process
//! crashes; `reset` is `stats_reset` of the row's view. Times are unknown while track_io_timing (of WAL:
//! track_wal_io_timing) is off, and in an interval in which it changed.
//!
//! Never: writes, waits for a lock, waits longer than [`SNAPSHOT_LIMIT`], shows a password.

mod answer;
mod argument;
mod authentication;
mod background;
mod bounded;
mod client;
mod connection;
mod databases;
mod dial;
mod discover;
mod end_point;
mod error;
#[cfg(fuzzing)]
mod fuzzing;
mod io;
mod local;
mod passfile;
mod peer;
mod relation_names;
mod sampler;
mod server;
mod session;
mod settings;
mod timing;
mod tls;
mod waits;
mod worker;

pub use argument::KIND;
pub use authentication::{AuthenticationFault, Method as AuthenticationMethod};
pub use client::Client;
pub use error::{PostgresError, SNAPSHOT_LIMIT};
#[cfg(fuzzing)]
pub use fuzzing::read_answers;
pub use waits::SAMPLED_EVERY;

use crate::environment;
use crate::error::SourceError;
use crate::file_names::{Cluster, FileNames};
use crate::source::Source;
use filestats::Snapshot;
use std::path::{Path, PathBuf};
use std::time::Duration;
use worker::{Request, Worker};

/// Sessions report their counts at the end of a transaction, at most this often (PGSTAT_MIN_INTERVAL of
/// src/backend/utils/activity/pgstat.c).
const REPORTING_DELAY: Duration = Duration::from_secs(1);

/// One server, observed through one connection.
pub struct Postgres {
    name: String,
    worker: Worker,
    processes: Vec<u32>,
    /// The cluster's directory, if the server runs on this machine and the role may know it.
    data_directory: Option<PathBuf>,
    /// Where its tablespaces are, as of the last snapshot.
    tablespace_mounts: Vec<String>,
    /// Host, port and database.
    database: String,
    names: Option<FileNames>,
    /// Of the last snapshot.
    remarks: Vec<String>,
    commits: Option<u64>,
}

impl Postgres {
    /// Connects. `connection` is a URL or `name=value` pairs, perhaps empty; settings that it omits are filled in as by
    /// libpq.
    ///
    /// # Errors
    /// [`PostgresError`]: no server answers, the role is refused, or the string is malformed.
    pub fn open(connection: &str) -> Result<Postgres, SourceError> {
        let settings = connection::Connection::parse(connection, &environment::of_process);
        let settings = settings.map_err(PostgresError::Settings)?;
        let name = format!("postgres {}", settings.place);
        let database = format!("{} {}", settings.place, settings.database);
        let worker = Worker::start(connection, settings)?;
        let data_directory = worker.request(Request::DataDirectory)?;
        Ok(Postgres {
            name,
            worker,
            processes: Vec::new(),
            data_directory,
            tablespace_mounts: Vec::new(),
            database,
            names: None,
            remarks: Vec::new(),
            commits: None,
        })
    }

    /// Publishes from now on which relations the cluster's files hold, if it runs on this machine: those of the connected
    /// database by name, those of others by number.
    #[must_use]
    pub fn publishing_names(mut self, names: &FileNames) -> Postgres {
        self.names = Some(names.clone());
        self.publish_names();
        self
    }

    fn publish_names(&self) {
        if let (Some(names), Some(data)) = (&self.names, &self.data_directory) {
            let lookup = Box::new(self.worker.lookup());
            names.add(Cluster::new(data.clone(), self.database.clone(), lookup));
        }
    }
}

impl Source for Postgres {
    fn name(&self) -> &str {
        &self.name
    }

    fn directory(&self) -> Option<&Path> {
        self.data_directory.as_deref()
    }

    fn processes(&self) -> &[u32] {
        &self.processes
    }

    fn undivided_mounts(&self) -> &[String] {
        &self.tablespace_mounts
    }

    fn reporting_delay(&self) -> Duration {
        REPORTING_DELAY
    }

    fn commits(&self) -> Option<u64> {
        self.commits
    }

    fn remarks(&self) -> &[String] {
        &self.remarks
    }

    fn snapshot(&mut self) -> Result<Snapshot, SourceError> {
        let reading = self.worker.request(Request::Snapshot)?;
        self.processes = reading.processes;
        self.remarks = reading.remarks;
        self.commits = reading.commits;
        self.tablespace_mounts = reading.tablespace_mounts;
        if self.data_directory != reading.data_directory {
            self.data_directory = reading.data_directory;
            self.publish_names();
        }
        Ok(reading.snapshot)
    }
}

impl std::fmt::Debug for Postgres {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Postgres").field("name", &self.name).finish_non_exhaustive()
    }
}
