//! The minutes before, of and after an incident: utilisation and outstanding I/Os, latency beside the expected one.

use crate::axis::Axis;
use crate::drawing::{Drawing, Size};
use crate::palette::Ink;
use crate::plot::{Margins, Plot, Stroke, Values};

/// The figures of one minute; `None` is not known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IncidentMinute {
    /// When it ended, nanoseconds since 1970.
    pub ended_unix_ns: u64,
    /// Share of the storage in use.
    pub utilisation: Option<f64>,
    /// Mean latency of the operations that sessions wait for longest, nanoseconds.
    pub latency_ns: Option<f64>,
    /// Latency that the curves expect there, nanoseconds.
    pub expected_ns: Option<f64>,
}

/// A stretch with an incident in it. Minutes without a figure are a gap.
#[derive(Clone, Debug, PartialEq)]
pub struct IncidentSeries {
    from_unix_ns: u64,
    to_unix_ns: u64,
    /// When it began and ended, seconds since the stretch began.
    incident: (f64, f64),
    minutes: Vec<IncidentMinute>,
}

const MINUTE_NS: u64 = 60_000_000_000;
/// Neighbouring minutes are no further apart than this, in seconds.
const NEIGHBOURS_S_MAX: f64 = 90.0;

impl IncidentSeries {
    /// `minutes` in the order of time; the incident from and to, nanoseconds since 1970.
    pub fn new(minutes: Vec<IncidentMinute>, (began, ended): (u64, u64)) -> IncidentSeries {
        let first = minutes.first().map_or(began, |minute| minute.ended_unix_ns.saturating_sub(MINUTE_NS));
        let last = minutes.last().map_or(ended, |minute| minute.ended_unix_ns);
        let (from_unix_ns, to_unix_ns) = (first.min(began), last.max(ended).max(first + MINUTE_NS));
        let seconds = |unix_ns: u64| unix_ns.saturating_sub(from_unix_ns) as f64 / 1e9;
        let incident = (seconds(began), seconds(ended));
        IncidentSeries { from_unix_ns, to_unix_ns, incident, minutes }
    }

    /// Without any minute there is nothing to draw.
    pub fn is_empty(&self) -> bool {
        self.minutes.is_empty()
    }

    /// Utilisation over time; 1 is the operating limit of the storage.
    pub fn utilisation(&self, size: Size) -> Drawing {
        Drawing::new(size, "utilisation before, during and after the incident", |canvas| {
            let values = self.values(|minute| minute.utilisation);
            let y = Axis::shares(values.iter().filter_map(|(_, value)| *value).chain([1.0]), 4);
            let mut plot = Plot::new(canvas, size, &Margins::WITH_PHASES, self.time_axis(size), y);
            plot.axes("time, UTC", "utilisation");
            self.mark(&mut plot);
            let end_s = self.seconds(self.to_unix_ns);
            plot.dashed((0.0, 1.0), (end_s, 1.0), Ink::Knee);
            plot.series(&values, Ink::Demand, self.has_few(size));
        })
    }

    /// Latency over time beside the measured latency at that load.
    pub fn latency(&self, size: Size) -> Drawing {
        Drawing::new(size, "latency before, during and after the incident", |canvas| {
            let (is, expected) =
                (self.values(|minute| minute.latency_ns), self.values(|minute| minute.expected_ns));
            let known = is.iter().chain(&expected).filter_map(|(_, value)| *value);
            let y = Axis::latencies(known.clone());
            let mut plot = Plot::new(canvas, size, &Margins::WITH_PHASES, self.time_axis(size), y);
            if known.count() == 0 {
                plot.y.ticks.clear();
                plot.axes("time, UTC", "latency, log scale");
                return plot.nothing("no latency is known");
            }
            plot.axes("time, UTC", "latency, log scale");
            self.mark(&mut plot);
            plot.thin(&expected, Ink::Curve, Stroke::Dashed);
            plot.series(&is, Ink::Read, self.has_few(size));
        })
    }

    fn seconds(&self, unix_ns: u64) -> f64 {
        unix_ns.saturating_sub(self.from_unix_ns) as f64 / 1e9
    }

    fn time_axis(&self, size: Size) -> Axis {
        Axis::time(self.from_unix_ns, self.to_unix_ns, size.width as usize / 90)
    }

    fn has_few(&self, size: Size) -> bool {
        self.minutes.len() <= size.width as usize / 14
    }

    fn mark(&self, plot: &mut Plot<'_>) {
        let (from, to) = self.incident;
        plot.stripe(from, to, Ink::Worse, 0.12);
        plot.phases(&[(from, to, "incident".to_owned())]);
    }

    /// One figure of each minute, at its middle; minutes that are missing are unknown.
    fn values(&self, figure: impl Fn(&IncidentMinute) -> Option<f64>) -> Values {
        let mut values: Values = Vec::new();
        for minute in &self.minutes {
            let middle_s = self.seconds(minute.ended_unix_ns.saturating_sub(MINUTE_NS / 2));
            if let Some((before_s, _)) =
                values.last().filter(|(before, _)| middle_s - before > NEIGHBOURS_S_MAX)
            {
                values.push((f64::midpoint(*before_s, middle_s), None));
            }
            values.push((middle_s, figure(minute)));
        }
        values
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn minute(number: u64, utilisation: f64) -> IncidentMinute {
        IncidentMinute {
            ended_unix_ns: number * MINUTE_NS,
            utilisation: Some(utilisation),
            latency_ns: Some(1e6),
            expected_ns: Some(5e5),
        }
    }

    #[test]
    fn a_minute_that_was_not_kept_is_a_gap() {
        let minutes = vec![minute(10, 0.2), minute(11, 0.9), minute(14, 0.3)];
        let series = IncidentSeries::new(minutes, (10 * MINUTE_NS, 11 * MINUTE_NS));
        let known: Vec<bool> =
            series.values(|minute| minute.utilisation).iter().map(|(_, value)| value.is_some()).collect();
        assert_eq!(known, [true, true, false, true]);
        assert_eq!(series.incident, (60.0, 120.0));
    }

    #[test]
    fn an_incident_without_minutes_is_drawn_as_nothing_known() {
        let series = IncidentSeries::new(Vec::new(), (10 * MINUTE_NS, 11 * MINUTE_NS));
        assert!(series.is_empty());
        let svg = series.latency(Size::WIDE).to_svg();
        assert!(svg.contains("no latency is known") && !svg.contains("NaN"), "{svg}");
    }
}
