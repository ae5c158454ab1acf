//! Background jobs, recognised by their counters: checkpoints, vacuum, backup, index rebuild. Each states its evidence.

mod backup;
pub(crate) mod candidates;
mod checkpoint;
mod rebuild;

pub(crate) use backup::backups;
pub(crate) use checkpoint::checkpoints;
pub(crate) use rebuild::rebuilds;

use crate::case::{FileCase, episodes, spans};
use crate::{Direction, Finding, FindingKind};
use filestats::{Counters, FileKind};
use findings::{Weight, words};
use workload::Unit;

/// PostgreSQL counts what a vacuum does apart: `autovacuum worker/relation/vacuum`.
pub(crate) fn vacuum_by_name(case: &FileCase) -> Vec<Finding> {
    let file = &case.file.file;
    if file.kind != FileKind::Data || !file.path.ends_with("/relation/vacuum") {
        return Vec::new();
    }
    let known = case.file.steps.iter().filter_map(|step| step.added.known());
    let Some(all) = known.reduce(Counters::followed_by).filter(|all| all.operations() > 0) else {
        return Vec::new();
    };
    let mut readings = [case.readings(Direction::Read), case.readings(Direction::Write)].concat();
    readings.sort_by_key(|reading| reading.at);
    let episodes = episodes(&readings);
    let text = format!(
        "looks like a vacuum: the server counts {} read and {} written in its own context of vacuums ({})",
        words::bytes(all.read.bytes),
        words::bytes(all.write.bytes),
        file.path,
    );
    let finding = Finding::new(FindingKind::Vacuum, Weight::Note, text)
        .about(file, None)
        .fact("bytes read", all.read.bytes as f64, Unit::Bytes)
        .fact("bytes written", all.write.bytes as f64, Unit::Bytes)
        .when(spans(&episodes))
        .stall(all.stall_ns().known().unwrap_or(0))
        .next("where it disturbs: its cost delay and limits; where it never ends: more workers or more memory for it");
    vec![finding]
}
