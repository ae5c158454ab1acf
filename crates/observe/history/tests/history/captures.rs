//! Snapshots in, snapshots out, and what is read between them.

use filestats::*;
use history::{CaptureFilter, CaptureId, CaptureRow, Error, History, IntervalFilter};
use proptest::prelude::*;
use rusqlite::Connection;
use tempfile::TempDir;

const MS: u64 = 1_000_000;
const S: u64 = 1_000 * MS;

fn new_history() -> (TempDir, History) {
    let dir = tempfile::tempdir().unwrap();
    let history = History::open(&dir.path().join("history.db")).unwrap();
    (dir, history)
}

fn file(database: &str, path: &str) -> FileIdentity {
    FileIdentity {
        instance: "sqlite pid 812".into(),
        database: Some(database.into()),
        database_id: Some(5),
        file_id: "8:1:77".into(),
        kind: FileKind::Data,
        path: path.into(),
        drive: Some("/data".into()),
        handle: Some("0x7f".into()),
        object: None,
    }
}

fn sample(file: FileIdentity, read: Ops, write: Ops) -> Sample {
    let counters = Counters { read, write, ..Counters::ZERO };
    let size_bytes = Figure::Known(3 << 20);
    Sample {
        file: file.into(),
        epoch: Epoch::for_run("boot 1"),
        meaning: Meaning::REQUESTS,
        counters,
        size_bytes,
        latencies: None,
    }
}

fn snapshot(at_ns: u64, samples: Vec<Sample>) -> Snapshot {
    Snapshot {
        source: "sqlite".into(),
        taken_unix_ns: at_ns,
        clock_ns: at_ns,
        samples,
        complete: None,
        waits: vec![],
        notes: vec![],
    }
}

fn count(history: &History, query: &str) -> i64 {
    Connection::open(history.path()).unwrap().query_row(query, [], |row| row.get(0)).unwrap()
}

#[test]
fn an_idle_file_costs_nothing() {
    let (_dir, mut history) = new_history();
    let idle = || (0..20).map(|n| sample(file("shop", &format!("/data/{n}")), Ops::ZERO, Ops::ZERO));
    for second in 0..50 {
        let busy = sample(file("shop", "/data/busy"), Ops::timed(second, 0, 0), Ops::ZERO);
        history.save_snapshot(&snapshot(second * S, idle().chain([busy]).collect()), None).unwrap();
    }
    assert_eq!(count(&history, "SELECT count(*) FROM file_changes"), 20 + 50);
    assert_eq!(count(&history, "SELECT count(*) FROM file_stats"), 21 * 50);
    let newest = &history.captures(&CaptureFilter::default()).unwrap()[0];
    assert_eq!((newest.files, newest.files_changed), (21, 1));
}

#[test]
fn a_file_that_is_gone_is_gone_and_may_come_back() {
    let (_dir, mut history) = new_history();
    let one = || vec![sample(file("shop", "/data/a"), Ops::ZERO, Ops::ZERO)];
    let ids = [one(), vec![], one()].map(|files| history.save_snapshot(&snapshot(1, files), None).unwrap());
    let files = ids.map(|id| history.snapshot(id).unwrap().samples.len());
    assert_eq!(files, [1, 0, 1]);
}

#[test]
fn captures_are_found_by_source_time_and_number() {
    let (_dir, mut history) = new_history();
    for second in 1..=5 {
        history.save_snapshot(&snapshot(second * S, vec![]), Some("every second")).unwrap();
    }
    history.save_snapshot(&Snapshot { source: "diskstats".into(), ..snapshot(3 * S, vec![]) }, None).unwrap();
    let found = |filter: CaptureFilter| -> Vec<i64> {
        history.captures(&filter).unwrap().iter().map(|capture| capture.id.0).collect()
    };
    let sqlite = || CaptureFilter { source: Some("sqlite".into()), ..CaptureFilter::default() };
    assert_eq!(found(CaptureFilter::default()), [6, 5, 4, 3, 2, 1]);
    assert_eq!(found(CaptureFilter { limit: Some(2), ..sqlite() }), [5, 4]);
    let between = CaptureFilter { from_unix_ns: Some(2 * S), until_unix_ns: Some(3 * S), ..sqlite() };
    assert_eq!(found(between), [3, 2]);
    assert!(matches!(history.snapshot(CaptureId(7)), Err(Error::NotFound { id: 7, .. })));
}

/// The experiment of the SQL Server study: captures before and after an everyday stretch and after an
/// index rebuild that writes large blocks slowly.
fn study() -> (TempDir, History) {
    let (dir, mut history) = new_history();
    let at = |second: u64, label: &str, reads: u64, writes: u64, write_bytes: u64, write_ms: u64| {
        let read = Ops::timed(reads, reads * 8192, reads * 57 * MS);
        let write = Ops::timed(writes, write_bytes, write_ms * MS);
        let tempdb = sample(file("tempdb", "/data/tempdb.mdf"), Ops::timed(3, 24_576, 3 * MS), Ops::ZERO);
        let shop = sample(file("shop", "/data/shop.mdf"), read, write);
        (snapshot(1_700_000_000 * S + second * S, vec![shop, tempdb]), label.to_string())
    };
    for (snapshot, label) in [
        at(0, "after the restart", 0, 0, 0, 0),
        at(120, "after two minutes", 4_000, 1_000, 1_000 * 8192, 2_000),
        at(180, "after the rebuild", 4_100, 3_000, 1_000 * 8192 + 2_000 * 524_288, 1_802_000),
    ] {
        history.save_snapshot(&snapshot, Some(&label)).unwrap();
    }
    (dir, history)
}

#[test]
fn the_capture_table_answers_the_rows_of_the_study() {
    let (_dir, history) = study();
    let rows = history.captures_table(&CaptureFilter::default()).unwrap();
    let last: &CaptureRow = rows.iter().rfind(|row| row.database_name.as_deref() == Some("shop")).unwrap();
    assert_eq!(rows.len(), 6);
    assert_eq!(last.capture_date, "2023-11-14T22:16:20Z");
    assert_eq!(last.read_latency_ms, Some(57.0));
    assert!(last.write_latency_ms.unwrap() > 600.0, "the cumulative picture of the study");
    assert_eq!(last.bytes_per_read, Some(8192.0));
    assert_eq!(last.total_stall_ms, Some(4_100.0 * 57.0 + 1_802_000.0));
    assert_eq!((last.size_on_disk_mb, last.sample_ms), (Some(3.0), 1_700_000_180_000.0));
    assert_eq!(rows[1].write_latency_ms, None, "no write has no latency");
}

#[test]
fn the_rebuild_shows_in_its_own_interval_alone() {
    let (_dir, history) = study();
    let shop = IntervalFilter { database: Some("SHOP".into()), file: None };
    let between = |a, b| {
        let rows = history.intervals_between(CaptureId(a), CaptureId(b), &shop, Rules::default()).unwrap();
        assert_eq!(rows.len(), 1, "tempdb is filtered out");
        rows[0].clone()
    };
    let (everyday, rebuild) = (between(1, 2), between(3, 2));
    assert_eq!((everyday.minutes, rebuild.minutes), (2.0, 1.0));
    assert_eq!(everyday.between.unwrap().write_ns, Figure::Known(2.0 * MS as f64));
    assert_eq!(rebuild.between.unwrap().write_ns, Figure::Known(900.0 * MS as f64));
    assert_eq!(rebuild.previous.unwrap().write_ns, everyday.current.unwrap().write_ns);
    assert_eq!(everyday.previous.unwrap().write_ns, Figure::unknown(Reason::NoOperations));
    let delta = rebuild.interval.interval.known().unwrap();
    assert_eq!(delta.counters.write.average_bytes(), Figure::Known(524_288.0));
}

#[test]
fn intervals_are_filtered_by_file_and_kept_within_a_source() {
    let (_dir, mut history) = study();
    let rows = |file: &str| {
        let filter = IntervalFilter { database: None, file: Some(file.into()) };
        history.intervals_between(CaptureId(1), CaptureId(3), &filter, Rules::default()).unwrap()
    };
    assert_eq!((rows("tempdb").len(), rows(".mdf").len(), rows("nowhere").len()), (1, 2, 0));
    let other = Snapshot { source: "diskstats".into(), ..snapshot(0, vec![]) };
    let other = history.save_snapshot(&other, None).unwrap();
    let mixed = history.intervals_between(CaptureId(1), other, &IntervalFilter::default(), Rules::default());
    assert!(matches!(mixed, Err(Error::DifferentSources { .. })));
}

fn any_figure() -> impl Strategy<Value = Figure<u64>> {
    prop_oneof![
        4 => prop_oneof![Just(0), Just(7), Just(i64::MAX as u64), Just(u64::MAX), any::<u64>()]
            .prop_map(Figure::Known),
        1 => prop_oneof![Just(Reason::TimingOff), Just(Reason::NotCounted)].prop_map(Figure::unknown),
    ]
}

fn any_ops() -> impl Strategy<Value = Ops> {
    let count = prop_oneof![0..3_u64, any::<u64>()];
    (count.clone(), count, any_figure()).prop_map(|(count, bytes, stall_ns)| Ops { count, bytes, stall_ns })
}

#[test]
fn what_is_in_a_file_is_told_late_or_by_another_name_and_the_file_goes_on() {
    let (_dir, mut history) = new_history();
    let relation = |object: Option<&str>| {
        let file = FileIdentity { object: object.map(str::to_owned), ..file("shop", "/pg/base/5/16384") };
        vec![sample(file, Ops::ZERO, Ops::ZERO)]
    };
    let names = [None, Some("shop.public.orders"), Some("shop.public.orders_2026"), None];
    let ids = names.map(|object| history.save_snapshot(&snapshot(S, relation(object)), None).unwrap());
    assert_eq!(count(&history, "SELECT count(*) FROM files"), 1, "one file");
    assert_eq!(count(&history, "SELECT count(*) FROM file_changes"), 1, "that did nothing");
    for id in ids {
        let kept = history.snapshot(id).unwrap();
        assert_eq!(kept.samples[0].file.object.as_deref(), Some("shop.public.orders_2026"), "the last name");
    }
}

/// Files out of a few names, so that sequences of snapshots change, end, revive and double them.
fn any_sample() -> impl Strategy<Value = Sample> {
    let identity = (0..4_u8, 0..2_u8, prop::option::of(any::<u64>()), prop::option::of(".{0,4}"));
    let sync = prop_oneof![
        3 => any_ops().prop_map(Figure::Known),
        1 => Just(Figure::unknown(Reason::NotCounted))
    ];
    let latencies = prop::option::of(prop::collection::vec(any::<u64>(), 0..4));
    (identity, any_ops(), any_ops(), sync, any_figure(), latencies, 0..2_u8).prop_map(
        |((path, inode, database_id, database), read, write, sync, size_bytes, latencies, epoch)| Sample {
            file: FileIdentity {
                instance: "engine".into(),
                database: database.clone(),
                database_id,
                file_id: inode.to_string(),
                kind: if path == 0 { FileKind::Log } else { FileKind::Data },
                path: format!("/data/{path}"),
                drive: None,
                handle: database,
                object: None,
            }
            .into(),
            epoch: Epoch::for_run(epoch.to_string()),
            meaning: Meaning::REQUESTS,
            counters: Counters { read, write, sync, busy_ns: sync.map(|sync| sync.count) },
            size_bytes,
            latencies: latencies.map(|latencies| {
                let mut read = LatencyBuckets::new();
                latencies.iter().for_each(|latency| read.record(*latency));
                Latencies { read, ..Latencies::default() }
            }),
        },
    )
}

/// Snapshots whose files are mostly those of the one before.
fn any_sequence() -> impl Strategy<Value = Vec<Snapshot>> {
    let step = (prop::collection::vec(any_sample(), 0..3), any::<u8>(), any::<bool>(), any::<[u64; 2]>());
    prop::collection::vec(step, 1..12).prop_map(|steps| {
        let mut samples: Vec<Sample> = Vec::new();
        let snapshots = steps.into_iter().map(|(more, dropped, other_source, [taken_unix_ns, clock_ns])| {
            if !samples.is_empty() && dropped % 3 == 0 {
                samples.remove(usize::from(dropped) % samples.len());
            }
            samples.extend(more);
            let source = if other_source { "sqlite" } else { "diskstats" };
            Snapshot {
                source: source.into(),
                taken_unix_ns,
                clock_ns,
                samples: samples.clone(),
                complete: None,
                waits: vec![],
                notes: vec![],
            }
        });
        snapshots.collect()
    })
}

fn sorted(mut snapshot: Snapshot) -> Snapshot {
    snapshot.samples.sort_by_key(|sample| format!("{sample:?}"));
    snapshot
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn what_goes_in_comes_out_whatever_the_sequence(snapshots in any_sequence()) {
        let (_dir, mut history) = new_history();
        let ids: Vec<CaptureId> =
            snapshots.iter().map(|snapshot| history.save_snapshot(snapshot, None).unwrap()).collect();
        for (id, snapshot) in ids.iter().zip(&snapshots) {
            prop_assert_eq!(sorted(history.snapshot(*id).unwrap()), sorted(snapshot.clone()));
        }
    }
}

#[test]
fn many_snapshots_at_once_are_kept_as_one_by_one() {
    let (_dir, mut once) = new_history();
    let (_dir2, mut each) = new_history();
    let at = |n: u64| {
        snapshot(
            n * S,
            vec![sample(file("shop", "/data/shop.db"), Ops::timed(n, n * 8192, n * MS), Ops::ZERO)],
        )
    };
    let all = [at(1), at(2), at(2), at(5)];
    let labelled: Vec<(&Snapshot, Option<&str>)> =
        all.iter().zip([Some("a"), None, None, Some("b")]).collect();
    let ids = once.save_snapshots(&labelled).unwrap();
    let singly: Vec<CaptureId> =
        labelled.iter().map(|(snapshot, label)| each.save_snapshot(snapshot, *label).unwrap()).collect();
    assert_eq!(ids, singly);
    let captures = |history: &History| history.captures(&CaptureFilter::default()).unwrap();
    assert_eq!(captures(&once), captures(&each));
    ids.iter().zip(&all).for_each(|(id, snapshot)| assert_eq!(once.snapshot(*id).unwrap(), *snapshot));
}
