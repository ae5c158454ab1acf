//! Waits beside stalls: where sessions wait longer than the files took, the waits are not the disk.

use crate::limits::WAITS_SHARE;
use crate::source_case::SourceCase;
use crate::{Finding, FindingKind};
use findings::{Weight, words};
use workload::Unit;

/// Most of what was waited for a class is not the disk's.
pub(crate) fn not_the_disk(case: &SourceCase) -> Vec<Finding> {
    let longer = case.waited.iter().filter(|(_, waited)| {
        waited.not_disk_ns > 0 && waited.not_disk_ns as f64 >= WAITS_SHARE * waited.wait_ns as f64
    });
    longer.map(|(class, waited)| {
        let text = format!(
            "the waits are not the disk: sessions waited {} for {class}, its files took {} all in all",
            words::length(waited.wait_ns as f64),
            words::length(waited.stall_ns as f64),
        );
        Finding::new(FindingKind::NotTheDisk, Weight::Warning, text)
            .fact("time waited", waited.wait_ns as f64, Unit::Ns)
            .fact("time the files took", waited.stall_ns as f64, Unit::Ns)
            .fact("of it where the waits are not the disk", waited.not_disk_ns as f64, Unit::Ns)
            .when(waited.not_disk.clone())
            .stall(waited.not_disk_ns)
            .next("what lies between the session and the file: CPU, locks on pages and on the log, network, a replica, a limit")
    })
    .collect()
}
