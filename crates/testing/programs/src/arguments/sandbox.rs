//! Where hostile calls run: a small disk of their own with odd files, as a user who may do nothing elsewhere.

use crate::built;
use std::ffi::OsString;
use std::fs::{self, File, Permissions};
use std::io::{Read, Seek};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use testbed::LoopDisk;

const NOBODY: u32 = 65534;
/// Enough for the files of a few calls at a time, little enough that it is full soon.
const DISK_BYTES: u64 = 1 << 30;
const MEMORY_BYTES: u64 = 4 << 30;
const HISTORY: &str = "history.db";
/// A place whose history has captures and runs; every other call has a copy of it.
const KEPT: &str = "kept";
const FILLS_HISTORY: &[&[&str]] = &[
    &["history", "capture", "--source", "devices:"],
    &["run", "--size", "1M", "--duration", "50ms", "--warm-up", "10ms"],
    &["run", "--size", "1M", "--duration", "50ms", "--warm-up", "10ms", "--writes", "50"],
    &["history", "capture", "--source", "devices:", "--name", "after"],
];
const STDERR_BYTES_MAX: u64 = 1 << 20;

/// How a call ended.
pub struct Outcome {
    /// The exit code; `None` after a signal.
    pub code: Option<i32>,
    /// The signal, unless it is the one of the timeout.
    pub signal: Option<i32>,
    pub stderr: Vec<u8>,
}

/// The disk and both programs, where an unprivileged user reaches them.
pub struct Sandbox {
    root: PathBuf,
    patience: Duration,
    _disk: LoopDisk,
}

impl Sandbox {
    /// Most calls end within 50 ms; those that run for longer than `patience` do what was requested, and are killed. `None`
    /// without root: then calls would run as the user whose files are to be safe.
    pub fn new(headroom: &Path, patience: Duration) -> Option<Sandbox> {
        let mut disk = LoopDisk::new(DISK_BYTES)?;
        let root = disk.format_and_mount().to_path_buf();
        fs::set_permissions(&root, Permissions::from_mode(0o755)).unwrap();
        let kept = root.join(KEPT);
        make_place(&kept);
        for line in FILLS_HISTORY {
            command(headroom, &kept).args(*line).output().unwrap();
        }
        assert!(kept.join(HISTORY).exists());
        Some(Sandbox { root, patience, _disk: disk })
    }

    /// Runs a program in a directory of its own, which is removed afterwards.
    pub fn call(&self, program: &Path, line: &[OsString], number: u64) -> Outcome {
        let place = self.root.join(number.to_string());
        make_place(&place);
        // Elsewhere: the disk may be full.
        let mut log = tempfile::tempfile().unwrap();
        if number.is_multiple_of(2) {
            fs::copy(self.root.join(KEPT).join(HISTORY), place.join(HISTORY)).unwrap();
            chown(place.join(HISTORY), Some(NOBODY), Some(NOBODY)).unwrap();
        }
        let mut command = command(program, &place);
        command.args(line).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log.try_clone().unwrap());
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{}: {error}", program.display()));
        let (began, mut killed) = (Instant::now(), false);
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break status;
            }
            if !killed && began.elapsed() > self.patience {
                killed = true;
                let group = format!("-{}", child.id());
                Command::new("kill").args(["-KILL", "--", &group]).status().unwrap();
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        let mut stderr = Vec::new();
        log.rewind().unwrap();
        log.take(STDERR_BYTES_MAX).read_to_end(&mut stderr).unwrap();
        // A process of a call may still write: the disk goes with the test.
        let _ = fs::remove_dir_all(&place);
        Outcome { code: status.code(), signal: status.signal().filter(|_| !killed), stderr }
    }
}

/// A program that runs as an unprivileged user in a directory and keeps its history there.
fn command(program: &Path, place: &Path) -> Command {
    // Buffers and ledgers of any size are requested; the tests beside this one need memory, too.
    let mut command = Command::new("prlimit");
    command
        .arg(format!("--as={MEMORY_BYTES}"))
        .arg("--")
        .arg(program)
        .arg("--history")
        .arg(place.join(HISTORY));
    command.current_dir(place).uid(NOBODY).gid(NOBODY).process_group(0);
    command.env_clear().env("PATH", "/usr/bin:/bin").env("HOME", place).env("TMPDIR", place);
    command.env("HEADROOM_COUNTERS_DIR", place).env("RUST_BACKTRACE", "0");
    command
}

/// A program where an unprivileged user may run it, whatever directory the build lies in.
pub fn reachable(name: &str, dir: &Path) -> PathBuf {
    let (built, copy) = (built().join(name), dir.join(name));
    if !copy.exists() && fs::hard_link(&built, &copy).is_err() {
        fs::copy(&built, &copy).unwrap();
    }
    copy
}

/// The files that `calls.rs` names.
fn make_place(place: &Path) {
    fs::create_dir(place).unwrap();
    let at = |name: &str| place.join(name);
    fs::write(at("small"), "not what it should be\n").unwrap();
    fs::write(at("esc\x1b[8m"), "1").unwrap();
    fs::write(at("rlo\u{202e}"), "1").unwrap();
    fs::write(place.join(not_utf8()), "1").unwrap();
    File::create(at("sparse")).unwrap().set_len(1 << 40).unwrap();
    fs::create_dir(at("directory")).unwrap();
    fs::create_dir(at("locked")).unwrap();
    fs::write(at("unreadable"), "1").unwrap();
    symlink("loop", at("loop")).unwrap();
    symlink("nothing", at("dangling")).unwrap();
    symlink("/dev/zero", at("to-zero")).unwrap();
    assert!(Command::new("mkfifo").arg(at("pipe")).status().unwrap().success());
    for name in ["", "small", "esc\x1b[8m", "rlo\u{202e}", "sparse", "directory", "pipe"] {
        chown(at(name), Some(NOBODY), Some(NOBODY)).unwrap();
    }
    for name in ["unreadable", "locked"] {
        fs::set_permissions(at(name), Permissions::from_mode(0o000)).unwrap();
    }
}

fn not_utf8() -> OsString {
    std::os::unix::ffi::OsStringExt::from_vec(b"not-\xffutf8".to_vec())
}
