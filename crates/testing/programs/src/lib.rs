//! Headroom's programs as a user runs them, for tests from outside: `headroom` with a history of its own ([`Headroom`]), to its
//! end ([`Finished`]) or in the background ([`Started`]), beside a database program ([`Scenario`]), and with hostile arguments
//! ([`arguments`]).
//!
//! ```text
//! built() ──> cargo build --workspace ──> target/debug/headroom, libheadroom_sqlite.so, examples/scenario
//! ```

pub mod arguments;
mod runs;

pub use runs::{Finished, Started, nothing_left, text, wait_until};

use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use tempfile::TempDir;

/// The workspace of `headroom`.
const WORKSPACE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../..");

/// A directory on the disk below `target`, which is not /tmp, without links and `..` in its path: programs name it so.
/// `target_tmpdir` is cargo's `CARGO_TARGET_TMPDIR`.
pub fn directory_on_disk(target_tmpdir: &str) -> TempDir {
    let place = std::fs::canonicalize(target_tmpdir).expect("cargo makes it");
    tempfile::tempdir_in(place).expect("it can be written to")
}

/// Where the binary, the extension and the database program are: built once a test run, with the checks of overflows
/// and assertions in, and optimised where it matters for what is measured. The laboratory's tests find its program there too:
/// cargo builds it for them.
///
/// # Panics
/// As all of this crate, where something is not as tests need it.
pub fn built() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
        // The whole workspace, as the tests are built: with fewer packages the crates would be built again with other features.
        let arguments = ["build", "--workspace", "--examples", "--lib", "--bins", "--quiet"];
        let mut build = Command::new(&cargo);
        // Variables that cargo sets for a test would make it build the crates again whose build scripts read them.
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            let of_package = ["CARGO_MANIFEST_", "CARGO_PKG_", "CARGO_BIN_", "CARGO_CRATE_", "OUT_DIR"];
            if of_package.iter().any(|prefix| text.starts_with(prefix)) {
                build.env_remove(&name);
            }
        }
        let done = build.args(arguments).current_dir(WORKSPACE).status().expect("cargo runs");
        assert!(done.success(), "cargo {arguments:?}");
        // A test is target/debug/deps/NAME.
        let test = std::env::current_exe().expect("a test has a path");
        test.ancestors().nth(2).expect("two directories above").to_owned()
    })
}

/// `headroom` with a history and a directory of counters of its own.
#[derive(Debug)]
pub struct Headroom {
    home: TempDir,
}

impl Default for Headroom {
    fn default() -> Headroom {
        Headroom::new()
    }
}

impl Headroom {
    /// With an empty history.
    pub fn new() -> Headroom {
        Headroom { home: tempfile::tempdir().unwrap() }
    }

    /// With an empty history, in a directory on a disk of its own.
    pub fn new_in(dir: &Path) -> Headroom {
        Headroom { home: tempfile::tempdir_in(dir).unwrap() }
    }

    /// Where its history is.
    pub fn history(&self) -> PathBuf {
        self.home.path().join("history.db")
    }

    /// A command that is yet to be run.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(built().join("headroom"));
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
}

/// A database that scenarios run on.
#[derive(Debug)]
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
        program.arg("--extension").arg(built().join("libheadroom_sqlite.so"));
        let mut child = program.spawn().unwrap();
        let mut first = String::new();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        lines.read_line(&mut first).unwrap();
        assert_eq!(first.trim(), "ready");
        Running { child }
    }
}

fn program(kind: &str, database: &Path) -> Command {
    let mut command = Command::new(built().join("examples/scenario"));
    command.arg(kind).arg("--database").arg(database);
    command
}

/// A program that runs; ended when dropped.
#[derive(Debug)]
pub struct Running {
    child: Child,
}

impl Running {
    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
