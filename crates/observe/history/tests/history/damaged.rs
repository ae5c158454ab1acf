//! A damaged history is read as far as it can be, or refused: no panic. `scripts/fuzz history_blocks` does more of this.

use crate::damage::{make, overwrite, replace_values, use_all};
use history::{History, Retention, RetentionStep};
use proptest::prelude::*;
use rusqlite::Connection;
use std::fs;
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

fn whole() -> &'static [u8] {
    static WHOLE: OnceLock<Vec<u8>> = OnceLock::new();
    WHOLE.get_or_init(|| {
        let dir = tempfile::tempdir().unwrap();
        make(&dir.path().join("history.db"));
        fs::read(dir.path().join("history.db")).unwrap()
    })
}

/// In memory where there is such a directory: each save is synced.
fn directory() -> tempfile::TempDir {
    let shared = Path::new("/dev/shm");
    tempfile::tempdir_in(if shared.is_dir() { shared.into() } else { std::env::temp_dir() }).unwrap()
}

#[test]
fn a_block_with_figures_that_headroom_does_not_write_is_refused_when_it_is_thinned() {
    let dir = directory();
    let path = dir.path().join("history.db");
    fs::write(&path, whole()).unwrap();
    Connection::open(&path).unwrap().execute("UPDATE file_blocks SET reads = ?", [i64::MAX]).unwrap();
    let mut history = History::open(&path).unwrap();
    let hourly = RetentionStep { age: Duration::ZERO, every: Duration::from_secs(3600) };
    let error = history.apply_retention(&Retention(vec![hourly]), u64::MAX).unwrap_err();
    assert!(error.to_string().contains("changed by another program"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_history_with_other_values_is_read_or_refused(
        parts in prop::collection::vec((any::<[u8; 4]>(), prop::collection::vec(any::<u8>(), 0..24)), 1..6),
    ) {
        let dir = directory();
        let path = dir.path().join("history.db");
        fs::write(&path, whole()).unwrap();
        let damage: Vec<u8> = parts.iter().flat_map(|(head, part)| [head.as_slice(), &[part.len() as u8], part].concat()).collect();
        replace_values(&Connection::open(&path).unwrap(), &damage);
        use_all(&path);
    }

    #[test]
    fn a_history_with_other_bytes_is_read_or_refused(
        parts in prop::collection::vec((any::<[u8; 3]>(), prop::collection::vec(any::<u8>(), 1..24)), 1..6),
    ) {
        let dir = directory();
        let path = dir.path().join("history.db");
        let mut bytes = whole().to_vec();
        let damage: Vec<u8> = parts.iter().flat_map(|(at, part)| [at.as_slice(), &[part.len() as u8], part].concat()).collect();
        overwrite(&mut bytes, &damage);
        fs::write(&path, bytes).unwrap();
        use_all(&path);
    }
}
