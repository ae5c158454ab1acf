//! A burst that comes again is one incident.

use crate::Incident;
use serde::{Deserialize, Serialize};
use verdict::VerdictKind;

/// Beginnings that are kept, the newest: enough to see a period, and the same few bytes after a year.
pub const STARTS_MAX: usize = 16;
/// The longest time between two beginnings of one recurring burst: a nightly job with an hour to spare.
const APART_NS_MAX: u64 = 25 * 3600 * 1_000_000_000;
/// Times between beginnings that differ by up to this part of the median are a period.
const PERIOD_SPREAD: f64 = 0.25;
/// Times between beginnings from which a period is stated.
const APART_MIN: usize = 2;

/// When a burst occurred.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recurrence {
    /// Occurrences after the first one.
    pub repeated: u64,
    /// When each began, the newest last, nanoseconds since 1970; empty where it occurred once.
    pub starts_unix_ns: Vec<u64>,
}

impl Recurrence {
    /// The time between two beginnings, where it is much the same each time.
    pub fn period_ns(&self) -> Option<u64> {
        let mut apart: Vec<u64> =
            self.starts_unix_ns.windows(2).map(|two| two[1].saturating_sub(two[0])).collect();
        if apart.len() < APART_MIN {
            return None;
        }
        apart.sort_unstable();
        let median = apart[apart.len() / 2];
        let alike = |ns: &u64| ns.abs_diff(median) as f64 <= median as f64 * PERIOD_SPREAD;
        (median > 0 && apart.iter().all(alike)).then_some(median)
    }
}

impl Incident {
    /// Whether `next`, which is about to be opened, is this closed one again.
    pub(crate) fn comes_again_as(&self, next: &Incident) -> bool {
        let last = self.recurrence.starts_unix_ns.last().copied().unwrap_or(self.started_unix_ns);
        let both_bursts = [self, next].iter().all(|one| one.verdict == VerdictKind::Burst);
        let apart_ns = next.started_unix_ns.checked_sub(last);
        both_bursts && apart_ns.is_some_and(|ns| ns <= APART_NS_MAX)
    }

    /// Opens it again as one more occurrence.
    pub(crate) fn repeat(&mut self, next: Incident) {
        let starts = &mut self.recurrence.starts_unix_ns;
        if starts.is_empty() {
            starts.push(self.started_unix_ns);
        }
        starts.push(next.started_unix_ns);
        let surplus = starts.len().saturating_sub(STARTS_MAX);
        starts.drain(..surplus);
        self.recurrence.repeated += 1;
        (self.ended_unix_ns, self.ending) = (None, None);
        (self.opened_unix_ns, self.last_bad_unix_ns) = (next.opened_unix_ns, next.last_bad_unix_ns);
        for held in next.held {
            self.add(held.verdict, held.held_ns, &held.worst);
        }
        self.last_bad_unix_ns = next.last_bad_unix_ns;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_period_is_stated_where_beginnings_are_evenly_apart() {
        let with = |starts: &[u64]| {
            Recurrence { repeated: 9, starts_unix_ns: starts.iter().map(|s| s * 1_000).collect() }.period_ns()
        };
        assert_eq!(with(&[0, 300, 605, 900]), Some(300_000));
        assert_eq!(with(&[0, 300, 900, 1_000]), None);
        assert_eq!((with(&[0, 300]), with(&[]), with(&[5, 5, 5])), (None, None, None));
    }
}
