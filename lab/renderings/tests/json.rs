//! JSON of the experiments, compared with the laboratory's JSON.md.

use experiments::{
    CommitResult, CommitStudy, Durability, EmulatedDisk, Footprint, IoFigures, LeftOut, ObjectFootprint,
    RecoverResult, RecoverStudy, RecoveryIo,
};
use filestats::Figure;
use renderings::json;
use serde_json::Value;
use std::collections::BTreeSet;

/// The laboratory's document.
const DOCUMENT: &str = include_str!("../../cli/JSON.md");

/// Every path of a value: `files[].kind`. What holds further keys is not a path of its own.
fn paths(value: &Value, prefix: &str, into: &mut BTreeSet<String>) {
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
fn documented(chapter: &str) -> BTreeSet<String> {
    let mut chapters = DOCUMENT.split("\n## ");
    let text = chapters.find(|part| part.starts_with(chapter)).expect("the chapter is there");
    text.lines()
        .filter_map(|line| line.strip_prefix("| `"))
        .filter_map(|line| line.split('`').next())
        .map(ToOwned::to_owned)
        .collect()
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
