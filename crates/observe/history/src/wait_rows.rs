//! Waits of a capture: saved as changes since the last one, read back whole.

use crate::exact::Word;
use crate::file_rows::{columns, figure, word};
use crate::statements::{insert, rows};
use filestats::{Epoch, WaitSample};
use rusqlite::{Connection, Row, ToSql};
use std::collections::HashMap;

const COLUMNS: &str =
    "instance, event, class, epoch, epoch_reset, waits, waits_unknown, wait_ns, wait_unknown";

/// The waits of a capture, in the order in which the source first showed them.
pub(crate) fn read(connection: &Connection, capture: i64) -> rusqlite::Result<Vec<WaitSample>> {
    let query = format!("SELECT {COLUMNS} FROM wait_stats WHERE capture_id = ? ORDER BY wait_event");
    rows(connection, &query, [capture], wait)
}

/// Saves the waits of a capture that is being written.
pub(crate) fn save(
    connection: &Connection,
    source: &str,
    capture: i64,
    from_zero: bool,
    waits: &[WaitSample],
) -> rusqlite::Result<()> {
    let mut present: HashMap<(String, String), (i64, WaitSample)> = HashMap::new();
    let query = format!(
        "SELECT w.id, {COLUMNS} FROM wait_events w JOIN wait_changes s ON s.wait_event = w.id \
         AND s.capture_id = (SELECT max(capture_id) FROM wait_changes WHERE wait_event = w.id) \
         WHERE w.source = ? AND w.gone_capture_id IS NULL"
    );
    for (id, wait) in rows(connection, &query, [source], |row| Ok((row.get::<_, i64>(0)?, wait(row)?)))? {
        present.insert((wait.instance.clone(), wait.event.clone()), (id, wait));
    }
    for wait in waits {
        let key = (wait.instance.clone(), wait.event.clone());
        match present.remove(&key) {
            Some((_, then)) if then == *wait => {}
            Some((id, then)) if then.epoch == wait.epoch && then.class == wait.class => {
                insert_change(connection, id, capture, wait)?;
            }
            ended => {
                present.extend(ended.map(|ended| (key, ended)));
                let id = insert_event(connection, source, capture, from_zero, wait)?;
                insert_change(connection, id, capture, wait)?;
            }
        }
    }
    let mut gone = connection.prepare_cached("UPDATE wait_events SET gone_capture_id = ? WHERE id = ?")?;
    for (id, _) in present.into_values() {
        gone.execute([capture, id])?;
    }
    Ok(())
}

fn insert_event(
    connection: &Connection,
    source: &str,
    capture: i64,
    from_zero: bool,
    wait: &WaitSample,
) -> rusqlite::Result<i64> {
    insert(
        connection,
        "wait_events",
        &[
            ("source", &source),
            ("first_capture_id", &capture),
            ("instance", &wait.instance),
            ("event", &wait.event),
            ("class", &Word(wait.class)),
            ("epoch", &wait.epoch.run),
            ("epoch_reset", &wait.epoch.reset),
            ("from_zero", &from_zero),
        ],
    )
}

fn insert_change(
    connection: &Connection,
    event: i64,
    capture: i64,
    wait: &WaitSample,
) -> rusqlite::Result<()> {
    let (waits, waits_unknown) = columns(wait.count);
    let (wait_ns, wait_unknown) = columns(wait.wait_ns);
    let values: &[(_, &dyn ToSql)] = &[
        ("wait_event", &event),
        ("capture_id", &capture),
        ("waits", &waits),
        ("waits_unknown", &waits_unknown),
        ("wait_ns", &wait_ns),
        ("wait_unknown", &wait_unknown),
    ];
    insert(connection, "wait_changes", values).map(drop)
}

/// Reads a wait from the columns [`COLUMNS`].
pub(crate) fn wait(row: &Row<'_>) -> rusqlite::Result<WaitSample> {
    Ok(WaitSample {
        instance: row.get("instance")?,
        event: row.get("event")?,
        class: word(row, "class")?,
        epoch: Epoch { run: row.get("epoch")?, reset: row.get("epoch_reset")? },
        count: figure(row, "waits", "waits_unknown")?,
        wait_ns: figure(row, "wait_ns", "wait_unknown")?,
    })
}
