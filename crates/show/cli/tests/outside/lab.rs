//! `headroom lab`: experiments with real engines, whose figures are held against what others count.

mod commit;
mod crash;
mod footprint;
mod recover;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use tempfile::TempDir;

/// A directory on the tests' disk that servers' users get to.
fn directory() -> TempDir {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
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
