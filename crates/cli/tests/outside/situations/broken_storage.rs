//! Storage that answers with errors.

use super::{headroom, nothing_left, test_files_on_record, text};
use crate::programs::Headroom;
use std::fs::OpenOptions;
use testbed::LoopDisk;

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
    let Some(disk) = LoopDisk::new(64 * MIB) else { return };
    cut(&disk, 48 * MIB);
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
fn a_file_system_on_a_broken_device_is_left_clean() {
    let Some(mut disk) = LoopDisk::new(256 * MIB) else { return };
    let dir = disk.format_and_mount().to_path_buf();
    // What of it is in memory goes on working; data blocks behind the cut fail.
    cut(&disk, 24 * MIB);
    let ours = Headroom::new();
    let said = headroom(&ours, &["measure", "--size", "128M", "--quick", text(&dir)]);
    assert_eq!(said.code, Some(3), "{}{}", said.stdout, said.stderr);
    assert!(said.stderr.contains("error: cannot "), "{}", said.stderr);
    assert!(said.stderr.contains("  try: "), "{}", said.stderr);
    assert!(!said.stderr.contains("panicked"), "{}", said.stderr);
    // The file system may have gone read-only: then only what it still lets us remove is gone.
    if std::fs::write(dir.join("probe"), "").is_ok() {
        nothing_left(&dir);
        assert_eq!(test_files_on_record(&ours), 0);
    }
}
