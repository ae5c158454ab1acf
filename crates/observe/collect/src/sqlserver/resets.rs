//! Ends of an epoch that the server keeps no word of, as far as looking again and again can find them:
//! `DBCC SQLPERF('sys.dm_os_wait_stats', CLEAR)`, and files whose name in the catalog was changed while they count on.

use super::statistics::{FileKey, Statistics};
use filestats::Epoch;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// What was seen at the last look of one run of the server.
#[derive(Debug)]
pub(super) struct Resets {
    /// Who looks: what one saw, another does not know of.
    observer: String,
    run: String,
    waits: HashMap<String, u64>,
    /// When waits were first seen to be fewer than before, milliseconds since 1970.
    cleared: Option<u64>,
    names: HashMap<FileKey, String>,
    /// Files that were seen to have another name than before: they bring their figures along.
    renamed: u64,
}

impl Resets {
    pub fn new() -> Resets {
        static OBSERVERS: AtomicU64 = AtomicU64::new(0);
        let number = OBSERVERS.fetch_add(1, Ordering::Relaxed);
        Resets::of_run(format!("{}.{}.{number}", std::process::id(), crate::time::unix_ns()), "")
    }

    fn of_run(observer: String, run: &str) -> Resets {
        Resets {
            observer,
            run: run.into(),
            waits: HashMap::new(),
            cleared: None,
            names: HashMap::new(),
            renamed: 0,
        }
    }

    /// Compares with the look before. One wait that fell shows that all were cleared: those in use may have overtaken
    /// their former figures by then, the idle ones tell.
    pub fn observe(&mut self, run: &str, statistics: &Statistics) {
        if self.run != run {
            *self = Resets::of_run(std::mem::take(&mut self.observer), run);
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

    /// The stretch in which whatever appears began at zero, as far as this observer can tell.
    pub fn complete(&self) -> Epoch {
        let Resets { observer, run, cleared, renamed, .. } = self;
        Epoch { run: format!("{run}, seen by {observer}"), reset: format!("{cleared:?}, {renamed} renamed") }
    }

    /// Names the last reset of the waits; empty where none was seen.
    pub fn of_waits(&self) -> String {
        self.cleared.map(|at| format!("cleared by {at}")).unwrap_or_default()
    }
}
