//! A process of another user whose memory answers no read.

use super::discover;
use programs::Headroom;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// A user without rights, and its group: Debian's numbers.
const NOBODY: u32 = 65_534;

/// Longer than a scan takes on a busy machine.
const LONGEST: Duration = Duration::from_secs(20);

/// Starts the program in `dir`; `None`, after saying so, where that is impossible here.
fn start(dir: &Path) -> Option<Child> {
    let skipped = |why: &str| println!("skipped: a memory that answers no read: {why}");
    if fs::metadata("/proc/self").unwrap().uid() != 0 {
        skipped("another user's process needs root");
        return None;
    }
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/outside/discover/mute_memory.c");
    let (program, device, mount) = (dir.join("postgres"), dir.join("fuse"), dir.join("mount"));
    let mut compiler = Command::new("cc");
    if !compiler.arg("-pthread").arg("-o").arg(&program).arg(source).status().is_ok_and(|end| end.success()) {
        skipped("no C compiler");
        return None;
    }
    // /dev/fuse is open to every user on most machines.
    assert!(Command::new("mknod").arg(&device).args(["c", "10", "229"]).status().unwrap().success());
    fs::create_dir(&mount).unwrap();
    for (path, mode) in [(dir, 0o755), (&device, 0o666)] {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }
    std::os::unix::fs::chown(&mount, Some(NOBODY), Some(NOBODY)).unwrap();
    let mut command = Command::new(&program);
    command.arg(device).arg(mount).uid(NOBODY).gid(NOBODY).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    if line != "ready\n" {
        skipped("this user may make no namespace or no FUSE file system");
        child.wait().unwrap();
        return None;
    }
    // The thread that waits for the lock begins after the one that holds it.
    std::thread::sleep(Duration::from_millis(300));
    Some(child)
}

#[test]
fn a_process_whose_memory_answers_no_read_delays_no_scan() {
    let dir = tempfile::tempdir().unwrap();
    let Some(mut mute) = start(dir.path()) else { return };
    let headroom = Headroom::new();
    let has_ended = AtomicBool::new(false);
    let (ended, took) = std::thread::scope(|scope| {
        scope.spawn(|| {
            let began = Instant::now();
            discover(&headroom, &[]);
            println!("{:?} beside a memory that answers no read", began.elapsed());
            has_ended.store(true, Relaxed);
        });
        let began = Instant::now();
        while !has_ended.load(Relaxed) && began.elapsed() < LONGEST {
            std::thread::sleep(Duration::from_millis(20));
        }
        // A scan that waits goes on once the process is gone.
        let ended = (has_ended.load(Relaxed), began.elapsed());
        mute.kill().unwrap();
        mute.wait().unwrap();
        ended
    });
    assert!(ended, "not within {took:?}");
}
