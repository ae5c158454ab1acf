//! One file with what several rules need of it.

use crate::captured::Captured;
use crate::limits::{APART_NS, LARGE_BYTES};
use crate::{Settings, Span};
use filestats::{Counts, FileKind, FileSeries, IoClass, Ops, Step, Time, TimeSeries};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Reads or writes of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "IoDirection"))]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Syncs.
    Sync,
}

/// A file's captures before the stretch, an hour at a time: they show what is usual of it.
#[derive(Clone, Copy, Debug)]
pub struct Earlier<'a> {
    /// The captures.
    pub series: &'a TimeSeries,
    /// The file through them; `None` where it was not there.
    pub file: Option<&'a FileSeries>,
}

/// One file.
pub(crate) struct FileCase<'a> {
    pub series: &'a TimeSeries,
    pub file: &'a FileSeries,
    pub earlier: Option<Earlier<'a>>,
    pub settings: &'a Settings,
    /// Known time of each hour.
    pub captured: &'a Captured,
}

/// The mean of a direction in one interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Reading {
    pub at: usize,
    pub span: Span,
    /// On the source's clock.
    pub elapsed_ns: u64,
    pub ops: Ops,
    pub stall_ns: u64,
    pub latency_ns: f64,
}

/// Readings that follow each other closely.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Episode {
    pub span: Span,
    pub elapsed_ns: u64,
}

/// Readings together.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Total {
    pub elapsed_ns: u64,
    pub count: u64,
    pub bytes: u64,
    pub stall_ns: u64,
}

impl Direction {
    pub(crate) const ALL: [Direction; 3] = [Direction::Read, Direction::Write, Direction::Sync];

    /// The class by which its latency is graded.
    pub(crate) fn class(self, kind: FileKind) -> IoClass {
        match (self, kind) {
            (Direction::Read, _) => IoClass::Read,
            (_, FileKind::Log | FileKind::Journal) => IoClass::LogWrite,
            _ => IoClass::Write,
        }
    }

    /// "reads", "writes", "syncs".
    pub(crate) fn plural(self) -> &'static str {
        match self {
            Direction::Read => "reads",
            Direction::Write => "writes",
            Direction::Sync => "syncs",
        }
    }
}

impl FileCase<'_> {
    /// The intervals in which there was any of a direction, where its time is known and is that of the storage.
    pub fn readings(&self, direction: Direction) -> Vec<Reading> {
        let time = match direction {
            Direction::Read => self.file.meaning.read_time,
            Direction::Write => self.file.meaning.write_time,
            Direction::Sync => Time::ToCompletion,
        };
        if time == Time::ToSubmission {
            return Vec::new();
        }
        readings(self.series, &self.file.steps, direction, self.settings)
    }

    /// Whether the mean size of its operations is known: a block is not a request.
    pub fn counts_requests(&self) -> bool {
        self.file.meaning.counts == Counts::Requests
    }

    pub fn class(&self, direction: Direction) -> IoClass {
        direction.class(self.file.file.kind)
    }

    pub fn band(&self, direction: Direction, latency_ns: f64) -> &'static str {
        self.settings.profile.band(self.class(direction), latency_ns).name
    }
}

pub(crate) fn readings(
    series: &TimeSeries,
    steps: &[Step],
    direction: Direction,
    settings: &Settings,
) -> Vec<Reading> {
    let reading = |step: &Step| {
        let added = step.added.known()?;
        let ops = match direction {
            Direction::Read => added.read,
            Direction::Write => added.write,
            Direction::Sync => added.sync.known()?,
        };
        let (stall_ns, latency_ns) = (ops.stall_ns.known()?, ops.latency_ns().known()?);
        let elapsed_ns = series.elapsed_ns(step.at, settings.rules).known()?;
        let span = Span::of_ticks(series, step.at, step.at);
        Some(Reading { at: step.at, span, elapsed_ns, ops, stall_ns, latency_ns })
    };
    steps.iter().filter_map(reading).collect()
}

impl Reading {
    pub fn per_second(&self) -> f64 {
        self.ops.count as f64 / (self.elapsed_ns as f64 / 1e9)
    }
}

impl Total {
    pub fn from_readings<'a>(readings: impl IntoIterator<Item = &'a Reading>) -> Total {
        readings.into_iter().fold(Total::default(), |sum, reading| Total {
            elapsed_ns: sum.elapsed_ns.saturating_add(reading.elapsed_ns),
            count: sum.count.saturating_add(reading.ops.count),
            bytes: sum.bytes.saturating_add(reading.ops.bytes),
            stall_ns: sum.stall_ns.saturating_add(reading.stall_ns),
        })
    }

    /// Mean time of one operation; `None` of none.
    pub fn latency_ns(&self) -> Option<f64> {
        (self.count > 0).then(|| self.stall_ns as f64 / self.count as f64)
    }

    /// Mean bytes of one operation; `None` of none.
    pub fn average_bytes(&self) -> Option<f64> {
        (self.count > 0).then(|| self.bytes as f64 / self.count as f64)
    }

    pub fn is_large(&self) -> bool {
        self.average_bytes().is_some_and(|bytes| bytes >= LARGE_BYTES)
    }
}

/// A sum that ends at the largest number there is.
pub(crate) fn sum(values: impl IntoIterator<Item = u64>) -> u64 {
    values.into_iter().fold(0, u64::saturating_add)
}

/// The stretches that readings make up.
pub(crate) fn episodes<'a>(readings: impl IntoIterator<Item = &'a Reading>) -> Vec<Episode> {
    let mut episodes: Vec<Episode> = Vec::new();
    for reading in readings {
        let near = APART_NS.max(2 * reading.span.length_ns());
        match episodes.last_mut() {
            Some(last) if reading.span.from_unix_ns.saturating_sub(last.span.until_unix_ns) <= near => {
                last.span.until_unix_ns = last.span.until_unix_ns.max(reading.span.until_unix_ns);
                last.elapsed_ns = last.elapsed_ns.saturating_add(reading.elapsed_ns);
            }
            _ => episodes.push(Episode { span: reading.span, elapsed_ns: reading.elapsed_ns }),
        }
    }
    episodes
}

pub(crate) fn spans(episodes: &[Episode]) -> Vec<Span> {
    episodes.iter().map(|episode| episode.span).collect()
}

/// The longest latency that enough operations stand behind, or else the longest of all.
pub(crate) fn worst<'a>(readings: impl Iterator<Item = &'a Reading> + Clone) -> Option<&'a Reading> {
    let longest = |readings: &mut dyn Iterator<Item = &'a Reading>| {
        readings.max_by(|a, b| a.latency_ns.total_cmp(&b.latency_ns))
    };
    let many = |reading: &&Reading| reading.ops.count >= crate::limits::IOS_FEW;
    let mut all = readings;
    longest(&mut all.clone().filter(many)).or_else(|| longest(&mut all))
}

/// Time in which there was any operation and all that is timed is known, and the mean number outstanding in each
/// interval of it.
pub(crate) fn outstanding(case: &FileCase) -> Vec<(usize, u64, f64)> {
    let one = |step: &Step| {
        let added = step.added.known()?;
        let elapsed_ns = case.series.elapsed_ns(step.at, case.settings.rules).known()?;
        Some((step.at, elapsed_ns, added.stall_ns().known()? as f64 / elapsed_ns as f64))
    };
    case.file.steps.iter().filter_map(one).collect()
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}
