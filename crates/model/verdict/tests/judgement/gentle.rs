//! A storage whose reads were measured gently, and whose writes only were seen.

use crate::builder::{Load, MS, disk, expected, second, steady};
use capability::{Capability, Origin};
use filestats::ServiceLevel;
use seen::{Contradiction, Learner, Seen};
use verdict::{Observation, Verdict, VerdictKind, judge};

fn gentle() -> Capability {
    let mut gentle = Capability { origin: Origin::Gentle, cost_model: None, ..disk() };
    gentle.curves.retain(|curve| curve.workload.write_percent == 0);
    gentle
}

fn reads(reads: u64) -> Load {
    Load { reads, read_ns: 4 * MS, ..Load::default() }
}

fn with_writes(reads: u64, writeback: u64) -> Load {
    Load { writeback, writeback_ns: 2 * MS, ..self::reads(reads) }
}

fn judged(load: Load, seen: Option<Seen>) -> Verdict {
    judge(&Observation { seen, ..steady(load) }, Some(&gentle()), &ServiceLevel::OLTP)
}

fn learned(load: Load, seconds: u64) -> Seen {
    let mut learner = Learner::default();
    for at in 1..=seconds {
        learner.observe(&second(at, &load).second().unwrap());
    }
    learner.seen().clone()
}

#[test]
fn a_demand_of_reads_is_judged_as_by_a_measurement() {
    let verdict = judged(reads(400), None);
    let measured = judge(&steady(reads(400)), Some(&disk()), &ServiceLevel::OLTP);
    assert_eq!((verdict.verdict, &verdict.doubts), (VerdictKind::Healthy, &measured.doubts), "{verdict:#?}");
    assert!((verdict.utilisation.unwrap() - 0.1).abs() < 0.02, "{verdict:#?}");
    assert!((verdict.headroom.unwrap() / 10.0 - 1.0).abs() < 0.1, "{verdict:#?}");
    assert!(verdict.evidence.iter().any(|fact| fact.source.contains("gently measured")), "{verdict:#?}");
}

#[test]
fn writes_that_were_never_seen_leave_no_headroom_figure() {
    let verdict = judged(with_writes(400, 400), None);
    assert_eq!(verdict.headroom, None, "{verdict:#?}");
    assert!(
        verdict.doubts.iter().any(|doubt| doubt.contains("writes were not measured")),
        "{:?}",
        verdict.doubts
    );
}

#[test]
fn writes_that_were_seen_give_a_lower_bound_that_the_reads_limit() {
    let verdict = judged(with_writes(400, 400), Some(learned(with_writes(1_200, 1_200), 60)));
    assert_eq!(verdict.verdict, VerdictKind::Healthy, "{verdict:#?}");
    assert!((verdict.headroom.unwrap() / 3.0 - 1.0).abs() < 0.05, "{verdict:#?}");
    assert!(
        verdict.doubts.iter().any(|doubt| doubt.starts_with("writes of the storage")),
        "{:?}",
        verdict.doubts
    );
    let few_reads_left = judged(with_writes(3_000, 100), Some(learned(with_writes(3_000, 400), 60)));
    assert!(few_reads_left.headroom.is_none_or(|headroom| headroom <= 1.35), "{few_reads_left:#?}");
}

/// Commits beside some reads.
fn commits(commits: u64, sync_ns: u64) -> Load {
    Load { commits, sync_ns, ..reads(50) }
}

/// Twice the reads and a hundred commits of 2 ms.
fn seen_commits() -> Seen {
    learned(Load { commits: 100, sync_ns: 2 * MS, ..reads(100) }, 200)
}

#[test]
fn commits_are_compared_with_what_they_were_seen_to_take_at_rest() {
    let agree = judged(commits(60, 3 * MS), Some(seen_commits()));
    assert_eq!(agree.verdict, VerdictKind::Healthy, "{agree:#?}");
    let slow = judged(commits(60, 20 * MS), Some(seen_commits()));
    assert_eq!(slow.verdict, VerdictKind::StorageDegraded, "{slow:#?}");
    assert!(slow.summary.contains("x what they were seen to take at rest"), "{}", slow.summary);
    let at_rest_ns = expected(&slow, "write and sync of a commit");
    assert!((at_rest_ns / (2.01 * MS as f64) - 1.0).abs() < 0.06, "{at_rest_ns}");
    let unknown = judged(commits(60, 20 * MS), None);
    assert_ne!(unknown.verdict, VerdictKind::StorageDegraded, "{unknown:#?}");
}

#[test]
fn slow_commits_of_a_device_that_is_not_slower_are_not_its_fault() {
    let fast = steady(commits(60, 2 * MS));
    let mut observation = steady(commits(60, 20 * MS));
    for (moment, fast) in observation.moments.iter_mut().zip(fast.moments) {
        moment.device = fast.device;
    }
    let observation = Observation { seen: Some(seen_commits()), ..observation };
    let verdict = judge(&observation, Some(&gentle()), &ServiceLevel::OLTP);
    assert_eq!(verdict.verdict, VerdictKind::NotStorage, "{verdict:#?}");
}

#[test]
fn slow_commits_near_the_most_that_was_seen_may_be_the_limit() {
    let verdict = judged(commits(95, 20 * MS), Some(seen_commits()));
    assert_ne!(verdict.verdict, VerdictKind::StorageDegraded, "{verdict:#?}");
}

#[test]
fn a_measurement_that_was_contradicted_for_a_day_is_doubted() {
    let known = disk();
    let contradiction = |hours: u64| Contradiction {
        name: capability::ResourceName::ReadOperations,
        times: 0.7,
        since_unix_ns: 1,
        until_unix_ns: 1 + hours * 3_600_000_000_000,
    };
    let doubts = |hours, measured_unix_ns| {
        let contradictions = vec![contradiction(hours)];
        let seen = Seen { compared_unix_ns: measured_unix_ns, contradictions, ..Seen::default() };
        let observation = Observation { seen: Some(seen), ..steady(reads(400)) };
        let verdict = judge(&observation, Some(&known), &ServiceLevel::OLTP);
        verdict.doubts.iter().filter(|doubt| doubt.contains("read-operations is 0.70 x")).count()
    };
    assert_eq!(doubts(23, known.measured_unix_ns), 0);
    assert_eq!(doubts(49, known.measured_unix_ns), 1);
    assert_eq!(doubts(49, known.measured_unix_ns + 1), 0, "of another measurement");
}
