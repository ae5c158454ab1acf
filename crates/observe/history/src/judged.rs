//! The agent's judgements: changes of verdicts, a row a minute, incidents.
//!
//! All that a tick adds is one transaction. Each table has a bound by the number of its rows, so that a clock that is set
//! ahead removes nothing.

use crate::clock::latest_unix_ns;
use crate::exact::{Exact, Json, Word, exact};
use crate::seen_storage::save_seen;
use crate::statements::{first_row, rows};
use crate::{Error, History};
use incidents::{Incident, Mark, Readings, Subject};
use rusqlite::{Connection, Row, named_params};
use seen::Seen;
use serde::{Deserialize, Serialize};
use verdict::VerdictKind;
use workload::TargetFacts;

/// The number of an incident.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct IncidentId(pub i64);

/// Judgements since the last save.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Judged {
    /// Verdicts that differ from those before; `None` where nothing is known from then on.
    pub changes: Vec<(Subject, u64, Option<VerdictKind>)>,
    /// The figures of minutes, each by the number of minutes since 1970 at its end.
    pub minutes: Vec<(Subject, u64, Readings)>,
    /// Incidents that began or changed. One that is kept, by subject and beginning, is replaced.
    pub incidents: Vec<Incident>,
    /// Observed figures of storages. The stored ones of the same storage are replaced.
    pub seen: Vec<(TargetFacts, Seen)>,
    /// Changed limits and restarts.
    pub marks: Vec<(Subject, Mark)>,
}

impl Judged {
    /// Whether there is nothing to save.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
            && self.minutes.is_empty()
            && self.incidents.is_empty()
            && self.seen.is_empty()
            && self.marks.is_empty()
    }
}

const MINUTE_NS: u64 = 60_000_000_000;
/// Minutes kept of each subject: a month.
pub const MINUTES_MAX: usize = 31 * 24 * 60;
/// Changes kept of each subject: one in five minutes for a month.
const CHANGES_MAX: u32 = 8_928;
/// Marks kept of each subject: one in an hour for a month.
const MARKS_MAX: u32 = 744;
/// Closed incidents kept, of all subjects: about 40 MB at most.
const INCIDENTS_MAX: u32 = 5_000;

impl History {
    /// Saves the judgements. Returns the numbers of the incidents, in their order.
    ///
    /// # Errors
    /// Where the file cannot be written; then nothing of it was saved.
    pub fn save_judged(&mut self, judged: &Judged) -> Result<Vec<IncidentId>, Error> {
        self.transact("save what was judged", |transaction| {
            for (subject, at_unix_ns, verdict) in &judged.changes {
                let change = "INSERT OR REPLACE INTO verdict_changes VALUES (?, ?, ?)";
                let values = (subject_id(transaction, subject)?, Exact(*at_unix_ns), verdict.map(Word));
                transaction.prepare_cached(change)?.execute(values)?;
            }
            for (subject, minute, readings) in &judged.minutes {
                save_minute(transaction, subject, *minute, readings)?;
            }
            for (subject, mark) in &judged.marks {
                save_mark(transaction, subject, mark)?;
            }
            for (target, seen) in &judged.seen {
                save_seen(transaction, target, seen)?;
            }
            judged.incidents.iter().map(|incident| save_incident(transaction, incident)).collect()
        })
    }

    /// All incidents, the newest first, and those that are dated in the future last.
    ///
    /// # Errors
    /// Where the file cannot be read.
    pub fn incidents(&self, limit: usize) -> Result<Vec<(IncidentId, Incident)>, Error> {
        let query = "SELECT id, json FROM incidents ORDER BY started_unix_ns > ?, started_unix_ns DESC, id DESC LIMIT ?";
        self.rows("list incidents", query, (Exact(latest_unix_ns()), limit as i64), numbered)
    }

    /// The incidents of a stretch of time, the newest first: those that began before its end and were not over before it began.
    ///
    /// # Errors
    /// Where the file cannot be read.
    pub fn incidents_between(
        &self,
        from_unix_ns: u64,
        until_unix_ns: u64,
        limit: usize,
    ) -> Result<Vec<(IncidentId, Incident)>, Error> {
        let query = "SELECT id, json FROM incidents WHERE started_unix_ns < ? \
             AND (ended_unix_ns IS NULL OR ended_unix_ns >= ?) ORDER BY started_unix_ns DESC, id DESC LIMIT ?";
        let values = (Exact(until_unix_ns), Exact(from_unix_ns), limit as i64);
        self.rows("list the incidents of a time", query, values, numbered)
    }

    /// The incidents that are open.
    ///
    /// # Errors
    /// Where the file cannot be read.
    pub fn open_incidents(&self) -> Result<Vec<(IncidentId, Incident)>, Error> {
        let query = "SELECT id, json FROM incidents WHERE ended_unix_ns IS NULL ORDER BY id";
        self.rows("list open incidents", query, [], numbered)
    }

    /// An incident; `None` where there is none of that number.
    ///
    /// # Errors
    /// Where the file cannot be read.
    pub fn incident(&self, id: IncidentId) -> Result<Option<Incident>, Error> {
        let query = "SELECT json FROM incidents WHERE id = ?";
        self.first_row("read an incident", query, [id.0], |row| row.get(0).map(|Json(incident)| incident))
    }

    /// The last closed burst of a subject.
    ///
    /// # Errors
    /// Where the file cannot be read.
    pub fn last_burst(&self, subject: &Subject) -> Result<Option<Incident>, Error> {
        let query = "SELECT json FROM incidents i JOIN subjects s ON s.id = i.subject \
             WHERE s.mount = ? AND s.database_name = ? AND verdict = ? AND ended_unix_ns IS NOT NULL \
             ORDER BY started_unix_ns > ?, started_unix_ns DESC LIMIT 1";
        let latest = Exact(latest_unix_ns());
        let values = (&subject.mount, &subject.database, Word(VerdictKind::Burst), latest);
        self.first_row("read the last burst", query, values, |row| row.get(0).map(|Json(incident)| incident))
    }

    /// Notes the stage of an incident that a receiver of notifications was given.
    ///
    /// # Errors
    /// Where the file cannot be written.
    pub fn save_notified(&mut self, receiver: &str, id: IncidentId, stage: &str) -> Result<(), Error> {
        let save = "INSERT OR REPLACE INTO notified VALUES (?, ?, ?)";
        self.execute("save a notification", |connection| {
            connection.prepare_cached(save)?.execute((receiver, id.0, stage)).map(drop)
        })
    }

    /// The stage of an incident that a receiver was given last; `None` where it was given none.
    ///
    /// # Errors
    /// Where the file cannot be read.
    pub fn notified(&self, receiver: &str, id: IncidentId) -> Result<Option<String>, Error> {
        let query = "SELECT stage FROM notified WHERE receiver = ? AND incident = ?";
        self.first_row("read a notification", query, (receiver, id.0), |row| row.get(0))
    }

    /// The figures of a subject from one minute to another, both included: the first `limit` of them.
    ///
    /// # Errors
    /// Where the file cannot be read.
    pub fn judged_minutes(
        &self,
        subject: &Subject,
        (from, until): (u64, u64),
        limit: usize,
    ) -> Result<Vec<(u64, Readings)>, Error> {
        let query = "SELECT m.* FROM judged_minutes m JOIN subjects s ON s.id = m.subject \
             WHERE s.mount = ? AND s.database_name = ? AND minute BETWEEN ? AND ? ORDER BY minute LIMIT ?";
        let values = (&subject.mount, &subject.database, Exact(from), Exact(until), limit as i64);
        self.rows("read judged minutes", query, values, |row| Ok((exact(row, "minute")?, readings(row)?)))
    }

    /// All databases and volumes that were ever judged.
    ///
    /// # Errors
    /// Where the file cannot be read.
    pub fn subjects(&self) -> Result<Vec<Subject>, Error> {
        let query = "SELECT mount, database_name FROM subjects ORDER BY mount, database_name";
        self.rows("list what was judged", query, [], |row| {
            Ok(Subject { mount: row.get(0)?, database: row.get(1)? })
        })
    }

    /// The last minute of which a subject's figures are kept; `None` without any. One that is in the future counts only where there
    /// is no other.
    ///
    /// # Errors
    /// Where the file cannot be read.
    pub fn last_judged_minute(&self, subject: &Subject) -> Result<Option<(u64, Readings)>, Error> {
        let query = "SELECT m.* FROM judged_minutes m JOIN subjects s ON s.id = m.subject \
             WHERE s.mount = ? AND s.database_name = ? ORDER BY minute > ?, minute DESC LIMIT 1";
        let latest = Exact(latest_unix_ns() / MINUTE_NS);
        self.first_row("read a judged minute", query, (&subject.mount, &subject.database, latest), |row| {
            Ok((exact(row, "minute")?, readings(row)?))
        })
    }

    /// The changes of a subject's verdict, the oldest first, without those that are dated in the future.
    ///
    /// # Errors
    /// Where the file cannot be read.
    pub fn verdict_changes(&self, subject: &Subject) -> Result<Vec<(u64, Option<VerdictKind>)>, Error> {
        let query = "SELECT at_unix_ns, verdict FROM verdict_changes c JOIN subjects s ON s.id = c.subject \
             WHERE s.mount = ? AND s.database_name = ? AND at_unix_ns <= ? ORDER BY at_unix_ns";
        let values = (&subject.mount, &subject.database, Exact(latest_unix_ns()));
        self.rows("read changes of verdicts", query, values, |row| {
            Ok((exact(row, 0)?, row.get::<_, Option<Word<_>>>(1)?.map(|Word(verdict)| verdict)))
        })
    }

    /// The marks of a subject in a stretch of time, the oldest first; its end is not included.
    ///
    /// # Errors
    /// Where the file cannot be read.
    pub fn marks(
        &self,
        subject: &Subject,
        from_unix_ns: u64,
        until_unix_ns: u64,
    ) -> Result<Vec<Mark>, Error> {
        let query = "SELECT at_unix_ns, kind, text FROM marks m JOIN subjects s ON s.id = m.subject \
             WHERE s.mount = ? AND s.database_name = ? AND at_unix_ns >= ? AND at_unix_ns < ? ORDER BY at_unix_ns";
        let values = (&subject.mount, &subject.database, Exact(from_unix_ns), Exact(until_unix_ns));
        self.rows("read marks", query, values, |row| {
            let Word(kind) = row.get(1)?;
            Ok(Mark { at_unix_ns: exact(row, 0)?, kind, text: row.get(2)? })
        })
    }

    /// Removes rows beyond the bounds: those dated in the future first, then the oldest; open incidents stay.
    ///
    /// # Errors
    /// Where the file cannot be written.
    pub fn remove_old_judged(&mut self) -> Result<(), Error> {
        self.transact("remove old judgements", |transaction| {
            for id in rows(transaction, "SELECT id FROM subjects", [], |row| row.get::<_, i64>(0))? {
                let latest_ns = latest_unix_ns();
                for (table, column, latest, most) in [
                    ("judged_minutes", "minute", latest_ns / MINUTE_NS, MINUTES_MAX as u32),
                    ("verdict_changes", "at_unix_ns", latest_ns, CHANGES_MAX),
                    ("marks", "at_unix_ns", latest_ns, MARKS_MAX),
                ] {
                    let remove = format!(
                        "DELETE FROM {table} WHERE subject = :id AND {column} IN (SELECT {column} FROM {table} \
                         WHERE subject = :id ORDER BY {column} > :latest, {column} DESC LIMIT -1 OFFSET :most)"
                    );
                    let values = named_params! { ":id": id, ":latest": Exact(latest), ":most": most };
                    transaction.prepare_cached(&remove)?.execute(values)?;
                }
            }
            let remove = "DELETE FROM incidents WHERE ended_unix_ns IS NOT NULL AND id <= \
                 (SELECT id FROM incidents WHERE ended_unix_ns IS NOT NULL ORDER BY id DESC LIMIT 1 OFFSET ?)";
            transaction.execute(remove, [INCIDENTS_MAX])?;
            let remove = "DELETE FROM notified WHERE incident > 0 AND incident NOT IN (SELECT id FROM incidents)";
            transaction.execute(remove, []).map(drop)
        })
    }
}

fn subject_id(connection: &Connection, subject: &Subject) -> rusqlite::Result<i64> {
    let values = (&subject.mount, &subject.database);
    let find = "SELECT id FROM subjects WHERE mount = ? AND database_name = ?";
    match first_row(connection, find, values, |row| row.get(0))? {
        Some(id) => Ok(id),
        None => connection
            .prepare_cached("INSERT INTO subjects (mount, database_name) VALUES (?, ?)")?
            .insert(values),
    }
}

fn save_minute(
    connection: &Connection,
    subject: &Subject,
    minute: u64,
    readings: &Readings,
) -> rusqlite::Result<()> {
    let whole =
        |value: Option<f64>, unit: f64| value.filter(|it| it.is_finite()).map(|it| (it * unit) as i64);
    let values = (
        subject_id(connection, subject)?,
        Exact(minute),
        whole(readings.utilisation, MILLIONTHS),
        whole(readings.outstanding, MILLIONTHS),
        whole(readings.latency_ns, 1.0),
        whole(readings.expected_ns, 1.0),
        whole(readings.iops, THOUSANDTHS),
        whole(readings.read_bytes_per_second, 1.0),
        whole(readings.written_bytes_per_second, 1.0),
    );
    let save = "INSERT OR REPLACE INTO judged_minutes VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)";
    connection.prepare_cached(save)?.execute(values).map(drop)
}

const MILLIONTHS: f64 = 1e6;
const THOUSANDTHS: f64 = 1e3;

fn readings(row: &Row<'_>) -> rusqlite::Result<Readings> {
    let value = |column: &str, unit: f64| -> rusqlite::Result<Option<f64>> {
        Ok(row.get::<_, Option<i64>>(column)?.map(|it| it as f64 / unit))
    };
    Ok(Readings {
        utilisation: value("utilisation_millionths", MILLIONTHS)?,
        outstanding: value("outstanding_millionths", MILLIONTHS)?,
        latency_ns: value("latency_ns", 1.0)?,
        expected_ns: value("expected_ns", 1.0)?,
        iops: value("iops_thousandths", THOUSANDTHS)?,
        read_bytes_per_second: value("read_bytes_per_second", 1.0)?,
        written_bytes_per_second: value("written_bytes_per_second", 1.0)?,
    })
}

fn save_mark(connection: &Connection, subject: &Subject, mark: &Mark) -> rusqlite::Result<()> {
    let values = (subject_id(connection, subject)?, Exact(mark.at_unix_ns), Word(mark.kind), &mark.text);
    let save = "INSERT OR IGNORE INTO marks VALUES (?, ?, ?, ?)";
    connection.prepare_cached(save)?.execute(values).map(drop)
}

fn save_incident(connection: &Connection, incident: &Incident) -> rusqlite::Result<IncidentId> {
    let save = "INSERT INTO incidents (subject, verdict, started_unix_ns, ended_unix_ns, json) \
         VALUES (:subject, :verdict, :started, :ended, :json) \
         ON CONFLICT (subject, started_unix_ns) DO UPDATE \
         SET verdict = :verdict, ended_unix_ns = :ended, json = :json RETURNING id";
    let values = named_params! {
        ":subject": subject_id(connection, &incident.subject)?,
        ":verdict": Word(incident.verdict),
        ":started": Exact(incident.started_unix_ns),
        ":ended": incident.ended_unix_ns.map(Exact),
        ":json": Json(incident),
    };
    connection.prepare_cached(save)?.query_row(values, |row| row.get(0)).map(IncidentId)
}

fn numbered(row: &Row<'_>) -> rusqlite::Result<(IncidentId, Incident)> {
    let Json(incident) = row.get("json")?;
    Ok((IncidentId(row.get("id")?), incident))
}
