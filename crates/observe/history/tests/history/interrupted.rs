//! Kills and full disks at each write: the history opens afterwards with all that was saved. A file that is really
//! damaged is refused and not written to.

use crate::life::{Event, S, snapshots};
use filestats::Snapshot;
use history::{CaptureFilter, Error, History};
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use tempfile::TempDir;

/// The history that the child writes.
const PATH: &str = "HEADROOM_TEST_HISTORY";
const CAPTURES: usize = 30;
/// A checkpoint of the child's captures writes fewer pages; so does the making of a history.
const WRITES_MAX: usize = 400;

/// Fault that strace injects into a write of the child.
#[derive(Clone, Copy, Debug)]
enum Fault {
    /// Kills it at the nth.
    Kill(usize),
    /// Refuses the nth and all later ones: the disk is full.
    DiskFull(usize),
}

fn captured() -> Vec<Snapshot> {
    let mut all = snapshots(&vec![(15 * S, true, vec![Event::Work(7); 3]); CAPTURES]);
    // New files in each capture, so that the checkpoint makes the file longer.
    for (at, snapshot) in all.iter_mut().enumerate() {
        for number in 0..20 {
            let mut sample = snapshot.samples[0].clone();
            sample.file_mut().path = format!("/data/{at}/{number}/{}", "long".repeat(20));
            snapshot.samples.push(sample);
        }
    }
    all
}

#[test]
#[ignore = "the program that the tests of this module kill"]
fn the_writer() {
    let Some(path) = std::env::var_os(PATH) else { return };
    let mut history = History::open(Path::new(&path)).unwrap();
    for snapshot in captured() {
        history.save_snapshot(&snapshot, None).unwrap();
    }
    // To close the last connection is a checkpoint.
}

/// Runs the writer with a fault in its writes to those files.
fn write_with(fault: Fault, path: &Path, files: &[PathBuf]) -> ExitStatus {
    let inject = match fault {
        Fault::Kill(at) => format!("inject=write,pwrite64:signal=KILL:when={at}"),
        Fault::DiskFull(from) => format!("inject=write,pwrite64:error=ENOSPC:when={from}+"),
    };
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qqq", "-o", "/dev/null"]);
    strace.args(["-e", "trace=write,pwrite64", "-e", &inject]);
    for file in files {
        strace.arg("-P").arg(file);
    }
    strace.arg(std::env::current_exe().unwrap());
    strace.args(["interrupted::the_writer", "--exact", "--ignored", "--test-threads=1"]);
    strace.env(PATH, path).output().unwrap().status
}

/// Whether strace can trace here; says so where it cannot.
fn strace_works() -> bool {
    let works = Command::new("strace").args(["-o", "/dev/null", "true"]).output();
    let works = works.is_ok_and(|output| output.status.success());
    if !works {
        eprintln!("skipped: strace is not installed or may not trace here");
    }
    works
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// An empty directory, and where a history may lie in it.
fn place() -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().canonicalize().unwrap().join("history.db");
    (dir, path)
}

#[track_caller]
fn assert_complete(path: &Path, fault: Fault) {
    let history = History::open(path).unwrap_or_else(|error| panic!("{fault:?}: {error}"));
    let kept = history.captures(&CaptureFilter::default()).unwrap();
    assert_eq!(kept.len(), CAPTURES, "{fault:?}");
    let newest = history.snapshot(kept[0].id).unwrap();
    assert_eq!(newest, captured().pop().unwrap(), "{fault:?}");
    let connection = rusqlite::Connection::open(path).unwrap();
    let check: String = connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(check, "ok", "{fault:?}");
}

#[test]
fn a_kill_or_a_full_disk_at_any_write_of_a_checkpoint_loses_nothing() {
    if !strace_works() {
        return;
    }
    let (_template, made) = place();
    drop(History::open(&made).unwrap());
    let interrupted = |fault| {
        let (dir, path) = place();
        fs::copy(&made, &path).unwrap();
        let status = write_with(fault, &path, std::slice::from_ref(&path));
        assert_complete(&path, fault);
        drop(dir);
        status
    };
    let killed = (1..WRITES_MAX).take_while(|at| interrupted(Fault::Kill(*at)).signal() == Some(9)).count();
    assert!((10..WRITES_MAX - 1).contains(&killed), "kills at {killed} writes");
    for from in 1..=killed {
        interrupted(Fault::DiskFull(from));
    }
}

#[test]
fn a_kill_at_any_write_while_a_history_is_made_leaves_one_that_opens() {
    if !strace_works() {
        return;
    }
    let killed = (1..WRITES_MAX).step_by(3).take_while(|at| {
        let (_dir, path) = place();
        let files = [path.clone(), beside(&path, "-journal")];
        let status = write_with(Fault::Kill(*at), &path, &files);
        History::open(&path).unwrap_or_else(|error| panic!("killed at write {at}: {error}"));
        status.signal() == Some(9)
    });
    let killed = killed.count();
    assert!(killed >= 10, "kills at {killed} writes");
}

/// The bytes of the database and of its WAL.
fn content(path: &Path) -> [Option<Vec<u8>>; 2] {
    [fs::read(path).ok(), fs::read(beside(path, "-wal")).ok()]
}

#[track_caller]
fn assert_refused_and_left_alone(path: &Path) {
    let before = content(path);
    let error = History::open(path).unwrap_err();
    assert!(matches!(error, Error::Sqlite { .. }), "{error}");
    assert!(error.remedy().unwrap().contains(".recover"), "{error}");
    assert_eq!(content(path), before, "{error}");
}

#[test]
fn a_file_that_is_cut_off_is_refused_and_not_written_to() {
    let (_dir, path) = place();
    let mut history = History::open(&path).unwrap();
    for snapshot in captured() {
        history.save_snapshot(&snapshot, None).unwrap();
    }
    drop(history);
    let bytes = fs::metadata(&path).unwrap().len();
    let whole = fs::read(&path).unwrap();
    let cut = |to: u64| fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(to).unwrap();
    cut(bytes / 2);
    assert_refused_and_left_alone(&path);
    assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "nothing was put beside it");
    // A WAL that does not contain the missing pages.
    fs::write(&path, &whole).unwrap();
    let mut history = History::open(&path).unwrap();
    history.save_snapshot(&captured()[0], None).unwrap();
    let wal = fs::read(beside(&path, "-wal")).unwrap();
    drop(history);
    fs::write(&path, &whole).unwrap();
    fs::write(beside(&path, "-wal"), &wal).unwrap();
    cut(bytes / 2);
    assert_refused_and_left_alone(&path);
    // A WAL that is none.
    fs::write(beside(&path, "-wal"), vec![7; 10_000]).unwrap();
    assert_refused_and_left_alone(&path);
}
