//! Known part of a stretch: gaps, epochs, unknown intervals.

use crate::Settings;
use crate::finding::Span;
use filestats::{Reason, TimeSeries};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A time in which a recorded source gave nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Gap {
    /// The source; as given to the recorder, if it never returned a capture.
    pub source: String,
    /// When it began.
    pub from_unix_ns: u64,
    /// When it ended; `None` while it lasts, or where the recorder ended before.
    pub until_unix_ns: Option<u64>,
    /// The error of the first attempt.
    pub reason: String,
}

/// Known part of a stretch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Coverage {
    /// Begin of the requested stretch.
    pub from_unix_ns: u64,
    /// Its end.
    pub until_unix_ns: u64,
    /// The first capture in it; `None` without any.
    pub first_unix_ns: Option<u64>,
    /// The last one.
    pub last_unix_ns: Option<u64>,
    /// Captures.
    pub captures: usize,
    /// The usual time between two; `None` below two captures.
    pub interval_ns: Option<u64>,
    /// Share of the requested stretch between the first capture and the last.
    pub captured_share: f64,
    /// Of the time of all files between captures, that which is known; `None` without files.
    pub known_share: Option<f64>,
    /// Files seen.
    pub files: usize,
    /// Of those, files that did anything.
    pub files_used: usize,
    /// Of those, files whose reads, writes or syncs are not (or not all) timed to their completion.
    pub files_untimed: usize,
    /// Of those, files of unknown size.
    pub files_unsized: usize,
    /// Intervals in which something of a file is unknown, by reason.
    pub unknown: BTreeMap<Reason, Unknown>,
    /// Recorded gaps of this source.
    pub gaps: Vec<Gap>,
}

/// Intervals that are unknown for one reason.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "UnknownIntervals"))]
pub struct Unknown {
    /// Intervals.
    pub intervals: usize,
    /// Files' intervals: several files may share one.
    pub file_intervals: usize,
    /// The first of them.
    pub when: Vec<Span>,
}

impl Coverage {
    pub(crate) fn from_series(series: &TimeSeries, settings: &Settings) -> Coverage {
        let mut lengths: Vec<u64> = (1..series.ticks.len()).map(|at| series.wall_ns(at)).collect();
        lengths.sort_unstable();
        let first = series.ticks.first().map(|tick| tick.taken_unix_ns);
        let last = series.ticks.last().map(|tick| tick.taken_unix_ns);
        let captured = last.unwrap_or(0).saturating_sub(first.unwrap_or(0));
        let requested = settings.until_unix_ns.saturating_sub(settings.from_unix_ns);
        Coverage {
            from_unix_ns: settings.from_unix_ns,
            until_unix_ns: settings.until_unix_ns,
            first_unix_ns: first,
            last_unix_ns: last,
            captures: series.ticks.len(),
            interval_ns: lengths.get(lengths.len() / 2).copied(),
            captured_share: (captured as f64 / requested.max(1) as f64).min(1.0),
            ..Coverage::default()
        }
    }
}
