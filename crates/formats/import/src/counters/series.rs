//! One server's history: put together from several exports, and made into snapshots that follow what was kept before.

use super::epochs;
use super::increments::{self, Increment};
use filestats::Snapshot;
use std::collections::{BTreeMap, BTreeSet};

/// One instant of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capture {
    /// What it was called when it was taken.
    pub label: Option<String>,
    /// Its counters.
    pub snapshot: Snapshot,
}

/// What an export holds of one server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Series {
    /// "sqlserver:PROD01", "sqlserver:PROD01:sp_BlitzFirst".
    pub source: String,
    /// In the order of their times.
    pub points: Points,
}

/// Cumulative counters, or differences.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Points {
    /// The counters as they stood.
    Cumulative(Vec<Capture>),
    /// What was added to them, file by file.
    Increments(Vec<Increment>),
}

/// Captures to be kept, after what is kept already.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chain {
    /// In the order of their times.
    pub captures: Vec<Capture>,
    /// Instants that are kept already.
    pub known: usize,
    /// Instants before the newest that is kept, and not kept themselves: nothing can be put in between.
    pub older: usize,
    /// Instants that are kept with another number of files than here.
    pub differing: usize,
}

/// Instants that are kept already, nanoseconds since 1970, each with how many files it has.
pub type Kept = BTreeMap<u64, u64>;

impl Series {
    /// Adds what another export holds of the same server. What both hold is there once, as the first one has it.
    pub fn merge(&mut self, other: Series) {
        match (&mut self.points, other.points) {
            (Points::Cumulative(mine), Points::Cumulative(theirs)) => {
                let times: BTreeSet<u64> =
                    mine.iter().map(|capture| capture.snapshot.taken_unix_ns).collect();
                mine.extend(
                    theirs.into_iter().filter(|capture| !times.contains(&capture.snapshot.taken_unix_ns)),
                );
                mine.sort_by_key(|capture| capture.snapshot.taken_unix_ns);
            }
            (Points::Increments(mine), Points::Increments(theirs)) => {
                mine.extend(theirs);
                increments::sort(mine);
            }
            // The formats of one source are one.
            (Points::Cumulative(_), Points::Increments(_))
            | (Points::Increments(_), Points::Cumulative(_)) => {}
        }
    }

    /// The snapshots to be kept after `last`, the newest that is kept of this source; `kept` are the instants of all.
    pub fn captures(self, kept: &Kept, last: Option<&Snapshot>) -> Chain {
        let newest = last.map(|last| last.taken_unix_ns);
        let mut chain = Chain::default();
        match self.points {
            Points::Cumulative(captures) => {
                for capture in captures {
                    let (at, files) = (capture.snapshot.taken_unix_ns, capture.snapshot.samples.len() as u64);
                    match kept.get(&at) {
                        Some(then) => {
                            chain.known += 1;
                            chain.differing += usize::from(*then != files);
                        }
                        None if newest.is_some_and(|newest| at <= newest) => chain.older += 1,
                        None => chain.captures.push(capture),
                    }
                }
                epochs::follow(&mut chain.captures, last);
            }
            Points::Increments(rows) => {
                let mut new = Vec::with_capacity(rows.len());
                let (mut known, mut older) = (BTreeSet::new(), BTreeSet::new());
                for row in rows {
                    let at = row.ended_unix_ns;
                    if kept.contains_key(&at) {
                        known.insert(at);
                    } else if newest.is_some_and(|newest| at <= newest) {
                        older.insert(at);
                    } else {
                        new.push(row);
                    }
                }
                (chain.known, chain.older) = (known.len(), older.len());
                chain.captures = increments::captures(&self.source, &new, last);
            }
        }
        chain
    }
}
