//! Waits beside stalls: what an interval says of both, in every format.

use crate::sample;
use crate::text::STYLE;
use filestats::{
    Counters, Epoch, Figure, FileKind, Meaning, Ops, Profile, Reason, Sample, Snapshot, WaitClass,
    WaitSample, intervals,
};
use report::text::{self, Style};
use report::{WatchedInterval, csv, json};

const MS: u64 = 1_000_000;

fn wait(class: WaitClass, event: &str, reset: &str, count: Figure<u64>, wait_ms: u64) -> WaitSample {
    WaitSample {
        instance: "postgres".into(),
        event: event.into(),
        class,
        epoch: Epoch { run: "1".into(), reset: reset.into() },
        count,
        wait_ns: Figure::Known(wait_ms * MS),
    }
}

fn file(kind: FileKind, path: &str, counters: Counters) -> Sample {
    Sample {
        file: sample::identity(kind, path),
        epoch: Epoch::for_run("1"),
        meaning: Meaning::REQUESTS,
        counters,
        size_bytes: Figure::Known(1 << 30),
        latencies: None,
    }
}

/// Ten seconds in which commits wait as long as the log takes, reads wait far longer than the data files do, the
/// checkpointer's syncs delay no session, and spills are not timed.
fn two_captures() -> (Snapshot, Snapshot) {
    let at = |tenths: u64| {
        let syncs = |each_ms: u64| Figure::Known(Ops::timed(100 * tenths, 0, 100 * tenths * each_ms * MS));
        let log = Counters { sync: syncs(4), ..Counters::ZERO };
        let read = Ops::timed(50 * tenths, 50 * tenths * 8192, 50 * tenths * MS / 2);
        let data = Counters { read, sync: syncs(2), ..Counters::ZERO };
        let untimed =
            Ops { count: tenths, bytes: tenths * 8192, stall_ns: Figure::unknown(Reason::TimingOff) };
        let spill = Counters { write: untimed, ..Counters::ZERO };
        let reset = if tenths == 1 { "" } else { "cleared" };
        let sampled = Figure::unknown(Reason::NotCounted);
        Snapshot {
            source: "postgres".into(),
            taken_unix_ns: sample::BEGIN_NS + tenths * 10_000 * MS,
            clock_ns: tenths * 10_000 * MS,
            complete: None,
            samples: vec![
                file(FileKind::Log, "/db/pg_wal", log),
                file(FileKind::Data, "/db/base/orders", data),
                file(FileKind::Temp, "/db/base/pgsql_tmp", spill),
            ],
            waits: vec![
                wait(WaitClass::LogSync, "WALSync", "", Figure::Known(90 * tenths), 410 * tenths),
                wait(WaitClass::DataRead, "DataFileRead", "", sampled, 6_000 * tenths),
                wait(WaitClass::DataSync, "DataFileSync", "", sampled, 7),
                wait(WaitClass::Temp, "BufFileWrite", "", sampled, 300 * tenths),
                wait(WaitClass::Replication, "SyncRep", reset, sampled, 300 * tenths),
            ],
            notes: vec![],
        }
    };
    (at(1), at(2))
}

#[test]
fn each_class_of_waits_stands_beside_the_time_of_its_files() {
    let (earlier, later) = two_captures();
    let between = WatchedInterval::between(&earlier, &later);
    let rows = intervals(&earlier, &later, filestats::Rules::default());
    let text = text::intervals(&earlier, &later, &rows, &between, &Style { width: 100, ..STYLE });
    let (_, waits) = text.split_once("waits between them").unwrap();
    insta::assert_snapshot!(waits);
    let watched = text::watch(&between, &Profile::default(), &Style { width: 100, ..STYLE });
    let same = waits.lines().skip(1).collect::<Vec<_>>().join("\n");
    assert!(watched.contains(&same), "{watched}");
}

#[test]
fn a_source_without_waits_differs_from_one_without_waiters() {
    let (mut earlier, mut later) = two_captures();
    let said = |earlier: &Snapshot, later: &Snapshot| {
        text::intervals(earlier, later, &[], &WatchedInterval::between(earlier, later), &STYLE)
    };
    later.waits.truncate(3);
    earlier.waits.truncate(3);
    earlier.waits.clone_from(&later.waits);
    let text = said(&earlier, &later);
    assert!(text.contains("hardly any session waits for: data read, data sync, log sync"), "{text}");
    earlier.waits.clear();
    later.waits.clear();
    let text = said(&earlier, &later);
    assert!(text.contains("this source reports none") && !text.contains("nobody"), "{text}");
}

#[test]
fn waits_are_rows_after_those_of_the_files() {
    let (earlier, later) = two_captures();
    let text = csv::watch(&WatchedInterval::between(&earlier, &later));
    let columns: Vec<&str> = csv::WATCH_HEADING.split(',').collect();
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
    assert!(rows.iter().all(|row| row.len() == columns.len()), "{text}");
    let cell = |path: &str, column: &str| {
        let row = rows.iter().find(|row| row[5] == path).unwrap_or_else(|| panic!("{path} in {text}"));
        row[columns.iter().position(|name| *name == column).unwrap()]
    };
    assert_eq!((cell("WALSync", "kind"), cell("WALSync", "waits")), ("wait", "90"));
    assert_eq!(cell("WALSync", "wait_ns"), "410000000");
    assert_eq!((cell("WALSync", "class_stall_ns"), cell("WALSync", "agreement")), ("400000000", "agrees"));
    assert_eq!((cell("DataFileRead", "waits"), cell("DataFileRead", "agreement")), ("", "not-the-disk"));
    assert_eq!(cell("SyncRep", "unknown"), "the statistics were reset");
    assert_eq!(cell("/db/pg_wal", "syncs"), "100");
    assert_eq!(cell("/db/pg_wal", "agreement"), "");
    assert!(rows.iter().all(|row| row[5] != "DataFileSync"), "nobody waited for it: {text}");
}

#[test]
fn json_has_the_sentence_beside_the_figures() {
    let (earlier, later) = two_captures();
    let value = serde_json::to_value(json::waits(&WatchedInterval::between(&earlier, &later))).unwrap();
    let reads = &value["reconciled"][0];
    assert_eq!((&reads["class"], &reads["agreement"]), (&"data-read".into(), &"not-the-disk".into()));
    let sentence = "the waits for data read are not the disk: sessions waited 6.00 s, its files took 25.0 ms";
    assert_eq!(reads["text"], sentence);
    let spills = value["reconciled"].as_array().unwrap().iter().find(|one| one["class"] == "temp").unwrap();
    assert_eq!(
        (&spills["agreement"], &spills["stall_ns"]["unknown"]),
        (&"cannot-say".into(), &"timing-off".into())
    );
    assert_eq!(value["waits"][4]["unknown"], "stats-reset");
}

#[test]
fn the_guide_says_what_each_class_implies() {
    let guide = include_str!("../../../../../docs/reference/waits.md");
    for class in WaitClass::ALL {
        let row = guide.lines().find(|line| line.starts_with(&format!("| {class} |")));
        assert!(row.is_some_and(|row| row.contains(class.implies())), "{class}: {row:?}");
    }
}
