//! Runs of programs, to their end and in the background.

use std::cell::RefCell;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// The exit code and output of a run.
#[derive(Debug)]
pub struct Finished {
    /// `None` after a signal.
    pub code: Option<i32>,
    /// Its answer.
    pub stdout: String,
    /// Progress, warnings, errors.
    pub stderr: String,
}

impl Finished {
    /// Of a program that has ended.
    pub fn from_output(output: &Output) -> Finished {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Finished { code: output.status.code(), stdout: text(&output.stdout), stderr: text(&output.stderr) }
    }

    /// It ended so, and its error has these pieces: of the line `error: …`, of facts, and of `  try: …`.
    #[track_caller]
    pub fn refused(&self, code: i32, pieces: &[&str]) {
        assert_eq!(self.code, Some(code), "{}", self.stderr);
        assert!(self.stderr.starts_with("error: ") || self.stderr.contains("\nerror: "), "{}", self.stderr);
        for piece in pieces {
            assert!(self.stderr.contains(piece), "no '{piece}' in: {}", self.stderr);
        }
        assert!(!self.stderr.contains("panicked"), "{}", self.stderr);
        assert_eq!(self.stdout, "");
    }
}

/// A run in the background, ended when dropped.
#[derive(Debug)]
pub struct Started(RefCell<Option<Child>>);

impl Started {
    /// Starts it.
    pub fn new(command: &mut Command) -> Started {
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        Started(RefCell::new(Some(child.unwrap())))
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.0.borrow().as_ref().unwrap().id()
    }

    /// Sends it a signal: "-INT".
    pub fn signal(&self, name: &str) {
        let pid = self.pid().to_string();
        assert!(Command::new("kill").args([name, &pid]).status().unwrap().success());
    }

    /// Waits for its end.
    pub fn end(self) -> Finished {
        Finished::from_output(&self.0.take().unwrap().wait_with_output().unwrap())
    }

    /// Waits for something that it does while it runs.
    #[track_caller]
    pub fn wait_until(&self, what: &str, is_so: impl Fn() -> bool) {
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
pub fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(60), "{what} never came");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Nothing of Headroom's lies in the directory.
#[track_caller]
pub fn nothing_left(dir: &Path) {
    let left: Vec<_> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().starts_with("headroom")), "{left:?}");
}

/// A path as an argument.
pub fn text(path: &Path) -> &str {
    path.to_str().expect("a path of this test's")
}
