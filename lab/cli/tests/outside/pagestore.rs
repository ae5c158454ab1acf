//! A page store that this process has open, as `headroom` sees it from outside.

use ::pagestore::{Durability, Layout, Options, Store, Table};
use programs::Headroom;
use serde_json::{Value, json};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

struct Open {
    store: Store,
    table: Table,
    directory: PathBuf,
    _place: tempfile::TempDir,
}

impl Open {
    fn new() -> Open {
        let place = programs::directory_on_disk(env!("CARGO_TARGET_TMPDIR"));
        let directory = place.path().join("shop");
        let layout = Layout { vlf_bytes: 4 << 20, vlfs: 2, ..Layout::default() };
        let store = Store::create(&directory, layout, Options::default()).unwrap();
        let mut tx = store.write().unwrap();
        let table = tx.create_table("orders").unwrap();
        tx.commit(Durability::Full).unwrap();
        Open { store, table, directory, _place: place }
    }

    fn commit(&self, key: u32) {
        let mut tx = self.store.write().unwrap();
        tx.put(self.table, &key.to_be_bytes(), &[7; 100]).unwrap();
        tx.commit(Durability::Full).unwrap();
    }

    fn path(&self) -> &str {
        self.directory.to_str().unwrap()
    }

    fn source(&self) -> String {
        format!("published:{}", self.path())
    }
}

fn file<'a>(files: &'a Value, kind: &str) -> &'a Value {
    files.as_array().unwrap().iter().find(|file| file["kind"] == kind).unwrap()
}

#[test]
fn a_running_store_is_watched_like_any_other_source() {
    let (ours, open, done) = (Headroom::new(), Open::new(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            (0..).take_while(|_| !done.load(Ordering::Relaxed)).for_each(|key| open.commit(key % 1000));
        });
        let watch = ["watch", "--source", &open.source(), "--once", "--every", "1s", "--json"];
        let output = ours.run(&watch);
        done.store(true, Ordering::Relaxed);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let line: Value = serde_json::from_slice(&output.stdout).unwrap();
        let log = file(&line["files"], "log");
        let count = |key: &str| log[key].as_u64().unwrap();
        assert!(count("writes") > 5 && count("write_bytes") >= 4096 * count("writes"), "{log}");
        let outstanding = log["outstanding"].as_f64().unwrap();
        assert!(
            outstanding > 0.2 && outstanding < 1.1,
            "one thread waits for one write after another: {log}"
        );
        assert_eq!(line["devices"].as_array().unwrap().len(), 1, "{line}");
    });
}

#[test]
fn two_captures_hold_exactly_the_writes_of_the_commits_between() {
    const COMMITS: u32 = 40;
    let (ours, open) = (Headroom::new(), Open::new());
    let capture = |label: &str| {
        let output = ours.run(&["history", "capture", "--source", &open.source(), "--name", label]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    capture("before");
    let before = open.store.stats();
    (0..COMMITS).for_each(|key| open.commit(key));
    let after = open.store.stats();
    capture("after");
    let told = ours.json(&["history", "intervals", "before", "after"]);
    let writes = |kind: &str| {
        let rows = told["intervals"].as_array().unwrap();
        let row = rows.iter().find(|row| row["file"]["kind"] == kind).unwrap();
        row["interval"]["known"]["counters"]["write"].clone()
    };
    assert_eq!(writes("log")["count"], json!(COMMITS), "{told}");
    assert_eq!(writes("log")["bytes"], json!(after.log_write_bytes - before.log_write_bytes));
    assert_eq!(writes("data")["count"], json!(0));
    assert_eq!(told["waits"][0]["waits"], json!(COMMITS), "{told}");
}

#[test]
fn of_a_damaged_log_the_records_before_the_damage_are_told_and_then_the_damage() {
    let (ours, open) = (Headroom::new(), Open::new());
    (0..60).for_each(|key| open.commit(key));
    let path = open.path();
    let whole = ours.json(&["log", "dump", "--files", path]);
    let whole = whole["records"].as_array().unwrap();
    // A commit in the middle, its block flipped on the medium of a copy.
    let lsn = whole.iter().find(|record| record["commit"] == 30).unwrap()["lsn"].as_str().unwrap();
    let block = u64::from_str_radix(lsn.split(':').nth(1).unwrap(), 16).unwrap() * 512;
    let copy = open.directory.with_file_name("copy");
    std::fs::create_dir(&copy).unwrap();
    for file in ["control", "data", "log", "lock"] {
        std::fs::copy(open.directory.join(file), copy.join(file)).unwrap();
    }
    let log = std::fs::OpenOptions::new().write(true).open(copy.join("log")).unwrap();
    // The first virtual log file begins at 8 KiB.
    log.write_all_at(&[0xff; 512], (8 << 10) + block).unwrap();
    let copy = copy.to_str().unwrap();
    let output = ours.run(&["log", "dump", "--json", copy]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("the log is damaged at") && said.contains("try: restore a copy"), "{said}");
    assert!(!said.contains("log dump"), "it is what was asked for: {said}");
    let left: Value = serde_json::from_slice(&output.stdout).unwrap();
    let left = left["records"].as_array().unwrap();
    assert_eq!(left.last().unwrap()["commit"], 29);
    assert_eq!(left.as_slice(), &whole[..left.len()]);
    for what in ["info", "why", "anatomy"] {
        let output = ours.run(&["log", what, copy]);
        assert!(output.status.code() == Some(3) && output.stdout.is_empty(), "{what}");
    }
    for (wrong, code) in [
        (&["--from", "00000002:00000008:0001", "--to", "00000001:00000008:0001"][..], 2),
        (&["--limit", "0"], 2),
        (&["--from", "1:2"], 2),
        (&["--tx", "4000000000"], 0),
    ] {
        let output = ours.run(&[&["log", "dump", "--files", path], wrong].concat());
        assert_eq!(output.status.code(), Some(code), "{wrong:?}");
    }
}

#[test]
fn records_are_printed_as_they_are_met_and_no_more_are_read_than_are_wanted() {
    let (ours, open) = (Headroom::new(), Open::new());
    (0..60).for_each(|key| open.commit(key));
    let dump = |more: &[&str]| {
        let output = ours.run(&[&["log", "dump", "--files", open.path()], more].concat());
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    let all = ours.json(&["log", "dump", "--files", open.path()])["records"].take();
    let all = all.as_array().unwrap();
    let (_, text) = dump(&[]);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), all.len() + 1);
    let first = ours.json(&["log", "dump", "--files", open.path(), "--limit", "5"]);
    assert_eq!(first, json!({"records": all[..5]}));
    let to = all[7]["lsn"].as_str().unwrap();
    let (_, part) = dump(&["--to", to]);
    assert_eq!(part.lines().collect::<Vec<_>>(), lines[..9]);
    let (_, none) = dump(&["--tx", "4000000000"]);
    assert_eq!(none, "the active log has no such record\n");
    let none = ours.json(&["log", "dump", "--files", open.path(), "--tx", "4000000000"]);
    assert_eq!(none, json!({"records": []}));

    // Damage behind what is wanted is not met.
    let lsn = all.last().unwrap()["lsn"].as_str().unwrap();
    let block = u64::from_str_radix(lsn.split(':').nth(1).unwrap(), 16).unwrap() * 512;
    let Open { store, directory, _place, .. } = open;
    let path = directory.to_str().unwrap();
    // As a crash leaves it.
    let copy = directory.with_file_name("copy");
    std::fs::create_dir(&copy).unwrap();
    for file in ["control", "data", "log", "lock"] {
        std::fs::copy(directory.join(file), copy.join(file)).unwrap();
    }
    drop(store);
    let log = std::fs::OpenOptions::new().write(true).open(copy.join("log")).unwrap();
    log.write_all_at(&[0xff; 512], (8 << 10) + block / 2 / 512 * 512).unwrap();
    let copied = copy.to_str().unwrap();
    assert_eq!(ours.run(&["log", "dump", copied]).status.code(), Some(3));
    assert_eq!(ours.run(&["log", "dump", copied, "--limit", "5"]).status.code(), Some(0));

    log.set_len(1 << 20).unwrap();
    let output = ours.run(&["log", "info", copied]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("of which 1048576 bytes are left"), "{said}");
    assert!(Path::new(path).exists());
}

#[test]
fn the_log_of_a_running_store_tells_its_state_who_holds_it_and_where_commits_wait() {
    let (ours, open) = (Headroom::new(), Open::new());
    (0..60).for_each(|key| open.commit(key));
    let log = |what: &str| ours.json(&["log", what, open.path()]);
    let pid = json!(std::process::id());
    let (info, stats) = (log("info"), open.store.stats());
    assert_eq!((&info["running"]["pid"], &info["last_commit"]), (&pid, &json!(stats.last_sequence)));
    assert_eq!((&info["log_writes"], &info["commits"]), (&json!(stats.log_writes), &json!(stats.commits)));
    assert_eq!((&info["vlfs"][0]["status"], &info["vlfs"][1]["status"]), (&json!(2), &json!(0)));
    // The files say the same.
    let files = ours.json(&["log", "info", "--files", open.path()]);
    for key in ["store", "epoch", "redo_lsn", "last_lsn", "last_commit", "pages_to_redo"] {
        assert_eq!(files[key], info[key], "{key}");
    }
    assert_eq!(files["running"], Value::Null);

    let made = ours.json(&["log", "anatomy", open.path(), "--commit", "5"]);
    assert_eq!((&made["commit"], &made["deltas"]), (&json!(5), &json!(1)), "{made}");

    let why = log("why");
    let (page, lsn) = open.store.log_holders().oldest_dirty_page.unwrap();
    assert_eq!(why["oldest_page"], json!({"page": page.0, "lsn": lsn.to_string()}));
    open.store.checkpoint().unwrap();
    let why = log("why");
    assert_eq!((&why["oldest_page"], &why["pages"]), (&Value::Null, &json!(0)));
    assert!(why["last_checkpoint"]["pages"].as_u64().unwrap() > 0, "{why}");

    let anatomy = log("anatomy");
    let times = open.store.commit_times();
    assert_eq!(anatomy["commits"], json!(times.commits()));
    let parts = anatomy["parts"].as_array().unwrap();
    let sum: u64 = parts.iter().map(|part| part["sum_ns"].as_u64().unwrap()).sum();
    assert_eq!(json!(sum), anatomy["whole"]["sum_ns"]);
    let text = ours.run(&["log", "anatomy", open.path()]);
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(text.contains("submitted") && text.contains("acknowledged"), "{text}");

    let doctor = |source: &str| ours.run(&["sources", "doctor", "--source", source]).status.code();
    assert_eq!(doctor(&open.source()), Some(0));
    let Open { store, directory, _place, .. } = open;
    drop(store);
    assert_eq!(doctor(&format!("published:{}", directory.display())), Some(1), "nobody has it open");
    assert_eq!(ours.json(&["log", "info", directory.to_str().unwrap()])["running"], Value::Null);
    let watched = ours.run(&["watch", "--source", &format!("published:{}", directory.display()), "--once"]);
    let said = String::from_utf8(watched.stderr).unwrap();
    assert_eq!(watched.status.code(), Some(3), "{said}");
    assert!(
        said.contains("no running program publishes") && said.contains("while a program has it open"),
        "{said}"
    );
    assert!(Path::new(&directory).exists());
}

#[test]
fn a_page_store_is_found_by_its_directory() {
    let place = programs::directory_on_disk(env!("CARGO_TARGET_TMPDIR"));
    let directory = place.path().join("shop");
    let layout = Layout { vlf_bytes: 4 << 20, vlfs: 2, ..Layout::default() };
    let _store = Store::create(&directory, layout, Options::default()).unwrap();
    let headroom = Headroom::new();
    let scan = headroom.json(&["sources", "discover", "--sample", "200ms"]);
    let found = scan["databases"].as_array().unwrap();
    let source = format!("published:{}", directory.display());
    let one = found.iter().find(|one| one["source"] == source.as_str());
    let one = one.unwrap_or_else(|| panic!("{found:#?}"));
    assert_eq!(
        (one["engine"].as_str(), one["pid"].as_u64()),
        (Some("pagestore"), Some(std::process::id().into()))
    );
    let answer = headroom.json(&["check", "--duration", "1s", "--source", &source]);
    assert_eq!(answer["source"], source.as_str());
}
