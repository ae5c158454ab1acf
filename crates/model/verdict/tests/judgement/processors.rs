//! Multiple of today's work that the processors of the host can carry, where they run out before the storage.

use crate::builder::*;
use crate::headroom::{range, with_processors};
use capability::Capability;
use filestats::ServiceLevel;
use verdict::{Moment, ProcessorUse, judge};
use workload::Shape;

#[test]
fn processors_that_run_out_first_are_the_limit() {
    let load = Load { reads: 40, read_ns: 4 * MS, ..Load::default() };
    let verdict = verdict(&with_processors(steady(load), 0.25));
    let (low, plan, high) = range(&verdict);
    // 80 % of them are there for the database, which uses 25 %, and 1.3 to 2 times that for each transaction when all work, of
    // which the 45 % that do already have their part.
    assert!((low - 3.2 / 1.55).abs() < 1e-9 && (plan - 3.2 / 1.165).abs() < 1e-9, "{low} {plan}");
    assert!((high - 80.0).abs() < 1e-9, "{high}");
    let reason = verdict.headroom_reason.unwrap();
    assert!(
        reason.contains("processors") && reason.contains("uses 25 % of them") && reason.contains("100 x"),
        "{reason}"
    );
}

#[test]
fn clients_on_this_host_need_more_of_the_processors_with_the_work() {
    let mut observation = steady(Load { reads: 40, read_ns: 4 * MS, ..Load::default() });
    let used = ProcessorUse { own: 0.1, clients: 0.1, others: 0.2, ..ProcessorUse::default() };
    observation.moments.iter_mut().for_each(|moment| moment.processors = Some(used));
    let verdict = verdict(&observation);
    assert!((verdict.headroom.unwrap() - 4.0 / 1.18).abs() < 1e-9, "{verdict:#?}");
    assert!(verdict.headroom_reason.unwrap().contains("its clients 10 %"));
}

#[test]
fn the_kernel_needs_more_of_the_processors_with_the_ios_which_commits_share() {
    let limit = |load: Load| {
        let mut observation = steady(load);
        let used = ProcessorUse { own: 0.01, kernel: 0.04, ..ProcessorUse::default() };
        observation.moments.iter_mut().for_each(|moment| moment.processors = Some(used));
        let verdict = verdict(&observation);
        assert!(
            verdict.headroom_reason.as_ref().unwrap().contains("the kernel for its I/O 4 %"),
            "{verdict:#?}"
        );
        verdict.headroom.unwrap()
    };
    let reads = limit(Load { reads: 40, read_ns: 4 * MS, ..Load::default() });
    assert!((reads - 20.0 / 1.285).abs() < 0.01, "{reads}");
    // 500 writes of the log a second at most are 5 times as many, which take 20 % of the processors.
    let commits = limit(Load { commits: 100, sync_ns: 2 * MS, ..Load::default() });
    assert!((55.0..60.0).contains(&commits), "{commits}");
}

/// The headroom of 100 commits a second on a host with two processors, of which the database uses 2 %: 400 us for each commit.
fn commits_on_busy_processors(
    capability: &Capability,
    changed: impl Fn(&mut ProcessorUse, &mut Moment),
) -> f64 {
    let mut observation = steady(Load { commits: 100, sync_ns: 2 * MS, ..Load::default() });
    for moment in &mut observation.moments {
        let mut used = ProcessorUse { own: 0.02, count: 2, ..ProcessorUse::default() };
        changed(&mut used, moment);
        moment.processors = Some(used);
    }
    let verdict = judge(&observation, Some(capability), &ServiceLevel::OLTP);
    assert!(
        verdict.headroom_reason.as_ref().unwrap().contains("the processors run out first"),
        "{verdict:#?}"
    );
    verdict.headroom.unwrap()
}

/// A read needs `ns` more processor time where its thread sleeps for each.
fn disk_where_waking_takes(ns: u64) -> Capability {
    let mut capability = disk();
    let reads = capability.curves.iter_mut().find(|curve| curve.workload == Shape::random_read(8192));
    reads.expect("they are measured").points[0].cpu_ns_per_io += ns as f64;
    capability
}

#[test]
fn the_processor_time_of_a_log_write_is_shared_as_the_log_write_is() {
    let alike = commits_on_busy_processors(&disk(), |_, _| ());
    assert!((alike - 50.0 / 1.294).abs() < 0.1, "{alike}");
    // A quarter of a commit's time.
    let mut capability = disk();
    for bytes in [4096, 61_440] {
        let mut append = capability.curve(&Shape::log_write(bytes)).unwrap().clone();
        append.workload = Shape::log_append(bytes);
        append.points[0].cpu_ns_per_io = 100_000.0;
        capability.curves.push(append);
    }
    let shared = commits_on_busy_processors(&capability, |_, _| ());
    // 500 of them a second at most are 2.5 % of the processors.
    assert!((shared - (100.0 / 1.294 - 2.5) / 1.5).abs() < 0.1, "{shared}");
    let unknown = commits_on_busy_processors(&capability, |used, _| used.count = 0);
    // Half of it is waking up after the write, which is among the waits.
    let reads = capability.curves.iter_mut().find(|curve| curve.workload == Shape::random_read(8192));
    reads.unwrap().points[0].cpu_ns_per_io = 53_000.0;
    let with_waking = commits_on_busy_processors(&capability, |_, _| ());
    assert!((with_waking - (100.0 / 1.294 - 1.25) / 1.75).abs() < 0.1, "{with_waking}");
    assert!((unknown - alike).abs() < 1e-9, "how many processors there are is not known: {unknown}");
}

#[test]
fn a_processor_that_always_works_does_not_wake_up() {
    let capability = disk_where_waking_takes(50 * US);
    let limit = |waits_per_s: f64, commits: Option<u64>| {
        commits_on_busy_processors(&capability, |used, moment| {
            used.own_waits_per_s = waits_per_s;
            moment.commits = commits;
        })
    };
    let none = limit(0.0, Some(100));
    // The processors sleep 98 % of the time.
    let without = |wait_us: f64| 400.0 / (400.0 - 0.98 * wait_us);
    let two = limit(200.0, Some(100));
    assert!((two / none - without(100.0)).abs() < 0.01, "{two} {none}");
    let many = limit(2_000.0, Some(100));
    assert!((many / none - without(150.0)).abs() < 0.01, "the later ones are short: {many} {none}");
    // Of 50 transactions a second only 150 waits are long; where they are not counted, the log's writes are.
    assert!((limit(200.0, Some(50)) / none - without(75.0)).abs() < 0.01);
    assert!((limit(200.0, None) - two).abs() < 1e-9);
    assert!((limit(2_000.0, Some(1_000)) - many).abs() < 1e-9, "most of them do not wait for I/O");
    // Where waking up costs less, the caches are cold all the same: 40 us.
    let cold = |waits_per_s: f64| {
        commits_on_busy_processors(&disk(), |used, moment| {
            used.own_waits_per_s = waits_per_s;
            moment.commits = Some(100);
        })
    };
    assert!((cold(200.0) / none - without(80.0)).abs() < 0.01);
    let beside_others = |waits_per_s: f64| {
        commits_on_busy_processors(&capability, |used, _| {
            (used.own_waits_per_s, used.others) = (waits_per_s, 0.49);
        })
    };
    // The processors sleep half as often: two long waits are 50 of the 400 us.
    assert!((beside_others(200.0) / beside_others(0.0) - 400.0 / 350.0).abs() < 0.01);
}

#[test]
fn a_part_of_the_processor_time_is_work_however_long_the_waits_seem_to_be() {
    let capability = disk_where_waking_takes(200 * US);
    // Waits of 200 us in 400 us, three of the database's threads and two of its clients'.
    let limit = |clients: f64, own_waits_per_s: f64, clients_waits_per_s: f64| {
        commits_on_busy_processors(&capability, |used, moment| {
            *used = ProcessorUse { own: 0.02, clients, own_waits_per_s, clients_waits_per_s, ..*used };
            moment.commits = Some(100);
        })
    };
    let own = limit(0.0, 300.0, 0.0) / limit(0.0, 0.0, 0.0);
    assert!((own - 1.0 / 0.42).abs() < 0.02, "{own}");
    let clients = limit(0.02, 0.0, 300.0) / limit(0.02, 0.0, 0.0);
    // A quarter of the client's is left, and three switches of the database's are added.
    assert!((clients - 800.0 / (500.0 + 0.96 * 30.0)).abs() < 0.02, "{clients}");
}

#[test]
fn a_client_that_waits_more_often_than_the_database_makes_it_wait_too_when_processors_are_busy() {
    let limit = |own_waits_per_s: f64, clients_waits_per_s: f64| {
        commits_on_busy_processors(&disk(), |used, moment| {
            *used = ProcessorUse { clients: 0.02, own_waits_per_s, clients_waits_per_s, ..*used };
            moment.commits = Some(100);
        })
    };
    // Ten waits more, of 10 us each. Without them, of 800 us the database's three long waits take 40 us each, and its client's two.
    let without = 800.0 - 0.96 * 5.0 * 40.0;
    let (alike, more) = (limit(300.0, 300.0), limit(300.0, 1_300.0));
    assert!((alike / more - (without + 0.96 * 100.0) / without).abs() < 0.01, "{alike} {more}");
}

#[test]
fn a_client_with_many_waits_of_its_own_leaves_the_range_in_order() {
    let mut observation = steady(Load { reads: 40, read_ns: 4 * MS, ..Load::default() });
    let used = ProcessorUse {
        own: 0.02,
        clients: 0.075,
        count: 2,
        clients_waits_per_s: 50_000.0,
        ..ProcessorUse::default()
    };
    observation.moments.iter_mut().for_each(|moment| moment.processors = Some(used));
    let (low, plan, high) = range(&verdict(&observation));
    assert!(low <= plan && plan <= high, "{low} {plan} {high}");
    // The switches are half of the database's processor time, at most.
    assert!(plan > 0.77 / 0.105, "{plan}");
}
