//! Snapshots: saved as changes since the last one of the source, read back whole.

use crate::blocks::Change;
use crate::changes::Read;
use crate::exact::{Exact, Json, exact};
use crate::series::{epoch, files_in};
use crate::statements::{first_row, rows};
use crate::{EntryKind, Error, History, changes, file_rows, statements, wait_rows};
use filestats::{Epoch, Sample, Snapshot};
use rusqlite::{Connection, Row, Transaction, named_params};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fmt;

/// The number of a capture. A later capture has a larger one; none is ever used twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct CaptureId(pub i64);

/// A capture without its files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaptureInfo {
    /// Its number.
    pub id: CaptureId,
    /// The source ("sqlite:/data/shop.db").
    pub source: String,
    /// Wall clock, nanoseconds since 1970.
    pub taken_unix_ns: u64,
    /// The source's monotonic clock, nanoseconds.
    pub clock_ns: u64,
    /// The label that the user gave it ("before the rebuild").
    pub label: Option<String>,
    /// Files in it.
    pub files: u64,
    /// Files whose counters differ from the capture before.
    pub files_changed: u64,
}

/// Captures to list: all of them by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CaptureFilter {
    /// Only of this source, or of all sources of this kind ("sqlite").
    pub source: Option<String>,
    /// Not before, nanoseconds since 1970.
    pub from_unix_ns: Option<u64>,
    /// Not after, nanoseconds since 1970.
    pub until_unix_ns: Option<u64>,
    /// Only the newest of them, at most this many.
    pub limit: Option<usize>,
}

/// Changes of a snapshot to the stored state of its source.
struct Changes<'a> {
    new: Vec<&'a Sample>,
    changed: Vec<(i64, &'a Sample)>,
    /// Files whose role became known, or whose name changed.
    named: Vec<(i64, &'a Sample)>,
    gone: Vec<i64>,
}

impl History {
    /// Keeps a snapshot. Only the files whose counters differ from the source's capture before take space.
    ///
    /// The files of a snapshot are a set: [`History::snapshot`] gives them in the order in which the source
    /// first showed them.
    ///
    /// # Errors
    /// Where the file cannot be written; then nothing of the snapshot is kept.
    pub fn save_snapshot(&mut self, snapshot: &Snapshot, label: Option<&str>) -> Result<CaptureId, Error> {
        self.transact("save a capture", |transaction| insert(transaction, snapshot, label))
    }

    /// Keeps snapshots of one source, each with its label, in their order: all of them or none. Another process waits
    /// until they are there, so that many should come in several calls.
    ///
    /// # Errors
    /// Where the file cannot be written; then nothing of them is kept.
    pub fn save_snapshots(
        &mut self,
        snapshots: &[(&Snapshot, Option<&str>)],
    ) -> Result<Vec<CaptureId>, Error> {
        self.transact("save captures", |transaction| {
            snapshots.iter().map(|(snapshot, label)| insert(transaction, snapshot, *label)).collect()
        })
    }

    /// Packs the older changes of every file that has at least `least` beside the newest. Saving does the same from 64
    /// on, a few at a time. Reads return the same afterwards. `progress` is called after each file with the number of
    /// files that are done and the number of all. Other processes wait for one file at most.
    ///
    /// # Errors
    /// Where the file cannot be written; then some files may be packed.
    pub fn pack(&mut self, least: usize, mut progress: impl FnMut(usize, usize)) -> Result<(), Error> {
        let doing = "pack captures";
        let query = "SELECT file FROM file_changes GROUP BY file HAVING count(*) > ?";
        let files: Vec<i64> = self.rows(doing, query, [least], |row| row.get(0))?;
        for (at, file) in files.iter().enumerate() {
            self.transact(doing, |transaction| {
                while changes::pack(transaction, *file, least)? > 0 {}
                Ok(())
            })?;
            progress(at + 1, files.len());
        }
        Ok(())
    }

    /// Rewrites the file without its free space (`VACUUM`). The disk needs room for a copy meanwhile.
    ///
    /// # Errors
    /// Where the file cannot be written, or the disk has no room; then the file is unchanged.
    pub fn vacuum(&mut self) -> Result<(), Error> {
        self.execute("give back free space", |connection| {
            connection.execute_batch("VACUUM; PRAGMA wal_checkpoint(TRUNCATE)")
        })
    }

    /// The snapshot of that capture, as it was saved.
    ///
    /// # Errors
    /// [`Error::NotFound`] where there is no such capture.
    pub fn snapshot(&self, id: CaptureId) -> Result<Snapshot, Error> {
        let info = self.capture(id)?;
        self.execute("read a capture", |connection| {
            let query = "SELECT notes, complete FROM captures WHERE id = ?";
            let (Json(notes), complete) =
                connection.query_row(query, [id.0], |row| Ok((row.get(0)?, epoch(row, 1)?)))?;
            Ok(Snapshot {
                samples: samples(connection, &info.source, id)?,
                source: info.source,
                taken_unix_ns: info.taken_unix_ns,
                clock_ns: info.clock_ns,
                waits: wait_rows::read(connection, id.0)?,
                notes,
                complete,
            })
        })
    }

    /// The capture without its files.
    ///
    /// # Errors
    /// [`Error::NotFound`] where there is no such capture.
    pub fn capture(&self, id: CaptureId) -> Result<CaptureInfo, Error> {
        let query = "SELECT * FROM captures WHERE id = ?";
        let found = self.first_row("read a capture", query, [id.0], capture_info)?;
        found.ok_or_else(|| self.not_found(EntryKind::Capture, id.0))
    }

    /// Captures, the newest first.
    ///
    /// # Errors
    /// Where the file cannot be read.
    pub fn captures(&self, filter: &CaptureFilter) -> Result<Vec<CaptureInfo>, Error> {
        let query = "SELECT * FROM captures WHERE (:source IS NULL OR source = :source OR source LIKE :source || ':%') \
             AND (:from IS NULL OR taken_unix_ns >= :from) \
             AND (:until IS NULL OR taken_unix_ns <= :until) ORDER BY id DESC LIMIT :limit";
        let parameters = named_params! {
            ":source": filter.source,
            ":from": filter.from_unix_ns.map(Exact),
            ":until": filter.until_unix_ns.map(Exact),
            // SQLite takes a negative limit for none.
            ":limit": filter.limit.map_or(-1, |limit| i64::try_from(limit).unwrap_or(-1)),
        };
        self.rows("list captures", query, parameters, capture_info)
    }

    pub(crate) fn not_found(&self, kind: EntryKind, id: i64) -> Error {
        Error::NotFound { kind, id, path: self.path.clone() }
    }
}

fn insert(
    transaction: &Transaction<'_>,
    snapshot: &Snapshot,
    label: Option<&str>,
) -> rusqlite::Result<CaptureId> {
    let changes = what_changes(present(transaction, &snapshot.source)?, &snapshot.samples);
    let from_zero = snapshot.complete.is_some() && last_complete(transaction, snapshot)? == snapshot.complete;
    let capture = statements::insert(
        transaction,
        "captures",
        &[
            ("source", &snapshot.source),
            ("taken_unix_ns", &Exact(snapshot.taken_unix_ns)),
            ("clock_ns", &Exact(snapshot.clock_ns)),
            ("label", &label),
            ("files", &snapshot.samples.len()),
            ("files_changed", &(changes.new.len() + changes.changed.len())),
            ("notes", &Json(&snapshot.notes)),
            ("complete", &snapshot.complete.as_ref().map(Json)),
        ],
    )?;
    for file in changes.gone {
        transaction.execute("UPDATE files SET gone_capture_id = ? WHERE id = ?", [capture, file])?;
    }
    for (file, sample) in changes.named {
        let name = "UPDATE files SET object = ? WHERE id = ?";
        transaction.prepare_cached(name)?.execute((&sample.file.object, file))?;
    }
    for (file, sample) in changes.changed {
        file_rows::insert_change(transaction, file, capture, sample)?;
        changes::pack_now_and_then(transaction, file, capture)?;
    }
    for sample in changes.new {
        let file = file_rows::insert_file(transaction, &snapshot.source, capture, from_zero, sample)?;
        file_rows::insert_change(transaction, file, capture, sample)?;
    }
    wait_rows::save(transaction, &snapshot.source, capture, from_zero, &snapshot.waits)?;
    Ok(CaptureId(capture))
}

/// [`Snapshot::complete`] of the source's last capture.
fn last_complete(connection: &Connection, snapshot: &Snapshot) -> rusqlite::Result<Option<Epoch>> {
    let query = "SELECT complete FROM captures WHERE source = ? ORDER BY id DESC LIMIT 1";
    first_row(connection, query, [&snapshot.source], |row| epoch(row, 0)).map(Option::flatten)
}

/// The files that the source's last capture has, with their numbers.
fn present(connection: &Connection, source: &str) -> rusqlite::Result<Vec<(i64, Sample)>> {
    let query = format!(
        "SELECT {}, f.id FROM files f JOIN file_changes s ON s.file = f.id \
         AND s.capture_id = (SELECT max(capture_id) FROM file_changes WHERE file = f.id) \
         WHERE f.source = ? AND f.gone_capture_id IS NULL ORDER BY f.id",
        file_rows::sample_columns()
    );
    rows(connection, &query, [source], |row| Ok((row.get("id")?, file_rows::sample(row)?)))
}

/// A file continues only with the same identity and epoch; otherwise it ends and another begins.
fn what_changes(present: Vec<(i64, Sample)>, samples: &[Sample]) -> Changes<'_> {
    let mut known: HashMap<(String, String), Vec<(i64, Sample)>> = HashMap::new();
    for (id, sample) in present {
        let key = (sample.file.instance.clone(), sample.file.path.clone());
        known.entry(key).or_default().push((id, sample));
    }
    let mut changes = Changes { new: Vec::new(), changed: Vec::new(), named: Vec::new(), gone: Vec::new() };
    for sample in samples {
        let key = (sample.file.instance.clone(), sample.file.path.clone());
        let same = known.get_mut(&key).and_then(|candidates| {
            let same = |(_, then): &(i64, Sample)| {
                then.file.is(&sample.file) && then.epoch == sample.epoch && then.meaning == sample.meaning
            };
            candidates.iter().position(same).map(|at| candidates.remove(at))
        });
        match same {
            None => changes.new.push(sample),
            Some((id, then)) => {
                if sample.file.object.is_some() && then.file.object != sample.file.object {
                    changes.named.push((id, sample));
                }
                let figures = |of: &Sample| (of.counters, of.size_bytes);
                if figures(&then) != figures(sample) || then.latencies != sample.latencies {
                    changes.changed.push((id, sample));
                }
            }
        }
    }
    changes.gone = known.into_values().flatten().map(|(id, _)| id).collect();
    changes
}

fn samples(connection: &Connection, source: &str, id: CaptureId) -> rusqlite::Result<Vec<Sample>> {
    let mut rows = connection.prepare_cached(&files_in(""))?;
    let mut rows = rows.query(named_params! { ":source": source, ":first": id.0, ":last": id.0 })?;
    let mut samples = Vec::new();
    while let Some(row) = rows.next()? {
        let (file, epoch, meaning) = file_rows::identity(row, 0)?;
        if let Some(change) = changes::newest(connection, row.get("id")?, id.0, Read::Histograms)? {
            let Change { counters, size_bytes, latencies, .. } = change;
            let file = file.into();
            samples.push(Sample { file, epoch, meaning, counters, size_bytes, latencies });
        }
    }
    Ok(samples)
}

fn capture_info(row: &Row<'_>) -> rusqlite::Result<CaptureInfo> {
    Ok(CaptureInfo {
        id: CaptureId(row.get("id")?),
        source: row.get("source")?,
        taken_unix_ns: exact(row, "taken_unix_ns")?,
        clock_ns: exact(row, "clock_ns")?,
        label: row.get("label")?,
        files: exact(row, "files")?,
        files_changed: exact(row, "files_changed")?,
    })
}

impl fmt::Display for CaptureId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
