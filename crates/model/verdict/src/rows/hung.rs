//! Storage that does not answer: no counter of the database grows, so that it looks idle.

use crate::Pressure;
use crate::case::Case;
use crate::evidence::Grounds;
use crate::thresholds::{HUNG_MIN_NS, STALLED_MIN};
use workload::Unit;

pub(crate) fn hung(case: &Case) -> Option<Grounds> {
    if !case.hangs() {
        return None;
    }
    let ns = case.hung_ns() as f64;
    let what = "time in which the device had I/Os in flight and completed none";
    Some(Grounds {
        summary: format!("the device had I/Os in flight and completed none for {:.0} s", ns / 1e9),
        evidence: vec![case.observed(what, ns, Unit::Ns, "/proc/diskstats")],
        next_step: "look at the kernel's log (dmesg) for resets, path failures and hung tasks, and whether a file system below \
                    is frozen; the database goes on when the device answers"
            .into(),
    })
}

impl Case<'_> {
    /// Whether the device did not answer for long enough that no other figure says anything.
    pub fn hangs(&self) -> bool {
        self.hung_ns() >= HUNG_MIN_NS
    }

    /// How long the device hung at a stretch, the longest such time, nanoseconds.
    fn hung_ns(&self) -> u64 {
        let (mut longest, mut stretch) = (0, 0_u64);
        for moment in &self.observation.moments {
            let hung_ns = moment.pressure.hung_ns.known().filter(|_| is_waited_for(&moment.pressure));
            stretch = hung_ns.filter(|ns| *ns > 0).map_or(0, |ns| stretch.saturating_add(ns));
            longest = longest.max(stretch);
        }
        longest
    }
}

/// Tasks wait, where the kernel says whether any does: some kernels count I/Os in flight that are not there.
fn is_waited_for(pressure: &Pressure) -> bool {
    pressure.share(pressure.host_ns).known().is_none_or(|share| share >= STALLED_MIN)
}
