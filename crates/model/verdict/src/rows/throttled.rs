//! A cap adds the time.

use crate::case::Case;
use crate::evidence::{DATABASE, DEVICE, Grounds, cap_unit};
use crate::held_back::held_back;
use crate::rows::seen;
use crate::thresholds::{OUTSTANDING_IDLE, RATIO_AGREES};
use crate::{Evidence, Expected};
use workload::{Cap, Unit};

pub(crate) fn throttled(case: &Case) -> Option<Grounds> {
    let (cap, rate, by_cap) = case.caps_reached().find(|(cap, ..)| !seen::was_full_by(case, cap))?;
    let fact = rate_fact(case, cap, rate, by_cap);
    let wait = case.noticed_wait().filter(|wait| wait.ratio >= RATIO_AGREES)?;
    let mut evidence = vec![fact];
    evidence.extend(case.latency());
    Some(Grounds {
        summary: format!(
            "a cap of {cap} ({}) holds the storage back: {} take {:.1} x what they took without",
            cap.origin, wait.what, wait.times
        ),
        evidence,
        next_step: raise_advice(cap),
    })
}

/// Finds the throttle of a storage that was never measured: the latency of the device below the cap stands for that
/// of the storage.
pub(crate) fn never_measured(case: &Case) -> Option<Grounds> {
    if case.capability.is_some() || case.figures.outstanding < OUTSTANDING_IDLE {
        return None;
    }
    let known = |cap: &Cap| seen::was_full_by(case, cap);
    let (cap, rate, by_cap, waits) = held_back(case).find(|(cap, ..)| !known(cap))?;
    let (what, latency_ns, device_ns) = waits;
    let fact = rate_fact(case, cap, rate, by_cap);
    let device = Expected { value: device_ns, source: DEVICE.into(), at: case.ended() };
    let latency = case.observed(&format!("latency of {what}"), latency_ns, Unit::Ns, DATABASE);
    Some(Grounds {
        summary: format!(
            "a cap of {cap} ({}) holds the storage back: {what} take {:.1} x what they take at the device",
            cap.origin,
            latency_ns / device_ns
        ),
        evidence: vec![fact, latency.beside(device)],
        next_step: format!(
            "{}; `headroom measure` says what the storage gives without it",
            raise_advice(cap)
        ),
    })
}

/// The rate at a cap that is reached, for the evidence.
fn rate_fact(case: &Case, cap: &Cap, rate: f64, by_cap: bool) -> Evidence {
    let (what, source) = if by_cap {
        ("rate at the cap", cap.origin.as_str())
    } else {
        ("rate at the device, and the cap", DEVICE)
    };
    let limit = Expected { value: cap.per_second as f64, source: cap.origin.clone(), at: case.ended() };
    case.observed(what, rate, cap_unit(cap), source).beside(limit)
}

fn raise_advice(cap: &Cap) -> String {
    format!("raise or lift the cap on device {} ({}), or bring the demand below it", cap.device, cap.origin)
}
