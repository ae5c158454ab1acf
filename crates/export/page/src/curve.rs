//! `/api/v1/curve`: the measured curves, and where the demand lies on them.

use crate::answer::short;
use crate::live::VolumeNow;
use capability::{Capability, Curve};
use serde_json::{Value, json};
use verdict::Place;

/// How long the trail of the demand is.
const TRAIL_NS: u64 = 300_000_000_000;
/// A demand that is older than this is not the one of now.
const NOW_NS: u64 = 10_000_000_000;

/// The document.
pub(crate) fn curve(volume: &VolumeNow, capability: &Capability, now_ns: u64) -> Value {
    let judged = volume.judged.as_ref();
    let placed = judged.and_then(|judged| judged.verdict.place.as_ref());
    let trail: Vec<(u64, &Place)> = volume
        .ring
        .samples()
        .filter(|(span, _)| now_ns.saturating_sub(span.to_ns) <= TRAIL_NS)
        .filter_map(|(span, instant)| Some((span.to_ns, instant.place.as_ref()?)))
        .collect();
    let newest = trail.last().filter(|(at, _)| now_ns.saturating_sub(*at) <= NOW_NS).map(|(_, place)| *place);
    // The curve is that of the window; the place on it is that of the newest second.
    let on = placed.or(newest).map(|place| place.curve);
    let at = on.and_then(|shape| capability.curves.iter().position(|curve| curve.workload == shape));
    let demand = at.zip(newest.or(placed)).map(|(at, place)| {
        json!({
            "curve": at,
            "outstanding": short(Some(place.outstanding)),
            "iops": short(Some(place.iops)),
            "latency_ns": short(Some(place.latency_ns)),
        })
    });
    let expected_ns = newest.or(placed).map(|place| place.expected_ns);
    json!({
        "curves": capability.curves.iter().map(one).collect::<Vec<_>>(),
        "demand": demand,
        "trail": trail.iter().map(|(at, place)| on_trail(*at, place)).collect::<Vec<_>>(),
        "service_level_ns": judged.map(|judged| judged.service_level_ns),
        "expected_latency_ns": short(expected_ns),
        "measured_unix_ns": capability.measured_unix_ns,
    })
}

fn one(curve: &Curve) -> Value {
    let points = curve.points.iter().map(|point| {
        json!({ "outstanding": point.outstanding, "iops": point.iops, "latency_ns": point.latency_ns })
    });
    json!({
        "name": curve.workload.to_string(),
        "points": points.collect::<Vec<_>>(),
        "knee_outstanding": curve.knee.as_ref().map(|knee| knee.outstanding),
        "limit_iops": curve.highest_rate(),
    })
}

fn on_trail(at_ns: u64, place: &Place) -> Value {
    json!({
        "unix_ns": at_ns,
        "outstanding": short(Some(place.outstanding)),
        "iops": short(Some(place.iops)),
        "latency_ns": short(Some(place.latency_ns)),
    })
}
