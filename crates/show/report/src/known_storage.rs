use capability::{Bound, Capability, Origin, Resource};
use seen::Seen;

/// What is known of a storage, wherever it comes from.
#[derive(Clone, Debug, PartialEq)]
pub struct KnownStorage {
    /// The directory that was named.
    pub target: String,
    /// The time of the question, nanoseconds since 1970.
    pub now_unix_ns: u64,
    /// The newest capability of each origin, what is known best first.
    pub capabilities: Vec<Capability>,
    /// What it was seen to give.
    pub seen: Option<Seen>,
}

/// Figures that differ by more than this factor contradict each other.
const CONTRADICTS: f64 = 1.15;

impl KnownStorage {
    /// All figures: those of one resource together, what is known best first.
    pub fn resources(&self) -> Vec<Resource> {
        let of_capabilities = self.capabilities.iter().flat_map(Capability::resources);
        let mut all: Vec<Resource> = of_capabilities.collect();
        all.extend(self.seen.iter().flat_map(Seen::resources));
        all.sort_by_key(|resource| resource.name);
        all
    }

    /// Where what was seen contradicts what is known otherwise.
    pub(crate) fn contradictions(&self) -> Vec<String> {
        let all = self.resources();
        let seen = all.iter().filter(|one| one.from == Origin::Seen && one.unit != workload::Unit::Ns);
        let pairs = seen.filter_map(|seen| {
            let other = all.iter().find(|other| other.name == seen.name && other.from != Origin::Seen)?;
            Some((seen, other))
        });
        let contradict = pairs.filter_map(|(seen, other)| {
            let times = seen.value / other.value;
            let alike = || {
                let size = seen.io_bytes.zip(other.io_bytes).map_or(1.0, |(seen, other)| seen / other);
                (0.66..=1.5).contains(&size)
            };
            let more = times > CONTRADICTS && other.bound == Bound::Exact && alike();
            let less = times < 1.0 / CONTRADICTS && seen.bound == Bound::Exact && alike();
            let name = seen.name;
            (more || less).then(|| {
                let (from, times) = (other.from, crate::number::times(times));
                format!("{name} was seen to be {times} the {from} figure: the storage changed, or the figure is wrong")
            })
        });
        contradict.collect()
    }
}
