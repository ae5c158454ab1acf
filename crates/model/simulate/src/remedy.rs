//! Part of a demand that exceeds the storage that each remedy would carry.

use crate::fit::Fit;
use crate::job::Job;
use crate::machine::Machine;
use crate::model::Storage;
use crate::what_if::WhatIf;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use workload::{Access, Arrival, Phase, RunLength, RunResult, Shape, Workload, format_bytes};

/// The mean demand on a storage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Demand {
    /// Reads a second.
    pub reads_per_s: f64,
    /// Mean size.
    pub read_bytes: f64,
    /// Writes a second.
    pub writes_per_s: f64,
    /// Mean size.
    pub write_bytes: f64,
    /// Writes a second that commits wait for.
    pub commits_per_s: f64,
}

/// A remedy and its effect: an estimate by simulation, never a measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Remedy {
    /// The remedy as text: "2 such disks striped".
    pub what: String,
    /// Multiple of today's demand that the storage would carry.
    pub carries: f64,
    /// Mean latency at today's demand, nanoseconds; `None` where that would still exceed the storage.
    pub latency_ns: Option<f64>,
    /// Whether today's demand would be at most 70 % of what the storage carries, below which queues stay short.
    pub enough: bool,
}

/// Advice of `check` beside its verdict: the remedies, and the error of the model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Advice {
    /// The remedies, the first with the storage unchanged.
    pub remedies: Vec<Remedy>,
    /// Mean relative error of the model on points kept out of its fit; `None` where none were.
    pub error: Option<f64>,
}

/// A demand of a larger share of what the storage carries leaves no reserve.
const SHARE_ENOUGH: f64 = 0.7;
/// I/Os of one simulation.
const IOS: f64 = 10_000.0;
/// Most outstanding I/Os.
const OUTSTANDING: u32 = 1024;
/// Numbers of disks that are tried.
const DISKS: [u32; 5] = [2, 3, 4, 8, 16];
/// Up to this many disks are reported in any case.
const DISKS_SHOWN: u32 = 3;
/// If twice the cap brings less than this factor, the disk behind the cap was never measured.
const SEEN_MIN: f64 = 1.5;
/// Commits that are written together.
const BATCH: f64 = 10.0;
/// Most bytes of a log block (SQL Server).
const LOG_BYTES_MAX: f64 = 61_440.0;
/// Larger reads are sequential already.
const READ_BYTES_MAX: f64 = 131_072.0;

/// The remedies that apply to a demand, each alone; the first is the storage unchanged. Equal fits and demands give
/// equal remedies.
pub fn remedies(fit: &Fit, demand: &Demand) -> Vec<Remedy> {
    let storage = &fit.storage;
    let plain = WhatIf::default();
    let mut remedies = vec![remedy("unchanged", storage, demand)];
    for disks in DISKS {
        let striped = WhatIf { disks: Some(disks), ..plain }.storage(storage);
        let remedy = remedy(&format!("{disks} such disks striped"), &striped, demand);
        let enough = remedy.enough;
        // Two and three in any case, to show the growth; then the first that is enough.
        if disks <= DISKS_SHOWN || enough {
            remedies.push(remedy);
        }
        if enough && disks >= DISKS_SHOWN {
            break;
        }
    }
    if storage.limits.iter().chain(storage.disks.iter().flat_map(|disk| &disk.limits)).next().is_some() {
        let raised = remedy("twice the cap", &WhatIf { limits: 2.0, ..plain }.storage(storage), demand);
        // If the cap was always the limit, the model does not know the speed of the disk behind it.
        if raised.carries < SEEN_MIN * remedies[0].carries {
            let twice = WhatIf { disks: Some(2), ..plain }.storage(storage);
            remedies.push(remedy("twice the cap, if the disk behind it gives as much", &twice, demand));
        } else {
            remedies.push(raised);
        }
    }
    if demand.reads_per_s > 0.0 {
        let half = Demand { reads_per_s: demand.reads_per_s / 2.0, ..*demand };
        remedies.push(remedy("half of the reads answered from memory", storage, &half));
    }
    if demand.reads_per_s > 0.0 && demand.read_bytes * 2.0 <= READ_BYTES_MAX {
        let times = (READ_BYTES_MAX / demand.read_bytes).min(4.0);
        let larger = Demand {
            reads_per_s: demand.reads_per_s / times,
            read_bytes: demand.read_bytes * times,
            ..*demand
        };
        let bytes = format_bytes((larger.read_bytes / 512.0).round() as u64 * 512);
        remedies.push(remedy(&format!("the same data read in I/Os of {bytes}"), storage, &larger));
    }
    if demand.commits_per_s >= 1.0 && demand.write_bytes < LOG_BYTES_MAX / 2.0 {
        let saved = demand.commits_per_s.min(demand.writes_per_s) * (1.0 - 1.0 / BATCH);
        let writes_per_s = demand.writes_per_s - saved;
        // All bytes in fewer writes; the 4 KiB of a commit are seldom full.
        let write_bytes =
            demand.write_bytes.max(demand.write_bytes * demand.writes_per_s / writes_per_s / 2.0);
        let batched =
            Demand { writes_per_s, write_bytes, commits_per_s: demand.commits_per_s / BATCH, ..*demand };
        remedies.push(remedy("10 commits in one", storage, &batched));
    }
    remedies
}

fn remedy(what: &str, storage: &Storage, demand: &Demand) -> Remedy {
    let carries = carries(storage, demand);
    let latency_ns = (carries > 1.0).then(|| {
        let results = simulate_demand(storage, demand, 1.0, |iops| Arrival::Poisson { iops });
        let sum_ns: f64 = results.iter().map(|result| result.latency().sum_ns() as f64).sum();
        let ios: u64 = results.iter().map(RunResult::ios).sum();
        sum_ns / ios.max(1) as f64
    });
    Remedy { what: what.to_owned(), carries, latency_ns, enough: carries * SHARE_ENOUGH >= 1.0 }
}

/// Multiple of the demand that a storage carries: the largest of which 97 % complete, by bisection.
fn carries(storage: &Storage, demand: &Demand) -> f64 {
    let carried = |times: f64| {
        let results = simulate_demand(storage, demand, times, |iops| Arrival::Constant { iops });
        !results.is_empty()
            && results.iter().all(|result| {
                let Arrival::Constant { iops } = result.workload.arrival else { return true };
                result.ios() as f64 + 1.0 >= 0.97 * iops * result.elapsed_s()
            })
    };
    let (mut low, mut high) = (1.0_f64 / 64.0, 64.0_f64);
    for _ in 0..10 {
        let middle = (low * high).sqrt();
        if carried(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    (low * high).sqrt()
}

/// Simulates a multiple of the demand on an idle storage.
fn simulate_demand(
    storage: &Storage,
    demand: &Demand,
    times: f64,
    arrival: impl Fn(f64) -> Arrival,
) -> Vec<RunResult> {
    let bytes = |bytes: f64| (((bytes / 512.0).round() as u32) * 512).clamp(512, Workload::BLOCK_BYTES_MAX);
    let flows = [
        (demand.reads_per_s, Shape::random_read(bytes(demand.read_bytes))),
        (demand.writes_per_s, Shape::random_write(bytes(demand.write_bytes))),
    ];
    let workloads: Vec<Workload> = flows
        .into_iter()
        .filter(|(rate, _)| *rate > 0.0)
        .map(|(rate, shape)| {
            // The mean of sizes is seldom one of a page. Pages do not cross the stripes of a layout.
            let align_bytes = Some(u64::from(shape.block_bytes).next_power_of_two());
            let access = Access { align_bytes, ..Access::default() };
            let workload = Workload { arrival: arrival(rate * times), access, ..shape.into() };
            workload.with_outstanding(OUTSTANDING)
        })
        .collect();
    let rate = (demand.reads_per_s + demand.writes_per_s) * times;
    // At least a second: tokens are added ten times a second.
    let seconds = (IOS / rate.max(1e-3)).clamp(1.0, 3600.0);
    let length = RunLength {
        warm_up: Duration::from_secs_f64(seconds / 4.0),
        duration: Duration::from_secs_f64(seconds),
        ..RunLength::default()
    };
    let size = storage.size_bytes();
    let job =
        |workload| Job { workload, target: String::new(), offset: 0, bytes: size, weight: 1, trace: None };
    let jobs: Vec<Job<'_>> = workloads.iter().map(job).collect();
    let Some(first) = workloads.first() else { return Vec::new() };
    let phase = Phase::single(first.clone(), length);
    let machine = Machine::new(storage);
    machine.and_then(|mut machine| machine.run(&phase, &jobs, &mut |_, _| true)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Disk, Limit, Metered, Time};

    fn fit_of(disk: Disk) -> Fit {
        Fit {
            storage: Storage::single(disk),
            error: Some(0.07),
            held_out: Vec::new(),
            trained: 20,
            not_covered: Vec::new(),
            commit: None,
        }
    }

    /// 16 at once in 20 ms: 800 a second.
    fn disk() -> Disk {
        Disk::flash(64 << 30, 16, Time::Fixed { ns: 20_000_000 }, Time::Fixed { ns: 20_000_000 })
    }

    #[track_caller]
    fn carried(remedies: &[Remedy], what: &str) -> f64 {
        remedies.iter().find(|remedy| remedy.what.contains(what)).map_or(0.0, |remedy| remedy.carries)
    }

    #[test]
    fn twice_what_a_disk_gives_needs_three_of_them() {
        let demand = Demand { reads_per_s: 1600.0, read_bytes: 8192.0, ..Demand::default() };
        let found = remedies(&fit_of(disk()), &demand);
        assert!((carried(&found, "unchanged") / 0.5 - 1.0).abs() < 0.05, "{found:?}");
        assert!((carried(&found, "2 such disks") - 1.0).abs() < 0.05, "{found:?}");
        let enough = found.iter().find(|remedy| remedy.enough).unwrap();
        assert_eq!(enough.what, "3 such disks striped");
        // Just about what one of 16 units takes.
        assert!((20e6..23e6).contains(&enough.latency_ns.unwrap()), "{enough:?}");
        assert!((carried(&found, "from memory") - 1.0).abs() < 0.05);
        assert!(
            (carried(&found, "32 KiB") / 2.0 - 1.0).abs() < 0.05,
            "operations bind: larger ones are free"
        );
        assert_eq!(carried(&found, "commits"), 0.0, "nobody commits");
        assert_eq!(found[0].latency_ns, None, "too much has no latency");
    }

    #[test]
    fn a_cap_is_named_where_there_is_one_and_commits_where_they_are() {
        let limit = Limit { of: Metered::Writes, per_second: 200.0, burst: 0.0, refill_ns: 100_000_000 };
        let fit = fit_of(Disk { limits: vec![limit], ..disk() });
        let demand =
            Demand { writes_per_s: 400.0, write_bytes: 4096.0, commits_per_s: 400.0, ..Demand::default() };
        let found = remedies(&fit, &demand);
        assert!((carried(&found, "unchanged") / 0.5 - 1.0).abs() < 0.06, "{found:?}");
        assert!((carried(&found, "twice the cap") - 1.0).abs() < 0.06, "{found:?}");
        assert!(carried(&found, "10 commits in one") > 4.0, "{found:?}");
    }

    #[test]
    fn raising_a_cap_that_hid_its_disk_is_conditional() {
        // The fit of a disk that a cap held at 800 a second: it looks like one that gives no more.
        let limit = Limit { of: Metered::Reads, per_second: 800.0, burst: 0.0, refill_ns: 100_000_000 };
        let fit = fit_of(Disk { limits: vec![limit], ..disk() });
        let demand = Demand { reads_per_s: 800.0, read_bytes: 8192.0, ..Demand::default() };
        let found = remedies(&fit, &demand);
        let raised = carried(&found, "twice the cap, if the disk behind it") / carried(&found, "unchanged");
        assert!((raised / 2.0 - 1.0).abs() < 0.05, "{found:?}");
        assert!(carried(&found, "3 such disks") > 2.8, "three are told though two are enough: {found:?}");
    }

    // The mean of pages of 8 KiB and a few larger reads.
    #[test]
    fn a_mean_size_that_is_no_page_does_not_cross_stripes() {
        let limit = Limit { of: Metered::Reads, per_second: 800.0, burst: 0.0, refill_ns: 100_000_000 };
        let fit = fit_of(Disk { limits: vec![limit], ..disk() });
        let demand = Demand { reads_per_s: 800.0, read_bytes: 9000.0, ..Demand::default() };
        let found = remedies(&fit, &demand);
        for (what, expected) in [("2 such disks", 2.0), ("3 such disks", 3.0), ("twice the cap", 2.0)] {
            let more = carried(&found, what) / carried(&found, "unchanged");
            assert!((more / expected - 1.0).abs() < 0.05, "{what}: {more}, {found:?}");
        }
    }

    #[test]
    fn a_demand_of_nothing_has_no_latency() {
        let found = remedies(&fit_of(disk()), &Demand::default());
        assert!(found.iter().all(|remedy| remedy.latency_ns.is_none()), "{found:?}");
    }
}
