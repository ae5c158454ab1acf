//! The history of one server: merged from several exports, and converted to snapshots that continue the kept ones.

use super::capture::Capture;
use super::epochs;
use super::increments::{self, Increment};
use filestats::Snapshot;
use std::collections::{BTreeMap, BTreeSet};

/// The data of one server in an export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Series {
    /// "sqlserver:PROD01", "sqlserver:PROD01:sp_BlitzFirst".
    pub source: String,
    /// In order of time.
    pub points: Points,
}

/// Cumulative counters, or differences.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Points {
    /// Cumulative counters.
    Cumulative(Vec<Capture>),
    /// Differences, file by file.
    Increments(Vec<Increment>),
}

/// Captures that are to be kept after the ones in the history.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chain {
    /// In order of time.
    pub captures: Vec<Capture>,
    /// Instants that are kept already.
    pub known: usize,
    /// Instants older than the newest kept one that are not kept: the history cannot insert captures.
    pub older: usize,
    /// Kept instants whose number of files differs from this export.
    pub differing: usize,
}

/// Instants that are kept already, nanoseconds since 1970, each with how many files it has.
pub type Kept = BTreeMap<u64, u64>;

impl Series {
    /// Adds another export of the same server. Captures in both are taken from the first.
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
            // A source has one format.
            (Points::Cumulative(_), Points::Increments(_))
            | (Points::Increments(_), Points::Cumulative(_)) => {}
        }
    }

    /// The snapshots to keep after `last`, the newest kept one of this source; `kept` has the instants of all kept ones.
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
                epochs::assign(&mut chain.captures, last);
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
