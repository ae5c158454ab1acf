//! One I/O at a time: each is waited for before the next is issued.

use crate::case::{Direction, FileCase, Reading, Total, episodes, outstanding, spans, sum};
use crate::finding::stretches;
use crate::limits::{SERIAL_FROM, SERIAL_LATENCY_NS, SERIAL_NS, SERIAL_SHARE, SERIAL_SLOW_NS, SERIAL_UNTIL};
use crate::{Finding, FindingKind};
use filestats::{FileKind, IoClass, Ops};
use findings::{Weight, words};
use statistics::IOS_MIN;
use workload::Unit;

/// N near 1 for most of the time that the file was used.
pub(crate) fn serial(case: &FileCase) -> Vec<Finding> {
    find(case).into_iter().collect()
}

fn find(case: &FileCase) -> Option<Finding> {
    // A device serves many callers, and a count of blocks says nothing of requests.
    if case.file.file.kind == FileKind::Device || !case.counts_requests() {
        return None;
    }
    let used = outstanding(case);
    let active_ns = sum(used.iter().map(|(_, elapsed_ns, _)| *elapsed_ns));
    let one_at_a_time: Vec<usize> = used
        .iter()
        .filter(|(_, _, n)| (SERIAL_FROM..=SERIAL_UNTIL).contains(n))
        .map(|(at, ..)| *at)
        .collect();
    let readings: Vec<(Direction, Vec<Reading>)> = Direction::ALL
        .into_iter()
        .map(|direction| {
            let in_them = |reading: &Reading| one_at_a_time.binary_search(&reading.at).is_ok();
            (direction, case.readings(direction).into_iter().filter(in_them).collect())
        })
        .collect();
    let serial = used.iter().filter(|(at, ..)| one_at_a_time.binary_search(at).is_ok());
    let serial_ns = sum(serial.map(|(_, elapsed_ns, _)| *elapsed_ns));
    let totals: Vec<(Direction, Total)> =
        readings.iter().map(|(direction, readings)| (*direction, Total::from_readings(readings))).collect();
    let count = sum(totals.iter().map(|(_, total)| total.count));
    let stall_ns = sum(totals.iter().map(|(_, total)| total.stall_ns));
    let latency_ns = stall_ns as f64 / count.max(1) as f64;
    let share = serial_ns as f64 / active_ns.max(1) as f64;
    if serial_ns < SERIAL_NS || share < SERIAL_SHARE || count < IOS_MIN || latency_ns < SERIAL_LATENCY_NS {
        return None;
    }
    let (most, most_total) = totals.iter().max_by_key(|(_, total)| total.stall_ns)?;
    let mut all: Vec<Reading> = readings.iter().flat_map(|(_, readings)| readings).copied().collect();
    all.sort_by_key(|reading| reading.at);
    all.dedup_by_key(|reading| reading.at);
    let episodes = episodes(&all);
    let per_s = count as f64 / (serial_ns as f64 / 1e9);
    let text = format!(
        "{} was used one I/O at a time for {}, in {}, {} of the time that it was used: {} a second, each of {} waited for \
         before the next (mostly {}); the storage may carry several at once",
        case.file.file.path,
        words::length(serial_ns as f64),
        stretches(episodes.len()),
        words::share(share),
        words::rate(per_s),
        words::time(latency_ns),
        most.plural(),
    );
    let weight = if latency_ns >= SERIAL_SLOW_NS { Weight::Warning } else { Weight::Note };
    let finding = Finding::new(FindingKind::Serial, weight, text)
        .about(&case.file.file, Some(*most))
        .fact("mean outstanding", stall_ns as f64 / serial_ns as f64, Unit::Ios)
        .fact("mean latency", latency_ns, Unit::Ns)
        .fact("operations a second", per_s, Unit::PerSecond)
        .fact("time", serial_ns as f64, Unit::Ns)
        .fact("share of the time used", share, Unit::Share);
    let finding = match Ops::timed(most_total.count, most_total.bytes, 0).average_bytes().known() {
        Some(bytes) if *most != Direction::Sync => finding.fact("mean size", bytes, Unit::Bytes),
        _ => finding,
    };
    Some(finding.when(spans(&episodes)).stall(stall_ns).next(next(case.class(*most), *most)))
}

/// The next thing to examine, by the kind of operation that is waited for most.
fn next(class: IoClass, direction: Direction) -> &'static str {
    match (class, direction) {
        (IoClass::LogWrite, _) => {
            "batch commits into fewer transactions, or let several sessions commit at once so that they share a sync"
        }
        (_, Direction::Read) => {
            "read ahead, prefetch or more sessions: plans that look up row by row, page by page"
        }
        (_, Direction::Write) => {
            "asynchronous or batched writes; who writes there, and why one page after the other"
        }
        (_, Direction::Sync) => "fewer syncs: larger transactions, or a log instead of a journal",
    }
}
