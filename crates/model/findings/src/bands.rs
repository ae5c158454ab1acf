//! Reads, writes and log writes by the named ranges of latency that people use.

use crate::case::Case;
use crate::{Finding, FindingKind, Weight, words};
use filestats::IoClass;
use workload::{Durability, LatencyFigures, LatencyHistogram, Pattern, RunResult, Unit};

/// Latencies to grade: name, class, mean latency.
fn graded(result: &RunResult) -> Vec<(&'static str, IoClass, f64)> {
    let response = result.response.as_ref();
    let pick = |service: LatencyFigures, waited: Option<&LatencyHistogram>| {
        // Of an open loop, what its users waited.
        waited.and_then(LatencyHistogram::mean_ns).or_else(|| service.mean_ns())
    };
    let log = is_log(result);
    let (writes, class) = if log { ("log writes", IoClass::LogWrite) } else { ("writes", IoClass::Write) };
    let all = [
        ("reads", IoClass::Read, pick(result.read_latency(), response.map(|response| &response.read))),
        (writes, class, pick(result.write_latency(), response.map(|response| &response.write))),
        ("syncs", IoClass::LogWrite, result.sync_latency().mean_ns()),
    ];
    all.into_iter().filter_map(|(name, class, ns)| Some((name, class, ns?))).collect()
}

/// Sequential writes that count when durable: what a transaction log does.
fn is_log(result: &RunResult) -> bool {
    let shape = &result.workload.shape;
    shape.pattern == Pattern::Sequential
        && shape.write_percent == 100
        && shape.durability != Durability::Cached
}

pub fn bands(case: &Case) -> Option<Finding> {
    let profile = case.conditions.profile;
    let graded = graded(case.result);
    let mut worst = Weight::Good;
    let mut finding = Finding::new(FindingKind::Bands, Weight::Good, "");
    let mut parts = Vec::new();
    for (name, class, ns) in &graded {
        let (band, bands) = (profile.band(*class, *ns), profile.bands(*class).len());
        worst = worst.max(match band.rank * 3 / bands {
            0 => Weight::Good,
            1 => Weight::Note,
            _ => Weight::Warning,
        });
        parts.push(format!("{name} {} ({})", band.name, words::time(*ns)));
        finding = finding.fact(&format!("mean of {name}"), *ns, Unit::Ns);
        finding = finding.fact(&format!("band of {name}"), band.rank as f64, Unit::Rank);
    }
    if parts.is_empty() {
        return None;
    }
    let who = if case.result.response.is_some() { "as users wait for them, " } else { "" };
    finding.text = format!("On the scale '{}', {who}mean latencies are: {}.", profile.name, parts.join(", "));
    finding.weight = worst;
    Some(finding)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RunConditions;
    use crate::case::tests::{direction, find, finding, plain};
    use filestats::Profile;
    use workload::{Direction, Response, Shape};

    #[test]
    fn the_worst_class_gives_the_weight() {
        let run = RunResult { write: direction(100, 30_000_000, 40_000_000), ..plain() };
        let found = finding(&run, FindingKind::Bands).unwrap();
        assert!(found.text.ends_with("reads excellent (200 us), writes bad (35.0 ms)."), "{}", found.text);
        assert_eq!(found.weight, Weight::Note);
        let awful = RunResult { write: direction(100, 500_000_000, 600_000_000), ..plain() };
        assert_eq!(finding(&awful, FindingKind::Bands).unwrap().weight, Weight::Warning);
        assert_eq!(finding(&plain(), FindingKind::Bands).unwrap().weight, Weight::Good);
    }

    #[test]
    fn log_writes_and_syncs_have_a_scale_of_their_own() {
        let conditions = RunConditions {
            profile: Profile::named("first-responder-kit").unwrap(),
            ..RunConditions::default()
        };
        let mut run =
            RunResult { read: Direction::default(), write: direction(100, 4_900_000, 5_100_000), ..plain() };
        let text = |run: &RunResult| find(run, &conditions, FindingKind::Bands).unwrap().text;
        assert!(text(&run).contains("writes ok"), "{}", text(&run));
        run.workload.shape = Shape::log_write(4096);
        assert!(text(&run).contains("log writes above guidance"), "{}", text(&run));
        run.sync = direction(100, 900_000, 1_100_000);
        assert!(text(&run).contains("syncs ok"), "{}", text(&run));
    }

    #[test]
    fn an_open_loop_is_graded_by_what_its_users_wait() {
        let response =
            Response { read: direction(200_000, 15_000_000, 15_000_001).latency, ..Response::default() };
        let found = finding(&RunResult { response: Some(response), ..plain() }, FindingKind::Bands).unwrap();
        assert!(found.text.contains("reads poor (15.0 ms)"), "{}", found.text);
    }
}
