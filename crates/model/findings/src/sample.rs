//! Is the sample long enough for the nines: a percentile stands on ten I/Os above it, or it is little more
//! than the maximum.

use crate::case::Case;
use crate::ladder::{LADDER, Rung, last_that_stands};
use crate::{Finding, FindingKind, Weight, words};
use statistics::{IOS_MIN, supports_percentile};
use workload::Unit;

/// Number of percentiles predicted of those that do not stand yet.
const PREDICTED: usize = 2;

pub fn percentiles(case: &Case) -> Option<Finding> {
    if case.result.ios() < IOS_MIN {
        return None;
    }
    // The direction with the fewest I/Os decides: its column is the first to run out.
    let (name, latency) = case.latencies().min_by_key(|(_, latency)| latency.count())?;
    let count = latency.count();
    if !latency.has_percentiles() {
        let text =
            format!("The result carries no percentiles of its {name} latencies: they cannot be checked.");
        return Some(Finding::new(FindingKind::Percentiles, Weight::Note, text));
    }
    let last = last_that_stands(count);
    let next: Vec<&Rung> = LADDER.iter().filter(|rung| !rung.stands(count)).take(PREDICTED).collect();
    let needed_ns = |rung: &Rung| case.result.elapsed_ns as f64 * rung.ios_needed as f64 / count as f64;
    let weight = match count {
        _ if !supports_percentile(count, 99.0) => Weight::Warning,
        _ if !supports_percentile(count, 99.9) => Weight::Note,
        _ => Weight::Good,
    };
    let predicted: Vec<String> =
        next.iter().map(|rung| format!("{} for {} %", words::length(needed_ns(rung)), rung.name)).collect();
    let stands =
        last.map_or("no percentile stands".into(), |rung| format!("percentiles stand up to {} %", rung.name));
    let after = if predicted.is_empty() {
        String::new()
    } else {
        format!("; at this rate a run would take {}", words::list(&predicted))
    };
    let text = format!("{}: {stands}{after}.", words::counted(count, name));
    let mut finding = Finding::new(FindingKind::Percentiles, weight, text)
        .fact("I/Os of the rarer direction", count as f64, Unit::Ios)
        .fact("last percentile that stands", last.map_or(f64::NAN, |rung| rung.percent), Unit::Percent);
    for rung in next {
        finding = finding.fact(&format!("run needed for {} %", rung.name), needed_ns(rung), Unit::Ns);
    }
    Some(if weight == Weight::Good { finding } else { finding.remedy("run longer") })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::tests::{direction, finding, plain, weight};
    use workload::{LatencyHistogram, RunResult};

    fn with(reads: u64) -> RunResult {
        RunResult { read: direction(reads, 100_000, 200_000), ..plain() }
    }

    #[test]
    fn the_last_percentile_that_stands_and_the_time_for_the_next_are_named() {
        let text = finding(&with(90_000), FindingKind::Percentiles).unwrap().text;
        assert_eq!(
            text,
            "90,000 reads: percentiles stand up to 99.9 %; at this rate a run would take 11 s for 99.99 % and 111 s for 99.999 %."
        );
    }

    #[test]
    fn the_rarer_direction_decides() {
        let run = RunResult { write: direction(999, 100_000, 200_000), ..with(90_000) };
        let found = finding(&run, FindingKind::Percentiles).unwrap();
        assert!(found.text.starts_with("999 writes: percentiles stand up to 95 %"), "{}", found.text);
    }

    #[test]
    fn weights_follow_the_count() {
        let weigh = |reads| weight(&with(reads), FindingKind::Percentiles);
        assert_eq!([weigh(99), weigh(999), weigh(1_000)], [None, Some(Weight::Warning), Some(Weight::Note)]);
        assert_eq!([weigh(9_999), weigh(10_000)], [Some(Weight::Note), Some(Weight::Good)]);
        let mut imported = plain();
        imported.read.latency = LatencyHistogram::new();
        assert_eq!(weight(&imported, FindingKind::Percentiles), Some(Weight::Note));
    }
}
