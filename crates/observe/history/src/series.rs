//! A period of the history file by file, where [`History::snapshot`] reads it capture by capture.
//!
//! ```text
//! source_names ─> series(source, from, until)          its captures, and the names of its files
//!                    ├─ file_course(series, n)         one file through all of them: a range of `changes.rs`
//!                    └─ wait_courses(series)           its waits
//! hourly(source, from, until, hours)                   the same with one capture an hour, each looked up
//! ```
//!
//! Rows of removed captures lie between those of two kept captures, and belong to the interval between them
//! (`retention.rs`).
//!
//! Memory: the captures (about 100 bytes each), the names, and one file at a time.

mod files;
mod waits;

use crate::clock::latest_unix_ns;
use crate::exact::{Exact, Json, exact};
use crate::file_rows::IDENTITY;
use crate::statements::rows;
use crate::{Error, History};
use files::FileRow;
use filestats::{Epoch, FileSeries, Latencies, Lifetime, Meaning, Rules, Tick, TimeSeries, WaitSeries};
use rusqlite::{Connection, Row, named_params};
use std::collections::BTreeMap;

/// The captures of one source in a period, and their files.
#[derive(Clone, Debug, Default)]
pub struct Series {
    /// The captures.
    pub course: TimeSeries,
    ids: Vec<i64>,
    /// By name; several of one name where a file began again.
    files: Vec<Vec<FileRow>>,
    /// Only some captures are read: looking each one up costs less than reading all rows between them.
    sparse: bool,
}

/// Contents of the history for one source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceInfo {
    /// Its name.
    pub source: String,
    /// Captures.
    pub captures: u64,
    /// When the first was taken, nanoseconds since 1970.
    pub first_unix_ns: u64,
    /// When the last was.
    pub last_unix_ns: u64,
}

const HOUR_NS: u64 = 3600 * 1_000_000_000;

impl Series {
    /// The number of distinct file names.
    pub fn files(&self) -> usize {
        self.files.len()
    }

    /// The index in this series of a file of another series of the same source.
    pub fn find(&self, instance: &str, path: &str) -> Option<usize> {
        self.files.binary_search_by(|rows| rows[0].file.key().cmp(&(instance, path))).ok()
    }

    /// The index of a capture, or of the first one after it.
    fn tick(&self, capture: i64) -> usize {
        self.ids.partition_point(|id| *id < capture)
    }

    /// The captures in which an item existed that began in one capture and was gone in another.
    fn life(&self, born: i64, died: Option<i64>, from_zero: bool) -> Lifetime {
        let gone = died.map(|died| self.tick(died)).filter(|gone| *gone < self.ids.len());
        Lifetime { first: self.tick(born), gone, born, died, from_zero }
    }

    /// The range of captures whose rows are read for an item that began in a given capture: from the last row up to the
    /// first capture of the series.
    fn rows_of(&self, life: &Lifetime) -> Option<(i64, i64)> {
        let (first, last) = (*self.ids.first()?, *self.ids.last()?);
        (life.born <= last).then_some((first.max(life.born), last))
    }
}

impl History {
    /// The sources of which captures are kept, by name.
    ///
    /// # Errors
    /// Where the file cannot be read.
    pub fn sources(&self) -> Result<Vec<SourceInfo>, Error> {
        let query = "SELECT source, count(*), min(taken_unix_ns), \
             coalesce(max(taken_unix_ns) FILTER (WHERE taken_unix_ns <= ?), max(taken_unix_ns)) FROM captures \
             GROUP BY source ORDER BY source";
        self.rows("list the sources", query, [Exact(latest_unix_ns())], |row| {
            Ok(SourceInfo {
                source: row.get(0)?,
                captures: exact(row, 1)?,
                first_unix_ns: exact(row, 2)?,
                last_unix_ns: exact(row, 3)?,
            })
        })
    }

    /// All captures of a source that were taken in a period.
    ///
    /// # Errors
    /// Where the file cannot be read.
    pub fn series(&self, source: &str, from_unix_ns: u64, until_unix_ns: u64) -> Result<Series, Error> {
        self.execute("read a stretch of captures", |connection| {
            series(connection, source, captures(connection, source, from_unix_ns, until_unix_ns)?, false)
        })
    }

    /// The first capture of each hour (UTC, 0 to 23) for which `wanted` returns true, and of the hour after it: the
    /// intervals between them are of such hours.
    ///
    /// # Errors
    /// Where the file cannot be read.
    pub fn hourly(
        &self,
        source: &str,
        from_unix_ns: u64,
        until_unix_ns: u64,
        wanted: impl Fn(u64) -> bool,
    ) -> Result<Series, Error> {
        self.execute("read captures of some hours", |connection| {
            let mut kept = captures(connection, source, from_unix_ns, until_unix_ns)?;
            let mut last_hour = None;
            kept.retain(|(_, tick)| {
                let hour = tick.taken_unix_ns / HOUR_NS;
                let is_first = last_hour.replace(hour) != Some(hour);
                is_first && (wanted(hour % 24) || wanted((hour + 23) % 24))
            });
            series(connection, source, kept, true)
        })
    }

    /// One file over a series; several results where the meaning of its counters changed.
    ///
    /// # Errors
    /// Where the file cannot be read.
    pub fn file_course(&self, series: &Series, file: usize, rules: Rules) -> Result<Vec<FileSeries>, Error> {
        let spells = self.execute("read a file's captures", |connection| {
            let rows = series.files[file].iter();
            rows.filter_map(|row| files::spell(connection, series, row).transpose()).collect()
        })?;
        Ok(series.course.file(spells, rules))
    }

    /// The histograms of all I/O of a file after its first capture in a series, where its source kept them throughout and
    /// its counters have the given meaning.
    ///
    /// # Errors
    /// Where the file cannot be read.
    pub fn file_latencies(
        &self,
        series: &Series,
        file: usize,
        meaning: Meaning,
    ) -> Result<Option<Latencies>, Error> {
        self.execute("read a file's histograms", |connection| {
            files::latencies(connection, series, &series.files[file], meaning)
        })
    }

    /// The waits of a series.
    ///
    /// # Errors
    /// Where the file cannot be read.
    pub fn wait_courses(&self, series: &Series, rules: Rules) -> Result<Vec<WaitSeries>, Error> {
        self.execute("read waits", |connection| waits::courses(connection, series, rules))
    }
}

fn captures(
    connection: &Connection,
    source: &str,
    from_unix_ns: u64,
    until_unix_ns: u64,
) -> rusqlite::Result<Vec<(i64, Tick)>> {
    let query = "SELECT id, taken_unix_ns, clock_ns, complete FROM captures WHERE source = ? \
         AND taken_unix_ns >= ? AND taken_unix_ns <= ? ORDER BY id";
    rows(connection, query, (source, Exact(from_unix_ns), Exact(until_unix_ns)), |row| {
        let tick = Tick { taken_unix_ns: exact(row, 1)?, clock_ns: exact(row, 2)?, complete: epoch(row, 3)? };
        Ok((row.get(0)?, tick))
    })
}

/// Reads [`filestats::Snapshot::complete`].
pub(crate) fn epoch(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<Epoch>> {
    Ok(row.get::<_, Option<Json<Epoch>>>(column)?.map(|Json(epoch)| epoch))
}

fn series(
    connection: &Connection,
    source: &str,
    captures: Vec<(i64, Tick)>,
    sparse: bool,
) -> rusqlite::Result<Series> {
    let (ids, ticks): (Vec<i64>, Vec<Tick>) = captures.into_iter().unzip();
    let mut by_name: BTreeMap<(String, String), Vec<FileRow>> = BTreeMap::new();
    if let (Some(first), Some(last)) = (ids.first(), ids.last()) {
        let query = files_in(", first_capture_id, gone_capture_id, from_zero");
        let parameters = named_params! { ":source": source, ":first": first, ":last": last };
        for row in rows(connection, &query, parameters, files::file_row)? {
            by_name.entry((row.file.instance.clone(), row.file.path.clone())).or_default().push(row);
        }
    }
    let course = TimeSeries { source: source.into(), ticks };
    Ok(Series { course, ids, files: by_name.into_values().collect(), sparse })
}

/// A query for the files that existed between `:first` and `:last`: identity, `id`, and more columns.
pub(crate) fn files_in(more: &str) -> String {
    format!("SELECT {IDENTITY}, id{more} FROM ({}) ORDER BY id", present_in("files", "*"))
}

/// A query for all items that existed between `:first` and `:last`. Two queries, because SQLite uses no index for an OR.
/// Covering indexes answer both where the columns are the number and the two captures.
pub(crate) fn present_in(table: &str, columns: &str) -> String {
    format!(
        "SELECT {columns} FROM {table} \
         WHERE source = :source AND gone_capture_id IS NULL AND first_capture_id <= :last \
         UNION ALL \
         SELECT {columns} FROM {table} \
         WHERE source = :source AND gone_capture_id > :first AND first_capture_id <= :last"
    )
}
