use crate::case::Case;
use crate::confidence::confidence;
use crate::evidence::Grounds;
use crate::rows::saturated_or_degraded::{demand_exceeds_capability, not_storage, storage_degraded};
use crate::rows::{burst, cannot_say, failing, healthy, hung, nobody_waits, seen, serialized, throttled};
use crate::{Observation, Verdict, VerdictKind};
use capability::Capability;
use filestats::ServiceLevel;

type Row = fn(&Case) -> Option<Grounds>;

/// The decision table, read from the top: the first row whose condition holds is the verdict.
///
/// | verdict | condition |
/// |---|---|
/// | storage degraded | I/Os of the database failed, or a thin pool below has no free block: no curve is needed to see that |
/// | storage degraded | the device had I/Os in flight and completed none for over 5 s, while tasks waited |
/// | throttled | never measured, a cap is reached that was not there when the storage was seen full, the database waits 3 x (for commits 5 x) what the device takes |
/// | cannot say | no capability and too little seen, or one that no longer holds, under 100 I/Os, over half unknown, no timing |
/// | throttled | a cap set since the measurement is reached, latency 2 x the curve's |
/// | nobody waits | the device is over the service level, the database keeps it and waits under 10 % |
/// | saturated | U at the knee (0.9), or N beyond it and U over 0.7; latency under 3 x the curve's, of reads alone where both hold |
/// | saturated | never measured, and a resource is used that was seen full, at 0.9 of that and with as many outstanding; or a cap under which it was seen full holds back |
/// | storage degraded | latency 3 x what the curve expects at that N and size, at the device too; U may be anything. The cause is another program on this host that does much of the I/O, else below |
/// | not storage | the database's latency 3 x and 0.1 ms over the curve's, the device's own agrees with it |
/// | serialized | the log is written and synced sequentially over 80 % of the time, U below the knee |
/// | burst | U (never measured: of a cap, or of what was seen full) low on average, at the knee in some seconds |
/// | serialized | N about 1 second for second, U low: the time goes into waiting for one I/O at a time |
/// | cannot say | tasks are stalled on I/O over half of the time, no layer accounts for it, and the log is not timed |
/// | healthy | never measured, and the storage was seen to carry 1.43 x this demand and all of its moments, or to give that much when it was full |
/// | healthy | none of these |
const TABLE: [(VerdictKind, Row); 16] = [
    (VerdictKind::StorageDegraded, failing::failing),
    (VerdictKind::StorageDegraded, hung::hung),
    (VerdictKind::Throttled, throttled::never_measured),
    (VerdictKind::CannotSay, cannot_say::cannot_say),
    (VerdictKind::Throttled, throttled::throttled),
    (VerdictKind::NobodyWaits, nobody_waits::nobody_waits),
    (VerdictKind::DemandExceedsCapability, demand_exceeds_capability),
    (VerdictKind::DemandExceedsCapability, seen::demand_exceeds),
    (VerdictKind::StorageDegraded, storage_degraded),
    (VerdictKind::NotStorage, not_storage),
    (VerdictKind::Serialized, serialized::busy_log),
    (VerdictKind::Burst, burst::burst),
    (VerdictKind::Serialized, serialized::serialized),
    (VerdictKind::CannotSay, cannot_say::unexplained_stall),
    (VerdictKind::Healthy, seen::healthy),
    (VerdictKind::Healthy, healthy::healthy),
];

/// Judges what was observed by what the storage can give.
pub fn judge(
    observation: &Observation,
    capability: Option<&Capability>,
    service_level: &ServiceLevel,
) -> Verdict {
    let case = Case::new(observation, capability, service_level);
    let found = TABLE.iter().find_map(|(kind, row)| Some((*kind, row(&case)?)));
    let (kind, mut grounds) = found.expect("the last row of the table always holds");
    // The count of a limit belongs beside the first number: how much of it is used.
    let second = grounds.evidence.len().min(1);
    grounds.evidence.splice(second..second, case.cap_facts().into_iter().chain(case.declared_utilisation()));
    grounds.evidence.extend(case.trouble_facts());
    grounds.evidence.extend(case.stall_facts());
    grounds.evidence.extend(case.volume());
    let (confidence, doubts) = confidence(&case, kind);
    // Below a cap that holds everything back, what the storage has left is not known without a measurement.
    let unknown = kind == VerdictKind::Throttled && capability.is_none();
    let has_room = kind != VerdictKind::CannotSay && !case.hangs() && !unknown;
    let seen = case.seen_room().filter(|_| has_room);
    let utilisation = case.figures.utilisation.or_else(|| seen.as_ref()?.utilisation());
    // I/O that a device that hangs lets through is no demand.
    let utilisation = utilisation.filter(|_| !case.hangs());
    let headroom = case.headroom().filter(|_| has_room);
    Verdict {
        verdict: kind,
        cause: case.cause(kind),
        summary: grounds.summary,
        confidence,
        doubts,
        utilisation: utilisation.map(|u| u.value),
        headroom: headroom.as_ref().map(|room| room.plan),
        headroom_low: headroom.as_ref().map(|room| room.low),
        headroom_high: headroom.as_ref().map(|room| room.high).filter(|high| high.is_finite()),
        headroom_reason: headroom.and_then(|room| room.reason_beside(kind)),
        binding: utilisation.map(|u| u.binding),
        evidence: grounds.evidence,
        next_step: grounds.next_step,
        place: case.figures.reads_place,
    }
}
