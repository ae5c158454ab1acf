//! Databases of experiments: created in a new file, marked when complete, opened only with the mark.

use crate::{Error, PageCache};
use rusqlite::ffi::SQLITE_ERROR;
use rusqlite::{Connection, OpenFlags};
use std::fs::{self, OpenOptions};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// "HdLb" in the application id of the header marks a finished database of an experiment.
pub const APPLICATION_ID: i32 = 0x4864_4c62;

/// The longest wait for another writer: an index rebuild on slow storage holds the lock for minutes.
const BUSY_TIMEOUT: Duration = Duration::from_secs(600);

/// Suffixes of files that SQLite takes for a part of the database.
const COMPANIONS: [&str; 3] = ["-journal", "-wal", "-shm"];

/// Creates a database in a new file: `fill` creates and fills its tables, without journal and syncs. Then
/// the file is switched to WAL, marked, synced and evicted from the page cache. The file is removed if
/// anything fails.
///
/// Where another user may lead `path` elsewhere, it is `/proc/self/fd/N/NAME`, below an open directory, and `vfs` that of
/// [`crate::counted_sqlite`], which keeps such a name. The default VFS replaces it by the directory's path.
///
/// # Errors
/// [`Error::Exists`] if a file of that name, or a journal of its name, exists; it is left alone.
pub fn create(
    path: &Path,
    vfs: Option<&str>,
    page_bytes: u32,
    fill: impl FnOnce(&mut Connection) -> rusqlite::Result<()>,
) -> Result<(), Error> {
    for companion in COMPANIONS {
        let existing = with_suffix(path, companion);
        if existing.symlink_metadata().is_ok() {
            return Err(Error::Exists { path: path.into(), existing });
        }
    }
    match OpenOptions::new().write(true).create_new(true).open(path) {
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            return Err(Error::Exists { path: path.into(), existing: path.into() });
        }
        Err(source) => return Err(Error::Io { doing: "make", path: path.into(), source }),
    }
    let made = build(path, vfs, page_bytes, fill)
        .map_err(|source| Error::Sqlite { doing: "make the tables", path: path.into(), source })
        .and_then(|()| {
            let cache = PageCache::open(path)?;
            cache.write_out()?;
            cache.evict()
        });
    if made.is_err() {
        // A failed removal is no second error: without the mark the file is never used.
        let _ = fs::remove_file(path);
        for companion in COMPANIONS {
            let _ = fs::remove_file(with_suffix(path, companion));
        }
    }
    made
}

fn build(
    path: &Path,
    vfs: Option<&str>,
    page_bytes: u32,
    fill: impl FnOnce(&mut Connection) -> rusqlite::Result<()>,
) -> rusqlite::Result<()> {
    let mut connection = connect(path, flags(), vfs)?;
    connection.pragma_update(None, "page_size", page_bytes)?;
    connection.pragma_update(None, "journal_mode", "OFF")?;
    connection.pragma_update(None, "synchronous", "OFF")?;
    connection.pragma_update(None, "cache_size", -65_536)?;
    fill(&mut connection)?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    // Last, since only a complete file may be used.
    connection.pragma_update(None, "application_id", APPLICATION_ID)?;
    connection.close().map_err(|(_, error)| error)
}

/// Opens a database that [`create`] finished, through `vfs` or the default one: WAL, every commit synced, memory maps
/// off and a small page cache, so that reads go to the file.
///
/// # Errors
/// [`Error::NotOurs`] for any other file.
pub fn open(path: &Path, vfs: Option<&str>) -> Result<Connection, Error> {
    // Read-only first: not even the journal of another program's database may be rolled back.
    let failed = |source| Error::Sqlite { doing: "open a connection", path: path.into(), source };
    match is_ours(path, vfs) {
        Ok(true) => {}
        // SQLite's code where it has no VFS of that name.
        Err(error) if error.sqlite_error().is_some_and(|error| error.extended_code == SQLITE_ERROR) => {
            return Err(failed(error));
        }
        Ok(false) | Err(_) => return Err(Error::NotOurs { path: path.into() }),
    }
    let open = || {
        let connection = connect(path, flags(), vfs)?;
        // The directory under test may be full.
        history::guard_wal_index(&connection);
        connection.busy_timeout(BUSY_TIMEOUT)?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.pragma_update(None, "cache_size", -2_048)?;
        connection.pragma_update(None, "mmap_size", 0)?;
        Ok(connection)
    };
    open().map_err(failed)
}

fn is_ours(path: &Path, vfs: Option<&str>) -> rusqlite::Result<bool> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let connection = connect(path, flags, vfs)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    let id: i32 = connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
    Ok(id == APPLICATION_ID)
}

fn connect(path: &Path, flags: OpenFlags, vfs: Option<&str>) -> rusqlite::Result<Connection> {
    match vfs {
        Some(vfs) => Connection::open_with_flags_and_vfs(path, flags, vfs),
        None => Connection::open_with_flags(path, flags),
    }
}

/// Through no link: the directory may be another user's, who may put one in the place of a name that was just checked.
fn flags() -> OpenFlags {
    OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;
    use tempfile::tempdir;

    fn create_small(path: &Path) -> Result<(), Error> {
        create(path, None, 8192, |connection| connection.execute_batch("CREATE TABLE t (v)"))
    }

    #[test]
    fn a_new_database_is_in_wal_mode_and_marked() {
        let dir = tempdir().unwrap();
        let path = dir.path().join("a.db");
        create_small(&path).unwrap();
        let connection = open(&path, None).unwrap();
        let text =
            |pragma| connection.pragma_query_value(None, pragma, |row| row.get::<_, String>(0)).unwrap();
        let number =
            |pragma| connection.pragma_query_value(None, pragma, |row| row.get::<_, i64>(0)).unwrap();
        assert_eq!(text("journal_mode"), "wal");
        assert_eq!((number("synchronous"), number("page_size")), (2, 8192));
    }

    #[test]
    fn no_existing_file_is_overwritten() {
        let dir = tempdir().unwrap();
        for name in ["taken.db", "new.db-wal", "new.db-journal"] {
            let existing = dir.path().join(name);
            fs::write(&existing, "precious").unwrap();
            let database = dir.path().join(name.split('-').next().unwrap());
            assert!(matches!(create_small(&database), Err(Error::Exists { .. })), "{name}");
            assert_eq!(fs::read_to_string(&existing).unwrap(), "precious");
            fs::remove_file(existing).unwrap();
            assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "nothing was put beside {name}");
        }
    }

    #[test]
    fn no_link_that_took_the_name_is_followed() {
        let dir = tempdir().unwrap();
        let (precious, workspace) = (dir.path().join("precious.db"), dir.path().join("headroom.tmp"));
        create_small(&precious).unwrap();
        let before = fs::read(&precious).unwrap();
        std::os::unix::fs::symlink(&precious, dir.path().join("everyday.db")).unwrap();
        assert!(matches!(open(&dir.path().join("everyday.db"), None), Err(Error::NotOurs { .. })));
        std::os::unix::fs::symlink(dir.path(), &workspace).unwrap();
        assert!(matches!(open(&workspace.join("precious.db"), None), Err(Error::NotOurs { .. })));
        assert_eq!(fs::read(&precious).unwrap(), before);
    }

    #[test]
    fn below_a_descriptor_all_files_stay_in_their_directory_whatever_takes_its_name() {
        crate::counted_sqlite().unwrap();
        let vfs = Some(sqlite_vfs::VFS_NAME);
        let dir = tempdir().unwrap();
        let [workspace, moved, elsewhere] =
            ["headroom.tmp", "moved", "elsewhere"].map(|name| dir.path().join(name));
        for made in [&workspace, &elsewhere] {
            fs::create_dir(made).unwrap();
        }
        let names = ["a.db", "a.db-journal", "a.db-wal", "a.db-shm"];
        names.iter().for_each(|name| fs::write(elsewhere.join(name), "precious").unwrap());
        let opened = fs::File::open(&workspace).unwrap();
        let path = PathBuf::from(format!("/proc/self/fd/{}/a.db", opened.as_raw_fd()));
        // As the owner of the directory does it, at the worst moment.
        fs::rename(&workspace, &moved).unwrap();
        std::os::unix::fs::symlink(&elsewhere, &workspace).unwrap();
        let fill = |connection: &mut Connection| connection.execute_batch("CREATE TABLE t (v)");
        create(&path, vfs, 8192, fill).unwrap();
        let connection = open(&path, vfs).unwrap();
        connection.execute_batch("INSERT INTO t VALUES (1)").unwrap();
        assert!(moved.join("a.db-wal").exists() && moved.join("a.db-shm").exists());
        let error = create(&path, vfs, 8192, fill).unwrap_err().to_string();
        assert!(error.contains(moved.join("a.db").to_str().unwrap()), "errors have the path: {error}");
        drop(connection);
        assert_eq!(fs::read_dir(&moved).unwrap().count(), 1);
        for name in names {
            assert_eq!(fs::read_to_string(elsewhere.join(name)).unwrap(), "precious", "{name}");
        }
        let counted = crate::counted_sqlite().unwrap().files().any(|file| file.path == moved.join("a.db"));
        assert!(counted, "counted by its path");
    }

    #[test]
    fn an_unfinished_database_is_removed_and_a_foreign_one_is_not_used() {
        let dir = tempdir().unwrap();
        let path = dir.path().join("a.db");
        assert!(create(&path, None, 8192, |connection| connection.execute_batch("NONSENSE")).is_err());
        assert!(!path.exists());
        Connection::open(&path).unwrap().execute_batch("CREATE TABLE goods (name)").unwrap();
        let before = fs::read(&path).unwrap();
        assert!(matches!(open(&path, None), Err(Error::NotOurs { .. })));
        assert!(matches!(open(Path::new("/nowhere.db"), None), Err(Error::NotOurs { .. })));
        assert_eq!(fs::read(&path).unwrap(), before);
    }
}
