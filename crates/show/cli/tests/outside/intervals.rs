//! `headroom history intervals` on captures with waits.

use filestats::{
    Counters, Epoch, Figure, FileIdentity, FileKind, Meaning, Ops, Sample, Snapshot, WaitClass, WaitSample,
};
use programs::Headroom;

const S: u64 = 1_000_000_000;

/// The capture after `tens` tens of seconds: the log took 4 s in each, commits waited 90 s for it.
fn capture(tens: u64) -> Snapshot {
    let file = |path: &str, kind, counters| Sample {
        file: FileIdentity {
            instance: "sqlserver db".into(),
            database: Some("shop".into()),
            database_id: Some(5),
            file_id: path.into(),
            kind,
            path: path.into(),
            drive: None,
            handle: None,
            object: None,
        }
        .into(),
        epoch: Epoch::for_run("1"),
        meaning: Meaning::REQUESTS,
        counters,
        size_bytes: Figure::Known(1 << 20),
        latencies: None,
    };
    let log = Counters { write: Ops::timed(1000 * tens, 4096 * tens, 4 * S * tens), ..Counters::ZERO };
    Snapshot {
        source: "sqlserver:db".into(),
        taken_unix_ns: 1_795_251_600 * S + tens * 10 * S,
        clock_ns: tens * 10 * S,
        complete: None,
        samples: vec![
            file("D:\\shop.mdf", FileKind::Data, Counters::ZERO),
            file("D:\\shop.ldf", FileKind::Log, log),
        ],
        waits: vec![WaitSample {
            instance: "sqlserver db".into(),
            event: "WRITELOG".into(),
            class: WaitClass::LogSync,
            epoch: Epoch::for_run("1"),
            count: Figure::Known(1000 * tens),
            wait_ns: Figure::Known(90 * S * tens),
        }],
        notes: vec![],
    }
}

#[test]
fn waits_that_the_files_do_not_account_for_are_told_beside_them_in_every_format() {
    let ours = Headroom::new();
    let mut history = history::History::open(&ours.history()).unwrap();
    for tens in 1..=2 {
        history.save_snapshot(&capture(tens), None).unwrap();
    }
    drop(history);
    let sentence = "the waits for log sync are not the disk: sessions waited 90.0 s, its files took 4.00 s";
    // The data file alone is shown; the waits are held against all files.
    let output = ours.run(&["history", "intervals", "--file", "shop.mdf"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains(sentence) && text.contains("WRITELOG") && !text.contains("shop.ldf"), "{text}");

    let value = ours.json(&["history", "intervals", "1", "2"]);
    assert_eq!(value["waits"][0]["waits"], 1000);
    assert_eq!(value["waits"][0]["wait_ns"], 90 * S);
    assert_eq!(value["reconciled"][0]["agreement"], "not-the-disk");
    assert_eq!(value["reconciled"][0]["text"], sentence);
    assert_eq!(value["intervals"].as_array().unwrap().len(), 2);

    let output = ours.run(&["history", "intervals", "--csv", "--file", "shop.ldf"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(rows.len(), 3, "{text}");
    assert!(rows.iter().all(|row| row.len() == rows[0].len()), "{text}");
    assert_eq!((rows[1][5], rows[1][9], rows[1][11]), ("D:\\shop.ldf", "1000", "4000000000"), "{text}");
    assert_eq!(rows[2][4..6], ["wait", "WRITELOG"], "{text}");
    assert_eq!(
        rows[2][17..],
        ["log sync", "1000", "90000000000", "90000000000", "4000000000", "not-the-disk"]
    );
}

/// Its programs are in the kernel only while it runs: the second capture would begin at zero again.
#[test]
fn captures_of_processes_are_refused_with_what_does_it_instead() {
    for source in ["process:", "process:pid-file=/run/postgresql.pid"] {
        let output = Headroom::new().run(&["history", "capture", "--source", source]);
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.contains("only while it is watched") && text.contains("headroom watch"), "{text}");
    }
}
