//! A test that is killed leaves mounted, throttled devices behind; the next test cleans them up.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use testbed::LoopDisk;
use workload::CapKind;

const ROLE: &str = "TESTBED_TEST_ROLE";

/// Not a test: the process that the next test starts.
#[test]
fn play_another_test() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let mut outer = LoopDisk::new(64 << 20).unwrap();
    if role == "hold" {
        let mut inner = LoopDisk::new_in(outer.format_and_mount(), 16 << 20).unwrap();
        inner.format_and_mount();
        // A limit that no other test sets.
        let throttled = inner.throttle(CapKind::ReadIops, std::process::id().into());
        println!("\nholding {} {throttled}", inner.number());
        std::io::stdout().flush().unwrap();
        std::io::stdin().read_line(&mut String::new()).unwrap();
    }
}

/// Another test process, with its disks in `directory`.
fn start(role: &str, directory: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "play_another_test", "--nocapture"])
        .env(ROLE, role)
        .env("TMPDIR", directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// The inner disk's number and whether it is throttled.
fn holding(child: &mut Child) -> (String, bool) {
    let lines = BufReader::new(child.stdout.as_mut().unwrap()).lines().map(Result::unwrap);
    let held = lines.filter_map(|line| line.strip_prefix("holding ").map(str::to_string)).next().unwrap();
    let (number, throttled) = held.split_once(' ').unwrap();
    (number.to_string(), throttled == "true")
}

/// Loop devices of a process, by the names of their directories.
fn devices_of(child: &Child, directory: &Path) -> usize {
    let scratch = directory.join(format!("headroom-testbed-{}-", child.id()));
    let devices = fs::read_dir("/sys/block").unwrap().flatten();
    let files = devices.filter_map(|device| fs::read_to_string(device.path().join("loop/backing_file")).ok());
    files.filter(|file| file.starts_with(&*scratch.to_string_lossy())).count()
}

#[test]
fn the_next_test_cleans_up_after_a_killed_one() {
    // A private directory: other tests on this machine would clean up before this one counts.
    let Some(place) = LoopDisk::new(1 << 20) else { return };
    let directory = place.backing_file().with_file_name("tmp");
    fs::create_dir(&directory).unwrap();
    let (mut living, mut dead) = (start("hold", &directory), start("hold", &directory));
    holding(&mut living);
    let (number, throttled) = holding(&mut dead);
    dead.kill().unwrap();
    dead.wait().unwrap();
    assert_eq!(devices_of(&dead, &directory), 2, "killed, it cannot clean up");

    assert!(start("come and go", &directory).wait().unwrap().success());
    assert_eq!(devices_of(&dead, &directory), 0);
    if throttled {
        let caps = fs::read_to_string("/sys/fs/cgroup/blkio/blkio.throttle.read_iops_device").unwrap();
        assert!(!caps.contains(&format!("{number} {}", dead.id())), "{caps}");
    }
    assert_eq!(devices_of(&living, &directory), 2, "the living are left alone");
    drop(living.stdin.take());
    assert!(living.wait().unwrap().success());
    assert_eq!(devices_of(&living, &directory), 0);
}
