//! Runs, capabilities, verdicts, test files, and the list of everything.

use capability::{Capability, Conditions, Curve, Effort, Knee, KneeReason, Origin, Point};
use history::{EntryKind, Error, History, ResultId, SessionId};
use serde_json::json;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use tempfile::TempDir;
use verdict::{Confidence, Evidence, Expected, Verdict, VerdictKind};
use workload::{
    Backend, Caching, CoreUse, DeviceFacts, DeviceKind, Direction, PhaseResult, RunResult, Shape, Slice,
    Tally, TargetFacts, TargetKind, ThreadShare, Unit, Workload,
};

fn new_history() -> (TempDir, History) {
    let dir = tempfile::tempdir().unwrap();
    let history = History::open(&dir.path().join("history.db")).unwrap();
    (dir, history)
}

fn device(number: &str) -> DeviceFacts {
    DeviceFacts {
        name: "loop0".into(),
        number: number.into(),
        kind: DeviceKind::Loop,
        model: None,
        backing_file: Some("/images/a".into()),
        size_bytes: 1 << 30,
        rotational: Some(false),
        scheduler: Some("none".into()),
        requests_max: Some(128),
        queues: Some(1),
        request_bytes_max: None,
        logical_block_bytes: Some(512),
        physical_block_bytes: None,
        write_cache: None,
        layout: None,
    }
}

fn target(path: &str) -> TargetFacts {
    TargetFacts {
        path: path.into(),
        kind: TargetKind::Directory,
        filesystem: Some("ext4".into()),
        mount: Some("/mnt/data".into()),
        free_bytes: 1 << 29,
        devices: vec![device("7:0")],
        direct_align_bytes: Some(512),
        memory_align_bytes: 512,
        caps: vec![],
    }
}

fn capability(target: TargetFacts, measured_unix_ns: u64) -> Capability {
    let point = Point {
        outstanding: 8,
        iops: 2_500.1 / 3.0,
        iops_half_width: 0.1,
        mib_per_s: 0.3,
        latency_ns: 1e9 / 3.0,
        latency_ns_p50: 1,
        latency_ns_p99: None,
        latency_ns_max: u64::MAX,
        outstanding_measured: 8.0,
        ios: 10_000,
        failed: 0,
        seconds: 10.0,
        steady: true,
        cpu_ns_per_io: 1_500.0,
        client_busy: 0.1,
        humps: None,
    };
    let knee = Knee {
        outstanding: 15.6,
        iops: 801.2,
        low: 14.0,
        high: 17.0,
        iops_interval: (790.0, 810.0),
        latency_ns_floor: 19.5e6,
        outstanding_full: 16,
        above_bounds: 0.01,
        reason: KneeReason::Device,
        why: "flat from 16 on".into(),
    };
    Capability {
        target,
        measured_unix_ns,
        conditions: Conditions {
            headroom_version: "0.1.0".into(),
            kernel: "6.8".into(),
            backend: Backend::IoUring,
            caching: Caching::Direct,
            region_bytes: 1 << 28,
            foreign_iops: None,
            took_s: 60.5,
            effort: Effort::Quick,
            remarks: vec![],
            target_changes: Vec::new(),
        },
        curves: vec![Curve { workload: Shape::random_read(8192), points: vec![point], knee: Some(knee) }],
        cost_model: None,
        origin: Origin::Measured,
    }
}

fn run() -> RunResult {
    let mut read = Direction { count: 1_000, bytes: 8_192_000, ..Direction::default() };
    read.latency.record_n(2_000_000, 1_000);
    read.errors.insert(5, 2);
    RunResult {
        workload: Workload { outstanding: 8, threads: 4, seed: u64::MAX, ..Shape::random_read(8192).into() },
        target: "/mnt/data".into(),
        backend: Backend::IoUring,
        started_unix_ns: 1_000,
        elapsed_ns: 1_000_000_000,
        interrupted: true,
        read,
        write: Direction::default(),
        series: vec![Slice { read: Tally { count: 1_000, ..Tally::default() }, ..Slice::default() }],
        cores: vec![CoreUse { core: 1, user_percent: 0.1, kernel_percent: 0.2, idle_percent: 99.7 }],
        threads: vec![ThreadShare { cpu_ns: 5, ..ThreadShare::default() }],
        ..RunResult::empty(Shape::random_read(8192).into(), String::new())
    }
}

fn verdict() -> Verdict {
    Verdict {
        verdict: VerdictKind::DemandExceedsCapability,
        cause: Some(verdict::Cause::AnotherProgram),
        summary: "the database asks for 1.2 times what the storage gives".into(),
        confidence: Confidence::Medium,
        doubts: vec!["only 900 I/Os were seen".into()],
        utilisation: Some(1.2),
        headroom: Some(1.0 / 1.2),
        headroom_low: Some(1.0 / 1.3),
        headroom_high: Some(1.0 / 1.2),
        headroom_reason: Some("commits share log writes".into()),
        binding: Some(capability::Binding::Operations),
        evidence: vec![Evidence {
            what: "IOPS".into(),
            value: 1.0 / 3.0,
            unit: Unit::PerSecond,
            source: "device".into(),
            at: 7,
            expected: Some(Expected { value: 2.0 / 3.0, source: "curve".into(), at: 5 }),
        }],
        next_step: "ask for less, or buy more".into(),
        place: None,
    }
}

#[test]
fn what_was_saved_comes_back_as_the_same_value() {
    let (_dir, mut history) = new_history();
    let saved = history.save_run(&run(), None).unwrap();
    assert_eq!(history.run(saved).unwrap(), run());
    let capability = capability(target("/mnt/data/db"), 5);
    let saved = history.save_capability(&capability).unwrap();
    assert_eq!(history.capability(saved).unwrap(), capability);
    let report = json!({ "verdict": verdict(), "files": [1.5, u64::MAX] });
    let saved = history.save_verdict(&verdict(), "/mnt/data/db/shop.db", "sqlite", &report).unwrap();
    assert_eq!(history.verdict(saved).unwrap(), verdict());
    assert_eq!(history.show(EntryKind::Verdict, saved.0).unwrap(), report);
}

#[test]
fn a_capability_holds_for_the_whole_storage_and_the_newest_counts() {
    let (_dir, mut history) = new_history();
    for measured in [30, 50, 40] {
        history.save_capability(&capability(target("/mnt/data/db"), measured)).unwrap();
    }
    let (id, found) = history.latest_capability(&target("/mnt/data/other")).unwrap().unwrap();
    assert_eq!((id, found.measured_unix_ns), (ResultId(2), 50));
}

#[test]
fn a_preliminary_measurement_never_hides_a_whole_one() {
    let (_dir, mut history) = new_history();
    let measured = |at: u64, effort: Effort| {
        let capability = capability(target("/mnt/data"), at);
        Capability { conditions: Conditions { effort, ..capability.conditions }, ..capability }
    };
    let best = |history: &History| {
        let (_, best) = history.latest_capability(&target("/mnt/data")).unwrap().unwrap();
        assert_eq!(
            history.newest_capabilities(9).unwrap(),
            std::slice::from_ref(&best),
            "the same one is listed"
        );
        best.measured_unix_ns
    };
    history.save_capability(&measured(10, Effort::Preliminary)).unwrap();
    assert_eq!(best(&history), 10, "better than nothing");
    history.save_capability(&measured(20, Effort::Quick)).unwrap();
    history.save_capability(&measured(30, Effort::Preliminary)).unwrap();
    assert_eq!(best(&history), 20);
}

#[test]
fn what_was_measured_goes_before_what_is_borrowed_and_that_before_what_is_declared() {
    let (_dir, mut history) = new_history();
    let saved =
        [(30, Origin::Declared), (10, Origin::Borrowed), (20, Origin::Borrowed), (5, Origin::Measured)];
    for (at, origin) in saved {
        let capability = Capability { origin, ..capability(target("/mnt/data"), at) };
        history.save_capability(&capability).unwrap();
        assert_eq!(history.known_capabilities(&target("/mnt/data")).unwrap()[0].1.origin, origin);
    }
    let known = history.known_capabilities(&target("/mnt/data")).unwrap();
    let known: Vec<_> = known.iter().map(|(_, known)| (known.origin, known.measured_unix_ns)).collect();
    assert_eq!(known, [(Origin::Measured, 5), (Origin::Borrowed, 20), (Origin::Declared, 30)]);
    let (_, best) = history.latest_capability(&target("/mnt/data")).unwrap().unwrap();
    assert_eq!(best.origin, Origin::Measured);
    let summaries = history.entries(1).unwrap();
    assert!(!summaries[0].summary.starts_with("measured"), "{}", summaries[0].summary);
}

#[test]
fn another_storage_has_no_capability_whatever_it_shares() {
    let (_dir, mut history) = new_history();
    history.save_capability(&capability(target("/mnt/data"), 1)).unwrap();
    let with_device = |change: fn(&mut DeviceFacts)| {
        let mut other = target("/mnt/data");
        change(&mut other.devices[0]);
        other
    };
    let others = [
        with_device(|device| device.number = "7:1".into()),
        with_device(|device| device.name = "vda".into()),
        with_device(|device| device.size_bytes += 1),
        with_device(|device| device.backing_file = Some("/images/b".into())),
        with_device(|device| device.backing_file = None),
        TargetFacts { mount: Some("/mnt/other".into()), ..target("/mnt/data") },
        TargetFacts { devices: vec![], ..target("/mnt/data") },
    ];
    for other in others {
        assert_eq!(history.latest_capability(&other).unwrap(), None, "{other:?}");
    }
}

#[test]
fn without_a_device_the_mount_tells_storage_apart_and_without_both_the_path() {
    let (_dir, mut history) = new_history();
    let bare = |path: &str, mount: Option<&str>| TargetFacts {
        devices: vec![],
        mount: mount.map(Into::into),
        ..target(path)
    };
    history.save_capability(&capability(bare("/nfs/a", Some("/nfs")), 1)).unwrap();
    history.save_capability(&capability(bare("/x", None), 2)).unwrap();
    let found = |target| history.latest_capability(&target).unwrap().map(|(id, _)| id.0);
    assert_eq!(found(bare("/nfs/b", Some("/nfs"))), Some(1));
    assert_eq!(found(bare("/x", None)), Some(2));
    assert_eq!(found(bare("/y", None)), None);
}

#[test]
fn a_value_that_json_cannot_hold_is_refused_rather_than_lost() {
    let (_dir, mut history) = new_history();
    let mut broken = capability(target("/mnt/data"), 1);
    broken.curves[0].points[0].latency_ns = f64::NAN;
    let refused = history.save_capability(&broken);
    assert!(matches!(refused, Err(Error::NotStorable { kind: EntryKind::Capability, .. })));
    assert!(history.entries(9).unwrap().is_empty());
}

#[test]
fn entries_list_everything_the_newest_first() {
    let (_dir, mut history) = new_history();
    history.save_run(&run(), None).unwrap();
    history.save_capability(&capability(target("/mnt/data"), 3_000)).unwrap();
    let snapshot = filestats::Snapshot {
        source: "sqlite".into(),
        taken_unix_ns: 2_000,
        clock_ns: 1,
        samples: vec![],
        complete: None,
        waits: vec![],
        notes: vec![],
    };
    let capture = history.save_snapshot(&snapshot, Some("noon")).unwrap();
    history.save_verdict(&verdict(), "/mnt/data/shop.db", "sqlite", &json!({})).unwrap();
    let entries = history.entries(9).unwrap();
    let lines: Vec<String> = entries
        .iter()
        .map(|entry| format!("{} {} {}: {}", entry.kind, entry.id, entry.target, entry.summary))
        .collect();
    assert_eq!(
        lines,
        [
            "verdict 1 /mnt/data/shop.db: demand-exceeds-capability: the database asks for 1.2 times what \
             the storage gives",
            "capability 1 /mnt/data: 801 IOPS, knee at 16 outstanding; random read 8 KiB",
            "capture 1 sqlite: 0 files, 0 changed (noon)",
            "run 1 /mnt/data: 1,000 IOPS, 7.8 MiB/s, 2.00 ms mean; random read 8 KiB, 32 outstanding",
        ]
    );
    assert_eq!(history.entries(2).unwrap(), entries[..2]);
    let shown = history.show(EntryKind::Capture, capture.0).unwrap();
    assert_eq!(shown, serde_json::to_value(&snapshot).unwrap());
    assert!(matches!(history.show(EntryKind::Run, 2), Err(Error::NotFound { id: 2, .. })));
}

#[test]
fn the_runs_of_a_command_are_one_session_with_phases_and_names() {
    let (_dir, mut history) = new_history();
    let named = |name: &str| {
        let mut run = run();
        run.workload.name = name.into();
        run
    };
    let phases = [
        PhaseResult { name: "load".into(), results: vec![named("oltp"), named("log")] },
        PhaseResult { name: "scan".into(), results: vec![named("scan")] },
    ];
    let (session, ids) = history.save_session(&phases).unwrap();
    assert_eq!((session, ids), (SessionId(1), vec![ResultId(1), ResultId(2), ResultId(3)]));
    assert_eq!(history.run(ResultId(2)).unwrap().workload.name, "log");
    let entries = history.entries(9).unwrap();
    let begin = |at: usize| {
        let (_, workload) = entries[at].summary.split_once("; ").unwrap();
        workload.split(" 8 KiB").next().unwrap().to_owned()
    };
    assert_eq!(
        [begin(0), begin(1), begin(2)],
        ["scan: random read", "load, log: random read", "load, oltp: random read"]
    );
    assert!(entries.iter().all(|entry| entry.session == Some(session)));

    let single = history.save_run(&RunResult { tool: Some("fio-3.33".into()), ..run() }, None).unwrap();
    let session_of = |history: &History, run: ResultId| {
        let runs = history.entries(9).unwrap().into_iter();
        runs.filter(|entry| entry.id == run.0).map(|entry| entry.session).collect::<Vec<_>>()
    };
    assert_eq!(session_of(&history, single), [None]);
    assert!(history.entries(9).unwrap().iter().any(|entry| entry.summary.ends_with(" (fio-3.33)")));
    let next = history.begin_session().unwrap();
    assert_eq!(next, SessionId(2));
    let id = history.save_run(&run(), Some((next, ""))).unwrap();
    assert_eq!(session_of(&history, id), [Some(next)]);
    assert_eq!(session_of(&history, ResultId(9)), []);
}

#[test]
fn a_mark_is_kept_for_a_file_that_takes_none_until_it_is_gone() {
    let (_dir, mut history) = new_history();
    let path = Path::new("/nfs/scratch.dat");
    history.record_test_file(path, 4096, Some("version=1 state=making")).unwrap();
    history.record_test_file(path, 4096, Some("version=1 state=whole")).unwrap();
    assert_eq!(history.mark_of(path).unwrap().as_deref(), Some("version=1 state=whole"));
    history.record_test_file(Path::new("/data/plain"), 1, None).unwrap();
    assert_eq!(history.mark_of(Path::new("/data/plain")).unwrap(), None);
    history.forget_test_file(path).unwrap();
    assert_eq!(history.mark_of(path).unwrap(), None);
}

#[test]
fn test_files_are_on_record_until_they_are_removed() {
    let (_dir, mut history) = new_history();
    let odd = Path::new(std::ffi::OsStr::from_bytes(b"/mnt/\xff.test"));
    let plain = Path::new("/mnt/data/headroom.test");
    history.record_test_file(plain, 1 << 30, None).unwrap();
    history.record_test_file(odd, 4096, None).unwrap();
    history.record_test_file(plain, 2 << 30, None).unwrap();
    let paths = |history: &History| -> Vec<(std::path::PathBuf, u64)> {
        history.test_files().unwrap().into_iter().map(|file| (file.path, file.bytes)).collect()
    };
    assert_eq!(paths(&history), [(plain.into(), 2 << 30), (odd.into(), 4096)]);
    assert!(history.forget_test_file(odd).unwrap());
    assert!(!history.forget_test_file(odd).unwrap(), "it was on record once");
    assert_eq!(paths(&history).len(), 1);
    history.record_test_file(odd, 1, None).unwrap();
    assert_eq!(paths(&history)[1], (odd.into(), 1));
}
