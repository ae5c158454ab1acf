//! Open loops: whether the rate was reached, whether users waited longer than the storage took, and why.

use crate::case::Case;
use crate::ladder::LADDER;
use crate::limits::{
    CHANCE_DEVIATIONS, LATE_EXPLAINS, LATE_PERCENT, RATE_SHORT, RESPONSE_EXTRA, RESPONSE_RATIO,
};
use crate::{Finding, FindingKind, Weight, words};
use statistics::IOS_MIN;
use workload::{Arrival, LatencyHistogram, Unit};

/// Reads and writes together, from their intended start; `None` of few, and of runs without latencies.
fn waited(case: &Case) -> Option<LatencyHistogram> {
    let both = case.result.response.as_ref()?.total();
    (both.count() >= IOS_MIN && case.has_latencies()).then_some(both)
}

pub fn rate(case: &Case) -> Option<Finding> {
    let (asked, result) = (case.requested_iops().filter(|iops| *iops > 0.0)?, case.result);
    let expected = asked * result.elapsed_s();
    if !expected.is_finite() || expected <= 0.0 {
        return None;
    }
    let (waiting, waited_ns) =
        result.response.as_ref().map_or((0, 0), |each| (each.waiting, each.waiting_ns_max));
    let reached = result.iops() / asked;
    let chance = match result.workload.arrival {
        Arrival::Poisson { .. } => CHANCE_DEVIATIONS / expected.sqrt(),
        _ => 1.0 / expected,
    };
    // All that may be outstanding is, and more have come: a queue that only the end of the run kept short.
    let queue = waiting > u64::from(result.outstanding_requested());
    let new = |weight, text: String| {
        Finding::new(FindingKind::ArrivalRate, weight, text)
            .fact("requested", asked, Unit::PerSecond)
            .fact("reached", result.iops(), Unit::PerSecond)
            .fact("waiting at the end", waiting as f64, Unit::Ios)
            .fact("longest wait of those", waited_ns as f64, Unit::Ns)
    };
    let end = match waiting {
        0 => String::new(),
        _ => format!(
            "; {} waited at the end, up to {}",
            words::counted(waiting, "I/O"),
            words::time(waited_ns as f64)
        ),
    };
    let rates = format!("{} of the {} IOPS requested", words::rate(result.iops()), words::rate(asked));
    Some(if reached < 1.0 - RATE_SHORT - chance || queue {
        let text = format!(
            "The storage did not keep up: {rates}{end}. The queue grows with the run, and the response times with it."
        );
        new(Weight::Warning, text)
            .remedy("ask for less than the closed loop gives; response times then mean something")
    } else if reached > 1.0 + RATE_SHORT + chance {
        let text =
            format!("More came than was requested: {rates}{end}; a backlog from before was worked off.");
        new(Weight::Note, text).remedy("let the warm-up end without a queue")
    } else {
        new(Weight::Good, format!("The rate was reached: {rates}{end}."))
    })
}

/// Of the percentiles from the median on, the lowest at which the generator's own delay may explain why users
/// waited longer than the storage took.
pub fn late_generator(case: &Case) -> Option<Finding> {
    let waited = waited(case)?;
    let late_ns = case.result.response.as_ref()?.late_ns_max as f64;
    let standing = LADDER.iter().filter(|rung| rung.percent >= 50.0 && rung.stands(waited.count()));
    let suspect = standing.clone().find(|rung| {
        let service = case.latency.percentile_ns(rung.percent).unwrap_or(0) as f64;
        let extra = waited.percentile_ns(rung.percent).unwrap_or(0) as f64 - service;
        extra > RESPONSE_EXTRA * service && late_ns >= LATE_EXPLAINS * extra
    });
    let new = |weight, text: String| {
        Finding::new(FindingKind::GeneratorLate, weight, text)
            .fact("longest delay of the generator", late_ns, Unit::Ns)
            .fact(
                "lowest percentile that may be the generator's own",
                suspect.map_or(f64::NAN, |rung| rung.percent),
                Unit::Percent,
            )
    };
    let late = words::time(late_ns);
    let remedy = "use more threads, keep their cores free of other work, or ask for a lower rate";
    Some(match suspect {
        None => new(
            Weight::Good,
            format!("The generator kept its schedule: at most {late} late by its own doing."),
        ),
        Some(rung) if rung.percent > LATE_PERCENT => {
            let text = format!(
                "The generator was up to {late} late by its own doing: from {} % on, response times may be its own.",
                rung.name
            );
            new(Weight::Note, text).remedy(remedy)
        }
        Some(rung) => {
            let text = format!(
                "Not valid: the generator was up to {late} late by its own doing, and already at {} % that may be what users waited for.",
                rung.name
            );
            new(Weight::Warning, text).remedy(remedy)
        }
    })
}

pub fn response(case: &Case) -> Option<Finding> {
    let waited = waited(case)?;
    let ratio_at = |percent: f64| {
        let (user, storage) =
            (waited.percentile_ns(percent)? as f64, case.latency.percentile_ns(percent)? as f64);
        Some((user, storage, user / storage.max(1.0)))
    };
    // Where it is worst among those that stand.
    let rows = LADDER.iter().filter(|rung| {
        rung.percent >= 50.0 && rung.stands(waited.count()) && rung.stands(case.latency.count())
    });
    let (rung, (user, storage, ratio)) = rows
        .filter_map(|rung| Some((rung, ratio_at(rung.percent)?)))
        .max_by(|a, b| a.1.2.total_cmp(&b.1.2))?;
    let new = |weight, text: String| {
        Finding::new(FindingKind::Response, weight, text)
            .fact("percentile", rung.percent, Unit::Percent)
            .fact("response", user, Unit::Ns)
            .fact("service", storage, Unit::Ns)
            .fact("ratio", ratio, Unit::Times)
    };
    let (name, user, storage) = (rung.name, words::time(user), words::time(storage));
    Some(if ratio >= RESPONSE_RATIO {
        let text = format!(
            "Users waited {user} at {name} %, where the storage took {storage}: stalls made the I/Os behind them wait, \
             which a closed loop hides."
        );
        new(Weight::Warning, text)
            .remedy("promise the response times, not the storage's; look for the stalls over time")
    } else {
        new(
            Weight::Good,
            format!(
                "Users waited little longer than the storage took: {user} against {storage} at {name} %."
            ),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::tests::{direction, finding, plain, weight};
    use workload::{Direction, Response, RunResult};

    /// 20,000 IOPS of 150 to 250 us, as requested by `arrival`.
    fn open(arrival: Arrival, response: &Direction, late_ns_max: u64) -> RunResult {
        let mut run = plain();
        run.workload.arrival = arrival;
        run.workload.outstanding = 64;
        run.response = Some(Response { read: response.latency.clone(), late_ns_max, ..Response::default() });
        run
    }

    const ASKED: Arrival = Arrival::Constant { iops: 20_000.0 };

    fn prompt() -> Direction {
        direction(200_000, 152_000, 255_000)
    }

    #[test]
    fn a_rate_missed_by_more_than_two_percent_is_not_reached() {
        let asked = |iops| weight(&open(Arrival::Constant { iops }, &prompt(), 0), FindingKind::ArrivalRate);
        assert_eq!([asked(20_300.0), asked(20_500.0)], [Some(Weight::Good), Some(Weight::Warning)]);
        assert_eq!(asked(19_000.0), Some(Weight::Note));
        assert_eq!(weight(&plain(), FindingKind::ArrivalRate), None);
    }

    #[test]
    fn poisson_arrivals_may_deviate_by_chance() {
        let few = |arrival| {
            let mut run = open(arrival, &prompt(), 0);
            run.read = direction(950, 100_000, 200_000);
            weight(&run, FindingKind::ArrivalRate)
        };
        assert_eq!(few(Arrival::Poisson { iops: 100.0 }), Some(Weight::Good));
        assert_eq!(few(Arrival::Constant { iops: 100.0 }), Some(Weight::Warning));
    }

    #[test]
    fn more_waiting_at_the_end_than_may_be_outstanding_is_a_queue() {
        let with = |waiting| {
            let mut run = open(ASKED, &prompt(), 0);
            run.response.as_mut().unwrap().waiting = waiting;
            weight(&run, FindingKind::ArrivalRate)
        };
        assert_eq!([with(128), with(129)], [Some(Weight::Good), Some(Weight::Warning)]);
    }

    #[test]
    fn a_stall_that_a_closed_loop_hides_is_reported() {
        let mut stalled = direction(190_000, 152_000, 255_000);
        stalled.merge(&direction(10_000, 1_000_000, 500_000_000));
        let found = finding(&open(ASKED, &stalled, 20_000), FindingKind::Response).unwrap();
        assert_eq!(found.weight, Weight::Warning);
        assert!(found.text.contains("at 99.99 %"), "{}", found.text);
        assert_eq!(weight(&open(ASKED, &prompt(), 0), FindingKind::Response), Some(Weight::Good));
    }

    #[test]
    fn a_generator_that_is_late_all_the_time_makes_the_result_invalid() {
        let delayed = direction(200_000, 250_000, 350_000);
        let found = finding(&open(ASKED, &delayed, 120_000), FindingKind::GeneratorLate).unwrap();
        assert!(found.invalidates() && found.text.starts_with("Not valid"), "{}", found.text);
        // This response time is not explained by the generator's delay: a queue before the storage.
        assert_eq!(weight(&open(ASKED, &delayed, 10_000), FindingKind::GeneratorLate), Some(Weight::Good));
    }

    #[test]
    fn a_generator_that_is_late_once_puts_only_the_last_percentiles_in_doubt() {
        let mut late = direction(199_500, 152_000, 255_000);
        late.merge(&direction(500, 1_000_000, 2_000_000));
        let found = finding(&open(ASKED, &late, 2_000_000), FindingKind::GeneratorLate).unwrap();
        assert_eq!(found.weight, Weight::Note);
        assert!(found.text.contains("from 99.9 % on"), "{}", found.text);
        assert_eq!(
            weight(&open(ASKED, &prompt(), 2_000_000), FindingKind::GeneratorLate),
            Some(Weight::Good),
            "no response was delayed"
        );
    }
}
