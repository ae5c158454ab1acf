//! The SQL that the user's guide shows does what the guide says.

use filestats::*;
use history::{CaptureFilter, CaptureId, History};
use rusqlite::Connection;
use std::time::{SystemTime, UNIX_EPOCH};
use tempfile::TempDir;

const GUIDE: &str = include_str!("../../../../../docs/reference/history.md");
const DAY_NS: u64 = 86_400_000_000_000;

/// The code blocks that begin with that fence.
fn blocks(fence: &str) -> Vec<&'static str> {
    let opened = GUIDE.split("```").skip(1).step_by(2);
    opened
        .filter_map(|block| block.split_once('\n'))
        .filter(|(info, _)| *info == fence)
        .map(|b| b.1)
        .collect()
}

fn snapshot(days_ago: u64, files: &[(&str, u64)]) -> Snapshot {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
    let taken_unix_ns = now - days_ago * DAY_NS;
    let sample = |(path, reads): &(&str, u64)| Sample {
        file: FileIdentity {
            instance: "engine".into(),
            database: Some("shop".into()),
            database_id: None,
            file_id: "1".into(),
            kind: FileKind::Data,
            path: (*path).into(),
            drive: None,
            handle: None,
            object: None,
        }
        .into(),
        epoch: Epoch::for_run("1"),
        meaning: Meaning::REQUESTS,
        counters: Counters { read: Ops::timed(*reads, 0, reads * 2_000_000), ..Counters::ZERO },
        size_bytes: Figure::Known(0),
        latencies: None,
    };
    let samples = files.iter().map(sample).collect();
    Snapshot {
        source: "sqlite".into(),
        taken_unix_ns,
        clock_ns: taken_unix_ns,
        samples,
        complete: None,
        waits: vec![],
        notes: vec![],
    }
}

/// A file that is idle, one that is busy, one that went, one that came.
fn two_months() -> (TempDir, History, Vec<CaptureId>) {
    let dir = tempfile::tempdir().unwrap();
    let mut history = History::open(&dir.path().join("history.db")).unwrap();
    let ids = [
        snapshot(60, &[("/idle", 5), ("/busy", 10), ("/went", 1)]),
        snapshot(50, &[("/idle", 5), ("/busy", 20), ("/went", 2)]),
        snapshot(40, &[("/idle", 5), ("/busy", 30)]),
        snapshot(20, &[("/idle", 5), ("/busy", 30), ("/came", 1)]),
        snapshot(10, &[("/idle", 5), ("/busy", 50), ("/came", 1)]),
    ]
    .map(|snapshot| history.save_snapshot(&snapshot, None).unwrap());
    (dir, history, ids.into())
}

#[test]
fn every_query_runs() {
    let (_dir, history, _) = two_months();
    let connection = Connection::open(history.path()).unwrap();
    let queries = blocks("sql");
    assert!(queries.len() >= 4);
    for query in queries {
        let mut statement = connection.prepare(query).unwrap_or_else(|error| panic!("{error}: {query}"));
        let mut rows = statement.query([]).unwrap();
        while rows.next().unwrap().is_some() {}
    }
}

#[test]
fn the_interval_query_gives_the_deltas_of_each_file() {
    let (_dir, history, _) = two_months();
    let connection = Connection::open(history.path()).unwrap();
    let query = blocks("sql").into_iter().find(|query| query.contains("lag(")).unwrap();
    let mut statement = connection.prepare(query).unwrap();
    let busy: Vec<(i64, Option<f64>)> = statement
        .query_map([], |row| Ok((row.get::<_, String>("path")?, (row.get("reads")?, row.get("read_ms")?))))
        .unwrap()
        .map(Result::unwrap)
        .filter_map(|(path, figures)| (path == "/busy").then_some(figures))
        .collect();
    assert_eq!(busy, [(10, Some(2.0)), (10, Some(2.0)), (0, None), (20, Some(2.0))]);
}

#[test]
fn pruning_leaves_the_younger_captures_as_they_were() {
    let (_dir, mut history, ids) = two_months();
    let before: Vec<Snapshot> = ids[3..].iter().map(|id| history.snapshot(*id).unwrap()).collect();
    let connection = Connection::open(history.path()).unwrap();
    let prune = blocks("sql prune")[0];
    for _ in 0..2 {
        connection.execute_batch(prune).unwrap();
        let left = history.captures(&CaptureFilter::default()).unwrap();
        assert_eq!(left.iter().map(|capture| capture.id).collect::<Vec<_>>(), [ids[4], ids[3]]);
        let after: Vec<Snapshot> = ids[3..].iter().map(|id| history.snapshot(*id).unwrap()).collect();
        assert_eq!(after, before);
    }
    let rows: i64 = connection.query_row("SELECT count(*) FROM file_changes", [], |row| row.get(0)).unwrap();
    assert_eq!(rows, 4, "idle and busy from before, busy changed, came");
    let next = snapshot(0, &[("/idle", 5), ("/busy", 60)]);
    let id = history.save_snapshot(&next, None).unwrap();
    assert_eq!(history.snapshot(id).unwrap(), next);
}

#[test]
fn pruning_deletes_nothing_where_all_is_old() {
    let dir = tempfile::tempdir().unwrap();
    let mut history = History::open(&dir.path().join("history.db")).unwrap();
    let old = snapshot(90, &[("/idle", 5)]);
    let id = history.save_snapshot(&old, None).unwrap();
    Connection::open(history.path()).unwrap().execute_batch(blocks("sql prune")[0]).unwrap();
    assert_eq!(history.snapshot(id).unwrap(), old);
}
