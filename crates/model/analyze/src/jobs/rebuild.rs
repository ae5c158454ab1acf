//! One table read whole while the log grows by a part of it: an index that is built, or a change of all rows. With
//! writes to the table's visibility map beside, a vacuum.

use crate::case::sum;
use crate::finding::{Span, at};
use crate::group_totals::FileGroup;
use crate::jobs::candidates::{Rebuild, VmWrite};
use crate::limits::{REBUILD_FASTER, REBUILD_LOG};
use crate::source_case::SourceCase;
use crate::{Finding, FindingKind};
use filestats::Ops;
use findings::{Weight, words};
use workload::Unit;

/// Candidates during which the log grew.
pub(crate) fn rebuilds(case: &SourceCase) -> Vec<Finding> {
    case.rebuilds.iter().filter_map(|candidate| find(case, candidate)).collect()
}

fn find(case: &SourceCase, candidate: &Rebuild) -> Option<Finding> {
    let ticks = candidate.ticks.0..=candidate.ticks.1;
    let log = case.totals.over(FileGroup::Log, ticks.clone()).write;
    let data = case.totals.over(FileGroup::Data, ticks.clone()).write;
    let span = Span::of_ticks(case.series, candidate.ticks.0, candidate.ticks.1);
    let share = candidate.read.bytes as f64 / candidate.size_bytes as f64;
    let same = |write: &&VmWrite| write.relation == candidate.file.path && ticks.contains(&write.tick);
    let vm_writes = case.vm_writes.iter().filter(same).count();
    let read = format!(
        "from {} for {}, {} of {} was read ({} in reads of {})",
        at(span.from_unix_ns),
        words::length(span.length_ns() as f64),
        words::share(share),
        candidate.file.path,
        words::bytes(candidate.read.bytes),
        words::bytes(candidate.read.bytes / candidate.read.count.max(1)),
    );
    let finding = |kind, text| {
        Finding::new(kind, Weight::Note, text)
            .about(&candidate.file, None)
            .fact("read, of its size", share, Unit::Share)
            .fact("bytes read", candidate.read.bytes as f64, Unit::Bytes)
            .fact("log written", log.bytes as f64, Unit::Bytes)
            .fact("data written", data.bytes as f64, Unit::Bytes)
            .when(vec![span])
            .stall(candidate.stall_ns)
    };
    if vm_writes > 0 {
        let text = format!("looks like a vacuum: {read}, and its visibility map was written");
        return Some(
            finding(FindingKind::Vacuum, text)
                .next("where it disturbs: its cost delay and limits; where it never ends: more workers or more memory for it"),
        );
    }
    let outside = outside(case, candidate.ticks);
    let per_s = |bytes: u64, ns: u64| bytes as f64 / (ns.max(1) as f64 / 1e9);
    let faster = per_s(log.bytes, span.length_ns()) >= REBUILD_FASTER * per_s(outside.0.bytes, outside.1);
    if (log.bytes as f64) < REBUILD_LOG * candidate.size_bytes as f64 || !faster {
        return None;
    }
    let each = |ops: Ops| ops.average_bytes().known().map_or("-".into(), |bytes| words::bytes(bytes as u64));
    let text = format!(
        "looks like an index rebuild, or a change of all rows: {read}, and {} of log ({} a write, otherwise {}) and {} of \
         data were written meanwhile",
        words::bytes(log.bytes),
        each(log),
        each(outside.0),
        words::bytes(data.bytes),
    );
    Some(
        finding(FindingKind::IndexRebuild, text)
            .fact("mean size of a log write", log.average_bytes().known().unwrap_or(f64::NAN), Unit::Bytes)
            .fact("otherwise", outside.0.average_bytes().known().unwrap_or(f64::NAN), Unit::Bytes)
            .next("whether it must run then, or at all: rebuild what is fragmented, at a quiet hour, online where possible"),
    )
}

/// The log's writes at other times, and how long these are.
fn outside(case: &SourceCase, (from, to): (usize, usize)) -> (Ops, u64) {
    let last = case.series.ticks.len() - 1;
    let before = case.totals.over(FileGroup::Log, 1..=from.saturating_sub(1)).write;
    let after = case.totals.over(FileGroup::Log, (to + 1).min(last + 1)..=last).write;
    let others = (1..=last).filter(|at| !(from..=to).contains(at));
    (before.plus(after), sum(others.map(|at| case.series.wall_ns(at))))
}
