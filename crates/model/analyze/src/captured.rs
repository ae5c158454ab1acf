//! Share of each hour that a source's captures cover.

use crate::limits::{DAY, HOUR, HOUR_STEP_NS};
use filestats::{Rules, TimeSeries};
use std::collections::BTreeMap;

/// Less than this of an hour captured says nothing of it.
const CAPTURED_MIN_NS: u64 = HOUR / 2;

/// An hour of a day: days since 1970, and 0 to 23, in UTC.
pub(crate) type DayHour = (u64, u64);

/// Time of each hour that lies in known intervals of a source, by hour and day.
#[derive(Clone, Debug, Default)]
pub(crate) struct Captured(BTreeMap<DayHour, u64>);

pub(crate) fn day_hour(unix_ns: u64) -> DayHour {
    (unix_ns / DAY, unix_ns / HOUR % 24)
}

/// The hour in which most of an interval lies; `None` where it is longer than that.
pub(crate) fn hour_of(from_unix_ns: u64, until_unix_ns: u64) -> Option<DayHour> {
    let length = until_unix_ns.checked_sub(from_unix_ns)?;
    (length <= HOUR_STEP_NS).then(|| day_hour(from_unix_ns + length / 2))
}

impl Captured {
    pub fn from_series(series: &TimeSeries, earlier: Option<&TimeSeries>, rules: Rules) -> Captured {
        let mut captured = Captured::default();
        for series in earlier.into_iter().chain([series]) {
            for at in 1..series.ticks.len() {
                let (from, until) = series.span_unix_ns(at);
                if let (Some(hour), Some(elapsed_ns)) =
                    (hour_of(from, until), series.elapsed_ns(at, rules).known())
                {
                    *captured.0.entry(hour).or_default() += elapsed_ns;
                }
            }
        }
        captured
    }

    /// Other days on which the hour of this instant was captured.
    pub fn days(&self, unix_ns: u64) -> usize {
        self.others(day_hour(unix_ns)).count()
    }

    /// The most other days that any hour of a stretch has.
    pub fn days_max(&self, series: &TimeSeries) -> usize {
        let mut hours: Vec<DayHour> = series.ticks.iter().map(|tick| day_hour(tick.taken_unix_ns)).collect();
        hours.dedup();
        hours.into_iter().map(|hour| self.others(hour).count()).max().unwrap_or(0)
    }

    /// This hour of other days, where enough of it was captured, each with the captured time.
    pub fn others(&self, (day, hour): DayHour) -> impl Iterator<Item = (DayHour, u64)> {
        let same = move |((d, h), ns): &(&DayHour, &u64)| *h == hour && *d != day && **ns >= CAPTURED_MIN_NS;
        self.0.iter().filter(same).map(|(key, ns)| (*key, *ns))
    }
}
