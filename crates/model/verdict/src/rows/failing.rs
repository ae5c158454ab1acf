//! Storage that fails I/Os or has no space for them.

use crate::case::Case;
use crate::evidence::Grounds;
use workload::{DeviceTrouble, format_count};

pub(crate) fn failing(case: &Case) -> Option<Grounds> {
    if let Some(full) = case.full_pool() {
        return Some(Grounds {
            summary: format!("{full}: what writes to new blocks waits for space or fails"),
            evidence: Vec::new(),
            next_step: format!(
                "give the pool {} space (lvextend; for device mapper, a larger data device), or free some: fstrim, snapshots \
                 that are no longer needed; then check the file systems on it",
                full.device()
            ),
        });
    }
    let failed: u64 = case.observation.failures.iter().map(|one| one.count).sum();
    if failed == 0 {
        return None;
    }
    let files = case.observation.failures.len();
    let on = match case.observation.failures.as_slice() {
        [one] => one.path.clone(),
        _ => format!("{files} files"),
    };
    Some(Grounds {
        summary: format!("storage failed {} I/Os of the database, on {on}", format_count(failed)),
        evidence: Vec::new(),
        next_step: "look at the kernel's log (dmesg) for the device that failed them and at the disk's own state (smartctl, \
                    nvme smart-log); make sure that there is a backup before anything else is written"
            .into(),
    })
}

impl Case<'_> {
    fn full_pool(&self) -> Option<&DeviceTrouble> {
        self.observation.troubles.iter().find(|one| matches!(one, DeviceTrouble::PoolFull { .. }))
    }

    /// Whether storage fails, so that nothing else is the cause.
    pub fn fails(&self) -> bool {
        self.full_pool().is_some() || !self.observation.failures.is_empty()
    }
}
