//! What is known of the server: once for a connection, and anew with each snapshot.

use super::answer::Columns;
use super::connection::Connection;
use super::error::PostgresError;
use super::timing::Timing;
use filestats::{Counters, Durable, Epoch, Figure, FileIdentity, FileKind, Meaning, Ops, Reason, Sample};

/// What does not change while the connection lives. The last two are NULL where there are none.
pub(super) const SERVER_QUERY: &str = "
    SELECT current_setting('server_version_num') AS version,
           current_setting('block_size') AS block_bytes,
           current_setting('wal_block_size') AS wal_block_bytes,
           current_database() AS database,
           pg_backend_pid() AS pid,
           CASE WHEN pg_has_role('pg_read_all_settings', 'USAGE')
                THEN current_setting('data_directory') END AS data_directory,
           current_setting('io_method', true) AS io_method,
           current_setting('wal_sync_method', true) AS wal_sync_method,
           (SELECT quote_ident(n.nspname) FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
             WHERE e.extname = 'pg_wait_sampling') AS wait_sampling";

/// The number that initdb gave the cluster. A service may forbid to ask for it.
pub(super) const CLUSTER_QUERY: &str = "SELECT system_identifier AS cluster FROM pg_control_system()";

/// What may: in the one statement that comes before those of the counters.
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

/// A remark on every figure of such a server.
pub(super) const READS_AHEAD: &str =
    "io_method is not sync: the time of reads is the time that sessions waited for them";

/// The oldest version whose views are known.
const OLDEST_VERSION: u32 = 14;

/// What is known once.
pub(super) struct Server {
    /// "postgres HOST:PORT".
    pub instance: String,
    /// Major version.
    pub version: u32,
    /// Bytes of a block of data.
    pub block_bytes: u64,
    /// Bytes of a block of the log.
    pub wal_block_bytes: u64,
    /// Its number; standbys and base backups share it. Empty where it may not be asked for.
    pub cluster: String,
    /// The connected database.
    pub database: String,
    /// The server's process of this connection.
    pub pid: Option<u32>,
    /// Where the cluster lies on the server's machine, where the role may know.
    pub data_directory: Option<String>,
    /// Reads are done by others or by the kernel while the session goes on (18 and later).
    pub reads_ahead: bool,
    /// What makes writes of the log durable.
    pub log_durable: Durable,
    /// The schema of pg_wait_sampling, where it is installed.
    pub wait_sampling: Option<String>,
}

/// What holds for one snapshot.
pub(super) struct ServerState {
    /// What the server calls its run.
    pub run: String,
    pub timing: Timing,
    /// Where their sums have a gap.
    pub gaps: Timing<Option<u64>>,
    counts: bool,
    role: String,
    pub sees_all: bool,
}

impl Server {
    /// Of the answer to [`SERVER_QUERY`].
    pub fn read(
        connection: &Connection,
        row: Option<&impl Columns>,
        cluster: Option<String>,
    ) -> Result<Server, PostgresError> {
        let failed = || unexpected(&connection.place);
        let row = row.ok_or_else(failed)?;
        let version = u32::try_from(row.count("version").ok_or_else(failed)? / 10_000).unwrap_or(u32::MAX);
        if version < OLDEST_VERSION {
            return Err(PostgresError::TooOld {
                place: connection.place.clone(),
                version,
                oldest: OLDEST_VERSION,
            });
        }
        let owned = |name: &str| row.text(name).map(str::to_owned);
        Ok(Server {
            instance: format!("postgres {}", connection.place),
            version,
            block_bytes: row.count("block_bytes").ok_or_else(failed)?,
            wal_block_bytes: row.count("wal_block_bytes").ok_or_else(failed)?,
            cluster: cluster.unwrap_or_default(),
            database: owned("database").ok_or_else(failed)?,
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

    /// A sample of this server.
    pub fn sample(&self, now: &ServerState, subject: Subject, counters: Counters) -> Sample {
        Sample {
            file: FileIdentity {
                instance: self.instance.clone(),
                database: subject.database.as_ref().map(|(name, _)| name.clone()),
                database_id: subject.database.map(|(_, id)| id),
                file_id: subject.file_id,
                kind: subject.kind,
                path: subject.path,
                drive: None,
                handle: None,
                object: None,
            },
            epoch: Epoch {
                run: now.run.clone(),
                reset: match subject.gap {
                    Some(since) => format!("{} timed since {since}", subject.reset),
                    None => subject.reset,
                },
            },
            counters,
            size_bytes: Figure::unknown(Reason::NotCounted),
            latencies: None,
            meaning: subject.meaning,
        }
    }
}

/// What a sample is of.
pub(super) struct Subject {
    pub path: String,
    pub kind: FileKind,
    /// What tells it from another of the same path.
    pub file_id: String,
    pub database: Option<(String, u64)>,
    /// The row's `stats_reset`.
    pub reset: String,
    /// Where the sums of its time have a gap.
    pub gap: Option<u64>,
    pub meaning: Meaning,
}

impl ServerState {
    /// Of the answer to [`STATE_QUERY`].
    pub fn read(server: &Server, row: Option<&impl Columns>) -> Result<ServerState, PostgresError> {
        let failed = || unexpected(server.place());
        let row = row.ok_or_else(failed)?;
        let started = row.text("started").ok_or_else(failed)?;
        // A crash of any process makes the postmaster drop all statistics and start the checkpointer anew,
        // itself going on. A role that does not see the checkpointer sees that the archiver's were dropped.
        let since = row.text("checkpointer_started").map(|at| format!("checkpointer {at}"));
        let since = since.or_else(|| row.text("archiver_reset").map(|at| format!("archiver {at}")));
        Ok(ServerState {
            run: format!("{} {started} {}", server.cluster, since.unwrap_or_default()),
            timing: Timing::read(row),
            gaps: Timing::default(),
            counts: row.flag("counts").unwrap_or(true),
            role: row.text("role").unwrap_or_default().to_owned(),
            sees_all: row.flag("sees_all").unwrap_or(false),
        })
    }

    /// What a person must know about what the server shows.
    pub fn notes(&self, server: &Server) -> Vec<String> {
        let mut notes = Vec::new();
        if !self.timing.io {
            notes.push(
                "track_io_timing is off, or was since the last snapshot: no latency of data files is known; to \
                 switch it on: ALTER SYSTEM SET track_io_timing = on; SELECT pg_reload_conf();"
                    .into(),
            );
        }
        if !self.timing.wal {
            notes.push(
                "track_wal_io_timing is off, or was since the last snapshot: no latency of the log is known; \
                 to switch it on: ALTER SYSTEM SET track_wal_io_timing = on; SELECT pg_reload_conf();"
                    .into(),
            );
        }
        if !self.counts {
            notes.push(
                "track_counts is off: the counts of databases and relations stand still; to switch it on: \
                 ALTER SYSTEM SET track_counts = on; SELECT pg_reload_conf();"
                    .into(),
            );
        }
        if !self.sees_all {
            let role = self.role.replace('"', "\"\"");
            notes.push(format!(
                "role {} may not see what other sessions wait for, nor where the server lies: \
                 GRANT pg_monitor TO \"{role}\";",
                self.role
            ));
        }
        if server.reads_ahead {
            notes.push(READS_AHEAD.to_owned());
        }
        notes
    }
}

/// Operations whose time is known only while the server times them.
pub(super) fn ops(count: u64, bytes: u64, stall_ns: Option<u64>, timed: bool) -> Ops {
    let stall_ns = match (timed, stall_ns) {
        (false, _) => Figure::unknown(Reason::TimingOff),
        (true, Some(ns)) => Figure::Known(ns),
        (true, None) => Figure::unknown(Reason::NotCounted),
    };
    Ops { count, bytes, stall_ns }
}

/// Operations that the server counts and never times.
pub(super) const fn untimed(count: u64, bytes: u64) -> Ops {
    Ops { count, bytes, stall_ns: Figure::unknown(Reason::NotCounted) }
}

/// What nobody counts: not these reads or writes, and not their time.
pub(super) const UNCOUNTED: Ops = untimed(0, 0);

fn unexpected(place: &str) -> PostgresError {
    PostgresError::Failed { place: place.to_owned(), why: "an answer is not of the expected form".into() }
}
