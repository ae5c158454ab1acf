//! Gaps: when a recorded source could not be read, and why.

use crate::exact::{Exact, exact};
use crate::{Error, History};
use rusqlite::{Row, named_params};
use serde::{Deserialize, Serialize};

/// The number of a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct GapId(pub i64);

/// A period without captures of a source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// Its number.
    pub id: GapId,
    /// The source by the name in its captures; by the name in the recorder where it has no capture.
    pub source: String,
    /// The first failure, nanoseconds since 1970.
    pub from_unix_ns: u64,
    /// The first capture after it; `None` while it lasts, or where the recorder ended first.
    pub until_unix_ns: Option<u64>,
    /// The error of the first failure.
    pub reason: String,
}

impl History {
    /// Notes that the recorder's name `name` stands for `source`: its gaps, earlier ones included, are gaps of that source.
    ///
    /// # Errors
    /// Where the file cannot be written.
    pub fn recorded_as(&mut self, name: &str, source: &str) -> Result<(), Error> {
        self.transact("keep a source's name", |transaction| {
            transaction
                .execute("INSERT OR REPLACE INTO recorded (name, source) VALUES (?, ?)", (name, source))?;
            transaction.execute("UPDATE gaps SET source = ? WHERE source = ?", (source, name)).map(drop)
        })
    }

    /// Begins a gap of a source, by the recorder's name for it.
    ///
    /// # Errors
    /// Where the file cannot be written.
    pub fn begin_gap(&mut self, name: &str, from_unix_ns: u64, reason: &str) -> Result<GapId, Error> {
        let begin = "INSERT INTO gaps (source, from_unix_ns, reason) \
             VALUES (coalesce((SELECT source FROM recorded WHERE name = :name), :name), :from, :reason)";
        let values = named_params! { ":name": name, ":from": Exact(from_unix_ns), ":reason": reason };
        self.execute("keep a gap", |connection| connection.prepare_cached(begin)?.insert(values)).map(GapId)
    }

    /// Ends the gap of a source.
    ///
    /// # Errors
    /// Where the file cannot be written.
    pub fn end_gap(&mut self, id: GapId, until_unix_ns: u64) -> Result<(), Error> {
        let end = "UPDATE gaps SET until_unix_ns = ? WHERE id = ?";
        self.execute("keep a gap", |connection| {
            connection.execute(end, (Exact(until_unix_ns), id.0)).map(drop)
        })
    }

    /// All gaps, the oldest first.
    ///
    /// # Errors
    /// Where the file cannot be read.
    pub fn gaps(&self) -> Result<Vec<Gap>, Error> {
        self.rows("list gaps", "SELECT * FROM gaps ORDER BY id", [], gap)
    }
}

fn gap(row: &Row<'_>) -> rusqlite::Result<Gap> {
    Ok(Gap {
        id: GapId(row.get("id")?),
        source: row.get("source")?,
        from_unix_ns: exact(row, "from_unix_ns")?,
        until_unix_ns: row.get::<_, Option<Exact>>("until_unix_ns")?.map(|Exact(until)| until),
        reason: row.get("reason")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_is_found_under_the_name_that_the_captures_have() {
        let dir = tempfile::tempdir().unwrap();
        let mut history = History::open(&dir.path().join("history.db")).unwrap();
        // The source was not reached yet, so the name in its captures is unknown.
        history.begin_gap("process:", 5, "not permitted").unwrap();
        history.begin_gap("mysql:host=away", 6, "refused").unwrap();
        history.recorded_as("process:", "process").unwrap();
        history.begin_gap("process:", 7, "not permitted").unwrap();
        let sources: Vec<String> = history.gaps().unwrap().into_iter().map(|gap| gap.source).collect();
        assert_eq!(sources, ["process", "mysql:host=away", "process"]);
    }
}
