//! Resources of a measurement that are in doubt.

use capability::{Capability, Origin, ResourceName};
use history::History;
use terminal::Failure;
use workload::TargetFacts;

/// The measurement of a storage, and those of its resources whose observed figures contradict it for a day.
///
/// # Errors
/// It was never measured; the history cannot be read.
pub fn in_doubt(history: &History, facts: &TargetFacts) -> Result<(Capability, Vec<ResourceName>), Failure> {
    let mut known = history.known_capabilities(facts)?.into_iter().map(|(_, capability)| capability);
    let measured = known.find(|known| known.origin == Origin::Measured);
    let measured = measured.ok_or_else(|| {
        Failure::new(format_args!("{} was never measured: there is nothing to refresh", facts.path))
            .with_remedy(format_args!("headroom measure {}", facts.path))
    })?;
    let seen = history.seen(facts)?;
    let lasting = seen.iter().flat_map(|seen| seen.lasting_contradictions(measured.measured_unix_ns));
    let names = lasting.map(|one| one.name).collect();
    Ok((measured, names))
}
