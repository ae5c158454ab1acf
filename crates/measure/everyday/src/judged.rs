use crate::Observer;
use capability::{Capability, Origin};
use filestats::ServiceLevel;
use history::History;
use seen::Seen;
use storage::Target;
use verdict::{Observation, Verdict, judge};
use workload::{Caching, TargetFacts};

/// A volume of a database, and the verdict on it alone.
#[derive(Clone)]
pub struct JudgedVolume {
    /// A directory on it, or its mount point.
    pub target: Target,
    /// Its observation.
    pub observation: Observation,
    /// Its capability; `None` where it is not known.
    pub capability: Option<Capability>,
    /// The verdict.
    pub verdict: Verdict,
}

impl JudgedVolume {
    /// Judges the same observation by a better capability.
    pub fn judge_again(&mut self, capability: Capability, service_level: &ServiceLevel) {
        self.verdict = judge(&self.observation, Some(&capability), service_level);
        self.capability = Some(capability);
    }
}

/// Known performance of a storage: the one place where every judgement finds it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Known {
    /// The best known capability: measured, else borrowed, else declared.
    pub capability: Option<Capability>,
    /// Limits that its owner or provider states, where `capability` is something better.
    pub declared: Option<Capability>,
    /// Performance that it was seen to reach.
    pub seen: Option<Seen>,
}

impl Known {
    /// Reads what the history knows. A measurement through the page cache says nothing of the storage.
    ///
    /// # Errors
    /// The history cannot be read.
    pub fn read(history: &History, target: &TargetFacts, caching: Caching) -> Result<Known, history::Error> {
        let stored = history.known_capabilities(target)?.into_iter().map(|(_, capability)| capability);
        let mut stored = stored.filter(|stored| stored.conditions.caching == caching);
        // The best known capability comes first.
        let capability = stored.next();
        let declared = stored.find(|stored| stored.origin == Origin::Declared);
        let seen = history.seen(target)?.filter(|seen| !seen.is_empty());
        Ok(Known { capability, declared, seen })
    }

    /// Adds burst credits as they are now: a declared volume gives more while it has some.
    #[must_use]
    pub fn with_credits(self) -> Known {
        let credits = self.seen.as_ref().map_or(&[][..], |seen| &seen.credits);
        let [capability, declared] =
            [self.capability, self.declared].map(|known| known.map(|known| known.with_credits(credits)));
        Known { capability, declared, seen: self.seen }
    }

    /// Only what was just measured.
    pub fn measured(capability: Capability) -> Known {
        Known { capability: Some(capability), ..Known::default() }
    }
}

/// Judges what was observed of each volume, the given one first. `known` looks up what is known of a volume.
///
/// # Errors
/// Those of `known`.
pub fn judge_volumes<E>(
    observer: &mut Observer<'_>,
    service_level: &ServiceLevel,
    mut known: impl FnMut(&Target) -> Result<Known, E>,
) -> Result<Vec<JudgedVolume>, E> {
    let volumes = observer.observations().into_iter().map(|(target, observation)| {
        let Known { capability, declared, seen } = known(&target)?;
        let observation = Observation { seen, declared, ..observation };
        let verdict = judge(&observation, capability.as_ref(), service_level);
        Ok(JudgedVolume { target, observation, capability, verdict })
    });
    volumes.collect()
}
