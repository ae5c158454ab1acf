//! `headroom compare` from outside: files, the history, a stated figure, and real storage in turn.

use programs::Headroom;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use testbed::LoopDisk;
use workload::{CapKind, Latencies, LatencyHistogram, PhaseResult, RunResult, Shape, Slice, Workload};

/// Twenty seconds of reads at a rate that wavers by a few percent, as `headroom run --json` prints them.
fn session(iops: u64) -> Value {
    let mut run = RunResult::empty(Workload::from(Shape::random_read(8192)), "/data".into());
    run.started_unix_ns = 1_772_500_000_000_000_000;
    for second in 1..=20_u64 {
        let count = iops + iops / 50 * (second * 7 % 5) / 4;
        let mut latencies = LatencyHistogram::new();
        latencies.record_n(1_000_000_000 / iops * 8, count - count / 50);
        latencies.record_n(1_000_000_000 / iops * 20 + second * 7 % 5, count / 50);
        let mut slice = Slice { end_ns: second * 1_000_000_000, ..Slice::default() };
        for (ns, n) in latencies.filled() {
            slice.read.record_n(ns, 8192, n);
        }
        slice.read_latencies = Latencies::from(&latencies);
        run.read.count += slice.read.count;
        run.read.bytes += slice.read.bytes;
        run.read.latency.merge(&latencies);
        run.series.push(slice);
    }
    run.elapsed_ns = 20_000_000_000;
    serde_json::json!({"phases": [PhaseResult { name: String::new(), results: vec![run] }]})
}

fn write(dir: &Path, name: &str, text: &str) -> PathBuf {
    let path = dir.join(name);
    fs::write(&path, text).unwrap();
    path
}

/// The result of `headroom compare` on two files: its exit code, stdout and stderr.
fn compare(headroom: &Headroom, arguments: &[&str]) -> (i32, String, String) {
    let output = headroom.run(&[&["compare"], arguments].concat());
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn a_slower_file_is_told_in_words_and_by_the_exit_code() {
    let (headroom, dir) = (Headroom::new(), tempfile::tempdir().unwrap());
    let before = write(dir.path(), "before.json", &session(10_000).to_string());
    let after = write(dir.path(), "after.json", &session(8_000).to_string());
    let (before, after) = (before.to_str().unwrap(), after.to_str().unwrap());

    let (code, said, _) = compare(&headroom, &[before, after]);
    assert_eq!(code, 1, "{said}");
    assert!(said.starts_with("random 8 KiB reads: 20 % fewer IOPS than"), "{said}");
    assert!(said.contains("beyond noise (95 %:") && said.contains("longer p99 of reads"), "{said}");

    let (code, said, _) = compare(&headroom, &[after, before]);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("25 % more IOPS than") && said.contains("shorter p99 of reads"), "{said}");

    let (code, said, _) = compare(&headroom, &[before, before]);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("no difference in IOPS and p99 of reads that matters"), "{said}");

    let value = headroom.json(&["compare", before, after]);
    assert_eq!(value["verdict"], "slower");
    let iops = &value["comparisons"][0]["rows"][0];
    assert_eq!((iops["figure"].as_str(), iops["headline"].as_bool()), (Some("IOPS"), Some(true)));
    let difference = &iops["difference"];
    let (low, high) =
        (difference["percent_low"].as_f64().unwrap(), difference["percent_high"].as_f64().unwrap());
    assert!(low < -20.0 && -20.0 < high && high < -15.0, "{difference}");
}

#[test]
fn a_stated_figure_is_held_against_a_run() {
    let (headroom, dir) = (Headroom::new(), tempfile::tempdir().unwrap());
    let run = write(dir.path(), "run.json", &session(10_000).to_string());
    let run = run.to_str().unwrap();
    let (code, said, _) = compare(&headroom, &[run, "--stated", "iops=100k"]);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("90 % fewer IOPS than stated"), "{said}");
    assert_eq!(compare(&headroom, &[run, "--stated", "50 MiB/s, p99 5ms"]).0, 0);
    let (code, _, why) = compare(&headroom, &[run, "--stated", "fast"]);
    assert_eq!(code, 2);
    assert!(why.contains("'fast' states no figure"), "{why}");
}

#[test]
fn a_malformed_file_is_refused_with_line_and_reason() {
    let (headroom, dir) = (Headroom::new(), tempfile::tempdir().unwrap());
    let good = serde_json::to_string_pretty(&session(10_000)).unwrap();
    let line_of = |part: &str| good.lines().position(|line| line.contains(part)).unwrap() + 1;
    let reference = write(dir.path(), "good.json", &good);
    let cases = [
        (
            "cut.json",
            good[..good.len() / 2].to_owned(),
            format!("line {}: EOF", good[..good.len() / 2].lines().count()),
        ),
        (
            "word.json",
            good.replacen("\"elapsed_ns\": 20000000000", "\"elapsed_ns\": \"long\"", 1),
            format!("line {}: invalid type: string \"long\"", line_of("\"elapsed_ns\": 20000000000")),
        ),
        ("empty.json", "{\"phases\": []}".into(), "it has no results".into()),
        ("other.json", "{\"name\":\n \"fio\"}".into(), "line 2: missing field `workload`".into()),
        ("number.json", "12".into(), "line 1: invalid type: integer `12`".into()),
    ];
    for (name, text, wanted) in cases {
        let path = write(dir.path(), name, &text);
        let (code, _, why) = compare(&headroom, &[reference.to_str().unwrap(), path.to_str().unwrap()]);
        assert_eq!(code, 3, "{name}: {why}");
        assert!(why.contains(name) && why.contains(&wanted), "{name}: wanted {wanted:?}, got {why}");
    }
    let (code, _, why) = compare(&headroom, &["nonsense", "12"]);
    assert_eq!(code, 2);
    assert!(why.contains("'nonsense' is nothing that can be compared"), "{why}");
}

#[test]
fn results_of_other_workloads_are_compared_with_a_warning_that_names_them() {
    let (headroom, dir) = (Headroom::new(), tempfile::tempdir().unwrap());
    let mut other = session(10_000);
    let run = &mut other["phases"][0]["results"][0];
    run["workload"]["block_bytes"] = 4096.into();
    run["target"] = "/old".into();
    let a = write(dir.path(), "a.json", &session(10_000).to_string());
    let b = write(dir.path(), "b.json", &other.to_string());
    let (_, said, _) = compare(&headroom, &[a.to_str().unwrap(), b.to_str().unwrap()]);
    assert!(said.contains("A and B differ in:"), "{said}");
    let differs =
        |what: &str| said.lines().find(|line| line.trim_start().starts_with(what)).unwrap_or_default();
    assert!(differs("block size").contains("8 KiB") && differs("block size").contains("4 KiB"), "{said}");
    assert!(differs("target").contains("/old"), "{said}");
}

/// Reads of two directories in turn, with as many outstanding I/Os in both.
fn interleave(headroom: &Headroom, a: &Path, b: &Path, how: &str) -> Value {
    let flags = |dir: &Path| format!("{} {how}", dir.display());
    headroom.json(&["compare", "--interleave", "--rounds", "4", "--margin", "5%", &flags(a), &flags(b)])
}

#[test]
fn the_same_on_this_disk_in_turn_does_not_alarm() {
    let headroom = Headroom::new();
    let dir = tempfile::tempdir_in("/var/tmp").unwrap();
    let said = interleave(
        &headroom,
        dir.path(),
        dir.path(),
        "--size 64M --outstanding 4 --duration 1s --warm-up 300ms",
    );
    assert!(!matches!(said["verdict"].as_str().unwrap(), "slower" | "mixed"), "{said:#}");
    let compared = &said["comparisons"][0];
    assert_eq!(compared["method"], "pairs");
    assert!(compared["runs_a"].as_u64().unwrap() >= 4, "{said:#}");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "nothing is left behind");
    // Every run is kept, and can be compared again.
    assert_eq!(compare(&headroom, &["--set-baseline", "run:1,run:4"]).0, 0);
    let (code, again, why) = compare(&headroom, &["baseline", "2,3"]);
    assert!(code != 2 && again.contains("the baseline"), "{again}{why}");
}

#[test]
fn a_disk_at_80_percent_of_the_other_is_found_slower() {
    let Some(mut fast) = LoopDisk::new(256 << 20) else { return };
    let Some(mut slow) = LoopDisk::new(256 << 20) else { return };
    fast.format_and_mount();
    slow.format_and_mount();
    if !fast.throttle(CapKind::ReadIops, 1000) || !slow.throttle(CapKind::ReadIops, 800) {
        return;
    }
    let how = "--size 64M --outstanding 4 --duration 1s --warm-up 500ms";
    let said = interleave(&Headroom::new(), fast.mount_point(), slow.mount_point(), how);
    assert!(matches!(said["verdict"].as_str().unwrap(), "slower" | "mixed"), "{said:#}");
    let iops = &said["comparisons"][0]["rows"][0];
    assert_eq!(iops["verdict"], "slower", "{said:#}");
    let percent = iops["percent"].as_f64().unwrap();
    assert!((-24.0..-16.0).contains(&percent), "20 % less, {percent:.1} % found: {said:#}");
}
