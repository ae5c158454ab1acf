//! docs/reference/json.md and the JSON say the same.

use crate::known::known_storage;
use crate::sample;
use experiments::{
    CommitResult, CommitStudy, Durability, EmulatedDisk, Footprint, IoFigures, LeftOut, ObjectFootprint,
    RecoverResult, RecoverStudy, RecoveryIo,
};
use filestats::{
    Cache, Counters, Durable, Epoch, Figure, FileIdentity, FileKind, IoFlags, Meaning, Ops, Profile, Sample,
    Served, Snapshot, TracedIo, TracedOp, WaitClass, WaitSample,
};
use report::json;
use serde_json::{Value, json};
use simulate::{Advice, Remedy};
use std::collections::BTreeSet;
use std::time::Duration;
use workload::{
    Arrival, BadBlock, Burst, Cap, CapKind, Content, CoreUse, DeviceLayout, Direction, Latencies, Layout,
    Limit, MemberShare, Pool, Response, RunResult, Shape, SizeShare, Slice, SyncEvery, SyncKind, ThreadShare,
    Verification, Verify, Workload,
};

/// The document for users, and the laboratory's.
const DOCUMENTS: [&str; 2] =
    [include_str!("../../../../../docs/reference/json.md"), include_str!("../../../../lab/cli/JSON.md")];

/// Every path of a value: `files[].kind`. What holds further keys is not a path of its own.
pub fn paths(value: &Value, prefix: &str, into: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) if fields.len() == 1 && fields.contains_key("unknown") => {
            into.insert(prefix.into());
        }
        // A workload has its own chapter.
        Value::Object(fields) if !prefix.is_empty() && fields.contains_key("block_bytes") => {
            into.insert(prefix.into());
        }
        Value::Object(fields) => {
            for (key, value) in fields {
                let path = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
                paths(value, &path, into);
            }
        }
        Value::Array(items) if items.iter().any(Value::is_object) => {
            items.iter().for_each(|item| paths(item, &format!("{prefix}[]"), into));
        }
        _ => {
            into.insert(prefix.into());
        }
    }
}

/// The keys of a chapter of the document: the first cell of each row.
pub fn documented(chapter: &str) -> BTreeSet<String> {
    let mut chapters = DOCUMENTS.iter().flat_map(|document| document.split("\n## "));
    let text = chapters.find(|part| part.starts_with(chapter)).expect("the chapter is there");
    text.lines()
        .filter_map(|line| line.strip_prefix("| `"))
        .filter_map(|line| line.split('`').next())
        .map(ToOwned::to_owned)
        .collect()
}

fn full_check() -> report::Check {
    let mut check = sample::demand_exceeds();
    check.verdict.doubts = vec!["the storage was measured 40 days ago".into()];
    check.headroom_on = Some("/data".into());
    check.first_answer = Some(report::FirstAnswer::new(&check.verdict, Duration::from_secs(42)));
    let cap = Cap { kind: CapKind::ReadIops, per_second: 10, device: "7:0".into(), origin: "io.max".into() };
    check.observation.caps = vec![cap.clone()];
    let used = verdict::CapUse { cap: cap.clone(), counted: 9, elapsed_ns: 1_000_000_000 };
    check.observation.moments.iter_mut().for_each(|moment| moment.caps = vec![used.clone()]);
    check.verdict.cause = Some(verdict::Cause::AnotherProgram);
    check.observation.neighbours = vec![verdict::Neighbour {
        pid: 812,
        command: "rsync".into(),
        device: Some("sda".into()),
        bytes: 5 << 20,
        share: 0.06,
        operations: Some(70),
        operations_share: Some(0.02),
    }];
    let remedy =
        |latency_ns| Remedy { what: "3 such disks striped".into(), carries: 2.9, latency_ns, enough: true };
    check.advice = Some(Advice { remedies: vec![remedy(Some(1e6)), remedy(None)], error: Some(0.07) });
    if let Some(capability) = &mut check.capability {
        capability.target.caps = vec![cap];
        let how = "stripe:64K".into();
        let members = vec!["sda".into(), "sdb".into()];
        capability.target.devices[0].layout = Some(DeviceLayout { made_by: "LVM".into(), how, members });
        let burst = Some(capability::Burst { per_second: 2e4, saved_max: 1e6 });
        let limit = capability::RateLimit { of: capability::Binding::Operations, per_second: 1e4, burst };
        capability.cost_model.iter_mut().for_each(|model| model.limits = vec![limit]);
        for point in capability.curves.iter_mut().flat_map(|curve| &mut curve.points) {
            point.humps = Some(capability::Humps { fast_ns: 1e5, slow_ns: 1e7, slow_share: 0.1 });
        }
    }
    check
}

/// A curve of one point has no knee: its null is not a key beside the knee's own.
fn without_absent(mut keys: BTreeSet<String>) -> BTreeSet<String> {
    let all = keys.clone();
    keys.retain(|key| !all.iter().any(|other| other.starts_with(&format!("{key}."))));
    keys
}

#[test]
fn each_key_of_a_check_is_documented_and_each_documented_key_is_there() {
    let mut keys = BTreeSet::new();
    paths(&json::check(&full_check()), "", &mut keys);
    let documented = documented("check").union(&documented("capability")).cloned().collect();
    assert_eq!(without_absent(keys), documented);
}

/// Two captures of a source with all that it can tell.
#[test]
fn each_volume_has_its_own_verdict_and_the_answer_the_headroom_of_all() {
    let check = sample::three_volumes();
    let answer = json::check(&check);
    let volumes = answer["volumes"].as_array().unwrap();
    let of = |key: &str| volumes.iter().map(|volume| volume[key].clone()).collect::<Vec<Value>>();
    assert_eq!(of("target_path"), ["/mnt/wal", "/var/lib/postgresql/15/main", "/mnt/spill"]);
    assert_eq!(of("roles"), [json!(["log"]), json!(["data"]), json!(["temp"])]);
    assert_eq!(of("verdict"), ["storage-degraded", "healthy", "cannot-say"]);
    assert_eq!(answer["headroom"], volumes[1]["headroom"]);
    assert_eq!(answer["headroom_volume"], "/var/lib/postgresql/15/main");
    assert_ne!(answer["headroom"], volumes[0]["headroom"]);
    assert!(answer["summary"].as_str().unwrap().starts_with("on /mnt/wal (log): "), "{answer:#}");
    assert_eq!(of("summary")[0], check.own_verdict().summary);
    let waited: f64 = volumes.iter().map(|volume| volume["share_waited"].as_f64().unwrap()).sum();
    assert!((waited - 1.0).abs() < 1e-9, "{waited}");
    assert_eq!(answer["files"].as_array().unwrap().len(), 3);

    let alone = json::check(&sample::healthy());
    assert_eq!(alone["headroom_volume"], Value::Null);
    let [only] = &alone["volumes"].as_array().unwrap()[..] else { panic!("{alone:#}") };
    let keys = ["target_path", "verdict", "headroom", "doubts", "next_step", "summary"];
    keys.iter().for_each(|key| assert_eq!(only[*key], alone[*key], "{key}"));
}

fn glance() -> report::WatchedInterval {
    let file = |path: &str, cache| Sample {
        file: FileIdentity {
            instance: "engine".into(),
            database: None,
            database_id: None,
            file_id: "1".into(),
            kind: FileKind::Data,
            path: path.into(),
            drive: None,
            handle: None,
            object: None,
        },
        epoch: Epoch::for_run("1"),
        meaning: Meaning { cache, durable: Durable::ByItself, ..Meaning::REQUESTS },
        counters: Counters { read: Ops::timed(9, 9, 9), ..Counters::ZERO },
        size_bytes: Figure::Known(9),
        latencies: None,
    };
    let wait = |event: &str| WaitSample {
        instance: "engine".into(),
        event: event.into(),
        class: WaitClass::DataRead,
        epoch: Epoch::for_run("1"),
        count: Figure::Known(1),
        wait_ns: Figure::Known(1),
    };
    let snapshot = |clock_ns, samples, waits| Snapshot {
        source: "engine".into(),
        taken_unix_ns: clock_ns,
        clock_ns,
        complete: None,
        samples,
        waits,
        notes: vec!["timing is off".into()],
    };
    let then = snapshot(1, vec![file("/old", Cache::Included)], vec![wait("old")]);
    let files = vec![file("/old", Cache::Included), file("/new", Cache::Included)];
    report::WatchedInterval::between(&then, &snapshot(9, files, vec![wait("old"), wait("new")]))
}

#[test]
fn each_key_of_an_experiment_with_commits_is_documented_and_each_documented_key_is_there() {
    let io = IoFigures {
        writes: Figure::Known(2),
        write_bytes: Figure::Known(8_192),
        syncs: Figure::Known(1),
        wait_ns: Figure::Known(9),
    };
    let result = CommitResult {
        engine: "sqlite-wal".into(),
        durability: Durability::Full,
        batch: 1,
        rows: 1,
        commits: 1,
        seconds: 1.0,
        log: io,
        data: io,
        waits_for_data: false,
    };
    let study =
        CommitStudy { dir: "/data".into(), rows: 1, results: vec![result], notes: vec!["note".into()] };
    let mut keys = BTreeSet::new();
    paths(&json::commits(&study, "1"), "", &mut keys);
    assert_eq!(keys, documented("lab commit"));
}

#[test]
fn each_key_of_recoveries_is_documented_and_each_documented_key_is_there() {
    let result = RecoverResult {
        engine: "pagestore".into(),
        strategy: experiments::Strategy::Instant,
        opened_s: 0.010,
        first_read_s: 0.012,
        first_write_s: 0.013,
        full_s: 8.0,
        pages: Figure::Known(256_000),
        page_bytes: 4096,
        pages_left: Figure::Known(256_000),
        log_bytes: 1 << 30,
        commits: 4_000,
        checked: 4_127,
        io: RecoveryIo::unknown(filestats::Reason::NotCounted),
        counted_by: "nobody".into(),
    };
    let study = RecoverStudy {
        dir: "/data".into(),
        emulated: Some(EmulatedDisk { latency_ns: 5_000_000, width: 64 }),
        pages: 256_000,
        data_pages: 512_000,
        log_bytes: 1 << 30,
        results: vec![result],
        left_out: vec![LeftOut { engine: "mariadb".into(), why: "there is none".into() }],
        notes: vec!["note".into()],
    };
    let mut keys = BTreeSet::new();
    paths(&json::recoveries(&study, "1"), "", &mut keys);
    let mut documented = documented("lab recover");
    assert_eq!(keys, documented);
    // On the directory's own storage there is no such disk.
    let here = RecoverStudy { emulated: None, ..study };
    let mut keys = BTreeSet::new();
    paths(&json::recoveries(&here, "1"), "", &mut keys);
    documented.retain(|key| !key.starts_with("emulated."));
    documented.insert("emulated".into());
    assert_eq!(keys, documented);
}

#[test]
fn each_key_of_a_footprint_is_documented_and_each_documented_key_is_there() {
    let known = Figure::Known(1);
    let object =
        ObjectFootprint { name: "t".into(), rows: known, record_bytes: known, pages: known, bytes: known };
    let footprint = Footprint {
        source: "sqlite:/shop.db".into(),
        query: "SELECT 1".into(),
        rows: 1,
        column_bytes: known,
        rows_examined: known,
        page_bytes: 4096,
        pages_touched: known,
        pages_read: known,
        pages_read_ahead: known,
        file_reads: known,
        file_read_bytes: known,
        storage_bytes: known,
        storage_read_ahead_bytes: known,
        client_bytes: Figure::unknown(filestats::Reason::NotCounted),
        objects: vec![object],
        notes: vec!["note".into()],
    };
    let mut keys = BTreeSet::new();
    paths(&json::footprint(&footprint, "1"), "", &mut keys);
    assert_eq!(keys, documented("lab footprint"));
}

#[test]
fn each_key_of_a_watch_is_documented_and_each_documented_key_is_there() {
    let mut keys = BTreeSet::new();
    paths(&json::watch(&glance(), &Profile::default()), "", &mut keys);
    assert_eq!(keys, documented("watch"));
}

#[test]
fn each_key_of_a_capability_is_documented_and_each_documented_key_is_there() {
    let mut keys = BTreeSet::new();
    let mut capability = full_check().capability.unwrap();
    capability.conditions.remarks = vec!["none".into()];
    paths(&json::capability(&capability), "", &mut keys);
    assert_eq!(without_absent(keys), documented("capability"));
}

#[test]
fn each_key_of_a_known_storage_is_documented_and_each_documented_key_is_there() {
    let known = known_storage();
    let mut keys = BTreeSet::new();
    paths(&json::known_storage(&known), "", &mut keys);
    assert_eq!(keys, documented("known storage"));
    let value = json::known_storage(&known);
    let from = |name: &str| {
        let all = value["resources"].as_array().unwrap().iter().filter(|one| one["name"] == name);
        all.map(|one| one["from"].as_str().unwrap().to_owned()).collect::<Vec<String>>()
    };
    assert_eq!(from("read-operations"), ["measured", "declared", "seen"], "what is known best comes first");
    assert_eq!(value["contradictions"].as_array().unwrap().len(), 1, "{:#}", value["contradictions"]);
}

#[test]
fn each_key_of_a_workload_is_documented() {
    let mut keys = BTreeSet::new();
    paths(&json::check(&full_check())["place"]["curve"], "", &mut keys);
    assert_eq!(keys, documented("workload"));
}

/// A run in which everything was asked and everything happened.
fn full_run() -> Value {
    let mut workload = Workload {
        name: "oltp".into(),
        sizes: vec![SizeShare { block_bytes: 8192, percent: 100 }],
        arrival: Arrival::Poisson { iops: 9.0 },
        limit: Limit { iops: Some(1.0), bytes_per_s: None },
        burst: Some(Burst { ios: 1, pause: Duration::from_secs(1) }),
        sync: Some(SyncEvery { writes: 1, how: SyncKind::Fsync }),
        content: Content::Zeros,
        verify: Some(Verify::Content),
        ..Workload::from(Shape::random_read(8192))
    };
    workload.access.base_bytes = 512;
    let latencies = Latencies(vec![(1, 1)]);
    let slice = Slice { read_latencies: latencies.clone(), write_latencies: latencies, ..Slice::default() };
    let mut one = Direction { count: 1, ..Direction::default() };
    one.errors.insert(5, 1);
    let bad = BadBlock { offset_bytes: 0, found: "all zeros".into() };
    let run = RunResult {
        replayed: true,
        tool: Some("fio-3.33".into()),
        read: one.clone(),
        write: one.clone(),
        sync: one,
        response: Some(Response::default()),
        verification: Some(Verification { blocks: 1, bad: 1, first_bad: vec![bad] }),
        pool: Some(Pool { threads: 2, outstanding: Some(8) }),
        series: vec![slice.clone()],
        cores: vec![CoreUse::default()],
        threads: vec![ThreadShare { series: vec![slice], ..ThreadShare::default() }],
        layout: Some(Layout::Span),
        members: vec![MemberShare { failed: 1, ..MemberShare::default() }],
        devices: sample::target().devices,
        ..RunResult::empty(workload, "/data/test".into())
    };
    serde_json::to_value(run).unwrap()
}

#[test]
fn each_key_of_a_run_is_documented_and_each_documented_key_is_there() {
    let (mut keys, run) = (BTreeSet::new(), full_run());
    paths(&run, "", &mut keys);
    assert!(keys.contains("devices[].model"), "{keys:?}");
    let shape = documented("workload");
    let asked = run["workload"].as_object().unwrap().keys();
    keys.extend(asked.filter(|key| !shape.contains(*key)).map(|key| format!("workload.{key}")));
    // Said once for reads: writes and syncs have the same keys, and a thread those of a row.
    let rows = documented("run\n");
    let said_of_reads = |key: &String| {
        let as_read = |other| key.contains(other) && rows.contains(&key.replacen(other, "read", 1));
        let inner = [
            "threads[].read.",
            "threads[].write.",
            "threads[].series[]",
            "members[].read.",
            "members[].write.",
            // A capability has the same.
            "devices[].",
        ];
        as_read("write")
            || as_read("sync")
            || key.contains(".errors.")
            || inner.iter().any(|it| key.starts_with(it))
    };
    keys.retain(|key| !said_of_reads(key));
    keys.extend(
        ["read.errors", "threads[].read", "threads[].series", "members[].read", "devices[]"]
            .map(String::from),
    );
    assert_eq!(keys, rows);
}

#[test]
fn each_key_that_a_run_adds_to_its_result_is_documented_and_each_documented_key_is_there() {
    let run = crate::run::open_loop();
    let found = findings::findings(&run, &findings::RunConditions::default());
    let (mut keys, mut stored) = (BTreeSet::new(), BTreeSet::new());
    paths(&json::run(&run, &found), "", &mut keys);
    paths(&serde_json::to_value(&run).unwrap(), "", &mut stored);
    let added: BTreeSet<String> = keys.difference(&stored).cloned().collect();
    assert_eq!(added, documented("meaning of a run"));
    // Serde's refusal of an unknown kind lists all there are.
    let kinds = serde_json::from_str::<findings::FindingKind>("\"?\"").unwrap_err().to_string();
    let kinds: Vec<&str> = kinds.split('`').skip(3).step_by(2).collect();
    assert!(kinds.len() > 20, "{kinds:?}");
    for kind in kinds {
        assert!(DOCUMENTS[0].contains(&format!("`{kind}`")), "{kind}");
    }
}

#[test]
fn a_percentile_without_enough_ios_is_marked() {
    let value = json::run(&crate::run::open_loop(), &[]);
    let stands: Vec<&Value> =
        value["percentiles"].as_array().unwrap().iter().filter(|each| each["stands"] == true).collect();
    assert_eq!(stands.last().unwrap()["name"], "99.99", "100,000 I/Os");
    assert_eq!(value["valid"], true);
}

#[test]
fn an_unknown_figure_is_a_reason_and_never_zero() {
    let value = json::check(&sample::restarted());
    assert_eq!(value["utilisation"], Value::Null);
    assert_eq!(value["files"][0]["read_latency_ns"]["unknown"], "restart");
    assert_eq!(value["moments"][0]["iops"]["unknown"], "restart");
    assert_eq!(value["verdict"], "cannot-say");
}

#[test]
fn times_are_there_for_programs_and_for_people() {
    let value = json::check(&sample::healthy());
    let fact = &value["evidence"][0];
    assert_eq!(fact["at"], sample::BEGIN_NS + 600_000_000_000);
    assert_eq!(fact["at_time"], "2026-11-21T09:10:00Z");
    assert_eq!(value["measured_at"], "2026-11-17T09:00:00Z");
}

#[test]
fn the_keys_of_a_trace_are_documented_and_stable() {
    let io = TracedIo {
        at_ns: 1,
        latency_ns: 2,
        pid: 3,
        tid: 4,
        comm: "postgres".into(),
        op: TracedOp::Write,
        file: "/data/16384".into(),
        offset_bytes: Some(8192),
        bytes: 8192,
        flags: IoFlags::DIRECT.with(IoFlags::URING),
        served: Some(Served::Device),
        n: 5,
    };
    let mut traced = report::TraceSummary::new("pid 3".into());
    traced.add(&io);
    let mut keys = BTreeSet::new();
    let line = json::traced_io(&io);
    assert_eq!(line["flags"], serde_json::json!(["uring", "direct"]));
    paths(&line, "", &mut keys);
    paths(&json::trace(&traced), "", &mut keys);
    assert_eq!(keys, documented("trace"));
}

/// What has a chapter of its own is one key.
fn without_chapters(keys: BTreeSet<String>, chapters: &[&str]) -> BTreeSet<String> {
    let of = |key: String| {
        let inside =
            |chapter: &&&str| key.strip_prefix(**chapter).is_some_and(|rest| rest.starts_with(['.', '[']));
        let chapter = chapters.iter().find(inside);
        chapter.map_or_else(|| key.clone(), |chapter| (*chapter).to_owned())
    };
    keys.into_iter().map(of).collect()
}

#[test]
fn each_key_of_a_sweep_is_documented_and_each_documented_key_is_there() {
    let mut sweeps = crate::runs_sample::layouts();
    let bound = |latency_ns| capability::Crossing { latency_ns, outstanding: 9.0, iops: 9.0 };
    sweeps[0].saturation.degraded = Some(bound(15e6));
    sweeps[0].saturation.critical = Some(bound(20e6));
    let compared = capability::SweepComparison::between(&sweeps[0].saturation, &sweeps[1].saturation);
    let mut keys = BTreeSet::new();
    paths(&json::sweeps(&sweeps, compared.as_ref()), "", &mut keys);
    let chapters = ["sweeps[].steps[].point", "sweeps[].steps[].members", "sweeps[].saturation.knee"];
    assert_eq!(without_absent(without_chapters(keys, &chapters)), documented("sweep"));
}
