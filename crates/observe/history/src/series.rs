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

use crate::exact::{Exact, Json};
use crate::file_rows::IDENTITY;
use crate::{Error, History};
use files::FileRow;
use filestats::{
    Epoch, FileEpoch, FileSeries, Latencies, Lifetime, Meaning, Rules, Tick, TimeSeries, WaitSeries,
};
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

/// What the history has of one source.
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
        let read = || -> rusqlite::Result<Vec<SourceInfo>> {
            let mut rows = self.connection.prepare(
                "SELECT source, count(*), min(taken_unix_ns), max(taken_unix_ns) FROM captures GROUP BY source \
                 ORDER BY source",
            )?;
            let info = |row: &Row<'_>| {
                let exact = |at| row.get::<_, Exact>(at).map(|Exact(value)| value);
                Ok(SourceInfo {
                    source: row.get(0)?,
                    captures: exact(1)?,
                    first_unix_ns: exact(2)?,
                    last_unix_ns: exact(3)?,
                })
            };
            rows.query_map([], info)?.collect()
        };
        read().map_err(|source| Error::sqlite("list the sources", &self.path, source))
    }

    /// All captures of a source that were taken in a period.
    ///
    /// # Errors
    /// Where the file cannot be read.
    pub fn series(&self, source: &str, from_unix_ns: u64, until_unix_ns: u64) -> Result<Series, Error> {
        let read = || {
            let captures = captures(&self.connection, source, from_unix_ns, until_unix_ns)?;
            series(&self.connection, source, captures, false)
        };
        read().map_err(|source| Error::sqlite("read a stretch of captures", &self.path, source))
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
        let read = || {
            let mut kept: Vec<(i64, Tick)> = Vec::new();
            let mut last_hour = None;
            for capture in captures(&self.connection, source, from_unix_ns, until_unix_ns)? {
                let hour = capture.1.taken_unix_ns / HOUR_NS;
                let edge = last_hour != Some(hour);
                if edge && (wanted(hour % 24) || wanted((hour + 23) % 24)) {
                    kept.push(capture);
                }
                last_hour = Some(hour);
            }
            series(&self.connection, source, kept, true)
        };
        read().map_err(|source| Error::sqlite("read captures of some hours", &self.path, source))
    }

    /// One file over a series; several results where the meaning of its counters changed.
    ///
    /// # Errors
    /// Where the file cannot be read.
    pub fn file_course(&self, series: &Series, file: usize, rules: Rules) -> Result<Vec<FileSeries>, Error> {
        let spells = || -> rusqlite::Result<Vec<FileEpoch>> {
            let rows = series.files[file].iter();
            Ok(rows
                .map(|row| files::spell(&self.connection, series, row))
                .collect::<Result<Vec<_>, _>>()?
                .into_iter()
                .flatten()
                .collect())
        };
        let spells =
            spells().map_err(|source| Error::sqlite("read a file's captures", &self.path, source))?;
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
        let read = || files::latencies(&self.connection, series, &series.files[file], meaning);
        read().map_err(|source| Error::sqlite("read a file's histograms", &self.path, source))
    }

    /// The waits of a series.
    ///
    /// # Errors
    /// Where the file cannot be read.
    pub fn wait_courses(&self, series: &Series, rules: Rules) -> Result<Vec<WaitSeries>, Error> {
        let read = || waits::courses(&self.connection, series, rules);
        read().map_err(|source| Error::sqlite("read waits", &self.path, source))
    }
}

fn captures(
    connection: &Connection,
    source: &str,
    from_unix_ns: u64,
    until_unix_ns: u64,
) -> rusqlite::Result<Vec<(i64, Tick)>> {
    let mut rows = connection.prepare_cached(
        "SELECT id, taken_unix_ns, clock_ns, complete FROM captures WHERE source = :source \
         AND taken_unix_ns >= :from AND taken_unix_ns <= :until ORDER BY id",
    )?;
    let tick = |row: &Row<'_>| {
        let (Exact(taken_unix_ns), Exact(clock_ns)) = (row.get(1)?, row.get(2)?);
        let complete = row.get::<_, Option<Json<Epoch>>>(3)?.map(|Json(epoch)| epoch);
        Ok((row.get(0)?, Tick { taken_unix_ns, clock_ns, complete }))
    };
    let parameters = named_params! {
        ":source": source,
        ":from": Exact(from_unix_ns),
        ":until": Exact(until_unix_ns),
    };
    rows.query_map(parameters, tick)?.collect()
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
        let mut rows =
            connection.prepare_cached(&files_in(", first_capture_id, gone_capture_id, from_zero"))?;
        let parameters = named_params! { ":source": source, ":first": first, ":last": last };
        for row in rows.query_map(parameters, files::file_row)? {
            let row = row?;
            by_name.entry((row.file.instance.clone(), row.file.path.clone())).or_default().push(row);
        }
    }
    let course = TimeSeries { source: source.into(), ticks };
    Ok(Series { course, ids, files: by_name.into_values().collect(), sparse })
}

/// A query for the files that existed between `:first` and `:last`: identity, `id`, and more columns.
pub(crate) fn files_in(more: &str) -> String {
    format!("SELECT {IDENTITY}, id{more} FROM ({}) ORDER BY id", present_in("files"))
}

/// A query for all items that existed between `:first` and `:last`. Two queries, because SQLite uses no index for an OR.
pub(crate) fn present_in(table: &str) -> String {
    format!(
        "SELECT * FROM {table} WHERE source = :source AND gone_capture_id IS NULL AND first_capture_id <= :last \
         UNION ALL \
         SELECT * FROM {table} WHERE source = :source AND gone_capture_id > :first AND first_capture_id <= :last \
         ORDER BY id"
    )
}
