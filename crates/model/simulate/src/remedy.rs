//! How far each remedy would carry a demand that is more than the storage gives.

use crate::fit::Fit;
use crate::machine::{Job, Machine};
use crate::model::Storage;
use crate::what_if::WhatIf;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use workload::{Arrival, Phase, RunLength, RunResult, Shape, Workload, format_bytes};

/// What is asked of a storage, on average.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Demand {
    /// Reads a second.
    pub reads_per_s: f64,
    /// Mean bytes of each.
    pub read_bytes: f64,
    /// Writes a second.
    pub writes_per_s: f64,
    /// Mean bytes of each.
    pub write_bytes: f64,
    /// Those of the writes that commits wait for, a second.
    pub commits_per_s: f64,
}

/// What could be done, and what it would bring: an estimate by simulation, never a measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Remedy {
    /// What is done, for people: "2 such disks striped".
    pub what: String,
    /// How many times today's demand the storage would carry.
    pub carries: f64,
    /// Mean latency at today's demand, nanoseconds; `None` where it would still be too much.
    pub latency_ns: Option<f64>,
    /// Whether today's demand would leave room to spare: 30 % of what it carries, as below 70 % a queue stays short.
    pub enough: bool,
}

/// What `check` says beside its verdict: how far each remedy would carry, and how far the model behind that is off.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Advice {
    /// The remedies, beginning with the storage as it is.
    pub remedies: Vec<Remedy>,
    /// The fit's error on points that it never saw, as a share; `None` where none were kept out.
    pub error: Option<f64>,
}

/// From this share of what can be carried on, there is no room to spare.
const SHARE_ENOUGH: f64 = 0.7;
/// I/Os of one simulated stretch.
const IOS: f64 = 10_000.0;
/// Most outstanding at once.
const OUTSTANDING: u32 = 1024;
/// Disks that are tried.
const DISKS: [u32; 5] = [2, 3, 4, 8, 16];
/// So many are told whether they are enough or not.
const DISKS_SHOWN: u32 = 3;
/// Twice a cap brings at least so many times as much where the disk behind it was measured.
const SEEN_MIN: f64 = 1.5;
/// Commits in one, and the most that a log block holds (SQL Server's 60 KiB).
const BATCH: f64 = 10.0;
const LOG_BYTES_MAX: f64 = 61_440.0;
/// Larger I/Os than this are a stream already.
const READ_BYTES_MAX: f64 = 131_072.0;

/// The remedies that apply to a demand, each alone, beginning with what the storage carries as it is. Pure: the same
/// fit and demand give the same.
pub fn remedies(fit: &Fit, demand: &Demand) -> Vec<Remedy> {
    let storage = &fit.storage;
    let plain = WhatIf::default();
    let mut remedies = vec![remedy("as it is", storage, demand)];
    for disks in DISKS {
        let striped = WhatIf { disks: Some(disks), ..plain }.storage(storage);
        let it = remedy(&format!("{disks} such disks striped"), &striped, demand);
        let enough = it.enough;
        // Two and three in any case, to see how it grows; then what would be enough.
        if disks <= DISKS_SHOWN || enough {
            remedies.push(it);
        }
        if enough && disks >= DISKS_SHOWN {
            break;
        }
    }
    if storage.limits.iter().chain(storage.disks.iter().flat_map(|disk| &disk.limits)).next().is_some() {
        let raised = remedy("twice the cap", &WhatIf { limits: 2.0, ..plain }.storage(storage), demand);
        // Behind a cap that always bound, the disk was never seen: the model knows it as far as the cap let it.
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
        // What is written stays, in fewer writes; a commit's 4 KiB are seldom full.
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
        let results = ask(storage, demand, 1.0, |iops| Arrival::Poisson { iops });
        let sum_ns: f64 = results.iter().map(|result| result.latency().sum_ns() as f64).sum();
        let ios: u64 = results.iter().map(RunResult::ios).sum();
        sum_ns / ios.max(1) as f64
    });
    Remedy { what: what.to_owned(), carries, latency_ns, enough: carries * SHARE_ENOUGH >= 1.0 }
}

/// How many times the demand a storage carries: the most of which nearly all gets done, by halving.
fn carries(storage: &Storage, demand: &Demand) -> f64 {
    let all_done = |times: f64| {
        let results = ask(storage, demand, times, |iops| Arrival::Constant { iops });
        !results.is_empty()
            && results.iter().all(|result| {
                let Arrival::Constant { iops } = result.workload.arrival else { return true };
                result.ios() as f64 + 1.0 >= 0.97 * iops * result.elapsed_s()
            })
    };
    let (mut low, mut high) = (1.0_f64 / 64.0, 64.0_f64);
    for _ in 0..10 {
        let middle = (low * high).sqrt();
        if all_done(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    (low * high).sqrt()
}

/// The demand, so many times over, on a storage that nothing was done to.
fn ask(storage: &Storage, demand: &Demand, times: f64, arrival: impl Fn(f64) -> Arrival) -> Vec<RunResult> {
    let bytes = |bytes: f64| (((bytes / 512.0).round() as u32) * 512).clamp(512, Workload::BLOCK_BYTES_MAX);
    let flows = [
        (demand.reads_per_s, Shape::random_read(bytes(demand.read_bytes))),
        (demand.writes_per_s, Shape::random_write(bytes(demand.write_bytes))),
    ];
    let workloads: Vec<Workload> = flows
        .into_iter()
        .filter(|(rate, _)| *rate > 0.0)
        .map(|(rate, shape)| {
            let workload = Workload { arrival: arrival(rate * times), ..shape.into() };
            workload.with_outstanding(OUTSTANDING)
        })
        .collect();
    let rate = (demand.reads_per_s + demand.writes_per_s) * times;
    // Tokens that come ten times a second need some of their turns.
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
            storage: Storage::of(disk),
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
        assert!((carried(&found, "as it is") / 0.5 - 1.0).abs() < 0.05, "{found:?}");
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
        assert!((carried(&found, "as it is") / 0.5 - 1.0).abs() < 0.06, "{found:?}");
        assert!((carried(&found, "twice the cap") - 1.0).abs() < 0.06, "{found:?}");
        assert!(carried(&found, "10 commits in one") > 4.0, "{found:?}");
    }

    #[test]
    fn a_cap_that_hid_its_disk_is_raised_on_a_condition() {
        // The fit of a disk that a cap held at 800 a second: it looks like one that gives no more.
        let limit = Limit { of: Metered::Reads, per_second: 800.0, burst: 0.0, refill_ns: 100_000_000 };
        let fit = fit_of(Disk { limits: vec![limit], ..disk() });
        let demand = Demand { reads_per_s: 800.0, read_bytes: 8192.0, ..Demand::default() };
        let found = remedies(&fit, &demand);
        let raised = carried(&found, "twice the cap, if the disk behind it") / carried(&found, "as it is");
        assert!((raised / 2.0 - 1.0).abs() < 0.05, "{found:?}");
        assert!(carried(&found, "3 such disks") > 2.8, "three are told though two are enough: {found:?}");
    }

    #[test]
    fn a_demand_of_nothing_has_no_remedy_that_lies() {
        let found = remedies(&fit_of(disk()), &Demand::default());
        assert!(found.iter().all(|remedy| remedy.latency_ns.is_none()), "{found:?}");
    }
}
