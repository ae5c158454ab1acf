//! Saturated, degraded, or slow above the storage: latency at the same load decides, not utilisation.
//!
//! ```text
//! latency over 3 x the curve's at the same N and size?
//!   no   U at the knee?                 yes  saturated
//!   yes  the device is slow as well?    yes  storage degraded, whatever U is
//!                                       no   only commits are slow, U and reads past the knee?   yes  saturated
//!                                                                                                no   not storage
//! ```
//!
//! The curve's latency at that N includes the queue: storage that is only saturated is not slower than its curve.
//! Storage that is degraded may be at the knee as well; that is a doubt beside the verdict. In both, another program on this
//! host that does much of the I/O is the cause: only what is not of this host is below.

use crate::Neighbour;
use crate::case::{Case, Reference, Wait};
use crate::evidence::Grounds;
use crate::thresholds::{RATIO_DEGRADED, UTILISATION_FULL, UTILISATION_NEAR};

/// A wait that is far above what is expected at its load. Latency at rest is expected only where the storage is known to carry
/// much more.
fn slow_wait(case: &Case) -> Option<Wait> {
    let wait = case.noticed_wait().filter(|wait| wait.ratio >= RATIO_DEGRADED)?;
    let is_near = || case.seen_room().is_some_and(|room| room.is_near());
    (wait.reference == Reference::Curve || !is_near()).then_some(wait)
}

/// The device is as fast as ever, and a limit under which the storage was measured is nearly used up: the time is that of the queue
/// before the limit.
fn waits_for_cap(case: &Case, wait: &Wait) -> bool {
    let near = case.figures.storage_caps.iter().any(|used| used.share() >= UTILISATION_NEAR);
    near && wait.device_ratio.is_none_or(|ratio| ratio < RATIO_DEGRADED)
}

/// Commits are slow, reads and the device are not: each of a commit's I/Os waits in the queue of a storage that is full.
fn commits_queue(case: &Case, wait: &Wait) -> bool {
    let reads = case.figures.reads_place.as_ref();
    reads.is_some_and(|place| place.latency_ns < RATIO_DEGRADED * place.expected_ns)
        && wait.device_ratio.is_some_and(|ratio| ratio < RATIO_DEGRADED)
}

pub(crate) fn demand_exceeds_capability(case: &Case) -> Option<Grounds> {
    let figures = &case.figures;
    let utilisation = figures.utilisation?;
    let beyond_knee = figures.reads_place.as_ref().is_some_and(|place| {
        let knee =
            case.capability.and_then(|it| it.curve(&place.curve)).and_then(|curve| curve.knee.as_ref());
        knee.is_some_and(|knee| place.outstanding >= knee.low.max(1.0))
    });
    let slow = slow_wait(case);
    let is_full = beyond_knee && utilisation.value >= UTILISATION_FULL;
    let queues =
        slow.as_ref().is_some_and(|wait| waits_for_cap(case, wait) || is_full && commits_queue(case, wait));
    let near = utilisation.value >= UTILISATION_NEAR && (beyond_knee || queues);
    if !(utilisation.value >= UTILISATION_FULL || near) || slow.is_some() && !queues {
        return None;
    }
    let mut evidence = vec![case.utilisation_fact(utilisation.value)];
    evidence.extend(case.highest_rate());
    evidence.extend(case.latency());
    let same_cap = case.cap_that_binds(utilisation.binding);
    let limit = same_cap.map_or(String::new(), |cap| {
        format!(" (the limit is a cap that was there when it was measured: {cap})")
    });
    evidence.extend(case.neighbours());
    let asked = utilisation.value * 100.0;
    let binding = utilisation.binding;
    // Without this, 75 % in use would read as if there were room.
    let past = if beyond_knee && utilisation.value < UTILISATION_FULL { ", past its knee" } else { "" };
    if let Some(other) = case.busy_neighbour(binding) {
        let summary = format!(
            "{}: {asked:.0} % of what this storage gives is in use{past}, bound by {binding}{limit}; {}",
            ANOTHER_PROGRAM,
            other.sentence()
        );
        return Some(Grounds { summary, evidence, next_step: give_way(other) });
    }
    let summary =
        format!("the workload uses {asked:.0} % of what this storage gives{past}, bound by {binding}{limit}");
    Some(Grounds {
        summary,
        evidence,
        next_step: format!(
            "ask for less (more memory for caching, missing indexes, less data read) or give more {binding}: \
             faster or striped storage; tuning latency alone will not help"
        ),
    })
}

const ANOTHER_PROGRAM: &str = "another program on this host uses the storage";

pub(crate) fn give_way(other: &Neighbour) -> String {
    format!(
        "{}: have it give way, at another time, on other storage, or slower (its control group's io.max, its own rate \
         limit); then check again",
        other.sentence()
    )
}

pub(crate) fn storage_degraded(case: &Case) -> Option<Grounds> {
    let figures = &case.figures;
    let wait = slow_wait(case)?;
    if wait.device_ratio.is_some_and(|ratio| ratio < RATIO_DEGRADED) {
        // The layer below is as fast as ever: the time is added above it.
        return None;
    }
    let mut evidence = case.latency();
    evidence.extend(wait.device_fact(case));
    evidence.extend(case.highest_rate());
    evidence.extend(figures.utilisation.map(|u| case.utilisation_fact(u.value)));
    evidence.extend(case.neighbours());
    let slower = format!(
        "{} take {:.1} x {}",
        wait.what,
        wait.times,
        match wait.reference {
            Reference::Curve => "what this storage gave at the same load when it was measured",
            Reference::SeenAtRest => "what they were seen to take at rest",
        }
    );
    if let Some(other) = case.slowing_neighbour() {
        let summary = format!("{ANOTHER_PROGRAM}: {}; {slower}", other.sentence());
        return Some(Grounds { summary, evidence, next_step: give_way(other) });
    }
    if let Some(array) = case.observation.troubles.first() {
        return Some(Grounds {
            summary: format!("{array}; {slower}"),
            evidence,
            next_step: format!(
                "wait until {} has all members and rests (/proc/mdstat), or make its work slower (sync_speed_max beside \
                 sync_action in sysfs); then check again",
                array.device()
            ),
        });
    }
    Some(Grounds {
        summary: slower,
        evidence,
        next_step:
            "look below the database: a failing or rebuilding disk, another host on the same storage, a changed \
                    volume or path; measure again at a quiet time to confirm"
                .into(),
    })
}

pub(crate) fn not_storage(case: &Case) -> Option<Grounds> {
    let figures = &case.figures;
    let wait = slow_wait(case)?;
    let mut evidence = case.latency();
    evidence.extend(wait.device_fact(case));
    evidence.extend(figures.utilisation.map(|u| case.utilisation_fact(u.value)));
    Some(Grounds {
        summary: format!(
            "{} take {:.1} x {}",
            wait.what,
            wait.times,
            match wait.reference {
                Reference::Curve => "as long as the curve expects, but the device itself answers as measured",
                Reference::SeenAtRest =>
                    "what they were seen to take at rest, but the device itself is not slower",
            }
        ),
        evidence,
        next_step:
            "look between the database and the device: CPU shortage, a throttle on bytes or I/Os, the \
                    file system's journal, encryption or backup filters, the network of a remote volume"
                .into(),
    })
}
