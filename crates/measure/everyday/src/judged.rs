use crate::Observer;
use capability::Capability;
use filestats::ServiceLevel;
use history::History;
use storage::Target;
use verdict::{Observation, Verdict, judge};
use workload::{Caching, TargetFacts};

/// A volume of a database, and the verdict on it alone.
pub struct JudgedVolume {
    /// A directory on it, or its mount point.
    pub target: Target,
    /// What was observed of it.
    pub observation: Observation,
    /// What it can give; `None` where it was never measured.
    pub capability: Option<Capability>,
    /// The verdict.
    pub verdict: Verdict,
}

/// Judges what was observed of each volume, the given one first. `known` looks up what a volume can give.
///
/// # Errors
/// Those of `known`.
pub fn judge_volumes<E>(
    observer: &mut Observer<'_>,
    service_level: &ServiceLevel,
    mut known: impl FnMut(&Target) -> Result<Option<Capability>, E>,
) -> Result<Vec<JudgedVolume>, E> {
    let volumes = observer.observations().into_iter().map(|(target, observation)| {
        let capability = known(&target)?;
        let verdict = judge(&observation, capability.as_ref(), service_level);
        Ok(JudgedVolume { target, observation, capability, verdict })
    });
    volumes.collect()
}

/// What the history knows of the storage. What was measured through the page cache says nothing of it.
///
/// # Errors
/// The history cannot be read.
pub fn stored_capability(
    history: &History,
    target: &TargetFacts,
    caching: Caching,
) -> Result<Option<Capability>, history::Error> {
    let stored = history.latest_capability(target)?.map(|(_, capability)| capability);
    Ok(stored.filter(|stored| stored.conditions.caching == caching))
}
