//! The run row by row: steady state, drift, cliffs, stalls.

use crate::case::Case;
use crate::cliffs::{Cliff, find_cliffs};
use crate::ladder::LADDER;
use crate::limits::STALL_IOS;
use crate::run_series::Measure;
use crate::steady::{self, Steadiness, Window};
use crate::{Finding, FindingKind, Weight, words};
use statistics::steady::{EXCURSION_MAX, RANGE_MAX, ROUNDS, excursion};
use statistics::supports_percentile;
use workload::Unit;

/// Whether the run was steady, and what its steady part gave.
pub fn steady_state(case: &Case) -> Option<Finding> {
    let series = &case.series;
    if case.result.ios() == 0 || series.rows.is_empty() {
        return None;
    }
    let drift = excursion(&series.values());
    let steadiness = steady::classify(series);
    let (weight, text) = describe(case, &steadiness, drift);
    let mut finding = Finding::new(FindingKind::SteadyState, weight, text).fact("drift", drift, Unit::Share);
    if let Steadiness::Steady(window) | Steadiness::Unsteady(window) = &steadiness
        && window.range.is_finite()
    {
        finding =
            finding.fact("range", window.range, Unit::Share).fact("excursion", window.excursion, Unit::Share);
    }
    if let Some(window) = steadiness.window() {
        finding = with_steady_figures(finding, case, window);
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

fn describe(case: &Case, steadiness: &Steadiness, drift: f64) -> (Weight, String) {
    let series = &case.series;
    let what = series.measure.name();
    match steadiness {
        Steadiness::TooShort { rows } => {
            let text = format!(
                "Too short to tell whether the {what} is steady: {}, and the rule needs {ROUNDS}.",
                words::counted(*rows as u64, "full row")
            );
            (Weight::Note, text)
        }
        // Without a value in every fifth there is nothing to compare.
        Steadiness::Unsteady(window) if !window.range.is_finite() => {
            let text = format!(
                "The {what} was not steady by SNIA's rule: in a fifth of the run, or more, nothing completed."
            );
            (Weight::Warning, text)
        }
        Steadiness::Unsteady(window) => {
            let text = format!(
                "The {what} was not steady by SNIA's rule: fifths of the run differ by {} ({} allowed), \
                 the fitted line moves {} ({} allowed); drift over the run {}.",
                words::share(window.range),
                words::share(RANGE_MAX),
                words::change(window.excursion),
                words::share(EXCURSION_MAX),
                words::change(drift),
            );
            (Weight::Warning, text)
        }
        Steadiness::Steady(window) if window.first == series.rows[0].at => {
            let text = format!(
                "The {what} was steady from the start by SNIA's rule (range {}, line {}); drift over the run {}.",
                words::share(window.range),
                words::change(window.excursion),
                words::change(drift),
            );
            (Weight::Good, text)
        }
        Steadiness::Steady(window) => {
            let text = format!(
                "The {what} was steady only from {} on by SNIA's rule{}, against {} over the whole run.",
                words::length(window.from_ns as f64),
                figures(case, window),
                match series.measure {
                    Measure::Rate => format!("{} IOPS", words::rate(case.result.iops())),
                    Measure::Latency => words::time(case.latency.mean_ns().unwrap_or(f64::NAN)),
                },
            );
            (Weight::Note, text)
        }
    }
}

fn with_steady_figures(finding: Finding, case: &Case, window: &Window) -> Finding {
    let (tally, latencies) = case.result.part(window.first, window.last);
    let seconds = (window.until_ns - window.from_ns) as f64 / 1e9;
    let mut finding = finding
        .fact("steady from", window.from_ns as f64, Unit::Ns)
        .fact("steady until", window.until_ns as f64, Unit::Ns)
        .fact("steady rate", tally.count as f64 / seconds, Unit::PerSecond)
        .fact("steady throughput", tally.bytes as f64 / seconds / 1_048_576.0, Unit::MibPerSecond)
        .fact("steady mean latency", tally.mean_ns().unwrap_or(f64::NAN), Unit::Ns);
    for rung in LADDER.iter().filter(|rung| rung.percent >= 50.0 && rung.stands(latencies.count())) {
        let ns = latencies.percentile_ns(rung.percent).map_or(f64::NAN, |ns| ns as f64);
        finding = finding.fact(&format!("steady percentile {}", rung.name), ns, Unit::Ns);
    }
    finding
}

/// ": there 8,100 IOPS, mean 246 us, 99 % within 480 us".
fn figures(case: &Case, window: &Window) -> String {
    let (tally, latencies) = case.result.part(window.first, window.last);
    let seconds = (window.until_ns - window.from_ns) as f64 / 1e9;
    let mut text = format!(": there {} IOPS", words::rate(tally.count as f64 / seconds));
    if let Some(mean) = tally.mean_ns().filter(|mean| *mean > 0.0) {
        text.push_str(&format!(", mean {}", words::time(mean)));
    }
    if let Some(ns) = latencies.percentile_ns(99.0).filter(|_| supports_percentile(latencies.count(), 99.0)) {
        text.push_str(&format!(", 99 % within {}", words::time(ns as f64)));
    }
    text
}

pub fn cliffs(case: &Case) -> Option<Finding> {
    let found = find_cliffs(&case.series);
    let deepest = found.iter().max_by(|a, b| a.fall.total_cmp(&b.fall))?;
    let Cliff { at_ns, before, after, fall, bytes_before } = *deepest;
    let (name, write) = match case.series.measure {
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
        .fact("fall", fall, Unit::Share)
        .fact("bytes moved before", bytes_before, Unit::Bytes)
        .remedy("warm up beyond it: what comes after is what lasts");
    for cliff in &found {
        finding = finding.fact("at", cliff.at_ns as f64, Unit::Ns);
    }
    Some(finding)
}

pub fn stalls(case: &Case) -> Option<Finding> {
    let rows = &case.series.rows;
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
        .fact("empty rows", empty.len() as f64, Unit::Rows)
        .fact("first", first.from_ns as f64, Unit::Ns)
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
