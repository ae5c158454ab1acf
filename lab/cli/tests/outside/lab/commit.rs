//! `headroom lab commit`: what it counts is what strace and the servers themselves count, and it leaves nothing.

use super::{directory, is_empty, is_root};
use programs::Headroom;
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use testbed::{MariadbServer, PostgresServer};

fn commit(headroom: &Headroom, dir: &Path, arguments: &[&str]) -> Value {
    headroom.json(&[&["lab", "commit", dir.to_str().unwrap()], arguments].concat())
}

/// A figure of the step with that engine and batch.
fn figure(answer: &Value, engine: &str, batch: u64, key: &str) -> u64 {
    let steps = answer["results"].as_array().unwrap_or_else(|| panic!("{answer:#}"));
    let step = steps.iter().find(|step| step["engine"] == engine && step["batch"] == batch);
    let value = step.map(|step| &step[key]).and_then(Value::as_u64);
    value.unwrap_or_else(|| panic!("{engine} {batch} {key}: {answer:#}"))
}

/// The answer of an engine's 40 commits, and these system calls of it, a line each as strace shows them. `None`, after
/// saying so, where there is no strace.
fn traced(engine: &str, calls: &str) -> Option<(Value, String)> {
    if Command::new("strace").arg("-V").output().is_err() {
        println!("skipped: no strace here");
        return None;
    }
    let (headroom, dir) = (Headroom::new(), directory());
    let trace = tempfile::NamedTempFile::new().unwrap();
    let step = ["lab", "commit", dir.path().to_str().unwrap(), "--rows", "40", "--batch", "1", "--json"];
    let ours = headroom.command(&[&step[..], &["--engine", engine]].concat());
    let mut strace = Command::new("strace");
    strace.args(["-f", "--seccomp-bpf", "-y", "-e", &format!("trace={calls}"), "-o"]).arg(trace.path());
    let output = strace.arg(ours.get_program()).args(ours.get_args()).output().unwrap();
    assert!(is_empty(dir.path()), "nothing stays");
    let answer = serde_json::from_slice(&output.stdout).unwrap();
    Some((answer, std::fs::read_to_string(trace.path()).unwrap()))
}

#[test]
fn sqlite_s_log_writes_are_the_system_calls_that_strace_sees() {
    let Some((answer, text)) = traced("sqlite-wal", "pwrite64,fdatasync,fsync") else { return };
    let calls = |call: &str| {
        let of_log = text.lines().filter(|line| line.contains("numbers.db-wal") && line.contains(call));
        of_log.count() as u64
    };
    // Before the step the table is made, and its log written back: a header and a frame or two, and their syncs.
    let (writes, syncs) = (calls("pwrite64("), calls("sync("));
    let (ours, our_syncs) =
        (figure(&answer, "sqlite-wal", 1, "log_writes"), figure(&answer, "sqlite-wal", 1, "log_syncs"));
    assert!(ours <= writes && writes <= ours + 8, "{ours} and {writes}: {text}");
    assert!(our_syncs <= syncs && syncs <= our_syncs + 4, "{our_syncs} and {syncs}");
    assert!(
        ours >= 80 && our_syncs >= 40,
        "each commit is a frame of two writes, and a sync: {ours} {our_syncs}"
    );
}

#[test]
fn the_page_store_writes_its_log_once_a_commit_as_strace_sees_it() {
    let Some((answer, text)) = traced("pagestore", "pwrite64") else { return };
    assert_eq!(figure(&answer, "pagestore", 1, "log_writes"), 40, "{answer:#}");
    let of_log = text.lines().filter(|line| line.contains("/pagestore/1/log>"));
    // Before the step: the log is filled with zeros, 256 KiB each, and the store's and the table's own commits are written.
    let writes = of_log.filter(|line| !line.contains(", 262144, ")).count();
    assert!((40..=46).contains(&writes), "{writes}: {text}");
}

#[test]
fn each_embedded_engine_is_counted_a_commit_and_those_that_are_not_here_are_told() {
    let (headroom, dir) = (Headroom::new(), directory());
    let engines = ["--engine", "pagestore,redb,lmdb,rocksdb", "--durability", "full,delayed"];
    let answer =
        commit(&headroom, dir.path(), &[&engines[..], &["--rows", "50", "--batch", "1,all"]].concat());
    assert!(is_empty(dir.path()), "nothing stays");
    let (notes, root) = (answer["notes"].to_string(), is_root());
    let step = |engine: &str, batch: u64, durability: &str| -> Option<Value> {
        let mut steps = answer["results"].as_array().unwrap().iter();
        let found = steps.find(|step| {
            step["engine"] == engine && step["batch"] == batch && step["durability"] == durability
        });
        found.cloned()
    };
    for (engine, package) in
        [("pagestore", None), ("redb", None), ("lmdb", Some("liblmdb0")), ("rocksdb", Some("librocksdb"))]
    {
        let Some(each) = step(engine, 1, "full") else {
            let package = package.unwrap_or_else(|| panic!("{engine} is always here: {answer:#}"));
            assert!(notes.contains(&format!("{engine} was left out")) && notes.contains(package), "{notes}");
            println!("skipped: no {engine} here");
            continue;
        };
        let (all, delayed) = (step(engine, 50, "full").unwrap(), step(engine, 1, "delayed").unwrap());
        assert_eq!((each["commits"].as_u64(), all["commits"].as_u64()), (Some(50), Some(1)));
        if engine != "pagestore" && !root {
            assert!(notes.contains(&format!("the writes and syncs of {engine} are not counted")), "{notes}");
            continue;
        }
        let figure =
            |of: &Value, key: &str| of[key].as_u64().unwrap_or_else(|| panic!("{engine} {key}: {of:#}"));
        match engine {
            "pagestore" | "rocksdb" => {
                assert_eq!(figure(&each, "log_writes"), 50, "{each:#}");
                assert_eq!(figure(&all, "log_writes"), 1, "{all:#}");
                assert_eq!(figure(&each, "data_writes"), 0, "{each:#}");
            }
            _ => {
                assert_eq!((figure(&each, "log_writes"), figure(&each, "log_syncs")), (0, 0), "{each:#}");
                assert!(figure(&each, "data_writes") >= 100, "pages, and the one that names them: {each:#}");
                assert!(figure(&all, "data_writes") < 25, "{all:#}");
                assert_eq!((figure(&each, "data_syncs"), figure(&all, "data_syncs")), (50, 1));
            }
        }
        match engine {
            "pagestore" => assert!(figure(&delayed, "log_writes") <= 50, "{delayed:#}"),
            "rocksdb" => assert_eq!(
                (figure(&each, "log_syncs"), figure(&delayed, "log_syncs")),
                (50, 1),
                "delayed commits are synced when all is done: {delayed:#}"
            ),
            "redb" => assert_eq!(figure(&delayed, "data_syncs"), 1, "{delayed:#}"),
            // Its pages are synced all the same.
            _ => assert!((50..=51).contains(&figure(&delayed, "data_syncs")), "{delayed:#}"),
        }
    }
    assert!(
        answer["sentences"].to_string().contains("pagestore: 50 commits wait for 50 log writes of 4"),
        "{answer:#}"
    );
}

#[test]
fn one_transaction_asks_for_a_fraction_of_the_log_writes_and_of_the_time() {
    let (headroom, dir) = (Headroom::new(), directory());
    let page = dir.path().join("commits.html");
    let engines = ["--engine", "sqlite-rollback,sqlite-wal", "--durability", "full,delayed"];
    let steps = ["--rows", "300", "--batch", "1,all", "--html", page.to_str().unwrap()];
    let answer = commit(&headroom, dir.path(), &[engines, [steps[0], steps[1], steps[2], steps[3]]].concat());
    for engine in ["sqlite-rollback", "sqlite-wal"] {
        let of = |batch, key| figure(&answer, engine, batch, key);
        assert_eq!((of(1, "commits"), of(300, "commits")), (300, 1));
        assert!(of(1, "log_writes") >= 300 && of(300, "log_writes") < 30, "{answer:#}");
        assert!(of(1, "syncs") >= 300 && of(300, "syncs") < 10, "{answer:#}");
        assert!(of(1, "log_wait_ns") > of(300, "log_wait_ns"), "{answer:#}");
    }
    // Syncs of the data belong to each commit with a rollback journal, and to no commit with a log.
    assert!(figure(&answer, "sqlite-rollback", 1, "data_syncs") >= 300);
    assert!(figure(&answer, "sqlite-wal", 1, "data_syncs") < 10);
    let delayed: Vec<&Value> =
        answer["results"].as_array().unwrap().iter().filter(|step| step["durability"] == "delayed").collect();
    assert_eq!(delayed.len(), 2, "a rollback journal cannot be delayed: {answer:#}");
    assert!(
        delayed.iter().all(|step| step["engine"] == "sqlite-wal" && step["log_syncs"].as_u64() < Some(10))
    );
    assert!(answer["notes"].to_string().contains("sqlite-rollback has no delayed durability"));

    let text = headroom.run(
        &[&["lab", "commit", dir.path().to_str().unwrap(), "--engine", "sqlite-wal"], &steps[..]].concat(),
    );
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(text.contains("300 commits wait for 601 log writes of 2.0 KiB"), "{text}");
    let page = std::fs::read_to_string(&page).unwrap();
    assert!(
        page.contains("rows a commit, log scale") && page.matches("<svg").count() == 4,
        "two charts, twice each"
    );
}

#[test]
fn postgres_and_mariadb_of_our_own_are_counted_by_the_kernel_and_leave_nothing() {
    let (headroom, dir) = (Headroom::new(), directory());
    let answer =
        commit(&headroom, dir.path(), &["--engine", "postgres,mariadb", "--rows", "60", "--batch", "1,all"]);
    let left_out = answer["notes"].to_string();
    assert!(is_empty(dir.path()), "nothing stays");
    for (engine, program) in [("postgres", "PostgreSQL"), ("mariadb", "MariaDB")] {
        if left_out.contains(&format!("no {program} on this machine")) {
            println!("skipped: no {program} here");
        } else if is_root() {
            for (batch, commits) in [(1, 60), (60, 1)] {
                let of = |key| figure(&answer, engine, batch, key);
                assert!((commits..commits + 10).contains(&of("log_syncs")), "{engine} {batch}: {answer:#}");
                assert!((commits..commits + 10).contains(&of("log_writes")), "{engine} {batch}: {answer:#}");
                assert!(of("log_write_bytes") >= commits * 512, "{engine} {batch}: {answer:#}");
            }
        } else {
            assert!(answer["results"].to_string().contains("not-counted"), "{answer:#}");
        }
    }
}

#[test]
fn a_postgres_that_is_named_counts_the_same_and_keeps_its_own() {
    let Some(server) = PostgresServer::start(15) else { return };
    let (headroom, dir) = (Headroom::new(), directory());
    let source = format!("postgres:{}", server.connection());
    let arguments = ["--engine", "postgres", "--source", &source, "--rows", "50", "--batch", "1"];
    let syncs = || server.sql("SELECT pg_stat_force_next_flush(); SELECT wal_sync FROM pg_stat_wal");
    let number = |text: String| text.trim().parse::<u64>().unwrap();
    let before = number(syncs());
    let answer = commit(&headroom, dir.path(), &arguments);
    if is_root() {
        let began = Instant::now();
        let ours = figure(&answer, "postgres", 1, "log_syncs");
        let mut theirs = number(syncs()) - before;
        while theirs < ours && began.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(50));
            theirs = number(syncs()) - before;
        }
        assert!(ours >= 50 && (ours..ours + 40).contains(&theirs), "{ours} of {theirs}");
    }
    let schemas = "SELECT count(*) FROM pg_namespace WHERE nspname = 'headroom_lab'";
    assert_eq!(server.sql(schemas), "0");
    // A schema with the name and without the mark belongs to somebody else.
    server.sql("CREATE SCHEMA headroom_lab; CREATE TABLE headroom_lab.precious (n int)");
    let refused = headroom.run(&[&["lab", "commit", dir.path().to_str().unwrap()], &arguments[..]].concat());
    let said = String::from_utf8_lossy(&refused.stdout).into_owned();
    assert_eq!(refused.status.code(), Some(3), "{said}");
    assert!(said.contains("no mark of Headroom's"), "{said}");
    assert_eq!(server.sql("SELECT count(*) FROM headroom_lab.precious"), "0");
}

#[test]
fn a_mariadb_that_is_named_keeps_its_own() {
    let Some(server) = MariadbServer::start(None, &[]) else { return };
    let (headroom, dir) = (Headroom::new(), directory());
    let source = server.url();
    let arguments = ["--engine", "mariadb", "--source", &source, "--rows", "30", "--batch", "1"];
    let both = [&arguments[..], &["--durability", "full,delayed"]].concat();
    let answer = commit(&headroom, dir.path(), &both);
    assert_eq!(answer["results"].as_array().unwrap().len(), 1, "its settings stay as they are: {answer:#}");
    assert_eq!(server.sql("SHOW DATABASES LIKE 'headroom%'"), "");
    server.sql("CREATE DATABASE headroom_lab; CREATE TABLE headroom_lab.precious (n int)");
    let refused = headroom.run(&[&["lab", "commit", dir.path().to_str().unwrap()], &arguments[..]].concat());
    assert_eq!(refused.status.code(), Some(3), "{}", String::from_utf8_lossy(&refused.stdout));
    assert_eq!(server.sql("SELECT count(*) FROM headroom_lab.precious"), "0");
}

/// The processes whose working directory is below.
fn processes_below(dir: &Path) -> usize {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let directories = processes.filter_map(|process| std::fs::read_link(process.path().join("cwd")).ok());
    directories.filter(|directory| directory.starts_with(dir)).count()
}

#[test]
fn what_a_killed_run_leaves_is_no_server_and_is_cleaned() {
    let (headroom, dir) = (Headroom::new(), directory());
    let arguments = ["lab", "commit", dir.path().to_str().unwrap(), "--rows", "1000000", "--batch", "1"];
    let engine = if PostgresServer::start(15).is_some() { "postgres" } else { "sqlite-wal" };
    let mut running = headroom.command(&[&arguments[..], &["--engine", engine]].concat());
    let mut running = running.stdout(Stdio::null()).spawn().unwrap();
    let began = Instant::now();
    let entry = dir.path().join("headroom.tmp/headroom-lab-commit").join(engine);
    let works = || match engine {
        "postgres" => entry.join("data/postmaster.pid").exists() && processes_below(dir.path()) > 3,
        _ => entry.join("1/numbers.db-wal").exists(),
    };
    while !works() {
        assert!(began.elapsed() < Duration::from_secs(60) && running.try_wait().unwrap().is_none());
        std::thread::sleep(Duration::from_millis(20));
    }
    let rights = std::fs::metadata(&entry).unwrap().permissions().mode();
    assert_eq!(rights & 0o007, 0, "no other user gets in: {rights:o}");
    running.kill().unwrap();
    running.wait().unwrap();
    while processes_below(dir.path()) > 0 {
        assert!(began.elapsed() < Duration::from_secs(90), "its server runs on");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(!is_empty(dir.path()));
    assert!(headroom.run(&["lab", "clean", dir.path().to_str().unwrap()]).status.success());
    assert!(is_empty(dir.path()));
}

#[test]
fn ctrl_c_keeps_the_steps_that_were_done() {
    let (headroom, dir) = (Headroom::new(), directory());
    let arguments =
        ["lab", "commit", dir.path().to_str().unwrap(), "--rows", "200000", "--batch", "all,1", "--json"];
    let mut running = headroom.command(&[&arguments[..], &["--engine", "sqlite-rollback"]].concat());
    let running = running.stdout(Stdio::piped()).spawn().unwrap();
    let began = Instant::now();
    let second = dir.path().join("headroom.tmp/headroom-lab-commit/sqlite-rollback/2");
    while !second.exists() {
        assert!(began.elapsed() < Duration::from_secs(60), "the second step does not begin");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(Command::new("kill").args(["-INT", &running.id().to_string()]).status().unwrap().success());
    let output = running.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["results"].as_array().unwrap().len(), 1, "{answer:#}");
    assert_eq!(figure(&answer, "sqlite-rollback", 200_000, "commits"), 1);
    assert!(is_empty(dir.path()));
}

#[test]
fn wrong_words_are_told_apart_from_work_that_cannot_be_done() {
    let (headroom, dir) = (Headroom::new(), directory());
    let code = |arguments: &[&str]| {
        headroom.run(&[&["lab", "commit", dir.path().to_str().unwrap()], arguments].concat()).status.code()
    };
    for wrong in [
        &["--rows", "10", "--batch", "11"][..],
        &["--rows", "0"],
        &["--batch", "0"],
        &["--engine", "oracle"],
        &["--durability", "never"],
        &["--source", "sqlite:/x.db"],
        &["--source", "postgres:host=/nowhere", "--engine", "pagestore,mariadb"],
    ] {
        assert_eq!(code(wrong), Some(2), "{wrong:?}");
    }
    assert_eq!(code(&["--engine", "postgres", "--source", "postgres:host=/nowhere", "--rows", "1"]), Some(3));
    assert!(is_empty(dir.path()));
}

fn bytes_free(dir: &Path) -> u64 {
    let path = std::ffi::CString::new(dir.to_str().unwrap()).unwrap();
    // SAFETY: zeros are a value of it, and the call writes to it alone.
    let mut found: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: both point to what outlives the call.
    assert_eq!(unsafe { libc::statvfs(path.as_ptr(), &mut found) }, 0);
    found.f_bavail * found.f_frsize
}

#[test]
fn rows_that_have_no_room_are_refused_in_words_of_rows() {
    let (headroom, dir) = (Headroom::new(), directory());
    if bytes_free(dir.path()) > 400 << 30 {
        return eprintln!("skipped: there may be room for them here");
    }
    let rows = ["lab", "commit", dir.path().to_str().unwrap(), "--rows", "1000000000"];
    for (engines, remedy) in [
        ("pagestore,sqlite-wal", "try: fewer --rows or engines (--engine), or another directory"),
        ("sqlite-wal", "try: fewer --rows, or another directory"),
    ] {
        let output = headroom.run(&[&rows[..], &["--engine", engines]].concat());
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{said}");
        assert!(said.contains("cannot insert 1,000,000,000 rows in ") && said.contains(remedy), "{said}");
        assert!(is_empty(dir.path()));
    }
}
