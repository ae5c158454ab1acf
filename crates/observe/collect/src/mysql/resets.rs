//! Resets that the server does not record, as far as they show between snapshots: a TRUNCATE of the summary table, and
//! instruments that were off for a while.

use super::statistics::Counted;
use crate::observer;
use filestats::Epoch;
use std::collections::{BTreeMap, HashMap, HashSet};

/// The last snapshot of one run of the server, and the resets seen since the first.
#[derive(Debug, Default)]
pub(super) struct Resets {
    /// Identifies this object: another one may have seen other resets.
    observer: String,
    run: String,
    /// Path and operations of each file by instance.
    files: HashMap<String, (String, u64)>,
    /// Instances of files that were deleted.
    deleted: HashSet<String>,
    /// Files that were renamed or appeared again: they did not begin at zero.
    renamed: u64,
    /// When a file's count fell, milliseconds since 1970.
    truncated: Option<u64>,
    /// Whether each instrument counted and timed.
    instruments: BTreeMap<String, (bool, bool)>,
    /// When an instrument was on again, milliseconds since 1970.
    on_again: BTreeMap<String, u64>,
}

impl Resets {
    pub fn new() -> Resets {
        Resets { observer: observer::identify(), ..Resets::default() }
    }

    /// Compares with the last snapshot. One count that fell shows that the whole table was truncated: busy files may have
    /// passed their former counts since, idle ones have not.
    pub fn observe(&mut self, run: &str, counted: &Counted, now_unix_ms: u64) {
        if self.run != run {
            let observer = std::mem::take(&mut self.observer);
            *self = Resets { observer, run: run.into(), ..Resets::default() };
        }
        let rows = counted.files.iter();
        let files: HashMap<_, _> =
            rows.map(|row| (row.instance.clone(), (row.path.clone(), row.count))).collect();
        for (instance, (path, count)) in &files {
            match self.files.get(instance) {
                Some((then, before)) if then == path && count < before => self.truncated = Some(now_unix_ms),
                Some((then, _)) if then != path => self.renamed += 1,
                None if self.deleted.contains(instance) => self.renamed += 1,
                _ => {}
            }
        }
        self.files = files;
        self.deleted = counted.deleted.iter().cloned().collect();
        let switches = &counted.switches;
        let names = switches.instruments.keys();
        let instruments: BTreeMap<_, _> =
            names.map(|name| (name.clone(), (switches.counts(name), switches.times(name)))).collect();
        for (name, (counts, times)) in &instruments {
            let Some((counted, timed)) = self.instruments.get(name) else { continue };
            if (*counts && !counted) || (*times && !timed) {
                self.on_again.insert(name.clone(), now_unix_ms);
            }
        }
        // Of a server that invents instruments, too, no more is kept than of one answer.
        self.on_again.retain(|name, _| instruments.contains_key(name));
        self.instruments = instruments;
    }

    /// The epoch in which a file that appears began at zero, as far as this object can know.
    pub fn complete(&self) -> Epoch {
        let Resets { observer, run, renamed, truncated, on_again, .. } = self;
        let reset = format!("{truncated:?}, {renamed} renamed, {:?}", on_again.values().max());
        Epoch { run: format!("{run}, seen by {observer}"), reset }
    }

    /// Names the last reset of an instrument's files; empty if none was seen.
    pub fn reset_of(&self, event: &str) -> String {
        let truncated = self.truncated.map(|at| format!("truncated by {at}"));
        let on_again = self.on_again.get(event).map(|at| format!("counting again by {at}"));
        [truncated, on_again].into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::super::statistics::{FileRow, Switches};
    use super::*;

    const DATA: &str = "wait/io/file/innodb/innodb_data_file";
    const FRM: &str = "wait/io/file/sql/FRM";

    fn counted(busy: u64, idle: u64, data_on: bool) -> Counted {
        let row = |path: &str, event: &str, count| FileRow {
            path: path.into(),
            event: event.into(),
            instance: event.into(),
            count,
            ..FileRow::default()
        };
        let instruments = [(DATA.to_owned(), (data_on, true)), (FRM.to_owned(), (true, true))].into();
        Counted {
            switches: Switches { global: true, instruments },
            files: vec![row("busy", DATA, busy), row("idle", FRM, idle)],
            ..Counted::default()
        }
    }

    #[test]
    fn an_idle_file_reveals_a_truncate_after_a_busy_one_has_caught_up() {
        let mut resets = Resets::new();
        resets.observe("run", &counted(10, 5, true), 100);
        resets.observe("run", &counted(20, 5, true), 101);
        assert_eq!((resets.reset_of(DATA), resets.reset_of(FRM)), (String::new(), String::new()));
        resets.observe("run", &counted(30, 0, true), 102);
        let first = resets.reset_of(DATA);
        assert!(first.contains("102"), "{first}");
        resets.observe("run", &counted(40, 1, true), 103);
        assert_eq!(resets.reset_of(DATA), first, "named once");
        resets.observe("next run", &counted(1, 1, true), 104);
        assert_eq!(resets.reset_of(DATA), "", "a restart says enough");
    }

    #[test]
    fn a_renamed_file_did_not_begin_at_zero() {
        let mut resets = Resets::new();
        resets.observe("run", &counted(10, 5, true), 100);
        let before = resets.complete();
        resets.observe("run", &counted(20, 5, true), 101);
        assert_eq!(resets.complete(), before, "files may come and grow");
        let mut renamed = counted(30, 5, true);
        renamed.files[0].path = "renamed".into();
        resets.observe("run", &renamed, 102);
        assert_ne!(resets.complete(), before);
        assert_ne!(Resets::new().complete(), Resets::new().complete(), "another observer has not seen it");
    }

    #[test]
    fn a_while_without_counting_ends_the_epoch_of_those_files_only() {
        let mut resets = Resets::new();
        resets.observe("run", &counted(10, 5, true), 100);
        resets.observe("run", &counted(10, 5, false), 101);
        assert_eq!(resets.reset_of(DATA), "", "not before it counts again: until then there is no sample");
        resets.observe("run", &counted(15, 5, true), 102);
        assert!(resets.reset_of(DATA).contains("102"));
        assert_eq!(resets.reset_of(FRM), "");
    }

    #[test]
    fn instruments_that_come_and_go_are_not_kept() {
        let mut resets = Resets::new();
        for round in 0..100u64 {
            for is_on in [false, true] {
                let mut counted = counted(1, 1, true);
                counted.switches.instruments = [(format!("instrument {round}"), (is_on, is_on))].into();
                resets.observe("run", &counted, round);
            }
        }
        assert_eq!(resets.on_again.len(), 1);
    }
}
