//! A cap adds the time.

use crate::case::Case;
use crate::evidence::{DATABASE, DEVICE, Grounds, cap_unit};
use crate::figures::IOS_TO_COMPARE;
use crate::thresholds::{COMMIT_RATIO_DEGRADED, OUTSTANDING_IDLE, RATIO_AGREES, RATIO_DEGRADED};
use crate::{Evidence, Expected};
use filestats::{Delta, Figure};
use workload::{Cap, Unit};

pub(crate) fn throttled(case: &Case) -> Option<Grounds> {
    let (cap, fact) = at_the_cap(case)?;
    let wait = case.noticed_wait().filter(|wait| wait.ratio >= RATIO_AGREES)?;
    let mut evidence = vec![fact];
    evidence.extend(case.latency());
    Some(Grounds {
        summary: format!(
            "a cap of {cap} ({}) holds the storage back: {} take {:.1} x what they took without",
            cap.origin, wait.what, wait.times
        ),
        evidence,
        next_step: raise(cap),
    })
}

/// The same of a storage that was never measured: what the device below the cap takes stands for what it would give.
pub(crate) fn never_measured(case: &Case) -> Option<Grounds> {
    if case.capability.is_some() || case.figures.outstanding < OUTSTANDING_IDLE {
        return None;
    }
    let (cap, fact) = at_the_cap(case)?;
    let (what, latency_ns, device_ns) = waits_above_device(case)?;
    let device = Expected { value: device_ns, source: DEVICE.into(), at: case.ended() };
    let latency = case.observed(&format!("latency of {what}"), latency_ns, Unit::Ns, DATABASE);
    Some(Grounds {
        summary: format!(
            "a cap of {cap} ({}) holds the storage back: {what} take {:.1} x what they take at the device",
            cap.origin,
            latency_ns / device_ns
        ),
        evidence: vec![fact, latency.beside(device)],
        next_step: format!("{}; `headroom measure` says what the storage gives without it", raise(cap)),
    })
}

/// What the database waits for much longer than the device takes for it: what, nanoseconds of the database, of the device.
fn waits_above_device(case: &Case) -> Option<(&'static str, f64, f64)> {
    let figures = &case.figures;
    let device_ns = |latency: fn(&Delta) -> Figure<f64>| latency(figures.device.as_ref()?).known();
    let reads = figures.storage_reads;
    let enough = !figures.reads_by_device && reads.count >= IOS_TO_COMPARE;
    let read_ns = reads.latency_ns().known().filter(|_| enough);
    let read = read_ns
        .zip(device_ns(Delta::read_latency_ns))
        .map(|(own, device)| ("reads from storage", own, device));
    let enough = !figures.commits_by_device && figures.commits.count >= IOS_TO_COMPARE;
    let commit_ns = figures.commit_ns().filter(|_| enough);
    let commit =
        commit_ns.zip(device_ns(Delta::write_latency_ns)).map(|(own, device)| ("commits", own, device));
    let is_longer = |(_, own, device): &(_, f64, f64), times: f64| *own >= times * device;
    read.filter(|read| is_longer(read, RATIO_DEGRADED))
        .or(commit.filter(|commit| is_longer(commit, COMMIT_RATIO_DEGRADED)))
}

/// The cap that is reached, and its rate for the evidence.
fn at_the_cap<'a>(case: &'a Case) -> Option<(&'a Cap, Evidence)> {
    let (cap, rate, by_cap) = case.cap_reached()?;
    let (what, source) = if by_cap {
        ("rate at the cap", cap.origin.as_str())
    } else {
        ("rate at the device, and the cap", DEVICE)
    };
    let limit = Expected { value: cap.per_second as f64, source: cap.origin.clone(), at: case.ended() };
    Some((cap, case.observed(what, rate, cap_unit(cap), source).beside(limit)))
}

fn raise(cap: &Cap) -> String {
    format!("raise or lift the cap on device {} ({}), or bring the demand below it", cap.device, cap.origin)
}
