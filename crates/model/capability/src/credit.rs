//! Burst credits: a volume saves them while the demand is below its baseline, and spends them above it.
//!
//! ```text
//! saved += (baseline - demand) x seconds      between 0 and the most that can be saved
//! limit  = burst rate while any is saved, else the baseline
//! ```
//!
//! Credits saved before the volume was watched are not known, so that a balance begins with 0: it is a lower bound.

use crate::{Binding, Capability, RateLimit};
use serde::{Deserialize, Serialize};

/// Credit of one limit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Credit {
    /// The limited resource.
    pub of: Binding,
    /// I/Os or bytes that are saved, at least.
    pub saved: f64,
}

/// A burst that ends sooner than this is no basis for a verdict, seconds.
const LASTS_S_MIN: f64 = 600.0;

impl Credit {
    /// Nothing is known to be saved.
    pub fn new(of: Binding) -> Credit {
        Credit { of, saved: 0.0 }
    }

    /// A demand for some seconds.
    pub fn spend(&mut self, limit: &RateLimit, demand_per_s: f64, seconds: f64) {
        let most = limit.burst.map_or(0.0, |burst| burst.saved_max);
        self.saved = (self.saved + (limit.per_second - demand_per_s) * seconds).clamp(0.0, most);
    }

    /// How long it lasts at the full rate of the burst, seconds.
    pub fn lasts_s(&self, limit: &RateLimit) -> Option<f64> {
        let spent_per_s = limit.burst?.per_second - limit.per_second;
        (spent_per_s > 0.0).then(|| self.saved / spent_per_s)
    }
}

impl Capability {
    /// Its limits as they are while credit is left, with a remark on how long that is.
    #[must_use]
    pub fn with_credits(mut self, credits: &[Credit]) -> Capability {
        let Some(model) = &mut self.cost_model else { return self };
        for limit in &mut model.limits {
            let Some(burst) = limit.burst else { continue };
            let credit = credits.iter().find(|credit| credit.of == limit.of);
            let lasts_s = credit.and_then(|credit| credit.lasts_s(limit)).unwrap_or(0.0);
            if lasts_s < LASTS_S_MIN {
                continue;
            }
            let (of, baseline, rate) = (limit.of, limit.per_second, burst.per_second);
            self.conditions.remarks.push(format!(
                "{of}: {rate:.0} a second from burst credits, which last at least {:.0} min at that rate; then {baseline:.0}",
                lasts_s / 60.0
            ));
            limit.per_second = rate;
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Burst, VolumeSize, VolumeType};
    use workload::{TargetFacts, TargetKind};

    fn gp2() -> Capability {
        let volume: VolumeType = "gp2".parse().unwrap();
        let mut declared = volume.declared(&VolumeSize { gib: 100.0, ..VolumeSize::default() }).unwrap();
        declared.latency_ns = Some(1e6);
        let facts = TargetFacts {
            path: "/data".into(),
            kind: TargetKind::Directory,
            filesystem: None,
            mount: None,
            free_bytes: 0,
            devices: Vec::new(),
            direct_align_bytes: None,
            memory_align_bytes: 512,
            caps: Vec::new(),
        };
        declared.capability(facts, 1, "0").unwrap()
    }

    #[test]
    fn credit_is_saved_below_the_baseline_and_spent_above_it() {
        let burst = Some(Burst { per_second: 3_000.0, saved_max: 1e6 });
        let limit = RateLimit { of: Binding::Operations, per_second: 300.0, burst };
        let mut credit = Credit::new(Binding::Operations);
        credit.spend(&limit, 100.0, 1_000.0);
        assert_eq!((credit.saved, credit.lasts_s(&limit)), (200_000.0, Some(200_000.0 / 2_700.0)));
        credit.spend(&limit, 1_300.0, 100.0);
        assert_eq!(credit.saved, 100_000.0);
        credit.spend(&limit, 3_000.0, 1_000.0);
        assert_eq!(credit.saved, 0.0, "no less than nothing");
        credit.spend(&limit, 0.0, 1e9);
        assert_eq!(credit.saved, 1e6, "no more than can be saved");
    }

    #[test]
    fn a_volume_gives_its_burst_while_that_lasts_and_its_baseline_then() {
        let limit = |capability: &Capability| {
            let limits = &capability.cost_model.as_ref().unwrap().limits;
            limits.iter().find(|limit| limit.of == Binding::Operations).unwrap().per_second
        };
        let credit = |saved: f64| [Credit { of: Binding::Operations, saved }];
        assert_eq!(limit(&gp2().with_credits(&[])), 300.0);
        assert_eq!(limit(&gp2().with_credits(&credit(2_700.0 * 500.0))), 300.0, "less than ten minutes");
        let now = gp2().with_credits(&credit(2_700.0 * 1_900.0));
        assert_eq!(limit(&now), 3_000.0);
        let remark = now.conditions.remarks.last().unwrap();
        assert!(remark.contains("last at least 32 min") && remark.ends_with("then 300"), "{remark}");
    }
}
