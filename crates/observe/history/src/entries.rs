//! All entries of the history, in one line each, and each one whole.

use crate::clock::latest_unix_ns;
use crate::exact::{Exact, Word, exact};
use crate::{CaptureId, Error, History, ResultId, SessionId};
use rusqlite::Row;
use serde::de::IntoDeserializer;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;
use std::str::FromStr;

/// The kind of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum EntryKind {
    /// The counters of a source's files at an instant.
    Capture,
    /// The result of a load.
    Run,
    /// The capability of a target.
    Capability,
    /// A verdict of `check`.
    Verdict,
}

/// One entry, in one line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Entry {
    /// Its kind.
    pub kind: EntryKind,
    /// Its number among its kind.
    pub id: i64,
    /// When it was taken, started, measured or said, nanoseconds since 1970.
    pub at_unix_ns: u64,
    /// Its subject: a path, or the source of a capture.
    pub target: String,
    /// A summary.
    pub summary: String,
    /// The runs of one command share a session; `None` for all else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
}

/// Entries that are dated in the future: the clock was ahead when they were kept, or is behind now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FutureEntries {
    /// Their number.
    pub entries: u64,
    /// The latest date, nanoseconds since 1970.
    pub latest_unix_ns: u64,
}

/// Characters of a target or summary in a list; a path has 4,096 at most.
const TEXT_MAX: usize = 8_192;

/// Text that names no kind of entry.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is nothing the history keeps; give capture, run, capability or verdict")]
pub struct UnknownEntryKind(pub String);

impl History {
    /// The newest entries of all kinds, the newest first. Those that are dated in the future come last: the clock was ahead when
    /// they were kept, and others may be newer.
    ///
    /// # Errors
    /// Where the file cannot be read.
    pub fn entries(&self, limit: usize) -> Result<Vec<Entry>, Error> {
        let latest = Exact(latest_unix_ns());
        let mut entries = Vec::new();
        for is_dated_so in ["<=", ">"] {
            // A comparison in ORDER BY would keep SQLite from using the indexes by time.
            let query = format!(
                "SELECT kind, id, at_unix_ns, substr(target, 1, {TEXT_MAX}), substr(summary, 1, {TEXT_MAX}), session \
                 FROM entries WHERE at_unix_ns {is_dated_so} ? ORDER BY at_unix_ns DESC, kind, id DESC LIMIT ?"
            );
            let left = i64::try_from(limit - entries.len()).unwrap_or(i64::MAX);
            entries.extend(self.rows("list the entries", &query, (latest, left), entry)?);
        }
        Ok(entries)
    }

    /// The entries that are dated in the future; `None` where none is.
    ///
    /// # Errors
    /// Where the file cannot be read.
    pub fn future_entries(&self) -> Result<Option<FutureEntries>, Error> {
        let query = "SELECT count(*), max(at_unix_ns) FROM entries WHERE at_unix_ns > ?";
        let found =
            self.first_row("look for dates in the future", query, [Exact(latest_unix_ns())], |row| {
                Ok((exact(row, 0)?, row.get::<_, Option<Exact>>(1)?))
            })?;
        Ok(found.and_then(|(entries, latest)| {
            latest.map(|Exact(latest_unix_ns)| FutureEntries { entries, latest_unix_ns })
        }))
    }

    /// The whole of an entry as JSON: the snapshot, the run, the capability, or the report of the verdict.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub fn show(&self, kind: EntryKind, id: i64) -> Result<Value, Error> {
        let query = match kind {
            EntryKind::Capture => {
                let snapshot = self.snapshot(CaptureId(id))?;
                return serde_json::to_value(&snapshot).map_err(|source| Error::NotStorable { kind, source });
            }
            EntryKind::Run => "SELECT json FROM runs WHERE id = ?",
            EntryKind::Capability => "SELECT json FROM capabilities WHERE id = ?",
            EntryKind::Verdict => "SELECT report FROM verdicts WHERE id = ?",
        };
        self.value(kind, query, ResultId(id))
    }
}

fn entry(row: &Row<'_>) -> rusqlite::Result<Entry> {
    let Word(kind) = row.get(0)?;
    let session: Option<i64> = row.get(5)?;
    Ok(Entry {
        kind,
        id: row.get(1)?,
        at_unix_ns: exact(row, 2)?,
        target: row.get(3)?,
        summary: row.get(4)?,
        session: session.map(SessionId),
    })
}

impl fmt::Display for EntryKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

impl FromStr for EntryKind {
    type Err = UnknownEntryKind;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let named = EntryKind::deserialize(text.into_deserializer());
        named.map_err(|_: serde::de::value::Error| UnknownEntryKind(text.into()))
    }
}
