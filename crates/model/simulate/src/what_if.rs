//! Changes of a storage and of its clients, and the curves that a simulation predicts for them.

use crate::curve::curve;
use crate::model::{Limit, Mechanics, SimulationError, Storage};
use capability::{Curve, Demand as LinearCost};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use workload::{Layout, Phase, Shape, Workload};

/// Changes: "disks=3,layout=stripe:64K,latency=0.5x,clients=2x,limits=none,batch=10".
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WhatIf {
    /// Number of disks like the first.
    pub disks: Option<u32>,
    /// How they make one range.
    pub layout: Option<Layout>,
    /// Factor of every duration of the disks.
    pub latency: f64,
    /// Factor of the outstanding I/Os.
    pub clients: f64,
    /// Factor of every limit; infinite: no limits.
    pub limits: f64,
    /// Commits that are written together.
    pub batch: u32,
}

/// A text that is no change.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is not a change; give some of disks=3, layout=stripe:64K, latency=0.5x, clients=2x, limits=2x or none, batch=10"
)]
pub struct InvalidChange(String);

impl Default for WhatIf {
    fn default() -> WhatIf {
        WhatIf { disks: None, layout: None, latency: 1.0, clients: 1.0, limits: 1.0, batch: 1 }
    }
}

impl FromStr for WhatIf {
    type Err = InvalidChange;

    fn from_str(text: &str) -> Result<WhatIf, InvalidChange> {
        let mut what_if = WhatIf::default();
        for change in text.split(',').map(str::trim) {
            let bad = || InvalidChange(change.to_owned());
            let (key, value) = change.split_once('=').ok_or_else(bad)?;
            let factor = |value: &str| {
                let factor: Option<f64> = value.trim_end_matches('x').parse().ok();
                factor.filter(|factor| (1e-3..=1e3).contains(factor)).ok_or_else(bad)
            };
            let count =
                |most: u32| value.parse().ok().filter(|count| (1..=most).contains(count)).ok_or_else(bad);
            match key {
                "disks" => what_if.disks = Some(count(Storage::DISKS_MAX as u32)?),
                "layout" => what_if.layout = Some(value.parse().map_err(|_| bad())?),
                "latency" => what_if.latency = factor(value)?,
                "clients" => what_if.clients = factor(value)?,
                "limits" if value == "none" => what_if.limits = f64::INFINITY,
                "limits" => what_if.limits = factor(value)?,
                "batch" => what_if.batch = count(1_000_000)?,
                _ => return Err(bad()),
            }
        }
        Ok(what_if)
    }
}

impl fmt::Display for WhatIf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut changes = Vec::new();
        changes.extend(self.disks.map(|disks| format!("disks={disks}")));
        changes.extend(self.layout.map(|layout| format!("layout={layout}")));
        for (key, times) in [("latency", self.latency), ("clients", self.clients), ("limits", self.limits)] {
            match times {
                1.0 => {}
                times if times.is_infinite() => changes.push(format!("{key}=none")),
                times => changes.push(format!("{key}={times}x")),
            }
        }
        if self.batch > 1 {
            changes.push(format!("batch={}", self.batch));
        }
        f.write_str(&changes.join(","))
    }
}

impl WhatIf {
    /// The changed storage. More disks are striped unless the change has a layout.
    #[must_use]
    pub fn storage(&self, storage: &Storage) -> Storage {
        let mut changed = storage.clone();
        if let (Some(disks), Some(first)) = (self.disks, storage.disks.first()) {
            changed.disks = vec![first.clone(); disks as usize];
            if disks > 1 && storage.disks.len() == 1 {
                changed.layout = Layout::Stripe { unit_bytes: Layout::UNIT_BYTES };
            }
        }
        changed.layout = self.layout.unwrap_or(changed.layout);
        self.limit(&mut changed.limits);
        for disk in &mut changed.disks {
            self.limit(&mut disk.limits);
            match &mut disk.mechanics {
                Mechanics::Flash(flash) => {
                    for cost in [&mut flash.read, &mut flash.write] {
                        cost.channel = cost.channel.times(self.latency);
                        cost.channel_byte_ns *= self.latency;
                        cost.service = cost.service.times(self.latency);
                        cost.service_byte_ns *= self.latency;
                        cost.delay = cost.delay.times(self.latency);
                        cost.delay_byte_ns *= self.latency;
                    }
                }
                Mechanics::Rotating(arm) => {
                    arm.rpm /= self.latency;
                    arm.seek_ns_min = (arm.seek_ns_min as f64 * self.latency) as u64;
                    arm.seek_ns_max = (arm.seek_ns_max as f64 * self.latency) as u64;
                }
            }
            disk.sync = disk.sync.times(self.latency);
        }
        changed
    }

    fn limit(&self, limits: &mut Vec<Limit>) {
        if self.limits.is_infinite() {
            limits.clear();
        }
        limits.iter_mut().for_each(|limit| {
            limit.per_second *= self.limits;
            limit.burst *= self.limits;
        });
    }

    /// The phase of the changed clients, with commits written together.
    #[must_use]
    pub fn phase(&self, phase: &Phase) -> Phase {
        let mut changed = phase.clone();
        for placed in &mut changed.workloads {
            let workload = &mut placed.workload;
            workload.outstanding = self.outstanding(workload.outstanding);
            for rate in [&mut workload.limit.iops, &mut workload.limit.bytes_per_s].into_iter().flatten() {
                *rate *= self.clients;
            }
            match &mut workload.arrival {
                workload::Arrival::Constant { iops } | workload::Arrival::Poisson { iops } => {
                    *iops *= self.clients;
                }
                workload::Arrival::Recorded { speed } => {
                    *speed *= self.clients;
                }
                workload::Arrival::Closed => {}
            }
            if let Some(sync) = &mut workload.sync {
                sync.writes = sync.writes.saturating_mul(self.batch);
            }
        }
        changed
    }

    fn outstanding(&self, outstanding: u32) -> u32 {
        ((f64::from(outstanding) * self.clients).round() as u32).clamp(1, Workload::OUTSTANDING_MAX)
    }
}

/// The effect of a change, by simulation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Prediction {
    /// The curve of the model.
    pub before: Curve,
    /// The curve with the changes.
    pub after: Curve,
    /// Outstanding I/Os of today's clients and of the changed ones.
    pub outstanding: (u32, u32),
    /// I/Os a second that today's clients get.
    pub demand_iops: f64,
    /// Multiples of the demand that the storage carries: today's, and the changed one with the changes.
    pub headroom: (f64, f64),
    /// Rows committed a second by one writer, with one row in each commit and with `batch` rows; `None` where log writes
    /// were not measured.
    pub rows_per_s: Option<(f64, f64)>,
}

/// Bytes of one commit in a log write.
const COMMIT_BYTES: f64 = 4096.0;

/// The model that a change is applied to, and how it is simulated.
#[derive(Clone, Copy, Debug)]
pub struct PredictedModel<'a> {
    /// Today's storage.
    pub storage: &'a Storage,
    /// Duration of a log write, where it was measured.
    pub commit: Option<LinearCost>,
    /// I/Os that today's clients keep outstanding; `None`: as many as the knee.
    pub outstanding: Option<u32>,
    /// I/Os simulated for each point.
    pub ios: u64,
}

/// Curves of a shape before and after a change.
///
/// # Errors
/// Where the changed storage cannot be simulated.
pub fn predict(
    model: &PredictedModel<'_>,
    shape: &Shape,
    what_if: &WhatIf,
) -> Result<Prediction, SimulationError> {
    let PredictedModel { storage, commit, outstanding, ios } = *model;
    let changed = what_if.storage(storage);
    let wider = changed.disks.len() as f64 / storage.disks.len().max(1) as f64;
    let sweep = |most: u32| -> Vec<u32> {
        std::iter::successors(Some(1_u32), |n| n.checked_mul(2)).take_while(|n| *n <= most).collect()
    };
    // As far as the knee can move.
    let most = (256.0 * wider.max(1.0)).min(4096.0) as u32;
    let before = curve(storage, shape, &sweep(most), ios)?;
    let after = curve(&changed, shape, &sweep(most), ios)?;
    let knee = before.knee.as_ref().map_or(1.0, |knee| knee.outstanding);
    let today = outstanding.unwrap_or((knee.round() as u32).max(1));
    let rate =
        |curve: &Curve, n: u32| curve.latency_ns_at(f64::from(n)).map_or(0.0, |ns| f64::from(n) * 1e9 / ns);
    let demand_iops = rate(&before, today);
    let headroom = |curve: &Curve, demand: f64| curve.iops_max().unwrap_or(0.0) / demand;
    let rows_per_s = commit.map(|line| {
        let rows = |batch: f64| {
            batch * 1e9 / line.at_bytes((COMMIT_BYTES * batch).min(COMMIT_BYTES * 16.0).max(batch * 256.0))
        };
        (rows(1.0), rows(f64::from(what_if.batch)) / what_if.latency)
    });
    Ok(Prediction {
        outstanding: (today, what_if.outstanding(today)),
        headroom: (headroom(&before, demand_iops), headroom(&after, demand_iops * what_if.clients)),
        before,
        after,
        demand_iops,
        rows_per_s,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Disk, Metered, Time};

    fn disk() -> Disk {
        Disk::flash(64 << 30, 16, Time::Fixed { ns: 20_000_000 }, Time::Fixed { ns: 1_000_000 })
    }

    fn model(storage: &Storage) -> PredictedModel<'_> {
        PredictedModel { storage, commit: None, outstanding: None, ios: 4_000 }
    }

    fn predicted(changes: &str) -> Prediction {
        let shape = Shape::random_read(65_536);
        predict(&model(&Storage::single(disk())), &shape, &changes.parse().unwrap()).unwrap()
    }

    #[test]
    fn changes_are_read_as_they_are_written() {
        let read: WhatIf =
            "disks=3, latency=0.5x,clients=2,layout=stripe:128K,limits=none,batch=10".parse().unwrap();
        let layout = Some(Layout::Stripe { unit_bytes: 131_072 });
        let wanted =
            WhatIf { disks: Some(3), layout, latency: 0.5, clients: 2.0, limits: f64::INFINITY, batch: 10 };
        assert_eq!(read, wanted);
        assert_eq!(read.to_string().parse(), Ok(wanted));
        for wrong in ["", "disks", "disks=0", "latency=-1x", "clients=nan", "memory=2x", "batch=1.5"] {
            assert!(wrong.parse::<WhatIf>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn three_disks_striped_carry_three_times_as_much_and_saturate_at_three_times_the_load() {
        let predicted = predicted("disks=3");
        let (before, after) = (predicted.before.knee.unwrap(), predicted.after.knee.unwrap());
        assert!((before.outstanding / 16.0 - 1.0).abs() < 0.05, "{before:?}");
        assert!((after.outstanding / before.outstanding - 3.0).abs() < 0.15, "{after:?}");
        assert!((predicted.headroom.1 / predicted.headroom.0 - 3.0).abs() < 0.15);
    }

    #[test]
    fn half_the_latency_doubles_the_rate_and_twice_the_clients_use_it_up() {
        let predicted = predicted("latency=0.5x,clients=2x");
        assert_eq!(predicted.outstanding, (16, 32));
        assert!((predicted.headroom.1 / predicted.headroom.0 - 1.0).abs() < 0.05, "{:?}", predicted.headroom);
    }

    #[test]
    fn a_limit_holds_for_a_faster_disk_until_it_is_lifted() {
        let limit = Limit { of: Metered::Ios, per_second: 400.0, burst: 1.0, refill_ns: 0 };
        let storage = Storage::single(Disk { limits: vec![limit], ..disk() });
        let most = |changes: &str| {
            let shape = Shape::random_read(4096);
            let changes = changes.parse().unwrap();
            predict(&model(&storage), &shape, &changes).unwrap().after.iops_max().unwrap()
        };
        assert!((most("latency=0.25x") / 400.0 - 1.0).abs() < 0.02);
        assert!((most("limits=none") / 800.0 - 1.0).abs() < 0.02);
    }
}
