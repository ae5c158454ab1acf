//! The counters equal the system calls that strace saw, file by file.

mod workload;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

const MODE: &str = "HEADROOM_TEST_MODE";
const DIR: &str = "HEADROOM_TEST_DIR";

/// The operations on one file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Work {
    reads: u64,
    read_bytes: u64,
    writes: u64,
    write_bytes: u64,
    syncs: u64,
    truncates: u64,
}

/// By path; temporary files under "temp", super-journals without their random part.
type ByFile = BTreeMap<String, Work>;

struct Traced {
    counted: ByFile,
    system_calls: ByFile,
    /// One-byte writes with which SQLite's sorter sizes a temporary file. They bypass the shim.
    sizing_writes: u64,
}

#[test]
fn wal_mode_counts_equal_the_system_calls() {
    let Some(traced) = traced("wal") else { return };
    let log = work(&traced.counted, "main.db-wal");
    assert!(log.writes > 3_000 && log.reads > 100 && log.syncs > 1, "{log:?}");
    check(&traced);
}

#[test]
fn rollback_journal_counts_equal_the_system_calls() {
    let Some(traced) = traced("delete") else { return };
    let journal = work(&traced.counted, "main.db-journal");
    let data = work(&traced.counted, "main.db");
    let temp = traced.counted["temp"];
    assert!(journal.writes > 3_000 && journal.syncs > 1_000, "{journal:?}");
    assert!(data.reads > 1_000 && data.writes > 1_000 && data.syncs > 1_000, "{data:?}");
    assert!(temp.writes > 100 && temp.reads > 10, "{temp:?}");
    check(&traced);
}

#[test]
fn super_journals_and_attached_databases_are_counted() {
    let Some(traced) = traced("attached") else { return };
    assert!(work(&traced.counted, "main.db-mj").writes >= 30);
    assert!(work(&traced.counted, "other.db").writes >= 30);
    check(&traced);
}

#[test]
fn threads_that_share_a_file_lose_no_count() {
    let Some(traced) = traced("threads") else { return };
    let log = work(&traced.counted, "main.db-wal");
    assert!(log.writes > 2_400 && log.reads > 1_000, "{log:?}");
    check(&traced);
}

#[test]
fn a_short_read_counts_the_bytes_that_it_returned() {
    let Some(mut traced) = traced("cut") else { return };
    let data = work(&traced.counted, "main.db");
    assert!(data.reads > 90, "{data:?}");
    // The workload truncated the file itself, not through SQLite.
    let path = traced.counted.keys().find(|path| path.ends_with("main.db")).unwrap().clone();
    traced.system_calls.get_mut(&path).unwrap().truncates -= 1;
    check(&traced);
}

#[test]
#[ignore = "the workload itself: the other tests run it in a child under strace"]
fn the_workload() {
    let argument = |name| std::env::var(name).expect("the other tests say what to run");
    workload::run(&argument(MODE), Path::new(&argument(DIR))).unwrap();
}

fn check(traced: &Traced) {
    let mut system_calls = traced.system_calls.clone();
    if let Some(temp) = system_calls.get_mut("temp") {
        temp.writes -= traced.sizing_writes;
        temp.write_bytes -= traced.sizing_writes;
    }
    for (path, counted) in &traced.counted {
        let seen = system_calls.get(path).copied().unwrap_or_default();
        assert_eq!(*counted, seen, "of {path}: left counted, right seen by strace");
    }
}

fn work(files: &ByFile, name: &str) -> Work {
    let found = files.iter().find(|(path, _)| path.ends_with(&format!("/{name}")));
    *found.unwrap_or_else(|| panic!("{name} was not counted: {files:?}")).1
}

/// Runs the workload under strace; `None`, with a message, where strace is not installed.
fn traced(mode: &str) -> Option<Traced> {
    if let Err(error) = Command::new("strace").arg("-V").output() {
        println!("skipped: strace cannot be run: {error}");
        return None;
    }
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    let temporary = root.join("temporary");
    fs::create_dir(&temporary).unwrap();
    let output = Command::new("strace")
        // One output file per thread, so that no call is split into "unfinished" and "resumed".
        .args(["-ff", "--seccomp-bpf", "-y", "-s", "0", "-qq", "-e", "signal=none", "-e"])
        .arg("trace=pread64,pwrite64,fsync,fdatasync,ftruncate,read,write")
        .arg("-o")
        .arg(root.join("trace"))
        .arg(std::env::current_exe().unwrap())
        .args(["the_workload", "--exact", "--ignored", "--nocapture"])
        .env(MODE, mode)
        .env(DIR, &root)
        .env("SQLITE_TMPDIR", &temporary)
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    let mut traced = Traced { counted: ByFile::new(), system_calls: ByFile::new(), sizing_writes: 0 };
    let stdout = String::from_utf8(output.stdout).unwrap();
    for line in stdout.lines().filter(|line| line.contains('\t')) {
        let (path, work) = counted_line(line);
        traced.counted.insert(path, work);
    }
    for entry in fs::read_dir(&root).unwrap() {
        let path = entry.unwrap().path();
        if path.file_name().unwrap().to_str().unwrap().starts_with("trace.") {
            for line in fs::read_to_string(path).unwrap().lines() {
                add_system_call(&mut traced, line, &temporary);
            }
        }
    }
    Some(traced)
}

fn counted_line(line: &str) -> (String, Work) {
    let fields: Vec<&str> = line.split('\t').collect();
    let [kind, numbers @ .., path] = fields.as_slice() else { panic!("{line}") };
    let numbers: Vec<u64> = numbers.iter().map(|number| number.parse().unwrap()).collect();
    let [reads, read_bytes, writes, write_bytes, syncs, truncates] = numbers[..] else { panic!("{line}") };
    let name = if *kind == "temp" { "temp" } else { path };
    (name.into(), Work { reads, read_bytes, writes, write_bytes, syncs, truncates })
}

/// Adds a line such as `pread64(4</tmp/x/main.db>, ""..., 4096, 0) = 4096`.
fn add_system_call(traced: &mut Traced, line: &str, temporary: &Path) {
    let Some((name, rest)) = line.split_once('(') else { return };
    let Some((_, rest)) = rest.split_once('<') else { return };
    let Some((path, rest)) = rest.split_once('>') else { return };
    let Some((_, result)) = rest.rsplit_once(" = ") else { return };
    let Ok(result) = result.trim().parse::<u64>() else { panic!("a system call failed: {line}") };
    let path = if Path::new(path).starts_with(temporary) {
        "temp"
    } else if let Some(at) = path.rfind("-mj") {
        &path[..at + 3]
    } else {
        path
    };
    let work = traced.system_calls.entry(path.into()).or_default();
    match name {
        "read" | "pread64" if result > 0 => {
            work.reads += 1;
            work.read_bytes += result;
        }
        "write" | "pwrite64" => {
            work.writes += 1;
            work.write_bytes += result;
            traced.sizing_writes += u64::from(path == "temp" && result == 1);
        }
        "fsync" | "fdatasync" => work.syncs += 1,
        "ftruncate" => work.truncates += 1,
        _ => {}
    }
}
