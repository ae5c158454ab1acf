//! What is usual of a file at an hour of the day, from the same hour of other days.

use crate::case::{Direction, FileCase, Reading, readings};
use crate::limits::{DAY, DAYS_MIN, HOUR, HOUR_STEP_NS, IOS_MIN};
use filestats::{Rules, TimeSeries};
use std::collections::BTreeMap;

/// Less than this of an hour captured says nothing of it.
const CAPTURED_MIN_NS: u64 = HOUR / 2;

/// An hour of a day: days since 1970, and 0 to 23, in UTC.
type DayHour = (u64, u64);

/// How much of each hour lies in known intervals of a source, by hour and day.
#[derive(Clone, Debug, Default)]
pub(crate) struct Captured(BTreeMap<DayHour, u64>);

/// What a file did in each hour.
pub(crate) struct Hours<'a> {
    captured: &'a Captured,
    slots: BTreeMap<DayHour, Slot>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    count: u64,
    stall_ns: u64,
}

fn day_hour(unix_ns: u64) -> DayHour {
    (unix_ns / DAY, unix_ns / HOUR % 24)
}

/// The hour in which most of an interval lies; `None` where it is longer than that.
fn hour_of(from_unix_ns: u64, until_unix_ns: u64) -> Option<DayHour> {
    let length = until_unix_ns.checked_sub(from_unix_ns)?;
    (length <= HOUR_STEP_NS).then(|| day_hour(from_unix_ns + length / 2))
}

impl Captured {
    pub fn of(course: &TimeSeries, earlier: Option<&TimeSeries>, rules: Rules) -> Captured {
        let mut captured = Captured::default();
        for course in earlier.into_iter().chain([course]) {
            for at in 1..course.ticks.len() {
                let (from, until) = course.span_unix_ns(at);
                if let (Some(hour), Some(elapsed_ns)) =
                    (hour_of(from, until), course.elapsed_ns(at, rules).known())
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

    /// The most other days that any hour of a course has.
    pub fn days_max(&self, course: &TimeSeries) -> usize {
        let mut hours: Vec<DayHour> = course.ticks.iter().map(|tick| day_hour(tick.taken_unix_ns)).collect();
        hours.dedup();
        hours.into_iter().map(|hour| self.others(hour).count()).max().unwrap_or(0)
    }

    /// The same hour of other days, where enough of it was captured, and how much.
    fn others(&self, (day, hour): DayHour) -> impl Iterator<Item = (DayHour, u64)> {
        let same = move |((d, h), ns): &(&DayHour, &u64)| *h == hour && *d != day && **ns >= CAPTURED_MIN_NS;
        self.0.iter().filter(same).map(|(key, ns)| (*key, *ns))
    }
}

impl<'a> Hours<'a> {
    pub fn of(case: &FileCase<'a>, direction: Direction, now: &[Reading]) -> Hours<'a> {
        let mut hours = Hours { captured: case.captured, slots: BTreeMap::new() };
        hours.add(now);
        // Of another meaning, its figures are not to be compared.
        let same = |file: &&filestats::FileSeries| file.meaning == case.file.meaning;
        if let Some(earlier) = case.earlier
            && let Some(file) = earlier.file.filter(same)
        {
            hours.add(&readings(earlier.course, &file.steps, direction, case.settings));
        }
        hours
    }

    fn add(&mut self, readings: &[Reading]) {
        let hour = |reading: &Reading| hour_of(reading.span.from_unix_ns, reading.span.until_unix_ns);
        for readings in readings.chunk_by(|a, b| hour(a) == hour(b)) {
            let Some(hour) = hour(&readings[0]) else { continue };
            let slot = self.slots.entry(hour).or_default();
            for reading in readings {
                slot.count = slot.count.saturating_add(reading.ops.count);
                slot.stall_ns = slot.stall_ns.saturating_add(reading.stall_ns);
            }
        }
    }

    /// The median latency of each reading's hour on other days.
    pub fn usual_latencies_ns(&self, readings: &[Reading]) -> Vec<Option<f64>> {
        self.usual(readings, |slot, _| {
            (slot.count >= IOS_MIN).then(|| slot.stall_ns as f64 / slot.count as f64)
        })
    }

    /// The median rate of each reading's hour on other days.
    pub fn usual_per_s(&self, readings: &[Reading]) -> Vec<Option<f64>> {
        self.usual(readings, |slot, captured_ns| Some(slot.count as f64 / (captured_ns as f64 / 1e9)))
    }

    fn usual(&self, readings: &[Reading], figure: impl Fn(Slot, u64) -> Option<f64>) -> Vec<Option<f64>> {
        let hour = |reading: &Reading| day_hour(reading.span.from_unix_ns);
        let one = |readings: &[Reading]| {
            let others = self.captured.others(hour(&readings[0]));
            let of =
                |(key, captured_ns)| figure(self.slots.get(&key).copied().unwrap_or_default(), captured_ns);
            let mut figures: Vec<f64> = others.filter_map(of).collect();
            figures.sort_by(f64::total_cmp);
            let median = (figures.len() >= DAYS_MIN).then(|| figures[figures.len() / 2]);
            std::iter::repeat_n(median, readings.len())
        };
        readings.chunk_by(|a, b| hour(a) == hour(b)).flat_map(one).collect()
    }
}
