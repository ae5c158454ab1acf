use capability::{Binding, Bound, Burst, Capability, Credit, Origin, Resource};
use seen::{CONTRADICTS, Seen};
use workload::Cap;

/// The known figures of a storage, of any origin.
#[derive(Clone, Debug, PartialEq)]
pub struct KnownStorage {
    /// The directory that was named.
    pub target: String,
    /// The time of the question, nanoseconds since 1970.
    pub now_unix_ns: u64,
    /// The newest capability of each origin, the best known first.
    pub capabilities: Vec<Capability>,
    /// Its observed figures.
    pub seen: Option<Seen>,
    /// Limits that control groups of this host set on its devices, each for its own processes; `None` where that was not
    /// read.
    pub caps: Option<Vec<Cap>>,
}

/// Burst credits of a declared limit.
pub(crate) struct KnownCredit {
    pub of: Binding,
    pub burst: Burst,
    /// I/Os or bytes that are saved, at least.
    pub saved: f64,
    /// How long that lasts at the full rate of the burst, seconds.
    pub lasts_s: f64,
}

impl KnownStorage {
    /// The credits of each declared limit that saves some.
    pub(crate) fn credits(&self) -> Vec<KnownCredit> {
        let limits = self.capabilities.iter().filter_map(|known| known.cost_model.as_ref());
        let limits = limits.flat_map(|model| &model.limits);
        let credit = |limit: &capability::RateLimit| {
            let kept = self.seen.iter().flat_map(|seen| &seen.credits).find(|credit| credit.of == limit.of);
            let credit = kept.copied().unwrap_or(Credit::new(limit.of));
            let lasts_s = credit.lasts_s(limit)?;
            Some(KnownCredit { of: limit.of, burst: limit.burst?, saved: credit.saved, lasts_s })
        };
        limits.filter_map(credit).collect()
    }

    /// All figures: those of one resource together, the best known first.
    pub fn resources(&self) -> Vec<Resource> {
        let of_capabilities = self.capabilities.iter().flat_map(Capability::resources);
        let mut all: Vec<Resource> = of_capabilities.collect();
        all.extend(self.seen.iter().flat_map(Seen::resources));
        all.sort_by_key(|resource| resource.name);
        all
    }

    /// Observed figures that contradict other known figures.
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
