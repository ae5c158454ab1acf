//! `headroom watch` on a live program.

use programs::{Headroom, Scenario};
use serde_json::Value;
use std::collections::BTreeSet;

fn source(scenario_dir: &std::path::Path) -> String {
    format!("sqlite:{}", scenario_dir.join("shop.db").display())
}

#[test]
fn each_interval_is_a_line_of_json_that_adds_up() {
    let ours = Headroom::new();
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let _running = Scenario::prepare("commits", &dir.path().join("shop.db")).start("commits", 30);
    let watch = ["watch", "--source", &source(dir.path()), "--every", "1s", "--count", "3", "--json"];
    let output = ours.run(&watch);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 3);
    for line in &lines {
        let elapsed_ns = line["elapsed_ns"].as_u64().unwrap();
        assert!((900_000_000..1_500_000_000).contains(&elapsed_ns), "{elapsed_ns}");
        let files = line["files"].as_array().unwrap();
        let log = files.iter().find(|file| file["kind"] == "log").unwrap();
        let count = |key: &str| log[key].as_u64().unwrap();
        assert!(count("syncs") > 5 && count("writes") >= count("syncs"), "{log}");
        let outstanding = log["outstanding"].as_f64().unwrap();
        let stall_ns = (count("read_ns") + count("write_ns") + count("sync_ns")) as f64;
        assert!((outstanding - stall_ns / elapsed_ns as f64).abs() < 1e-9, "{log}");
        assert!(outstanding > 0.3 && outstanding < 1.1, "one client waits for one I/O after another: {log}");
        assert_eq!(line["devices"].as_array().unwrap().len(), 1, "{line}");
    }
}

#[test]
fn only_the_file_that_was_asked_for_is_shown_as_rows_too() {
    let ours = Headroom::new();
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let _running = Scenario::prepare("commits", &dir.path().join("shop.db")).start("commits", 30);
    let wal = dir.path().join("shop.db-wal");
    let source = source(dir.path());
    let watch = ["watch", "--source", &source, "--every", "500ms", "--count", "2", "--csv", "--file"];
    let output = ours.run(&[&watch[..], &[wal.to_str().unwrap()]].concat());
    let text = String::from_utf8(output.stdout).unwrap();
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(rows.len(), 3, "{text}");
    assert_eq!(rows[0].iter().collect::<BTreeSet<_>>().len(), rows[1].len(), "{text}");
    assert!(rows[1..].iter().all(|row| row[5] == wal.to_str().unwrap()), "{text}");
}

#[test]
fn a_program_that_ends_is_gone_and_the_watch_goes_on() {
    let ours = Headroom::new();
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let scenario = Scenario::prepare("commits", &dir.path().join("shop.db"));
    let running = scenario.start("commits", 30);
    let source = source(dir.path());
    let watch = ["watch", "--source", &source, "--every", "500ms", "--count", "5", "--json"];
    let watching = ours.command(&watch).stdout(std::process::Stdio::piped()).spawn().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(1200));
    drop(running);
    let output = watching.wait_with_output().unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 5);
    let unknown =
        |line: &Value| line["files"].as_array().unwrap().iter().any(|file| file["unknown"] == "gone");
    assert_eq!(lines.iter().filter(|line| unknown(line)).count(), 1, "{text}");
    assert_eq!(lines[4]["files"], serde_json::json!([]), "nothing is made up");
}

#[test]
fn once_is_a_screen_of_text() {
    let ours = Headroom::new();
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let _running = Scenario::prepare("commits", &dir.path().join("shop.db")).start("commits", 30);
    let output = ours.run(&["watch", "--source", &source(dir.path()), "--once", "--every", "1s"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("syncs/s") && text.contains("shop.db-wal") && text.contains("/dev/"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 132), "{text}");
}

/// Lines of `watch --json` on a file while fio reads it.
#[test]
fn any_process_is_seen_by_the_kernel_with_exact_counts() {
    if !std::fs::read_to_string("/proc/self/status").unwrap().contains("CapEff:\t000001ff") {
        println!("skipped: counting any process's I/O needs root");
        return;
    }
    let ours = Headroom::new();
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let file = dir.path().join("data");
    std::fs::write(&file, vec![7; 16 << 20]).unwrap();
    let file = file.to_str().unwrap();
    let watch = ["watch", "--source", "process:", "--file", file, "--every", "1s", "--count", "5", "--json"];
    let watching = ours.command(&watch).stdout(std::process::Stdio::piped()).spawn().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(2500));
    let fio = ["--name=x", "--rw=randrw", "--bs=4k", "--size=16m", "--number_ios=1500", "--ioengine=psync"];
    let output = std::process::Command::new("fio")
        .args(fio)
        .args(["--direct=1", "--fsync=25", "--output-format=json", "--filename", file])
        .output()
        .unwrap();
    let fio: Value = serde_json::from_slice(&output.stdout).unwrap();
    let job = &fio["jobs"][0];
    let output = watching.wait_with_output().unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let sum = |key: &str| -> u64 {
        let files = lines.iter().flat_map(|line| line["files"].as_array().unwrap());
        files.filter(|each| each["path"] == file).filter_map(|each| each[key].as_u64()).sum()
    };
    assert_eq!(sum("reads"), job["read"]["total_ios"].as_u64().unwrap(), "{text}");
    assert_eq!(sum("read_bytes"), job["read"]["io_bytes"].as_u64().unwrap(), "{text}");
    assert_eq!(sum("writes"), job["write"]["total_ios"].as_u64().unwrap(), "{text}");
    assert_eq!(sum("write_bytes"), job["write"]["io_bytes"].as_u64().unwrap(), "{text}");
    assert_eq!(sum("syncs"), job["sync"]["total_ios"].as_u64().unwrap(), "{text}");
}
