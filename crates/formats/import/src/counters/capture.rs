//! One capture of a SQL Server, and the facts about its counters that all tables share.

use filestats::{Cache, Counters, Epoch, Figure, FileIdentity, Meaning, Ops, Reason, Sample, Snapshot};

/// The counters of a server at one instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capture {
    /// The label that it was given when it was taken.
    pub label: Option<String>,
    /// Its counters.
    pub snapshot: Snapshot,
}

/// Meaning of SQL Server's counters: it opens its files without the page cache and times each I/O to its end.
const MEANING: Meaning = Meaning { cache: Cache::Missed, ..Meaning::REQUESTS };

/// The `database_id` of tempdb, the same on every server.
pub(super) const TEMPDB: u64 = 2;

pub(super) const NS_PER_MS: u64 = 1_000_000;

impl Capture {
    /// One of a table that keeps neither labels nor the server's clock.
    pub(super) fn without_clock(source: &str, at_unix_ns: u64, samples: Vec<Sample>, note: &str) -> Capture {
        let snapshot = Snapshot {
            source: source.into(),
            taken_unix_ns: at_unix_ns,
            clock_ns: at_unix_ns,
            complete: None,
            samples,
            waits: Vec::new(),
            notes: vec![note.into()],
        };
        Capture { label: None, snapshot }
    }
}

/// A file of SQL Server, of which no table counts the syncs.
pub(super) fn sample(
    file: FileIdentity,
    epoch: Epoch,
    [read, write]: [Ops; 2],
    size_bytes: Figure<u64>,
) -> Sample {
    let counters = Counters { read, write, sync: Figure::unknown(Reason::NotCounted), ..Counters::ZERO };
    Sample { file: file.into(), epoch, meaning: MEANING, counters, size_bytes, latencies: None }
}
