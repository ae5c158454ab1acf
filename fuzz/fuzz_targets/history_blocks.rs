#![no_main]
//! A history whose values or bytes somebody changed is read, thinned, packed and added to, or refused.

#[path = "../../crates/observe/history/tests/history/damage.rs"]
mod damage;

use damage::{make, overwrite, replace_values, use_all};
use libfuzzer_sys::fuzz_target;
use rusqlite::Connection;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// A history as it was made, and where a damaged copy lies: best in memory, because each save is synced.
static WHOLE: LazyLock<(Vec<u8>, PathBuf)> = LazyLock::new(|| {
    let dir = tempfile::tempdir().expect("memory").keep();
    let path = dir.join("history.db");
    make(&path);
    (fs::read(&path).expect("it was made"), path)
});

fuzz_target!(|bytes: &[u8]| {
    let Some((what, changes)) = bytes.split_first() else { return };
    let (mut whole, path) = WHOLE.clone();
    remove_beside(&path);
    if what & 1 == 0 {
        fs::write(&path, whole).expect("memory");
        replace_values(&Connection::open(&path).expect("it is whole"), changes);
    } else {
        overwrite(&mut whole, changes);
        fs::write(&path, whole).expect("memory");
    }
    use_all(&path);
});

fn remove_beside(path: &Path) {
    for suffix in ["-wal", "-shm", "-journal"] {
        let _ = fs::remove_file(path.with_file_name(format!("history.db{suffix}")));
    }
}
