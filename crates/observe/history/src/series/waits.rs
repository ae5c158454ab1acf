//! The waits of a series, event by event.

use super::{Series, present_in};
use crate::wait_rows::wait;
use filestats::{Rules, WaitEpoch, WaitSeries};
use rusqlite::{Connection, named_params};
use std::collections::BTreeMap;

pub(super) fn courses(
    connection: &Connection,
    series: &Series,
    rules: Rules,
) -> rusqlite::Result<Vec<WaitSeries>> {
    let (Some(first), Some(last)) = (series.ids.first(), series.ids.last()) else { return Ok(Vec::new()) };
    let mut by_name: BTreeMap<(String, String), Vec<WaitEpoch>> = BTreeMap::new();
    // Of the rows before the series only the last one of each event is needed.
    let query = format!(
        "SELECT w.*, s.capture_id, s.waits, s.waits_unknown, s.wait_ns, s.wait_unknown \
         FROM ({events}) w CROSS JOIN wait_changes s ON s.wait_event = w.id AND s.capture_id <= :last \
         AND s.capture_id >= coalesce((SELECT max(capture_id) FROM wait_changes WHERE wait_event = w.id \
                                       AND capture_id <= max(:first, w.first_capture_id)), 0) \
         ORDER BY w.id, s.capture_id",
        events = present_in("wait_events", "*")
    );
    let mut rows = connection.prepare_cached(&query)?;
    let parameters = named_params! { ":source": series.course.source, ":first": first, ":last": last };
    let mut rows = rows.query(parameters)?;
    let mut last_id = None;
    while let Some(row) = rows.next()? {
        let id: i64 = row.get("id")?;
        let sample = wait(row)?;
        let spells = by_name.entry((sample.instance.clone(), sample.event.clone())).or_default();
        if last_id.replace(id) == Some(id)
            && let Some(spell) = spells.last_mut()
        {
            spell.changes.push((series.tick(row.get("capture_id")?), sample.count, sample.wait_ns));
            continue;
        }
        let (born, died) = (row.get("first_capture_id")?, row.get("gone_capture_id")?);
        let life = series.life(born, died, row.get("from_zero")?);
        spells.push(WaitEpoch { life, sample, changes: Vec::new() });
    }
    Ok(by_name.into_values().filter_map(|spells| series.course.wait(spells, rules)).collect())
}
