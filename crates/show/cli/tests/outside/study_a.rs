//! The study that docs/measurements/study-a.md repeats: an index rebuild shows in its interval, and not in the next.

use programs::built;
use serde_json::Value;
use std::process::Command;

/// The script of the documentation, as its readers run it.
fn script() -> &'static str {
    let page = include_str!("../../../../../docs/measurements/study-a.md");
    let (_, rest) = page.split_once("```sh run\n").expect("a block that runs");
    rest.split_once("```").expect("its end").0
}

#[test]
fn an_index_rebuild_shows_in_its_interval_and_not_in_the_next() {
    if Command::new("sqlite3").arg("-version").output().is_err() {
        eprintln!("skipped: no sqlite3 shell here");
        return;
    }
    // Not in /tmp, which may be memory.
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = format!("{}:{}", built().display(), std::env::var("PATH").unwrap());
    let command = |program: &str, arguments: &[&str]| {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(place.path()).env("PATH", &path);
        command.env("XDG_DATA_HOME", place.path().join("data"));
        command.env("HEADROOM_EXTENSION", built().join("libheadroom_sqlite.so"));
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    };
    command("bash", &["-euo", "pipefail", "-c", script()]);

    let headroom = built().join("headroom");
    let interval = |from: &str, to: &str, file: &str| -> Value {
        let arguments = ["history", "intervals", from, to, "--file", file, "--json"];
        let answer: Value = serde_json::from_slice(&command(headroom.to_str().unwrap(), &arguments)).unwrap();
        let rows = answer["intervals"].as_array().unwrap().clone();
        rows.into_iter().find(|row| row["file"]["path"].as_str().unwrap().ends_with(file)).unwrap()
    };
    let count = |row: &Value, operation: &str| {
        row["interval"]["known"]["counters"][operation]["count"].as_f64().expect("a known interval")
    };
    let a_second = |row: &Value, operation: &str| {
        count(row, operation) / (row["interval"]["known"]["elapsed_ns"].as_f64().unwrap() / 1e9)
    };
    let (start, normal, rebuilt, again) = ("start", "normal", "rebuilt", "normal-again");

    let data = |from, to| a_second(&interval(from, to, "shop.db"), "read");
    assert!(data(normal, rebuilt) > 10.0 * data(start, normal), "the rebuild reads all of the table");
    assert!(data(normal, rebuilt) > 10.0 * data(rebuilt, again), "and is over after its interval");
    let log = |from, to| interval(from, to, "shop.db-wal");
    let (before, rebuild, after) = (log(start, normal), log(normal, rebuilt), log(rebuilt, again));
    assert!(a_second(&rebuild, "write") > 10.0 * a_second(&before, "write"), "{rebuild:#}");
    // The normal workload commits sixty times, and each is a sync of the log.
    for normal in [&before, &after] {
        assert!((59.0..66.0).contains(&count(normal, "sync")), "{normal:#}");
    }
    let ratio = count(&after, "write") / count(&before, "write");
    assert!((0.5..2.0).contains(&ratio), "normal again: {ratio}");
    assert!(count(&rebuild, "sync") <= 4.0, "{rebuild:#}");

    // The cumulative counters go on telling of the rebuild.
    let captures: Value =
        serde_json::from_slice(&command(headroom.to_str().unwrap(), &["history", "captures", "--json"]))
            .unwrap();
    let rows = captures.as_array().unwrap();
    let log = |id: u64| {
        let of_log = |row: &&Value| {
            row["capture_id"] == id && row["physical_name"].as_str().unwrap().ends_with("shop.db-wal")
        };
        rows.iter().find(of_log).unwrap()
    };
    let writes = |id| log(id)["writes"].as_f64().unwrap();
    assert!(writes(4) > 3.0 * writes(2), "still raised at the end: {} {}", writes(2), writes(4));
    assert!(writes(4) > 5.0 * count(&after, "write"), "most of them are no longer happening");

    // Every column of the study's table, and which of them SQLite lacks.
    let row = log(4).as_object().unwrap();
    let lacking: Vec<&str> = row.iter().filter(|(_, v)| v.is_null()).map(|(k, _)| k.as_str()).collect();
    assert_eq!((row.len(), lacking), (23, vec!["database_id", "file_handle"]));
    let csv = std::fs::read_to_string(place.path().join("captures.csv")).unwrap();
    assert!(csv.lines().next().unwrap().ends_with("size_on_disk_mb,file_handle,physical_name"), "{csv}");
    assert_eq!(csv.lines().count(), 1 + rows.len());
}
