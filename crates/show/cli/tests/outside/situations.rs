//! Situations of users besides the good case: wrong arguments, storage that is full, forbidden or broken, an end by
//! kill or Ctrl-C. Each time: the exit code, the lines that say what to do, and that nothing of the user's has changed
//! and nothing is left behind.

mod broken_storage;
mod clock;
mod ended;
mod hostile_text;
mod limits;
mod matrix;
mod others_data;
mod places;
mod running;
mod stalls;
mod streams;
mod targets;
mod usage;
mod watching;

use crate::programs::Headroom;
use std::cell::RefCell;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// The exit code and output of a run.
struct Finished {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Finished {
    fn from_output(output: &Output) -> Finished {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Finished { code: output.status.code(), stdout: text(&output.stdout), stderr: text(&output.stderr) }
    }

    /// It ended so, and its error has these pieces: of the line `error: …`, of facts, and of `  try: …`.
    #[track_caller]
    fn refused(&self, code: i32, pieces: &[&str]) {
        assert_eq!(self.code, Some(code), "{}", self.stderr);
        assert!(self.stderr.starts_with("error: ") || self.stderr.contains("\nerror: "), "{}", self.stderr);
        for piece in pieces {
            assert!(self.stderr.contains(piece), "no '{piece}' in: {}", self.stderr);
        }
        assert!(!self.stderr.contains("panicked"), "{}", self.stderr);
        assert_eq!(self.stdout, "");
    }
}

/// Runs it to its end with the pieces of a command line.
fn headroom(headroom: &Headroom, arguments: &[&str]) -> Finished {
    Finished::from_output(&headroom.run(arguments))
}

/// A run in the background, ended when dropped.
struct Started(RefCell<Option<Child>>);

impl Started {
    fn new(command: &mut Command) -> Started {
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        Started(RefCell::new(Some(child.unwrap())))
    }

    fn pid(&self) -> u32 {
        self.0.borrow().as_ref().unwrap().id()
    }

    fn signal(&self, name: &str) {
        let pid = self.pid().to_string();
        assert!(Command::new("kill").args([name, &pid]).status().unwrap().success());
    }

    fn end(self) -> Finished {
        Finished::from_output(&self.0.take().unwrap().wait_with_output().unwrap())
    }

    /// Waits for something that it does while it runs.
    #[track_caller]
    fn wait_until(&self, what: &str, is_so: impl Fn() -> bool) {
        wait_until(what, || {
            if is_so() {
                return true;
            }
            let ended = self.0.borrow_mut().as_mut().unwrap().try_wait().unwrap();
            let said = |child: Child| Finished::from_output(&child.wait_with_output().unwrap());
            if ended.is_some() && !is_so() {
                panic!("{what} never came: {}", self.0.take().map(said).unwrap().stderr);
            }
            false
        });
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        if let Some(child) = self.0.get_mut() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Waits for something that another process does.
#[track_caller]
fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(60), "{what} never came");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Nothing of Headroom's lies in the directory.
#[track_caller]
fn nothing_left(dir: &Path) {
    let left: Vec<_> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().starts_with("headroom")), "{left:?}");
}

/// The history is whole; returns how many test files it says are still there.
#[track_caller]
fn test_files_on_record(headroom: &Headroom) -> i64 {
    let history = rusqlite::Connection::open(headroom.history()).unwrap();
    let check: String = history.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(check, "ok");
    let query = "SELECT count(*) FROM test_files WHERE removed_unix_ns IS NULL";
    history.query_row(query, [], |row| row.get(0)).unwrap()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}
