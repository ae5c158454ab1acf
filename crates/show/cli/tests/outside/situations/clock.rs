//! The wall clock is set, an hour forth and back all the time, while a load runs.

use super::{Started, nothing_left, test_files_on_record, text};
use crate::wall_clock;
use programs::Headroom;
use serde_json::Value;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

#[test]
fn a_clock_that_is_set_changes_nothing_but_when_a_run_is_said_to_have_begun() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let Some(library) = wall_clock::alternating(dir.path()) else { return };
    let ours = Headroom::new();
    let flags = ["--size", "64M", "--rate", "500/s", "--series", "500ms", "--warm-up", "500ms"];
    let command = [&["run", text(dir.path()), "--json", "--duration", "2s"], &flags[..]].concat();
    for run in 1..=2 {
        let said = Started::new(ours.command(&command).env("LD_PRELOAD", &library)).end();
        assert_eq!(said.code, Some(0), "{}", said.stderr);
        let answer: Value = serde_json::from_str(&said.stdout).unwrap();
        let result = &answer["phases"][0]["results"][0];
        assert_eq!(result["elapsed_ns"], 2_000_000_000_u64);
        let count = result["read"]["count"].as_u64().unwrap();
        assert!((950..=1050).contains(&count), "{count}");
        assert_eq!(result["series"].as_array().unwrap().len(), 4);
        let longest = result["response"]["read"]["sum_ns"].as_u64().unwrap();
        assert!(longest < 1_000_000_000_000, "no latency has an hour in it: {longest}");

        let started = UNIX_EPOCH + Duration::from_nanos(result["started_unix_ns"].as_u64().unwrap());
        let off = match SystemTime::now().duration_since(started) {
            Ok(behind) => behind,
            Err(ahead) => ahead.duration(),
        };
        assert!((3500..3700).contains(&off.as_secs()), "the clock was not the one that jumps: {off:?}");
        assert_eq!(ours.json(&["history"]).as_array().unwrap().len(), run);
        nothing_left(dir.path());
        assert_eq!(test_files_on_record(&ours), 0);
    }
}
