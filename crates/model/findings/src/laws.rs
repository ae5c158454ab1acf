//! Do the figures hold together: Little's law, bytes against I/Os, the run against a measured knee.

use crate::case::Case;
use crate::limits::{
    BYTES_DIFFER, CHANCE_DEVIATIONS, KNEE_BEYOND, KNEE_REACHED, OUTSTANDING_OVER, OUTSTANDING_REACHED,
};
use crate::{Finding, FindingKind, Weight, words};
use capability::{KneeReason, OTHER_STORAGE_RATIO};
use workload::{Unit, format_count};

/// N = X x R holds in any stable system (Little 1961); what is requested and what is reached need not agree.
pub fn outstanding(case: &Case) -> Option<Finding> {
    let result = case.result;
    let requested = f64::from(result.outstanding_requested());
    let mean_ns = case.latency.mean_ns()?;
    if !case.has_latencies() || result.elapsed_ns == 0 || requested == 0.0 {
        return None;
    }
    let reached = result.outstanding();
    let share = reached / requested;
    let law = format!(
        "{} IOPS x {} = {} outstanding",
        words::rate(result.iops()),
        words::time(mean_ns),
        words::rate(reached)
    );
    let (weight, text, remedy) = if result.workload.is_open_loop() {
        outstanding_of_open_loop(&law, share, requested)
    } else {
        outstanding_of_closed_loop(case, &law, share, requested)
    };
    let finding = Finding::new(FindingKind::Outstanding, weight, text)
        .fact("outstanding reached", reached, Unit::Ios)
        .fact("outstanding requested", requested, Unit::Ios)
        .fact("rate", result.iops(), Unit::PerSecond)
        .fact("mean latency", mean_ns, Unit::Ns);
    Some(match remedy {
        Some(remedy) => finding.remedy(remedy),
        None => finding,
    })
}

/// Weight, sentence and remedy.
type Outcome = (Weight, String, Option<&'static str>);

fn outstanding_of_open_loop(law: &str, share: f64, requested: f64) -> Outcome {
    let allowed = words::rate(requested);
    if share < OUTSTANDING_REACHED {
        return (Weight::Good, format!("{law}, of {allowed} allowed."), None);
    }
    let text = format!("{law}, all of the {allowed} allowed: I/Os waited for their turn in the generator.");
    (Weight::Warning, text, Some("allow more outstanding I/Os, or ask for a lower rate"))
}

fn outstanding_of_closed_loop(case: &Case, law: &str, share: f64, requested: f64) -> Outcome {
    let (result, workload) = (case.result, &case.result.workload);
    let requested = words::rate(requested);
    if share > OUTSTANDING_OVER {
        let text = format!(
            "{law}, more than the {requested} requested: I/Os that began before the measured time weigh too much in it."
        );
        (Weight::Note, text, Some("run for many times the longest latency"))
    } else if result.shares_outstanding() {
        (Weight::Good, format!("{law}, of the {requested} that all workloads shared."), None)
    } else if share >= OUTSTANDING_REACHED {
        let size = result.mib_per_s() * 1_048_576.0 / result.iops();
        let bytes = words::bytes(size.max(0.0).round() as u64);
        let text = format!(
            "The laws hold: {law} of {requested} requested, and x {bytes} = {} MiB/s.",
            words::rate(result.mib_per_s())
        );
        (Weight::Good, text, None)
    } else if case.is_held_back() {
        let why = [
            (case.is_paced(), "the limit"),
            (workload.burst.is_some(), "rests between bursts"),
            (workload.sync.is_some(), "syncs"),
        ];
        let why: Vec<String> = why.iter().filter(|(held, _)| *held).map(|(_, why)| (*why).into()).collect();
        // Rests and syncs are many.
        let keep = if case.is_paced() && why.len() == 1 { "keeps" } else { "keep" };
        let text = format!("{law} of {requested} requested: {} {keep} I/Os back.", words::list(&why));
        (Weight::Good, text, None)
    } else {
        let text = format!(
            "{law}, only {} of the {requested} requested: the client, or the kernel before the storage, did not keep it.",
            words::share(share)
        );
        let remedy = "give each thread fewer outstanding I/Os and use more threads; see its CPU use";
        (Weight::Warning, text, Some(remedy))
    }
}

/// Bytes = I/Os x size.
pub fn transfer_size(case: &Case) -> Option<Finding> {
    let (result, workload) = (case.result, &case.result.workload);
    if result.ios() == 0 || !case.has_known_shape() {
        return None;
    }
    let requested = workload.mean_block_bytes();
    let bytes = result.read.bytes.saturating_add(result.write.bytes) as f64;
    let moved = bytes / result.ios() as f64;
    // A mix of sizes is left to chance.
    let variance = workload
        .sizes
        .iter()
        .map(|size| f64::from(size.percent) / 100.0 * (f64::from(size.block_bytes) - requested).powi(2))
        .sum::<f64>();
    let chance = CHANCE_DEVIATIONS * (variance / result.ios() as f64).sqrt() / requested;
    let off = moved / requested - 1.0;
    if !off.is_finite() || off.abs() <= BYTES_DIFFER + chance {
        return None;
    }
    let text = format!(
        "{} I/Os moved {} each, {} of the {} requested: {}.",
        format_count(result.ios()),
        words::bytes(moved.round() as u64),
        words::share(moved / requested),
        words::bytes(requested.round() as u64),
        if off < 0.0 { "transfers were cut short" } else { "larger ones were among them" }
    );
    Some(
        Finding::new(FindingKind::TransferSize, Weight::Warning, text)
            .fact("moved by an I/O", moved, Unit::Bytes)
            .fact("requested", requested, Unit::Bytes)
            .remedy("look at the end of the target, and at how the tool counts"),
    )
}

/// Where the run stands on the curve that was measured for such I/O.
pub fn knee(case: &Case) -> Option<Finding> {
    let knee = case.conditions.knee.as_ref()?;
    let (iops, reached) = (case.result.iops(), case.result.outstanding());
    let sound = knee.iops > 0.0 && knee.outstanding > 0.0 && iops > 0.0 && case.has_latencies();
    if !sound || !case.has_known_shape() {
        return None;
    }
    let new = |weight, text: String| {
        Finding::new(FindingKind::Knee, weight, text)
            .fact("rate of the measured knee", knee.iops, Unit::PerSecond)
            .fact("outstanding at the measured knee", knee.outstanding, Unit::Ios)
            .fact("share of the measured rate", iops / knee.iops, Unit::Share)
    };
    let measured = format!("{} IOPS", words::rate(knee.iops));
    if iops > OTHER_STORAGE_RATIO * knee.iops && knee.reason != KneeReason::NotReached {
        let text = format!(
            "{} x the {measured} measured of this storage: it is another one, or a cache.",
            words::rate(iops / knee.iops)
        );
        return Some(new(Weight::Warning, text).remedy("measure its capability again"));
    }
    if knee.reason == KneeReason::NotReached {
        return None;
    }
    let full = reached >= f64::from(knee.outstanding_full);
    if full && iops < KNEE_REACHED * knee.iops {
        let text = format!(
            "Only {} of the {measured} that it gave at full load when it was measured.",
            words::share(iops / knee.iops)
        );
        return Some(
            new(Weight::Warning, text)
                .remedy("look for others on the storage, then measure its capability again"),
        );
    }
    // The knee is where latency begins to grow with N; the rate may still grow up to the point of full rate.
    let full_at = f64::from(knee.outstanding_full);
    if reached > KNEE_BEYOND * knee.high.max(knee.outstanding) && reached > full_at {
        let text = format!(
            "{} outstanding, where {} gave 95 % of the highest measured rate (knee at {}).",
            words::rate(reached),
            words::rate(full_at),
            words::rate(knee.outstanding)
        );
        let remedy = format!(
            "with {} outstanding, expect 95 % of that rate or more at less latency",
            words::rate(full_at)
        );
        return Some(new(Weight::Note, text).remedy(remedy));
    }
    let text = format!(
        "{} of the {measured} measured of this storage, {} outstanding with its knee at {}.",
        words::share(iops / knee.iops),
        words::rate(reached),
        words::rate(knee.outstanding)
    );
    Some(new(Weight::Good, text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RunConditions;
    use crate::case::tests::{direction, find, finding, plain, weight};
    use ::workload::{Arrival, Limit, Pool, RunResult, SizeShare};
    use capability::Knee;

    /// 20,000 IOPS of that latency in ten seconds, four outstanding requested.
    fn run_of(latency_ns: u64) -> RunResult {
        RunResult { read: direction(200_000, latency_ns, latency_ns), ..plain() }
    }

    #[test]
    fn outstanding_reached_is_compared_with_requested() {
        assert_eq!(weight(&run_of(199_000), FindingKind::Outstanding), Some(Weight::Good));
        assert_eq!(weight(&run_of(179_000), FindingKind::Outstanding), Some(Weight::Warning));
        assert_eq!(weight(&run_of(221_000), FindingKind::Outstanding), Some(Weight::Note));
        let text = finding(&run_of(200_000), FindingKind::Outstanding).unwrap().text;
        assert_eq!(
            text,
            "The laws hold: 20,000 IOPS x 200 us = 4 outstanding of 4 requested, and x 8 KiB = 156 MiB/s."
        );
    }

    #[test]
    fn a_limit_explains_fewer_and_an_open_loop_has_none_to_keep() {
        let mut run = run_of(50_000);
        run.workload.limit = Limit { iops: Some(20_000.0), bytes_per_s: None };
        assert_eq!(weight(&run, FindingKind::Outstanding), Some(Weight::Good));
        let open = |latency_ns| {
            let mut run = run_of(latency_ns);
            run.workload.arrival = Arrival::Poisson { iops: 20_000.0 };
            weight(&run, FindingKind::Outstanding)
        };
        assert_eq!([open(100_000), open(190_000)], [Some(Weight::Good), Some(Weight::Warning)]);
    }

    #[test]
    fn a_workload_that_shares_outstanding_ios_need_not_reach_all() {
        let mut run = run_of(50_000);
        run.pool = Some(Pool { threads: 2, outstanding: Some(4) });
        let found = finding(&run, FindingKind::Outstanding).unwrap();
        assert_eq!(found.weight, Weight::Good);
        assert_eq!(found.text, "20,000 IOPS x 50.0 us = 1 outstanding, of the 8 that all workloads shared.");
        run.pool = Some(Pool { threads: 2, outstanding: None });
        assert_eq!(weight(&run, FindingKind::Outstanding), Some(Weight::Warning), "each has its own");
    }

    #[test]
    fn bytes_must_be_ios_times_size() {
        let mut run = plain();
        assert_eq!(weight(&run, FindingKind::TransferSize), None);
        run.read.bytes = run.read.bytes / 100 * 98;
        assert_eq!(weight(&run, FindingKind::TransferSize), Some(Weight::Warning));
        run.workload.sizes =
            vec![SizeShare { block_bytes: 4096, percent: 50 }, SizeShare { block_bytes: 8192, percent: 50 }];
        run.read.bytes = run.read.count * 6180;
        assert_eq!(weight(&run, FindingKind::TransferSize), None, "the mix is left to chance");
        run.read.bytes = run.read.count * 6500;
        assert_eq!(weight(&run, FindingKind::TransferSize), Some(Weight::Warning));
        run.replayed = true;
        assert_eq!(weight(&run, FindingKind::TransferSize), None, "a trace has sizes of its own");
    }

    fn at_knee(outstanding: f64, iops: f64, reason: KneeReason) -> RunConditions {
        let knee = Knee {
            outstanding,
            iops,
            low: outstanding,
            high: outstanding,
            iops_interval: (iops, iops),
            latency_ns_floor: 100_000.0,
            outstanding_full: 2,
            above_bounds: 0.0,
            reason,
            why: String::new(),
        };
        RunConditions { knee: Some(knee), ..RunConditions::default() }
    }

    #[test]
    fn the_run_is_placed_on_the_measured_curve() {
        let weigh = |outstanding, iops| {
            find(&run_of(200_000), &at_knee(outstanding, iops, KneeReason::Device), FindingKind::Knee)
                .map(|found| found.weight)
        };
        assert_eq!(weigh(4.0, 21_000.0), Some(Weight::Good));
        assert_eq!(weigh(4.0, 26_000.0), Some(Weight::Warning), "it gave more");
        assert_eq!(weigh(4.0, 13_000.0), Some(Weight::Warning), "nobody gives that much more");
        assert_eq!(weigh(1.9, 21_000.0), Some(Weight::Note), "far beyond");
        let unreached = at_knee(4.0, 1_000.0, KneeReason::NotReached);
        assert_eq!(find(&run_of(200_000), &unreached, FindingKind::Knee), None);
        let replayed = RunResult { replayed: true, ..run_of(200_000) };
        let measured = at_knee(4.0, 13_000.0, KneeReason::Device);
        assert_eq!(find(&replayed, &measured, FindingKind::Knee), None, "the knee of other I/Os");
        assert_eq!(finding(&run_of(200_000), FindingKind::Knee), None);
    }
}
