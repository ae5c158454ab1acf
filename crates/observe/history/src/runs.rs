//! Runs of load: the result of one workload is a row, the runs of one command are a session.

use crate::exact::Exact;
use crate::results::storable;
use crate::{EntryKind, Error, History, ResultId, now_unix_ns};
use rusqlite::{Connection, OptionalExtension, TransactionBehavior, named_params};
use serde::{Deserialize, Serialize};
use std::fmt;
use workload::{PhaseResult, RunResult, format_ns};

/// The number of a session: the runs of one command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SessionId(pub i64);

impl History {
    /// Keeps a run without a session.
    ///
    /// # Errors
    /// Where the file cannot be written.
    pub fn save_run(&mut self, run: &RunResult) -> Result<ResultId, Error> {
        let json = storable(EntryKind::Run, run)?;
        let saved = insert_run(&self.connection, None, "", run, &json);
        saved.map_err(|source| Error::sqlite("save a run", &self.path, source))
    }

    /// Begins a session, so that each run can be kept as it ends.
    ///
    /// # Errors
    /// Where the file cannot be written.
    pub fn begin_session(&mut self) -> Result<SessionId, Error> {
        begin(&self.connection).map_err(|source| Error::sqlite("begin a session", &self.path, source))
    }

    /// Keeps a run of a session.
    ///
    /// # Errors
    /// Where the file cannot be written.
    pub fn save_run_of(
        &mut self,
        session: SessionId,
        phase: &str,
        run: &RunResult,
    ) -> Result<ResultId, Error> {
        let json = storable(EntryKind::Run, run)?;
        let saved = insert_run(&self.connection, Some(session), phase, run, &json);
        saved.map_err(|source| Error::sqlite("save a run", &self.path, source))
    }

    /// Keeps all runs of a command as one session, or none of them; their numbers in the same order.
    ///
    /// # Errors
    /// Where the file cannot be written.
    pub fn save_session(&mut self, phases: &[PhaseResult]) -> Result<(SessionId, Vec<ResultId>), Error> {
        let mut runs = Vec::new();
        for phase in phases {
            for run in &phase.results {
                runs.push((phase.name.as_str(), run, storable(EntryKind::Run, run)?));
            }
        }
        let save = |connection: &mut Connection| -> rusqlite::Result<_> {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let session = begin(&transaction)?;
            let ids = runs
                .iter()
                .map(|(phase, run, json)| insert_run(&transaction, Some(session), phase, run, json));
            let ids = ids.collect::<rusqlite::Result<Vec<_>>>()?;
            transaction.commit()?;
            Ok((session, ids))
        };
        save(&mut self.connection).map_err(|source| Error::sqlite("save a session", &self.path, source))
    }

    /// A run.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub fn run(&self, id: ResultId) -> Result<RunResult, Error> {
        self.value(EntryKind::Run, "SELECT json FROM runs WHERE id = ?", id)
    }

    /// The session that a run belongs to, and its phase; `None` for a run without a session.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub fn session_of(&self, id: ResultId) -> Result<Option<(SessionId, String)>, Error> {
        let query = "SELECT session, coalesce(phase, '') FROM runs WHERE id = ?";
        let found = self.connection.query_row(query, [id.0], |row| {
            let session: Option<i64> = row.get(0)?;
            Ok((session.map(SessionId), row.get::<_, String>(1)?))
        });
        let found = found.optional().map_err(|source| Error::sqlite("read a run", &self.path, source))?;
        let (session, phase) = found.ok_or_else(|| self.not_found(EntryKind::Run, id.0))?;
        Ok(session.map(|session| (session, phase)))
    }
}

fn begin(connection: &Connection) -> rusqlite::Result<SessionId> {
    connection.execute("INSERT INTO sessions (started_unix_ns) VALUES (?)", [Exact(now_unix_ns())])?;
    Ok(SessionId(connection.last_insert_rowid()))
}

/// Adds a run, whose JSON is [`storable`].
pub(crate) fn insert_run(
    connection: &Connection,
    session: Option<SessionId>,
    phase: &str,
    run: &RunResult,
    json: &str,
) -> rusqlite::Result<ResultId> {
    let name = &run.workload.name;
    let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    connection.execute(
        "INSERT INTO runs (started_unix_ns, target, workload, outstanding, threads, elapsed_ns, ios, failed, \
         iops, mib_per_s, latency_ns, interrupted, summary, json, session, phase, name, tool) VALUES (:started, \
         :target, :workload, :outstanding, :threads, :elapsed, :ios, :failed, :iops, :mib_per_s, :latency, \
         :interrupted, :summary, :json, :session, :phase, :name, :tool)",
        named_params! {
            ":started": Exact(run.started_unix_ns),
            ":target": run.target,
            ":workload": run.workload.shape.to_string(),
            ":outstanding": run.workload.outstanding_total(),
            ":threads": run.workload.threads,
            ":elapsed": Exact(run.elapsed_ns),
            ":ios": Exact(run.ios()),
            ":failed": Exact(run.failed()),
            ":iops": run.iops(),
            ":mib_per_s": run.mib_per_s(),
            ":latency": run.mean_latency_ns(),
            ":interrupted": run.interrupted,
            ":summary": summary_of(phase, run),
            ":json": json,
            ":session": session.map(|session| session.0),
            ":phase": some(phase),
            ":name": some(name),
            ":tool": run.tool,
        },
    )?;
    Ok(ResultId(connection.last_insert_rowid()))
}

/// "load, oltp: random 70/30 8 KiB, 32 outstanding: 1000 IOPS, 7.8 MiB/s, 2.00 ms mean".
fn summary_of(phase: &str, run: &RunResult) -> String {
    // A preset gives its phase and its workload the same name.
    let mut names: Vec<&str> = vec![phase, &run.workload.name];
    names.retain(|name| !name.is_empty());
    names.dedup();
    let names = if names.is_empty() { String::new() } else { format!("{}: ", names.join(", ")) };
    let mean = match run.mean_latency_ns() {
        Some(ns) => format!("{} mean", format_ns(ns)),
        None if run.ios() > 0 => "latency not known".into(),
        None => "no I/O".into(),
    };
    let tool = run.tool.as_ref().map_or(String::new(), |tool| format!(" ({tool})"));
    format!(
        "{names}{}, {} outstanding: {:.0} IOPS, {:.1} MiB/s, {mean}{tool}",
        run.workload.shape,
        run.workload.outstanding_total(),
        run.iops(),
        run.mib_per_s(),
    )
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
