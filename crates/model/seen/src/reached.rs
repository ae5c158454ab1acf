use capability::{Bound, Flow, Origin, Resource, ResourceName, Side};
use serde::{Deserialize, Serialize};

/// I/Os and bytes a second of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Rate {
    /// I/Os a second.
    pub ios: f64,
    /// Bytes a second.
    pub bytes: f64,
}

/// Rates at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Rates {
    /// Reads.
    pub reads: Rate,
    /// Writes.
    pub writes: Rate,
}

/// Rates that a storage held for a while.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reached {
    /// Until when it held them last, nanoseconds since 1970.
    pub at_unix_ns: u64,
    /// Each of them at least, all the while.
    pub rates: Rates,
    /// I/Os outstanding on average.
    pub outstanding: f64,
}

/// Rates that are kept. With four figures each that is 3 KiB.
const REACHED_MAX: usize = 48;
/// Rates that exceed others by no more than this are the same.
const SAME: f64 = 1.02;
/// A direction with a smaller share of the I/Os and of the bytes does not decide how often a demand was carried.
const SHARE_MIN: f64 = 0.02;

impl Rate {
    fn at_least(self, other: Rate) -> Rate {
        Rate { ios: self.ios.min(other.ios), bytes: self.bytes.min(other.bytes) }
    }

    /// Mean bytes of an I/O.
    pub(crate) fn bytes_each(self) -> f64 {
        if self.ios > 0.0 { self.bytes / self.ios } else { 0.0 }
    }
}

impl Rates {
    /// The rates of flows, of all patterns together.
    pub(crate) fn from_flows(flows: &[Flow]) -> Rates {
        let side = |side: Side| {
            let of_side = flows.iter().filter(|flow| flow.side == side);
            of_side.fold(Rate::default(), |sum, flow| Rate {
                ios: sum.ios + flow.per_second,
                bytes: sum.bytes + flow.per_second * flow.bytes,
            })
        };
        Rates { reads: side(Side::Read), writes: side(Side::Write) }
    }

    /// Both directions together.
    pub(crate) fn both(&self) -> Rate {
        Rate { ios: self.reads.ios + self.writes.ios, bytes: self.reads.bytes + self.writes.bytes }
    }

    /// Share of writes among the I/Os, 0 to 1.
    pub(crate) fn write_share(&self) -> f64 {
        let all = self.both().ios;
        if all > 0.0 { self.writes.ios / all } else { 0.0 }
    }

    /// The rates that both reach at least.
    pub(crate) fn at_least(self, other: Rates) -> Rates {
        Rates { reads: self.reads.at_least(other.reads), writes: self.writes.at_least(other.writes) }
    }

    fn figures(&self) -> [f64; 4] {
        [self.reads.ios, self.reads.bytes, self.writes.ios, self.writes.bytes]
    }

    /// The multiple of the demand that fits into these rates in all respects; `None` for a demand of nothing.
    pub(crate) fn times(&self, demand: &Rates) -> Option<f64> {
        let all = demand.both();
        let counts = |rate: Rate| rate.ios > SHARE_MIN * all.ios || rate.bytes > SHARE_MIN * all.bytes;
        let [reads, writes] = [counts(demand.reads), counts(demand.writes)];
        let counted = [reads, reads, writes, writes];
        let figures = self.figures().into_iter().zip(demand.figures()).zip(counted);
        let times = figures.filter(|((_, demand), counts)| *counts && *demand > 0.0);
        times.map(|((held, demand), _)| held / demand).min_by(f64::total_cmp)
    }

    fn is_covered_by(&self, other: &Rates) -> bool {
        self.figures().into_iter().zip(other.figures()).all(|(own, other)| own <= other * SAME)
    }

    /// The figure of a resource.
    pub(crate) fn figure(&self, name: ResourceName) -> f64 {
        match name {
            ResourceName::ReadOperations => self.reads.ios,
            ResourceName::WriteOperations => self.writes.ios,
            ResourceName::Operations => self.both().ios,
            ResourceName::ReadBandwidth => self.reads.bytes,
            ResourceName::WriteBandwidth => self.writes.bytes,
            ResourceName::Bandwidth => self.both().bytes,
            ResourceName::ReadLatency | ResourceName::WriteLatency | ResourceName::CommitLatency => 0.0,
        }
    }

    /// Mean bytes of the I/Os of a resource's direction.
    pub(crate) fn bytes_each(&self, name: ResourceName) -> f64 {
        match name {
            ResourceName::ReadOperations | ResourceName::ReadBandwidth => self.reads.bytes_each(),
            ResourceName::WriteOperations | ResourceName::WriteBandwidth => self.writes.bytes_each(),
            _ => self.both().bytes_each(),
        }
    }
}

impl Reached {
    /// The figure of one resource: a lower bound.
    pub(crate) fn resource(&self, name: ResourceName) -> Resource {
        Resource {
            name,
            value: self.rates.figure(name),
            unit: name.unit(),
            bound: Bound::AtLeast,
            interval: None,
            io_bytes: Some(self.rates.bytes_each(name)),
            write_percent: Some((self.rates.write_share() * 100.0).round() as u8),
            from: Origin::Seen,
            at_unix_ns: self.at_unix_ns,
        }
    }
}

/// Adds rates to those that are kept, where they are more in some respect.
pub(crate) fn keep(kept: &mut Vec<Reached>, new: Reached) {
    if new.rates.both().ios <= 0.0 {
        return;
    }
    if let Some(covers) = kept.iter_mut().find(|kept| new.rates.is_covered_by(&kept.rates)) {
        // These rates were reached again: they are as recent as that.
        if covers.rates.is_covered_by(&new.rates) {
            covers.at_unix_ns = new.at_unix_ns;
        }
        return;
    }
    kept.retain(|old| !old.rates.is_covered_by(&new.rates));
    kept.push(new);
    if kept.len() > REACHED_MAX {
        let missed: Vec<f64> = (0..kept.len()).map(|at| missed_without(kept, at)).collect();
        let least = (0..kept.len()).min_by(|a, b| missed[*a].total_cmp(&missed[*b]));
        if let Some(at) = least {
            kept.swap_remove(at);
        }
    }
}

/// The factor by which the nearest of the others would have to grow to replace one.
fn missed_without(kept: &[Reached], at: usize) -> f64 {
    let one = kept[at].rates;
    let others = kept.iter().enumerate().filter(|(other, _)| *other != at);
    others.filter_map(|(_, other)| other.rates.times(&one)).fold(0.0, f64::max).recip()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reached(reads: f64, writes: f64) -> Reached {
        let rate = |ios: f64| Rate { ios, bytes: ios * 8192.0 };
        Reached { at_unix_ns: 1, rates: Rates { reads: rate(reads), writes: rate(writes) }, outstanding: 1.0 }
    }

    #[test]
    fn only_rates_that_no_others_cover_are_kept() {
        let mut kept = Vec::new();
        for new in [reached(100.0, 0.0), reached(50.0, 50.0), reached(90.0, 0.0), reached(120.0, 60.0)] {
            keep(&mut kept, new);
        }
        assert_eq!(kept, [reached(120.0, 60.0)]);
        keep(&mut kept, reached(200.0, 1.0));
        assert_eq!(kept.len(), 2);
    }

    #[test]
    fn a_demand_was_carried_as_often_as_it_fits_into_rates_of_one_time() {
        let demand = reached(50.0, 10.0).rates;
        assert_eq!(reached(200.0, 20.0).rates.times(&demand), Some(2.0), "the writes decide");
        assert_eq!(reached(200.0, 0.0).rates.times(&demand), Some(0.0));
        let few_writes = reached(100.0, 1.0).rates;
        assert_eq!(reached(200.0, 0.0).rates.times(&few_writes), Some(2.0));
        assert_eq!(reached(1.0, 1.0).rates.times(&Rates::default()), None);
    }

    #[test]
    fn as_many_are_kept_as_there_is_room_for_and_the_extremes_are_among_them() {
        let mut kept = Vec::new();
        for step in 0..200 {
            keep(&mut kept, reached(1.03_f64.powi(step), 1.03_f64.powi(200 - step)));
        }
        assert_eq!(kept.len(), REACHED_MAX);
        let most = kept.iter().map(|one| one.rates.reads.ios).fold(0.0, f64::max);
        assert!(most >= 0.9 * 1.03_f64.powi(199), "{most}");
    }
}
