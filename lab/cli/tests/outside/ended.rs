//! Experiments that are ended by Ctrl-C or killed.

use programs::{Finished, Headroom, Started, nothing_left, text, wait_until};
use std::path::Path;
use std::time::{Duration, Instant};

fn storage() -> tempfile::TempDir {
    programs::directory_on_disk(env!("CARGO_TARGET_TMPDIR"))
}

/// Ends a run as Ctrl-C does: what it printed, and how long it took.
fn ctrl_c(run: Started) -> (Finished, Duration) {
    let asked = Instant::now();
    run.signal("-INT");
    let said = run.end();
    (said, asked.elapsed())
}

#[test]
fn ctrl_c_in_the_crash_laboratory_prints_what_held() {
    let ours = Headroom::new();
    // The first of them alone takes longer than anybody waits.
    for steps in ["10000", "1"] {
        let crash = ["lab", "crash", "--seeds", "100000", "--steps", steps];
        let run = Started::new(&mut ours.command(&crash));
        run.wait_until("its hand on Ctrl-C", || takes_ctrl_c(run.pid()));
        let (said, took) = ctrl_c(run);
        assert_eq!(said.code, Some(130), "{}", said.stderr);
        assert!(took < Duration::from_secs(2), "{took:?}");
        assert!(said.stdout.contains(" crash points held"), "{} {}", said.stdout, said.stderr);
        assert!(said.stderr.contains("ended early"), "{}", said.stderr);
    }
}

#[test]
fn a_store_whose_processes_were_killed_goes_with_ctrl_c_and_with_clean() {
    let (ours, dir) = (Headroom::new(), storage());
    let store = dir.path().join("headroom.tmp/headroom-lab-crash");
    let crash = ["lab", "crash", "--real", text(dir.path()), "--duration", "10m"];
    let kill_it = || {
        let run = Started::new(&mut ours.command(&crash));
        run.wait_until("a process to be killed", || !working_on(&store).is_empty());
        run
    };
    let (said, took) = ctrl_c(kill_it());
    assert_eq!(said.code, Some(130), "{}", said.stderr);
    assert!(took < Duration::from_secs(5), "{took:?}");
    assert!(said.stdout.contains(" processes killed"), "{} {}", said.stdout, said.stderr);
    nothing_left(dir.path());

    let run = kill_it();
    run.signal("-KILL");
    assert_eq!(run.end().code, None);
    wait_until("the end of its processes", || working_on(&store).is_empty());
    assert!(store.exists());
    let said = Finished::from_output(&ours.run(&["lab", "clean", text(dir.path())]));
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    nothing_left(dir.path());
}

/// Whether a process has a handler of its own for SIGINT.
fn takes_ctrl_c(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let caught = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    caught.is_some_and(|mask| mask & 1 << 1 != 0)
}

/// Processes that were started to work on a store.
fn working_on(store: &Path) -> Vec<u32> {
    let pids = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let words = |pid: &u32| std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let wanted = text(store).as_bytes();
    pids.filter(|pid| words(pid).split(|byte| *byte == 0).any(|word| word == wanted)).collect()
}
