//! Contradictions of seen and measured figures: by 15 %, better or worse, and for how long.

use crate::{Saturated, Seen};
use capability::{Bound, Resource, ResourceName};
use serde::{Deserialize, Serialize};
use workload::Unit;

/// A figure of a capability that the storage does not keep, or exceeds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Contradiction {
    /// The resource.
    pub name: ResourceName,
    /// Observed figure over the known figure: 0.7.
    pub times: f64,
    /// Since when, nanoseconds since 1970.
    pub since_unix_ns: u64,
    /// When it was seen last.
    pub until_unix_ns: u64,
}

/// Figures that differ by more than this factor contradict each other.
pub const CONTRADICTS: f64 = 1.15;
/// A contradiction that is seen again after this time is not the work of an hour: a day.
const LASTING_NS: u64 = 24 * 3_600 * 1_000_000_000;
/// Sizes that are alike.
const SIZE_ALIKE: f64 = 1.5;
/// Reads are compared with reads alone as long as fewer of the I/Os are writes, in percent; the same of writes.
const ONE_SIDED_PERCENT: u8 = 10;

impl Contradiction {
    /// Whether it lasts for a day already.
    pub fn is_lasting(&self) -> bool {
        self.until_unix_ns.saturating_sub(self.since_unix_ns) >= LASTING_NS
    }
}

/// An observation of one resource.
struct Occasion {
    times: f64,
    at_unix_ns: u64,
}

impl Seen {
    /// Compares with the figures of a capability of that time, of which only what was seen later says anything.
    pub fn compare(&mut self, known: &[Resource], measured_unix_ns: u64) {
        if self.compared_unix_ns != measured_unix_ns {
            self.contradictions.clear();
            self.compared_unix_ns = measured_unix_ns;
        }
        let limits = known.iter().filter(|one| one.bound == Bound::Exact && one.unit != Unit::Ns);
        for limit in limits {
            let Some(occasion) = self.occasion(limit, measured_unix_ns) else { continue };
            let contradicts = !(1.0 / CONTRADICTS..=CONTRADICTS).contains(&occasion.times);
            let at = self.contradictions.iter().position(|one| one.name == limit.name);
            let Some(at) = at else {
                if contradicts {
                    self.contradictions.push(Contradiction::new(limit.name, &occasion));
                }
                continue;
            };
            let known = &mut self.contradictions[at];
            if contradicts && (known.times > 1.0) == (occasion.times > 1.0) {
                known.times = occasion.times;
                known.until_unix_ns = known.until_unix_ns.max(occasion.at_unix_ns);
            } else if occasion.at_unix_ns > known.until_unix_ns {
                // Something newer says the opposite, or that all is as it was.
                match contradicts {
                    true => *known = Contradiction::new(limit.name, &occasion),
                    false => drop(self.contradictions.remove(at)),
                }
            }
        }
    }

    /// The newest of what was seen that says something of a limit: it was full, or gave at least as much.
    fn occasion(&self, limit: &Resource, after_unix_ns: u64) -> Option<Occasion> {
        let is_alike = |size: Option<f64>, write_percent: Option<u8>| {
            let size = size.zip(limit.io_bytes).map_or(1.0, |(seen, known)| seen / known);
            let writes = write_percent.zip(limit.write_percent);
            let writes = writes.is_none_or(|(seen, known)| seen.abs_diff(known) <= ONE_SIDED_PERCENT);
            (1.0 / SIZE_ALIKE..=SIZE_ALIKE).contains(&size) && writes
        };
        // A limit that was set on this host since is no change of the storage.
        let full = self.saturated.iter().filter(|full| full.name == limit.name && full.limit.is_none());
        let full = full.map(Saturated::resource);
        let reached = self.reached.iter().map(|reached| reached.resource(limit.name));
        // A rate that was reached refutes a lower limit, and says nothing where it is below.
        let reached = reached.filter(|reached| reached.value >= limit.value / CONTRADICTS);
        let seen = full
            .chain(reached)
            .filter(|seen| seen.at_unix_ns > after_unix_ns && is_alike(seen.io_bytes, seen.write_percent));
        let newest = seen.max_by(|a, b| a.at_unix_ns.cmp(&b.at_unix_ns).then(a.value.total_cmp(&b.value)))?;
        Some(Occasion { times: newest.value / limit.value, at_unix_ns: newest.at_unix_ns })
    }

    /// Contradictions of a capability of that time that lasted for a day or longer.
    pub fn lasting_contradictions(&self, measured_unix_ns: u64) -> impl Iterator<Item = &Contradiction> {
        let is_compared = self.compared_unix_ns == measured_unix_ns;
        self.contradictions.iter().filter(move |one| is_compared && one.is_lasting())
    }
}

impl Contradiction {
    fn new(name: ResourceName, occasion: &Occasion) -> Contradiction {
        Contradiction {
            name,
            times: occasion.times,
            since_unix_ns: occasion.at_unix_ns,
            until_unix_ns: occasion.at_unix_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Reached;
    use crate::reached::{Rate, Rates};
    use capability::Origin;

    const HOUR_NS: u64 = 3_600_000_000_000;

    fn limit(value: f64) -> Resource {
        let name = ResourceName::ReadOperations;
        Resource {
            name,
            value,
            unit: name.unit(),
            bound: Bound::Exact,
            interval: None,
            io_bytes: Some(8192.0),
            write_percent: Some(0),
            from: Origin::Measured,
            at_unix_ns: HOUR_NS,
        }
    }

    fn full(value: f64, hour: u64) -> Saturated {
        Saturated {
            name: ResourceName::ReadOperations,
            value,
            low: value,
            high: value,
            io_bytes: 8192.0,
            write_share: 0.0,
            outstanding: 16.0,
            windows: 40,
            at_unix_ns: hour * HOUR_NS,
            limit: None,
        }
    }

    fn reached(ios: f64, hour: u64) -> Reached {
        let reads = Rate { ios, bytes: ios * 8192.0 };
        let rates = Rates { reads, writes: Rate::default() };
        Reached { at_unix_ns: hour * HOUR_NS, rates, outstanding: 4.0 }
    }

    #[test]
    fn a_storage_that_is_full_at_less_for_a_day_contradicts_its_measurement() {
        let mut seen = Seen::default();
        for (hour, lasts) in [(10, false), (33, false), (34, true), (60, true)] {
            seen.saturated = vec![full(700.0, hour)];
            seen.compare(&[limit(1_000.0)], HOUR_NS);
            assert_eq!(seen.lasting_contradictions(HOUR_NS).count(), usize::from(lasts), "{hour}");
        }
        let found = seen.contradictions[0];
        assert_eq!((found.times, found.since_unix_ns), (0.7, 10 * HOUR_NS));
        // It gives as much as before again.
        seen.reached = vec![reached(950.0, 61)];
        seen.compare(&[limit(1_000.0)], HOUR_NS);
        assert_eq!(seen.contradictions, []);
    }

    #[test]
    fn more_than_was_measured_contradicts_it_too_and_less_that_was_only_reached_does_not() {
        let mut seen = Seen { reached: vec![reached(1_200.0, 10)], ..Seen::default() };
        seen.compare(&[limit(1_000.0)], HOUR_NS);
        seen.reached[0].at_unix_ns = 40 * HOUR_NS;
        seen.compare(&[limit(1_000.0)], HOUR_NS);
        assert_eq!(seen.lasting_contradictions(HOUR_NS).count(), 1);
        let mut idle = Seen { reached: vec![reached(100.0, 40)], ..Seen::default() };
        idle.compare(&[limit(1_000.0)], HOUR_NS);
        assert_eq!(idle.contradictions, []);
    }

    #[test]
    fn what_was_seen_before_the_measurement_with_other_ios_or_under_a_limit_says_nothing() {
        let mut seen = Seen { saturated: vec![full(700.0, 1)], ..Seen::default() };
        seen.compare(&[limit(1_000.0)], HOUR_NS);
        seen.saturated = vec![Saturated { io_bytes: 65_536.0, ..full(700.0, 9) }];
        seen.compare(&[limit(1_000.0)], HOUR_NS);
        seen.saturated = vec![Saturated { limit: Some(700.0), ..full(700.0, 9) }];
        seen.compare(&[limit(1_000.0)], HOUR_NS);
        seen.saturated = vec![Saturated { write_share: 0.5, ..full(700.0, 9) }];
        seen.compare(&[limit(1_000.0)], HOUR_NS);
        assert_eq!(seen.contradictions, []);
    }

    #[test]
    fn another_measurement_begins_again() {
        let mut seen = Seen { saturated: vec![full(700.0, 10)], ..Seen::default() };
        seen.compare(&[limit(1_000.0)], HOUR_NS);
        assert_eq!(seen.contradictions.len(), 1);
        seen.compare(&[limit(700.0)], 20 * HOUR_NS);
        assert_eq!(seen.contradictions, []);
    }
}
