//! Storage that answers with errors.

use super::{Started, headroom, nothing_left, test_files_on_record, text, wait_until};
use programs::Headroom;
use std::fs::OpenOptions;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;
use testbed::LoopDisk;
use workload::CapKind;

const MIB: u64 = 1 << 20;

/// Cuts the file below the device: what lies behind the cut can no longer be read or written.
fn cut(disk: &LoopDisk, bytes: u64) {
    OpenOptions::new().write(true).open(disk.backing_file()).unwrap().set_len(bytes).unwrap();
}

#[test]
fn a_device_that_only_fails_is_no_capability() {
    let Some(disk) = LoopDisk::new(64 * MIB) else { return };
    cut(&disk, 0);
    let ours = Headroom::new();
    let said = headroom(&ours, &["measure", "--read-only", "--quick", text(disk.device())]);
    said.refused(
        3,
        &["every I/O on", text(disk.device()), "Input/output error", "try: read the kernel's log"],
    );
    let kept = ours.json(&["history"]);
    assert_eq!(kept, serde_json::json!([]), "nothing was measured, nothing is kept");
}

#[test]
fn failures_are_counted_beside_what_was_measured() {
    let Some(mut disk) = LoopDisk::new(64 * MIB) else { return };
    cut(&disk, 48 * MIB);
    // Flat out, half a minute of reads would take a processor from the tests beside. Where no limit can be set, it does.
    let _ = disk.throttle(CapKind::ReadIops, 4_000);
    let ours = Headroom::new();
    let said = headroom(&ours, &["measure", "--read-only", "--quick", "--json", text(disk.device())]);
    assert_eq!(said.code, Some(1), "{}", said.stderr);
    assert!(said.stderr.contains("warning: ") && said.stderr.contains(" I/Os on "), "{}", said.stderr);
    assert!(said.stderr.contains("failed: read the kernel's log"), "{}", said.stderr);
    let answer: serde_json::Value = serde_json::from_str(&said.stdout).unwrap();
    let points = answer["curves"][0]["points"].as_array().unwrap();
    let sum = |key| points.iter().map(|point| point[key].as_u64().unwrap()).sum::<u64>() as f64;
    let share = sum("failed") / (sum("failed") + sum("ios"));
    assert!((0.15..0.4).contains(&share), "a quarter of the device is missing: {share}");
}

#[test]
fn a_file_system_on_a_device_that_fails_is_left_clean() {
    let Some(mut below) = LoopDisk::new(64 * MIB) else { return };
    let below_dir = below.format_and_mount().to_path_buf();
    // It promises 256 MiB and fails every write that finds no place among the 64 below it.
    let Some(mut disk) = LoopDisk::new_in(&below_dir, 256 * MIB) else { return };
    let dir = disk.format_and_mount().to_path_buf();
    let ours = Headroom::new();
    let said = headroom(&ours, &["measure", "--size", "128M", "--quick", text(&dir)]);
    let what = format!("cannot write the test file in {}: No space left on device", dir.display());
    said.refused(3, &[&what, "it is removed again", "\n  try: something else filled the file system"]);
    assert_eq!(test_files_on_record(&ours), 0);
    nothing_left(&dir);
}

#[test]
fn storage_that_breaks_in_the_middle_of_a_sweep_is_told_and_left_clean() {
    let Some(mut disk) = LoopDisk::new(256 * MIB) else { return };
    let dir = disk.format_and_mount().to_path_buf();
    let ours = Headroom::new();
    let arguments = ["measure", "--size", "64M", "--quick", "--read-only", text(&dir)];
    let run = Started::new(&mut ours.command(&arguments));
    let file = dir.join("headroom.tmp/headroom-test");
    run.wait_until("the sweep", || file.metadata().is_ok_and(|file| file.len() == 64 * MIB));
    sleep(Duration::from_secs(2));
    cut(&disk, 0);
    run.end().refused(
        3,
        &["every I/O on", "headroom-test failed", "Input/output error", "try: read the kernel's log"],
    );
    assert!(!file.exists());
    assert_eq!(test_files_on_record(&ours), 0);
}

/// A load on the device that has run for two of its four seconds.
fn under_load(ours: &Headroom, disk: &LoopDisk, writes: &str) -> Started {
    let device = text(disk.device());
    let load = ["run", device, "--destroy-data", device, "--writes", writes, "--rate", "200/s"];
    let time = ["--warm-up", "0s", "--duration", "4s", "--json"];
    let run = Started::new(&mut ours.command(&[&load[..], &time].concat()));
    sleep(Duration::from_secs(2));
    run
}

#[test]
fn a_device_that_breaks_under_a_load_needs_action_beside_what_was_measured() {
    let Some(disk) = LoopDisk::new(64 * MIB) else { return };
    let ours = Headroom::new();
    // Only reads: a write would make the file below longer again.
    let run = under_load(&ours, &disk, "0");
    cut(&disk, 0);
    let said = run.end();
    assert_eq!(said.code, Some(1), "{}", said.stderr);
    assert!(said.stderr.contains(" failed: read the kernel's log"), "{}", said.stderr);
    let answer: serde_json::Value = serde_json::from_str(&said.stdout).unwrap();
    let read = &answer["phases"][0]["results"][0]["read"];
    assert!(read["count"].as_u64().unwrap() > 100, "{read:#}");
    let failed = read["errors"][libc::EIO.to_string()].as_u64().unwrap();
    assert!(failed > 10, "{read:#}");
}

#[test]
fn a_device_that_is_detached_under_a_load_stays_until_its_end_and_no_longer() {
    let Some(disk) = LoopDisk::new(64 * MIB) else { return };
    let ours = Headroom::new();
    let attached = || {
        let name = disk.device().file_name().unwrap();
        std::path::Path::new("/sys/block").join(name).join("loop/backing_file").exists()
    };
    let run = under_load(&ours, &disk, "50");
    assert!(Command::new("losetup").arg("--detach").arg(disk.device()).status().unwrap().success());
    assert!(attached());
    let said = run.end();
    assert_eq!(said.code, Some(1), "{}", said.stderr);
    let told = format!("warning: {} was detached while the load ran", disk.device().display());
    assert!(said.stderr.contains(&told), "{}", said.stderr);
    wait_until("the end of the device", || !attached());
    headroom(&ours, &["run", text(disk.device())]).refused(3, &[text(disk.device()), "\n  try: "]);
}
