//! Signs of jobs in single files: collected file by file, judged once all files are known.

use crate::case::FileCase;
use crate::finding::Span;
use crate::limits::{
    APART_NS, BACKUP_WRITES, CANDIDATES_MAX, JOB_FILE_BYTES, LARGE_BYTES, REBUILD_FASTER, REBUILD_READ,
    WHOLE_FROM, WHOLE_UNTIL,
};
use filestats::{FileIdentity, FileKind, Ops};
use std::sync::Arc;

/// A file that was read from its beginning to its end, to all appearance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct WholeRead {
    /// Index of the file in the source.
    pub file: usize,
    pub span: Span,
    pub size_bytes: u64,
    pub read_bytes: u64,
    pub reads: u64,
}

/// The stretches of large reads that add up to about the file's size.
pub(crate) fn whole_reads(case: &FileCase, file: usize, found: &mut Vec<WholeRead>) {
    let Some(size_bytes) = case.file.size_bytes.known().filter(|size| *size >= JOB_FILE_BYTES) else {
        return;
    };
    if case.file.file.kind != FileKind::Data || !case.counts_requests() {
        return;
    }
    let mut runs: Vec<WholeRead> = Vec::new();
    for step in &case.file.steps {
        let Some(added) = step.added.known() else { continue };
        let large = added.read.average_bytes().known().is_some_and(|bytes| bytes >= LARGE_BYTES);
        if !large || added.write.bytes as f64 > BACKUP_WRITES * added.read.bytes as f64 {
            continue;
        }
        let span = Span::of_ticks(case.series, step.at, step.at);
        let near = APART_NS.max(2 * span.length_ns());
        match runs.last_mut() {
            Some(run) if span.from_unix_ns.saturating_sub(run.span.until_unix_ns) <= near => {
                run.span.until_unix_ns = span.until_unix_ns;
                run.read_bytes = run.read_bytes.saturating_add(added.read.bytes);
                run.reads = run.reads.saturating_add(added.read.count);
            }
            _ => runs.push(WholeRead {
                file,
                span,
                size_bytes,
                read_bytes: added.read.bytes,
                reads: added.read.count,
            }),
        }
    }
    let whole = |run: &WholeRead| {
        let times = run.read_bytes as f64 / size_bytes as f64;
        (WHOLE_FROM..=WHOLE_UNTIL).contains(&times)
    };
    runs.into_iter().filter(whole).for_each(|run| push_bounded(found, run));
}

/// A file that was read far faster than usual, most of it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Rebuild {
    pub file: Arc<FileIdentity>,
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

/// Suffix of a visibility map's name (PostgreSQL).
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
            (step.added.known(), case.series.elapsed_ns(step.at, case.settings.rules).known())
        else {
            continue;
        };
        let rate = added.read.bytes as f64 / (elapsed_ns as f64 / 1e9);
        if added.read.bytes == 0 || rate < REBUILD_FASTER * usual {
            continue;
        }
        let stall_ns = added.stall_ns().known().unwrap_or(0);
        let (from_unix_ns, until_unix_ns) = case.series.span_unix_ns(step.at);
        let near = APART_NS.min(2 * until_unix_ns.saturating_sub(from_unix_ns));
        match runs.last_mut() {
            Some(run) if from_unix_ns.saturating_sub(case.series.span_unix_ns(run.ticks.1).1) <= near => {
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
        let elapsed_ns = case.series.elapsed_ns(at, case.settings.rules).known()?;
        Some(bytes as f64 / (elapsed_ns as f64 / 1e9))
    };
    let known = case.file.steps.iter().filter_map(|step| Some((step.at, step.added.known()?.read.bytes)));
    let mut rates: Vec<f64> = known.filter_map(rate).collect();
    let idle = case.series.ticks.len().saturating_sub(1 + case.file.steps.len());
    rates.sort_by(f64::total_cmp);
    let middle = (rates.len() + idle) / 2;
    middle.checked_sub(idle).and_then(|at| rates.get(at)).copied().unwrap_or(0.0)
}

/// A list with an end.
fn push_bounded<T>(list: &mut Vec<T>, item: T) {
    if list.len() < CANDIDATES_MAX {
        list.push(item);
    }
}
