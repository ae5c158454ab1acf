//! The rows of files and waits between two kept captures that a later row replaces, because counters are cumulative.

use crate::changes::{self, Read};
use crate::file_rows::figure;
use crate::series::present_in;
use crate::statements::{first_row, rows};
use filestats::{Counters, Figure};
use rusqlite::{Connection, Row, named_params};

/// The tables that say when a file or wait event existed.
const FILES: &str = "files";
const WAIT_EVENTS: &str = "wait_events";

/// Captures that are removed, all between a kept one and the next that is kept or not judged yet.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Group {
    /// The kept capture before them.
    pub after: i64,
    /// The kept capture after them, or the last of them.
    pub until: i64,
    /// Their numbers.
    pub removed: Vec<i64>,
}

/// A file or wait event, and the captures between which it existed.
struct Item {
    id: i64,
    first: i64,
    gone: Option<i64>,
}

/// The files and wait events of a source that existed in a range of captures.
pub(super) struct PresentItems {
    files: Vec<Item>,
    waits: Vec<Item>,
}

impl PresentItems {
    pub fn read(
        connection: &Connection,
        source: &str,
        from: i64,
        until: i64,
    ) -> rusqlite::Result<PresentItems> {
        let present = |table: &str| {
            let query = present_in(table, "id, first_capture_id, gone_capture_id");
            let range = named_params! { ":source": source, ":first": from, ":last": until };
            rows(connection, &query, range, |row| {
                Ok(Item { id: row.get(0)?, first: row.get(1)?, gone: row.get(2)? })
            })
        };
        Ok(PresentItems { files: present(FILES)?, waits: present(WAIT_EVENTS)? })
    }

    /// Removes the rows that the rows of `group.until`, or the last ones before it, replace.
    pub fn remove_superseded_rows(&self, connection: &Connection, group: &Group) -> rusqlite::Result<()> {
        thin_files(connection, &self.files, group)?;
        thin_waits(connection, &self.waits, group)
    }
}

/// Whether no counter fell, and the same ones are unknown for the same reasons.
fn grew(now: &Counters, before: &Counters) -> bool {
    let why = |counters: &Counters| {
        let sync = counters.sync;
        [
            counters.read.stall_ns.reason(),
            counters.write.stall_ns.reason(),
            sync.reason(),
            sync.known().and_then(|sync| sync.stall_ns.reason()),
            counters.busy_ns.reason(),
        ]
    };
    why(now) == why(before) && now.since(*before).is_some()
}

/// Whether neither the number nor the time of waits fell, and the same ones are unknown for the same reasons.
fn waits_grew(now: &[Figure<u64>; 2], before: &[Figure<u64>; 2]) -> bool {
    now.iter().zip(before).all(|pair| match pair {
        (Figure::Known(now), Figure::Known(before)) => now >= before,
        (now, before) => now == before,
    })
}

fn thin_files(connection: &Connection, files: &[Item], group: &Group) -> rusqlite::Result<()> {
    for file in files.iter().filter(|file| file.is_in(group)) {
        let found = changes::between(connection, file.id, group.after, group.until, Read::Counters)?;
        let found: Vec<_> = found.into_iter().map(|change| (change.capture, change.counters)).collect();
        let (before, found) =
            found.split_at(usize::from(found.first().is_some_and(|(at, _)| *at <= group.after)));
        if found.len() >= 2 {
            let before = before.first().map(|(_, counters)| counters);
            changes::remove(connection, file.id, &superseded(before, found, file.first, grew))?;
        }
    }
    Ok(())
}

fn thin_waits(connection: &Connection, waits: &[Item], group: &Group) -> rusqlite::Result<()> {
    let figures = |row: &Row<'_>| {
        let figures = [figure(row, "waits", "waits_unknown")?, figure(row, "wait_ns", "wait_unknown")?];
        Ok((row.get("capture_id")?, figures))
    };
    let within = "SELECT * FROM wait_changes WHERE wait_event = ? AND capture_id > ? AND capture_id <= ? \
         ORDER BY capture_id";
    let last = "SELECT * FROM wait_changes WHERE wait_event = ? AND capture_id <= ? \
         ORDER BY capture_id DESC LIMIT 1";
    let mut delete =
        connection.prepare_cached("DELETE FROM wait_changes WHERE wait_event = ? AND capture_id = ?")?;
    for wait in waits.iter().filter(|wait| wait.is_in(group)) {
        let found = rows(connection, within, (wait.id, group.after, group.until), figures)?;
        if found.len() < 2 {
            continue;
        }
        let before: Option<(i64, _)> = first_row(connection, last, (wait.id, group.after), figures)?;
        let before = before.as_ref().map(|(_, figures)| figures);
        for id in superseded(before, &found, wait.first, waits_grew) {
            delete.execute((wait.id, id))?;
        }
    }
    Ok(())
}

impl Item {
    fn is_in(&self, group: &Group) -> bool {
        self.first <= group.until && self.gone.is_none_or(|gone| gone > group.after)
    }
}

/// The captures whose rows can be removed: all but the last row, the file's first row, and both rows around a counter that
/// fell or changed between known and unknown.
fn superseded<T>(before: Option<&T>, rows: &[(i64, T)], first: i64, grew: fn(&T, &T) -> bool) -> Vec<i64> {
    let mut removed = Vec::new();
    let mut then = before;
    for pair in rows.windows(2) {
        let ((id, now), (_, next)) = (&pair[0], &pair[1]);
        if then.is_none_or(|then| grew(now, then)) && grew(next, now) && *id != first {
            removed.push(*id);
        }
        then = Some(now);
    }
    removed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::History;

    #[test]
    fn items_that_existed_in_a_range_are_found_by_an_index() {
        let dir = tempfile::tempdir().unwrap();
        let history = History::open(&dir.path().join("history.db")).unwrap();
        let plan = |query: &str, names: &[&str]| -> Vec<String> {
            let mut rows = history.connection.prepare(&format!("EXPLAIN QUERY PLAN {query}")).unwrap();
            for (at, _) in names.iter().enumerate() {
                rows.raw_bind_parameter(at + 1, 1).unwrap();
            }
            let mut rows = rows.raw_query();
            let mut plan = Vec::new();
            while let Some(row) = rows.next().unwrap() {
                plan.push(row.get(3).unwrap());
            }
            plan
        };
        for table in [FILES, WAIT_EVENTS] {
            let covered = present_in(table, "id, first_capture_id, gone_capture_id");
            let found = plan(&covered, &["source", "last", "first"]).join("; ");
            assert_eq!(found.matches("USING COVERING INDEX").count(), 2, "{found}");
            let found = plan(&present_in(table, "*"), &["source", "last", "first"]).join("; ");
            assert_eq!(found.matches("gone_capture_id").count(), 2, "{found}");
            assert!(!found.contains("SCAN"), "{found}");
        }
    }
}
