//! The rows of files and waits that the last one before a capture that stays makes superfluous: see `thin.rs`.

use crate::changes::{self, Read};
use crate::file_rows::figure;
use crate::thin::Between;
use filestats::{Counters, Figure};
use rusqlite::{Connection, Row, named_params};

/// The tables of what was there, and when.
const FILES: &str = "files";
const WAIT_EVENTS: &str = "wait_events";

/// A file or wait event, and the captures from which on it was there.
struct One {
    id: i64,
    first: i64,
    gone: Option<i64>,
}

/// What a source had over a stretch of captures.
pub(crate) struct Present {
    files: Vec<One>,
    waits: Vec<One>,
}

impl Present {
    pub fn over(connection: &Connection, source: &str, from: i64, until: i64) -> rusqlite::Result<Present> {
        let present = |table: &str| -> rusqlite::Result<Vec<One>> {
            let mut rows = connection.prepare_cached(&present_query(table))?;
            let one = |row: &Row<'_>| Ok(One { id: row.get(0)?, first: row.get(1)?, gone: row.get(2)? });
            rows.query_map(named_params! { ":source": source, ":from": from, ":until": until }, one)?
                .collect()
        };
        Ok(Present { files: present(FILES)?, waits: present(WAIT_EVENTS)? })
    }

    /// Removes what the rows of `between.until`, or the last ones before it, tell as well.
    pub fn thin(&self, connection: &Connection, between: &Between) -> rusqlite::Result<()> {
        thin_files(connection, &self.files, between)?;
        thin_waits(connection, &self.waits, between)
    }
}

/// In two halves, as an OR leads to no index; both are told by the index alone.
fn present_query(lives: &str) -> String {
    format!(
        "SELECT id, first_capture_id, gone_capture_id FROM {lives} \
         WHERE source = :source AND gone_capture_id IS NULL AND first_capture_id <= :until \
         UNION ALL \
         SELECT id, first_capture_id, gone_capture_id FROM {lives} \
         WHERE source = :source AND gone_capture_id > :from AND first_capture_id <= :until"
    )
}

/// Counters whose difference says what was done, or does not.
trait Grows: Sized {
    /// Whether all that is known before is known now, for the same reasons if not, and nothing fell.
    fn grew_from(&self, before: &Self) -> bool;
}

impl Grows for Counters {
    fn grew_from(&self, before: &Self) -> bool {
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
        why(self) == why(before) && self.since(*before).is_some()
    }
}

impl Grows for (Figure<u64>, Figure<u64>) {
    fn grew_from(&self, before: &Self) -> bool {
        let grew = |now: Figure<u64>, then: Figure<u64>| match (now, then) {
            (Figure::Known(now), Figure::Known(then)) => now >= then,
            (now, then) => now == then,
        };
        grew(self.0, before.0) && grew(self.1, before.1)
    }
}

fn thin_files(connection: &Connection, files: &[One], between: &Between) -> rusqlite::Result<()> {
    for file in files.iter().filter(|file| file.is_in(between)) {
        let found = changes::between(connection, file.id, between.after, between.until, Read::Counters)?;
        let found: Vec<(i64, Counters)> =
            found.into_iter().map(|change| (change.capture, change.counters)).collect();
        let (before, found) =
            found.split_at(usize::from(found.first().is_some_and(|(at, _)| *at <= between.after)));
        if found.len() >= 2 {
            let before = before.first().map(|(_, counters)| counters);
            changes::remove(connection, file.id, &superfluous(before, found, file.first))?;
        }
    }
    Ok(())
}

fn thin_waits(connection: &Connection, waits: &[One], between: &Between) -> rusqlite::Result<()> {
    const COLUMNS: &str = "waits, waits_unknown, wait_ns, wait_unknown";
    let read = |row: &Row<'_>| -> rusqlite::Result<(Figure<u64>, Figure<u64>)> {
        Ok((figure(row, "waits", "waits_unknown")?, figure(row, "wait_ns", "wait_unknown")?))
    };
    let mut rows = connection.prepare_cached(&format!(
        "SELECT {COLUMNS}, capture_id FROM wait_changes WHERE wait_event = ? AND capture_id > ? AND capture_id <= ? \
         ORDER BY capture_id"
    ))?;
    let mut last = connection.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM wait_changes WHERE wait_event = ? AND capture_id <= ? ORDER BY capture_id DESC LIMIT 1"
    ))?;
    let mut delete =
        connection.prepare_cached("DELETE FROM wait_changes WHERE wait_event = ? AND capture_id = ?")?;
    for wait in waits.iter().filter(|wait| wait.is_in(between)) {
        let row = |row: &Row<'_>| Ok((row.get::<_, i64>("capture_id")?, read(row)?));
        let found = rows.query_map((wait.id, between.after, between.until), row)?;
        let found = found.collect::<rusqlite::Result<Vec<_>>>()?;
        if found.len() < 2 {
            continue;
        }
        let mut before = last.query((wait.id, between.after))?;
        let before = before.next()?.map(read).transpose()?;
        for id in superfluous(before.as_ref(), &found, wait.first) {
            delete.execute((wait.id, id))?;
        }
    }
    Ok(())
}

impl One {
    fn is_in(&self, between: &Between) -> bool {
        self.first <= between.until && self.gone.is_none_or(|gone| gone > between.after)
    }
}

/// The captures of the rows that can go: not the last one, nor that of the first sight, nor two between which it did not
/// simply grow.
fn superfluous<T: Grows>(before: Option<&T>, rows: &[(i64, T)], first: i64) -> Vec<i64> {
    let mut gone = Vec::new();
    let mut then = before;
    for pair in rows.windows(2) {
        let ((id, now), (_, next)) = (&pair[0], &pair[1]);
        let grew = then.is_none_or(|then| now.grew_from(then)) && next.grew_from(now);
        if grew && *id != first {
            gone.push(*id);
        }
        then = Some(now);
    }
    gone
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::History;
    use crate::series::present_in;

    #[test]
    fn what_was_there_over_a_stretch_is_found_by_an_index() {
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
            let found = plan(&present_query(table), &["source", "until", "from"]).join("; ");
            assert_eq!(found.matches("USING COVERING INDEX").count(), 2, "{found}");
            let found = plan(&present_in(table), &["source", "last", "first"]).join("; ");
            assert_eq!(found.matches("gone_capture_id").count(), 2, "{found}");
            assert!(!found.contains("SCAN"), "{found}");
        }
    }
}
