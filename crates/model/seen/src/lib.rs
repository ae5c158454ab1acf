//! Observed performance of a storage, learned from the I/O of others: no load of our own.
//!
//! ```text
//! Second   rates, bytes and outstanding I/Os of reads and of writes, about a second
//!    │  Learner::observe
//!    v
//! Window   five seconds without a gap
//!    ├─ reached     rates that were held for three windows, and that no other such rates exceed in all respects     at least
//!    ├─ saturation  throughput stopped growing while outstanding I/Os doubled, and only there latency grew           exact
//!    │              or as much passed as a limit that is set on this host allows
//!    └─ rest        latency with at most one I/O outstanding; another one for long means another storage             start over
//!                   the same of commits, by those that happen anyway
//!    v
//! Seen     what is kept: some kilobytes for each volume
//! ```
//!
//! A rate that was reached is a lower bound: it never says that a storage is full. The multiple of a demand that was carried
//! ([`Seen::carried`]) is read from rates that were held *at the same time*, in operations and bytes of both directions, so
//! that no assumption about what reads and writes share is made.
//!
//! The change-point test is Page's cumulative sum (Page 1954) of the logarithm of latency at rest; a new, lower saturation and
//! rates above an old one are contradictions as well. Then what was seen before is forgotten. Pure: no I/O, no clock.

mod contradiction;
mod learner;
mod reached;
mod rest;
mod saturation;
mod window;

pub use contradiction::{CONTRADICTS, Contradiction};
pub use learner::{Learner, REST_BYTES_MAX};
pub use reached::Reached;
pub use rest::Rest;
pub use saturation::Saturated;
pub use window::{Commits, LIMITED, Limit, Second, Side};

use capability::{Binding, Bound, Credit, Flow, Origin, Resource, ResourceName, Utilisation};
use reached::Rates;
use serde::{Deserialize, Serialize};

/// Observed performance of a storage.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Seen {
    /// From when on, nanoseconds since 1970; 0 where nothing was seen.
    pub since_unix_ns: u64,
    /// Until when.
    pub until_unix_ns: u64,
    /// Seconds of it that were observed.
    pub observed_s: f64,
    /// When what was known before was forgotten last, because the storage had changed.
    pub forgotten_unix_ns: Option<u64>,
    /// Rates that were held; none of them is exceeded by another in all respects.
    pub reached: Vec<Reached>,
    /// Resources that were full.
    pub saturated: Vec<Saturated>,
    /// Reads with nothing in their way.
    pub read_rest: Rest,
    /// Writes with nothing in their way.
    pub write_rest: Rest,
    /// Commits with nothing in their way.
    #[serde(default)]
    pub commit_rest: Rest,
    /// When the capability was measured that it was compared with last; 0 where with none.
    #[serde(default)]
    pub compared_unix_ns: u64,
    /// Where it contradicts that.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub contradictions: Vec<Contradiction>,
    /// Burst credits that it has saved, at least; of a declared volume that saves some.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub credits: Vec<Credit>,
}

impl Seen {
    /// Whether anything is known.
    pub fn is_empty(&self) -> bool {
        self.reached.is_empty() && self.saturated.is_empty()
    }

    /// The multiple of these flows that was carried at least, and the rates that show it; `None` where nothing like
    /// them was seen.
    pub fn carried(&self, flows: &[Flow]) -> Option<(f64, &Reached)> {
        let demand = Rates::from_flows(flows);
        let times = self.reached.iter().filter_map(|reached| Some((reached.rates.times(&demand)?, reached)));
        times.max_by(|(a, _), (b, _)| a.total_cmp(b))
    }

    /// Share that these flows use of a resource that was seen full: the one that is used most, among those that were full with
    /// I/Os like these. `None` where there is none. Limits of this host count otherwise, and are not among them.
    pub fn utilisation(&self, flows: &[Flow]) -> Option<(Utilisation, &Saturated)> {
        let demand = Rates::from_flows(flows);
        let used =
            self.saturated.iter().filter(|saturated| saturated.limit.is_none()).filter_map(|saturated| {
                let binding = binding(saturated.name)?;
                Some((Utilisation { value: saturated.share(&demand)?, binding }, saturated))
            });
        used.max_by(|(a, _), (b, _)| a.value.total_cmp(&b.value))
    }

    /// Whether I/Os like those with which a resource was full were carried at a clearly higher rate than that.
    pub fn exceeds(&self, full: &Saturated) -> bool {
        let share = |reached: &Reached| full.share(&reached.rates);
        self.reached.iter().filter_map(share).any(|share| share > CONTRADICTS)
    }

    /// Its figures, a few: full resources first, then what was reached of the others, then times at rest.
    pub fn resources(&self) -> Vec<Resource> {
        let full = self.saturated.iter().map(Saturated::resource);
        let mut found: Vec<Resource> = full.collect();
        let names = [
            ResourceName::ReadOperations,
            ResourceName::WriteOperations,
            ResourceName::ReadBandwidth,
            ResourceName::WriteBandwidth,
        ];
        for name in names {
            let most =
                self.reached.iter().max_by(|a, b| a.rates.figure(name).total_cmp(&b.rates.figure(name)));
            let most = most.filter(|most| most.rates.figure(name) > 0.0);
            let is_known = |most: &&Reached| {
                // By chance, a little more passes in a window.
                let is_most = |full: &Resource| full.value * CONTRADICTS >= most.rates.figure(name);
                found.iter().any(|full| full.name == name && is_most(full))
            };
            found.extend(most.filter(|most| !is_known(most)).map(|most| most.resource(name)));
        }
        let rests = [
            (ResourceName::ReadLatency, &self.read_rest),
            (ResourceName::WriteLatency, &self.write_rest),
            (ResourceName::CommitLatency, &self.commit_rest),
        ];
        for (name, rest) in rests {
            found.extend(rest.median_ns().map(|value| Resource {
                name,
                value,
                unit: name.unit(),
                bound: Bound::Exact,
                interval: rest.middle_half_ns(),
                io_bytes: None,
                write_percent: None,
                from: Origin::Seen,
                at_unix_ns: self.until_unix_ns,
            }));
        }
        found
    }
}

/// The resource of a utilisation.
fn binding(name: ResourceName) -> Option<Binding> {
    Some(match name {
        ResourceName::ReadOperations => Binding::ReadOperations,
        ResourceName::WriteOperations => Binding::WriteOperations,
        ResourceName::Operations => Binding::Operations,
        ResourceName::ReadBandwidth => Binding::ReadBandwidth,
        ResourceName::WriteBandwidth => Binding::WriteBandwidth,
        ResourceName::Bandwidth => Binding::Bandwidth,
        ResourceName::ReadLatency | ResourceName::WriteLatency | ResourceName::CommitLatency => return None,
    })
}
