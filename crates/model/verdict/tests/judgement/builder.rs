//! A disk, seconds of a database on it, and what is judged of them.

use capability::{
    Capability, Conditions, CostModel, Curve, Effort, Maximum, Point, StorageLimits, find_knee,
};
use filestats::{
    Counters, Delta, Figure, FileIdentity, FileInterval, FileKind, Interval, Latencies, Meaning, Ops, Reason,
    ServiceLevel,
};
use verdict::{Evidence, Moment, Observation, Verdict, judge};
use workload::{Backend, Caching, Shape, TargetFacts, TargetKind};

pub const US: u64 = 1_000;
pub const MS: u64 = 1_000_000;
pub const DAY: u64 = 86_400_000_000_000;
pub const MEASURED: u64 = 100 * DAY;

/// A disk of 16 parallel units: 4 ms a read, 2 ms a write, so 4,000 reads or 8,000 writes a second.
pub fn disk() -> Capability {
    disk_so_many_times_as_fast(1.0)
}

pub fn disk_so_many_times_as_fast(times: f64) -> Capability {
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
        let points = points(service_ns / times, workload.block_bytes);
        let knee = find_knee(&workload, &points, &StorageLimits::default());
        Curve { workload, points, knee }
    };
    let log = |bytes: u32, latency_ns: f64| {
        let mut points = points(latency_ns / times, bytes);
        points.truncate(1);
        Curve { workload: Shape::log_write(bytes), points, knee: None }
    };
    let maximum = |workload: Shape, iops: f64| Maximum { workload, iops: iops * times, iops_half_width: 0.0 };
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
            effort: Effort::Default,
            remarks: vec![],
            target_changes: Vec::new(),
        },
        curves: vec![
            curve(Shape::random_read(8192), 4e6),
            curve(Shape::random_write(8192), 2e6),
            log(4096, 2e6),
            log(61_440, 3e6),
        ],
        cost_model: Some(CostModel::fit(&maxima, &[]).unwrap()),
        origin: capability::Origin::Measured,
    }
}

/// One second of a database and its device.
#[derive(Clone, Copy, Default)]
pub struct Load {
    /// Reads that reach the device, and how long each takes.
    pub reads: u64,
    pub read_ns: u64,
    /// Reads that the page cache serves in 5 us.
    pub cached: u64,
    /// Commits: one 4 KiB log write and a sync of this time.
    pub commits: u64,
    pub sync_ns: u64,
    /// Writes at the device besides those of commits, of 8 KiB, and how long each takes.
    pub writeback: u64,
    pub writeback_ns: u64,
    /// The device's own read latency where it differs from what the database sees.
    pub device_read_ns: Option<u64>,
}

pub fn file(kind: FileKind, path: &str) -> FileIdentity {
    FileIdentity {
        instance: "test".into(),
        database: Some("shop".into()),
        database_id: None,
        file_id: path.into(),
        kind,
        path: path.into(),
        drive: None,
        handle: None,
        object: None,
    }
}

pub fn second(at: u64, load: &Load) -> Moment {
    let ended_unix_ns = MEASURED + at * 1_000_000_000;
    let busy_ns = Figure::unknown(Reason::NotCounted);
    let interval = |kind, path: &str, read: Ops, write: Ops, sync: Ops, latencies| FileInterval {
        file: file(kind, path).into(),
        meaning: Meaning::REQUESTS,
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
    Moment { ended_unix_ns, files: vec![data, log].into(), device: Some(device), ..Moment::default() }
}

pub fn observed(loads: &[Load]) -> Observation {
    Observation {
        moments: loads.iter().enumerate().map(|(at, load)| second(at as u64 + 1, load)).collect(),
        ..Observation::default()
    }
}

pub fn verdict(observation: &Observation) -> Verdict {
    judge(observation, Some(&disk()), &ServiceLevel::OLTP)
}

pub fn steady(load: Load) -> Observation {
    observed(&[load; 10])
}

fn evidence<'a>(verdict: &'a Verdict, what: &str) -> &'a Evidence {
    let found = verdict.evidence.iter().find(|evidence| evidence.what == what);
    found.unwrap_or_else(|| panic!("no {what}"))
}

pub fn value(verdict: &Verdict, what: &str) -> f64 {
    evidence(verdict, what).value
}

pub fn expected(verdict: &Verdict, what: &str) -> f64 {
    evidence(verdict, what).expected.as_ref().unwrap_or_else(|| panic!("nothing expected of {what}")).value
}
