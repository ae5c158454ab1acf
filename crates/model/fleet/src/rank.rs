//! The order of the answer: the least headroom first.

use crate::Volume;
use std::cmp::Ordering;
use verdict::VerdictKind;

/// Whether `a` comes before `b`.
pub fn is_worse(a: &Volume, b: &Volume) -> bool {
    order(a, b) == Ordering::Less
}

/// By headroom. An unknown one comes last: it is not healthy, but nothing says how bad it is.
pub(crate) fn order(a: &Volume, b: &Volume) -> Ordering {
    let (of_a, of_b) = (effective_headroom(a), effective_headroom(b));
    let by_headroom = match (of_a, of_b) {
        (Some(a), Some(b)) => a.total_cmp(&b),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => Ordering::Equal,
    };
    let plan = |volume: &Volume| volume.headroom.map_or(f64::INFINITY, |headroom| headroom.plan);
    let utilisation = |volume: &Volume| volume.utilisation.unwrap_or(0.0);
    by_headroom
        .then_with(|| b.needs_action().cmp(&a.needs_action()))
        .then_with(|| plan(a).total_cmp(&plan(b)))
        .then_with(|| utilisation(b).total_cmp(&utilisation(a)))
        .then_with(|| (&a.host, &a.mount, &a.database).cmp(&(&b.host, &b.mount, &b.database)))
}

/// Where the verdict says that the storage, or a limit on it, gives no more, there is no headroom now, whatever it could
/// give as it was measured.
fn effective_headroom(volume: &Volume) -> Option<f64> {
    let plan = volume.headroom.map(|headroom| headroom.plan);
    match volume.verdict {
        Some(
            VerdictKind::DemandExceedsCapability | VerdictKind::StorageDegraded | VerdictKind::Throttled,
        ) => Some(plan.unwrap_or(1.0).min(1.0)),
        Some(VerdictKind::CannotSay) | None => None,
        Some(_) => plan,
    }
}
