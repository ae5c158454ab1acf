//! `headroom record` as a service would run it.

use crate::programs::{Headroom, Scenario};
use filestats::{Interval, Rules, Snapshot, intervals};
use history::{CaptureFilter, History};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

fn start(ours: &Headroom, arguments: &[&str]) -> Child {
    let mut command = ours.command(arguments);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn kept(path: &Path) -> Vec<Snapshot> {
    let Ok(history) = History::open(path) else { return Vec::new() };
    let mut captures = history.captures(&CaptureFilter::default()).unwrap();
    captures.reverse();
    captures.iter().map(|capture| history.snapshot(capture.id).unwrap()).collect()
}

#[track_caller]
fn wait_for_captures(path: &Path, count: usize) {
    let began = Instant::now();
    while !path.exists() || kept(path).len() < count {
        assert!(began.elapsed() < Duration::from_secs(60), "{count} captures never came");
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn end(child: Child, signal: &str) -> std::process::Output {
    let pid = child.id().to_string();
    assert!(std::process::Command::new("kill").args([signal, &pid]).status().unwrap().success());
    child.wait_with_output().unwrap()
}

#[test]
fn killed_and_started_again_it_loses_nothing_that_was_kept() {
    let ours = Headroom::new();
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let database = dir.path().join("shop.db");
    let _running = Scenario::prepare("commits", &database).start("commits", 60);
    let source = format!("sqlite:{}", database.display());
    let record = ["record", "--source", &source, "--every", "1s"];
    let first = start(&ours, &record);
    wait_for_captures(&ours.history(), 3);
    end(first, "-KILL");
    let before = kept(&ours.history());
    let second = start(&ours, &record);
    wait_for_captures(&ours.history(), before.len() + 2);
    let ended = end(second, "-TERM");
    assert_eq!(ended.status.code(), Some(130), "{}", String::from_utf8_lossy(&ended.stderr));
    let after = kept(&ours.history());
    assert_eq!(after[..before.len()], before[..]);
    // The database's program went on: one epoch, every interval known, and the parts make the whole.
    let written = |then: &Snapshot, now: &Snapshot| -> u64 {
        let rows = intervals(then, now, Rules::default());
        let log = rows.iter().find(|row| row.file.path.ends_with("-wal")).unwrap();
        match &log.interval {
            Interval::Known(delta) => delta.counters.write.bytes,
            Interval::Unknown(reason) => panic!("{reason}"),
        }
    };
    let parts: u64 = after.windows(2).map(|pair| written(&pair[0], &pair[1])).sum();
    assert_eq!(parts, written(&after[0], after.last().unwrap()));
    assert!(parts > 0);
}

#[test]
fn a_program_that_is_not_there_yet_is_a_gap_that_ends() {
    let ours = Headroom::new();
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let database = dir.path().join("shop.db");
    let scenario = Scenario::prepare("commits", &database);
    let sources = dir.path().join("sources");
    std::fs::write(&sources, format!("# the shop\nsqlite:{}\n", database.display())).unwrap();
    let record = start(&ours, &["record", "--sources", sources.to_str().unwrap(), "--every", "1s"]);
    std::thread::sleep(Duration::from_secs(2));
    let _running = scenario.start("commits", 60);
    wait_for_captures(&ours.history(), 2);
    let ended = end(record, "-TERM");
    let log = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert!(log.contains("no running program publishes counters for it; next try in"), "{log}");
    assert!(log.contains("recording again after"), "{log}");
    let gaps = History::open(&ours.history()).unwrap().gaps().unwrap();
    assert_eq!(gaps.len(), 1);
    assert!(gaps[0].until_unix_ns.is_some() && gaps[0].reason.contains("no running program"));
}
