//! `headroom lab`: experiments with real engines, whose figures are held against what others count.

mod commit;
mod crash;
mod footprint;
mod recover;

use programs::built;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

#[test]
fn the_laboratory_is_a_program_beside_headroom_or_on_path() {
    let (place, path) = (directory(), directory());
    let alone = place.path().join("headroom");
    std::fs::hard_link(built().join("headroom"), &alone).unwrap();
    let run = || Command::new(&alone).args(["log", "--json", "info", "/"]).env("PATH", path.path()).output();
    let output = run().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{error}");
    assert!(error.starts_with("error: cannot run headroom-lab"), "{error}");
    assert!(error.contains("cd lab && cargo build --release"), "{error}");
    for dir in [&path, &place] {
        let link = dir.path().join("headroom-lab");
        symlink(built().join("headroom-lab"), &link).unwrap();
        let output = run().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{error}");
        assert!(error.contains("name the directory of a page store"), "{error}");
        std::fs::remove_file(link).unwrap();
    }
}

/// A directory on the tests' disk that servers' users get to.
fn directory() -> TempDir {
    let dir = programs::directory_on_disk(env!("CARGO_TARGET_TMPDIR"));
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    dir
}

fn is_empty(dir: &Path) -> bool {
    std::fs::read_dir(dir).unwrap().next().is_none()
}

/// Whether any process's I/O can be counted.
fn is_root() -> bool {
    let root = std::fs::read_to_string("/proc/self/status").unwrap().contains("CapEff:\t000001ff");
    if !root {
        println!("skipped: counting any process's I/O needs root");
    }
    root
}
