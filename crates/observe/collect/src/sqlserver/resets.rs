//! Resets that the server does not record, as far as they show between snapshots:
//! `DBCC SQLPERF('sys.dm_os_wait_stats', CLEAR)`, and files whose name in the catalog changes while their
//! counters go on.

use super::statistics::{FileKey, Statistics};
use crate::observer;
use filestats::Epoch;
use std::collections::HashMap;

/// The last snapshot of one run of the server, and the resets seen since the first.
#[derive(Debug, Default)]
pub(super) struct Resets {
    /// Identifies this object: another one may have seen other resets.
    observer: String,
    run: String,
    waits: HashMap<String, u64>,
    /// When a count of waits fell, milliseconds since 1970.
    cleared: Option<u64>,
    names: HashMap<FileKey, String>,
    /// Files that were renamed: they did not begin at zero.
    renamed: u64,
}

impl Resets {
    pub fn new() -> Resets {
        Resets { observer: observer::identify(), ..Resets::default() }
    }

    /// Compares with the last snapshot. One count that fell shows that all were cleared: frequent waits may have passed
    /// their former counts since, rare ones have not.
    pub fn observe(&mut self, run: &str, statistics: &Statistics) {
        if self.run != run {
            let observer = std::mem::take(&mut self.observer);
            *self = Resets { observer, run: run.into(), ..Resets::default() };
        }
        if statistics.waits_error.is_none() {
            let waits: HashMap<_, _> =
                statistics.waits.iter().map(|row| (row.event.clone(), row.count)).collect();
            let fell = |(event, before): (&String, &u64)| waits.get(event).is_none_or(|now| now < before);
            if self.waits.iter().any(fell) {
                self.cleared = Some(statistics.taken_unix_ns / 1_000_000);
            }
            self.waits = waits;
        }
        let names: HashMap<_, _> = statistics.files.iter().map(|row| (row.key(), row.name())).collect();
        let renamed = |(key, name): (&FileKey, &String)| self.names.get(key).is_some_and(|then| then != name);
        self.renamed += names.iter().filter(|file| renamed(*file)).count() as u64;
        self.names = names;
    }

    /// The epoch in which a file or wait that appears began at zero, as far as this object can know.
    pub fn complete(&self) -> Epoch {
        let Resets { observer, run, cleared, renamed, .. } = self;
        Epoch { run: format!("{run}, seen by {observer}"), reset: format!("{cleared:?}, {renamed} renamed") }
    }

    /// Names the last reset of the waits; empty if none was seen.
    pub fn reset_of_waits(&self) -> String {
        self.cleared.map(|at| format!("cleared by {at}")).unwrap_or_default()
    }
}
