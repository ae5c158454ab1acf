//! Output for programs. The types are compared with docs/reference/json.md by the `manual` crate, those of the laboratory with
//! its JSON.md here.

use crate::known::known_storage;
use crate::sample;
use experiments::{
    CommitResult, CommitStudy, Durability, EmulatedDisk, Footprint, IoFigures, LeftOut, ObjectFootprint,
    RecoverResult, RecoverStudy, RecoveryIo,
};
use filestats::{Figure, IoFlags, Served, TracedIo, TracedOp};
use report::json;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The laboratory's document.
const DOCUMENT: &str = include_str!("../../../../lab/cli/JSON.md");

/// Every path of a value: `files[].kind`. A value with further keys is not a path of its own.
pub fn paths(value: &Value, prefix: &str, into: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) if fields.len() == 1 && fields.contains_key("unknown") => {
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
    let mut chapters = DOCUMENT.split("\n## ");
    let text = chapters.find(|part| part.starts_with(chapter)).expect("the chapter is there");
    text.lines()
        .filter_map(|line| line.strip_prefix("| `"))
        .filter_map(|line| line.split('`').next())
        .map(ToOwned::to_owned)
        .collect()
}

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
fn what_is_known_best_of_a_storage_comes_first() {
    let value = json::known_storage(&known_storage());
    let from = |name: &str| {
        let all = value["resources"].as_array().unwrap().iter().filter(|one| one["name"] == name);
        all.map(|one| one["from"].as_str().unwrap().to_owned()).collect::<Vec<String>>()
    };
    assert_eq!(from("read-operations"), ["measured", "declared", "seen"], "what is known best comes first");
    assert_eq!(value["contradictions"].as_array().unwrap().len(), 1, "{:#}", value["contradictions"]);
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
fn a_traced_io_has_the_words_of_its_flags() {
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
    let line = json::traced_io(&io);
    assert_eq!(line["flags"], serde_json::json!(["uring", "direct"]));
    assert_eq!(line["served_by"], "device");
}
