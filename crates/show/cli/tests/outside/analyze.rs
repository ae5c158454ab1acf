//! `headroom history analyze` on recordings of a real program.

use programs::{Headroom, built};
use serde_json::Value;
use std::process::Command;

/// A table of some 40 MiB; commits, an index rebuild, and commits again, each between captures.
const SCRIPT: &str = r#"
sqlite3 shop.db >/dev/null <<'END'
PRAGMA journal_mode = WAL;
CREATE TABLE orders (id INTEGER PRIMARY KEY, reference TEXT, note TEXT);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 150000)
INSERT INTO orders SELECT i, printf('%032d', (i * 7919) % 1000003), printf('%0200d', i) FROM n;
CREATE INDEX by_reference ON orders (reference);
END
coproc SHOP { sqlite3 -cmd ".load $HEADROOM_EXTENSION" -cmd ".open shop.db"; }
sql() {
  echo "$1; SELECT 'done';" >&"${SHOP[1]}"
  while read -r answer <&"${SHOP[0]}" && [ "$answer" != done ]; do :; done
}
commits() {
  for n in $(seq 20); do sql "INSERT INTO orders (reference, note) VALUES ('x', '$n')"; done
  sleep 0.3
  headroom history capture --source sqlite:shop.db >/dev/null
}
sql "PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 100000"
commits; commits; commits; commits; commits
sql "REINDEX"
headroom history capture --source sqlite:shop.db >/dev/null
commits; commits; commits
"#;

fn found<'a>(source: &'a Value, kind: &str) -> Option<&'a Value> {
    source["findings"].as_array().unwrap().iter().find(|finding| finding["kind"] == kind)
}

#[test]
fn an_index_rebuild_between_commits_is_recognised_and_the_level_is_kept() {
    if Command::new("sqlite3").arg("-version").output().is_err() {
        eprintln!("skipped: no sqlite3 shell here");
        return;
    }
    let ours = Headroom::new();
    // Not in /tmp, which may be memory.
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = format!("{}:{}", built().display(), std::env::var("PATH").unwrap());
    let data = place.path().join("data");
    let ran = Command::new("bash")
        .args(["-euo", "pipefail", "-c", SCRIPT])
        .current_dir(place.path())
        .env("PATH", &path)
        .env("XDG_DATA_HOME", &data)
        .env("HEADROOM_EXTENSION", built().join("libheadroom_sqlite.so"))
        .output()
        .unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let history = data.join("headroom/history.db");
    std::fs::copy(&history, ours.history()).unwrap();

    // A second for all of it: whatever this machine's storage is, that level is kept.
    let level = ["history", "analyze", "--service-level", "1000/1000/1000"];
    let answer = ours.json(&level);
    let source = &answer["sources"][0];
    let rebuild = found(source, "index-rebuild").unwrap_or_else(|| panic!("{answer:#}"));
    assert!(rebuild["path"].as_str().unwrap().ends_with("shop.db"), "{rebuild:#}");
    assert!(rebuild["text"].as_str().unwrap().starts_with("looks like an index rebuild"), "{rebuild:#}");
    let fact = |what: &str| {
        let facts = rebuild["facts"].as_array().unwrap();
        facts.iter().find(|fact| fact["what"] == what).unwrap()["value"].as_f64().unwrap()
    };
    assert!((0.5..3.0).contains(&fact("read, of its size")), "{rebuild:#}");
    assert!(fact("log written") > 3e6 && fact("log written") < 3e7, "{rebuild:#}");
    // It lies between the captures around it: the fifth and the sixth.
    let captures = ours.json(&["history", "captures"]);
    let mut taken: Vec<&str> =
        captures.as_array().unwrap().iter().map(|row| row["capture_date"].as_str().unwrap()).collect();
    taken.sort_unstable();
    taken.dedup();
    assert_eq!(rebuild["when"].as_array().unwrap().len(), 1);
    let until = rebuild["when"][0]["until_unix_ns"].as_u64().unwrap();
    let instant: Vec<u64> = taken.iter().map(|at| nanoseconds(at)).collect();
    assert_eq!(until, instant[5], "{taken:?}");
    let kept = found(source, "service-level").unwrap();
    assert_eq!(kept["weight"], "good", "{kept:#}");
    assert!(kept["text"].as_str().unwrap().starts_with("storage is acceptable for its service level"));
    assert_eq!(
        (&answer["has_problems"], source["coverage"]["captures"].as_u64()),
        (&Value::Bool(false), Some(9))
    );
    assert_eq!(ours.run(&level).status.code(), Some(0));

    // Nothing is quick enough for a microsecond.
    let bad = ours.json(&["history", "analyze", "--service-level", "1000/1000/0.001"]);
    let breach = found(&bad["sources"][0], "breach").unwrap();
    assert!(breach["path"].as_str().unwrap().ends_with("-wal"), "{breach:#}");
    let page = place.path().join("page.html");
    let ended = ours.run(&[
        "history",
        "analyze",
        "--service-level",
        "1000/1000/0.001",
        "--html",
        page.to_str().unwrap(),
    ]);
    assert_eq!(ended.status.code(), Some(1));
    let text = String::from_utf8_lossy(&ended.stdout).into_owned();
    assert!(text.contains("next: batch commits"), "{text}");
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("problem") && page.matches("<svg").count() >= 4);
    let csv = ours.run(&["history", "analyze", "--csv"]);
    let csv = String::from_utf8_lossy(&csv.stdout).into_owned();
    assert!(csv.lines().any(|line| line.contains(",index-rebuild,")), "{csv}");
}

/// Of RFC 3339 text in UTC.
fn nanoseconds(text: &str) -> u64 {
    let at = Command::new("date").args(["-u", "+%s%N", "-d", text]).output().unwrap();
    String::from_utf8_lossy(&at.stdout).trim().parse().unwrap()
}

#[test]
fn a_stretch_without_captures_says_what_there_is() {
    let ours = Headroom::new();
    drop(history::History::open(&ours.history()).unwrap());
    let empty = ours.run(&["history", "analyze"]);
    assert_eq!(empty.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&empty.stderr).contains("holds no captures"));
    assert_eq!(ours.run(&["history", "analyze", "--from", "yesterday"]).status.code(), Some(2));
}
