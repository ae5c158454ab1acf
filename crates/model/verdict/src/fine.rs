//! For how long a storage has been fine: a verdict is on a while, of which the first part may have been bad.

use crate::{Observation, VerdictKind, judge};
use capability::Capability;
use filestats::ServiceLevel;
use std::time::Duration;

/// Parts that are judged by themselves: shorter ones have too few I/Os.
const PART: Duration = Duration::from_secs(5);

/// How long it was fine without a break until the end of the observation, at most `most`; in steps of five seconds. A part of which
/// nothing can be said is not fine, unless the database was idle.
pub fn fine_for(
    observation: &Observation,
    capability: Option<&Capability>,
    service_level: &ServiceLevel,
    most: Duration,
) -> Duration {
    let ns = |parts: u32| u64::try_from((PART * parts).as_nanos()).unwrap_or(u64::MAX);
    let is_fine = |part: u32| {
        let part = observation.between(ns(part + 1), ns(part));
        let kind = judge(&part, capability, service_level).verdict;
        part.is_idle() || kind != VerdictKind::CannotSay && !kind.needs_action()
    };
    let parts = (1..).take_while(|parts| PART * *parts <= most && is_fine(parts - 1));
    PART * parts.last().unwrap_or(0)
}
