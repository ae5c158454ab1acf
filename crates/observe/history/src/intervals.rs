//! Intervals between two captures: the interval query of the SQL Server study. The arithmetic is that of
//! [`filestats::intervals`].

use crate::exact::Why;
use crate::series::present_in;
use crate::{CaptureId, Error, History, rfc3339};
use filestats::{Counters, Figure, FileInterval, Interval, Rules, Sample, intervals};
use rusqlite::{Connection, named_params};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// Files to include: all by default. Both fields match a part of the name, ignoring case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IntervalFilter {
    /// Part of the database's name; a file of no database never matches.
    pub database: Option<String>,
    /// Part of the file's path, or of the name of its content.
    pub file: Option<String>,
}

/// Mean latencies, nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "CumulativeLatency"))]
pub struct Latency {
    /// Of a read.
    pub read_ns: Figure<f64>,
    /// Of a write.
    pub write_ns: Figure<f64>,
    /// Of a read or write.
    pub overall_ns: Figure<f64>,
    /// Of a sync.
    pub sync_ns: Figure<f64>,
}

/// One file between two captures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IntervalRow {
    /// When the earlier capture was taken, RFC 3339.
    pub previous_date: String,
    /// When the later one was.
    pub current_date: String,
    /// Wall-clock minutes between them; negative where the clock was set back.
    pub minutes: f64,
    /// The cumulative latency at the earlier capture; `None` where the file was not in it.
    pub previous: Option<Latency>,
    /// The cumulative latency at the later one; `None` where the file was gone.
    pub current: Option<Latency>,
    /// The latency of the I/O in between; `None` where that is unknown, see `interval`.
    pub between: Option<Latency>,
    /// The file and the differences of its counters, or why there are none.
    #[serde(flatten)]
    pub interval: FileInterval,
}

impl History {
    /// The intervals between two captures of one source, given in either order.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::DifferentSources`].
    pub fn intervals_between(
        &self,
        a: CaptureId,
        b: CaptureId,
        filter: &IntervalFilter,
        rules: Rules,
    ) -> Result<Vec<IntervalRow>, Error> {
        let earlier = self.snapshot(a.min(b))?;
        let later = self.snapshot(a.max(b))?;
        if earlier.source != later.source {
            return Err(Error::DifferentSources {
                a: a.min(b).0,
                source_a: earlier.source,
                b: a.max(b).0,
                source_b: later.source,
            });
        }
        let minutes = (i128::from(later.taken_unix_ns) - i128::from(earlier.taken_unix_ns)) as f64 / 60e9;
        let (before, after) = (latencies(&earlier.samples), latencies(&later.samples));
        let untimed = self.execute("read captures", |connection| {
            untimed_within(connection, &earlier.source, a.min(b), a.max(b))
        })?;
        let rows = intervals(&earlier, &later, rules).into_iter().filter(|row| filter.matches(row));
        Ok(rows
            .map(|row| match untimed.get(&(row.file.instance.clone(), row.file.path.clone())) {
                Some(untimed) => without_untimed(row, untimed),
                None => row,
            })
            .map(|interval| IntervalRow {
                previous_date: rfc3339(earlier.taken_unix_ns),
                current_date: rfc3339(later.taken_unix_ns),
                minutes,
                previous: before.get(&interval.file.key()).copied(),
                current: after.get(&interval.file.key()).copied(),
                between: match &interval.interval {
                    Interval::Known(delta) => Some(Latency::from_counters(&delta.counters)),
                    Interval::Unknown(_) => None,
                },
                interval,
            })
            .collect())
    }
}

/// Why the time of reads, writes and syncs does not cover all of them, although it is known at both ends.
type Untimed = [Option<Why>; 3];

/// The files whose time was unknown in some capture between two captures, by instance and path.
fn untimed_within(
    connection: &Connection,
    source: &str,
    first: CaptureId,
    last: CaptureId,
) -> rusqlite::Result<HashMap<(String, String), Untimed>> {
    let mut untimed: HashMap<(String, String), Untimed> = HashMap::new();
    // Rows before blocks: what is packed in between is then seen twice, and not missed. A block has one reason for all
    // its changes; where it goes beyond both captures, both ends have it as well.
    for changes in [
        "file_changes s ON s.file = f.id AND s.capture_id > :first AND s.capture_id < :last",
        "file_blocks s ON s.file = f.id AND s.last_capture_id > :first AND s.first_capture_id < :last",
    ] {
        let mut rows = connection.prepare_cached(&format!(
            "SELECT f.instance, f.path, max(s.read_stall_unknown), max(s.write_stall_unknown), \
             max(s.sync_stall_unknown) FROM ({files}) f CROSS JOIN {changes} \
             GROUP BY f.id HAVING coalesce(max(s.read_stall_unknown), max(s.write_stall_unknown), \
                                           max(s.sync_stall_unknown)) IS NOT NULL",
            files = present_in("files", "*")
        ))?;
        let parameters = named_params! { ":source": source, ":first": first.0, ":last": last.0 };
        let mut rows = rows.query(parameters)?;
        while let Some(row) = rows.next()? {
            let whys = untimed.entry((row.get(0)?, row.get(1)?)).or_default();
            for (at, why) in whys.iter_mut().enumerate() {
                *why = why.or(row.get(at + 2)?);
            }
        }
    }
    Ok(untimed)
}

fn without_untimed(mut row: FileInterval, [read, write, sync]: &Untimed) -> FileInterval {
    let take = |time: &mut Figure<u64>, why: &Option<Why>| {
        if let (Figure::Known(_), Some(Why(reason))) = (&time, why) {
            *time = Figure::unknown(*reason);
        }
    };
    if let Interval::Known(delta) = &mut row.interval {
        take(&mut delta.counters.read.stall_ns, read);
        take(&mut delta.counters.write.stall_ns, write);
        if let Figure::Known(syncs) = &mut delta.counters.sync {
            take(&mut syncs.stall_ns, sync);
        }
    }
    row
}

/// Cumulative latencies by file; as in `filestats`, the last of two samples of one name counts.
fn latencies(samples: &[Sample]) -> HashMap<(&str, &str), Latency> {
    samples.iter().map(|sample| (sample.file.key(), Latency::from_counters(&sample.counters))).collect()
}

impl IntervalFilter {
    fn matches(&self, row: &FileInterval) -> bool {
        let holds = |name: &str, part: &str| name.to_lowercase().contains(&part.to_lowercase());
        let database = row.file.database.as_deref();
        self.database.as_deref().is_none_or(|part| database.is_some_and(|name| holds(name, part)))
            && self.file.as_deref().is_none_or(|part| {
                holds(&row.file.path, part) || row.file.object.as_ref().is_some_and(|name| holds(name, part))
            })
    }
}

impl Latency {
    fn from_counters(counters: &Counters) -> Latency {
        Latency {
            read_ns: counters.read.latency_ns(),
            write_ns: counters.write.latency_ns(),
            overall_ns: counters.transfers().latency_ns(),
            sync_ns: match counters.sync {
                Figure::Known(sync) => sync.latency_ns(),
                Figure::Unknown { unknown } => Figure::unknown(unknown),
            },
        }
    }
}
