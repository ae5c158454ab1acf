//! Values that look like a small virtual disk and a SQLite database on it. The verdicts are judged, not
//! written down, so that the pages show what users see.

use capability::{
    Capability, Conditions, CostModel, Curve, Effort, Maximum, Point, StorageLimits, find_knee,
};
use filestats::{
    Cache, Counters, Delta, Figure, FileIdentity, FileInterval, FileKind, Interval, Meaning, Ops, Profile,
    Reason, ServiceLevel,
};
use report::{Check, Phase};
use std::sync::Arc;
use verdict::{Moment, Observation, judge};
use workload::{
    Backend, Caching, Cap, CapKind, DeviceFacts, DeviceKind, Shape, TargetFacts, TargetKind, WriteCache,
};

/// 2026-11-21 09:00:00 UTC.
pub const BEGIN_NS: u64 = 1_795_251_600_000_000_000;
const MOMENT_S: u64 = 15;
const SWEEP: [u32; 11] = [1, 2, 4, 8, 12, 16, 24, 32, 64, 128, 256];

/// A storage of `servers` parallel units; latency bends softly at the knee.
pub fn curve(shape: Shape, servers: f64, service_ns: f64) -> Curve {
    let points: Vec<Point> =
        SWEEP.iter().enumerate().map(|(at, n)| point(&shape, *n, at, servers, service_ns)).collect();
    let knee =
        find_knee(&shape, &points, &StorageLimits { requests_max: Some(256), ..StorageLimits::default() });
    Curve { workload: shape, points, knee }
}

fn point(shape: &Shape, outstanding: u32, at: usize, servers: f64, service_ns: f64) -> Point {
    let wobble = 1.0 + [0.004, -0.012, 0.009, -0.003, 0.011, -0.014, 0.007][at % 7];
    let load = f64::from(outstanding) / servers;
    let latency_ns = service_ns * (1.0 + load.powi(6)).powf(1.0 / 6.0) * wobble;
    let iops = f64::from(outstanding) * 1e9 / latency_ns;
    Point {
        outstanding,
        iops,
        iops_half_width: iops * 0.012,
        mib_per_s: iops * f64::from(shape.block_bytes) / 1_048_576.0,
        latency_ns,
        latency_ns_p50: (latency_ns * 0.94) as u64,
        latency_ns_p99: Some((latency_ns * 2.1) as u64),
        latency_ns_max: (latency_ns * 7.3) as u64,
        outstanding_measured: f64::from(outstanding) * 0.998,
        ios: (iops * 3.0) as u64,
        failed: 0,
        seconds: 3.0,
        steady: at != 9,
        cpu_ns_per_io: 2_100.0,
        client_busy: 0.3,
        humps: None,
    }
}

pub fn target() -> TargetFacts {
    TargetFacts {
        path: "/data/sales".into(),
        kind: TargetKind::Directory,
        filesystem: Some("ext4".into()),
        mount: Some("/data".into()),
        free_bytes: 132 << 30,
        devices: vec![
            DeviceFacts {
                name: "vdb1".into(),
                number: "254:17".into(),
                kind: DeviceKind::Partition,
                model: None,
                backing_file: None,
                size_bytes: 256 << 30,
                rotational: None,
                scheduler: None,
                requests_max: None,
                queues: None,
                request_bytes_max: None,
                logical_block_bytes: Some(512),
                physical_block_bytes: Some(4096),
                write_cache: None,
                layout: None,
            },
            DeviceFacts {
                name: "vdb".into(),
                number: "254:16".into(),
                kind: DeviceKind::Disk,
                model: Some("Virtio Block Device".into()),
                backing_file: None,
                size_bytes: 256 << 30,
                rotational: Some(false),
                scheduler: Some("none".into()),
                requests_max: Some(256),
                queues: Some(2),
                request_bytes_max: Some(1 << 20),
                logical_block_bytes: Some(512),
                physical_block_bytes: Some(4096),
                write_cache: Some(WriteCache::WriteBack),
                layout: None,
            },
        ],
        direct_align_bytes: Some(512),
        memory_align_bytes: 512,
        caps: Vec::new(),
    }
}

/// 12,700 random 8 KiB reads a second, its knee at about 14 outstanding.
pub fn capability() -> Capability {
    let read = Shape::random_read(8192);
    let log = |bytes: u32, latency_ns: f64| {
        let shape = Shape::log_write(bytes);
        Curve { workload: shape, points: vec![point(&shape, 1, 0, 100.0, latency_ns)], knee: None }
    };
    let curves = vec![
        curve(read, 14.0, 1.1e6),
        curve(Shape::random_write(8192), 9.0, 1.3e6),
        curve(read.with_writes(30), 12.0, 1.15e6),
        curve(Shape::sequential_read(524_288), 4.0, 6.2e6),
        log(4096, 2.1e6),
        log(61_440, 2.9e6),
    ];
    let max = |shape: Shape, iops: f64| Maximum { workload: shape, iops, iops_half_width: 0.01 * iops };
    let maxima = [
        max(read, 12_700.0),
        max(Shape::random_read(65_536), 5_900.0),
        max(Shape::random_write(8192), 6_920.0),
        max(Shape::random_write(65_536), 3_300.0),
        max(Shape::sequential_read(524_288), 645.0),
        max(Shape::sequential_write(524_288), 480.0),
        max(read.with_writes(70), 8_050.0),
        max(Shape::random_read(65_536).with_writes(30), 5_200.0),
    ];
    let held_out = [max(read.with_writes(30), 10_400.0), max(Shape::random_read(16_384), 10_900.0)];
    Capability {
        target: target(),
        measured_unix_ns: BEGIN_NS - 4 * 86_400_000_000_000,
        conditions: Conditions {
            headroom_version: "0.1.0".into(),
            kernel: "6.12.41".into(),
            backend: Backend::IoUring,
            caching: Caching::Direct,
            region_bytes: 8 << 30,
            foreign_iops: Some(3.2),
            took_s: 94.0,
            effort: Effort::Default,
            remarks: vec!["the region fits into the host's cache in part".into()],
            target_changes: Vec::new(),
        },
        curves,
        cost_model: CostModel::fit(&maxima, &held_out).ok(),
        origin: capability::Origin::Measured,
    }
}

/// Load in one second, at the database and at the device.
#[derive(Clone, Copy, Default)]
pub struct Load {
    pub reads: f64,
    pub read_ns: f64,
    /// Each with a write before it.
    pub commits: f64,
    pub commit_ns: f64,
    pub device_reads: f64,
    pub device_read_ns: f64,
    pub device_writes: f64,
    pub device_write_ns: f64,
}

impl Load {
    /// Reads that all reach the device and take as long there.
    pub fn reads(reads: f64, read_ns: f64) -> Load {
        Load { reads, read_ns, device_reads: reads * 1.02, device_read_ns: read_ns * 0.96, ..Load::default() }
    }

    pub fn with_commits(self, commits: f64, commit_ns: f64, device_write_ns: f64) -> Load {
        Load { commits, commit_ns, device_writes: commits * 3.0, device_write_ns, ..self }
    }
}

pub fn identity(kind: FileKind, path: &str) -> Arc<FileIdentity> {
    FileIdentity {
        instance: "sqlite pid 812".into(),
        database: Some("sales".into()),
        database_id: None,
        file_id: format!("254:17:{}", path.len()),
        kind,
        path: path.into(),
        drive: Some("/data".into()),
        handle: None,
        object: None,
    }
    .into()
}

pub fn delta(read: Ops, write: Ops, sync: Figure<Ops>) -> Interval {
    let counters = Counters { read, write, sync, ..Counters::ZERO };
    Interval::Known(Delta { elapsed_ns: MOMENT_S * 1_000_000_000, counters, latencies: None })
}

fn ops(per_second: f64, bytes: u64, latency_ns: f64) -> Ops {
    let count = (per_second * MOMENT_S as f64).round() as u64;
    Ops::timed(count, count * bytes, (count as f64 * latency_ns) as u64)
}

/// All reads go to the storage.
const DIRECT: Meaning = Meaning { cache: Cache::Missed, ..Meaning::REQUESTS };

fn moment(at: usize, load: Option<&Load>) -> Moment {
    let ended_unix_ns = BEGIN_NS + (at as u64 + 1) * MOMENT_S * 1_000_000_000;
    let row = |kind, path: &str, interval| FileInterval {
        file: identity(kind, path),
        meaning: DIRECT,
        ended_unix_ns,
        interval,
    };
    let (data, wal) = ("/data/sales/orders.db", "/data/sales/orders.db-wal");
    let Some(load) = load else {
        let restart = || Interval::Unknown(Reason::Restart);
        return Moment {
            ended_unix_ns,
            files: vec![row(FileKind::Data, data, restart()), row(FileKind::Log, wal, restart())].into(),
            ..Moment::default()
        };
    };
    let checkpoint = ops(load.commits / 40.0, 8192, load.device_write_ns);
    let data_delta =
        delta(ops(load.reads, 8192, load.read_ns), checkpoint, Figure::Known(Ops::timed(1, 0, 2_000_000)));
    let log_write = ops(load.commits, 4096, load.commit_ns * 0.1);
    let log_sync = Ops { bytes: 0, ..ops(load.commits, 0, load.commit_ns * 0.9) };
    let log_delta = delta(ops(load.reads / 200.0, 4096, 40_000.0), log_write, Figure::Known(log_sync));
    let device_reads = ops(load.device_reads, 8192, load.device_read_ns);
    let device_writes = ops(load.device_writes, 6144, load.device_write_ns);
    let device = FileInterval {
        file: identity(FileKind::Device, "vdb"),
        meaning: Meaning { cache: Cache::Below, ..DIRECT },
        ended_unix_ns,
        interval: delta(device_reads, device_writes, Figure::unknown(Reason::NotCounted)),
    };
    Moment {
        ended_unix_ns,
        files: vec![row(FileKind::Data, data, data_delta), row(FileKind::Log, wal, log_delta)].into(),
        device: Some(device),
        ..Moment::default()
    }
}

/// A judged check of that course; `None` is a restart.
pub fn check(course: &[Option<Load>], capability: Option<Capability>, caps: Vec<Cap>) -> Check {
    let moments = course.iter().enumerate().map(|(at, load)| moment(at, load.as_ref())).collect();
    let observation = Observation { moments, caps, ..Observation::default() };
    let service_level = ServiceLevel::OLTP;
    Check {
        verdict: judge(&observation, capability.as_ref(), &service_level),
        observation,
        capability,
        profile: Profile::default(),
        service_level,
        source: "sqlite:/data/sales/orders.db".into(),
        target: "/data/sales".into(),
        phases: Vec::new(),
        advice: None,
        version: "0.1.0".into(),
        first_answer: None,
        others: Vec::new(),
        alone: None,
        headroom_on: None,
    }
}

fn wave(at: usize) -> f64 {
    1.0 + 0.12 * (at as f64 * 0.9).sin() + 0.06 * (at as f64 * 2.3).cos()
}

/// A constant load, a little up and down.
pub fn steady(load: Load, moments: usize) -> Vec<Option<Load>> {
    (0..moments)
        .map(|at| {
            Some(Load { reads: load.reads * wave(at), device_reads: load.device_reads * wave(at), ..load })
        })
        .collect()
}

pub fn healthy() -> Check {
    check(
        &steady(Load::reads(2_400.0, 1.15e6).with_commits(60.0, 6.5e6, 1.6e6), 40),
        Some(capability()),
        Vec::new(),
    )
}

/// Everyday load, then an index rebuild over the knee, with a restart in between.
pub fn demand_exceeds() -> Check {
    let mut course = steady(Load::reads(3_900.0, 1.2e6).with_commits(80.0, 7.0e6, 1.8e6), 16);
    course.extend([None, None]);
    course.extend((0..30).map(|at| {
        let load = Load::reads(12_300.0 * (0.98 + 0.02 * wave(at)), 2.1e6 * wave(at));
        Some(load.with_commits(30.0, 14.0e6 * wave(at + 3), 3.1e6))
    }));
    let mut check = check(&course, Some(capability()), Vec::new());
    let at = |moment: u64| BEGIN_NS + moment * MOMENT_S * 1_000_000_000;
    check.phases = vec![
        Phase { name: "everyday".into(), from_unix_ns: at(0), to_unix_ns: at(16) },
        Phase { name: "index rebuild".into(), from_unix_ns: at(18), to_unix_ns: at(48) },
    ];
    check
}

pub fn degraded() -> Check {
    check(&steady(Load::reads(700.0, 9.4e6), 24), Some(capability()), Vec::new())
}

pub fn throttled() -> Check {
    let cap = Cap {
        kind: CapKind::ReadIops,
        per_second: 1_000,
        device: "254:16".into(),
        origin: "cgroup /system.slice/sales.service io.max".into(),
    };
    check(&steady(Load::reads(1_000.0, 8.0e6), 24), Some(capability()), vec![cap])
}

pub fn serialized() -> Check {
    let course = steady(Load::reads(40.0, 1.1e6).with_commits(150.0, 6.1e6, 1.5e6), 24);
    check(&course, Some(capability()), Vec::new())
}

pub fn burst() -> Check {
    let course: Vec<Option<Load>> = (0..40)
        .map(|at| {
            let busy = (12..17).contains(&(at % 20));
            let load =
                if busy { Load::reads(12_600.0, 1.9e6) } else { Load::reads(1_800.0 * wave(at), 1.15e6) };
            Some(load.with_commits(20.0, 6.0e6, 1.6e6))
        })
        .collect();
    check(&course, Some(capability()), Vec::new())
}

pub fn not_storage() -> Check {
    let slow_above = Load { read_ns: 7.5e6, device_read_ns: 1.1e6, ..Load::reads(900.0, 7.5e6) };
    check(&steady(slow_above, 24), Some(capability()), Vec::new())
}

pub fn nobody_waits() -> Check {
    let load = Load {
        device_reads: 20.0,
        device_read_ns: 1.2e6,
        device_writes: 300.0,
        device_write_ns: 60e6,
        ..Load::reads(20.0, 1.3e6)
    };
    check(&steady(load, 24), Some(capability()), Vec::new())
}

pub fn never_measured() -> Check {
    check(&steady(Load::reads(2_400.0, 1.15e6), 24), None, Vec::new())
}

/// The log's volume is degraded, the data's is nearly full, that of temporary files was never measured.
pub fn three_volumes() -> Check {
    let on = |check: Check, target: &str, kinds: &[FileKind]| {
        let mut check = Check { target: target.into(), ..check };
        for moment in &mut check.observation.moments {
            moment.files.retain(|file| kinds.contains(&file.file.kind));
        }
        check
    };
    let with_commits = |load: Load| steady(load.with_commits(150.0, 60.0e6, 15.0e6), 24);
    let log = check(&with_commits(Load::reads(0.0, 1.0)), Some(capability()), Vec::new());
    let data = check(&steady(Load::reads(6_000.0, 1.3e6), 24), Some(capability()), Vec::new());
    let mut log = judged_again(on(log, "/mnt/wal", &[FileKind::Log]));
    let data = judged_again(on(data, "/var/lib/postgresql/15/main", &[FileKind::Data]));
    let mut spill = check(&steady(Load::reads(40.0, 1.2e6), 24), None, Vec::new());
    spill = on(spill, "/mnt/spill", &[FileKind::Data]);
    for file in spill.observation.moments.iter_mut().flat_map(|moment| &mut moment.files) {
        let name = file.file_mut();
        (name.kind, name.path) = (FileKind::Temp, "/mnt/spill/pgsql_tmp".into());
    }
    let spill = judged_again(spill);
    let volumes = [&log, &data, &spill].map(|volume| verdict::JudgedVolume {
        name: volume.place(),
        verdict: &volume.verdict,
        outstanding: volume.outstanding(),
    });
    let answer = verdict::Answer::from_volumes(&volumes).unwrap();
    assert_eq!((answer.volume, answer.headroom_of), (0, Some(1)), "{answer:#?}");
    log.alone = Some(std::mem::replace(&mut log.verdict, answer.verdict));
    log.headroom_on = Some(data.target.clone());
    log.others = vec![data, spill];
    log
}

fn judged_again(check: Check) -> Check {
    Check { verdict: judge(&check.observation, check.capability.as_ref(), &check.service_level), ..check }
}

pub fn restarted() -> Check {
    check(&[None, None, None], Some(capability()), Vec::new())
}
