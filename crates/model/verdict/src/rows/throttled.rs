//! A cap adds the time.

use crate::case::Case;
use crate::evidence::{DATABASE, DEVICE, Grounds, cap_unit};
use crate::figures::IOS_TO_COMPARE;
use crate::rows::seen;
use crate::thresholds::{COMMIT_RATIO_DEGRADED, OUTSTANDING_IDLE, RATIO_AGREES, RATIO_DEGRADED};
use crate::{Evidence, Expected};
use workload::{Cap, CapKind, Unit};

pub(crate) fn throttled(case: &Case) -> Option<Grounds> {
    let (cap, rate, by_cap) = case.cap_reached()?;
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

/// The same of a storage that was never measured: what the device below the cap takes stands for what it would give.
pub(crate) fn never_measured(case: &Case) -> Option<Grounds> {
    if case.capability.is_some() || case.figures.outstanding < OUTSTANDING_IDLE {
        return None;
    }
    let (fact, cap, (what, latency_ns, device_ns)) = case
        .caps_reached()
        .filter(|(cap, ..)| !seen::was_full_by(case, cap))
        .find_map(|(cap, rate, by_cap)| {
            Some((rate_fact(case, cap, rate, by_cap), cap, waits_above_device(case, cap)?))
        })?;
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

/// What a cap can hold back, if the database waits for it much longer than the device takes: what, nanoseconds of the database, of
/// the device.
fn waits_above_device(case: &Case, cap: &Cap) -> Option<(&'static str, f64, f64)> {
    let (figures, device) = (&case.figures, case.figures.device.as_ref()?);
    let (what, own_ns, device_ns, times) = match cap.kind {
        CapKind::ReadIops | CapKind::ReadBytes => {
            let reads = figures.storage_reads;
            let is_timed = !figures.reads_by_device && reads.count >= IOS_TO_COMPARE;
            let own_ns = reads.latency_ns().known().filter(|_| is_timed)?;
            ("reads from storage", own_ns, device.read_latency_ns().known()?, RATIO_DEGRADED)
        }
        CapKind::WriteIops | CapKind::WriteBytes => {
            let is_timed = !figures.commits_by_device && figures.commits.count >= IOS_TO_COMPARE;
            let own_ns = figures.commit_ns().filter(|_| is_timed)?;
            // A commit is a write and a flush.
            let flush_ns = device.sync_latency_ns().known().unwrap_or(0.0);
            ("commits", own_ns, device.write_latency_ns().known()? + flush_ns, COMMIT_RATIO_DEGRADED)
        }
    };
    (own_ns >= times * device_ns).then_some((what, own_ns, device_ns))
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
