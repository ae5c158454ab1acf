//! Histories that another user can write to, or put files beside.

use history::{Error, History};
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;

const OTHER_USER: u32 = 65_534;

/// A journal that SQLite takes for one of an interrupted write of this database. It names a file that SQLite removes once the
/// journal is rolled back (the super-journal, section 4 of SQLite's "Atomic Commit").
fn hot_journal(database: &[u8], names: &Path) -> Vec<u8> {
    const PAGE_BYTES: usize = 4096;
    const SECTOR_BYTES: usize = 512;
    const NONCE: u32 = 12_345;
    const MAGIC: [u8; 8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7];
    /// The page at 1 GiB, where locks are, is never written.
    const LOCK_PAGE: u32 = (1 << 30) / PAGE_BYTES as u32 + 1;
    let pages = database.len() / PAGE_BYTES;
    let mut journal = MAGIC.to_vec();
    for number in [pages as u32, NONCE, pages as u32, SECTOR_BYTES as u32, PAGE_BYTES as u32] {
        journal.extend(number.to_be_bytes());
    }
    journal.resize(SECTOR_BYTES, 0);
    for (at, page) in database.chunks_exact(PAGE_BYTES).enumerate() {
        let every_200th =
            (1..).map(|step| PAGE_BYTES.checked_sub(200 * step)).map_while(|at| at.filter(|at| *at > 0));
        let checksum = every_200th.fold(NONCE, |sum, at| sum.wrapping_add(page[at].into()));
        journal.extend((at as u32 + 1).to_be_bytes());
        journal.extend(page);
        journal.extend(checksum.to_be_bytes());
    }
    let name = names.to_str().unwrap().as_bytes();
    let sum = name.iter().fold(0_u32, |sum, byte| sum + u32::from(*byte));
    journal.extend(LOCK_PAGE.to_be_bytes());
    journal.extend(name);
    journal.extend((name.len() as u32).to_be_bytes());
    journal.extend(sum.to_be_bytes());
    journal.extend(MAGIC);
    journal
}

/// A database in the older journal mode, as another program makes it of a history.
fn with_hot_journal(path: &Path, names: &Path) {
    drop(History::open(path).unwrap());
    let mut database = fs::read(path).unwrap();
    // The versions of the file format for writing and reading: 1 is a rollback journal, 2 a WAL.
    (database[18], database[19]) = (1, 1);
    fs::write(path, &database).unwrap();
    fs::write(path.with_extension("db-journal"), hot_journal(&database, names)).unwrap();
}

#[test]
fn what_another_users_journal_names_is_not_removed() {
    let (dir, roots) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (path, victim) = (dir.path().join("h.db"), roots.path().join("victim"));
    fs::write(&victim, "data").unwrap();
    with_hot_journal(&path, &victim);
    // SQLite does remove it where the file is this user's own: the journal is as it should be.
    drop(History::open_kept(&path).unwrap());
    assert!(!victim.exists());
    fs::write(&victim, "data").unwrap();
    with_hot_journal(&path, &victim);
    for file in [dir.path(), &path, &path.with_extension("db-journal")] {
        if let Err(error) = chown(file, Some(OTHER_USER), None) {
            return println!("skipped: a file of another user needs root: {error}");
        }
    }
    let history = History::open_kept(&path).unwrap();
    assert!(history.subjects().unwrap().is_empty());
    drop(history);
    assert!(victim.exists() && path.with_extension("db-journal").exists());
    assert!(matches!(History::open(&path), Err(Error::OfAnotherUser { .. })));
}

#[test]
fn a_history_in_a_directory_of_other_users_or_beside_anothers_file_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("h.db");
    drop(History::open(&path).unwrap());
    let before = fs::read(&path).unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o1777)).unwrap();
    for opened in [History::open(&path), History::open_kept(&path), History::open(&dir.path().join("new.db"))]
    {
        assert!(matches!(opened, Err(Error::OpenPlace { .. })), "{opened:?}");
    }
    // A group of which its owner is the only member, as each user has on many systems, is no other user.
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o775)).unwrap();
    if chown(dir.path(), None, Some(OTHER_USER)).is_ok() {
        let opened = History::open_kept(&path);
        assert!(matches!(opened, Err(Error::OpenPlace { .. })), "another group may write: {opened:?}");
        chown(dir.path(), None, Some(0)).unwrap();
    }
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    for suffix in ["wal", "journal", "shm"] {
        let beside = path.with_extension(format!("db-{suffix}"));
        fs::write(&beside, "").unwrap();
        if let Err(error) = chown(&beside, Some(OTHER_USER), None) {
            return println!("skipped: a file of another user needs root: {error}");
        }
        for opened in [History::open(&path), History::open_kept(&path)] {
            assert!(matches!(opened, Err(Error::OpenPlace { .. })), "{suffix}: {opened:?}");
        }
        fs::remove_file(beside).unwrap();
    }
    assert_eq!(fs::read(&path).unwrap(), before);
    assert!(History::open_kept(&path).is_ok());
}
