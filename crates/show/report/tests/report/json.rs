//! JSON as programs read it. The `manual` crate compares its types with docs/reference/json.md.

use crate::known::known_storage;
use crate::sample;
use filestats::{IoFlags, Served, TracedIo, TracedOp};
use report::json;
use serde_json::{Value, json};

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
