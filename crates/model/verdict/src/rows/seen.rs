//! A storage that was never measured, judged by what it was seen to give. A rate that was reached is a lower bound: it says
//! that there is room, and never that a storage is full. Only a resource that was seen full says that.

use crate::case::{Case, Reference, Wait};
use crate::evidence::{BOTH, DEVICE, Grounds, SEEN};
use crate::figures::IOS_TO_COMPARE;
use crate::held_back::held_back;
use crate::thresholds::{RATIO_AGREES, RATIO_DEGRADED, UTILISATION_FULL, UTILISATION_NEAR};
use crate::{Expected, Figures, Moment};
use capability::Utilisation;
use seen::{LIMITED, Saturated, Seen};
use std::slice;
use workload::{Cap, Unit};

/// Answer about the demand from the performance that the storage was seen to reach.
pub(crate) struct SeenRoom<'a> {
    seen: &'a Seen,
    /// The part that was not measured: "it was", or "its writes were".
    unmeasured: &'static str,
    /// Multiple of the demand that was carried, and when.
    carried: Option<(f64, u64)>,
    /// The part of a full resource that it uses.
    used: Option<(Utilisation, &'a Saturated)>,
}

/// Fewer writes than this, in percent of the I/Os, do not decide how much is used.
const WRITES_COUNT_PERCENT: u8 = 3;
const HOUR_NS: u64 = 3_600_000_000_000;
/// A shorter time has not seen the nightly jobs.
const DAY_S: f64 = 86_400.0;

impl<'a> SeenRoom<'a> {
    /// The demand is this part of what the storage gives at most.
    pub fn used_at_most(&self) -> Option<f64> {
        let carried = self.carried.map(|(times, _)| 1.0 / times);
        let used = self.used.as_ref().map(|(used, _)| used.value);
        used.or(carried)
    }

    /// Of a resource that was seen full.
    pub fn utilisation(&self) -> Option<Utilisation> {
        self.used.as_ref().map(|(used, _)| *used)
    }

    /// Factor by which the demand can grow: at least, or where the limit was seen. The high end only where it was.
    pub fn headroom(&self) -> Option<(f64, Option<f64>, String)> {
        if let Some((used, full)) = &self.used {
            let (value, high) = (1.0 / used.value, full.high / full.value / used.value);
            return Some((
                value.min(full.low / full.value / used.value),
                Some(high.max(value)),
                SEEN_FULL.into(),
            ));
        }
        let (times, at) = self.carried?;
        Some((times, None, format!("at least: {}, not measured", self.when(at))))
    }

    /// "seen in the last 6 days".
    fn when(&self, at_unix_ns: u64) -> String {
        match self.seen.until_unix_ns.saturating_sub(at_unix_ns) / HOUR_NS + 1 {
            1 => "seen in the last hour".into(),
            hours @ ..=48 => format!("seen in the last {hours} hours"),
            hours => format!("seen in the last {} days", hours.div_ceil(24)),
        }
    }

    /// Why an answer from it is less sure than one from a measurement.
    pub fn doubts(&self) -> Vec<String> {
        let unmeasured = match self.unmeasured {
            WRITES => "writes of the storage were",
            _ => "the storage was",
        };
        let mut doubts = vec![match self.used {
            Some(_) => {
                format!("{unmeasured} never measured: the limit is what it was seen to give when it was full")
            }
            None => format!("{unmeasured} never measured: what it was seen to give is a lower bound"),
        }];
        if self.seen.observed_s < DAY_S {
            doubts.push(format!("it was watched for {:.1} hours only", self.seen.observed_s / 3_600.0));
        }
        doubts
    }

    /// The resource that this cap made full when it was seen, if the storage was never seen to give more.
    fn seen_full_by(&self, cap: &Cap) -> Option<&'a Saturated> {
        let full = self.seen.saturated.iter().find(|full| is_full_by(full, cap))?;
        (!self.seen.exceeds(full)).then_some(full)
    }

    pub(super) fn is_near(&self) -> bool {
        self.used_at_most().is_none_or(|used| used > UTILISATION_NEAR)
    }
}

const ALL: &str = "it was";
const WRITES: &str = "its writes were";
const SEEN_FULL: &str = "the limit is what was seen when the storage was full, not measured";

impl Case<'_> {
    /// Observed performance of a storage of which nothing else is known, or nothing of the writes that the
    /// demand includes.
    pub(crate) fn seen_room(&self) -> Option<SeenRoom<'_>> {
        if self.capability.is_some() && !self.lacks_writes() {
            return None;
        }
        let unmeasured = if self.capability.is_some() { WRITES } else { ALL };
        let seen = self.observation.seen.as_ref().filter(|seen| !seen.is_empty())?;
        let flows = self.figures.flows().filter(|flows| !flows.is_empty())?;
        let carried = seen.carried(&flows).filter(|(times, _)| *times > 0.0);
        let carried = carried.map(|(times, reached)| (times, reached.at_unix_ns));
        let room = SeenRoom { seen, unmeasured, carried, used: None };
        let of_caps = self.figures.caps.iter().filter_map(|used| {
            let full = room.seen_full_by(&used.cap)?;
            Some((Utilisation { value: used.share(), binding: used.binding() }, full))
        });
        let used =
            of_caps.chain(seen.utilisation(&flows)).max_by(|(a, _), (b, _)| a.value.total_cmp(&b.value));
        Some(SeenRoom { used, ..room })
    }

    /// The observed performance, where it supports an answer: the demand was carried with much to spare, or a resource
    /// that it needs was seen full.
    pub(crate) fn seen_answer(&self) -> Option<SeenRoom<'_>> {
        let room = self.seen_room()?;
        let is_known =
            || !room.is_near() && !self.slower_than_at_rest(&room) && self.moments_beyond(&room).is_empty();
        (self.fills(&room) || is_known()).then_some(room)
    }

    /// The moments that asked for as much as the storage was ever seen to carry, and waited: it may have been full then. Not
    /// those that used much of what was seen full, or of a cap: that explains them.
    fn moments_beyond(&self, room: &SeenRoom<'_>) -> Vec<&Moment> {
        let is_beyond = |moment: &&Moment| {
            if moment.caps.iter().any(|used| used.share() >= UTILISATION_NEAR) {
                return false;
            }
            let figures = Figures::from_moments(slice::from_ref(*moment), self.capability);
            let Some(flows) = figures.flows() else { return false };
            let is_most = room.seen.carried(&flows).is_some_and(|(times, _)| times * UTILISATION_FULL <= 1.0);
            let used = room.seen.utilisation(&flows).map_or(0.0, |(used, _)| used.value);
            is_most && used < UTILISATION_NEAR && waits_at_device(&figures, room.seen)
        };
        self.observation.moments.iter().filter(is_beyond).collect()
    }

    /// Only reads were measured, and there are writes.
    pub(crate) fn lacks_writes(&self) -> bool {
        self.capability.is_some_and(|capability| capability.cost_model.is_none())
            && self.figures.write_percent() >= WRITES_COUNT_PERCENT
    }

    /// The demand is at the rate at which a resource was seen full, with as many outstanding; or the cap that made it full is reached
    /// again, or holds the database back again.
    fn fills(&self, room: &SeenRoom<'_>) -> bool {
        let device = self.figures.device.as_ref().and_then(|device| device.outstanding().known());
        let outstanding = self.figures.outstanding.max(device.unwrap_or(0.0));
        let used = room.used.as_ref();
        used.is_some_and(|(used, full)| {
            let is_as_long = full.limit.is_some() || outstanding >= full.outstanding / 2.0;
            used.value >= UTILISATION_FULL && is_as_long
                || held_back(self).any(|(cap, ..)| is_full_by(full, cap))
        })
    }

    /// The device or commits take much longer than they did at rest: the load does not account for that.
    fn slower_than_at_rest(&self, room: &SeenRoom<'_>) -> bool {
        let is_slow = |wait: Wait| {
            wait.reference == Reference::SeenAtRest && wait.ratio >= RATIO_DEGRADED && !wait.is_waking_up()
        };
        if self.waits().any(is_slow) {
            return true;
        }
        let Some(device) = &self.figures.device else { return false };
        let read = (device.counters.read, room.seen.read_rest.median_ns());
        let write = (device.counters.write, room.seen.write_rest.median_ns());
        [read, write].into_iter().any(|(ops, rest_ns)| {
            let now_ns = ops.latency_ns().known().filter(|_| ops.count >= IOS_TO_COMPARE);
            now_ns.zip(rest_ns).is_some_and(|(now, rest)| now >= RATIO_DEGRADED * rest)
        })
    }
}

/// I/Os take clearly longer at the device than at rest, or it is not known how long they take at rest.
fn waits_at_device(figures: &Figures, seen: &Seen) -> bool {
    let Some(device) = &figures.device else { return true };
    let both = [(device.counters.read, &seen.read_rest), (device.counters.write, &seen.write_rest)];
    both.into_iter().any(|(ops, rest)| {
        let now_ns = ops.latency_ns().known();
        now_ns.is_some_and(|now| rest.median_ns().is_none_or(|rest| now >= RATIO_AGREES * rest))
    })
}

/// This cap made the resource full when it was seen.
fn is_full_by(full: &Saturated, cap: &Cap) -> bool {
    let is_same = |limit: f64| limit.to_bits() == (cap.per_second as f64).to_bits();
    full.limit.is_some_and(is_same) && LIMITED.contains(&(cap.kind, full.name))
}

/// This cap was there when the storage was seen full, and the storage was never seen to give more: it is not a new one.
pub(crate) fn was_full_by(case: &Case, cap: &Cap) -> bool {
    case.seen_room().is_some_and(|room| room.seen_full_by(cap).is_some())
}

/// A resource is full, as it was seen before.
pub(crate) fn demand_exceeds(case: &Case) -> Option<Grounds> {
    let room = case.seen_answer().filter(|room| case.fills(room))?;
    let (used, full) = room.used?;
    let same_cap = case.observation.caps.iter().find(|cap| is_full_by(full, cap));
    let limit = same_cap.map_or(String::new(), |cap| {
        format!(" (the limit is a cap that was there when it was seen: {cap}, {})", cap.origin)
    });
    let asked = used.value * 100.0;
    let unit = full.name.unit();
    let mut evidence = vec![
        case.observed("utilisation", used.value, Unit::Share, SEEN),
        case.observed("highest rate, seen full", full.value, unit, SEEN),
        case.observed("I/Os outstanding on average", case.figures.outstanding, Unit::Ios, BOTH),
    ];
    evidence.extend(case.latency());
    evidence.extend(case.neighbours());
    let binding = used.binding;
    Some(Grounds {
        summary: format!(
            "the workload uses {asked:.0} % of what this storage was seen to give when it was full, bound by {binding}{limit}"
        ),
        evidence,
        next_step: format!(
            "ask for less (more memory for caching, missing indexes, less data read) or give more {binding}; to know the limit \
             for sure, run `headroom measure` at a quiet time"
        ),
    })
}

/// The demand was carried many times over.
pub(crate) fn healthy(case: &Case) -> Option<Grounds> {
    let room = case.seen_answer()?;
    let mut evidence = Vec::new();
    if let Some((used, _)) = &room.used {
        evidence.push(case.observed("utilisation of what was seen full", used.value, Unit::Share, SEEN));
    }
    let carried = room.carried;
    evidence.extend(carried.map(|(times, at)| crate::Evidence {
        at,
        ..case.observed("times this demand that the storage carried", times, Unit::Times, SEEN)
    }));
    let rest = room.seen.read_rest.median_ns();
    let at_rest = rest.map(|ns| Expected {
        value: ns,
        source: "what a read at rest was seen to take".into(),
        at: case.ended(),
    });
    let device = case.figures.device.as_ref().and_then(|device| device.read_latency_ns().known());
    let now = device.map(|ns| case.observed("latency of reads at the device", ns, Unit::Ns, DEVICE));
    evidence.extend(now.zip(at_rest).map(|(now, at_rest)| now.beside(at_rest)));
    evidence.extend(case.latency());
    let summary = match (&room.used, carried) {
        (Some((used, _)), _) => format!(
            "{:.0} % is in use of what this storage was seen to give when it was full; {} never measured",
            used.value * 100.0,
            room.unmeasured
        ),
        (None, Some((times, at))) => format!(
            "this storage carried at least {} x this demand, {}; {} never measured",
            factor(times),
            room.when(at),
            room.unmeasured
        ),
        (None, None) => return None,
    };
    let next_step =
        "no action needed; to know how much more it gives, run `headroom measure` at a quiet time";
    Some(Grounds { summary, evidence, next_step: next_step.into() })
}

/// Observations that are too few for an answer: the end of a sentence.
pub(crate) fn too_little(case: &Case) -> Option<String> {
    let room = case.seen_room()?;
    if case.slower_than_at_rest(&room) && !room.is_near() {
        return Some("it takes much longer than it was seen to take at rest".into());
    }
    let (times, at) = room.carried?;
    let beyond = case.moments_beyond(&room).len();
    if beyond > 0 && !room.is_near() {
        let of = case.observation.moments.len();
        return Some(format!(
            "{beyond} of {of} moments asked for as much as it was ever seen to carry ({} x this demand on average)",
            factor(times)
        ));
    }
    Some(format!("it was seen to carry at least {} x this demand ({})", factor(times), room.when(at)))
}

fn factor(times: f64) -> String {
    if times < 10.0 {
        format!("{:.1}", (times * 10.0).floor() / 10.0)
    } else {
        format!("{:.0}", times.floor())
    }
}
