//! Damaged and foreign counters files are read or refused: a reader never panics, and never
//! returns more files than the table has.

use proptest::prelude::*;
use rusqlite::{Connection, OpenFlags, ffi};
use sqlite_vfs::{CountersFile, Publish, ReadError, SqliteFunctions, VFS_NAME, published_in, register};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

const SLOTS_AT: usize = 4096;
const SLOT_BYTES: usize = 5120;

/// The file that this process publishes, with a database, its log and temporary files in it.
fn published() -> &'static (tempfile::TempDir, PathBuf) {
    static PUBLISHED: OnceLock<(tempfile::TempDir, PathBuf)> = OnceLock::new();
    PUBLISHED.get_or_init(|| {
        let dir = tempfile::tempdir().unwrap();
        let (find, register_vfs) = (ffi::sqlite3_vfs_find as _, ffi::sqlite3_vfs_register as _);
        // SAFETY: these are the two functions.
        let functions = unsafe { SqliteFunctions::from_addresses(find, register_vfs) };
        let publish = Publish::Shared { dir: dir.path().into() };
        // SAFETY: they are those of the SQLite in this program.
        let registry = unsafe { register(functions, publish, false) }.unwrap();
        let path = dir.path().join("shop.db");
        let database = Connection::open_with_flags_and_vfs(path, OpenFlags::default(), VFS_NAME).unwrap();
        database.execute_batch("PRAGMA journal_mode=WAL; CREATE TABLE a(x)").unwrap();
        let path = registry.published().unwrap();
        (dir, path)
    })
}

/// The name that the file of this process has.
fn own_name() -> String {
    format!("headroom-sqlite-{}.counters", std::process::id())
}

fn read_all(path: &Path) -> Result<usize, ReadError> {
    let counters = CountersFile::open(path)?;
    let _ = (counters.process.is_alive(), counters.process.command());
    counters.files().map(|files| files.len())
}

#[test]
fn a_good_file_is_read_and_only_its_owner_may() {
    let (dir, path) = published();
    assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
    let found = published_in(dir.path()).unwrap();
    assert_eq!(found.live.len(), 1);
    assert_eq!(found.live[0].process.pid, std::process::id());
    let names: Vec<_> =
        found.live[0].files().unwrap().iter().map(|file| file.path.file_name().unwrap().to_owned()).collect();
    assert_eq!(names, ["(temporary files)", "shop.db", "shop.db-journal", "shop.db-wal"]);
}

#[test]
fn files_of_other_kinds_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(own_name());
    assert!(matches!(read_all(&path), Err(ReadError::Io { .. })));
    let good = fs::read(&published().1).unwrap();
    for bytes in [&good[..0], &good[..7], &good[..4096], &good[..good.len() - 1], &vec![0; good.len()]] {
        fs::write(&path, bytes).unwrap();
        assert!(matches!(read_all(&path), Err(ReadError::Foreign { .. })), "{} bytes", bytes.len());
    }
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    assert!(read_all(&path).is_err());
}

#[test]
fn a_file_that_is_truncated_while_it_is_open_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(own_name());
    fs::copy(&published().1, &path).unwrap();
    let counters = CountersFile::open(&path).unwrap();
    assert_eq!(counters.files().unwrap().len(), 4);
    fs::File::options().write(true).open(&path).unwrap().set_len(100).unwrap();
    assert!(matches!(counters.files(), Err(ReadError::Foreign { .. })));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn damage_anywhere_is_read_or_refused(
        damage in prop::collection::vec(
            (prop_oneof![0_usize..256, SLOTS_AT..SLOTS_AT + 3 * SLOT_BYTES], any::<u8>()), 1..40),
        length in prop_oneof![Just(usize::MAX), 0_usize..20_000],
    ) {
        let mut bytes = fs::read(&published().1).unwrap();
        for (at, byte) in damage {
            bytes[at] = byte;
        }
        bytes.truncate(length);
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(own_name());
        fs::write(&path, &bytes).unwrap();
        if let Ok(files) = read_all(&path) {
            prop_assert!(files <= sqlite_vfs::FILES_MAX);
        }
        let _ = published_in(dir.path());
    }
}
