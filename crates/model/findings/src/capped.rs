//! A limit set from outside: a cgroup, a hypervisor, a cloud volume.
//!
//! Storage that serves I/Os gives a rate that varies as the times of its I/Os do: with n I/Os a row and a
//! coefficient of variation c, by about c / sqrt(n). A meter counts them out, so its rate varies less; and a
//! token bucket lets some pass at once and holds the others until the next refill (two groups of latency with
//! nothing between).

use crate::case::Case;
use crate::limits::{FLAT_OF_CHANCE, FLAT_ROWS};
use crate::run_series::Measure;
use crate::{Finding, FindingKind, Weight, steady, words};
use capability::{METERED_SPREAD_MAX, humps};
use statistics::{mean, squared_deviations};
use workload::Unit;

pub fn capped(case: &Case) -> Option<Finding> {
    if case.is_held_back() || case.is_cpu_bound() || case.series.measure != Measure::Rate {
        return None;
    }
    let steadiness = steady::classify(&case.series);
    let window = steadiness.window()?;
    let rows: Vec<_> = case.series.rows.iter().filter(|row| row.at >= window.first).collect();
    if rows.len() < FLAT_ROWS {
        return None;
    }
    let rates: Vec<f64> = rows.iter().map(|row| row.rate()).collect();
    let mean = mean(&rates);
    let most = rates.iter().copied().fold(f64::MIN, f64::max);
    let least = rates.iter().copied().fold(f64::MAX, f64::min);
    let range = (most - least) / mean;
    let deviation = (squared_deviations(&rates) / rates.len() as f64).sqrt() / mean;
    let ios_a_row = rows.iter().map(|row| row.ios).sum::<f64>() / rows.len() as f64;
    let variation = case.latency.deviation_ns()? / case.latency.mean_ns()?;
    let chance = variation / ios_a_row.sqrt();
    let humps = case.directions().filter_map(|(_, direction)| humps(&direction.latency)).next();
    if range.is_nan()
        || range > METERED_SPREAD_MAX
        || (humps.is_none() && deviation >= FLAT_OF_CHANCE * chance)
    {
        return None;
    }
    let flat = format!(
        "{} IOPS ({} MiB/s), flat {}",
        words::rate(mean),
        words::rate(case.result.mib_per_s()),
        words::within(range)
    );
    let remedy = "look for io.max of a cgroup, the volume's provisioned limit, or the machine's own; compare it with this rate";
    let (weight, text) = match humps {
        Some(humps) => {
            let text = format!(
                "Capped: {flat}, and latencies in two groups with nothing between ({} up to {}, {} from {}), as a token bucket gives.",
                words::share(1.0 - humps.slow_share),
                words::time(humps.fast_ns),
                words::share(humps.slow_share),
                words::time(humps.slow_ns),
            );
            (Weight::Warning, text)
        }
        None => {
            let text = format!(
                "{flat}: evener than I/Os of such differing latencies are by chance, as under a cap."
            );
            (Weight::Note, text)
        }
    };
    let finding = Finding::new(FindingKind::Capped, weight, text)
        .fact("plateau", mean, Unit::PerSecond)
        .fact("range of its rows", range, Unit::Share)
        .fact("deviation of its rows", deviation, Unit::Share)
        .fact("deviation that chance gives", chance, Unit::Share);
    Some(finding.remedy(remedy))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::tests::{direction, of_rates, weight};
    use ::workload::RunResult;

    fn bucket(rates: &[u64]) -> RunResult {
        let mut run = of_rates(rates);
        let ios: u64 = rates.iter().sum();
        run.read = direction(ios / 10 * 9, 80_000, 120_000);
        run.read.merge(&direction(ios - ios / 10 * 9, 9_000_000, 9_900_000));
        run
    }

    #[test]
    fn a_flat_plateau_of_two_groups_of_latency_is_a_cap() {
        assert_eq!(weight(&bucket(&[2_000; 20]), FindingKind::Capped), Some(Weight::Warning));
        let uneven: Vec<u64> = (0..20).map(|at| 2_000 + 20 * (at % 3)).collect();
        assert_eq!(weight(&bucket(&uneven), FindingKind::Capped), None, "2 % between the rows");
    }

    #[test]
    fn a_rate_evener_than_chance_is_noted_and_one_as_even_as_chance_is_not() {
        let latencies = |rates: &[u64]| {
            let mut run = of_rates(rates);
            run.read = direction(rates.iter().sum(), 10_000, 1_000_000);
            weight(&run, FindingKind::Capped)
        };
        // Latencies of 10 us to 1 ms: by chance 0.57 / sqrt(2,000) = 1.3 % from row to row.
        assert_eq!(latencies(&[2_000; 20]), Some(Weight::Note));
        // 50,000 a row: 0.25 %.
        let even: Vec<u64> = (0..20).map(|at| 50_000 + 200 * (at % 3)).collect();
        assert_eq!(latencies(&even), None);
    }

    #[test]
    fn nothing_is_said_of_a_rate_that_was_asked_for() {
        let mut run = bucket(&[2_000; 20]);
        run.workload.limit.iops = Some(2_000.0);
        assert_eq!(weight(&run, FindingKind::Capped), None);
    }
}
