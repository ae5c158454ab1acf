use capability::Capability;
use everyday::stored_capability;
use history::History;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use storage::Target;
use workload::Caching;

/// What the history knows of each volume, for all watchers.
pub struct Capabilities {
    history: History,
    known: HashMap<String, Known>,
}

struct Known {
    read: Instant,
    capability: Option<Arc<Capability>>,
}

/// A measurement that ends while the agent runs is noticed within this time.
const READ_AGAIN: Duration = Duration::from_secs(30);

impl Capabilities {
    pub fn new(history: History) -> Capabilities {
        Capabilities { history, known: HashMap::new() }
    }

    /// What a volume can give. While the history cannot be read, what was known before holds.
    pub fn find(&mut self, target: &Target) -> Option<Arc<Capability>> {
        let place = place(target);
        let before = self.known.get(&place);
        if let Some(known) = before.filter(|known| known.read.elapsed() < READ_AGAIN) {
            return known.capability.clone();
        }
        let capability = match stored_capability(&self.history, target.facts(), Caching::Direct) {
            Ok(found) => found.map(Arc::new),
            Err(_) => before.and_then(|known| known.capability.clone()),
        };
        self.known.insert(place, Known { read: Instant::now(), capability: capability.clone() });
        capability
    }
}

/// The mount point of a target, else its path.
pub fn place(target: &Target) -> String {
    target.facts().mount.clone().unwrap_or_else(|| target.path().display().to_string())
}
