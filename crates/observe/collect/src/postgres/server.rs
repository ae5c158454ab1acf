//! Known facts of the server: once for a connection, and again with each snapshot.

use super::answer::Columns;
use super::connection::Connection;
use super::error::{OLDEST_VERSION, PostgresError};
use super::timing::Timing;
use crate::notes::Notes;
use filestats::{Counters, Durable, Epoch, Figure, FileIdentity, Meaning, Ops, Reason, Sample};

/// Facts that do not change during a connection.
pub(super) const SERVER_QUERY: &str = "
    SELECT current_setting('server_version_num') AS version,
           current_setting('block_size') AS block_bytes,
           current_setting('wal_block_size') AS wal_block_bytes,
           pg_backend_pid() AS pid,
           CASE WHEN pg_has_role('pg_read_all_settings', 'USAGE')
                THEN current_setting('data_directory') END AS data_directory,
           current_setting('io_method', true) AS io_method,
           current_setting('wal_sync_method', true) AS wal_sync_method,
           (SELECT quote_ident(n.nspname) FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
             WHERE e.extname = 'pg_wait_sampling') AS wait_sampling";

/// The number that initdb gave the cluster. Hosted services may forbid this query.
pub(super) const CLUSTER_QUERY: &str = "SELECT system_identifier AS cluster FROM pg_control_system()";

/// The directories of tablespaces other than the cluster's own.
pub(super) const TABLESPACES_QUERY: &str = "
    SELECT pg_tablespace_location(oid) AS location
      FROM pg_tablespace WHERE pg_tablespace_location(oid) <> ''";

/// Facts that may change: read before the counters, in the same round trip.
pub(super) const STATE_QUERY: &str = "
    SELECT extract(epoch FROM pg_postmaster_start_time()) AS started,
           (SELECT extract(epoch FROM backend_start) FROM pg_stat_activity
             WHERE backend_type = 'checkpointer' LIMIT 1) AS checkpointer_started,
           (SELECT extract(epoch FROM stats_reset) FROM pg_stat_archiver) AS archiver_reset,
           current_setting('track_io_timing') AS io_timing,
           current_setting('track_wal_io_timing') AS wal_timing,
           current_setting('track_counts') AS counts,
           current_user AS role,
           pg_has_role('pg_read_all_stats', 'USAGE') AS sees_all";

/// A remark on all figures of a server with asynchronous reads.
const READS_AHEAD: &str =
    "io_method is not sync: the time of reads is the time that sessions waited for them";

/// Known facts of the server for a whole connection.
pub(super) struct Server {
    /// "postgres HOST:PORT".
    pub instance: String,
    /// Major version.
    pub version: u32,
    /// Bytes of a block of data.
    pub block_bytes: u64,
    /// Bytes of a block of the log.
    pub wal_block_bytes: u64,
    /// Its number, which standbys and base backups share. Empty if it may not be read.
    pub cluster: String,
    /// The server's process for this connection.
    pub pid: Option<u32>,
    /// The cluster's directory on the server's machine, if the role may know it.
    pub data_directory: Option<String>,
    /// Other processes or the kernel read while the session continues (18 and later).
    pub reads_ahead: bool,
    /// The method by which writes of the log become durable.
    pub log_durable: Durable,
    /// The schema of pg_wait_sampling, if it is installed.
    pub wait_sampling: Option<String>,
}

/// The server's state at one snapshot.
pub(super) struct ServerState {
    /// Identifies the server's run.
    pub run: String,
    pub timing: Timing,
    /// When times began again after a gap in their sums.
    pub gaps: Timing<Option<u64>>,
    counts: bool,
    role: String,
    pub sees_all: bool,
}

impl Server {
    /// Parses the answer to [`SERVER_QUERY`].
    pub fn from_row(
        connection: &Connection,
        row: Option<&impl Columns>,
        cluster: Option<String>,
    ) -> Result<Server, PostgresError> {
        let failed = || unexpected(&connection.place);
        let row = row.ok_or_else(failed)?;
        let version = u32::try_from(row.count("version").ok_or_else(failed)? / 10_000).unwrap_or(u32::MAX);
        if version < OLDEST_VERSION {
            return Err(PostgresError::TooOld { place: connection.place.clone(), version });
        }
        let owned = |name: &str| row.text(name).map(str::to_owned);
        Ok(Server {
            instance: format!("postgres {}", connection.place),
            version,
            block_bytes: row.count("block_bytes").ok_or_else(failed)?,
            wal_block_bytes: row.count("wal_block_bytes").ok_or_else(failed)?,
            cluster: cluster.unwrap_or_default(),
            pid: row.count("pid").and_then(|pid| u32::try_from(pid).ok()),
            data_directory: owned("data_directory"),
            reads_ahead: matches!(row.text("io_method"), Some(method) if method != "sync"),
            log_durable: match row.text("wal_sync_method") {
                Some("open_datasync" | "open_sync") => Durable::ByItself,
                _ => Durable::BySync,
            },
            wait_sampling: owned("wait_sampling"),
        })
    }

    /// "HOST:PORT".
    pub fn place(&self) -> &str {
        self.instance.trim_start_matches("postgres ")
    }

    /// Makes a sample of this server.
    pub fn sample(&self, state: &ServerState, subject: Subject, counters: Counters) -> Sample {
        let file = FileIdentity { instance: self.instance.clone(), ..subject.file };
        let reset = match subject.gap {
            Some(since) => format!("{} timed since {since}", subject.reset),
            None => subject.reset,
        };
        Sample::new(file, Epoch { run: state.run.clone(), reset }, subject.meaning, counters)
    }
}

/// The subject of a sample, beside its counters.
pub(super) struct Subject {
    /// The instance is the server.
    pub file: FileIdentity,
    /// The row's `stats_reset`.
    pub reset: String,
    /// When times began again after a gap in their sums.
    pub gap: Option<u64>,
    pub meaning: Meaning,
}

impl ServerState {
    /// Parses the answer to [`STATE_QUERY`].
    pub fn from_row(server: &Server, row: Option<&impl Columns>) -> Result<ServerState, PostgresError> {
        let failed = || unexpected(server.place());
        let row = row.ok_or_else(failed)?;
        let started = row.text("started").ok_or_else(failed)?;
        // When a process crashes, the postmaster stays, drops all statistics and restarts the checkpointer. A role that
        // cannot see the checkpointer sees that the archiver's statistics were reset.
        let since = row.text("checkpointer_started").map(|at| format!("checkpointer {at}"));
        let since = since.or_else(|| row.text("archiver_reset").map(|at| format!("archiver {at}")));
        Ok(ServerState {
            run: format!("{} {started} {}", server.cluster, since.unwrap_or_default()),
            timing: Timing::from_row(row),
            gaps: Timing::default(),
            counts: row.flag("counts").unwrap_or(true),
            role: row.text("role").unwrap_or_default().to_owned(),
            sees_all: row.flag("sees_all").unwrap_or(false),
        })
    }

    /// Notes that a person must know to read a snapshot, with the statement that changes the cause.
    pub fn notes(&self, server: &Server) -> Notes {
        let mut notes = Notes::default();
        let off = [
            (
                self.timing.io,
                "track_io_timing is off, or was since the last snapshot: no latency of data files is known; to \
                 switch it on: ALTER SYSTEM SET track_io_timing = on; SELECT pg_reload_conf();",
            ),
            (
                self.timing.wal,
                "track_wal_io_timing is off, or was since the last snapshot: no latency of the log is known; \
                 to switch it on: ALTER SYSTEM SET track_wal_io_timing = on; SELECT pg_reload_conf();",
            ),
            (
                self.counts,
                "track_counts is off: the counts of databases and relations stand still; to switch it on: \
                 ALTER SYSTEM SET track_counts = on; SELECT pg_reload_conf();",
            ),
        ];
        off.into_iter().filter(|(on, _)| !on).for_each(|(_, lack)| notes.add_lack(lack));
        if !self.sees_all {
            let role = self.role.replace('"', "\"\"");
            notes.add_lack(format!(
                "role {} may not see what other sessions wait for, nor where the server lies: \
                 GRANT pg_monitor TO \"{role}\";",
                self.role
            ));
        }
        if server.reads_ahead {
            notes.add_remark(READS_AHEAD);
        }
        notes
    }
}

/// Operations that the server times if timing is on.
pub(super) fn ops(count: u64, bytes: u64, stall_ns: Option<u64>, timed: bool) -> Ops {
    let stall_ns = match (timed, stall_ns) {
        (false, _) => Figure::unknown(Reason::TimingOff),
        (true, Some(ns)) => Figure::Known(ns),
        (true, None) => Figure::unknown(Reason::NotCounted),
    };
    Ops { count, bytes, stall_ns }
}

/// Operations that the server never times.
pub(super) const fn untimed(count: u64, bytes: u64) -> Ops {
    Ops { count, bytes, stall_ns: Figure::unknown(Reason::NotCounted) }
}

/// Reads or writes that the server does not count.
pub(super) const UNCOUNTED: Ops = untimed(0, 0);

fn unexpected(place: &str) -> PostgresError {
    PostgresError::Failed { place: place.to_owned(), why: "an answer is not of the expected form".into() }
}
