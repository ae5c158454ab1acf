//! The run row by row: steady state, drift, cliffs, stalls.

use crate::case::{Case, is_paced};
use crate::cliffs::{Cliff, cliffs_of};
use crate::limits::{STALL_IOS, STEADY_EXCURSION, STEADY_RANGE, STEADY_ROUNDS};
use crate::steady::{self, Steadiness, Window, excursion};
use crate::{Finding, FindingKind, Weight, words};
use workload::RunResult;

/// What is looked at: of a given rate, only the latency can change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    Rate,
    Latency,
}

/// A full row of the series.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Its place in the series.
    pub at: usize,
    pub from_ns: u64,
    pub end_ns: u64,
    pub ios: f64,
    pub stall_ns: f64,
    pub bytes: f64,
}

/// The full rows of a run, and their sums from the first on.
pub struct RunSeries {
    pub rows: Vec<Row>,
    pub measure: Measure,
    sums: Vec<(f64, f64, f64)>,
}

impl RunSeries {
    pub fn from_result(result: &RunResult) -> RunSeries {
        let mut rows: Vec<Row> = Vec::with_capacity(result.series.len());
        let mut from_ns = 0;
        for (at, slice) in result.series.iter().enumerate() {
            let total = slice.total();
            // A sliver at the end has a rate of its own; an end that does not advance is not time.
            if slice.end_ns.saturating_sub(from_ns) > result.slice_ns / 2 {
                let (ios, stall_ns, bytes) = (total.count as f64, total.stall_ns as f64, total.bytes as f64);
                rows.push(Row { at, from_ns, end_ns: slice.end_ns, ios, stall_ns, bytes });
            }
            from_ns = from_ns.max(slice.end_ns);
        }
        let mut sums = vec![(0.0, 0.0, 0.0)];
        let mut sum = (0.0, 0.0, 0.0);
        for row in &rows {
            sum = (sum.0 + row.ios, sum.1 + row.stall_ns, sum.2 + row.ns());
            sums.push(sum);
        }
        let measure = if is_paced(result) { Measure::Latency } else { Measure::Rate };
        RunSeries { rows, measure, sums }
    }

    /// I/Os, summed latency and time (ns) of some rows.
    pub fn sums(&self, rows: std::ops::Range<usize>) -> (f64, f64, f64) {
        let (from, to) = (self.sums[rows.start], self.sums[rows.end]);
        (to.0 - from.0, to.1 - from.1, to.2 - from.2)
    }

    /// Of each row the rate, or the mean latency where the rate is given and there was any I/O.
    pub fn values(&self) -> Vec<f64> {
        match self.measure {
            Measure::Rate => self.rows.iter().map(Row::rate).collect(),
            Measure::Latency => {
                self.rows.iter().filter(|row| row.ios > 0.0).map(|row| row.stall_ns / row.ios).collect()
            }
        }
    }
}

impl Row {
    fn ns(&self) -> f64 {
        (self.end_ns - self.from_ns) as f64
    }

    pub fn rate(&self) -> f64 {
        self.ios * 1e9 / self.ns()
    }
}

pub fn steady_state(case: &Case) -> Option<Finding> {
    let course = &case.course;
    if case.result.ios() == 0 || course.rows.is_empty() {
        return None;
    }
    let (what, drift) = (course.measure.name(), excursion(&course.values()));
    let steadiness = steady::of(course);
    let (weight, text, window) = match &steadiness {
        Steadiness::TooShort { rows } => {
            let text = format!(
                "Too short to tell whether the {what} is steady: {}, and the rule needs {STEADY_ROUNDS}.",
                words::counted(*rows as u64, "full row")
            );
            (Weight::Note, text, None)
        }
        // Without a value in every fifth there is nothing to compare.
        Steadiness::Unsteady(window) if !window.range.is_finite() => {
            let text = format!(
                "The {what} was not steady by SNIA's rule: in a fifth of the run, or more, nothing completed."
            );
            (Weight::Warning, text, None)
        }
        Steadiness::Unsteady(window) => {
            let text = format!(
                "The {what} was not steady by SNIA's rule: fifths of the run differ by {} ({} allowed), \
                 the fitted line moves {} ({} allowed); drift over the run {}.",
                words::share(window.range),
                words::share(STEADY_RANGE),
                words::change(window.excursion),
                words::share(STEADY_EXCURSION),
                words::change(drift),
            );
            (Weight::Warning, text, Some(window))
        }
        Steadiness::Steady(window) if window.first == course.rows[0].at => {
            let text = format!(
                "The {what} was steady from the start by SNIA's rule (range {}, line {}); drift over the run {}.",
                words::share(window.range),
                words::change(window.excursion),
                words::change(drift),
            );
            (Weight::Good, text, Some(window))
        }
        Steadiness::Steady(window) => {
            let text = format!(
                "The {what} was steady only from {} on by SNIA's rule{}, against {} over the whole run.",
                words::length(window.from_ns as f64),
                figures(case, window),
                match course.measure {
                    Measure::Rate => format!("{} IOPS", words::rate(case.result.iops())),
                    Measure::Latency => words::time(case.latency.mean_ns().unwrap_or(f64::NAN)),
                },
            );
            (Weight::Note, text, Some(window))
        }
    };
    let mut finding = Finding::new(FindingKind::SteadyState, weight, text).fact("drift", drift, "share");
    if let Some(window) = window {
        finding = finding.fact("range", window.range, "share").fact("excursion", window.excursion, "share");
    }
    if let Some(window) = steadiness.window() {
        let (tally, latencies) = case.result.part(window.first, window.last);
        let seconds = (window.until_ns - window.from_ns) as f64 / 1e9;
        finding = finding
            .fact("steady from", window.from_ns as f64, "ns")
            .fact("steady until", window.until_ns as f64, "ns")
            .fact("steady rate", tally.count as f64 / seconds, "1/s")
            .fact("steady throughput", tally.bytes as f64 / seconds / 1_048_576.0, "MiB/s")
            .fact("steady mean latency", tally.mean_ns().unwrap_or(f64::NAN), "ns");
        for rung in
            crate::ladder::LADDER.iter().filter(|rung| rung.percent >= 50.0 && rung.stands(&latencies))
        {
            let ns = latencies.percentile_ns(rung.percent).map_or(f64::NAN, |ns| ns as f64);
            finding = finding.fact(&format!("steady percentile {}", rung.name), ns, "ns");
        }
    }
    Some(match (&steadiness, weight) {
        (_, Weight::Good) => finding,
        (Steadiness::Steady(window), _) => finding.remedy(format!(
            "a warm-up of {} leaves out what came before",
            words::length(window.from_ns as f64)
        )),
        (Steadiness::TooShort { .. }, _) => finding.remedy("run longer"),
        (Steadiness::Unsteady(_), _) => finding.remedy(
            "run longer, after a warm-up; flash wants to be written over (twice its size, sequentially) first",
        ),
    })
}

/// ": there 8,100 IOPS, mean 246 us, 99 % within 480 us".
fn figures(case: &Case, window: &Window) -> String {
    let (tally, latencies) = case.result.part(window.first, window.last);
    let seconds = (window.until_ns - window.from_ns) as f64 / 1e9;
    let mut text = format!(": there {} IOPS", words::rate(tally.count as f64 / seconds));
    if let Some(mean) = tally.mean_ns().filter(|mean| *mean > 0.0) {
        text.push_str(&format!(", mean {}", words::time(mean)));
    }
    if let Some(ns) = latencies.percentile_ns(99.0).filter(|_| latencies.count() >= crate::limits::IOS_FOR_99)
    {
        text.push_str(&format!(", 99 % within {}", words::time(ns as f64)));
    }
    text
}

impl Measure {
    fn name(self) -> &'static str {
        match self {
            Measure::Rate => "rate",
            Measure::Latency => "latency",
        }
    }
}

pub fn cliffs(case: &Case) -> Option<Finding> {
    let found = cliffs_of(&case.course);
    let deepest = found.iter().max_by(|a, b| a.fall.total_cmp(&b.fall))?;
    let Cliff { at_ns, before, after, fall, bytes_before } = *deepest;
    let (name, write) = match case.course.measure {
        Measure::Rate => ("rate fell", (|value| format!("{} IOPS", words::rate(value))) as fn(f64) -> String),
        Measure::Latency => ("latency rose", words::time as fn(f64) -> String),
    };
    let others: Vec<String> = found
        .iter()
        .filter(|cliff| cliff.at_ns != at_ns)
        .map(|cliff| words::length(cliff.at_ns as f64))
        .collect();
    let more = if others.is_empty() { String::new() } else { format!("; also at {}", words::list(&others)) };
    let cause = if case.result.write.count > 0 { "a write cache was full, " } else { "" };
    let text = format!(
        "The {name} for good at {}, from {} to {}, after {}{more}: {cause}burst credits were used up or the device \
         throttled.",
        words::length(at_ns as f64),
        write(before),
        write(after),
        words::bytes(bytes_before as u64),
    );
    let mut finding = Finding::new(FindingKind::Cliff, Weight::Warning, text)
        .fact("fall", fall, "share")
        .fact("bytes moved before", bytes_before, "B")
        .remedy("warm up beyond it: what comes after is what lasts");
    for cliff in &found {
        finding = finding.fact("at", cliff.at_ns as f64, "ns");
    }
    Some(finding)
}

pub fn stalls(case: &Case) -> Option<Finding> {
    let rows = &case.course.rows;
    let mean_ios = rows.iter().map(|row| row.ios).sum::<f64>() / rows.len() as f64;
    if case.result.workload.burst.is_some() || mean_ios.is_nan() || mean_ios < STALL_IOS {
        return None;
    }
    let empty: Vec<_> = rows.iter().filter(|row| row.ios == 0.0).collect();
    let first = empty.first()?;
    let text = format!(
        "Nothing completed in {} of {} rows, the first at {}: the storage, or the machine, stood still.",
        empty.len(),
        rows.len(),
        words::length(first.from_ns as f64)
    );
    let finding = Finding::new(FindingKind::Stalls, Weight::Warning, text)
        .fact("empty rows", empty.len() as f64, "rows")
        .fact("first", first.from_ns as f64, "ns")
        .remedy("look at the kernel's log and at the neighbours of that time; an open loop shows what users would have waited");
    Some(finding)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::tests::{finding, of_rates, weight};

    #[test]
    fn a_run_says_from_when_it_was_steady_and_what_it_gave_then() {
        let mut rates = vec![90_000, 70_000, 40_000, 20_000];
        rates.extend([10_000; 40]);
        let found = finding(&of_rates(&rates), FindingKind::SteadyState).unwrap();
        assert_eq!(found.weight, Weight::Note);
        assert!(
            found.text.contains("steady only from 4 s on") && found.text.contains("there 10,000 IOPS"),
            "{}",
            found.text
        );
        assert_eq!(weight(&of_rates(&[10_000; 40]), FindingKind::SteadyState), Some(Weight::Good));
        assert_eq!(weight(&of_rates(&[10_000; 4]), FindingKind::SteadyState), Some(Weight::Note));
        let swinging: Vec<u64> = (0..40).map(|at| 1000 + 50 * at).collect();
        assert_eq!(weight(&of_rates(&swinging), FindingKind::SteadyState), Some(Weight::Warning));
    }

    #[test]
    fn a_fifth_in_which_nothing_completed_is_said_instead_of_figures() {
        let mut stalled = of_rates(&[500, 500, 500, 0, 1_000]);
        stalled.workload.arrival = workload::Arrival::Constant { iops: 500.0 };
        let found = finding(&stalled, FindingKind::SteadyState).unwrap();
        assert_eq!(found.weight, Weight::Warning);
        assert!(found.text.ends_with("in a fifth of the run, or more, nothing completed."), "{}", found.text);
        assert!(found.facts.iter().all(|fact| fact.value.is_finite()), "{:?}", found.facts);
    }

    #[test]
    fn the_drift_is_that_of_the_line_over_the_whole_run() {
        let rising: Vec<u64> = (0..41).map(|at| 10_000 + 20 * at).collect();
        let found = finding(&of_rates(&rising), FindingKind::SteadyState).unwrap();
        assert!(found.text.contains("drift over the run +7.7 %"), "{}", found.text);
    }

    #[test]
    fn a_lasting_fall_is_a_cliff_with_its_time_and_bytes() {
        let rates: Vec<u64> = (0..60).map(|at| if at < 20 { 9_000 } else { 2_000 }).collect();
        let found = finding(&of_rates(&rates), FindingKind::Cliff).unwrap();
        assert!(found.text.contains("at 20 s, from 9,000 IOPS to 2,000 IOPS"), "{}", found.text);
        assert!(found.text.contains("1.4 GiB"), "{}", found.text);
        assert_eq!(finding(&of_rates(&[9_000; 60]), FindingKind::Cliff), None);
    }

    #[test]
    fn an_empty_row_is_a_stall_only_where_ios_were_to_be_expected() {
        let with = |rate: u64| {
            let mut rates = [rate; 20];
            rates[7] = 0;
            weight(&of_rates(&rates), FindingKind::Stalls)
        };
        assert_eq!(with(1_000), Some(Weight::Warning));
        assert_eq!(with(3), None);
        assert_eq!(weight(&of_rates(&[1_000; 20]), FindingKind::Stalls), None);
    }
}
