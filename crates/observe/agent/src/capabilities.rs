use capability::Capability;
use everyday::Known;
use history::{History, is_same_storage};
use seen::{Learner, Seen};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use storage::Target;
use verdict::{Moment, Observation};
use workload::{Caching, TargetFacts};

/// The known state of each volume, shared by all watchers: from the history, and from observation now.
pub struct Capabilities {
    history: History,
    volumes: HashMap<String, Volume>,
}

struct Volume {
    read: Instant,
    known: Known,
    /// That of `known`, for those who keep it.
    capability: Option<Arc<Capability>>,
    facts: TargetFacts,
    learner: Learner,
    /// Whether something was learned that is not saved.
    is_changed: bool,
}

/// A measurement that ends while the agent runs is noticed within this time.
const READ_AGAIN: Duration = Duration::from_secs(30);

impl Capabilities {
    pub fn new(history: History) -> Capabilities {
        Capabilities { history, volumes: HashMap::new() }
    }

    /// The known state of a volume. While the history cannot be read, the state known before holds.
    pub fn find(&mut self, target: &Target) -> Known {
        let volume = self.volume(target);
        let seen = volume.learner.seen();
        Known { seen: (!seen.is_empty()).then(|| seen.clone()), ..volume.known.clone() }.with_credits()
    }

    /// The known capability of a volume.
    pub fn capability(&mut self, target: &Target) -> Option<Arc<Capability>> {
        self.volume(target).capability.clone()
    }

    fn volume(&mut self, target: &Target) -> &Volume {
        let place = target.place();
        let before = self.volumes.get(&place);
        if before.is_none_or(|volume| volume.read.elapsed() >= READ_AGAIN) {
            let found = Known::read(&self.history, target.facts(), Caching::Direct);
            self.keep(place.clone(), target, found.ok());
        }
        &self.volumes[&place]
    }

    fn keep(&mut self, place: String, target: &Target, found: Option<Known>) {
        let now = Instant::now();
        match self.volumes.get_mut(&place) {
            Some(volume) => {
                volume.read = now;
                // Another storage at the same place is learned from the beginning.
                if !is_same_storage(&volume.facts, target.facts()) {
                    let seen = found.as_ref().and_then(|known| known.seen.clone());
                    volume.learner = Learner::new(seen.unwrap_or_default());
                }
                volume.facts = target.facts().clone();
                if let Some(known) = found {
                    volume.capability = known.capability.clone().map(Arc::new);
                    volume.known = known;
                }
            }
            None => {
                let known = found.unwrap_or_default();
                let learner = Learner::new(known.seen.clone().unwrap_or_default());
                let facts = target.facts().clone();
                let capability = known.capability.clone().map(Arc::new);
                let volume = Volume { read: now, known, capability, facts, learner, is_changed: false };
                self.volumes.insert(place, volume);
            }
        }
    }

    /// Learns from the moments of a volume that are new.
    pub fn learn(&mut self, target: &Target, observation: &Observation) {
        let Some(volume) = self.volumes.get_mut(&target.place()) else { return };
        for second in observation.moments.iter().filter_map(Moment::second) {
            volume.is_changed |= volume.learner.observe(&second);
        }
        if let (true, Some(capability)) = (volume.is_changed, &volume.capability) {
            volume.learner.compare(capability);
        }
    }

    /// Observations that changed since the last call.
    pub fn take_changed(&mut self) -> Vec<(TargetFacts, Seen)> {
        let taken = self.volumes.values_mut().filter_map(|volume| {
            let is_changed = std::mem::take(&mut volume.is_changed);
            is_changed.then(|| (volume.facts.clone(), volume.learner.seen().clone()))
        });
        taken.collect()
    }
}
