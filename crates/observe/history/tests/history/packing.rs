//! Changes in blocks read the same as changes in rows, by every reader.

use crate::life::{Event, S, event, snapshots};
use filestats::*;
use history::*;
use proptest::prelude::*;
use rusqlite::Connection;
use rusqlite::types::Value;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use tempfile::TempDir;

fn history() -> (TempDir, History) {
    let dir = tempfile::tempdir().unwrap();
    let history = History::open(&dir.path().join("history.db")).unwrap();
    (dir, history)
}

fn save(history: &mut History, all: &[Snapshot]) {
    for one in all {
        history.save_snapshot(one, None).unwrap();
    }
}

/// Files that work in each capture, with histograms.
fn busy(captures: usize) -> Vec<Snapshot> {
    let works = |at: usize| vec![Event::Work(at as u64 % 90 + 1), Event::Work(3), Event::Nothing];
    let lives: Vec<_> = (0..captures).map(|at| (15 * S, true, works(at))).collect();
    let mut all = snapshots(&lives);
    let mut latencies = Latencies::default();
    for (at, snapshot) in all.iter_mut().enumerate() {
        latencies.read.record(80_000 + at as u64 % 30 * 20_000);
        snapshot.samples[0].latencies = Some(latencies.clone());
    }
    all
}

/// All that the view has but histograms, by a program that knows nothing of Headroom.
fn file_stats(history: &History, of: &str) -> Vec<Vec<Value>> {
    let plain = Connection::open(history.path()).unwrap();
    let mut rows = plain
        .prepare(&format!(
            "SELECT capture_id, path, epoch, epoch_reset, reads, read_bytes, read_stall_ns, read_stall_unknown, writes, \
             write_bytes, write_stall_ns, write_stall_unknown, syncs, syncs_unknown, sync_bytes, sync_stall_ns, \
             sync_stall_unknown, busy_ns, busy_unknown, size_bytes, size_unknown FROM file_stats WHERE {of} \
             ORDER BY capture_id, file"
        ))
        .unwrap();
    let row = |row: &rusqlite::Row<'_>| (0..21).map(|at| row.get(at)).collect();
    rows.query_map([], row).unwrap().map(Result::unwrap).collect()
}

fn count(history: &History, query: &str) -> i64 {
    Connection::open(history.path()).unwrap().query_row(query, [], |row| row.get(0)).unwrap()
}

#[test]
fn saving_packs_what_is_no_longer_new() {
    let (_dir, mut history) = history();
    let all = busy(600);
    let ids: Vec<CaptureId> = all.iter().map(|one| history.save_snapshot(one, None).unwrap()).collect();
    let rows = count(&history, "SELECT max(n) FROM (SELECT count(*) AS n FROM file_changes GROUP BY file)");
    assert!((1..=64 + 150).contains(&rows), "{rows} rows of one file are left of 600");
    let packed = count(&history, "SELECT sum(changes) FROM file_blocks");
    assert_eq!(packed + count(&history, "SELECT count(*) FROM file_changes"), 2 * 600 + 1);
    let bytes = count(&history, "SELECT sum(length(packed)) FROM file_blocks");
    assert!(bytes < packed * 12, "{} bytes a change", bytes as f64 / packed as f64);
    for (id, one) in ids.iter().zip(&all).step_by(37) {
        assert_eq!(&history.snapshot(*id).unwrap(), one);
    }
}

#[test]
fn histograms_of_a_stretch_are_those_that_went_in() {
    let (_dir, mut history) = history();
    let all = busy(200);
    save(&mut history, &all);
    history.pack(1, |_, _| ()).unwrap();
    let (from, until) = (50, 180);
    let series = history.series("engine:1", all[from].taken_unix_ns, all[until].taken_unix_ns).unwrap();
    let of = |at: usize| all[at].samples[0].latencies.clone().unwrap();
    let grown = history.file_latencies(&series, 0, Meaning::REQUESTS).unwrap();
    assert_eq!(grown, of(until).since(&of(from)));
}

#[test]
fn who_reads_while_another_packs_sees_every_change_once() {
    let (_dir, mut history) = history();
    let all = busy(400);
    let some: Vec<_> = all.iter().map(|one| (one, None)).collect();
    history.save_snapshots(&some).unwrap();
    let reader = History::open(history.path()).unwrap();
    let rules = Rules::default();
    let courses = |history: &History| -> Vec<Vec<FileSeries>> {
        let series = history.series("engine:1", 0, u64::MAX).unwrap();
        (0..series.files()).map(|file| history.file_course(&series, file, rules).unwrap()).collect()
    };
    let expected = courses(&reader);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for least in (1..60).rev() {
                history.pack(least, |_, _| ()).unwrap();
            }
            done.store(true, Relaxed);
        });
        let mut last = false;
        while !last {
            last = done.load(Relaxed);
            assert_eq!(courses(&reader), expected);
            assert_eq!(reader.snapshot(CaptureId(200)).unwrap(), all[199]);
        }
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn whatever_files_do_it_reads_the_same_from_blocks(
        life in prop::collection::vec((any::<bool>(), prop::collection::vec(event(), 3)), 20..110),
        least in 1..40_usize, every in 1..50_usize, pair in any::<[prop::sample::Index; 2]>(),
    ) {
        let captures: Vec<_> = life.into_iter().map(|(complete, events)| (15 * S, complete, events)).collect();
        let all = snapshots(&captures);
        let ((_a, mut rows), (_b, mut blocks)) = (history(), history());
        for (at, snapshot) in all.iter().enumerate() {
            rows.save_snapshot(snapshot, None).unwrap();
            blocks.save_snapshot(snapshot, None).unwrap();
            if at % every == 0 {
                blocks.pack(least, |_, _| ()).unwrap();
            }
        }
        blocks.pack(least, |_, _| ()).unwrap();
        for id in (1..=all.len() as i64).map(CaptureId) {
            prop_assert_eq!(blocks.snapshot(id).unwrap(), rows.snapshot(id).unwrap());
        }
        prop_assert_eq!(file_stats(&blocks, "true"), file_stats(&rows, "true"));
        let rules = Rules::default();
        let [a, b] = pair.map(|index| CaptureId(index.index(all.len()) as i64 + 1));
        let filter = IntervalFilter::default();
        prop_assert_eq!(
            blocks.intervals_between(a, b, &filter, rules).unwrap(),
            rows.intervals_between(a, b, &filter, rules).unwrap()
        );
        let times = [a.min(b), a.max(b)].map(|id| all[id.0 as usize - 1].taken_unix_ns);
        let courses = |history: &History| {
            let series = history.series("engine:1", times[0], times[1]).unwrap();
            let hourly = history.hourly("engine:1", times[0], times[1], |_| true).unwrap();
            let of = |series: &Series| -> Vec<Vec<FileSeries>> {
                (0..series.files()).map(|file| history.file_course(series, file, rules).unwrap()).collect()
            };
            (of(&series), of(&hourly))
        };
        prop_assert_eq!(courses(&blocks), courses(&rows));
    }
}

#[test]
fn figures_that_no_block_holds_stay_rows() {
    let (_dir, mut history) = history();
    let mut all = busy(200);
    for snapshot in &mut all[120..] {
        snapshot.samples[1].counters.write.bytes = u64::MAX;
    }
    save(&mut history, &all);
    for _ in 0..3 {
        history.pack(1, |_, _| ()).unwrap();
    }
    let rows = "SELECT max(n) FROM (SELECT count(*) AS n FROM file_changes GROUP BY file)";
    assert_eq!(count(&history, rows), 80, "those of the largest number that there is");
    for at in [0, 119, 120, 121, 199] {
        assert_eq!(history.snapshot(CaptureId(at as i64 + 1)).unwrap(), all[at]);
    }
    assert_eq!(file_stats(&history, "capture_id = 150").len(), 3);
}
