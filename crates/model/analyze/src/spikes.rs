//! Spikes against what is usual at the same hour of other days.

use crate::case::{Direction, FileCase, Reading, Total, episodes, spans, worst};
use crate::finding::{at, stretches};
use crate::hours::Hours;
use crate::limits::{DAYS_MIN, MORE, MORE_PER_S, SLOWER, SLOWER_NS};
use crate::source_case::SourceCase;
use crate::{Finding, FindingKind};
use findings::{Weight, words};
use statistics::IOS_MIN;
use workload::Unit;

/// Latency far above that hour's usual one.
pub(crate) fn slower_than_usual(case: &FileCase) -> Vec<Finding> {
    let one = |direction: Direction| {
        let readings = case.readings(direction);
        let usual = Hours::new(case, direction, &readings).usual_latencies_ns(&readings);
        let is_spike = |(reading, usual): (&Reading, &Option<f64>)| {
            let usual = (*usual)?;
            let spike = reading.latency_ns > SLOWER * usual && reading.latency_ns > usual + SLOWER_NS;
            spike.then_some((*reading, usual))
        };
        let found: Vec<(Reading, f64)> = readings.iter().zip(&usual).filter_map(is_spike).collect();
        let spikes = || found.iter().map(|(reading, _)| reading);
        let total = Total::from_readings(spikes());
        if total.count < IOS_MIN {
            return None;
        }
        let (mean_ns, worst) = (total.latency_ns()?, worst(spikes())?);
        let usual_ns = found.iter().find(|(reading, _)| reading == worst)?.1;
        let episodes = episodes(spikes());
        // A note only: another rule reports a breach of the service level.
        let text = format!(
            "{} of {} took {} on average over {} in all ({}); at worst {} until {}, where {} are usual at that hour (median \
             of {} other days)",
            direction.plural(),
            case.file.file.path,
            words::time(mean_ns),
            words::length(total.elapsed_ns as f64),
            stretches(episodes.len()),
            words::time(worst.latency_ns),
            at(worst.span.until_unix_ns),
            words::time(usual_ns),
            case.captured.days(worst.span.from_unix_ns),
        );
        Some(
            Finding::new(FindingKind::Slower, Weight::Note, text)
                .about(&case.file.file, Some(direction))
                .fact("mean latency in them", mean_ns, Unit::Ns)
                .fact("worst interval's mean latency", worst.latency_ns, Unit::Ns)
                .fact("usual at that hour", usual_ns, Unit::Ns)
                .fact("operations", total.count as f64, Unit::Ios)
                .when(spans(&episodes))
                .stall(total.stall_ns)
                .next("what ran then and not on other days: jobs, deployments, another user of the storage"),
        )
    };
    Direction::ALL.into_iter().filter_map(one).collect()
}

/// Many more operations than usual at that hour.
pub(crate) fn more_than_usual(case: &FileCase) -> Vec<Finding> {
    let one = |direction: Direction| {
        let readings = case.readings(direction);
        let usual = Hours::new(case, direction, &readings).usual_per_s(&readings);
        let is_spike = |(reading, usual): (&Reading, &Option<f64>)| {
            let (usual, rate) = ((*usual)?, reading.per_second());
            (rate > MORE * usual && rate >= MORE_PER_S).then_some((*reading, usual))
        };
        let found: Vec<(Reading, f64)> = readings.iter().zip(&usual).filter_map(is_spike).collect();
        let spikes = || found.iter().map(|(reading, _)| reading);
        let total = Total::from_readings(spikes());
        let most = spikes().max_by(|a, b| a.per_second().total_cmp(&b.per_second()))?;
        if total.count < IOS_MIN {
            return None;
        }
        let usual_per_s = found.iter().find(|(reading, _)| reading == most)?.1;
        let episodes = episodes(spikes());
        let text = format!(
            "{} of {}: {} a second for {}, in {}; at most {} a second until {}, where {} are usual at that hour (median \
             of {} other days)",
            direction.plural(),
            case.file.file.path,
            words::rate(total.count as f64 / (total.elapsed_ns.max(1) as f64 / 1e9)),
            words::length(total.elapsed_ns as f64),
            stretches(episodes.len()),
            words::rate(most.per_second()),
            at(most.span.until_unix_ns),
            words::rate(usual_per_s),
            case.captured.days(most.span.from_unix_ns),
        );
        Some(
            Finding::new(FindingKind::More, Weight::Note, text)
                .about(&case.file.file, Some(direction))
                .fact("most in an interval", most.per_second(), Unit::PerSecond)
                .fact("usual at that hour", usual_per_s, Unit::PerSecond)
                .fact("operations", total.count as f64, Unit::Ios)
                .when(spans(&episodes))
                .stall(total.stall_ns)
                .next("what ran then and not on other days: a job, a changed plan, new statistics, a cold cache"),
        )
    };
    Direction::ALL.into_iter().filter_map(one).collect()
}

/// Notes once that the history is too short to know what is usual.
pub(crate) fn no_normal(case: &SourceCase) -> Vec<Finding> {
    if case.days >= DAYS_MIN || case.coverage.files_used == 0 {
        return Vec::new();
    }
    let text = format!(
        "no baseline yet: it needs the same hours of {DAYS_MIN} other days; {} recorded",
        match case.days {
            1 => "1 is".to_owned(),
            days => format!("{days} are"),
        }
    );
    let next = "headroom agent --record-only for some days; until then no spikes are found";
    let finding = Finding::new(FindingKind::NoNormal, Weight::Note, text);
    vec![finding.fact("other days", case.days as f64, Unit::Days).next(next)]
}
