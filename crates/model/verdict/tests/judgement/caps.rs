//! How far a cap lets today's work grow that was not there when the storage was measured.

use crate::builder::*;
use crate::headroom::range;
use filestats::{Interval, Ops, ServiceLevel};
use proptest::prelude::*;
use verdict::{CapUse, Observation, ProcessorUse, judge};
use workload::{Cap, CapKind, Shape};

/// Adds a cap that was not there when the storage was measured, of which `counted` a second is used.
pub(crate) fn capped(
    kind: CapKind,
    per_second: u64,
    counted: u64,
    mut observation: Observation,
) -> Observation {
    let cap = Cap { kind, per_second, device: "7:0".into(), origin: "/g/io.max".into() };
    observation.moments.iter_mut().for_each(|moment| {
        moment.caps = vec![CapUse { cap: cap.clone(), counted, elapsed_ns: 1_000_000_000 }];
    });
    Observation { caps: vec![cap], ..observation }
}

#[test]
fn a_cap_that_is_new_limits_the_headroom_of_reads() {
    let reads = || steady(Load { reads: 400, read_ns: 4 * MS, ..Load::default() });
    let below = verdict(&capped(CapKind::ReadIops, 800, 400, reads()));
    let (low, plan, high) = range(&below);
    assert!((low - 2.0).abs() < 1e-9 && (plan - 2.0).abs() < 1e-9 && (high - 2.2).abs() < 1e-9, "{below:#?}");
    let reason = below.headroom_reason.unwrap();
    assert!(reason.contains("800 reads a second (/g/io.max) is reached first"), "{reason}");
    let far = verdict(&capped(CapKind::ReadIops, 40_000, 400, reads()));
    assert_eq!(range(&far), range(&verdict(&reads())));
    assert_eq!(far.headroom_reason, None);
}

#[test]
fn the_cap_that_sets_the_figure_is_named_whatever_the_order() {
    let reads = steady(Load { reads: 400, read_ns: 4 * MS, ..Load::default() });
    let [near, far] = [(800, "/near"), (1_200, "/far")].map(|(per_second, origin)| Cap {
        kind: CapKind::ReadIops,
        per_second,
        device: "7:0".into(),
        origin: origin.into(),
    });
    for caps in [[near.clone(), far.clone()], [far, near]] {
        let mut observation = reads.clone();
        for moment in &mut observation.moments {
            let used = |cap: &Cap| CapUse { cap: cap.clone(), counted: 400, elapsed_ns: 1_000_000_000 };
            moment.caps = caps.iter().map(used).collect();
        }
        observation.caps = caps.to_vec();
        let verdict = verdict(&observation);
        assert!((verdict.headroom.unwrap() - 2.0).abs() < 1e-9, "{verdict:#?}");
        assert!(verdict.headroom_reason.as_ref().unwrap().contains("/near"), "{verdict:#?}");
    }
}

#[test]
fn a_cap_above_the_plan_lowers_the_high_end_alone() {
    let commits = steady(Load { commits: 200, sync_ns: 2 * MS, ..Load::default() });
    let (low, plan, high) = range(&verdict(&commits));
    let middle = ((plan + high) / 2.0) as u64;
    let below = verdict(&capped(CapKind::ReadIops, 10 * middle, 10, commits));
    assert_eq!((below.headroom_low, below.headroom), (Some(low), Some(plan)), "{below:#?}");
    assert!(below.headroom_high.unwrap() < high, "{below:#?}");
    assert!(below.headroom_reason.unwrap().contains("commits share"), "the reason of the figure");
}

#[test]
fn commits_share_the_writes_that_a_new_cap_counts() {
    let commits = || steady(Load { commits: 200, sync_ns: 2 * MS, ..Load::default() });
    let below = verdict(&capped(CapKind::WriteIops, 800, 400, commits()));
    let (low, plan, high) = range(&below);
    assert!((low - 2.0).abs() < 1e-9, "if each commit has its own writes: {below:#?}");
    assert!(plan > 10.0 && high >= plan, "they share larger ones: {below:#?}");
    let pages = Load { writeback: 200, writeback_ns: MS, reads: 200, read_ns: 4 * MS, ..Load::default() };
    let pages = steady(Load { commits: 200, sync_ns: 2 * MS, ..pages });
    let beside_pages = verdict(&capped(CapKind::WriteIops, 1_600, 800, pages));
    assert!((2.0..8.0).contains(&beside_pages.headroom.unwrap()), "{beside_pages:#?}");
    assert!(below.headroom_reason.unwrap().contains("commits share"), "the reason of the figure");
    let reached = verdict(&capped(CapKind::WriteIops, 400, 400, commits()));
    assert!(reached.headroom.unwrap() <= 1.0 && reached.headroom_high.unwrap() > 1.0, "{reached:#?}");
    let bytes = verdict(&capped(CapKind::WriteBytes, 8 << 20, 1 << 20, commits()));
    assert!(range(&bytes).1 <= 20.0, "{bytes:#?}");
}

#[test]
fn the_processor_time_of_log_writes_stops_growing_at_a_new_cap() {
    // 100 commits, with a write each, need 2 % of the processors, half of them for the log. At rest 500 writes a second would fit.
    let limit = |writes_per_s: u64| {
        let commits = steady(Load { commits: 100, sync_ns: 2 * MS, ..Load::default() });
        let mut observation = capped(CapKind::WriteIops, writes_per_s, 100, commits);
        let used = ProcessorUse { own: 0.02, count: 2, ..ProcessorUse::default() };
        observation.moments.iter_mut().for_each(|moment| moment.processors = Some(used));
        let mut capability = disk();
        for bytes in [4096, 61_440] {
            let mut append = capability.curve(&Shape::log_write(bytes)).expect("it is measured").clone();
            append.workload = Shape::log_append(bytes);
            append.points[0].cpu_ns_per_io = 200_000.0;
            capability.curves.push(append);
        }
        let verdict = judge(&observation, Some(&capability), &ServiceLevel::OLTP);
        assert!(verdict.headroom_reason.unwrap().contains("the processors run out first"));
        verdict.headroom.unwrap()
    };
    // Of a second of both processors, a transaction needs 100 us and a write of the log as much; all of them are 1 / 1.294.
    let (capped, free) = (limit(200), limit(100_000));
    assert!((free - (100.0 / 1.294 - 5.0)).abs() < 0.1, "500 writes a second: {free}");
    assert!((capped - (90.0 / 1.294 - 2.0)).abs() < 0.1, "200 writes a second, in bursts: {capped}");
}

/// Commits of `bytes` bytes; of an engine with one writer, the time that one had the turn to write.
fn commits_of(bytes: u64, writer_ns: Option<u64>) -> Observation {
    let mut observation = steady(Load { commits: 20, sync_ns: 2 * MS, ..Load::default() });
    for moment in &mut observation.moments {
        moment.writer_ns = writer_ns;
        for file in moment.files.iter_mut().chain(&mut moment.device) {
            let Interval::Known(delta) = &mut file.interval else { continue };
            let write = &mut delta.counters.write;
            *write = Ops::timed(write.count, write.count * bytes, write.count * 10 * US);
        }
    }
    observation
}

#[test]
fn bulk_loads_need_more_of_the_writes_that_a_new_cap_counts_as_they_become_many() {
    let below = |per_second: u64, observation: Observation| {
        range(&verdict(&capped(CapKind::WriteIops, per_second, 20, observation)))
    };
    let (_, small, _) = below(100, commits_of(4096, None));
    assert!(small > 10.0, "they share writes: {small}");
    // Of bulk loads three quarters of the five times that the cap allows, of an engine with one writer all.
    let (low, large, _) = below(100, commits_of(90_000, None));
    assert!((large - 3.75).abs() < 0.01 && low <= large, "{low} {large}");
    let (low, one_writer, _) = below(100, commits_of(90_000, Some(1_000)));
    assert!((one_writer - 5.0).abs() < 0.01 && (low - 3.75).abs() < 0.01, "{low} {one_writer}");
    // Today's writes fit below it.
    let (low, near, _) = below(24, commits_of(90_000, None));
    assert!((near - 1.0).abs() < 0.01 && low < near, "{low} {near}");
}

#[test]
fn a_new_cap_that_counts_nothing_limits_nothing() {
    for bytes in [4096, 90_000] {
        let free = verdict(&commits_of(bytes, None));
        let beside = verdict(&capped(CapKind::WriteIops, 30, 0, commits_of(bytes, None)));
        assert_eq!(range(&beside), range(&free));
    }
}

#[test]
fn few_log_writes_below_a_new_cap_carry_no_more_than_their_size() {
    // 25 writes of 1 MiB a second carry 6,400 commits of 4 KiB.
    let plan = |per_second: u64| {
        range(&verdict(&capped(CapKind::WriteIops, per_second, 20, commits_of(4096, None)))).1
    };
    let (tight, wide) = (plan(25), plan(10_000));
    assert!(tight < wide * 0.9, "{tight} {wide}");
}

proptest! {
    #[test]
    fn a_range_is_in_order_whatever_the_caps_the_processors_and_the_size_of_commits(
        (reads, read_times) in (0_u64..2_000, 1_u64..16),
        (commits, bytes, writer_ns) in (0_u64..1_000, 512_u64..300_000, proptest::option::of(0_u64..900_000_000)),
        cap in proptest::option::of((any::<bool>(), 1_u64..20_000, 0_u64..20_000)),
        (own, clients, count) in (0.001_f64..0.4, 0.0_f64..0.4, 0_u32..3),
        (own_waits_per_s, clients_waits_per_s) in (0.0_f64..50_000.0, 0.0_f64..50_000.0),
    ) {
        let mut observation = steady(Load { reads, read_ns: 4 * MS, commits, sync_ns: 2 * MS, ..Load::default() });
        for moment in &mut observation.moments {
            moment.writer_ns = writer_ns;
            moment.processors =
                Some(ProcessorUse { own, clients, count, own_waits_per_s, clients_waits_per_s, ..ProcessorUse::default() });
            if let Some(Interval::Known(device)) = moment.device.as_mut().map(|device| &mut device.interval) {
                device.counters.read.bytes *= read_times;
            }
            for file in moment.files.iter_mut().chain(&mut moment.device) {
                let Interval::Known(delta) = &mut file.interval else { continue };
                delta.counters.write.bytes = delta.counters.write.count * bytes;
            }
        }
        if let Some((is_of_reads, per_second, counted)) = cap {
            let kind = if is_of_reads { CapKind::ReadIops } else { CapKind::WriteIops };
            observation = capped(kind, per_second, counted, observation);
        }
        let verdict = verdict(&observation);
        if let Some(plan) = verdict.headroom {
            let (low, high) = (verdict.headroom_low.unwrap(), verdict.headroom_high.unwrap());
            prop_assert!(low > 0.0 && low <= plan && plan <= high && high.is_finite(), "{low} {plan} {high}");
        }
    }
}
