//! Bytes read from a file many times its size: what is read again would fit into memory.

use crate::case::{Direction, FileCase, Total};
use crate::limits::{CACHED_NS, HOUR, REREAD, REREAD_BYTES, REREAD_OUTSTANDING, REREAD_PER_HOUR};
use crate::{Finding, FindingKind};
use filestats::{Cache, FileKind};
use findings::{Weight, words};
use workload::Unit;

/// Reports data that is read repeatedly. No finding where the size is unknown.
pub(crate) fn rereads(case: &FileCase) -> Vec<Finding> {
    find(case).into_iter().collect()
}

fn find(case: &FileCase) -> Option<Finding> {
    let size_bytes = case.file.size_bytes.known().filter(|size| *size >= REREAD_BYTES)?;
    if case.file.file.kind != FileKind::Data {
        return None;
    }
    let known = case.file.steps.iter().filter_map(|step| step.added.known());
    let read_bytes = known.fold(0_u64, |sum, added| sum.saturating_add(added.read.bytes));
    let times = read_bytes as f64 / size_bytes as f64;
    let hours = case.file.known_ns as f64 / HOUR as f64;
    if times < REREAD || times < REREAD_PER_HOUR * hours {
        return None;
    }
    let total = Total::from_readings(&case.readings(Direction::Read));
    let latency_ns = total.latency_ns();
    let outstanding = total.stall_ns as f64 / case.file.known_ns.max(1) as f64;
    let from_memory = latency_ns.is_some_and(|ns| ns < CACHED_NS);
    let mut text = format!(
        "{} was read {} times over in {}: {} of a file of {}",
        case.file.file.path,
        words::rate(times),
        words::length(case.file.known_ns as f64),
        words::bytes(read_bytes),
        words::bytes(size_bytes),
    );
    let next = if from_memory {
        text.push_str(
            "; the operating system's memory answered most of it, the database's own cache did not",
        );
        "the database's cache: larger, so that these reads need no system call"
    } else {
        "memory: the database's cache, against the data that is used; then what reads it again: plans, missing indexes, scans"
    };
    if case.file.meaning.cache == Cache::Included && !from_memory {
        text.push_str("; how much of it the page cache answered is unknown");
    }
    let costs = !from_memory && latency_ns.is_some() && outstanding >= REREAD_OUTSTANDING;
    let weight = if costs { Weight::Warning } else { Weight::Note };
    let mut finding = Finding::new(FindingKind::Reread, weight, text)
        .about(&case.file.file, Some(Direction::Read))
        .fact("read, of its size", times, Unit::Times)
        .fact("bytes read", read_bytes as f64, Unit::Bytes)
        .fact("size", size_bytes as f64, Unit::Bytes);
    if let Some(latency_ns) = latency_ns {
        finding = finding.fact("mean latency", latency_ns, Unit::Ns);
        finding = finding.fact("mean outstanding", outstanding, Unit::Ios);
    }
    Some(finding.stall(total.stall_ns).next(next))
}
