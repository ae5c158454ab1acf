//! One file of a series.

use super::Series;
use crate::exact::{Exact, Json};
use crate::file_rows::{columns_of, counters_at, word};
use crate::packed::Packed;
use filestats::{Counters, Epoch, Figure, FileIdentity, Latencies, Meaning, Sample, Spell};
use rusqlite::{Connection, OptionalExtension, Row, named_params};

#[derive(Clone, Debug)]
pub(super) struct FileRow {
    id: i64,
    first: i64,
    gone: Option<i64>,
    pub(super) file: FileIdentity,
    epoch: Epoch,
    meaning: Meaning,
    from_zero: bool,
}

pub(super) fn file_row(row: &Row<'_>) -> rusqlite::Result<FileRow> {
    Ok(FileRow {
        id: row.get("id")?,
        first: row.get("first_capture_id")?,
        gone: row.get("gone_capture_id")?,
        file: FileIdentity {
            instance: row.get("instance")?,
            database: row.get("database_name")?,
            database_id: row.get::<_, Option<Exact>>("database_id")?.map(|Exact(id)| id),
            file_id: row.get("file_id")?,
            kind: word(row, "kind")?,
            path: row.get("path")?,
            drive: row.get("drive")?,
            handle: row.get("handle")?,
            object: row.get("object")?,
        },
        epoch: Epoch { run: row.get("epoch")?, reset: row.get("epoch_reset")? },
        meaning: row.get::<_, Json<Meaning>>("meaning").map(|Json(meaning)| meaning)?,
        from_zero: row.get("from_zero")?,
    })
}

/// A file in one epoch, as far as the series has it.
pub(super) fn spell(
    connection: &Connection,
    series: &Series,
    row: &FileRow,
) -> rusqlite::Result<Option<Spell>> {
    let life = series.life(row.first, row.gone, row.from_zero);
    let mut spell: Option<Spell> = None;
    let mut add = |at: usize, (counters, size_bytes): (Counters, Figure<u64>)| match &mut spell {
        None => {
            let (file, epoch, meaning) = (row.file.clone(), row.epoch.clone(), row.meaning);
            let sample = Sample { file, epoch, meaning, counters, size_bytes, latencies: None };
            spell = Some(Spell { life, sample, changes: Vec::new() });
        }
        Some(spell) => {
            spell.sample.size_bytes = size_bytes;
            spell.changes.push((at, counters));
        }
    };
    let columns = columns_of("s");
    if series.sparse {
        let mut state = connection.prepare_cached(&format!(
            "SELECT {columns} FROM file_changes s WHERE file = ? AND capture_id <= ? ORDER BY capture_id DESC LIMIT 1"
        ))?;
        for at in life.first..life.gone.unwrap_or(series.ids.len()) {
            let mut rows = state.query((row.id, series.ids[at]))?;
            if let Some(found) = rows.next()? {
                add(at, counters_at(found)?);
            }
        }
    } else if let Some((first, last)) = series.rows_of(&life) {
        // What lies before the series is told by its last row alone.
        let mut changes = connection.prepare_cached(&format!(
            "SELECT {columns}, s.capture_id FROM file_changes s WHERE file = :file AND capture_id <= :last \
             AND capture_id >= coalesce((SELECT max(capture_id) FROM file_changes WHERE file = :file \
                                         AND capture_id <= :first), 0) ORDER BY capture_id"
        ))?;
        let parameters = named_params! { ":file": row.id, ":first": first, ":last": last };
        let mut rows = changes.query(parameters)?;
        while let Some(found) = rows.next()? {
            add(series.tick(found.get("capture_id")?), counters_at(found)?);
        }
    }
    Ok(spell)
}

/// The sum over all spells of the histograms' growth; `None` where one of them has none at either end, or it fell.
pub(super) fn latencies(
    connection: &Connection,
    series: &Series,
    rows: &[FileRow],
    meaning: Meaning,
) -> rusqlite::Result<Option<Latencies>> {
    let mut last = connection.prepare_cached(
        "SELECT latencies FROM file_changes WHERE file = ? AND capture_id <= ? ORDER BY capture_id DESC LIMIT 1",
    )?;
    let mut at = |file: i64, capture: i64| -> rusqlite::Result<Option<Latencies>> {
        let found = last.query_row((file, capture), |row| row.get::<_, Option<Packed<Latencies>>>(0));
        Ok(found.optional()?.flatten().map(|Packed(latencies)| latencies))
    };
    let mut sum = Latencies::default();
    for row in rows.iter().filter(|row| row.meaning == meaning) {
        let life = series.life(row.first, row.gone, row.from_zero);
        let Some((first, until)) = series.rows_of(&life) else { continue };
        // What one that goes on from another had at first is not known, as in `Course::file`.
        let goes_on = rows.iter().any(|other| other.gone == Some(row.first));
        let before = if row.from_zero && first == row.first && life.first > 0 && !goes_on {
            Some(Latencies::default())
        } else {
            at(row.id, first)?
        };
        let (Some(before), Some(now)) = (before, at(row.id, until)?) else { return Ok(None) };
        let Some(grown) = now.since(&before) else { return Ok(None) };
        sum.merge(&grown);
    }
    Ok(Some(sum))
}
