//! A history whose bytes or values were changed: how it is changed, and everything that reads it. The fuzz target
//! `history_blocks` has this file too.

use filestats::*;
use history::{
    CaptureFilter, CaptureId, EntryKind, Error, History, IntervalFilter, Retention, RetentionStep,
};
use rusqlite::Connection;
use rusqlite::types::Value;
use std::path::Path;
use std::time::Duration;

const S: u64 = 1_000_000_000;
const SOURCE: &str = "engine:1";
const CAPTURES: u64 = 90;
const BEGIN_UNIX_NS: u64 = 1_763_000_000 * S;
/// More captures than the history has are a mistake of the reader; a damaged series may have many steps each.
const READ_MAX: usize = 3;

/// The tables that hold packed or written values, with their columns.
const VALUES: &[(&str, &[&str])] = &[
    (
        "file_blocks",
        &[
            "packed",
            "latencies",
            "widths",
            "changes",
            "first_capture_id",
            "last_capture_id",
            "reads",
            "read_bytes",
            "read_stall_ns",
            "read_stall_unknown",
            "write_bytes",
            "syncs",
            "syncs_unknown",
            "busy_unknown",
            "size_bytes",
            "read_unit",
            "write_unit",
        ],
    ),
    (
        "file_changes",
        &[
            "latencies",
            "reads",
            "read_bytes",
            "read_stall_ns",
            "read_stall_unknown",
            "writes",
            "syncs",
            "syncs_unknown",
            "busy_ns",
            "capture_id",
        ],
    ),
    (
        "files",
        &[
            "meaning",
            "kind",
            "epoch",
            "epoch_reset",
            "path",
            "first_capture_id",
            "gone_capture_id",
            "database_id",
            "from_zero",
        ],
    ),
    ("captures", &["taken_unix_ns", "clock_ns", "notes", "complete", "files", "source", "label"]),
    ("wait_events", &["class", "epoch", "first_capture_id", "gone_capture_id", "from_zero"]),
    ("wait_changes", &["capture_id", "waits", "waits_unknown", "wait_ns", "wait_unknown"]),
    ("thinned", &["capture_id", "every_ns"]),
];

/// Captures with histograms and waits, most of them in blocks, some thinned.
pub fn make(path: &Path) {
    let mut history = History::open(path).unwrap();
    for at in 1..=CAPTURES {
        history.save_snapshot(&snapshot(at), (at == 7).then_some("before")).unwrap();
    }
    history.pack(1, |_, _| {}).unwrap();
    let every = RetentionStep { age: Duration::from_secs(900), every: Duration::from_secs(60) };
    history.apply_retention(&Retention(vec![every]), BEGIN_UNIX_NS + CAPTURES * 15 * S).unwrap();
    for at in CAPTURES + 1..=CAPTURES + 3 {
        history.save_snapshot(&snapshot(at), None).unwrap();
    }
}

fn snapshot(at: u64) -> Snapshot {
    let clock_ns = at * 15 * S;
    let sample = |file: u64| {
        let mut latencies = Latencies::default();
        (0..at).for_each(|n| latencies.read.record(100_000 + n % 7 * 30_000));
        let stall_ns =
            if file == 2 { Figure::unknown(Reason::TimingOff) } else { Figure::Known(at * 90_001) };
        Sample {
            file: FileIdentity {
                instance: "engine".into(),
                file_id: file.to_string(),
                kind: if file == 0 { FileKind::Log } else { FileKind::Data },
                path: format!("/data/{file}"),
                ..FileIdentity::default()
            }
            .into(),
            epoch: Epoch::for_run((at / 40).to_string()),
            meaning: Meaning::REQUESTS,
            counters: Counters {
                read: Ops::timed(at * 48, at * 48 * 8192, at * 13_441_823),
                write: Ops { count: at * 16, bytes: at * 131_072 + at % 3, stall_ns },
                sync: if file == 0 {
                    Figure::Known(Ops::timed(at, 0, at * 900))
                } else {
                    Figure::unknown(Reason::NotCounted)
                },
                busy_ns: Figure::unknown(Reason::NotCounted),
            },
            size_bytes: Figure::Known(1 << 20),
            latencies: (file != 2).then_some(latencies),
        }
    };
    Snapshot {
        source: SOURCE.into(),
        taken_unix_ns: BEGIN_UNIX_NS + clock_ns,
        clock_ns,
        complete: Some(Epoch::for_run("of the source")),
        samples: (0..3).map(sample).collect(),
        waits: vec![WaitSample {
            instance: "engine".into(),
            event: "DataFileRead".into(),
            class: WaitClass::DataRead,
            epoch: Epoch::for_run((at / 40).to_string()),
            count: Figure::Known(at * 3),
            wait_ns: Figure::Known(at * 7_000),
        }],
        notes: vec!["a note".into()],
    }
}

/// Overwrites parts of bytes. Each part of `damage`: its place (3 bytes), its length (1 byte), what is written.
pub fn overwrite(bytes: &mut [u8], mut damage: &[u8]) {
    while let Some(([a, b, c, length], rest)) = damage.split_first_chunk() {
        let (part, rest) = rest.split_at(rest.len().min(usize::from(*length)));
        let at = u32::from_le_bytes([*a, *b, *c, 0]) as usize % bytes.len().max(1);
        for (to, from) in bytes[at..].iter_mut().zip(part) {
            *to = *from;
        }
        damage = rest;
    }
}

/// Replaces values of rows. Each part of `damage`: table, column, row, type, length (a byte each), the value.
pub fn replace_values(history: &Connection, mut damage: &[u8]) {
    while let Some(([table, column, row, kind, length], rest)) = damage.split_first_chunk() {
        let (part, rest) = rest.split_at(rest.len().min(usize::from(*length)));
        let (table, columns) = VALUES[usize::from(*table) % VALUES.len()];
        let column = columns[usize::from(*column) % columns.len()];
        let place = format!(
            "(SELECT rowid FROM {table} LIMIT 1 OFFSET {row} % max(1, (SELECT count(*) FROM {table})))"
        );
        let then = format!("SELECT {column} FROM {table} WHERE rowid = {place}");
        let then = history.prepare_cached(&then).and_then(|mut then| then.query_row([], |row| row.get(0)));
        let value = value(*kind, part, then.unwrap_or(Value::Null));
        let statement = format!("UPDATE {table} SET {column} = ? WHERE rowid = {place}");
        // A constraint may refuse it.
        let _ = history.prepare_cached(&statement).and_then(|mut statement| statement.execute([value]));
        damage = rest;
    }
}

fn value(kind: u8, part: &[u8], then: Value) -> Value {
    let number =
        |part: &[u8]| i64::from_le_bytes(std::array::from_fn(|at| part.get(at).copied().unwrap_or(0)));
    let text = || String::from_utf8_lossy(part).into_owned();
    match (kind % 8, then) {
        (0, _) => Value::Null,
        (1, _) => Value::Integer(number(part)),
        (2, _) => Value::Real(f64::from_bits(number(part).cast_unsigned())),
        (3, _) => Value::Text(text()),
        (4, _) => Value::Blob(part.into()),
        (5, _) => Value::Text(format!("{:020}", number(part).cast_unsigned())),
        (_, Value::Blob(mut bytes)) => {
            overwrite(&mut bytes, part);
            Value::Blob(bytes)
        }
        (_, Value::Text(then)) => {
            let mut bytes = then.into_bytes();
            overwrite(&mut bytes, part);
            Value::Text(String::from_utf8_lossy(&bytes).into_owned())
        }
        (_, Value::Integer(then)) => Value::Integer(then.wrapping_add(number(part))),
        (_, then) => then,
    }
}

/// Reads all that is kept, thins it, packs it and adds to it. Every error is an answer; a panic is none.
pub fn use_all(path: &Path) {
    let Ok(mut history) = History::open(path) else { return };
    let _ = read_all(&history);
    let every = RetentionStep { age: Duration::ZERO, every: Duration::from_secs(120) };
    let later = BEGIN_UNIX_NS + (CAPTURES + 4) * 15 * S;
    let _ = history.save_snapshot(&snapshot(CAPTURES + 4), None);
    let _ = history.apply_retention(&Retention(vec![every]), later);
    let _ = history.pack(1, |_, _| {});
    let _ = read_all(&history);
}

fn read_all(history: &History) -> Result<(), Error> {
    let captures = history.captures(&CaptureFilter::default()).unwrap_or_default();
    for capture in captures.iter().take(READ_MAX).chain(captures.last()) {
        let _ = history.snapshot(capture.id);
        let _ = history.show(EntryKind::Capture, capture.id.0);
    }
    let newest = CaptureFilter { limit: Some(READ_MAX), ..CaptureFilter::default() };
    let _ = history.captures_table(&newest);
    if let [newest, .., oldest] = captures.as_slice() {
        let _ = between(history, oldest.id, newest.id);
    }
    let _ = (history.entries(READ_MAX), history.gaps(), history.test_files(), history.matrices());
    for source in history.sources()? {
        let _ = read_series(history, &source.source);
    }
    Ok(())
}

fn between(history: &History, from: CaptureId, until: CaptureId) -> Result<(), Error> {
    history.intervals_between(from, until, &IntervalFilter::default(), Rules::default()).map(drop)
}

fn read_series(history: &History, source: &str) -> Result<(), Error> {
    let all = history.series(source, 0, u64::MAX)?;
    let within = history.series(source, BEGIN_UNIX_NS + 300 * S, BEGIN_UNIX_NS + 900 * S)?;
    let hourly = history.hourly(source, 0, u64::MAX, |_| true)?;
    for series in [&all, &within, &hourly] {
        for file in 0..series.files() {
            let _ = history.file_course(series, file, Rules::default());
            let _ = history.file_latencies(series, file, Meaning::REQUESTS);
        }
        let _ = history.wait_courses(series, Rules::default());
    }
    Ok(())
}
