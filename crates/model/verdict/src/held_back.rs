//! Caps that hold a database back, where no measurement says what it would take without: the device below does.

use crate::case::Case;
use crate::figures::IOS_TO_COMPARE;
use crate::thresholds::{COMMIT_RATIO_DEGRADED, RATIO_DEGRADED};
use workload::{Cap, CapKind};

/// The waiting operations; nanoseconds that they take for the database, and at the device.
pub(crate) type Waits = (&'static str, f64, f64);

/// The caps that hold the database back, each with its rate and whether the cap counted that.
pub(crate) fn held_back<'a>(case: &'a Case) -> impl Iterator<Item = (&'a Cap, f64, bool, Waits)> {
    let reached = case.caps_reached();
    reached.filter_map(|(cap, rate, by_cap)| Some((cap, rate, by_cap, waits_above_device(case, cap)?)))
}

/// Operations that a cap can hold back, if the database waits for them much longer than the device takes.
fn waits_above_device(case: &Case, cap: &Cap) -> Option<Waits> {
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
