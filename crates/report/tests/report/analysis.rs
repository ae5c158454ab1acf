//! What a stored stretch showed, in each format.

use analyze::{Gap, Gathering, Settings};
use filestats::*;
use report::text::Style;
use report::{Analysed, FindingCourse, csv, html, json, text};
use serde_json::Value;

const MS: u64 = 1_000_000;
const S: u64 = 1_000 * MS;
/// 2026-11-02, 01:00 UTC.
const BEGIN: u64 = (1_793_577_600 + 3600) * S;

fn course(source: &str) -> Course {
    let tick = |at: u64| Tick { taken_unix_ns: BEGIN + at * 15 * S, clock_ns: at * 15 * S, complete: None };
    Course { source: source.into(), ticks: (0..=240).map(tick).collect() }
}

fn file(path: &str, kind: FileKind, added: impl Fn(usize) -> Figure<Counters>) -> FileCourse {
    FileCourse {
        file: FileIdentity {
            instance: "pid 812 (postgres)".into(),
            database: Some("shop".into()),
            database_id: None,
            file_id: path.into(),
            kind,
            path: path.into(),
            drive: Some("/var/lib/postgresql".into()),
            handle: None,
            object: None,
        },
        meaning: Meaning::REQUESTS,
        size_bytes: Figure::Known(640 << 20),
        steps: (1..=240).map(|at| Step { at, added: added(at) }).collect(),
        known_ns: 3585 * S,
        unknown_ns: 15 * S,
    }
}

fn ops(count: u64, bytes: u64, ns: u64) -> Ops {
    Ops::timed(count, count * bytes, count * ns)
}

/// A shop whose reads are slow for a while, and a restart; a log that keeps its level.
pub fn files() -> [FileCourse; 2] {
    let data = |at| match at {
        100 => Figure::unknown(Reason::Restart),
        120..=167 => Figure::Known(Counters { read: ops(2_400, 8192, 34 * MS), ..Counters::ZERO }),
        at => Figure::Known(Counters { read: ops(300 + at as u64, 8192, 2 * MS), ..Counters::ZERO }),
    };
    let log = |at| match at {
        100 => Figure::unknown(Reason::Restart),
        _ => Figure::Known(Counters {
            write: ops(150, 8192, MS / 10),
            sync: Figure::Known(ops(150, 0, 3 * MS)),
            ..Counters::ZERO
        }),
    };
    [
        file("/var/lib/postgresql/18/main/base/16384/16397", FileKind::Data, data),
        file("/var/lib/postgresql/18/main/pg_wal/000000010000000000000001", FileKind::Log, log),
    ]
}

pub fn analysed(files: &[FileCourse]) -> Analysed {
    let course = course("process:812");
    let settings = Settings {
        from_unix_ns: BEGIN,
        until_unix_ns: BEGIN + 3600 * S,
        service_level: ServiceLevel::OLTP,
        profile: Profile::default(),
        rules: Rules::default(),
    };
    let mut gathering = Gathering::new(&course, None, &settings);
    files.iter().for_each(|file| gathering.file(file, None));
    Analysed {
        from_unix_ns: settings.from_unix_ns,
        until_unix_ns: settings.until_unix_ns,
        service_level: settings.service_level,
        profile: settings.profile,
        sources: vec![gathering.finish()],
        gaps: vec![Gap {
            source: "mysql://monitor@shop/".into(),
            from_unix_ns: BEGIN + 60 * S,
            until_unix_ns: Some(BEGIN + 90 * S),
            reason: "cannot connect: connection refused".into(),
        }],
        version: "0.1.0".into(),
    }
}

const STYLE: Style = Style { color: false, width: 80 };

#[test]
fn a_bad_hour() {
    let screen = text::analysis(&analysed(&files()), &STYLE);
    assert!(screen.lines().all(|line| line.chars().count() <= 80), "{screen}");
    insta::assert_snapshot!(screen);
}

#[test]
fn a_good_one() {
    let analysed = analysed(&files()[1..]);
    assert!(!analysed.is_bad() && analysed.says_anything());
    insta::assert_snapshot!(text::analysis(&analysed, &STYLE));
}

#[test]
fn findings_as_a_table() {
    insta::assert_snapshot!(csv::analysis(&analysed(&files())));
}

#[test]
fn each_key_is_documented() {
    fn keys(value: &Value, into: &mut Vec<String>) {
        match value {
            Value::Object(fields) => fields.iter().for_each(|(key, value)| {
                into.push(key.clone());
                // By reason; what counters stand for has its own words.
                match key.as_str() {
                    "unknown" => value
                        .as_object()
                        .into_iter()
                        .flat_map(|all| all.values())
                        .for_each(|of| keys(of, into)),
                    "meaning" => {}
                    _ => keys(value, into),
                }
            }),
            Value::Array(items) => items.iter().for_each(|item| keys(item, into)),
            _ => {}
        }
    }
    let document = include_str!("../../../../docs/json.md");
    let chapter = document.split("\n## ").find(|part| part.starts_with("analyze")).expect("the chapter");
    let mut all = Vec::new();
    keys(&json::analysis(&analysed(&files())), &mut all);
    assert!(all.len() > 100);
    for key in all {
        let told =
            ["`KEY`", ".KEY`", "`KEY[]`", ".KEY[]`", "KEY[].", "`KEY."].map(|form| form.replace("KEY", &key));
        assert!(told.iter().any(|told| chapter.contains(told.as_str())), "{key}");
    }
}

#[test]
fn a_page_draws_the_file_of_a_finding_with_what_was_found_and_what_is_not_known() {
    let files = files();
    let analysed = analysed(&files);
    let chosen = html::worth_a_chart(&analysed.sources, 1);
    let path = analysed.sources[chosen[0].0].findings[chosen[0].1].path.clone();
    assert_eq!(path.as_deref(), Some(files[0].file.path.as_str()));
    let course = FindingCourse {
        source: chosen[0].0,
        finding: chosen[0].1,
        course: course("process:812"),
        file: files[0].clone(),
    };
    let page = html::analysis(&analysed, &[course], "headroom analyze");
    for words in ["what was found", "not known", "Outstanding I/Os (N)", "bad news", "reads"] {
        assert!(page.contains(words), "{words}");
    }
    assert_eq!(page.matches("<svg").count(), 4, "two charts, each for two widths");
}

#[test]
fn a_percentile_is_told_as_at_most_in_every_format_and_only_where_there_is_a_histogram() {
    let mut analysed = analysed(&files());
    assert!(!text::analysis(&analysed, &STYLE).contains("p99 of"));
    let mut latencies = Latencies::default();
    (0..1000).for_each(|at| latencies.read.record(if at < 980 { 2 * MS } else { 30 * MS }));
    analysed.sources[0].add_latencies(0, &latencies);
    // 30 ms lies in the last quarter of 2^24 to 2^25 ns.
    let at_most = (1_u64 << 25) - 1;
    let told = text::analysis(&analysed, &STYLE);
    assert!(told.contains("reads at most 33.6 ms") && !told.contains("syncs at most"), "{told}");
    let value = json::analysis(&analysed);
    let busy = &value["sources"][0]["busiest"];
    assert_eq!(busy[0]["p99_at_most_ns"]["read_ns"], at_most);
    assert_eq!(
        (&busy[0]["p99_at_most_ns"]["write_ns"], &busy[1]["p99_at_most_ns"]["sync_ns"]),
        (&Value::Null, &Value::Null)
    );
    let fact = format!("p99 of the whole stretch, at most={at_most} ns");
    let rows = csv::analysis(&analysed);
    let with_it: Vec<&str> = rows.lines().filter(|row| row.contains(&fact)).collect();
    assert!(!with_it.is_empty() && with_it.iter().all(|row| row.contains("16397,read,")), "{rows}");
    assert!(html::analysis(&analysed, &[], "headroom analyze").contains(">33.6<"));
}
