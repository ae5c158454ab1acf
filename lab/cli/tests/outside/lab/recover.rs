//! `headroom lab recover`: the same crashed image comes back whole in every way, and what it takes is counted.

use super::{directory, is_empty, is_root};
use programs::Headroom;
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const WAYS: [&str; 5] = ["instant", "wide", "mapped", "prefetch", "serial"];

fn recover(headroom: &Headroom, dir: &Path, arguments: &[&str]) -> Value {
    headroom.json(&[&["lab", "recover", dir.to_str().unwrap()], arguments].concat())
}

fn result<'a>(answer: &'a Value, engine: &str, strategy: &str) -> &'a Value {
    let results = answer["results"].as_array().unwrap_or_else(|| panic!("{answer:#}"));
    let found = results.iter().find(|result| result["engine"] == engine && result["strategy"] == strategy);
    found.unwrap_or_else(|| panic!("{engine} {strategy}: {answer:#}"))
}

/// Of a server of our own; `None`, after saying so, where it is not installed, which the answer then says too.
fn server<'a>(answer: &'a Value, engine: &str) -> Option<&'a Value> {
    let out = answer["left_out"].as_array().unwrap().iter().find(|out| out["engine"] == engine);
    if let Some(out) = out {
        assert!(!out["why"].as_str().unwrap().is_empty(), "{out:#}");
        println!("skipped: no {engine} here");
        return None;
    }
    Some(result(answer, engine, "own"))
}

#[track_caller]
fn number(result: &Value, key: &str) -> f64 {
    result[key].as_f64().unwrap_or_else(|| panic!("{key}: {result:#}"))
}

#[test]
fn every_way_brings_the_same_image_back_and_counts_what_it_takes() {
    let (headroom, dir) = (Headroom::new(), directory());
    let page = dir.path().join("recovery.html");
    let small = ["--log", "3M", "--pages", "500", "--html", page.to_str().unwrap()];
    let answer = recover(&headroom, dir.path(), &small);
    for way in WAYS {
        let result = result(&answer, "pagestore", way);
        let of = |key| number(result, key);
        assert_eq!((of("pages"), of("page_bytes")), (500.0, 4096.0), "{way}");
        assert!(of("log_bytes") >= 3.0 * 1_048_576.0 && of("commits") >= 10.0, "{result:#}");
        // A page of each commit, and all 64 of the last.
        assert!(of("pages_compared") >= 64.0, "{result:#}");
        assert!(of("opened_ms") <= of("first_read_ms") && of("first_read_ms") <= of("first_write_ms"));
        assert!(of("first_write_ms") <= of("full_recovery_s") * 1e3 + 1.0);
        assert!(of("write_bytes") >= 500.0 * 4096.0, "every page was written: {result:#}");
        assert_eq!(of("ios"), of("reads") + of("writes") + of("syncs"));
        assert!(of("n") > 0.0 && of("n") <= of("n_max"), "{result:#}");
    }
    let serial = result(&answer, "pagestore", "serial");
    // One page a write, and the reads of the log are small; a sync for each journal file. Few others look in at the end.
    assert!(number(serial, "writes") >= 500.0 && number(serial, "syncs") >= 8.0, "{serial:#}");
    assert!(number(serial, "n") < 1.5, "{serial:#}");
    let wide = result(&answer, "pagestore", "wide");
    assert!(number(wide, "writes") < 500.0 && number(wide, "n_max") > 4.0, "neighbours together: {wide:#}");
    let instant = result(&answer, "pagestore", "instant");
    assert!(number(instant, "first_read_ms") < number(serial, "first_read_ms"), "{answer:#}");

    let sqlite = result(&answer, "sqlite-wal", "own");
    assert_eq!(number(sqlite, "pages"), 500.0);
    assert!(
        number(sqlite, "writes") >= 500.0 && number(sqlite, "read_bytes") >= 500.0 * 4096.0,
        "{sqlite:#}"
    );
    let notes = answer["notes"].to_string();
    for engine in ["redb", "lmdb", "rocksdb"] {
        if notes.contains(&format!("{engine} was left out")) {
            assert_ne!(engine, "redb", "it is a part of this program: {notes}");
            println!("skipped: no {engine} here");
            continue;
        }
        let result = result(&answer, engine, "own");
        assert!(number(result, "pages_compared") >= 64.0, "{result:#}");
        match engine {
            "rocksdb" => assert_eq!(result["pages"]["unknown"], "not-counted", "{result:#}"),
            _ => assert_eq!((number(result, "pages"), number(result, "log_bytes")), (0.0, 0.0), "no log"),
        }
    }
    for (engine, page_bytes) in [("postgres", 8192.0), ("mariadb", 16384.0)] {
        let Some(server) = server(&answer, engine) else { continue };
        assert!(number(server, "pages") > 100.0 && number(server, "pages_compared") >= 64.0, "{server:#}");
        assert_eq!(number(server, "page_bytes"), page_bytes);
        if is_root() {
            // It wrote each of its pages once at least.
            let least = number(server, "pages") * page_bytes;
            assert!(number(server, "write_bytes") >= least && number(server, "syncs") > 0.0, "{server:#}");
        } else {
            assert!(server["ios"]["unknown"] == "not-counted", "{server:#}");
        }
    }
    let page = std::fs::read_to_string(&page).unwrap();
    std::fs::remove_file(dir.path().join("recovery.html")).unwrap();
    assert!(page.contains("pagestore, instant") && page.matches("<svg").count() == 2, "a chart, twice");
    assert!(is_empty(dir.path()), "nothing stays");
}

/// A small recovery on an emulated disk; `None`, after saying so, where such a disk cannot be made.
fn emulated(headroom: &Headroom, dir: &Path, latency: &str, more: &[&str]) -> Option<Value> {
    let small = ["--emulate", "wide", "--latency", latency, "--pages", "192", "--log", "900K", "--json"];
    let output = headroom.run(&[&["lab", "recover", dir.to_str().unwrap()], &small[..], more].concat());
    let said = String::from_utf8_lossy(&output.stderr);
    if said.contains("/dev/fuse") || said.contains("loop") {
        println!("skipped: no loop devices or FUSE here: {said}");
        return None;
    }
    Some(serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{said}")))
}

#[test]
fn on_a_wide_but_slow_disk_wide_is_many_times_as_fast_as_serial() {
    if !is_root() {
        return;
    }
    let (headroom, dir) = (Headroom::new(), directory());
    let ways = ["--engine", "pagestore", "--strategy", "wide,serial"];
    let Some(answer) = emulated(&headroom, dir.path(), "4ms", &ways) else { return };
    assert_eq!(answer["emulated"]["width"], 64);
    let of = |way, key| number(result(&answer, "pagestore", way), key);
    let factor = of("serial", "full_recovery_s") / of("wide", "full_recovery_s");
    assert!(factor >= 5.0, "{factor}: {answer:#}");
    // Each of its I/Os takes the latency, sequentially.
    assert!(of("serial", "full_recovery_s") >= of("serial", "writes") * 0.004, "{answer:#}");
    assert!(is_empty(dir.path()), "nothing stays");
    assert!(disks(&headroom, dir.path()).is_empty());
}

#[test]
fn servers_are_recovered_on_such_a_disk_too() {
    if !is_root() {
        return;
    }
    let (headroom, dir) = (Headroom::new(), directory());
    let engines = ["--engine", "postgres,mariadb,redb,lmdb,rocksdb"];
    let Some(answer) = emulated(&headroom, dir.path(), "2ms", &engines) else { return };
    assert!(number(result(&answer, "redb", "own"), "ios") > 0.0, "{answer:#}");
    for engine in ["lmdb", "rocksdb", "postgres", "mariadb"] {
        let Some(server) = server(&answer, engine) else { continue };
        assert!(number(server, "pages_compared") >= 64.0, "{server:#}");
        // Its log was read there, which was not cached, so each read waited for the disk.
        assert!(number(server, "reads") > 0.0 && number(server, "writes") > 0.0, "{server:#}");
        assert!(number(server, "stall_ns") >= 2e6, "{server:#}");
    }
    assert!(is_empty(dir.path()), "nothing stays");
}

#[test]
fn an_engine_that_is_not_here_has_a_row_that_says_so() {
    let (headroom, dir) = (Headroom::new(), directory());
    let arguments = ["lab", "recover", dir.path().to_str().unwrap(), "--log", "1M", "--pages", "100"];
    let mut without = headroom.command(&[&arguments[..], &["--engine", "pagestore,mariadb"]].concat());
    let output = without.env("PATH", "/nowhere").output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(3), "it was asked for: {said}");
    let row = said.lines().find(|line| line.trim_start().starts_with("mariadb  ")).expect("a row");
    assert!(row.contains("left out"), "{said}");
    assert!(said.contains("mariadb was left out: there is no MariaDB on this machine"), "{said}");
    assert!(is_empty(dir.path()), "nothing stays");
}

/// The processes that have `dir` in their command line, the experiment itself apart.
fn writers(dir: &Path) -> usize {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|process| std::fs::read_to_string(process.path().join("cmdline")).ok());
    lines.filter(|line| line.contains("recover-writer") && line.contains(dir.to_str().unwrap())).count()
}

#[test]
fn what_is_ended_or_killed_leaves_no_writer_and_is_cleaned() {
    let (headroom, dir) = (Headroom::new(), directory());
    for signal in ["INT", "KILL"] {
        let arguments = ["lab", "recover", dir.path().to_str().unwrap(), "--log", "256M", "--json"];
        let mut running = headroom.command(&[&arguments[..], &["--engine", "pagestore"]].concat());
        let mut running = running.stdout(Stdio::piped()).spawn().unwrap();
        let began = Instant::now();
        while writers(dir.path()) == 0 {
            assert!(began.elapsed() < Duration::from_secs(60) && running.try_wait().unwrap().is_none());
            std::thread::sleep(Duration::from_millis(10));
        }
        let kill = ["-s", signal, &running.id().to_string()];
        assert!(Command::new("kill").args(kill).status().unwrap().success());
        let output = running.wait_with_output().unwrap();
        while writers(dir.path()) > 0 {
            assert!(began.elapsed() < Duration::from_secs(60), "its writer goes on after {signal}");
            std::thread::sleep(Duration::from_millis(10));
        }
        match signal {
            "INT" => {
                assert_eq!(output.status.code(), Some(130));
                let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
                assert_eq!(answer["results"].as_array().unwrap().len(), 0);
            }
            _ => {
                assert!(!is_empty(dir.path()));
                assert!(headroom.run(&["lab", "clean", dir.path().to_str().unwrap()]).status.success());
            }
        }
        assert!(is_empty(dir.path()), "{signal}");
    }
}

/// The devices on record whose files lie in `dir`, or did.
fn disks(headroom: &Headroom, dir: &Path) -> Vec<String> {
    let luns = headroom.json(&["lab", "luns", "list"]);
    let luns = luns["luns"].as_array().unwrap().iter();
    let ours = luns.filter(|lun| lun["file"].as_str().is_some_and(|file| Path::new(file).starts_with(dir)));
    ours.map(|lun| lun["device"].as_str().unwrap_or_default().to_owned()).collect()
}

/// Whether a thread of that process has mounted something below `dir`, which the others do not see.
fn has_mounted(pid: u32, dir: &Path) -> bool {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let mut mounts =
        threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("mountinfo")).ok());
    mounts.any(|mounts| mounts.contains(dir.to_str().unwrap()))
}

/// Whether any process has a file open that lies in `dir`, or did.
fn is_held(dir: &Path) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let mut files =
        processes.flat_map(|process| std::fs::read_dir(process.path().join("fd")).into_iter().flatten());
    files.any(|file| {
        file.and_then(|file| std::fs::read_link(file.path())).is_ok_and(|file| file.starts_with(dir))
    })
}

#[test]
fn the_disk_of_one_that_was_killed_is_cleaned_or_told_with_who_holds_it() {
    if !is_root() {
        return;
    }
    let (headroom, dir) = (Headroom::new(), directory());
    let clean = || headroom.run(&["lab", "clean", dir.path().to_str().unwrap(), "--json"]);
    for held in [false, true] {
        let arguments = ["lab", "recover", dir.path().to_str().unwrap(), "--emulate", "wide"];
        let small = ["--engine", "pagestore", "--strategy", "serial", "--log", "8M", "--pages", "500"];
        let mut running = headroom.command(&[&arguments[..], &small].concat());
        let mut running = running.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let began = Instant::now();
        while !has_mounted(running.id(), dir.path()) {
            assert!(began.elapsed() < Duration::from_secs(60));
            if running.try_wait().unwrap().is_some() {
                let said = running.wait_with_output().unwrap().stderr;
                let said = String::from_utf8_lossy(&said);
                assert!(said.contains("/dev/fuse") || said.contains("loop"), "{said}");
                println!("skipped: no loop devices or FUSE here: {said}");
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        running.kill().unwrap();
        running.wait().unwrap();
        let left = disks(&headroom, dir.path());
        assert_eq!(left.len(), 1, "it was killed in the middle");
        assert!(is_held(dir.path()), "its server goes on");

        if held {
            let holder = std::fs::File::open(&left[0]).unwrap();
            let output = clean();
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(3), "{said}");
            assert!(said.contains(&format!("cannot remove {}", left[0])), "{said}");
            assert!(said.contains(&format!("held open by process {}", std::process::id())), "{said}");
            assert!(said.contains("try: "), "{said}");
            assert_eq!(disks(&headroom, dir.path()), left, "it can still be found");
            drop(holder);
        }
        let output = clean();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(answer["disks_removed"], serde_json::json!(left), "{answer:#}");
        assert!(is_empty(dir.path()) && disks(&headroom, dir.path()).is_empty());
        assert!(!is_held(dir.path()), "its server has ended");
    }
}

#[test]
fn wrong_words_and_too_little_room_are_told_apart() {
    let (headroom, dir) = (Headroom::new(), directory());
    let run = |arguments: &[&str]| {
        headroom.run(&[&["lab", "recover", dir.path().to_str().unwrap()], arguments].concat())
    };
    for wrong in [
        &["--pages", "10"][..],
        &["--log", "0"],
        &["--pages", "1000", "--data", "1M"],
        &["--strategy", "own"],
        &["--strategy", "wide", "--engine", "postgres,redb"],
        &["--engine", "oracle"],
        &["--latency", "5ms"],
        &["--emulate", "narrow"],
    ] {
        assert_eq!(run(wrong).status.code(), Some(2), "{wrong:?}");
    }
    let refused = run(&["--log", "1G", "--data", "4T", "--engine", "pagestore"]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(3), "{said}");
    assert!(
        said.contains("needed for 1 GiB of log and a data file of 4 TiB") && said.contains("free"),
        "{said}"
    );
    assert!(is_empty(dir.path()));
}

#[test]
fn who_may_count_nothing_is_told_so_once_and_what_was_written_is_said() {
    let (headroom, dir) = (Headroom::new(), directory());
    let program = programs::built().join("headroom");
    // SAFETY: it has no arguments and touches nothing.
    let mut bare = if unsafe { libc::geteuid() } == 0 {
        // Root without what makes it root.
        let mut bare = Command::new("setpriv");
        bare.args(["--bounding-set=-all", "--inh-caps=-all"]).arg(program);
        bare
    } else {
        Command::new(program)
    };
    bare.args(["lab", "recover", dir.path().to_str().unwrap(), "--engine", "redb,lmdb,rocksdb"]);
    bare.args(["--pages", "5000", "--log", "1M", "--history"]).arg(headroom.history());
    let output = bare.output().expect("setpriv is installed");
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(said.matches("they are not counted").count(), 1, "{said}");
    assert!(!said.starts_with("5,000 pages"), "{said}");
    assert!(said.contains("before all 5,000 were written"), "{said}");
}
