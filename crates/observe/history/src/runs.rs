//! Runs of load: the result of one workload is a row, the runs of one command are a session.

use crate::exact::Exact;
use crate::results::storable;
use crate::statements::insert;
use crate::{EntryKind, Error, History, ResultId};
use host::unix_ns;
use rusqlite::Connection;
use serde::{Deserialize, Serialize};
use std::fmt;
use workload::{PhaseResult, RunResult, format_count, format_ns};

/// The number of a session: the runs of one command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct SessionId(pub i64);

impl History {
    /// Begins a session, so that each run can be kept as it ends.
    ///
    /// # Errors
    /// Where the file cannot be written.
    pub fn begin_session(&mut self) -> Result<SessionId, Error> {
        self.execute("begin a session", begin)
    }

    /// Keeps a run: one of a session with the name of its phase, or a single one.
    ///
    /// # Errors
    /// Where the file cannot be written.
    pub fn save_run(&mut self, run: &RunResult, phase: Option<(SessionId, &str)>) -> Result<ResultId, Error> {
        let json = storable(EntryKind::Run, run)?;
        self.execute("save a run", |connection| insert_run(connection, phase, run, &json))
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
        self.transact("save a session", |transaction| {
            let session = begin(transaction)?;
            let save = |(phase, run, json): &(&str, &RunResult, String)| {
                insert_run(transaction, Some((session, phase)), run, json)
            };
            Ok((session, runs.iter().map(save).collect::<rusqlite::Result<_>>()?))
        })
    }

    /// A run.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub fn run(&self, id: ResultId) -> Result<RunResult, Error> {
        self.value(EntryKind::Run, "SELECT json FROM runs WHERE id = ?", id)
    }
}

fn begin(connection: &Connection) -> rusqlite::Result<SessionId> {
    insert(connection, "sessions", &[("started_unix_ns", &Exact(unix_ns()))]).map(SessionId)
}

/// Adds a run, whose JSON is [`storable`].
pub(crate) fn insert_run(
    connection: &Connection,
    phase: Option<(SessionId, &str)>,
    run: &RunResult,
    json: &str,
) -> rusqlite::Result<ResultId> {
    let (session, phase) = phase.unzip();
    let some = |text: &'_ str| (!text.is_empty()).then(|| text.to_owned());
    let id = insert(
        connection,
        "runs",
        &[
            ("started_unix_ns", &Exact(run.started_unix_ns)),
            ("target", &run.target),
            ("workload", &run.shape_words()),
            ("outstanding", &run.workload.outstanding_total()),
            ("threads", &run.workload.threads),
            ("elapsed_ns", &Exact(run.elapsed_ns)),
            ("ios", &Exact(run.ios())),
            ("failed", &Exact(run.failed())),
            ("iops", &run.iops()),
            ("mib_per_s", &run.mib_per_s()),
            ("latency_ns", &run.mean_latency_ns()),
            ("interrupted", &run.interrupted),
            ("summary", &summary_of(phase.unwrap_or_default(), run)),
            ("json", &json),
            ("session", &session.map(|SessionId(id)| id)),
            ("phase", &phase.and_then(some)),
            ("name", &some(&run.workload.name)),
            ("tool", &run.tool),
        ],
    )?;
    Ok(ResultId(id))
}

/// "1,000 IOPS, 7.8 MiB/s, 2.00 ms mean; load, oltp: random 70/30 8 KiB, 32 outstanding": the result first, as a narrow
/// terminal cuts the end.
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
    let outstanding = if run.settings_unreported {
        String::new()
    } else {
        format!(", {} outstanding", run.workload.outstanding_total())
    };
    format!(
        "{} IOPS, {:.1} MiB/s, {mean}; {names}{}{outstanding}{tool}",
        format_count(run.iops().round() as u64),
        run.mib_per_s(),
        run.shape_words(),
    )
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
