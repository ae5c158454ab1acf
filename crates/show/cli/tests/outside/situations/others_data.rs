//! Files and devices that Headroom did not make.

use super::{Started, headroom, nothing_left, text};
use programs::Headroom;
use std::fs;
use std::os::unix::fs::{MetadataExt, chown};
use std::path::Path;
use std::time::Duration;
use testbed::LoopDisk;

const MIB: usize = 1 << 20;

fn precious(path: &Path) -> Vec<u8> {
    let content: Vec<u8> = (0..32 * MIB).map(|at| (at / 4096) as u8 ^ at as u8).collect();
    fs::write(path, &content).unwrap();
    fs::File::open(path).unwrap().sync_all().unwrap();
    content
}

/// Measures for some seconds, then Ctrl-C.
fn a_while(ours: &Headroom, arguments: &[&str]) -> serde_json::Value {
    let all = [&["measure", "--quick", "--json"], arguments].concat();
    let run = Started::new(&mut ours.command(&all));
    std::thread::sleep(Duration::from_secs(4));
    run.signal("-INT");
    let said = run.end();
    assert_eq!(said.code, Some(130), "{}", said.stderr);
    serde_json::from_str(&said.stdout).unwrap_or_else(|_| panic!("{}", said.stderr))
}

#[test]
fn a_file_of_the_users_is_written_only_if_it_may_be_destroyed() {
    let ours = Headroom::new();
    // Not in /tmp, which may be memory.
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let file = dir.path().join("precious.db");
    let content = precious(&file);
    let said = headroom(&ours, &["measure", text(&file)]);
    said.refused(3, &["would destroy the content of this file", "try: name a directory; or --read-only"]);
    assert!(fs::read(&file).unwrap() == content);
    let read = a_while(&ours, &[text(&file), "--read-only"]);
    assert!(!read["curves"].as_array().unwrap().is_empty());
    assert!(fs::read(&file).unwrap() == content);
    let both = headroom(&ours, &["measure", text(&file), "--read-only", "--destroy-data", text(&file)]);
    both.refused(2, &["--read-only", "--destroy-data"]);
    let directory = headroom(&ours, &["measure", text(dir.path()), "--destroy-data", text(dir.path())]);
    directory.refused(2, &["--destroy-data is for a file or block device"]);
    nothing_left(dir.path());
}

/// `sudo` may keep the user's HOME: that user's history then has a mark, valid in all its numbers, of a file of root.
#[test]
fn no_mark_in_a_history_of_another_user_lets_root_overwrite_a_file() {
    if fs::metadata("/proc/self").unwrap().uid() != 0 {
        return eprintln!("skipped: needs root");
    }
    const USER: u32 = 65_534;
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let file = dir.path().canonicalize().unwrap().join("precious.db");
    let content = precious(&file);
    let ours = Headroom::new();
    // Makes a history, with the mark of a file.
    let other = dir.path().join("other");
    let made =
        headroom(&ours, &["run", text(&other), "--size", "8M", "--warm-up", "0s", "--duration", "100ms"]);
    assert_eq!(made.code, Some(0), "{}", made.stderr);
    let found = fs::metadata(&file).unwrap();
    let time = |seconds: i64, ns: i64| i128::from(seconds) * 1_000_000_000 + i128::from(ns);
    let (written, changed) =
        (time(found.mtime(), found.mtime_nsec()), time(found.ctime(), found.ctime_nsec()));
    let (inode, bytes) = (found.ino(), found.len());
    let place = ours.history().parent().unwrap().to_owned();
    for (version, more) in [(1, String::new()), (2, format!(" changed={changed}"))] {
        let mark =
            format!("version={version} inode={inode} bytes={bytes} state=whole written={written}{more}");
        let history = rusqlite::Connection::open(ours.history()).unwrap();
        history.execute("DELETE FROM test_files", []).unwrap();
        let row = "INSERT INTO test_files (path, bytes, created_unix_ns, mark) VALUES (?, ?, 1, ?)";
        history.execute(row, (text(&file), bytes.cast_signed(), &mark)).unwrap();
        drop(history);
        for owned in [ours.history(), place.clone()] {
            chown(&owned, Some(USER), None).unwrap();
            let load = ["run", text(&file), "--writes", "100", "--warm-up", "0s", "--duration", "100ms"];
            let said = headroom(&ours, &load);
            let why = if owned == place { "would destroy the content" } else { "it belongs to the user" };
            said.refused(3, &[why, "try: "]);
            assert!(fs::read(&file).unwrap() == content, "version {version}");
            chown(&owned, Some(0), None).unwrap();
        }
    }
    chown(ours.history(), Some(USER), None).unwrap();
    let read = headroom(&ours, &["history"]);
    assert_eq!(read.code, Some(0), "{}", read.stderr);
}

#[test]
fn a_file_that_may_be_destroyed_is_written() {
    let ours = Headroom::new();
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let file = dir.path().join("scratch");
    let content = precious(&file);
    let mut command = ours.command(&["measure", "--quick", "--destroy-data", text(&file), text(&file)]);
    let run = Started::new(&mut command);
    // Reads come first.
    run.wait_until("the writes", || fs::read(&file).unwrap() != content);
    run.signal("-INT");
    let said = run.end();
    assert!(said.code == Some(130) && said.stdout.contains("IOPS"), "{}", said.stderr);
    let now = fs::read(&file).unwrap();
    assert!(now.len() == content.len() && now != content);
    nothing_left(dir.path());
}

#[test]
fn a_mounted_device_is_refused_whatever_is_said() {
    let Some(mut disk) = LoopDisk::new(64 << 20) else { return };
    let dir = disk.format_and_mount().to_path_buf();
    let content = precious(&dir.join("precious.db"));
    let ours = Headroom::new();
    let device = disk.device().to_path_buf();
    let said = headroom(&ours, &["measure", text(&device)]);
    said.refused(3, &["would destroy the content of this block device", "try: "]);
    let said = headroom(&ours, &["measure", text(&device), "--destroy-data", text(&device)]);
    let use_ = format!("use: mounted at {}", dir.display());
    said.refused(3, &["it is in use", &use_, "try: measure a directory on it instead"]);
    assert!(fs::read(dir.join("precious.db")).unwrap() == content);
    disk.unmount();
    let check = std::process::Command::new("fsck.ext4").args(["-f", "-n"]).arg(&device).output().unwrap();
    assert!(check.status.success(), "{}", String::from_utf8_lossy(&check.stdout));
}
