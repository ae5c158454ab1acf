//! The programs that the tests run as a user would: `headroom` and a database program.

use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use tempfile::TempDir;

/// Release builds of the binary, the extension and the database program: made once a test run.
pub fn release() -> &'static Path {
    static RELEASE: OnceLock<PathBuf> = OnceLock::new();
    RELEASE.get_or_init(|| {
        let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
        let build = |arguments: &[&str]| {
            let built = Command::new(&cargo).args(["build", "--release", "--quiet"]).args(arguments).status();
            assert!(built.unwrap().success(), "cargo build {arguments:?}");
        };
        build(&["-p", "headroom", "-p", "sqlite-vfs"]);
        build(&["-p", "lab", "--example", "scenario"]);
        let debug = Path::new(env!("CARGO_BIN_EXE_headroom")).parent().unwrap();
        debug.with_file_name("release")
    })
}

/// `headroom` with a history and a directory of counters of its own.
pub struct Headroom {
    home: TempDir,
}

impl Headroom {
    /// With an empty history.
    pub fn new() -> Headroom {
        Headroom { home: tempfile::tempdir().unwrap() }
    }

    /// Where its history is.
    pub fn history(&self) -> PathBuf {
        self.home.path().join("history.db")
    }

    /// A command that is yet to be run.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(release().join("headroom"));
        command.args(arguments).arg("--history").arg(self.history());
        command
    }

    /// Runs it to the end.
    pub fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Runs it and reads its JSON, whatever the verdict.
    pub fn json(&self, arguments: &[&str]) -> Value {
        let output = self.command(arguments).arg("--json").output().unwrap();
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
            panic!("{arguments:?}: {error}: {}", String::from_utf8_lossy(&output.stderr));
        })
    }

    /// A quick measurement of a directory.
    pub fn measure(&self, dir: &Path) -> Value {
        self.json(&["measure", "--quick", "--size", "512M", dir.to_str().unwrap()])
    }

    /// Watches the scenario's database for ten seconds.
    pub fn check_while(&self, running: &Running) -> Value {
        let source = format!("sqlite:{}", running.database.display());
        self.json(&["check", "--source", &source, "--duration", "10s"])
    }
}

/// A database that scenarios run on.
pub struct Scenario {
    database: PathBuf,
}

impl Scenario {
    /// Makes the database of a scenario.
    pub fn prepare(kind: &str, database: &Path) -> Scenario {
        let status = program(kind, database).arg("--prepare").status().unwrap();
        assert!(status.success());
        Scenario { database: database.into() }
    }

    /// Starts a program that uses it, with the extension loaded, and waits until it does.
    pub fn start(&self, kind: &str, seconds: u32) -> Running {
        let mut program = program(kind, &self.database);
        program.args(["--seconds", &seconds.to_string()]).stdout(Stdio::piped());
        program.arg("--extension").arg(release().join("libheadroom_sqlite.so"));
        let mut child = program.spawn().unwrap();
        let mut first = String::new();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        lines.read_line(&mut first).unwrap();
        assert_eq!(first.trim(), "ready");
        Running { child, database: self.database.clone() }
    }
}

fn program(kind: &str, database: &Path) -> Command {
    let mut command = Command::new(release().join("examples/scenario"));
    command.arg(kind).arg("--database").arg(database);
    command
}

/// A program that runs; ended when dropped.
pub struct Running {
    child: Child,
    /// What it uses.
    pub database: PathBuf,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
