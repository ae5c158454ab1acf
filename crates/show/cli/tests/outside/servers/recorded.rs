//! `headroom agent --record-only` of a server and of its processes, through its rebuilds and its end; `headroom history intervals` of that.

use history::{CaptureFilter, CaptureId, History};
use programs::Headroom;
use serde_json::Value;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};
use testbed::PostgresServer;

struct Record(Child);

impl Drop for Record {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Captures of a kind of source, in their order.
fn captures(headroom: &Headroom, source: &str) -> Vec<CaptureId> {
    let Ok(history) = History::open(&headroom.history()) else { return Vec::new() };
    let filter = CaptureFilter { source: Some(source.into()), ..CaptureFilter::default() };
    let mut captures = history.captures(&filter).unwrap();
    captures.reverse();
    captures.iter().map(|capture| capture.id).collect()
}

/// The number of a capture that was begun after now.
fn next(headroom: &Headroom, source: &str) -> CaptureId {
    let (had, began) = (captures(headroom, source).len(), Instant::now());
    loop {
        if let Some(capture) = captures(headroom, source).get(had + 1) {
            return *capture;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "no captures of {source}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn rows(headroom: &Headroom, from: CaptureId, to: CaptureId, file: &str) -> Vec<Value> {
    let (from, to) = (from.0.to_string(), to.0.to_string());
    let answer = headroom.json(&["history", "intervals", &from, &to, "--file", file]);
    answer["intervals"].as_array().unwrap_or_else(|| panic!("{answer:#}")).clone()
}

fn written(row: &Value) -> Option<u64> {
    row["interval"]["known"]["counters"]["write"]["bytes"].as_u64()
}

#[test]
fn intervals_call_files_by_their_relations_and_a_server_that_dies_leaves_no_wrong_one() {
    let Some(mut server) = PostgresServer::start(15) else { return };
    if !std::fs::read_to_string("/proc/self/status").unwrap().contains("CapEff:\t000001ff") {
        println!("skipped: counting any process's I/O needs root");
        return;
    }
    server.set("autovacuum", "off");
    server.sql("CREATE TABLE orders AS SELECT g AS id, repeat('x', 100) FROM generate_series(1, 50000) g");
    server.sql("CREATE INDEX orders_id ON orders (id)");
    server.sql("CREATE DATABASE doomed");
    let headroom = Headroom::new();
    let postgres = format!("postgres:{}", server.connection());
    let processes = format!("process:{}", server.processes()[0]);
    let mut record = headroom.command(&[
        "agent",
        "--record-only",
        "--every",
        "1s",
        "--source",
        &postgres,
        "--source",
        &processes,
    ]);
    let _record = Record(record.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());

    // A rebuild: its new file, by the index's name.
    let before = next(&headroom, "process");
    server.sql("REINDEX INDEX orders_id");
    let index_bytes: u64 = server.sql("SELECT pg_relation_size('orders_id')").parse().unwrap();
    let new_file = server.data_directory().join(server.sql("SELECT pg_relation_filepath('orders_id')"));
    let after = next(&headroom, "process");
    let index = rows(&headroom, before, after, "postgres.public.orders_id");
    let by_backend = index.iter().filter(|row| row["meaning"]["cache"] == "included");
    let of_new = by_backend.filter(|row| row["file"]["path"] == new_file.to_str().unwrap());
    assert!(of_new.filter_map(written).sum::<u64>() >= index_bytes, "{index:#?}");

    // In one interval: statistics are reset, a database is dropped, the server is killed and started again.
    let server_before = *captures(&headroom, "postgres").last().unwrap();
    let doomed = server.sql("SELECT oid FROM pg_database WHERE datname = 'doomed'");
    server.sql("SELECT pg_stat_reset(), pg_stat_reset_shared('bgwriter')");
    let server_reset = next(&headroom, "postgres");
    server.sql("CHECKPOINT");
    server.sql("DROP DATABASE doomed");
    let server_dropped = next(&headroom, "postgres");
    server.kill();
    server.launch();
    let server_after = next(&headroom, "postgres");
    let end = *captures(&headroom, "process").last().unwrap();
    let reason = |from, to, file: &str| -> Vec<String> {
        let rows = rows(&headroom, from, to, file);
        rows.iter().map(|row| row["interval"]["unknown"].as_str().unwrap_or("known").to_owned()).collect()
    };
    assert_eq!(reason(server_before, server_reset, "checkpointer"), ["stats-reset"]);
    assert_eq!(reason(server_before, server_reset, "temp files/postgres"), ["stats-reset"]);
    assert_eq!(reason(server_before, server_reset, "wal"), ["known"]);
    assert_eq!(reason(server_reset, server_dropped, "temp files/doomed"), ["gone"]);
    assert_eq!(reason(server_reset, server_dropped, "checkpointer"), ["known"]);
    let restarted = reason(server_dropped, server_after, "");
    assert!(restarted.iter().all(|reason| reason == "restart"), "{restarted:?}");

    // The kernel's counts of the processes that were stand: what they did is done, and no number is made up.
    for file in ["postgres.public.orders", &format!("base/{doomed}/"), "pg_wal"] {
        for row in rows(&headroom, after, end, file) {
            let interval = &row["interval"];
            let whole = interval["known"]["counters"].is_object();
            assert!(whole != interval["unknown"].is_string(), "{row:#}");
            assert_ne!(interval["unknown"], "counter-fell", "{row:#}");
        }
    }
    assert!(!rows(&headroom, before, end, "pg_wal").is_empty(), "its log was written");
}
