//! A storage that was never measured, judged by what it was seen to give; and figures that were not measured here.

use crate::builder::{DAY, Load, MS, disk, observed, second, steady, value};
use capability::{Binding, Declared, Origin};
use filestats::{Interval, Ops, ServiceLevel};
use seen::{Learner, Seen};
use verdict::{CapUse, Confidence, Moment, Observation, Verdict, VerdictKind, judge};
use workload::{Cap, CapKind};

fn reads(reads: u64) -> Load {
    Load { reads, read_ns: 4 * MS, ..Load::default() }
}

/// Learned from the given number of seconds of each load.
fn learned(loads: &[(Load, u64)]) -> Seen {
    let mut learner = Learner::default();
    let mut at = 1;
    for (load, seconds) in loads {
        for _ in 0..*seconds {
            learner.observe(&second(at, load).second().unwrap());
            at += 1;
        }
    }
    learner.seen().clone()
}

fn unmeasured(observation: Observation, seen: Option<Seen>) -> Verdict {
    judge(&Observation { seen, ..observation }, None, &ServiceLevel::OLTP)
}

/// As many as the disk of 16 at once in 4 ms gives, with 40 outstanding.
fn full() -> Load {
    Load { reads: 4_000, read_ns: 10 * MS, ..Load::default() }
}

/// A demand that rose until the storage was full, and stayed there while more were outstanding.
fn wandered() -> Seen {
    let over = |outstanding: u64| Load { read_ns: outstanding * MS / 4, ..full() };
    let rising = [500, 1_000, 2_000, 2_600].map(|rate| (reads(rate), 60));
    let loads = rising.into_iter().chain([17, 24, 34, 48, 70, 96].map(|outstanding| (over(outstanding), 60)));
    learned(&loads.collect::<Vec<_>>())
}

#[test]
fn a_demand_that_was_carried_four_times_over_is_healthy_at_least_so_far() {
    let verdict = unmeasured(steady(reads(500)), Some(learned(&[(reads(2_000), 60)])));
    assert_eq!(verdict.verdict, VerdictKind::Healthy, "{verdict:#?}");
    assert!(
        verdict.summary.contains("at least 4.0 x this demand, seen in the last hour"),
        "{}",
        verdict.summary
    );
    assert!((verdict.headroom.unwrap() - 4.0).abs() < 0.01, "{verdict:#?}");
    assert_eq!((verdict.headroom_high, verdict.utilisation), (None, None), "a lower bound is no limit");
    assert!(verdict.doubts[0].contains("lower bound"), "{:?}", verdict.doubts);
    assert_eq!(verdict.confidence, Confidence::Low, "watched for a minute only");
}

#[test]
fn a_cap_limits_what_was_only_seen_to_be_carried() {
    let below = |per_second: u64| {
        let cap = cap(CapKind::ReadIops, per_second);
        let mut observation = steady(reads(500));
        for moment in &mut observation.moments {
            moment.caps = vec![CapUse { cap: cap.clone(), counted: 500, elapsed_ns: 1_000_000_000 }];
        }
        observation.caps = vec![cap];
        unmeasured(observation, Some(learned(&[(reads(2_000), 60)])))
    };
    let above = below(2_500);
    assert!((above.headroom.unwrap() - 4.0).abs() < 0.01, "{above:#?}");
    assert!((above.headroom_high.unwrap() - 5.5).abs() < 0.01, "{above:#?}");
    assert!(above.headroom_reason.unwrap().contains("/g/io.max) is the high end"));
    let verdict = below(1_000);
    assert_eq!((verdict.headroom_low, verdict.headroom), (Some(2.0), Some(2.0)), "{verdict:#?}");
    assert!(verdict.headroom_high.is_some_and(|high| high < 2.3), "{verdict:#?}");
    assert!(verdict.headroom_reason.unwrap().contains("/g/io.max"));
}

#[test]
fn the_most_that_was_ever_seen_is_no_reason_to_call_a_storage_full() {
    let verdict = unmeasured(steady(reads(2_000)), Some(learned(&[(reads(2_000), 60)])));
    assert_eq!(verdict.verdict, VerdictKind::CannotSay, "{verdict:#?}");
    assert!(verdict.summary.contains("at least 1.0 x this demand"), "{}", verdict.summary);
    let more = unmeasured(steady(reads(3_000)), Some(learned(&[(reads(2_000), 60)])));
    assert_eq!((more.verdict, more.headroom), (VerdictKind::CannotSay, None));
    let nothing = unmeasured(steady(reads(500)), None);
    assert!(nothing.summary.contains("nothing to compare"), "{}", nothing.summary);
}

#[test]
fn reads_that_were_carried_say_nothing_of_writes() {
    let demand = Load { writeback: 400, writeback_ns: 2 * MS, ..reads(500) };
    let verdict = unmeasured(steady(demand), Some(learned(&[(reads(3_000), 60)])));
    assert_eq!(verdict.verdict, VerdictKind::CannotSay, "{verdict:#?}");
}

#[test]
fn a_resource_that_was_seen_full_and_is_full_again_is_exceeded() {
    let seen = wandered();
    assert_eq!(seen.saturated.len(), 1, "{seen:#?}");
    let verdict = unmeasured(steady(full()), Some(seen.clone()));
    assert_eq!(verdict.verdict, VerdictKind::DemandExceedsCapability, "{verdict:#?}");
    assert_eq!(verdict.binding, Some(Binding::ReadOperations));
    assert!((value(&verdict, "highest rate, seen full") / 4_000.0 - 1.0).abs() < 0.05, "{verdict:#?}");
    let half = unmeasured(steady(reads(2_000)), Some(seen));
    assert_eq!(half.verdict, VerdictKind::Healthy, "{half:#?}");
    assert!((half.utilisation.unwrap() - 0.5).abs() < 0.05, "{half:#?}");
    assert!(half.headroom.unwrap() <= 2.1 && half.headroom_high.is_some(), "{half:#?}");
}

fn cap(kind: CapKind, per_second: u64) -> Cap {
    Cap { kind, per_second, device: "7:0".into(), origin: "/g/io.max".into() }
}

/// Caps above the device, which takes a millisecond for what passes.
fn held_back(moment: &mut Moment, caps: &[Cap]) {
    moment.caps = caps
        .iter()
        .map(|cap| CapUse { cap: cap.clone(), counted: cap.per_second, elapsed_ns: 1_000_000_000 })
        .collect();
    if let Some(Interval::Known(delta)) = moment.device.as_mut().map(|device| &mut device.interval) {
        delta.counters.read = Ops::timed(4_000, 4_000 * 8_192, 4_000 * MS);
    }
}

/// Learned from seconds without a cap, and from two minutes with these.
fn learned_under(free: Load, caps: &[Cap]) -> Seen {
    let mut learner = Learner::default();
    for at in 1..=240 {
        let mut moment = second(at, &if at <= 120 { free } else { full() });
        if at > 120 {
            held_back(&mut moment, caps);
        }
        learner.observe(&moment.second().unwrap());
    }
    learner.seen().clone()
}

fn judged_under(load: Load, caps: &[Cap], seen: Option<Seen>) -> Verdict {
    let mut observation = steady(load);
    observation.moments.iter_mut().for_each(|moment| held_back(moment, caps));
    observation.caps = caps.to_vec();
    unmeasured(observation, seen)
}

// The database waits longer than the device takes: where the cap is new, it is what throttles.
#[test]
fn a_cap_that_was_there_when_the_storage_was_seen_full_is_its_limit() {
    let reads_cap = [cap(CapKind::ReadIops, 4_000)];
    let seen = learned_under(reads(1_000), &reads_cap);
    let exceeded = judged_under(full(), &reads_cap, Some(seen.clone()));
    assert_eq!(exceeded.verdict, VerdictKind::DemandExceedsCapability, "{exceeded:#?}");
    assert!(
        exceeded.summary.contains("was there when it was seen: 4000 reads a second, /g/io.max"),
        "{}",
        exceeded.summary
    );
    // Commits that wait for the same cap take longer than at rest.
    let at_rest = learned(&[(Load { commits: 100, sync_ns: MS, ..reads(100) }, 200)]);
    let rested = Seen { commit_rest: at_rest.commit_rest, read_rest: at_rest.read_rest, ..seen.clone() };
    let commits = judged_under(Load { commits: 60, sync_ns: 20 * MS, ..full() }, &reads_cap, Some(rested));
    assert_eq!(commits.verdict, VerdictKind::DemandExceedsCapability, "{commits:#?}");
    let both = [cap(CapKind::ReadIops, 4_000), cap(CapKind::ReadBytes, 4_000 * 8_192)];
    let of_both = judged_under(full(), &both, Some(learned_under(reads(1_000), &both)));
    assert_eq!(of_both.verdict, VerdictKind::DemandExceedsCapability, "{of_both:#?}");
    // Never seen; seen under another one; seen full without one.
    let lower = [cap(CapKind::ReadIops, 3_800)];
    for (caps, seen) in [(&reads_cap, None), (&lower, Some(seen)), (&reads_cap, Some(wandered()))] {
        let verdict = judged_under(full(), caps, seen);
        assert_eq!(verdict.verdict, VerdictKind::Throttled, "{verdict:#?}");
    }
}

#[test]
fn a_cap_is_new_while_the_storage_is_known_to_give_more() {
    let caps = [cap(CapKind::ReadIops, 4_000)];
    let seen = learned_under(reads(9_000), &caps);
    assert!(seen.saturated.iter().any(|full| full.limit == Some(4_000.0)), "{seen:#?}");
    let verdict = judged_under(full(), &caps, Some(seen));
    assert_eq!(verdict.verdict, VerdictKind::Throttled, "{verdict:#?}");
}

#[test]
fn a_cap_that_was_lifted_is_no_limit_of_the_storage() {
    let seen = learned_under(reads(1_000), &[cap(CapKind::ReadIops, 4_000)]);
    let lifted = unmeasured(steady(reads(3_800)), Some(seen));
    assert_eq!((lifted.verdict, lifted.utilisation), (VerdictKind::CannotSay, None), "{lifted:#?}");
}

#[test]
fn a_cap_that_is_reached_in_some_moments_is_a_burst_without_a_measurement_too() {
    let cap = cap(CapKind::WriteIops, 1_000);
    let observation = |full_seconds: usize| {
        let mut observation = steady(Load { writeback: 30, writeback_ns: MS, ..reads(300) });
        for (at, moment) in observation.moments.iter_mut().enumerate() {
            let counted = if at < full_seconds { 1_000 } else { 100 };
            moment.caps = vec![CapUse { cap: cap.clone(), counted, elapsed_ns: 1_000_000_000 }];
        }
        observation.caps = vec![cap.clone()];
        observation
    };
    let with = |full_seconds| {
        let carried = Load { writeback: 400, writeback_ns: MS, ..reads(2_000) };
        unmeasured(observation(full_seconds), Some(learned(&[(carried, 60)])))
    };
    let burst = with(2);
    assert_eq!(burst.verdict, VerdictKind::Burst, "{burst:#?}");
    assert!(burst.summary.contains("/g/io.max) is used on average, but 2 of"), "{}", burst.summary);
    assert_eq!(with(0).verdict, VerdictKind::Healthy);
    assert!((observation(2).share_at_knee(None) - 0.2).abs() < 0.01, "the agent counts it too");
}

#[test]
fn a_burst_at_what_was_seen_full_is_named_and_one_beyond_what_was_only_carried_cannot_be_judged() {
    // 40 outstanding in one of ten seconds.
    let mut loads = [reads(400); 10];
    loads[4] = full();
    let burst = unmeasured(observed(&loads), Some(wandered()));
    assert_eq!(burst.verdict, VerdictKind::Burst, "{burst:#?}");
    assert!(burst.summary.contains("seen to give when it was full"), "{}", burst.summary);
    let mut capped = observed(&loads);
    for moment in &mut capped.moments {
        let cap = cap(CapKind::ReadIops, 100_000);
        moment.caps = vec![CapUse { cap, counted: 400, elapsed_ns: 1_000_000_000 }];
    }
    assert_eq!(unmeasured(capped, Some(wandered())).verdict, VerdictKind::Burst, "a cap far away");
    // Only reads were seen full.
    let mut loads = [reads(400); 10];
    loads[4].writeback = 3_000;
    loads[4].writeback_ns = 5 * MS;
    let both = Load { writeback: 1_000, writeback_ns: MS, ..reads(2_000) };
    let mut seen = learned(&[(both, 60)]);
    seen.saturated = wandered().saturated;
    let writes = unmeasured(observed(&loads), Some(seen));
    assert_eq!(writes.verdict, VerdictKind::CannotSay, "{writes:#?}");
    let mut loads = [reads(400); 10];
    loads[4] = full();

    let carried = |most: u64| Some(learned(&[(reads(most), 60)]));
    let beyond = unmeasured(observed(&loads), carried(4_000));
    assert_eq!(beyond.verdict, VerdictKind::CannotSay, "{beyond:#?}");
    assert!(beyond.summary.contains("1 of 10 moments"), "{}", beyond.summary);
    let within = unmeasured(observed(&loads), carried(8_000));
    assert_eq!(within.verdict, VerdictKind::Healthy, "{within:#?}");
}

#[test]
fn a_moment_in_which_nothing_waits_was_carried_as_well() {
    let alone = Load { reads: 100, read_ns: 4 * MS, ..Load::default() };
    let mut loads = [reads(200); 10];
    // As many as the most that was seen, at the latency of one at a time.
    loads[4] = reads(2_000);
    let verdict = unmeasured(observed(&loads), Some(learned(&[(alone, 60), (reads(2_000), 60)])));
    assert_eq!(verdict.verdict, VerdictKind::Healthy, "{verdict:#?}");
}

#[test]
fn a_storage_that_takes_much_longer_than_at_rest_is_not_called_healthy() {
    let rest = Load { reads: 200, read_ns: 4 * MS, ..Load::default() };
    let seen = learned(&[(rest, 120), (reads(2_000), 60)]);
    assert!(seen.read_rest.median_ns().is_some());
    let slow = Load { reads: 300, read_ns: 40 * MS, ..Load::default() };
    let verdict = unmeasured(observed(&[slow; 10]), Some(seen));
    assert_eq!(verdict.verdict, VerdictKind::CannotSay, "{verdict:#?}");
    assert!(verdict.summary.contains("longer than it was seen to take at rest"), "{}", verdict.summary);
}

#[test]
fn commits_that_take_much_longer_than_at_rest_are_not_called_healthy() {
    let commits = |commits, sync_ns| Load { commits, sync_ns, ..reads(50) };
    let seen = learned(&[(Load { reads: 100, ..commits(100, 2 * MS) }, 200)]);
    assert!(seen.commit_rest.median_ns().is_some());
    let well = unmeasured(steady(commits(60, 3 * MS)), Some(seen.clone()));
    assert_eq!(well.verdict, VerdictKind::Healthy, "{well:#?}");
    let slow = unmeasured(steady(commits(60, 20 * MS)), Some(seen));
    assert_eq!(slow.verdict, VerdictKind::CannotSay, "{slow:#?}");
    assert!(slow.summary.contains("longer than it was seen to take at rest"), "{}", slow.summary);
}

#[test]
fn what_was_measured_goes_before_what_was_seen() {
    let observation = Observation { seen: Some(wandered()), ..steady(reads(500)) };
    let with = judge(&observation, Some(&disk()), &ServiceLevel::OLTP);
    let without = judge(&steady(reads(500)), Some(&disk()), &ServiceLevel::OLTP);
    assert_eq!(with, without);
}

#[test]
fn declared_limits_are_a_doubt_and_named_in_the_evidence() {
    let mut limits = Declared { latency_ns: Some(4e6), ..Declared::default() };
    limits.set(Binding::Operations, 4_000.0);
    let declared = limits.capability(disk().target, 100 * DAY, "0").unwrap();
    let beyond = judge(&steady(reads(8_000)), Some(&declared), &ServiceLevel::OLTP);
    assert!(beyond.summary.contains("2.0 x what was declared"), "{}", beyond.summary);
    let verdict = judge(&steady(reads(400)), Some(&declared), &ServiceLevel::OLTP);
    assert!((verdict.utilisation.unwrap() - 0.1).abs() < 1e-6, "{verdict:#?}");
    assert!(
        verdict.doubts.iter().any(|doubt| doubt.contains("declared, not measured")),
        "{:?}",
        verdict.doubts
    );
    assert!(
        verdict.evidence.iter().any(|fact| fact.source == "device rates over declared limits"),
        "{verdict:#?}"
    );
    let exceeded = judge(&steady(full()), Some(&declared), &ServiceLevel::OLTP);
    assert_eq!(exceeded.verdict, VerdictKind::DemandExceedsCapability, "{exceeded:#?}");
    assert_ne!(exceeded.confidence, Confidence::High);
    let borrowed = capability::Capability { origin: Origin::Borrowed, ..disk() };
    let verdict = judge(&steady(reads(400)), Some(&borrowed), &ServiceLevel::OLTP);
    assert!(verdict.doubts.iter().any(|doubt| doubt.contains("another host")), "{:?}", verdict.doubts);
}

#[test]
fn of_several_limits_the_one_that_is_used_most_is_learned_from() {
    let mut moment = second(1, &reads(500));
    let used =
        |kind, per_second, counted| CapUse { cap: cap(kind, per_second), counted, elapsed_ns: 2_000_000_000 };
    moment.caps = vec![
        used(CapKind::ReadIops, 9_000, 1_000),
        used(CapKind::ReadIops, 600, 1_000),
        used(CapKind::WriteBytes, 10, 0),
    ];
    let limits = moment.second().unwrap().limits;
    let of_reads = limits[0].unwrap();
    assert_eq!((of_reads.per_second, of_reads.counted.round()), (600.0, 500.0));
    assert_eq!(limits.map(|limit| limit.is_some()), [true, false, false, true]);
}
