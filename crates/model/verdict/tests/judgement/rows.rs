use crate::builder::*;
use filestats::{Figure, FileKind, Interval, Reason, ServiceLevel};
use std::time::Duration;
use verdict::{Cause, Confidence, FailedIos, Neighbour, Observation, VerdictKind, fine_for, judge};
use workload::{Cap, CapKind, DeviceTrouble};

#[test]
fn a_modest_workload_at_the_latency_of_the_curve_is_healthy() {
    let load = Load { reads: 100, read_ns: 4 * MS, commits: 20, sync_ns: 2 * MS, ..Load::default() };
    let verdict = verdict(&steady(load));
    assert_eq!(verdict.verdict, VerdictKind::Healthy, "{verdict:#?}");
    assert_eq!(verdict.confidence, Confidence::High, "{:?}", verdict.doubts);
    let headroom = verdict.headroom.unwrap();
    assert!((30.0..40.0).contains(&headroom), "100 of 4,000 reads and 20 of 8,000 writes: {headroom}");
}

#[test]
fn reads_from_memory_do_not_count_as_demand_on_storage() {
    let load = Load { reads: 100, read_ns: 4 * MS, cached: 200_000, ..Load::default() };
    let verdict = verdict(&steady(load));
    assert_eq!(verdict.verdict, VerdictKind::Healthy, "{verdict:#?}");
    assert!(verdict.utilisation.unwrap() < 0.05);
    let place = verdict.place.unwrap();
    assert!((3.4e6..4.6e6).contains(&place.latency_ns), "of the reads that reached storage: {place:?}");
}

#[test]
fn many_readers_past_the_knee_exceed_the_capability() {
    // 64 outstanding at 4,000 a second: 16 ms each, as the curve says.
    let verdict = verdict(&steady(Load { reads: 3_990, read_ns: 16 * MS, ..Load::default() }));
    assert_eq!(verdict.verdict, VerdictKind::DemandExceedsCapability, "{verdict:#?}");
    assert!(verdict.headroom.unwrap() < 1.02);
    assert!(verdict.summary.contains("operations"), "{}", verdict.summary);
    assert!((15.0..17.0).contains(&value(&verdict, "I/Os outstanding at the knee")));
    let outstanding =
        verdict.evidence.iter().find(|fact| fact.what == "I/Os outstanding at the storage").unwrap();
    assert_eq!(outstanding.expected, None, "a knee is not what is expected of a demand");
}

#[test]
fn the_headroom_of_saturated_storage_says_that_more_waits_longer() {
    // 22 outstanding, past the knee of 16, at 2,950 of 4,000 a second; the device is nearly as fast as the curve.
    let past = verdict(&steady(Load { reads: 2_950, read_ns: 7_400_000, ..Load::default() }));
    assert_eq!(past.verdict, VerdictKind::DemandExceedsCapability, "{past:#?}");
    assert!(past.headroom.unwrap() > 1.2, "more would get through: {past:#?}");
    assert_eq!(past.headroom_reason.as_deref(), Some("at the knee: more gets through, but waits longer"));
    assert!(past.summary.contains("past its knee"), "{}", past.summary);
    let over = verdict(&steady(Load { reads: 4_400, read_ns: 16 * MS, ..Load::default() }));
    assert_eq!(over.verdict, VerdictKind::DemandExceedsCapability, "{over:#?}");
    assert!(over.headroom.unwrap() < 1.0, "{over:#?}");
    assert_eq!(over.headroom_reason.as_deref(), Some("none: the demand is more than the storage gives"));
    let healthy = verdict(&steady(Load { reads: 100, read_ns: 4 * MS, ..Load::default() }));
    assert_eq!(healthy.headroom_reason, None);
}

#[test]
fn the_same_readers_on_a_device_gone_slow_find_storage_degraded() {
    let verdict = verdict(&steady(Load { reads: 800, read_ns: 80 * MS, ..Load::default() }));
    assert_eq!(verdict.verdict, VerdictKind::StorageDegraded, "{verdict:#?}");
    assert!(value(&verdict, "latency of reads from storage") > 70e6);
    assert!(expected(&verdict, "latency of reads from storage") < 20e6);
}

#[test]
fn storage_with_slow_commits_is_degraded_even_at_the_knee() {
    // Reads as the curve says at full load, commits 30 x as long as measured.
    let load = Load { reads: 3_990, read_ns: 16 * MS, commits: 20, sync_ns: 60 * MS, ..Load::default() };
    let verdict = verdict(&steady(load));
    assert!(verdict.utilisation.unwrap() > 0.9);
    assert_eq!(verdict.verdict, VerdictKind::StorageDegraded, "{verdict:#?}");
    assert!(
        verdict.doubts.iter().any(|doubt| doubt.contains("close to the operating limit")),
        "{:?}",
        verdict.doubts
    );
}

#[test]
fn fine_for_counts_the_whole_parts_at_the_end_that_are_fine() {
    let fine = Load { reads: 400, read_ns: 4 * MS, ..Load::default() };
    let slow = Load { read_ns: 80 * MS, ..fine };
    let after = |slow_s: usize, fine_s: usize| {
        let observation = observed(&[vec![slow; slow_s], vec![fine; fine_s]].concat());
        fine_for(&observation, Some(&disk()), &ServiceLevel::OLTP, Duration::from_secs(15)).as_secs()
    };
    assert_eq!([after(15, 0), after(8, 7), after(5, 10), after(3, 12)], [0, 5, 10, 10]);
    assert_eq!([after(20, 15), after(0, 60)], [15, 15], "at most so long");
    let unknown = fine_for(&observed(&[fine; 15]), None, &ServiceLevel::OLTP, Duration::from_secs(15));
    assert_eq!(unknown, Duration::ZERO, "nothing is known of the storage");
}

#[test]
fn a_new_cap_that_is_reached_throttles_and_an_old_one_is_part_of_the_storage() {
    let load = Load { reads: 800, read_ns: 80 * MS, device_read_ns: Some(4 * MS), ..Load::default() };
    let cap = Cap {
        kind: CapKind::ReadIops,
        per_second: 800,
        device: "7:0".into(),
        origin: "blkio cgroup /".into(),
    };
    let mut observation = steady(load);
    observation.caps = vec![cap.clone()];
    let new = verdict(&observation);
    assert_eq!(new.verdict, VerdictKind::Throttled, "{new:#?}");
    assert!(new.next_step.contains("blkio cgroup /"));

    observation.neighbours = vec![rsync(0.9, Some(0.9))];
    let beside = verdict(&observation);
    assert_ne!(beside.verdict, VerdictKind::Throttled, "the cap is of the database's group: {beside:#?}");
    observation.neighbours.clear();

    let mut capped = disk();
    capped.target.caps = vec![Cap { per_second: 4_000, ..cap.clone() }];
    let lowered = judge(&observation, Some(&capped), &ServiceLevel::OLTP);
    assert_eq!(lowered.verdict, VerdictKind::Throttled, "a cap lowered since is a new one");

    let mut full = steady(Load { reads: 3_990, read_ns: 16 * MS, ..Load::default() });
    full.caps = vec![Cap { per_second: 4_000, ..cap }];
    let old = judge(&full, Some(&capped), &ServiceLevel::OLTP);
    assert_eq!(old.verdict, VerdictKind::DemandExceedsCapability, "{old:#?}");
    assert!(old.summary.contains("when it was measured"), "{}", old.summary);
}

#[test]
fn single_row_commits_are_serialized_with_the_gain_of_batching() {
    let verdict = verdict(&steady(Load { commits: 400, sync_ns: 2_300 * US, ..Load::default() }));
    assert_eq!(verdict.verdict, VerdictKind::Serialized, "{verdict:#?}");
    // 15 commits of 4 KiB fit into 60 KiB: 15 x 2 ms against 3 ms.
    let gain = value(&verdict, "gain by batching, estimated");
    assert!((9.5..10.5).contains(&gain), "{gain}");
    assert!(verdict.next_step.contains("15 commits"), "{}", verdict.next_step);
}

#[test]
fn a_session_that_waits_two_thirds_of_its_time_is_serialized() {
    let quick = Load { commits: 400, sync_ns: 1_200 * US, ..Load::default() };
    let slow = Load { commits: 400, sync_ns: 2_000 * US, ..Load::default() };
    let loads: Vec<Load> = (0..20).map(|at| if at % 2 == 0 { quick } else { slow }).collect();
    let verdict = verdict(&observed(&loads));
    assert_eq!(verdict.verdict, VerdictKind::Serialized, "{verdict:#?}");
}

#[test]
fn reads_one_at_a_time_are_serialized_with_the_advice_to_prefetch() {
    let verdict = verdict(&steady(Load { reads: 240, read_ns: 4 * MS, ..Load::default() }));
    assert_eq!(verdict.verdict, VerdictKind::Serialized, "{verdict:#?}");
    assert!(
        verdict.next_step.contains("prefetch") && verdict.next_step.contains("16 x"),
        "{}",
        verdict.next_step
    );
}

#[test]
fn reads_that_overlap_at_the_device_are_not_one_at_a_time() {
    // Reads that arrive at random have a mean of one outstanding too: the device is busy 63 % of the time then.
    let with_busy = |busy_ns: u64, device_reads: u64| {
        let mut observation = steady(Load { reads: 250, read_ns: 4 * MS, ..Load::default() });
        for device in observation.moments.iter_mut().filter_map(|moment| moment.device.as_mut()) {
            let Interval::Known(delta) = &mut device.interval else { panic!() };
            delta.counters.busy_ns = Figure::Known(busy_ns);
            delta.counters.read.count = device_reads;
        }
        verdict(&observation).verdict
    };
    assert_eq!(with_busy(630 * MS, 250), VerdictKind::Healthy);
    assert_eq!(with_busy(980 * MS, 250), VerdictKind::Serialized);
    // The device splits the reads of one session, or another program has its own there.
    assert_eq!(with_busy(630 * MS, 1_000), VerdictKind::Serialized);
}

#[test]
fn seconds_over_the_knee_in_an_easy_minute_are_a_burst() {
    let easy = Load { reads: 40, read_ns: 4 * MS, ..Load::default() };
    let rebuild = Load { writeback: 7_900, writeback_ns: 4 * MS, ..easy };
    let mut loads = [easy; 30];
    loads[12] = rebuild;
    loads[13] = rebuild;
    let verdict = verdict(&observed(&loads));
    assert_eq!(verdict.verdict, VerdictKind::Burst, "{verdict:#?}");
    assert!(verdict.summary.contains("2 of 30"), "{}", verdict.summary);
}

#[test]
fn a_database_that_waits_on_a_device_that_does_not_is_not_storage() {
    let load = Load { reads: 100, read_ns: 40 * MS, device_read_ns: Some(4 * MS), ..Load::default() };
    let verdict = verdict(&steady(load));
    assert_eq!(verdict.verdict, VerdictKind::NotStorage, "{verdict:#?}");
}

#[test]
fn the_time_until_a_session_has_a_processor_again_is_not_taken_for_slow_storage() {
    // 20 us a read.
    let flash = disk_so_many_times_as_fast(200.0);
    for (read_ns, kind) in [(100 * US, VerdictKind::Healthy), (300 * US, VerdictKind::NotStorage)] {
        let load = Load { reads: 3_000, read_ns, device_read_ns: Some(21 * US), ..Load::default() };
        let verdict = judge(&steady(load), Some(&flash), &ServiceLevel::OLTP);
        assert_eq!(verdict.verdict, kind, "{verdict:#?}");
        assert_eq!(verdict.summary.contains("within 0.1 ms"), kind == VerdictKind::Healthy, "{verdict:#?}");
        // The time of waking up does not hide commits that are slow, nor a device that is.
        let commits = Load { commits: 20, sync_ns: MS, writeback: 1_000, writeback_ns: 10 * US, ..load };
        let verdict = judge(&steady(commits), Some(&flash), &ServiceLevel::OLTP);
        assert_eq!(verdict.verdict, VerdictKind::NotStorage, "{verdict:#?}");
        let slow = Load { device_read_ns: Some(80 * US), ..load };
        let verdict = judge(&steady(slow), Some(&flash), &ServiceLevel::OLTP);
        assert_eq!(verdict.verdict, VerdictKind::StorageDegraded, "{verdict:#?}");
    }
}

#[test]
fn commits_that_wait_in_the_queue_of_a_full_storage_do_not_hide_that_it_is_full() {
    let queued = |reads, read_ns| {
        let commits =
            Load { commits: 10, sync_ns: 40 * MS, writeback: 1_000, writeback_ns: 2 * MS, ..Load::default() };
        verdict(&steady(Load { reads, read_ns, ..commits }))
    };
    let full = queued(3_500, 18 * MS);
    assert_eq!(full.verdict, VerdictKind::DemandExceedsCapability, "{full:#?}");
    let half = queued(1_000, 4 * MS);
    assert_eq!(half.verdict, VerdictKind::NotStorage, "{half:#?}");
}

#[test]
fn slow_background_writes_that_no_session_waits_for_are_harmless() {
    let load = Load {
        reads: 20,
        read_ns: 4 * MS,
        commits: 0,
        writeback: 1_000,
        writeback_ns: 200 * MS,
        ..Load::default()
    };
    let verdict = verdict(&steady(load));
    assert_eq!(verdict.verdict, VerdictKind::NobodyWaits, "{verdict:#?}");
}

#[test]
fn too_little_io_no_capability_and_gaps_cannot_be_judged() {
    let few = verdict(&steady(Load { reads: 2, read_ns: 4 * MS, ..Load::default() }));
    assert_eq!(few.verdict, VerdictKind::CannotSay);
    assert!(few.summary.contains("only 20 I/Os"), "{}", few.summary);

    let load = Load { reads: 200, read_ns: 4 * MS, ..Load::default() };
    let unmeasured = judge(&steady(load), None, &ServiceLevel::OLTP);
    assert_eq!(unmeasured.verdict, VerdictKind::CannotSay);
    assert!(unmeasured.next_step.contains("headroom measure"));

    let mut gaps = steady(load);
    for moment in gaps.moments.iter_mut().take(7) {
        moment.files.iter_mut().for_each(|file| file.interval = Interval::Unknown(Reason::Restart));
    }
    let gaps = verdict(&gaps);
    assert_eq!(gaps.verdict, VerdictKind::CannotSay);
    assert!(gaps.summary.contains("restarted"), "{}", gaps.summary);

    let nothing = verdict(&Observation::default());
    assert_eq!(nothing.verdict, VerdictKind::CannotSay);
}

#[test]
fn many_sessions_with_a_mean_of_one_are_not_serialized() {
    let few = Load { reads: 60, read_ns: 4 * MS, ..Load::default() };
    let many = Load { reads: 420, read_ns: 4 * MS, ..Load::default() };
    let loads: Vec<Load> = (0..20).map(|at| if at % 2 == 0 { few } else { many }).collect();
    let verdict = verdict(&observed(&loads));
    assert_eq!(verdict.verdict, VerdictKind::Healthy, "{verdict:#?}");
}

#[test]
fn checkpoints_of_a_wal_without_syncs_on_commit_are_no_slow_commits() {
    // 4 MiB each, 40 ms: as fast as the disk writes, and far above any log write's time.
    let mut observation =
        steady(Load { reads: 100, read_ns: 4 * MS, commits: 4, sync_ns: 40 * MS, ..Load::default() });
    for file in observation.moments.iter_mut().flat_map(|moment| &mut moment.files) {
        if let Interval::Known(delta) = &mut file.interval
            && file.file.kind == FileKind::Log
        {
            delta.counters.write.bytes = 4 * (4 << 20);
        }
    }
    let verdict = verdict(&observation);
    assert_eq!(verdict.verdict, VerdictKind::Healthy, "{verdict:#?}");
}

#[test]
fn reads_alone_are_judged_where_only_reads_were_measured() {
    let mut reads_only = disk();
    reads_only.cost_model = None;
    reads_only.curves.retain(|curve| !curve.workload.writes());
    let load = Load { reads: 3_990, read_ns: 16 * MS, commits: 5, sync_ns: 2 * MS, ..Load::default() };
    let verdict = judge(&steady(load), Some(&reads_only), &ServiceLevel::OLTP);
    assert_eq!(verdict.verdict, VerdictKind::DemandExceedsCapability, "{verdict:#?}");
    assert!(
        verdict.doubts.iter().any(|doubt| doubt.contains("writes were not measured")),
        "{:?}",
        verdict.doubts
    );
}

#[test]
fn more_than_was_ever_measured_says_that_the_measurement_no_longer_holds() {
    let verdict = verdict(&steady(Load { reads: 9_000, read_ns: MS, ..Load::default() }));
    assert_eq!(verdict.verdict, VerdictKind::CannotSay, "{verdict:#?}");
    assert!(verdict.next_step.contains("measure"));
}

#[test]
fn data_far_larger_than_the_measured_region_is_a_doubt() {
    let mut observation = steady(Load { reads: 800, read_ns: 80 * MS, ..Load::default() });
    observation.data_bytes = Some(500 << 30);
    let verdict = verdict(&observation);
    assert_eq!(verdict.verdict, VerdictKind::StorageDegraded);
    assert!(verdict.doubts[0].contains("500 x as large"), "{:?}", verdict.doubts);
}

#[test]
fn timing_off_is_not_a_latency_of_zero() {
    let mut untimed = steady(Load { reads: 300, read_ns: 4 * MS, ..Load::default() });
    for file in untimed.moments.iter_mut().flat_map(|moment| &mut moment.files) {
        if let Interval::Known(delta) = &mut file.interval {
            delta.counters.read.stall_ns = Figure::unknown(Reason::TimingOff);
        }
    }
    let verdict = verdict(&untimed);
    assert_eq!(verdict.verdict, VerdictKind::CannotSay);
    assert!(verdict.summary.contains("does not time"), "{}", verdict.summary);
}

#[test]
fn an_old_measurement_costs_confidence() {
    let mut observation = steady(Load { reads: 120, read_ns: 4 * MS, ..Load::default() });
    for moment in &mut observation.moments {
        moment.ended_unix_ns += 90 * DAY;
    }
    let verdict = verdict(&observation);
    assert_eq!(verdict.verdict, VerdictKind::Healthy);
    assert_eq!(verdict.confidence, Confidence::Medium);
    assert!(verdict.doubts[0].contains("90 days"), "{:?}", verdict.doubts);
}

#[test]
fn every_number_has_a_source_and_a_time() {
    let load = Load { reads: 3_990, read_ns: 16 * MS, commits: 50, sync_ns: 3 * MS, ..Load::default() };
    let verdict = verdict(&steady(load));
    assert!(verdict.evidence.len() >= 5);
    for evidence in &verdict.evidence {
        assert!(
            evidence.at >= MEASURED && !evidence.source.is_empty() && evidence.value.is_finite(),
            "{evidence:?}"
        );
    }
}

fn rsync(share: f64, operations_share: Option<f64>) -> Neighbour {
    let operations = operations_share.map(|_| 5_000);
    let (command, device) = ("rsync".into(), None);
    Neighbour { pid: 812, command, device, bytes: 1 << 30, share, operations, operations_share }
}

fn beside(load: Load, other: Neighbour) -> verdict::Verdict {
    verdict(&Observation { neighbours: vec![other], ..steady(load) })
}

fn slow() -> Load {
    Load { reads: 800, read_ns: 80 * MS, ..Load::default() }
}

fn past_the_knee() -> Load {
    Load { reads: 3_990, read_ns: 16 * MS, ..Load::default() }
}

#[test]
fn a_program_of_this_host_that_takes_the_storage_is_the_cause_that_is_named() {
    let busy = beside(slow(), rsync(0.71, None));
    assert_eq!((busy.verdict, busy.cause), (VerdictKind::StorageDegraded, Some(Cause::AnotherProgram)));
    let does = "rsync (pid 812) does 71 % of this device's I/O";
    assert!(busy.summary.starts_with("another program on this host"), "{}", busy.summary);
    assert!(busy.summary.contains(does), "{}", busy.summary);
    assert!(busy.next_step.contains(does) && !busy.next_step.contains("below"), "{}", busy.next_step);
    assert!(
        (value(&busy, "part of the bytes on this device that rsync (pid 812) moved") - 0.71).abs() < 1e-9
    );

    let below = beside(slow(), Neighbour { device: Some("sda".into()), ..rsync(0.71, None) });
    assert!(below.summary.contains("rsync (pid 812) does 71 % of sda's I/O"), "{}", below.summary);

    // On a disk that answers hardly anything, a few I/Os are much of it.
    let few = Neighbour { bytes: 1 << 20, operations: Some(100), ..rsync(0.8, Some(0.8)) };
    assert_eq!(beside(slow(), few).cause, Some(Cause::Below));

    let small = beside(slow(), rsync(0.1, Some(0.1)));
    assert_eq!((small.verdict, small.cause), (VerdictKind::StorageDegraded, Some(Cause::Below)));
    assert!(
        small.next_step.contains("below the database") && !small.summary.contains("rsync"),
        "{}",
        small.summary
    );

    let saturated = beside(past_the_knee(), rsync(0.5, Some(0.5)));
    assert_eq!(saturated.verdict, VerdictKind::DemandExceedsCapability);
    assert_eq!(saturated.cause, Some(Cause::AnotherProgram));
    assert!(
        saturated.summary.contains("does 50 % of this device's I/O")
            && saturated.next_step.contains("give way"),
        "{saturated:#?}"
    );
}

#[test]
fn a_program_on_the_disk_below_uses_up_no_limit_of_the_databases_own_device() {
    let limit_of = |device: &str| {
        let cap =
            Cap { kind: CapKind::ReadIops, per_second: 4_000, device: device.into(), origin: "/".into() };
        let mut capped = disk();
        capped.target.caps = vec![cap.clone()];
        let mut observation = steady(past_the_knee());
        observation.caps = vec![cap];
        observation.neighbours = vec![Neighbour { device: Some("sda".into()), ..rsync(0.7, Some(0.7)) }];
        for device in observation.moments.iter_mut().filter_map(|moment| moment.device.as_mut()) {
            device.file_mut().file_id = "7:0".into();
        }
        judge(&observation, Some(&capped), &ServiceLevel::OLTP)
    };
    let own = limit_of("7:0");
    assert_eq!((own.verdict, own.cause), (VerdictKind::DemandExceedsCapability, None));
    assert!(!own.summary.contains("rsync"), "{}", own.summary);
    assert_eq!(limit_of("8:0").cause, Some(Cause::AnotherProgram), "a limit of the disk below is shared");
}

#[test]
fn where_operations_run_out_the_share_of_operations_decides() {
    // The load past the knee is bound by operations. A backup in large I/Os has nearly all of the bytes and none of those.
    let backup = beside(past_the_knee(), rsync(0.9, Some(0.03)));
    assert_eq!((backup.verdict, backup.cause), (VerdictKind::DemandExceedsCapability, None));
    assert!(!backup.summary.contains("rsync"), "{}", backup.summary);
    let many_small = beside(past_the_knee(), rsync(0.06, Some(0.8)));
    assert_eq!(many_small.cause, Some(Cause::AnotherProgram));
    assert!(
        many_small.summary.contains("rsync (pid 812) does 80 % of this device's I/Os and 6 % of its bytes"),
        "{}",
        many_small.summary
    );
    assert!((value(&many_small, "part of this device's I/Os that rsync (pid 812) did") - 0.8).abs() < 1e-9);
}

/// Under which no curve is beaten.
fn modest() -> Load {
    Load { reads: 100, read_ns: 4 * MS, commits: 20, sync_ns: 2 * MS, ..Load::default() }
}

#[test]
fn storage_that_fails_ios_is_degraded_however_fast_it_is() {
    let failures =
        vec![FailedIos { process: "pid 812 (postgres)".into(), path: "/data/base/16384".into(), count: 42 }];
    let failing = Observation { failures, ..steady(modest()) };
    // A curve is not needed.
    for verdict in [verdict(&failing), judge(&failing, None, &ServiceLevel::default())] {
        assert_eq!((verdict.verdict, verdict.cause), (VerdictKind::StorageDegraded, Some(Cause::Below)));
        assert!(
            verdict.summary.contains("failed 42 I/Os of the database, on /data/base/16384"),
            "{}",
            verdict.summary
        );
        let of = |evidence: &&verdict::Evidence| {
            evidence.what == "I/Os of pid 812 (postgres) on /data/base/16384 that failed"
        };
        assert_eq!(
            verdict.evidence.iter().find(of).map(|found| found.value),
            Some(42.0),
            "{:#?}",
            verdict.evidence
        );
        assert!(verdict.next_step.contains("dmesg"), "{}", verdict.next_step);
    }
}

#[test]
fn a_full_thin_pool_is_named_before_anything_else_is_judged() {
    let troubles = vec![DeviceTrouble::PoolFull { device: "dm-2".into(), blocks: 256 }];
    let full = verdict(&Observation { troubles, ..steady(slow()) });
    assert_eq!((full.verdict, full.cause), (VerdictKind::StorageDegraded, Some(Cause::Below)));
    assert!(full.summary.starts_with("the thin pool dm-2 is full"), "{}", full.summary);
    assert!(full.next_step.contains("dm-2"), "{}", full.next_step);
}

#[test]
fn a_rebuilding_array_is_the_cause_of_slow_storage_and_no_cause_of_anything_where_it_is_fast() {
    let rebuilding =
        DeviceTrouble::Rebuilding { device: "md0".into(), action: "recover".into(), done: Some(0.12) };
    let under = |load: Load| verdict(&Observation { troubles: vec![rebuilding.clone()], ..steady(load) });
    let slow = under(slow());
    assert_eq!((slow.verdict, slow.cause), (VerdictKind::StorageDegraded, Some(Cause::Below)));
    assert!(
        slow.summary.starts_with("md0 rebuilds or checks its members (recover, 12 % done)"),
        "{}",
        slow.summary
    );
    let fast = under(modest());
    assert_eq!(fast.verdict, VerdictKind::Healthy);
    assert!(fast.evidence.iter().any(|found| found.what.contains("recover of md0") && found.value == 0.12));
}

#[test]
fn a_healthy_verdict_does_not_say_that_latency_agrees_where_a_doubt_says_it_does_not() {
    let rare = Load { reads: 11, read_ns: 9 * MS, writeback: 20, writeback_ns: MS, ..Load::default() };
    for (load, is_slow) in [(rare, false), (Load { reads: 7, read_ns: 13 * MS, ..rare }, true)] {
        let verdict = verdict(&observed(&[load; 20]));
        assert_eq!(verdict.verdict, VerdictKind::Healthy, "{verdict:#?}");
        assert_eq!(
            verdict.doubts.iter().any(|doubt| doubt.contains("what the curve expects")),
            is_slow,
            "{verdict:#?}"
        );
        assert_eq!(verdict.summary.starts_with("hardly any session waits"), is_slow, "{}", verdict.summary);
        assert_eq!(verdict.summary.starts_with("latency agrees"), !is_slow, "{}", verdict.summary);
    }
}
