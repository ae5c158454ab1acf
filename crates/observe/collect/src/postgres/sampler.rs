//! The queries that run on one connection, and the state between them.

use super::answer::Columns;
use super::bounded::AnswerLimit;
use super::connection::Connection;
use super::error::PostgresError;
use super::local::Local;
use super::server::{self, Server, ServerState};
use super::session::Session;
use super::timing::{Timing, TimingWatch};
use super::waits::Waits;
use super::{background, databases, io, relation_names};
use crate::file_names::{FileLookup, LookupResult};
use filestats::{Sample, Snapshot};
use std::path::PathBuf;

/// A snapshot, and the server's place on this machine.
pub(super) struct Reading {
    pub snapshot: Snapshot,
    pub remarks: Vec<String>,
    pub commits: Option<u64>,
    pub processes: Vec<u32>,
    pub data_directory: Option<PathBuf>,
    pub tablespace_mounts: Vec<String>,
}

/// One connection with the known facts of its server.
pub(super) struct Sampler {
    session: Session,
    server: Server,
    local: Local,
    waits: Waits,
    timing: TimingWatch,
}

impl Sampler {
    /// Connects, and reads the facts that do not change while the server runs.
    pub async fn connect(connection: &Connection) -> Result<Sampler, PostgresError> {
        Sampler::begin(connection, Session::connect(connection, AnswerLimit::Recording).await?).await
    }

    pub async fn begin(connection: &Connection, session: Session) -> Result<Sampler, PostgresError> {
        let tables = session.query(server::SERVER_QUERY).await?;
        let cluster = session.query(server::CLUSTER_QUERY).await.unwrap_or_default();
        let cluster = cluster.first().and_then(|rows| rows.first()?.text("cluster").map(str::to_owned));
        let server = Server::from_row(connection, tables.first().and_then(|rows| rows.first()), cluster)?;
        let mut local = Local::find(connection, &server);
        if local.postmaster.is_some() {
            let tables = session.query(server::TABLESPACES_QUERY).await.unwrap_or_default();
            let locations = tables.first().into_iter().flatten().filter_map(|row| row.text("location"));
            local.find_tablespaces(locations);
        }
        let mut waits = Waits::new(&server);
        // An extension that is created but not loaded answers with an error.
        if let Some(profile) = waits.profile_statement()
            && session.query(&profile).await.is_err()
        {
            waits.disable_profile();
        }
        Ok(Sampler { session, server, local, waits, timing: TimingWatch::default() })
    }

    /// Whether the connection has ended.
    pub fn is_closed(&self) -> bool {
        self.session.is_closed()
    }

    /// Reads all counters in one round trip.
    pub async fn snapshot(&mut self) -> Result<Reading, PostgresError> {
        let views: Vec<(&str, Reader)> = match self.server.version {
            18.. => {
                vec![(io::SINCE_18, io::samples), (databases::TEMP_FILES_AND_COMMITS, databases::temp_files)]
            }
            16..=17 => vec![
                (io::SINCE_16, io::samples),
                (background::WAL, background::wal),
                (databases::TEMP_FILES_AND_COMMITS, databases::temp_files),
            ],
            _ => vec![
                (databases::READS, databases::reads),
                (background::WRITERS, background::writers),
                (background::WAL, background::wal),
                (databases::TEMP_FILES_AND_COMMITS, databases::temp_files),
            ],
        };
        let mut statements = vec![server::STATE_QUERY];
        statements.extend(views.iter().map(|(statement, _)| *statement));
        let profile = self.waits.profile_statement();
        statements.extend(profile.as_deref());
        let (taken_unix_ns, clock_ns) = (host::unix_ns(), host::monotonic_ns());
        let mut tables = self.session.query(&statements.join(";\n")).await?.into_iter();
        let mut state = ServerState::from_row(&self.server, tables.next().unwrap_or_default().first())?;
        (state.timing, state.gaps) = self.timing.snapshot(state.timing, taken_unix_ns);
        let (mut samples, mut commits) = (Vec::<Sample>::new(), None);
        for ((statement, read), table) in views.iter().zip(tables.by_ref()) {
            if *statement == databases::TEMP_FILES_AND_COMMITS {
                commits = databases::commits(&table);
            }
            samples.extend(table.iter().filter_map(|row| read(row, &self.server, &state)).flatten());
        }
        self.local.fill_in_drives(&mut samples);
        let profile = profile.and_then(|_| tables.next());
        let (waits, remark) = self.waits.samples(&self.server, &state, profile);
        let mut notes = state.notes(&self.server);
        notes.add_remark(remark);
        Ok(Reading {
            snapshot: Snapshot {
                source: format!("postgres:{}", self.server.place()),
                taken_unix_ns,
                clock_ns,
                // Every database and kind of process has a row, and every wait since this connection was made.
                complete: Some(self.waits.epoch(&state)),
                samples,
                waits,
                notes: notes.texts,
            },
            remarks: notes.remarks,
            commits,
            processes: self.local.processes(),
            data_directory: self.local.data_directory(),
            tablespace_mounts: self.local.tablespace_mounts.clone(),
        })
    }

    /// Looks up relations by their files.
    pub async fn look_up(&mut self, lookup: &FileLookup) -> Result<LookupResult, PostgresError> {
        Ok(relation_names::parse(&self.session.query(&relation_names::statements(lookup)).await?))
    }

    /// The cluster's directory on this machine.
    pub fn data_directory(&self) -> Option<PathBuf> {
        self.local.data_directory()
    }

    /// Samples the waits of sessions, and whether I/O is timed.
    pub async fn sample_waits(&mut self) -> Result<(), PostgresError> {
        let table = self.session.query_often(super::waits::SAMPLE_QUERY).await?;
        self.waits.add(&table);
        if let Some(row) = table.first() {
            self.timing.sample(Timing::from_row(row));
        }
        Ok(())
    }
}

/// Converts a row to samples.
type Reader = fn(&tokio_postgres::SimpleQueryRow, &Server, &ServerState) -> Option<Vec<Sample>>;
