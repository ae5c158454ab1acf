//! Kernel figures beside the counters of the device: pressure, and the count of a limit.

use crate::builder::*;
use filestats::{Figure, FileKind, Interval, Ops, Reason, ServiceLevel};
use verdict::{CapUse, Cause, Confidence, LogTiming, Observation, Pressure, Verdict, VerdictKind, judge};
use workload::{Cap, CapKind};

/// A second in which tasks were stalled and the busiest device was busy for these shares.
fn pressure(stalled: f64, device: f64) -> Pressure {
    let ns = |share: f64| Figure::Known((share * 1e9) as u64);
    let unknown = Figure::unknown(Reason::NotCounted);
    Pressure {
        elapsed_ns: 1_000_000_000,
        host_ns: ns(stalled),
        group_ns: unknown,
        device_ns: ns(device),
        hung_ns: Figure::Known(0),
    }
}

fn under(pressure: Pressure, mut observation: Observation) -> Observation {
    observation.moments.iter_mut().for_each(|moment| moment.pressure = pressure);
    observation
}

/// The log's writes are counted and not timed, as by MariaDB from 10.8 on.
fn untimed_log(mut observation: Observation) -> Observation {
    let unknown = Figure::unknown(Reason::NotCounted);
    for file in observation.moments.iter_mut().flat_map(|moment| &mut moment.files) {
        if let (FileKind::Log, Interval::Known(delta)) = (file.file.kind, &mut file.interval) {
            let write = delta.counters.write;
            delta.counters.write = Ops { stall_ns: unknown, ..write };
            delta.counters.sync = Figure::unknown(Reason::NotCounted);
        }
    }
    observation
}

fn write_cap() -> Cap {
    Cap { kind: CapKind::WriteIops, per_second: 800, device: "7:0".into(), origin: "/g/io.max".into() }
}

/// The limit counts `each_second` writes and flushes each second.
fn counted(each_second: u64, mut observation: Observation) -> Observation {
    observation.caps = vec![write_cap()];
    for moment in &mut observation.moments {
        moment.caps = vec![CapUse { cap: write_cap(), counted: each_second, elapsed_ns: 1_000_000_000 }];
    }
    observation
}

fn doubt(verdict: &Verdict, text: &str) -> bool {
    verdict.doubts.iter().any(|doubt| doubt.contains(text))
}

const MODEST: Load = Load {
    reads: 100,
    read_ns: 4 * MS,
    cached: 0,
    commits: 20,
    sync_ns: 2 * MS,
    writeback: 0,
    writeback_ns: 0,
    device_read_ns: None,
};

#[test]
fn tasks_that_stall_without_a_busy_device_are_a_doubt_of_a_healthy_verdict() {
    let verdict = verdict(&under(pressure(0.93, 0.1), steady(Load { reads: 80, ..MODEST })));
    assert_eq!(verdict.verdict, VerdictKind::Healthy, "{verdict:#?}");
    assert!(
        doubt(&verdict, "tasks of this host were stalled on I/O 93 % of the time, and no layer"),
        "{verdict:#?}"
    );
    assert_eq!(verdict.confidence, Confidence::Medium);
    assert!((value(&verdict, "time in which tasks of this host were stalled on I/O") - 0.93).abs() < 1e-9);
}

#[test]
fn a_stall_that_a_device_or_the_database_accounts_for_is_none() {
    let easy = Load { reads: 80, ..MODEST };
    let by_device = verdict(&under(pressure(0.93, 0.9), steady(easy)));
    assert_eq!(
        (by_device.verdict, by_device.confidence),
        (VerdictKind::Healthy, Confidence::High),
        "{by_device:#?}"
    );
    // 400 reads of 4 ms: its sessions say themselves that they wait.
    let by_sessions = verdict(&under(pressure(0.93, 0.1), steady(Load { reads: 400, ..MODEST })));
    assert_eq!(by_sessions.doubts, Vec::<String>::new(), "{by_sessions:#?}");
    let on_another_volume =
        Observation { outstanding_elsewhere: 0.9, ..under(pressure(0.93, 0.1), steady(easy)) };
    assert_eq!(verdict(&on_another_volume).doubts, Vec::<String>::new());
    let short = verdict(&under(pressure(0.3, 0.1), steady(easy)));
    assert_eq!(short.doubts, Vec::<String>::new(), "{short:#?}");
}

#[test]
fn the_databases_own_control_group_counts_before_the_host() {
    let quiet_group = Pressure { group_ns: Figure::Known(10_000_000), ..pressure(0.93, 0.1) };
    let others = verdict(&under(quiet_group, steady(Load { reads: 80, ..MODEST })));
    assert_eq!(others.doubts, Vec::<String>::new(), "others wait for other things: {others:#?}");
    let own = Pressure { group_ns: Figure::Known(900_000_000), ..pressure(0.95, 0.1) };
    let own = verdict(&under(own, steady(Load { reads: 80, ..MODEST })));
    assert!(doubt(&own, "tasks in the database's control group were stalled on I/O 90 %"), "{own:#?}");
}

#[test]
fn unknown_pressure_says_nothing() {
    let verdict = verdict(&under(Pressure::default(), steady(MODEST)));
    assert_eq!(
        (verdict.verdict, verdict.confidence),
        (VerdictKind::Healthy, Confidence::High),
        "{verdict:#?}"
    );
    assert!(!verdict.evidence.iter().any(|fact| fact.what.contains("stalled")));
}

#[test]
fn a_stall_beside_a_log_that_nobody_times_is_no_healthy_verdict() {
    let why = "cannot watch processes: run as root".to_owned();
    let mut observation = under(pressure(0.93, 0.1), untimed_log(steady(Load { reads: 80, ..MODEST })));
    observation.log_timing = LogTiming::Untimed { why };
    let stalled = verdict(&observation);
    assert_eq!(stalled.verdict, VerdictKind::CannotSay, "{stalled:#?}");
    assert!(stalled.summary.contains("93 %"), "{}", stalled.summary);
    assert!(stalled.next_step.contains("run as root"), "{}", stalled.next_step);
    let calm = verdict(&Observation {
        moments: under(pressure(0.1, 0.1), observation.clone()).moments,
        ..observation
    });
    assert_eq!(calm.verdict, VerdictKind::Healthy, "{calm:#?}");
    assert!(doubt(&calm, "run as root"), "{calm:#?}");
}

#[test]
fn a_wait_above_the_device_that_is_a_stall_on_io_is_the_kernels() {
    let load = Load { reads: 800, read_ns: 80 * MS, device_read_ns: Some(4 * MS), ..Load::default() };
    let cpu = verdict(&under(pressure(0.02, 0.02), steady(load)));
    assert_eq!(cpu.verdict, VerdictKind::NotStorage, "{cpu:#?}");
    assert!(!doubt(&cpu, "stalled"), "{cpu:#?}");
    let throttle = verdict(&under(pressure(0.9, 0.1), steady(load)));
    assert!(doubt(&throttle, "the wait is in the kernel's I/O above the device"), "{throttle:#?}");
}

#[test]
fn a_cap_that_was_there_counts_before_writes_are_merged() {
    let mut capped = disk();
    capped.target.caps = vec![write_cap()];
    let judged = |observation: &Observation| judge(observation, Some(&capped), &ServiceLevel::OLTP);
    let load = Load { commits: 100, sync_ns: 2 * MS, writeback: 70, writeback_ns: MS, ..Load::default() };
    let merged = judged(&counted(802, steady(load)));
    assert_eq!(merged.verdict, VerdictKind::DemandExceedsCapability, "{merged:#?}");
    assert!(
        merged.summary.contains("100 %") && merged.summary.contains("800 writes a second"),
        "{}",
        merged.summary
    );
    assert!((value(&merged, "writes and flushes a second that the cap counted") - 802.0).abs() < 0.5);
    // 15 x what a commit took at rest, though the device is fast: that is the queue before the cap.
    let mut queue = steady(Load { sync_ns: 30 * MS, commits: 30, ..load });
    for device in queue.moments.iter_mut().filter_map(|moment| moment.device.as_mut()) {
        let Interval::Known(delta) = &mut device.interval else { panic!() };
        delta.counters.write.stall_ns = Figure::Known(delta.counters.write.count * 2 * MS);
    }
    assert_eq!(judged(&queue).verdict, VerdictKind::NotStorage, "without what the cap counted");
    let queue = judged(&counted(610, queue));
    assert_eq!(queue.verdict, VerdictKind::DemandExceedsCapability, "{queue:#?}");
    let easy = judged(&counted(200, steady(load)));
    assert_eq!(easy.verdict, VerdictKind::Healthy, "{easy:#?}");
    assert!((easy.utilisation.unwrap() - 0.25).abs() < 0.01, "200 of 800: {easy:#?}");
}

#[test]
fn a_new_cap_is_reached_by_its_own_count() {
    let load = Load { commits: 100, sync_ns: 30 * MS, ..Load::default() };
    let mut observation = counted(802, steady(load));
    let verdict = verdict(&observation);
    assert_eq!(verdict.verdict, VerdictKind::Throttled, "the device did 100 requests: {verdict:#?}");
    observation.moments.iter_mut().for_each(|moment| moment.caps.clear());
    assert_ne!(crate::builder::verdict(&observation).verdict, VerdictKind::Throttled);
}

#[test]
fn commits_that_the_kernel_timed_are_said_to_be() {
    let mut observation = steady(Load { commits: 400, sync_ns: 2_300 * US, ..Load::default() });
    observation.log_timing = LogTiming::Kernel;
    let verdict = verdict(&observation);
    assert_eq!(verdict.verdict, VerdictKind::Serialized, "{verdict:#?}");
    let fact = verdict.evidence.iter().find(|fact| fact.what == "write and sync of a commit").unwrap();
    assert!(fact.source.starts_with("the kernel's times"), "{fact:?}");
}

#[test]
fn untimed_by_choice_and_not_watched_either_says_why() {
    let mut observation = steady(Load { commits: 400, sync_ns: 2_300 * US, ..Load::default() });
    for file in observation.moments.iter_mut().flat_map(|moment| &mut moment.files) {
        if let (FileKind::Log, Interval::Known(delta)) = (file.file.kind, &mut file.interval) {
            delta.counters.write.stall_ns = Figure::unknown(Reason::TimingOff);
        }
    }
    observation.notes = vec!["ALTER SYSTEM SET track_wal_io_timing = on".into()];
    observation.log_timing = LogTiming::Untimed { why: "run as root".into() };
    let verdict = verdict(&observation);
    assert_eq!(verdict.verdict, VerdictKind::CannotSay, "{verdict:#?}");
    let next = verdict.next_step;
    assert!(next.contains("track_wal_io_timing = on") && next.contains("run as root"), "{next}");
}

#[test]
fn a_log_that_is_busy_all_of_the_time_is_serialized_however_much_of_the_storage_it_asks_for() {
    let mut capped = disk();
    capped.target.caps = vec![write_cap()];
    let load =
        Load { commits: 120, sync_ns: 7_500 * US, writeback: 100, writeback_ns: MS, ..Load::default() };
    let mut observation = counted(583, steady(load));
    observation.log_timing = LogTiming::Kernel;
    let busy = judge(&observation, Some(&capped), &ServiceLevel::OLTP);
    assert!((busy.utilisation.unwrap() - 0.73).abs() < 0.01, "{busy:#?}");
    assert_eq!(busy.verdict, VerdictKind::Serialized, "{busy:#?}");
    assert!(busy.summary.contains("73 % of the storage"), "{}", busy.summary);
}

#[test]
fn a_device_that_completes_nothing_is_degraded_and_has_no_headroom() {
    let hung = Pressure { hung_ns: Figure::Known(1_000_000_000), ..pressure(0.99, 1.0) };
    // Nothing completes, so that the database's counters stand still.
    let still = Load { reads: 0, commits: 0, ..MODEST };
    let verdict_after = |seconds: usize| {
        let mut observation = under(pressure(0.99, 1.0), observed(&[still; 20]));
        observation.moments[20 - seconds..].iter_mut().for_each(|moment| moment.pressure = hung);
        verdict(&observation)
    };
    assert_eq!(verdict_after(4).verdict, VerdictKind::CannotSay, "a disk that wakes up takes a few seconds");
    let verdict = verdict_after(6);
    assert_eq!((verdict.verdict, verdict.cause), (VerdictKind::StorageDegraded, Some(Cause::Below)));
    assert_eq!((verdict.headroom, verdict.utilisation, verdict.confidence), (None, None, Confidence::High));
    assert!(verdict.summary.contains("completed none for 6 s"), "{}", verdict.summary);
    // Six seconds of which none follows another, and one that no task waits for.
    let mut apart = under(pressure(0.99, 1.0), observed(&[still; 20]));
    apart.moments.iter_mut().step_by(3).for_each(|moment| moment.pressure = hung);
    assert_eq!(judge(&apart, Some(&disk()), &ServiceLevel::OLTP).verdict, VerdictKind::CannotSay);
    let unnoticed = Pressure { hung_ns: hung.hung_ns, ..pressure(0.01, 1.0) };
    let unnoticed = under(unnoticed, observed(&[still; 20]));
    assert_eq!(judge(&unnoticed, Some(&disk()), &ServiceLevel::OLTP).verdict, VerdictKind::CannotSay);
}

#[test]
fn a_cap_that_holds_back_is_named_without_a_measurement() {
    let load = Load { commits: 200, sync_ns: 20 * MS, ..MODEST };
    let mut observation = counted(790, steady(load));
    // The throttle is above the device, which takes a millisecond.
    let at_device = Ops::timed(800, 800 * 4096, 800 * MS);
    for moment in &mut observation.moments {
        let Some(Interval::Known(delta)) = moment.device.as_mut().map(|device| &mut device.interval) else {
            continue;
        };
        delta.counters.write = at_device;
    }
    let unmeasured = |observation: &Observation| judge(observation, None, &ServiceLevel::OLTP);
    let verdict = unmeasured(&observation);
    assert_eq!((verdict.verdict, verdict.headroom), (VerdictKind::Throttled, None), "{verdict:#?}");
    assert!(
        verdict.summary.contains("commits take 20.0 x what they take at the device"),
        "{}",
        verdict.summary
    );
    assert!(verdict.next_step.contains("headroom measure"), "{}", verdict.next_step);
    assert!(doubt(&verdict, "never measured"), "{verdict:#?}");
    // Not reached; and a device that is as slow as what the database waits for.
    assert_eq!(unmeasured(&counted(300, observation.clone())).verdict, VerdictKind::CannotSay);
    assert_eq!(unmeasured(&counted(790, steady(load))).verdict, VerdictKind::CannotSay);
    // Reads cannot wait for a limit on writes.
    let mut of_reads = observation;
    let reads = CapKind::ReadIops;
    of_reads.caps[0].kind = reads;
    of_reads.moments.iter_mut().for_each(|moment| moment.caps[0].cap.kind = reads);
    assert_eq!(unmeasured(&of_reads).verdict, VerdictKind::CannotSay);
}
