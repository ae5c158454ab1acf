//! The headroom that `check` reports against the factor by which the same load can be raised, for reads, which grow with
//! the work, and for commits, which share writes of the log. All rows: `scripts/bench headroom`.

use super::engines::Evicting;
use programs::Headroom;
use serde_json::Value;
use std::process::{Child, Stdio};
use testbed::{LoopDisk, PostgresServer};
use workload::CapKind;

const IOS_A_SECOND: u64 = 1_000;
/// Rows of nearly 8 KiB.
const ROWS: u32 = 16_384;
/// Of a paced load.
const CLIENTS: u32 = 32;
const READ: &str = "\\set id random(1, 16384)\nSELECT length(payload) FROM items WHERE id = :id;\n";
const COMMIT: &str = "INSERT INTO events (payload) VALUES (repeat('x', 100));\n";

/// A load, its rate while it is watched, and how far off the truth the planning figure may be on a busy machine.
struct Row {
    script: &'static str,
    text: &'static str,
    paced: u32,
    /// Number of clients beyond which more bring no more: commits that share a log write wait for it together.
    clients_flat_out: u32,
    times_too_high_max: f64,
}

const READS: Row =
    Row { script: "read", text: READ, paced: 150, clients_flat_out: 32, times_too_high_max: 1.5 };
const COMMITS: Row =
    Row { script: "commit", text: COMMIT, paced: 60, clients_flat_out: 256, times_too_high_max: 4.0 };

#[test]
fn the_headroom_of_reads_and_of_commits_comes_true() {
    let Some(mut disk) = LoopDisk::new(2 << 30) else { return };
    disk.format_and_mount();
    let Some(server) = PostgresServer::start_in(15, disk.mount_point()) else { return };
    let server = prepare(server);
    // No row is read from memory for long.
    let _evicting =
        Evicting::begin(&server.data_directory().join(server.sql("SELECT pg_relation_filepath('items')")));
    let mut capped = |kind| disk.throttle(kind, IOS_A_SECOND);
    if !(capped(CapKind::ReadIops) && capped(CapKind::WriteIops)) {
        return;
    }
    let headroom = Headroom::new();
    headroom.json(&["measure", "--quick", "--size", "128M", disk.mount_point().to_str().unwrap()]);
    let reads = compare(&server, &headroom, &READS);
    let commits = compare(&server, &headroom, &COMMITS);
    // All I/O would have to grow alike for that.
    let linear = 1.0 / commits["utilisation"].as_f64().unwrap();
    assert!(commits["headroom"].as_f64().unwrap() > 1.5 * linear, "{linear}: {commits:#}");
    let shared = evidence(&commits, "transactions for each write of the log");
    assert!((0.8..4.0).contains(&shared), "{shared}: {commits:#}");
    assert!(commits["headroom_reason"].is_string() && reads["headroom_high"].is_number());
}

fn prepare(server: PostgresServer) -> PostgresServer {
    let mut server = server;
    for (setting, value) in [("track_io_timing", "on"), ("track_wal_io_timing", "on"), ("autovacuum", "off")]
    {
        server.set(setting, value);
    }
    server.sql("ALTER SYSTEM SET shared_buffers = '16MB'");
    server.sql(&format!(
        "CREATE TABLE items (id int PRIMARY KEY, payload text);
         ALTER TABLE items ALTER payload SET STORAGE PLAIN;
         CREATE TABLE events (id bigserial PRIMARY KEY, payload text);
         INSERT INTO items SELECT g, repeat('x', 7900) FROM generate_series(1, {ROWS}) g;"
    ));
    server.sql("VACUUM (FREEZE, ANALYZE) items");
    server.restart();
    server
}

/// The answer of a paced load, held against the same load flat out.
fn compare(server: &PostgresServer, headroom: &Headroom, row: &Row) -> Value {
    let place = tempfile::tempdir().unwrap();
    let script = place.path().join(row.script);
    std::fs::write(&script, row.text).unwrap();
    let bench = |seconds: u32, clients: u32, more: &[String]| {
        let mut pgbench = server.pgbench_command();
        pgbench.args(["--no-vacuum", &format!("--client={clients}"), &format!("--time={seconds}")]);
        pgbench.arg(format!("--file={}", script.display())).args(more).arg("postgres");
        pgbench.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
    };
    server.sql("CHECKPOINT");
    let running = bench(30, CLIENTS, &[format!("--rate={}", row.paced)]);
    let source = format!("postgres:{}", server.connection());
    let answer = headroom.json(&["check", "--source", &source, "--duration", "7s"]);
    end(running);
    server.sql("CHECKPOINT");
    let truth = transactions_a_second(bench(5, row.clients_flat_out, &[])) / f64::from(row.paced);
    let committed = evidence(&answer, "transactions committed a second") / f64::from(row.paced);
    assert!((0.8..1.25).contains(&committed), "{committed} of those that were paced: {answer:#}");
    let figure = |name: &str| answer[name].as_f64().unwrap_or_else(|| panic!("no {name}: {answer:#}"));
    let (low, plan, high) = (figure("headroom_low"), figure("headroom"), figure("headroom_high"));
    println!("{}: {plan:.1} ({low:.1} to {high:.1}), in truth {truth:.1}", row.script);
    // A busy machine takes processors away from the one or from the other.
    assert!(low <= truth * 1.3 && high >= truth * 0.75, "{truth} in truth: {answer:#}");
    assert!(plan <= truth * row.times_too_high_max, "{truth} in truth: {answer:#}");
    answer
}

fn evidence(answer: &Value, what: &str) -> f64 {
    let all = answer["evidence"].as_array().unwrap();
    let fact =
        all.iter().find(|fact| fact["what"] == what).unwrap_or_else(|| panic!("no {what}: {answer:#}"));
    fact["value"].as_f64().unwrap()
}

fn end(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

fn transactions_a_second(pgbench: Child) -> f64 {
    let output = pgbench.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("tps = ")).unwrap_or_else(|| panic!("{text}"));
    line.split(' ').next().unwrap().parse().unwrap()
}
