//! One file of a series.

use super::Series;
use crate::blocks::Change;
use crate::changes::{self, Read};
use crate::file_rows::identity;
use filestats::{Epoch, FileEpoch, FileIdentity, Latencies, Meaning, Sample};
use rusqlite::{Connection, Row};
use std::sync::Arc;

#[derive(Clone, Debug)]
pub(super) struct FileRow {
    id: i64,
    first: i64,
    gone: Option<i64>,
    pub(super) file: Arc<FileIdentity>,
    epoch: Epoch,
    meaning: Meaning,
    from_zero: bool,
}

pub(super) fn file_row(row: &Row<'_>) -> rusqlite::Result<FileRow> {
    let (file, epoch, meaning) = identity(row, 0)?;
    Ok(FileRow {
        id: row.get("id")?,
        first: row.get("first_capture_id")?,
        gone: row.get("gone_capture_id")?,
        file: file.into(),
        epoch,
        meaning,
        from_zero: row.get("from_zero")?,
    })
}

/// A file in one epoch, as far as it lies in the series.
pub(super) fn spell(
    connection: &Connection,
    series: &Series,
    row: &FileRow,
) -> rusqlite::Result<Option<FileEpoch>> {
    let life = series.life(row.first, row.gone, row.from_zero);
    let mut spell: Option<FileEpoch> = None;
    let mut add = |at: usize, Change { counters, size_bytes, .. }: Change| match &mut spell {
        None => {
            let (file, epoch, meaning) = (row.file.clone(), row.epoch.clone(), row.meaning);
            let sample = Sample { file, epoch, meaning, counters, size_bytes, latencies: None };
            spell = Some(FileEpoch { life, sample, changes: Vec::new() });
        }
        Some(spell) => {
            spell.sample.size_bytes = size_bytes;
            spell.changes.push((at, counters));
        }
    };
    if series.sparse {
        for at in life.first..life.gone.unwrap_or(series.ids.len()) {
            if let Some(change) = changes::newest(connection, row.id, series.ids[at], Read::Counters)? {
                add(at, change);
            }
        }
    } else if let Some((first, last)) = series.rows_of(&life) {
        // Of the rows before the series only the last one is needed.
        for change in changes::between(connection, row.id, first, last, Read::Counters)? {
            add(series.tick(change.capture), change);
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
    let at = |file: i64, capture: i64| -> rusqlite::Result<Option<Latencies>> {
        let newest = changes::newest(connection, file, capture, Read::Histograms)?;
        Ok(newest.and_then(|change| change.latencies))
    };
    let mut sum = Latencies::default();
    for row in rows.iter().filter(|row| row.meaning == meaning) {
        let life = series.life(row.first, row.gone, row.from_zero);
        let Some((first, until)) = series.rows_of(&life) else { continue };
        // A file that goes on from another has no known first counters, as in `TimeSeries::file`.
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
