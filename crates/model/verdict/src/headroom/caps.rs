//! How far a cap lets the work grow that was not there, or was higher, when the storage was measured; any cap where the storage
//! never was. A cap that was there is part of what was measured.

use super::read_ahead::{READ_AHEAD_HIGH, READ_AHEAD_LOW, READ_AHEAD_REASON};
use super::{BESIDE_LOG_MIN, Growth, Headroom, MEASURED_WITHIN, WRITES_PER_PAGE_MIN, largest_factor};
use crate::case::Case;
use crate::thresholds::CAP_REACHED;
use capability::{Flow, Side};
use workload::{Cap, CapKind};

impl Case<'_> {
    /// Lowers the headroom of the storage to that of the caps, where one is reached first.
    pub(super) fn below_caps(&self, room: Headroom, growth: Option<&Growth>) -> Headroom {
        let used =
            self.new_caps().map(|(cap, rate, _)| (cap, (rate / cap.per_second.max(1) as f64).min(1.0)));
        let used = used.filter(|(_, share)| *share > 0.0);
        used.fold(room, |room, (cap, share)| self.below_cap(room, cap, share, growth))
    }

    /// Limits the headroom to a cap of which this share is used.
    fn below_cap(&self, room: Headroom, cap: &Cap, share: f64, growth: Option<&Growth>) -> Headroom {
        let alike = 1.0 / share;
        let is_of_writes = matches!(cap.kind, CapKind::WriteIops | CapKind::WriteBytes);
        let growth = growth.filter(|_| is_of_writes);
        let shared = growth.map_or([alike; 2], |growth| growth.factors_below(cap.kind, share));
        let [plan, high] = shared.map(|factor| factor.max(alike));
        // More I/O at a cap that is reached gets through, but waits longer: that is no room.
        let (plan, reached) =
            if share >= CAP_REACHED { (alike, "is reached") } else { (plan, "is reached first") };
        let is_read_ahead = !is_of_writes && self.reads_ahead();
        let (low, plan, high) = match growth {
            // Three quarters, as without a cap; but what is done today fits.
            Some(growth) if growth.is_bulk_load() => {
                let plan = (plan * self.part_of_bulk_loads()).max(plan.min(1.0));
                ((alike * BESIDE_LOG_MIN).min(plan), plan, high * MEASURED_WITHIN)
            }
            None if is_read_ahead => (alike / READ_AHEAD_LOW, plan, high * READ_AHEAD_HIGH),
            _ => (alike, plan, high * MEASURED_WITHIN),
        };
        let name = format!("a cap of {cap} ({})", cap.origin);
        let reason = match room.reason {
            _ if plan < room.plan && is_read_ahead => Some(format!("{name} {reached}; {READ_AHEAD_REASON}")),
            _ if plan < room.plan => Some(format!("{name} {reached}")),
            Some(reason) if room.high.is_infinite() => Some(format!("{reason}; {name} is the high end")),
            None if low < room.low => Some(format!("{name} is the low end")),
            reason => reason,
        };
        Headroom { plan: room.plan.min(plan), low: room.low.min(low), high: room.high.min(high), reason }
    }
}

impl Growth {
    /// The largest factors, to plan with and at most, at which no more is written than a cap permits of which this share is used
    /// now. Log writes get fewer and larger where a cap on operations holds them back, and share it with the pages as they share a
    /// full storage. Those of bulk loads are large already: to plan with, they are x times as many.
    fn factors_below(&self, kind: CapKind, share: f64) -> [f64; 2] {
        let is_bulk_load = self.is_bulk_load();
        // The cap's count of a flow, and of the log; the part that is left beside the log.
        let (of, log_ios, beside_log): (fn(&Flow) -> f64, f64, f64) = match kind {
            CapKind::WriteIops if is_bulk_load => (|flow| flow.per_second, self.log_ios, 1.0),
            CapKind::WriteIops => (|flow| flow.per_second, self.log_ios, self.beside_log(1.0)),
            _ => (|flow| flow.per_second * flow.bytes, 0.0, 1.0),
        };
        let growing = if is_bulk_load { log_ios } else { 0.0 };
        let written = |factor: f64, writes_per_page: f64, still_held: &Flow| {
            let all = self.grown(factor, writes_per_page, still_held);
            all.iter().filter(|flow| flow.side == Side::Write).map(of).sum::<f64>()
        };
        // The cap has not counted pages that are not written yet.
        let counted = written(1.0, self.writes_per_page, &self.dirty) - of(&self.dirty) + log_ios;
        let until = |most: f64, log_ios: f64, writes_per_page: f64, still_held: &Flow| {
            largest_factor(|factor| {
                let all = written(factor, writes_per_page, still_held) + factor * log_ios;
                all * share <= counted * most
            })
        };
        [
            until(beside_log, growing, self.writes_per_page, &self.dirty),
            until(1.0, 0.0, WRITES_PER_PAGE_MIN, &self.held_back),
        ]
    }
}
