//! The share of writes against the requested one, and the share of time that syncs take.

use crate::case::Case;
use crate::limits::{CHANCE_DEVIATIONS, SYNC_SHARE, WRITE_SHARE_DIFFERS};
use crate::{Finding, FindingKind, Weight, words};
use workload::{Unit, format_count};

pub fn write_share(case: &Case) -> Option<Finding> {
    let workload = &case.result.workload;
    // A trace brings its own writes.
    if case.result.ios() == 0 || !case.has_known_shape() {
        return None;
    }
    let asked = f64::from(workload.shape.write_percent) / 100.0;
    let got = case.result.write.count as f64 / case.result.ios() as f64;
    // Sequential stretches between random places are all reads or all writes: `ios_a_coin` I/Os for each
    // coin.
    let ios_a_coin = workload.access.random_percent.map_or(1.0, |percent| 100.0 / f64::from(percent.max(1)));
    let chance =
        CHANCE_DEVIATIONS * (asked * (1.0 - asked) * ios_a_coin / case.result.ios() as f64).max(0.0).sqrt();
    let new = |weight, text: String| {
        let facts = [("requested", asked, Unit::Share), ("obtained", got, Unit::Share)];
        Finding::new(FindingKind::WriteShare, weight, text).facts(facts)
    };
    let (asked_text, got_text) = (words::share(asked), words::share(got));
    if (got - asked).abs() > WRITE_SHARE_DIFFERS + chance {
        let text = format!(
            "{got_text} of the I/Os were writes, not {asked_text} as requested: more than chance does."
        );
        return Some(
            new(Weight::Warning, text)
                .remedy("look at failed I/Os, and at how the tool chooses what to write"),
        );
    }
    let mixed = asked > 0.0 && asked < 1.0;
    mixed.then(|| {
        new(Weight::Good, format!("Writes were {got_text} of the I/Os, as requested ({asked_text})."))
    })
}

pub fn syncs(case: &Case) -> Option<Finding> {
    let (result, sync) = (case.result, &case.result.sync);
    let mean_ns = result.sync_latency().mean_ns()?;
    // Another tool may report all threads as one.
    let threads =
        if result.threads.is_empty() { result.workload.threads as usize } else { result.threads.len() };
    let share = mean_ns * sync.count as f64 / (result.elapsed_ns as f64 * threads.max(1) as f64);
    if !share.is_finite() {
        return None;
    }
    let writes = result.write.count as f64 / sync.count.max(1) as f64;
    let text = format!(
        "Syncs took {} of the threads' time: {} of {} each, {}.",
        words::share(share.min(1.0)),
        format_count(sync.count),
        words::time(mean_ns),
        if (writes - 1.0).abs() < 0.005 {
            "one after each write".to_owned()
        } else {
            format!("one for every {} writes", words::rate(writes))
        }
    );
    let weight = if share >= SYNC_SHARE { Weight::Note } else { Weight::Good };
    let finding = Finding::new(FindingKind::Syncs, weight, text)
        .fact("time in syncs", share, Unit::Share)
        .fact("mean latency of a sync", mean_ns, Unit::Ns)
        .fact("writes a sync", writes, Unit::Ios);
    Some(if weight == Weight::Note {
        finding.remedy("more writes for each sync, as group commit does, would be quicker")
    } else {
        finding
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::tests::{direction, finding, plain, weight};
    use workload::{Arrival, RunResult};

    fn with_writes(asked: u8, reads: u64, writes: u64) -> RunResult {
        let mut run = RunResult {
            read: direction(reads, 1_000, 2_000),
            write: direction(writes, 1_000, 2_000),
            ..plain()
        };
        run.workload.shape.write_percent = asked;
        run
    }

    #[test]
    fn the_write_share_may_differ_by_a_percent_and_by_chance() {
        assert_eq!(weight(&with_writes(30, 69_000, 31_000), FindingKind::WriteShare), Some(Weight::Good));
        assert_eq!(weight(&with_writes(30, 67_000, 33_000), FindingKind::WriteShare), Some(Weight::Warning));
        assert_eq!(weight(&with_writes(30, 62, 38), FindingKind::WriteShare), Some(Weight::Good), "chance");
        assert_eq!(weight(&with_writes(0, 100_000, 0), FindingKind::WriteShare), None);
        assert_eq!(weight(&with_writes(0, 90_000, 10_000), FindingKind::WriteShare), Some(Weight::Warning));
    }

    #[test]
    fn a_trace_is_not_blamed_for_its_own_writes() {
        let replayed = |arrival| {
            let mut run = RunResult { replayed: true, ..with_writes(0, 36_000, 64_000) };
            run.workload.arrival = arrival;
            run
        };
        for arrival in [Arrival::Closed, Arrival::Recorded { speed: 2.0 }] {
            assert_eq!(weight(&replayed(arrival), FindingKind::WriteShare), None, "{arrival:?}");
        }
    }

    #[test]
    fn stretches_of_equal_ios_are_given_more_chance() {
        let mut run = with_writes(30, 6_600, 3_400);
        assert_eq!(weight(&run, FindingKind::WriteShare), Some(Weight::Warning));
        run.workload.access.random_percent = Some(5);
        assert_eq!(weight(&run, FindingKind::WriteShare), Some(Weight::Good));
    }

    #[test]
    fn syncs_that_take_half_the_time_are_reported() {
        // Two threads of ten seconds: 20 s in all.
        let with = |ns: u64| RunResult { sync: direction(10_000, ns, ns), ..plain() };
        assert_eq!(weight(&with(990_000), FindingKind::Syncs), Some(Weight::Good));
        let found = finding(&with(1_010_000), FindingKind::Syncs).unwrap();
        assert_eq!(found.weight, Weight::Note);
        assert!(
            found.text.starts_with("Syncs took 51 % of the threads' time: 10,000 of 1.01 ms each"),
            "{}",
            found.text
        );
        assert_eq!(weight(&plain(), FindingKind::Syncs), None);
    }
}
