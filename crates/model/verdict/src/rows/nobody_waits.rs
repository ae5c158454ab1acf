//! The device is slow, but no session waits for it.

use crate::case::Case;
use crate::evidence::{DATABASE, DEVICE, Grounds};
use crate::figures::IOS_TO_COMPARE;
use crate::thresholds::OUTSTANDING_IDLE;
use filestats::IoClass;
use workload::{Unit, format_ns};

pub(crate) fn nobody_waits(case: &Case) -> Option<Grounds> {
    let figures = &case.figures;
    let device = figures.device.as_ref()?;
    let over = [
        ("device read latency", IoClass::Read, device.counters.read),
        ("device write latency", IoClass::Write, device.counters.write),
    ]
    .into_iter()
    .filter(|(_, _, ops)| ops.count >= IOS_TO_COMPARE)
    .filter_map(|(what, class, ops)| Some((what, class, ops.latency_ns().known()?)))
    .find(|(_, class, latency_ns)| !case.service_level.kept(*class, *latency_ns));
    let (what, _, latency_ns) = over?;
    let reads_kept = figures.read_ns().is_none_or(|ns| case.service_level.kept(IoClass::Read, ns));
    let commits_kept = figures.commit_ns().is_none_or(|ns| case.service_level.kept(IoClass::LogWrite, ns));
    let unseen = case.untimed_stall().is_some();
    if figures.outstanding >= OUTSTANDING_IDLE || !reads_kept || !commits_kept || unseen {
        return None;
    }
    let evidence = vec![
        case.observed(what, latency_ns, Unit::Ns, DEVICE),
        case.observed("sessions waiting on average", figures.outstanding, Unit::None, DATABASE),
    ];
    Some(Grounds {
        summary: format!(
            "the device answers in {}, but the database hardly waits for it and keeps its service level",
            format_ns(latency_ns)
        ),
        evidence,
        next_step: "no action needed: the slow I/O is background work that no session waits for".into(),
    })
}
