//! `headroom lab crash`: on the simulated disk, and killed on a real one.

use super::{directory, is_empty};
use programs::Headroom;
use serde_json::Value;
use std::io::Write;

#[test]
fn one_seed_holds_the_same_each_time() {
    let seed = || Headroom::new().json(&["lab", "crash", "--seed", "7", "--steps", "12"]);
    let (first, again) = (seed(), seed());
    assert_eq!((&first["seeds"], &first["first_seed"]), (&1.into(), &7.into()));
    assert!(first["crash_points"].as_u64().unwrap() > 50, "{first:#}");
    assert_eq!(first["failure"], Value::Null, "{first:#}");
    assert_eq!(first["crash_points"], again["crash_points"]);
}

#[test]
fn words_that_ask_for_nothing_are_refused() {
    let most = u64::MAX.to_string();
    for wrong in [&["--steps", "0"][..], &["--seeds", "0"], &["--first-seed", &most, "--seeds", "3"]] {
        let output = Headroom::new().run(&[&["lab", "crash"], wrong].concat());
        assert_eq!(output.status.code(), Some(2), "{wrong:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn killed_processes_lose_nothing_that_they_told_and_leave_no_directory() {
    let place = directory();
    let path = place.path().to_str().unwrap();
    let killed = Headroom::new().json(&["lab", "crash", "--real", path, "--duration", "1s"]);
    assert_eq!(killed["failure"], Value::Null, "{killed:#}");
    assert!(killed["kills"].as_u64().unwrap() >= 3, "{killed:#}");
    assert!(is_empty(place.path()));
}

#[test]
fn where_the_disk_is_full_that_is_said_and_nothing_is_left() {
    let Some(mut disk) = testbed::LoopDisk::new(48 << 20) else { return };
    let mount = disk.format_and_mount().to_owned();
    std::fs::write(mount.join("fill"), vec![7; 24 << 20]).unwrap();
    let real = ["lab", "crash", "--real", mount.to_str().unwrap(), "--duration", "1s"];
    let mut fill = std::fs::File::create(mount.join("more")).unwrap();
    while fill.write_all(&[7; 64 << 10]).is_ok() {}
    let output = Headroom::new().run(&real);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("No space left") && said.contains("try: "), "{said}");
    let left = std::fs::read_dir(&mount).unwrap().flatten().map(|entry| entry.file_name());
    assert!(left.into_iter().all(|name| !name.to_string_lossy().contains("headroom")), "{said}");
}
