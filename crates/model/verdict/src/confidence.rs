//! How far to trust a verdict: every doubt takes one step off.

use crate::case::{Case, Reference};
use crate::figures::IOS_TO_COMPARE;
use crate::thresholds::{
    CAPABILITY_DAYS_MAX, FOREIGN_IOPS_MAX, LARGER_DATA, RATIO_DEGRADED, UTILISATION_NEAR,
};
use crate::{Confidence, LogTiming, VerdictKind};
use capability::{Capability, KneeReason, Origin, Side};
use statistics::IOS_MIN;

/// The confidence in a verdict, and the doubts that lower it.
pub(crate) fn confidence(case: &Case, kind: VerdictKind) -> (Confidence, Vec<String>) {
    // A hang is counted, whatever was measured before.
    if kind == VerdictKind::CannotSay || case.hangs() {
        return (Confidence::High, Vec::new());
    }
    let mut doubts = doubts_of_observation(case);
    if let Some(room) = case.seen_room() {
        doubts.extend(room.doubts());
    }
    if let Some(capability) = case.capability {
        doubts.extend(doubts_of_origin(capability.origin));
        doubts.extend(doubts_of_capability(capability, has_unmeasured_writes(case, capability)));
        doubts.extend(doubts_of_comparison(case, capability));
    }
    doubts.extend(doubts_of_verdict(case, kind));
    let confidence = match doubts.len() {
        0 => Confidence::High,
        1 => Confidence::Medium,
        _ => Confidence::Low,
    };
    (confidence, doubts)
}

fn doubts_of_observation(case: &Case) -> Vec<String> {
    let (mut doubts, figures) = (Vec::new(), &case.figures);
    let operations = figures.database.as_ref().map_or(0, |database| database.counters.operations());
    if operations < 10 * IOS_MIN {
        doubts.push(format!("only {operations} I/Os were seen"));
    }
    if case.observation.divided {
        doubts.push("the database counts its tablespaces together: the devices' I/O divides theirs".into());
    }
    if figures.coverage < 0.9 {
        doubts.push(format!("{:.0} % of the time is unknown", (1.0 - figures.coverage) * 100.0));
    }
    if figures.device.is_none() {
        doubts.push("the device below is not visible, so that others' I/O is not known".into());
    }
    if figures.commits_by_device && figures.commits.count >= IOS_TO_COMPARE {
        let stand = "the database does not time its log: the device's writes and flushes stand for commits";
        doubts.push(match &case.observation.log_timing {
            LogTiming::Untimed { why } => format!("{stand} ({why})"),
            LogTiming::Database | LogTiming::Kernel => stand.into(),
        });
    }
    if figures.reads_by_device && figures.storage_reads.count >= IOS_TO_COMPARE {
        doubts.push("the database does not time its reads to their end: the device's stand for them".into());
    }
    if figures.untimed.count > 0 {
        let untimed = figures.untimed.count;
        doubts.push(format!("{untimed} I/Os were not timed: timing is off for them"));
    }
    doubts
}

/// Whether the capability stands for what was observed.
fn doubts_of_comparison(case: &Case, capability: &Capability) -> Vec<String> {
    let mut doubts = Vec::new();
    let region_bytes = capability.conditions.region_bytes;
    let data_bytes = case.observation.data_bytes.filter(|_| capability.origin != Origin::Declared);
    let larger = data_bytes.map(|bytes| bytes / region_bytes.max(1));
    if let Some(times) = larger.filter(|times| *times >= LARGER_DATA) {
        doubts.push(format!(
            "the data is {times} x as large as what the storage was measured on, which caches may have held"
        ));
    }
    let age_days = case.ended().saturating_sub(capability.measured_unix_ns) as f64 / 86_400e9;
    if age_days > CAPABILITY_DAYS_MAX && capability.origin != Origin::Declared {
        doubts.push(format!("the storage was measured {age_days:.0} days ago"));
    }
    let seen = case.observation.seen.iter();
    let contradictions = seen.flat_map(|seen| seen.lasting_contradictions(capability.measured_unix_ns));
    doubts.extend(contradictions.map(|one| {
        let days = one.until_unix_ns.saturating_sub(one.since_unix_ns) as f64 / 86_400e9;
        let (name, origin, times) = (one.name, capability.origin, one.times);
        format!(
            "{name} is {times:.2} x the {origin} figure, seen for {days:.0} days: headroom measure --refresh"
        )
    }));
    if let Some(error) = capability.cost_model.as_ref().and_then(|model| model.error)
        && error > 0.2
    {
        doubts.push(format!("the cost model is off by {:.0} % on mixes kept out of its fit", error * 100.0));
    }
    doubts
}

/// Figures that contradict the verdict itself.
fn doubts_of_verdict(case: &Case, kind: VerdictKind) -> Vec<String> {
    let (mut doubts, figures) = (Vec::new(), &case.figures);
    if kind == VerdictKind::Healthy
        && let Some(used) = figures.utilisation.filter(|u| u.value >= UTILISATION_NEAR)
    {
        doubts.push(format!("{:.0} % is close to the operating limit", used.value * 100.0));
    }
    if kind == VerdictKind::Healthy
        && let Some(wait) = case.longest_wait().filter(|wait| wait.ratio >= RATIO_DEGRADED)
    {
        let (what, times) = (wait.what, wait.times);
        doubts.push(match wait.reference {
            Reference::Curve if wait.is_waking_up() => {
                format!("{what} take {times:.1} x what the curve expects, but less than 0.1 ms more")
            }
            Reference::Curve => {
                format!("{what} take {times:.1} x what the curve expects (hardly any session waits for them)")
            }
            Reference::SeenAtRest => format!("{what} take {times:.1} x what they were seen to take at rest"),
        });
    }
    if matches!(kind, VerdictKind::Healthy | VerdictKind::NobodyWaits)
        && let Some(stall) = case.unexplained_stall()
    {
        let device = stall.device * 100.0;
        doubts.push(format!(
            "{stall}, and no layer below accounts for it: no device of this host was busy for more than {device:.0} %"
        ));
    }
    if kind == VerdictKind::NotStorage
        && let Some(stall) = case.stall_above_devices()
    {
        let device = stall.device * 100.0;
        doubts.push(format!(
            "{stall}, and no device of this host was busy for more than {device:.0} %: the wait is in the kernel's I/O above \
             the device, as for a throttle (io.max, io.latency, io.cost), and not in the database"
        ));
    }
    if kind == VerdictKind::Throttled && case.capability.is_none() {
        doubts.push("the storage was never measured: what it gives without the cap is not known".into());
    }
    if kind == VerdictKind::StorageDegraded
        && figures.utilisation.is_some_and(|u| u.value >= UTILISATION_NEAR)
    {
        doubts.push("the demand is close to the operating limit as well".into());
    }
    doubts
}

/// Doubt of figures that were not measured here.
fn doubts_of_origin(origin: Origin) -> Option<String> {
    Some(match origin {
        Origin::Measured | Origin::Gentle => return None,
        Origin::Seen => "what the storage gives was seen, not measured".into(),
        Origin::Declared => "what the storage gives is declared, not measured".into(),
        Origin::Borrowed => "the storage was measured on another host, on storage with the same facts".into(),
    })
}

/// Whether there are writes, only reads were measured, and what was seen of the writes decides nothing.
fn has_unmeasured_writes(case: &Case, capability: &Capability) -> bool {
    let flows = case.figures.flows().unwrap_or_default();
    let has_writes = flows.iter().any(|flow| flow.side == Side::Write && flow.per_second > 0.0);
    capability.cost_model.is_none() && has_writes && case.seen_room().is_none()
}

/// Doubts of the measurement itself.
fn doubts_of_capability(capability: &Capability, has_unmeasured_writes: bool) -> Vec<String> {
    let mut doubts = Vec::new();
    if capability.is_preliminary() {
        doubts.push("the measurement is preliminary: only the points that decide were measured".into());
    }
    if has_unmeasured_writes {
        doubts.push("writes were not measured: the utilisation is that of the reads alone".into());
    }
    // A gentle measurement counts others' I/O in.
    let foreign = capability.conditions.foreign_iops.filter(|_| capability.origin != Origin::Gentle);
    if let Some(iops) = foreign.filter(|iops| *iops > FOREIGN_IOPS_MAX) {
        doubts.push(format!("others did {iops:.0} I/Os a second while the storage was measured"));
    }
    let mut reasons = capability.curves.iter().filter_map(|curve| Some(curve.knee.as_ref()?.reason));
    if reasons.any(|reason| reason == KneeReason::Client) {
        doubts.push("Headroom's own threads were the limit when it was measured: it may give more".into());
    }
    if capability.curves.iter().flat_map(|curve| &curve.points).any(|point| point.failed > 0) {
        doubts.push("I/Os failed while the storage was measured".into());
    }
    doubts
}
