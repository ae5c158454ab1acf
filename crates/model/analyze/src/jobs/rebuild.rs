//! One table read whole while the log grows by a part of it: an index that is built, or a change of all rows. With
//! writes to the table's visibility map beside, a vacuum.

use crate::analyzer::SourceCase;
use crate::case::{FileCase, sum};
use crate::finding::{Span, at};
use crate::limits::{APART_NS, JOB_FILE_BYTES, REBUILD_FASTER, REBUILD_LOG, REBUILD_READ};
use crate::timeline::{Sum, push_bounded};
use crate::{Finding, FindingKind};
use filestats::{FileIdentity, FileKind, Ops};
use findings::{Weight, words};

/// A file that was read far faster than usual, most of it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Rebuild {
    pub file: FileIdentity,
    pub size_bytes: u64,
    pub read: Ops,
    /// The intervals, first and last.
    pub ticks: (usize, usize),
    pub stall_ns: u64,
}

/// An interval in which a visibility map was written.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct VmWrite {
    /// The relation's path, without `_vm`.
    pub relation: String,
    pub tick: usize,
}

/// What a visibility map's name ends with (PostgreSQL).
const VM: &str = "_vm";

/// Writes to a visibility map.
pub(crate) fn vm_writes(case: &FileCase, found: &mut Vec<VmWrite>) {
    let Some(relation) = case.file.file.path.strip_suffix(VM) else { return };
    let written = case.file.steps.iter().filter(|step| step.added.known().is_some_and(|c| c.write.count > 0));
    written.for_each(|step| push_bounded(found, VmWrite { relation: relation.into(), tick: step.at }));
}

/// The stretches in which a file was read far faster than usual, and at least half of it.
pub(crate) fn rebuild_candidates(case: &FileCase, found: &mut Vec<Rebuild>) {
    let Some(size_bytes) = case.file.size_bytes.known().filter(|size| *size >= JOB_FILE_BYTES) else {
        return;
    };
    if case.file.file.kind != FileKind::Data {
        return;
    }
    let usual = usual_bytes_per_s(case);
    let mut runs: Vec<Rebuild> = Vec::new();
    for step in &case.file.steps {
        let (Some(added), Some(elapsed_ns)) =
            (step.added.known(), case.course.elapsed_ns(step.at, case.settings.rules).known())
        else {
            continue;
        };
        let rate = added.read.bytes as f64 / (elapsed_ns as f64 / 1e9);
        if added.read.bytes == 0 || rate < REBUILD_FASTER * usual {
            continue;
        }
        let stall_ns = added.stall_ns().known().unwrap_or(0);
        let (from_unix_ns, until_unix_ns) = case.course.span_unix_ns(step.at);
        let near = APART_NS.min(2 * until_unix_ns.saturating_sub(from_unix_ns));
        match runs.last_mut() {
            Some(run) if from_unix_ns.saturating_sub(case.course.span_unix_ns(run.ticks.1).1) <= near => {
                run.ticks.1 = step.at;
                run.read = run.read.plus(added.read);
                run.stall_ns = run.stall_ns.saturating_add(stall_ns);
            }
            _ => runs.push(Rebuild {
                file: case.file.file.clone(),
                size_bytes,
                read: added.read,
                ticks: (step.at, step.at),
                stall_ns,
            }),
        }
    }
    let most = |run: &Rebuild| run.read.bytes as f64 >= REBUILD_READ * size_bytes as f64;
    runs.into_iter().filter(most).for_each(|run| push_bounded(found, run));
}

/// The median rate of all known intervals, idle ones included.
fn usual_bytes_per_s(case: &FileCase) -> f64 {
    let rate = |(at, bytes): (usize, u64)| {
        let elapsed_ns = case.course.elapsed_ns(at, case.settings.rules).known()?;
        Some(bytes as f64 / (elapsed_ns as f64 / 1e9))
    };
    let known = case.file.steps.iter().filter_map(|step| Some((step.at, step.added.known()?.read.bytes)));
    let mut rates: Vec<f64> = known.filter_map(rate).collect();
    let idle = case.course.ticks.len().saturating_sub(1 + case.file.steps.len());
    rates.sort_by(f64::total_cmp);
    let middle = (rates.len() + idle) / 2;
    middle.checked_sub(idle).and_then(|at| rates.get(at)).copied().unwrap_or(0.0)
}

/// Candidates while which the log grew.
pub(crate) fn rebuilds(case: &SourceCase) -> Vec<Finding> {
    case.rebuilds.iter().filter_map(|candidate| find(case, candidate)).collect()
}

fn find(case: &SourceCase, candidate: &Rebuild) -> Option<Finding> {
    let ticks = candidate.ticks.0..=candidate.ticks.1;
    let log = case.timeline.over(Sum::Log, ticks.clone()).write;
    let data = case.timeline.over(Sum::Data, ticks.clone()).write;
    let span = Span {
        from_unix_ns: case.course.span_unix_ns(candidate.ticks.0).0,
        until_unix_ns: case.course.span_unix_ns(candidate.ticks.1).1,
    };
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
            .of(&candidate.file, None)
            .fact("read, of its size", share, "share")
            .fact("bytes read", candidate.read.bytes as f64, "B")
            .fact("log written", log.bytes as f64, "B")
            .fact("data written", data.bytes as f64, "B")
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
            .fact("mean size of a log write", log.average_bytes().known().unwrap_or(f64::NAN), "B")
            .fact("otherwise", outside.0.average_bytes().known().unwrap_or(f64::NAN), "B")
            .next("whether it must run then, or at all: rebuild what is fragmented, at a quiet hour, online where possible"),
    )
}

/// The log's writes at other times, and how long these are.
fn outside(case: &SourceCase, (from, to): (usize, usize)) -> (Ops, u64) {
    let last = case.course.ticks.len() - 1;
    let before = case.timeline.over(Sum::Log, 1..=from.saturating_sub(1)).write;
    let after = case.timeline.over(Sum::Log, (to + 1).min(last + 1)..=last).write;
    let others = (1..=last).filter(|at| !(from..=to).contains(at));
    (before.plus(after), sum(others.map(|at| case.course.wall_ns(at))))
}
