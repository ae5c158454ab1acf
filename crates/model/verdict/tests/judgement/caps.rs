//! How far a cap lets today's work grow that was not there when the storage was measured.

use crate::builder::*;
use crate::headroom::range;
use filestats::{Interval, Ops, ServiceLevel};
use verdict::{CapUse, Observation, ProcessorUse, judge};
use workload::{Cap, CapKind, Shape};

/// With a cap that was not there when the storage was measured, of which so much a second is used.
fn capped(kind: CapKind, per_second: u64, counted: u64, mut observation: Observation) -> Observation {
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

#[test]
fn bulk_loads_need_more_of_the_writes_that_a_new_cap_counts_as_they_become_many() {
    let with_commits_of = |bytes: u64| {
        let mut observation = steady(Load { commits: 20, sync_ns: 2 * MS, ..Load::default() });
        for file in observation.moments.iter_mut().flat_map(|moment| &mut moment.files) {
            let Interval::Known(delta) = &mut file.interval else { continue };
            let write = &mut delta.counters.write;
            *write = Ops::timed(write.count, write.count * bytes, write.count * 10 * US);
        }
        range(&verdict(&capped(CapKind::WriteIops, 100, 20, observation)))
    };
    let (_, small, _) = with_commits_of(4096);
    assert!(small > 10.0, "they share writes: {small}");
    // Of bulk loads three quarters.
    let (low, large, high) = with_commits_of(90_000);
    assert!((3.7..3.8).contains(&large) && low <= large && high >= 5.0, "{low} {large} {high}");
}
