//! Several processes at one history, and one that is killed. Each test starts its own binary again with
//! [`ROLE`] set; the copy then is the writer.

use filestats::*;
use history::{CaptureFilter, CaptureId, History};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

/// In a writer's environment: the history to write to.
const HISTORY: &str = "HEADROOM_TEST_HISTORY";
/// In a writer's environment: the name of its source, and how many captures to save.
const ROLE: &str = "HEADROOM_TEST_ROLE";
const FILES: u64 = 40;

/// The n-th snapshot of a writer: every file has the counter n, but one in four stays idle.
fn snapshot(source: &str, n: u64) -> Snapshot {
    let sample = |file: u64| Sample {
        file: FileIdentity {
            instance: source.into(),
            database: None,
            database_id: None,
            file_id: file.to_string(),
            kind: FileKind::Data,
            path: format!("/data/{file}"),
            drive: None,
            handle: None,
            object: None,
        }
        .into(),
        epoch: Epoch::for_run("1"),
        meaning: Meaning::REQUESTS,
        counters: Counters {
            read: Ops::timed(if file.is_multiple_of(4) { 1 } else { n }, n / 100, 0),
            ..Counters::ZERO
        },
        size_bytes: Figure::Known(0),
        latencies: None,
    };
    Snapshot {
        source: source.into(),
        taken_unix_ns: n,
        clock_ns: n,
        samples: (0..FILES).map(sample).collect(),
        complete: None,
        waits: vec![],
        notes: vec![],
    }
}

fn writer(test: &str, history: &Path, source: &str, captures: u64) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("processes::{test}"), "--nocapture"])
        .env(HISTORY, history)
        .env(ROLE, format!("{source} {captures}"))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// The work of a started copy; `false` in the test itself.
fn write_if_started_to() -> bool {
    let Ok(role) = std::env::var(ROLE) else { return false };
    let (source, captures) = role.rsplit_once(' ').unwrap();
    let mut history = History::open(Path::new(&std::env::var(HISTORY).unwrap())).unwrap();
    for n in 1..=captures.parse().unwrap() {
        let id = history.save_snapshot(&snapshot(source, n), None).unwrap();
        println!("\nsaved {id} {n}");
    }
    true
}

/// The captures a writer said it had saved, as (id, n).
fn saved(line: &str) -> Option<(CaptureId, u64)> {
    let (id, n) = line.strip_prefix("saved ")?.split_once(' ')?;
    Some((CaptureId(id.parse().ok()?), n.parse().ok()?))
}

fn assert_whole(history: &History, source: &str) -> usize {
    let filter = CaptureFilter { source: Some(source.into()), ..CaptureFilter::default() };
    let captures = history.captures(&filter).unwrap();
    for capture in &captures {
        let read = history.snapshot(capture.id).unwrap();
        // Not assert_eq: forty files twice are no message.
        assert!(read == snapshot(source, capture.taken_unix_ns), "capture {} is torn", capture.id);
    }
    captures.len()
}

fn integrity(path: &Path) -> String {
    let connection = rusqlite::Connection::open(path).unwrap();
    connection.pragma_query_value(None, "integrity_check", |row| row.get(0)).unwrap()
}

#[test]
fn a_writer_that_is_killed_loses_nothing_it_had_saved() {
    const KILLS: u32 = 24;
    const BEFORE_KILL: u32 = 20;
    if write_if_started_to() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("history.db");
    let mut reported = 0;
    for kill in 0..KILLS {
        let test = "a_writer_that_is_killed_loses_nothing_it_had_saved";
        let mut child = writer(test, &path, &format!("writer {kill}"), u64::MAX);
        let output = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let mut lines = output.skip_while(|line| saved(line).is_none());
        let ahead = lines.next().and_then(|line| saved(&line)).expect("the writer saves");
        let started = Instant::now();
        let first: Vec<_> =
            lines.by_ref().filter_map(|line| saved(&line)).take(BEFORE_KILL as usize).collect();
        assert_eq!(first.len(), BEFORE_KILL as usize, "the writer ended by itself");
        // Each kill falls on another part of a save: the report of one is the start of the next.
        let last_line = Instant::now();
        let save = (last_line - started) / BEFORE_KILL;
        while last_line.elapsed() < save * kill / KILLS {
            std::hint::spin_loop();
        }
        // SIGKILL: nothing is flushed, nothing is closed.
        child.kill().unwrap();
        child.wait().unwrap();
        let all: Vec<_> =
            [ahead].into_iter().chain(first).chain(lines.filter_map(|line| saved(&line))).collect();
        let history = History::open(&path).unwrap();
        for (id, n) in &all {
            assert_eq!(history.capture(*id).unwrap().taken_unix_ns, *n);
        }
        let kept = assert_whole(&history, &format!("writer {kill}"));
        assert!((all.len()..=all.len() + 1).contains(&kept), "{kept} kept, {} reported", all.len());
        reported += all.len();
        drop(history);
        assert_eq!(integrity(&path), "ok");
    }
    assert!(reported >= (KILLS * BEFORE_KILL) as usize);
}

#[test]
fn two_writers_at_once_lose_nothing() {
    if write_if_started_to() {
        return;
    }
    const CAPTURES: u64 = 100;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("history.db");
    // Both also make the file, at the same time.
    let start = |source| writer("two_writers_at_once_lose_nothing", &path, source, CAPTURES);
    let children = [start("first"), start("second")];
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
    let history = History::open(&path).unwrap();
    assert_eq!(assert_whole(&history, "first"), CAPTURES as usize);
    assert_eq!(assert_whole(&history, "second"), CAPTURES as usize);
    assert_eq!(integrity(&path), "ok");
}
