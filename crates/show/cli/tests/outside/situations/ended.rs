//! Ended by kill -9 or Ctrl-C, and two at once.

use super::{Finished, Started, headroom, nothing_left, test_files_on_record, text};
use programs::Headroom;
use std::path::Path;
use std::time::{Duration, Instant};

const MIB: u64 = 1 << 20;

fn storage() -> tempfile::TempDir {
    // Not in /tmp, which may be memory.
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

fn measuring(ours: &Headroom, dir: &Path, size: &str) -> Started {
    Started::new(&mut ours.command(&["measure", "--quick", "--size", size, text(dir)]))
}

fn ctrl_c(run: Started) -> (Finished, Duration) {
    let asked = Instant::now();
    run.signal("-INT");
    let said = run.end();
    (said, asked.elapsed())
}

#[test]
fn killed_while_making_the_test_file_the_next_run_cleans() {
    let (ours, dir) = (Headroom::new(), storage());
    let file = dir.path().join("headroom.tmp/headroom-test");
    let run = measuring(&ours, dir.path(), "512M");
    run.wait_until("the test file", || file.exists());
    run.signal("-KILL");
    assert_eq!(run.end().code, None);
    assert!(file.exists());
    assert_eq!(test_files_on_record(&ours), 1, "on record before it is there");
    let said = headroom(&ours, &["storage", "clean", text(dir.path())]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    nothing_left(dir.path());
    assert_eq!(test_files_on_record(&ours), 0);
}

#[test]
fn killed_while_measuring_the_next_run_cleans_and_succeeds() {
    let (ours, dir) = (Headroom::new(), storage());
    let file = dir.path().join("headroom.tmp/headroom-test");
    let run = measuring(&ours, dir.path(), "64M");
    run.wait_until("the sweep", || file.metadata().is_ok_and(|file| file.len() == 64 * MIB));
    std::thread::sleep(Duration::from_millis(500));
    run.signal("-KILL");
    assert_eq!(run.end().code, None);
    assert!(file.exists());
    assert_eq!(test_files_on_record(&ours), 1);
    let said = measuring(&ours, dir.path(), "64M").end();
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    nothing_left(dir.path());
    assert_eq!(test_files_on_record(&ours), 0);

    // With that measurement kept, a check comes to its everyday workload at once.
    let check = |time: &'static str| ["check", "--duration", time, text(dir.path())];
    let run = Started::new(&mut ours.command(&check("20s")));
    let database = dir.path().join("headroom.tmp/headroom-everyday.db");
    run.wait_until("the everyday database", || database.exists());
    std::thread::sleep(Duration::from_secs(1));
    run.signal("-KILL");
    assert_eq!(run.end().code, None);
    assert!(database.exists());
    let arguments = check("5s");
    let said = headroom(&ours, &[&arguments[..], &["--fail-below", "1e9"]].concat());
    assert!(matches!(said.code, Some(1 | 3)) && !said.stdout.is_empty(), "{}", said.stderr);
    nothing_left(dir.path());
    assert_eq!(test_files_on_record(&ours), 0);
}

#[test]
fn ctrl_c_prints_what_is_known_and_leaves_nothing() {
    let (ours, dir) = (Headroom::new(), storage());
    let file = dir.path().join("headroom.tmp/headroom-test");
    let run = measuring(&ours, dir.path(), "64M");
    run.wait_until("the sweep", || file.metadata().is_ok_and(|file| file.len() == 64 * MIB));
    std::thread::sleep(Duration::from_secs(4));
    let (said, took) = ctrl_c(run);
    assert_eq!(said.code, Some(130), "{}", said.stderr);
    assert!(took < Duration::from_secs(2), "{took:?}");
    assert!(said.stdout.contains("IOPS"), "{}", said.stdout);
    assert!(said.stderr.contains("ended early"), "{}", said.stderr);
    nothing_left(dir.path());
    assert_eq!(test_files_on_record(&ours), 0);
    assert_eq!(ours.json(&["history"]), serde_json::json!([]), "it would hide a whole measurement");

    let run = measuring(&ours, dir.path(), "1G");
    run.wait_until("the test file", || file.exists());
    let (said, took) = ctrl_c(run);
    said.refused(130, &["interrupted while writing the test file", "it is removed again"]);
    assert!(took < Duration::from_secs(5), "{took:?}");
    nothing_left(dir.path());
    assert_eq!(test_files_on_record(&ours), 0);
}

#[test]
fn ctrl_c_after_the_first_answer_keeps_it_and_the_preliminary_measurement() {
    let (ours, dir) = (Headroom::new(), storage());
    let page = ours.history().with_file_name("first.html");
    let arguments =
        ["check", "--size", "64M", "--duration", "2s", "--json", "--html", text(&page), text(dir.path())];
    let run = Started::new(&mut ours.command(&arguments));
    // The page is the first answer's before it is the last one's.
    run.wait_until("the first answer", || page.metadata().is_ok_and(|page| page.len() > 0));
    assert!(std::fs::read_to_string(&page).unwrap().contains("(preliminary)"));
    std::thread::sleep(Duration::from_secs(1));
    let (said, took) = ctrl_c(run);
    assert_eq!(said.code, Some(130), "{}", said.stderr);
    assert!(took < Duration::from_secs(5), "{took:?}");
    let answer: serde_json::Value = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!(
        (&answer["preliminary"], &answer["conditions"]["effort"]),
        (&true.into(), &"preliminary".into())
    );
    assert_eq!(answer["first_answer"]["verdict"], answer["verdict"], "the same observation: {answer:#}");
    let after_s = answer["first_answer"]["after_s"].as_f64().unwrap();
    assert!(after_s < 60.0, "{after_s}");
    nothing_left(dir.path());
    assert_eq!(test_files_on_record(&ours), 0);
    let history = ours.json(&["history"]);
    let kept = history.as_array().unwrap().iter().find(|entry| entry["kind"] == "capability").unwrap();
    assert!(kept["summary"].as_str().unwrap().starts_with("preliminary: "), "{kept}");
}

#[test]
fn the_second_in_a_directory_is_told_who_is_there() {
    let (ours, dir) = (Headroom::new(), storage());
    let file = dir.path().join("headroom.tmp/headroom-test");
    let first = measuring(&ours, dir.path(), "64M");
    first.wait_until("the sweep", || file.metadata().is_ok_and(|file| file.len() == 64 * MIB));
    let who = format!("another headroom is measuring it (process {})", first.pid());
    for command in [&["measure"][..], &["check"], &["storage", "clean"]] {
        headroom(&ours, &[command, &[text(dir.path())]].concat())
            .refused(3, &[&who, "try: wait until it is done"]);
    }
    assert!(file.exists());
    std::thread::sleep(Duration::from_secs(3));
    let (said, _) = ctrl_c(first);
    assert!(said.stdout.contains("IOPS"), "the first went on: {}", said.stderr);
    nothing_left(dir.path());
}
