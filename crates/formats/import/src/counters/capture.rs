//! One capture of a SQL Server, and the facts about its counters that all tables share.

use filestats::{Cache, Meaning, Snapshot};

/// The counters of a server at one instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capture {
    /// The label that it was given when it was taken.
    pub label: Option<String>,
    /// Its counters.
    pub snapshot: Snapshot,
}

/// What SQL Server's counters mean: it opens its files without the page cache and times each I/O to its end.
pub(super) const MEANING: Meaning = Meaning { cache: Cache::Missed, ..Meaning::REQUESTS };

/// The `database_id` of tempdb, the same on every server.
pub(super) const TEMPDB: u64 = 2;

pub(super) const NS_PER_MS: u64 = 1_000_000;
