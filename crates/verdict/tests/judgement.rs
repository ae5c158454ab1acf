//! The decision table, row by row, from plain numbers.

use capability::{Capability, Conditions, CostModel, Curve, Maximum, Point, Surroundings, find_knee};
use filestats::{
    Counters, Delta, Figure, FileIdentity, FileInterval, FileKind, Interval, Latencies, Ops, Reason,
    ServiceLevel,
};
use verdict::{Confidence, Kind, Moment, Observation, Verdict, judge};
use workload::{Backend, Caching, Cap, CapKind, Shape, TargetFacts, TargetKind};

const US: u64 = 1_000;
const MS: u64 = 1_000_000;
const DAY: u64 = 86_400_000_000_000;
const MEASURED: u64 = 100 * DAY;

/// A disk of 16 parallel units: 4 ms a read, 2 ms a write, so 4,000 reads or 8,000 writes a second.
fn disk() -> Capability {
    let points = |service_ns: f64, bytes: u32| -> Vec<Point> {
        [1_u32, 2, 4, 8, 16, 32, 64]
            .iter()
            .map(|n| {
                let latency_ns =
                    service_ns * (f64::from(*n) / 16.0).max(1.0) * (1.0 + f64::from(n % 3) / 100.0);
                let iops = f64::from(*n) * 1e9 / latency_ns;
                Point {
                    outstanding: *n,
                    iops,
                    iops_half_width: iops / 100.0,
                    mib_per_s: iops * f64::from(bytes) / 1048576.0,
                    latency_ns,
                    latency_ns_p50: latency_ns as u64,
                    latency_ns_p99: None,
                    latency_ns_max: latency_ns as u64,
                    outstanding_measured: f64::from(*n),
                    ios: 5_000,
                    failed: 0,
                    seconds: 1.0,
                    steady: true,
                    cpu_ns_per_io: 3_000.0,
                    client_busy: 0.1,
                    humps: None,
                }
            })
            .collect()
    };
    let curve = |workload: Shape, service_ns: f64| {
        let points = points(service_ns, workload.block_bytes);
        let knee = find_knee(&workload, &points, &Surroundings::default());
        Curve { workload, points, knee }
    };
    let log = |bytes: u32, latency_ns: f64| {
        let mut points = points(latency_ns, bytes);
        points.truncate(1);
        Curve { workload: Shape::log_write(bytes), points, knee: None }
    };
    let maximum = |workload: Shape, iops: f64| Maximum { workload, iops, iops_half_width: 0.0 };
    let maxima = [
        maximum(Shape::random_read(8192), 4_000.0),
        maximum(Shape::random_read(65536), 4_000.0),
        maximum(Shape::random_write(8192), 8_000.0),
        maximum(Shape::random_write(65536), 8_000.0),
    ];
    Capability {
        target: TargetFacts {
            path: "/data".into(),
            kind: TargetKind::Directory,
            filesystem: Some("ext4".into()),
            mount: Some("/data".into()),
            free_bytes: 1 << 40,
            devices: vec![],
            direct_align_bytes: Some(512),
            memory_align_bytes: 512,
            caps: vec![],
        },
        measured_unix_ns: MEASURED,
        conditions: Conditions {
            headroom_version: "0".into(),
            kernel: "6".into(),
            backend: Backend::IoUring,
            caching: Caching::Direct,
            region_bytes: 1 << 30,
            foreign_iops: None,
            took_s: 60.0,
            effort: "default".into(),
            remarks: vec![],
        },
        curves: vec![
            curve(Shape::random_read(8192), 4e6),
            curve(Shape::random_write(8192), 2e6),
            log(4096, 2e6),
            log(61_440, 3e6),
        ],
        cost_model: Some(CostModel::fit(&maxima, &[]).unwrap()),
    }
}

/// What one second of a database and its device looks like.
#[derive(Clone, Copy, Default)]
struct Load {
    /// Reads that reach the device, and how long each takes.
    reads: u64,
    read_ns: u64,
    /// Reads that the page cache serves in 5 us.
    cached: u64,
    /// Commits: one 4 KiB log write and a sync of this time.
    commits: u64,
    sync_ns: u64,
    /// Writes at the device besides those of commits, of 8 KiB, and how long each takes.
    writeback: u64,
    writeback_ns: u64,
    /// The device's own read latency where it differs from what the database sees.
    device_read_ns: Option<u64>,
}

fn file(kind: FileKind, path: &str) -> FileIdentity {
    FileIdentity {
        instance: "test".into(),
        database: Some("shop".into()),
        database_id: None,
        file_id: path.into(),
        kind,
        path: path.into(),
        drive: None,
        handle: None,
    }
}

fn second(at: u64, load: &Load) -> Moment {
    let ended_unix_ns = MEASURED + at * 1_000_000_000;
    let busy_ns = Figure::unknown(Reason::NotCounted);
    let interval = |kind, path: &str, read: Ops, write: Ops, sync: Ops, latencies| FileInterval {
        file: file(kind, path),
        ended_unix_ns,
        interval: Interval::Known(Delta {
            elapsed_ns: 1_000_000_000,
            counters: Counters { read, write, sync: Figure::Known(sync), busy_ns },
            latencies,
        }),
    };
    let mut latencies = Latencies::default();
    (0..load.reads).for_each(|_| latencies.read.record(load.read_ns));
    (0..load.cached).for_each(|_| latencies.read.record(5 * US));
    let all_reads = load.reads + load.cached;
    let stall = load.reads * load.read_ns + load.cached * 5 * US;
    let data = interval(
        FileKind::Data,
        "/data/shop.db",
        Ops::timed(all_reads, all_reads * 8192, stall),
        Ops::ZERO,
        Ops::ZERO,
        Some(latencies),
    );
    let commits = load.commits;
    let log = interval(
        FileKind::Log,
        "/data/shop.db-wal",
        Ops::ZERO,
        Ops::timed(commits, commits * 4096, commits * 10 * US),
        Ops::timed(commits, 0, commits * load.sync_ns),
        Some(Latencies::default()),
    );
    let device_read_ns = load.device_read_ns.unwrap_or(load.read_ns);
    let writes = commits + load.writeback;
    let write_stall = commits * load.sync_ns + load.writeback * load.writeback_ns;
    let device = interval(
        FileKind::Device,
        "/dev/vdb",
        Ops::timed(load.reads, load.reads * 8192, load.reads * device_read_ns),
        Ops::timed(writes, writes * 8192, write_stall),
        Ops::ZERO,
        None,
    );
    Moment { ended_unix_ns, files: vec![data, log], device: Some(device) }
}

fn observed(loads: &[Load]) -> Observation {
    Observation {
        moments: loads.iter().enumerate().map(|(at, load)| second(at as u64 + 1, load)).collect(),
        caps: vec![],
        page_cache: true,
        data_bytes: None,
    }
}

fn verdict(observation: &Observation) -> Verdict {
    judge(observation, Some(&disk()), &ServiceLevel::OLTP)
}

fn steady(load: Load) -> Observation {
    observed(&[load; 10])
}

fn value(verdict: &Verdict, what: &str) -> f64 {
    verdict
        .evidence
        .iter()
        .find(|evidence| evidence.what == what)
        .unwrap_or_else(|| panic!("no {what}"))
        .value
}

#[test]
fn a_modest_workload_at_the_latency_of_the_curve_is_healthy() {
    let load = Load { reads: 100, read_ns: 4 * MS, commits: 20, sync_ns: 2 * MS, ..Load::default() };
    let verdict = verdict(&steady(load));
    assert_eq!(verdict.verdict, Kind::Healthy, "{verdict:#?}");
    assert_eq!(verdict.confidence, Confidence::High, "{:?}", verdict.doubts);
    let headroom = verdict.headroom.unwrap();
    assert!((30.0..40.0).contains(&headroom), "100 of 4,000 reads and 20 of 8,000 writes: {headroom}");
}

#[test]
fn reads_from_memory_do_not_count_as_demand_on_storage() {
    let load = Load { reads: 100, read_ns: 4 * MS, cached: 200_000, ..Load::default() };
    let verdict = verdict(&steady(load));
    assert_eq!(verdict.verdict, Kind::Healthy, "{verdict:#?}");
    assert!(verdict.utilisation.unwrap() < 0.05);
    let place = verdict.place.unwrap();
    assert!((3.4e6..4.6e6).contains(&place.latency_ns), "of the reads that reached storage: {place:?}");
}

#[test]
fn many_readers_past_the_knee_exceed_the_capability() {
    // 64 outstanding at 4,000 a second: 16 ms each, as the curve says.
    let verdict = verdict(&steady(Load { reads: 3_990, read_ns: 16 * MS, ..Load::default() }));
    assert_eq!(verdict.verdict, Kind::DemandExceedsCapability, "{verdict:#?}");
    assert!(verdict.headroom.unwrap() < 1.02);
    assert!(verdict.summary.contains("operations"), "{}", verdict.summary);
    assert!((15.0..17.0).contains(&value(&verdict, "knee")));
}

#[test]
fn the_same_readers_on_a_device_gone_slow_find_storage_degraded() {
    let verdict = verdict(&steady(Load { reads: 800, read_ns: 80 * MS, ..Load::default() }));
    assert_eq!(verdict.verdict, Kind::StorageDegraded, "{verdict:#?}");
    assert!(value(&verdict, "latency of reads from storage") > 70e6);
    assert!(value(&verdict, "latency the curve expects") < 20e6);
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
    assert_eq!(new.verdict, Kind::Throttled, "{new:#?}");
    assert!(new.next_step.contains("blkio cgroup /"));

    let mut capped = disk();
    capped.target.caps = vec![Cap { per_second: 4_000, ..cap.clone() }];
    let lowered = judge(&observation, Some(&capped), &ServiceLevel::OLTP);
    assert_eq!(lowered.verdict, Kind::Throttled, "a cap lowered since is a new one");

    let mut full = steady(Load { reads: 3_990, read_ns: 16 * MS, ..Load::default() });
    full.caps = vec![Cap { per_second: 4_000, ..cap }];
    let old = judge(&full, Some(&capped), &ServiceLevel::OLTP);
    assert_eq!(old.verdict, Kind::DemandExceedsCapability, "{old:#?}");
    assert!(old.summary.contains("when it was measured"), "{}", old.summary);
}

#[test]
fn single_row_commits_are_serialized_and_told_what_batching_gains() {
    let verdict = verdict(&steady(Load { commits: 400, sync_ns: 2_300 * US, ..Load::default() }));
    assert_eq!(verdict.verdict, Kind::Serialized, "{verdict:#?}");
    // 15 commits of 4 KiB fit into 60 KiB: 15 x 2 ms against 3 ms.
    let gain = value(&verdict, "gain by batching, estimated");
    assert!((9.5..10.5).contains(&gain), "{gain}");
    assert!(verdict.next_step.contains("15 commits"), "{}", verdict.next_step);
}

#[test]
fn reads_one_at_a_time_are_serialized_and_told_to_go_wide() {
    let verdict = verdict(&steady(Load { reads: 240, read_ns: 4 * MS, ..Load::default() }));
    assert_eq!(verdict.verdict, Kind::Serialized, "{verdict:#?}");
    assert!(
        verdict.next_step.contains("prefetch") && verdict.next_step.contains("16 x"),
        "{}",
        verdict.next_step
    );
}

#[test]
fn seconds_over_the_knee_in_an_easy_minute_are_a_burst() {
    let easy = Load { reads: 40, read_ns: 4 * MS, ..Load::default() };
    let rebuild = Load { writeback: 7_900, writeback_ns: 4 * MS, ..easy };
    let mut loads = [easy; 30];
    loads[12] = rebuild;
    loads[13] = rebuild;
    let verdict = verdict(&observed(&loads));
    assert_eq!(verdict.verdict, Kind::Burst, "{verdict:#?}");
    assert!(verdict.summary.contains("2 of 30"), "{}", verdict.summary);
}

#[test]
fn a_database_that_waits_on_a_device_that_does_not_is_not_storage() {
    let load = Load { reads: 100, read_ns: 40 * MS, device_read_ns: Some(4 * MS), ..Load::default() };
    let verdict = verdict(&steady(load));
    assert_eq!(verdict.verdict, Kind::NotStorage, "{verdict:#?}");
}

#[test]
fn slow_background_writes_that_no_session_waits_for_are_nobodys_problem() {
    let load = Load {
        reads: 20,
        read_ns: 4 * MS,
        commits: 0,
        writeback: 1_000,
        writeback_ns: 200 * MS,
        ..Load::default()
    };
    let verdict = verdict(&steady(load));
    assert_eq!(verdict.verdict, Kind::NobodyWaits, "{verdict:#?}");
}

#[test]
fn too_little_io_no_capability_and_gaps_cannot_be_judged() {
    let few = verdict(&steady(Load { reads: 2, read_ns: 4 * MS, ..Load::default() }));
    assert_eq!(few.verdict, Kind::CannotSay);
    assert!(few.summary.contains("only 20 I/Os"), "{}", few.summary);

    let load = Load { reads: 200, read_ns: 4 * MS, ..Load::default() };
    let unmeasured = judge(&steady(load), None, &ServiceLevel::OLTP);
    assert_eq!(unmeasured.verdict, Kind::CannotSay);
    assert!(unmeasured.next_step.contains("headroom measure"));

    let mut gaps = steady(load);
    for moment in gaps.moments.iter_mut().take(7) {
        moment.files.iter_mut().for_each(|file| file.interval = Interval::Unknown(Reason::Restart));
    }
    let gaps = verdict(&gaps);
    assert_eq!(gaps.verdict, Kind::CannotSay);
    assert!(gaps.summary.contains("restarted"), "{}", gaps.summary);

    let nothing = verdict(&Observation::default());
    assert_eq!(nothing.verdict, Kind::CannotSay);
}

#[test]
fn many_sessions_with_a_mean_of_one_are_not_serialized() {
    let few = Load { reads: 60, read_ns: 4 * MS, ..Load::default() };
    let many = Load { reads: 420, read_ns: 4 * MS, ..Load::default() };
    let loads: Vec<Load> = (0..20).map(|at| if at % 2 == 0 { few } else { many }).collect();
    let verdict = verdict(&observed(&loads));
    assert_eq!(verdict.verdict, Kind::Healthy, "{verdict:#?}");
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
    assert_eq!(verdict.verdict, Kind::Healthy, "{verdict:#?}");
}

#[test]
fn reads_alone_are_judged_where_only_reads_were_measured() {
    let mut reads_only = disk();
    reads_only.cost_model = None;
    reads_only.curves.retain(|curve| !curve.workload.writes());
    let load = Load { reads: 3_990, read_ns: 16 * MS, commits: 5, sync_ns: 2 * MS, ..Load::default() };
    let verdict = judge(&steady(load), Some(&reads_only), &ServiceLevel::OLTP);
    assert_eq!(verdict.verdict, Kind::DemandExceedsCapability, "{verdict:#?}");
    assert!(
        verdict.doubts.iter().any(|doubt| doubt.contains("writes were not measured")),
        "{:?}",
        verdict.doubts
    );
}

#[test]
fn more_than_was_ever_measured_says_that_the_measurement_no_longer_holds() {
    let verdict = verdict(&steady(Load { reads: 9_000, read_ns: MS, ..Load::default() }));
    assert_eq!(verdict.verdict, Kind::CannotSay, "{verdict:#?}");
    assert!(verdict.next_step.contains("measure"));
}

#[test]
fn data_far_larger_than_the_measured_region_is_a_doubt() {
    let mut observation = steady(Load { reads: 800, read_ns: 80 * MS, ..Load::default() });
    observation.data_bytes = Some(500 << 30);
    let verdict = verdict(&observation);
    assert_eq!(verdict.verdict, Kind::StorageDegraded);
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
    assert_eq!(verdict.verdict, Kind::CannotSay);
    assert!(verdict.summary.contains("does not time"), "{}", verdict.summary);
}

#[test]
fn an_old_measurement_costs_confidence() {
    let mut observation = steady(Load { reads: 120, read_ns: 4 * MS, ..Load::default() });
    for moment in &mut observation.moments {
        moment.ended_unix_ns += 90 * DAY;
    }
    let verdict = verdict(&observation);
    assert_eq!(verdict.verdict, Kind::Healthy);
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
