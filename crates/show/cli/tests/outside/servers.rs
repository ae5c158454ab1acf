//! PostgreSQL and MariaDB on a device of their own, throttled: what the server counts, what the kernel counts of each
//! file, and what the device did are the same bytes, and an index rebuild and a checkpoint are seen as what they are.
//! Needs root; says so elsewhere.
//!
//! ```text
//! postgres: mysql:     the server's own counters  ─┐ the same bytes of the same files, where both count bytes
//! process:PID          what its processes asked   ─┤ exactly the part of `process:` that is the server's
//! process:             what files caused below    ─┤ files, journal and what is not told for which: the device's
//! devices:loopN        what the device did        ─┘
//!
//! The device's bytes = the server's x write amplification:
//!     MariaDB     doublewrite is among the server's bytes (it lies in ibdata1); beyond them the last block of the redo
//!                 log and of the binary log, written again by each commit, and the file system's journal
//!     PostgreSQL  full-page images are among the log's bytes; beyond them zeros of new segments of the log,
//!                 pg_xact and the like, and the file system's journal
//! ```

mod mariadb;
mod postgres;
mod recorded;
mod watching;

use std::path::{Path, PathBuf};
use std::process::Command;
use testbed::LoopDisk;
use watching::{Intervals, is_on};
use workload::CapKind;

const WRITTEN_A_SECOND: u64 = 80 << 20;

/// To be throttled when the server is there.
fn disk() -> Option<(LoopDisk, PathBuf)> {
    let mut disk = LoopDisk::new(1 << 30)?;
    let mount = disk.format_and_mount().to_path_buf();
    Some((disk, mount))
}

fn throttle(disk: &mut LoopDisk) -> bool {
    disk.throttle(CapKind::WriteBytes, WRITTEN_A_SECOND)
}

fn sync(mount: &Path) {
    assert!(Command::new("sync").arg("-f").arg(mount).status().unwrap().success());
}

/// Bytes that the device wrote: those that the block layer reported, nearly all of them for files and the journal.
#[track_caller]
fn at_the_device(load: &Intervals, disk: &LoopDisk) -> u64 {
    let (device, name) = (load.by_device(), disk.device().to_str().unwrap());
    let told = load.at_block_layer(|path| is_on(path, disk.mount_point()));
    let not_told = load.at_block_layer(|path| path.starts_with(name));
    close("all at the block layer, and the device", told + not_told, device, 0.01);
    close("files and journal, and the device", told, device, 0.02);
    device
}

/// Two counts of the same bytes.
#[track_caller]
fn close(what: &str, ours: u64, theirs: u64, within: f64) {
    let ratio = ours as f64 / theirs as f64;
    eprintln!("{what}: {ours} and {theirs} bytes, {ratio:.4}");
    assert!((ratio - 1.0).abs() <= within, "{what}: {ours} and {theirs} bytes");
}
