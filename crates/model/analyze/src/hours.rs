//! Usual latency and rates of a file at an hour of the day, from this hour of other days.

use crate::captured::{Captured, DayHour, day_hour, hour_of};
use crate::case::{Direction, FileCase, Reading, readings};
use crate::limits::DAYS_MIN;
use statistics::IOS_MIN;
use std::collections::BTreeMap;

/// A file's operations in each hour.
pub(crate) struct Hours<'a> {
    captured: &'a Captured,
    slots: BTreeMap<DayHour, Slot>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    count: u64,
    stall_ns: u64,
}

impl<'a> Hours<'a> {
    pub fn new(case: &FileCase<'a>, direction: Direction, now: &[Reading]) -> Hours<'a> {
        let mut hours = Hours { captured: case.captured, slots: BTreeMap::new() };
        hours.add(now);
        // Of another meaning, its figures are not to be compared.
        let same = |file: &&filestats::FileSeries| file.meaning == case.file.meaning;
        if let Some(earlier) = case.earlier
            && let Some(file) = earlier.file.filter(same)
        {
            hours.add(&readings(earlier.series, &file.steps, direction, case.settings));
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
