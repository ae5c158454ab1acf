//! `headroom sources doctor` on real servers: its exit code says whether anything can be done.

use programs::Headroom;
use serde_json::Value;
use testbed::{MariadbServer, PostgresServer};

/// Exit code and what it said of the one source.
fn doctor(source: &str) -> (Option<i32>, Value) {
    let output = Headroom::new().run(&["sources", "doctor", "--source", source, "--json"]);
    let value: Value = serde_json::from_slice(&output.stdout).unwrap();
    (output.status.code(), value["sources"][0].clone())
}

#[test]
fn postgres_needs_action_only_while_something_is_off() {
    let Some(server) = PostgresServer::start(15) else { return };
    let source = format!("postgres:{}", server.connection());
    let (code, said) = doctor(&source);
    assert_eq!(code, Some(1), "{said}");
    assert!(said["notes"].to_string().contains("ALTER SYSTEM SET track_io_timing = on"), "{said}");
    server.set("track_io_timing", "on");
    server.set("track_wal_io_timing", "on");
    let (code, said) = doctor(&source);
    assert_eq!((code, &said["notes"]), (Some(0), &serde_json::json!([])), "{said}");
    assert!(said["remarks"][0].as_str().unwrap().contains("sampled"), "{said}");
    drop(server);
    assert_eq!(doctor(&source).0, Some(1), "nobody answers");
}

#[test]
fn mariadb_needs_action_only_while_something_is_off() {
    let Some(server) = MariadbServer::start(None, &["performance_schema=ON"]) else { return };
    let (code, said) = doctor(&server.url());
    assert_eq!((code, &said["notes"]), (Some(0), &serde_json::json!([])), "{said}");
    assert!(said["remarks"][0].as_str().unwrap().contains("redo log"), "{said}");
    server.sql("UPDATE performance_schema.setup_instruments SET TIMED='NO' WHERE NAME LIKE 'wait/io/file/%'");
    let (code, said) = doctor(&server.url());
    assert_eq!(code, Some(1), "{said}");
    assert!(said["notes"].to_string().contains("without timing"), "{said}");
}
