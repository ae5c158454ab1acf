//! Files with the longest waits, and their I/O: size beside latency.

use crate::limits::{BUSY_OUTSTANDING, BUSY_SHARE};
use crate::source_case::SourceCase;
use crate::{Direction, Finding, FindingKind};
use filestats::{Counters, Figure, FileKind, Ops};
use findings::{Weight, words};
use workload::Unit;

/// One of several files has most of the time waited.
pub(crate) fn one_file(case: &SourceCase) -> Vec<Finding> {
    let Some(first) = case.busiest.first() else { return Vec::new() };
    let (Some(share), Figure::Known(stall_ns)) = (first.share, first.stall_ns) else { return Vec::new() };
    let outstanding = stall_ns as f64 / first.known_ns.max(1) as f64;
    if case.files_waited < 2 || share < BUSY_SHARE || outstanding < BUSY_OUTSTANDING {
        return Vec::new();
    }
    let Counters { read, write, sync, .. } = first.counters;
    let stall = |ops: Ops| ops.stall_ns.known().unwrap_or(0);
    let sync = sync.known().unwrap_or(Ops::ZERO);
    let all = [(Direction::Read, read), (Direction::Write, write), (Direction::Sync, sync)];
    let Some((most, ops)) = all.into_iter().max_by_key(|(_, ops)| stall(*ops)) else { return Vec::new() };
    let (Figure::Known(latency_ns), Figure::Known(bytes)) = (ops.latency_ns(), ops.average_bytes()) else {
        return Vec::new();
    };
    let size = match most {
        Direction::Sync => String::new(),
        _ => format!(" and {} each", words::bytes(bytes as u64)),
    };
    let text = format!(
        "{} of all time waited for files goes to {}, {} of that to its {}: {} of them, {}{size}",
        words::share(share),
        first.file.path,
        words::share(stall(ops) as f64 / stall_ns.max(1) as f64),
        most.plural(),
        words::rate(ops.count as f64),
        words::time(latency_ns),
    );
    let next = match (first.file.kind, most) {
        (FileKind::Log | FileKind::Journal, _) => {
            "commits: their number, batches, group commit; the log's own storage"
        }
        (FileKind::Temp, _) => "sorts and hashes that spill: their memory setting and plans",
        (_, Direction::Read) => "the tables and indexes in it: which statements read them, by which plans",
        _ => {
            "the tables and indexes in it: what changes them, which indexes are not needed; checkpoint settings"
        }
    };
    let finding = Finding::new(FindingKind::Busiest, Weight::Note, text)
        .about(&first.file, Some(most))
        .fact("share of all time waited", share, Unit::Share)
        .fact("mean outstanding", outstanding, Unit::Ios)
        .fact("mean latency", latency_ns, Unit::Ns);
    let finding =
        if most == Direction::Sync { finding } else { finding.fact("mean size", bytes, Unit::Bytes) };
    vec![finding.stall(stall_ns).next(next)]
}
