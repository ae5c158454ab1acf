use crate::scan::{KnownCapability, Scan, Volume};
use history::{Error, History};
use workload::{Caching, TargetFacts, TargetKind};

const SECOND_NS: u64 = 1_000_000_000;

/// Fills in the history's capability of each volume, as `check` looks it up: the newest measurement past the page cache.
///
/// # Errors
/// If the history cannot be read.
pub fn add_capabilities(scan: &mut Scan, history: &History) -> Result<(), Error> {
    let now_ns = scan.taken_unix_ns;
    let volumes = scan.databases.iter_mut().flat_map(|database| &mut database.volumes);
    for volume in volumes.filter(|volume| volume.is_visible) {
        let known = history.latest_capability(&identifying_facts(volume))?;
        let known = known.filter(|(_, capability)| {
            capability.origin.is_measured() && capability.conditions.caching == Caching::Direct
        });
        volume.capability = known.map(|(id, capability)| KnownCapability {
            id: id.0,
            measured_unix_ns: capability.measured_unix_ns,
            age_s: now_ns.saturating_sub(capability.measured_unix_ns) / SECOND_NS,
        });
    }
    Ok(())
}

/// Mount and device, which identify a volume in the history. The facts that need an open file are left out: nothing is
/// written to a volume that another user uses.
fn identifying_facts(volume: &Volume) -> TargetFacts {
    TargetFacts {
        path: volume.mount.clone(),
        kind: TargetKind::Directory,
        filesystem: Some(volume.filesystem.clone()),
        mount: Some(volume.mount.clone()),
        free_bytes: 0,
        devices: volume.number.map(host::device_chain).unwrap_or_default(),
        direct_align_bytes: None,
        memory_align_bytes: 1,
        caps: Vec::new(),
    }
}
