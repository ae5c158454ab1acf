//! Learning from simulated disks, whose limits are known: no bound above the truth, each full resource is found, and nothing
//! else is taken for full.

use capability::{Bound, Resource, ResourceName};
use proptest::prelude::*;
use seen::{Learner, Saturated, Second, Seen, Side};
use simulate::{Disk, Job, Limit, Machine, Metered, Storage, Time, curve};
use std::time::Duration;
use workload::{Arrival, Phase, RunLength, Shape, Tally, Workload};

const PHASE_S: u64 = 20;
const PHASES: u64 = 30;
const BEGIN_NS: u64 = 1_000_000_000_000;

fn flash(units: u32, read_us: u64, write_us: u64) -> Disk {
    let fixed = |us: u64| Time::Fixed { ns: us * 1_000 };
    Disk::flash(1 << 30, units, fixed(read_us), fixed(write_us))
}

/// Flash whose service times vary as much as those of independent users' I/Os do.
fn random_flash(units: u32, service_us: u64) -> Disk {
    let service = Time::Exponential { mean_ns: service_us as f64 * 1e3 };
    Disk::flash(1 << 30, units, service.clone(), service)
}

fn limited(disk: Disk, of: Metered, per_second: f64) -> Storage {
    let limit = Limit { of, per_second, burst: per_second / 20.0, refill_ns: 0 };
    Storage { limits: vec![limit], ..Storage::single(disk) }
}

/// I/Os a second of a shape, saturated.
fn truth(storage: &Storage, shape: &Shape) -> f64 {
    curve(storage, shape, &[128], 6_000).unwrap().iops_max().unwrap()
}

/// Numbers between 0 and 1 that look random: the same for the same seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }
}

fn side(tally: &Tally) -> Side {
    Side {
        ios: tally.count as f64,
        bytes: tally.bytes as f64,
        served_s: tally.stall_ns as f64 / 1e9,
        waited_s: 0.0,
    }
}

/// Lets a demand wander for ten minutes, between `least` and `most` times what the storage gives.
fn watch(learner: &mut Learner, storage: &Storage, shape: Shape, (least, most): (f64, f64), seed: u64) {
    let full = truth(storage, &shape);
    let mut machine = Machine::new(storage).unwrap();
    let mut dice = Dice(seed);
    let began = learner.seen().until_unix_ns.max(BEGIN_NS) + 10_000_000_000;
    for at in 0..PHASES {
        let iops = full * (least + (most - least) * dice.roll());
        let outstanding = 4 + (60.0 * dice.roll()) as u32;
        let workload = Workload {
            arrival: Arrival::Poisson { iops },
            seed: seed + at,
            ..Workload::from(shape).with_outstanding(outstanding)
        };
        let length = RunLength { duration: Duration::from_secs(PHASE_S), ..RunLength::default() };
        let phase = Phase { slice: Duration::from_secs(1), ..Phase::single(workload.clone(), length) };
        let bytes = machine.size_bytes();
        let job =
            Job { workload: &workload, target: "disk".into(), offset: 0, bytes, weight: 1, trace: None };
        let result = machine.run(&phase, &[job], &mut |_, _| true).unwrap().remove(0);
        for slice in result.series.iter().take(PHASE_S as usize) {
            learner.observe(&Second {
                ended_unix_ns: began + at * PHASE_S * 1_000_000_000 + slice.end_ns,
                elapsed_s: 1.0,
                reads: side(&slice.read),
                writes: side(&slice.write),
                ..Second::default()
            });
        }
    }
}

fn learned(storage: &Storage, shape: Shape, range: (f64, f64), seed: u64) -> Seen {
    let mut learner = Learner::default();
    watch(&mut learner, storage, shape, range, seed);
    learner.seen().clone()
}

/// Of a storage's own truth, the figure that a resource should have.
fn share_of_truth(storage: &Storage, resource: &Resource) -> f64 {
    let bytes = resource.io_bytes.unwrap();
    let block = ((bytes / 512.0).round() * 512.0) as u32;
    let writes = match resource.name {
        ResourceName::ReadOperations | ResourceName::ReadBandwidth => 0,
        ResourceName::WriteOperations | ResourceName::WriteBandwidth => 100,
        _ => resource.write_percent.unwrap(),
    };
    let iops = truth(storage, &Shape::random_read(block).with_writes(writes));
    let in_bytes = resource.unit == workload::Unit::BytesPerSecond;
    resource.value / if in_bytes { iops * bytes } else { iops }
}

#[track_caller]
fn no_bound_is_above_the_truth(storage: &Storage, seen: &Seen) {
    let bounds = seen.resources().into_iter().filter(|one| one.bound == Bound::AtLeast);
    for resource in bounds {
        let share = share_of_truth(storage, &resource);
        assert!(share <= 1.05, "{share} of the truth: {resource:?}");
    }
}

#[test]
fn what_was_full_is_found_on_twelve_storages_and_loads() {
    let storages = [
        ("operations-capped", limited(flash(16, 1_000, 1_000), Metered::Ios, 1_500.0)),
        ("bandwidth-capped", limited(flash(16, 1_000, 1_000), Metered::Bytes, 24e6)),
        ("latency x width", Storage::single(flash(8, 5_000, 5_000))),
        ("fast", Storage::single(flash(2, 400, 300))),
    ];
    let shapes = [
        Shape::random_read(8192),
        Shape::random_read(16_384).with_writes(30),
        Shape::random_read(8192).with_writes(60),
    ];
    let mut right = 0;
    for (name, storage) in &storages {
        for (at, shape) in shapes.iter().enumerate() {
            let seen = learned(storage, *shape, (0.2, 1.4), 7 + at as u64);
            no_bound_is_above_the_truth(storage, &seen);
            let full: Vec<Resource> = seen.saturated.iter().map(Saturated::resource).collect();
            let shares: Vec<f64> = full.iter().map(|full| share_of_truth(storage, full)).collect();
            let is_right = !full.is_empty() && shares.iter().all(|share| (0.85..=1.15).contains(share));
            if !is_right {
                eprintln!("{name}, {shape}: {shares:?} of the truth: {full:#?}");
            }
            right += usize::from(is_right);
        }
    }
    assert!(right >= 11, "{right} of 12");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, ..ProptestConfig::default() })]

    #[test]
    fn a_storage_that_was_never_full_has_lower_bounds_only(
        units in 1_u32..24,
        service_us in 500_u64..6_000,
        is_random in any::<bool>(),
        writes in prop_oneof![Just(0_u8), Just(30), Just(100)],
        seed in 0_u64..1_000,
    ) {
        // At most two thousand a second, so that a test takes no longer than a breath.
        let service_us = service_us.max(u64::from(units) * 500);
        let disk = if is_random { random_flash(units, service_us) } else { flash(units, service_us, service_us) };
        let storage = Storage::single(disk);
        let shape = Shape::random_read(8192).with_writes(writes);
        let seen = learned(&storage, shape, (0.05, 0.7), seed);
        no_bound_is_above_the_truth(&storage, &seen);
        prop_assert!(seen.saturated.is_empty(), "{:#?}", seen.saturated);
        prop_assert!(!seen.reached.is_empty());
    }

    #[test]
    fn what_was_full_is_within_15_percent(
        units in 1_u32..24,
        service_us in 500_u64..6_000,
        is_random in any::<bool>(),
        cap in prop_oneof![Just(None), (200.0_f64..1_500.0).prop_map(Some)],
        writes in prop_oneof![Just(0_u8), Just(40), Just(100)],
        seed in 0_u64..1_000,
    ) {
        let service_us = service_us.max(u64::from(units) * 500);
        let disk = if is_random { random_flash(units, service_us) } else { flash(units, service_us, service_us) };
        let storage = match cap {
            Some(cap) => limited(disk, Metered::Ios, cap),
            None => Storage::single(disk),
        };
        let shape = Shape::random_read(8192).with_writes(writes);
        let seen = learned(&storage, shape, (0.2, 1.5), seed);
        no_bound_is_above_the_truth(&storage, &seen);
        for full in &seen.saturated {
            let share = share_of_truth(&storage, &full.resource());
            prop_assert!((0.85..=1.15).contains(&share), "{} of the truth: {:?}", share, full);
        }
    }
}

#[test]
fn a_storage_that_became_slower_is_learned_from_the_beginning() {
    let fast = Storage::single(flash(8, 1_000, 1_000));
    let slow = Storage::single(flash(2, 4_000, 4_000));
    let shape = Shape::random_read(8192);
    let mut learner = Learner::default();
    watch(&mut learner, &fast, shape, (0.1, 1.3), 1);
    let before = learner.seen().clone();
    assert!(before.forgotten_unix_ns.is_none());
    let carried = |seen: &Seen| seen.reached.iter().map(|one| one.rates.reads.ios).fold(0.0, f64::max);
    assert!(carried(&before) > 4_000.0, "{before:#?}");
    watch(&mut learner, &slow, shape, (0.02, 1.3), 2);
    watch(&mut learner, &slow, shape, (0.02, 1.3), 3);
    let after = learner.seen();
    assert!(after.forgotten_unix_ns.is_some(), "{after:#?}");
    assert!(carried(after) < 525.0, "{after:#?}");
    let text = serde_json::to_string(after).unwrap();
    assert_eq!(&serde_json::from_str::<Seen>(&text).unwrap(), after);
    assert!(text.len() < 16_384, "{} bytes", text.len());
}
