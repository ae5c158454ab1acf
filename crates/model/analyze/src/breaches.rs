//! Slower than the service level: how long, how often, at worst, when; and whether the size of the I/Os explains it.

use crate::case::{Direction, FileCase, Total, episodes, spans, worst};
use crate::finding::{SLOW_LEVEL, SLOW_MEAN, SLOW_TIME, at, stretches};
use crate::limits::{BREACHED_SHARE, IOS_FEW, LARGE_BYTES, PLATEAU_NS};
use crate::{Finding, FindingKind};
use filestats::{FileKind, IoClass};
use findings::{Weight, words};
use statistics::IOS_MIN;
use workload::Unit;

/// One finding for each direction in which the level was broken.
pub(crate) fn breaches(case: &FileCase) -> Vec<Finding> {
    Direction::ALL.into_iter().filter_map(|direction| breach(case, direction)).collect()
}

fn breach(case: &FileCase, direction: Direction) -> Option<Finding> {
    let class = case.class(direction);
    let level = &case.settings.service_level;
    let readings = case.readings(direction);
    let slow = || readings.iter().filter(|reading| !level.kept(class, reading.latency_ns));
    let (total, all) = (Total::from_readings(slow()), Total::from_readings(&readings));
    if total.count < IOS_FEW {
        return None;
    }
    let (mean_ns, worst) = (total.latency_ns()?, worst(slow())?);
    let share = total.elapsed_ns as f64 / all.elapsed_ns.max(1) as f64;
    let average_bytes = total.average_bytes()?;
    let large = direction != Direction::Sync && case.counts_requests() && total.is_large();
    // Mean latency scaled to 64 KiB: longer I/Os take longer, and that is expected.
    let explained = large && level.kept(class, mean_ns * LARGE_BYTES / average_bytes);
    let lasting = total.elapsed_ns >= PLATEAU_NS || share >= BREACHED_SHARE;
    let (kind, weight) = match (explained, total.count >= IOS_MIN && lasting) {
        (true, _) => (FindingKind::LargeIos, Weight::Note),
        (false, true) => (FindingKind::Breach, Weight::Warning),
        (false, false) => (FindingKind::Breach, Weight::Note),
    };
    let episodes = episodes(slow());
    let (name, what) = (&case.file.file.path, direction.plural());
    let mut text = format!(
        "{what} of {name} took {} ({}) on average over {} in all ({}, {} of the time with {what}); the service level is {}; at worst {} ({}) until {}",
        words::time(mean_ns),
        case.band(direction, mean_ns),
        words::length(total.elapsed_ns as f64),
        stretches(episodes.len()),
        words::share(share),
        words::time(level.limit_ns(class) as f64),
        words::time(worst.latency_ns),
        case.band(direction, worst.latency_ns),
        at(worst.span.until_unix_ns),
    );
    if explained {
        text.push_str(&format!(
            "; they are large, {} each, and 64 KiB of it took {}: larger I/Os take longer",
            words::bytes(average_bytes as u64),
            words::time(mean_ns * LARGE_BYTES / average_bytes),
        ));
    } else if total.count < IOS_MIN {
        text.push_str(&format!(
            "; only {} are behind it",
            words::counted(total.count, &direction.to_string())
        ));
    }
    let mut finding = Finding::new(kind, weight, text)
        .about(&case.file.file, Some(direction))
        .fact(SLOW_MEAN, mean_ns, Unit::Ns)
        .fact(SLOW_LEVEL, level.limit_ns(class) as f64, Unit::Ns)
        .fact("worst interval's mean latency", worst.latency_ns, Unit::Ns)
        .fact(SLOW_TIME, total.elapsed_ns as f64, Unit::Ns)
        .fact("share of the time with any", share, Unit::Share)
        .fact("operations", total.count as f64, Unit::Ios)
        .fact("mean outstanding", total.stall_ns as f64 / total.elapsed_ns.max(1) as f64, Unit::Ios);
    if direction != Direction::Sync {
        finding = finding.fact("mean size", average_bytes, Unit::Bytes);
    }
    let next = next(class, case.file.file.kind, direction, large);
    Some(finding.when(spans(&episodes)).stall(total.stall_ns).next(next))
}

/// The next step, by what is slow and whether its I/Os are large.
fn next(class: IoClass, kind: FileKind, direction: Direction, large: bool) -> &'static str {
    match (class, kind, direction) {
        (_, FileKind::Temp, _) => {
            "which sorts and hashes spill: their memory setting, and the plans that need them"
        }
        (_, FileKind::Device, _) => {
            "the files on this device, busiest first; then headroom check, against what it can give"
        }
        (IoClass::Read, ..) if large => {
            "what scans at that time: missing indexes, SELECT *, implicit conversions, low page density or forwarded \
             records; a report may be fine at --service-level warehouse"
        }
        (IoClass::Read, ..) => {
            "what reads so much at that time: plans, missing indexes, row width, memory (are the same pages read again?); \
             then headroom check, against what the storage can give"
        }
        (IoClass::LogWrite, _, _) if large => {
            "the log's storage: put it apart from the data, and measure it (headroom measure)"
        }
        (IoClass::LogWrite, ..) => {
            "batch commits into fewer transactions, or delayed durability where the last ones may be lost; then the log on \
             storage of its own"
        }
        (IoClass::Write, _, Direction::Sync) => {
            "checkpoint settings: smaller and spread; who else syncs files there"
        }
        (IoClass::Write, ..) => {
            "what writes in bursts at that time: checkpoint settings, index builds, memory too small for what is changed"
        }
    }
}
