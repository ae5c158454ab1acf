//! Finding, checking and making the file.

use crate::bounds::{CpuBudget, bound};
use crate::file_state::{FileState, check_completed, check_owner};
use crate::ownership::{check_place, is_trusted};
use crate::read_only::{open_unchanged, open_without_wal_index, takes_no_file};
use crate::schema::{check_schema, make_tables};
use crate::statements::retry_while;
use crate::{Error, History, guard_wal_index};
use rusqlite::{Connection, ErrorCode, OpenFlags};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::io::Errno;
use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Longest wait for another Headroom that is writing. A write takes milliseconds; a minute means a hung disk.
const BUSY_TIMEOUT: Duration = Duration::from_secs(60);

impl History {
    /// Opens the history, or makes one where there is no file (or an empty one, as a kill while making it leaves behind).
    ///
    /// # Errors
    /// A file that is no history of Headroom is refused and not touched: [`Error::NotADatabase`],
    /// [`Error::NotOurs`]. [`Error::NewerSchema`] where a newer Headroom wrote it, [`Error::BeforeRelease`] where a development version
    /// did.
    pub fn open(path: &Path) -> Result<History, Error> {
        open_or_make(path).map_err(|error| match error.is_cannot_open() && takes_no_file(path) {
            true => Error::full_disk("open the file", path),
            false => error,
        })
    }

    /// Opens a history that is there, for reading: makes neither file nor directory. On a full disk nothing can be added to
    /// it.
    ///
    /// # Errors
    /// [`Error::NotThere`]; those of [`open`](Self::open).
    pub fn open_kept(path: &Path) -> Result<History, Error> {
        match fs::metadata(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(Error::NotThere { path: path.into() });
            }
            _ => {}
        }
        if !is_trusted(path) {
            return open_unchanged(path);
        }
        match History::open(path) {
            Err(full) if full.is_full_disk() => open_without_wal_index(path).map_err(|_| full),
            opened => opened,
        }
    }

    /// `$XDG_DATA_HOME/headroom/history.db`, or `~/.local/share/headroom/history.db`.
    ///
    /// # Errors
    /// [`Error::NoHome`] where neither variable is set.
    pub fn default_path() -> Result<PathBuf, Error> {
        default_path_of(std::env::var_os("XDG_DATA_HOME"), std::env::var_os("HOME")).ok_or(Error::NoHome)
    }

    /// Finds out whether something can be added, before an hour of work is done for it.
    ///
    /// # Errors
    /// [`Error::NotWritable`] where the file or its directory is read-only, or the user may not write to it; an error of
    /// `SQLITE_FULL` where the disk was full when it was opened.
    pub fn check_writable(&self) -> Result<(), Error> {
        if self.is_read_only {
            return Err(Error::full_disk("add an entry", &self.path));
        }
        self.budget.begin();
        // The lock of a writer is refused on what cannot be written; nothing is changed.
        self.connection
            .execute_batch("BEGIN IMMEDIATE; ROLLBACK")
            .map_err(|error| Error::NotWritable { path: self.path.clone(), why: error.to_string() })
    }

    /// Where this history is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

fn open_or_make(path: &Path) -> Result<History, Error> {
    History::check_may_add(path)?;
    let state = check_owner(path)?;
    check_place(path)?;
    if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        fs::create_dir_all(parent).map_err(|source| Error::io("make the directory", parent, source))?;
    }
    if state == FileState::Missing {
        create_private(path)?;
    }
    let opened = open_connection(path, state);
    let (mut connection, budget) = opened.map_err(|source| Error::sqlite("open the file", path, source))?;
    budget.begin();
    make_tables(&mut connection).map_err(|source| Error::sqlite("set up the tables", path, source))?;
    check_schema(&connection, path)?;
    switch_to_wal(&connection).map_err(|source| Error::sqlite("switch to WAL", path, source))?;
    Ok(History { connection, path: path.into(), budget, is_read_only: false })
}

fn default_path_of(data_home: Option<OsString>, home: Option<OsString>) -> Option<PathBuf> {
    // The XDG specification says to ignore a relative path.
    let data_home = data_home.map(PathBuf::from).filter(|path| path.is_absolute());
    let home = home.filter(|home| !home.is_empty()).map(|home| PathBuf::from(home).join(".local/share"));
    Some(data_home.or(home)?.join("headroom").join("history.db"))
}

/// Makes an empty file that only its owner may read and write, because it will hold names of files and databases. SQLite
/// gives its -wal and -shm the same mode. Nothing is opened: to close a descriptor would drop the locks of every other
/// connection this process has to the file (POSIX).
fn create_private(path: &Path) -> Result<(), Error> {
    match mknodat(CWD, path, FileType::RegularFile, Mode::RUSR | Mode::WUSR, 0) {
        // Another process may have been faster.
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(errno) => Err(Error::io("make the history", path, errno.into())),
    }
}

fn open_connection(path: &Path, state: FileState) -> rusqlite::Result<(Connection, CpuBudget)> {
    let flags =
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    guard_wal_index(&connection);
    let budget = bound(&connection, path)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    if state == FileState::CutOff {
        check_completed(&connection)?;
    }
    // FULL: a commit is on the disk when it returns. A test file must be on record before it exists, an
    // hour of measuring must outlive a power failure, and one sync for each capture is no load.
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    Ok((connection, budget))
}

/// SQLite gives up at once, without its busy timeout, where another process is just now switching.
fn switch_to_wal(connection: &Connection) -> rusqlite::Result<()> {
    retry_while(ErrorCode::DatabaseBusy, BUSY_TIMEOUT, || {
        connection.pragma_update(None, "journal_mode", "WAL")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paths::beside;
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::CommandExt;
    use tempfile::tempdir;

    #[test]
    fn the_default_file_follows_the_xdg_specification() {
        let path = |data: Option<&str>, home: Option<&str>| {
            default_path_of(data.map(Into::into), home.map(Into::into)).map(|p| p.display().to_string())
        };
        assert_eq!(path(Some("/d"), Some("/h")).unwrap(), "/d/headroom/history.db");
        assert_eq!(path(Some("relative"), Some("/h")).unwrap(), "/h/.local/share/headroom/history.db");
        assert_eq!(path(None, Some("/h")).unwrap(), "/h/.local/share/headroom/history.db");
        assert_eq!(path(None, None), None);
    }

    #[test]
    fn a_file_that_another_process_is_just_making_is_waited_for() {
        let dir = tempdir().unwrap();
        let (whole, path) = (dir.path().join("whole.db"), dir.path().join("history.db"));
        drop(History::open(&whole).unwrap());
        let content = fs::read(&whole).unwrap();
        fs::write(&path, &content[..4096]).unwrap();
        assert!(History::open(&path).is_err(), "it stays cut off");
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(200));
                // Appended: a rewritten file would be empty for a moment, and an empty file is made into a history.
                let mut rest = fs::OpenOptions::new().append(true).open(&path).unwrap();
                std::io::Write::write_all(&mut rest, &content[4096..]).unwrap();
            });
            History::open(&path).unwrap();
        });
    }

    #[test]
    fn a_file_that_is_no_database_is_refused_and_left_alone() {
        let dir = tempdir().unwrap();
        let path = dir.path().join("notes.txt");
        for content in ["short".to_string(), "long ".repeat(1_000)] {
            fs::write(&path, &content).unwrap();
            assert!(matches!(History::open(&path), Err(Error::NotADatabase { .. })));
            assert_eq!(fs::read_to_string(&path).unwrap(), content);
        }
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing was put beside it");
    }

    #[test]
    fn to_read_a_history_that_is_not_there_makes_none() {
        let dir = tempdir().unwrap();
        let path = dir.path().join("typo/history.db");
        let error = History::open_kept(&path).unwrap_err();
        assert!(matches!(&error, Error::NotThere { path: named } if *named == path));
        assert!(error.remedy().is_some());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "neither file nor directory");
        drop(History::open(&path).unwrap());
        assert!(History::open_kept(&path).is_ok());
    }

    /// The permissions of a history and of the files that SQLite puts beside it.
    fn modes(path: &Path) -> Vec<u32> {
        let files = ["", "-wal", "-shm"].map(|suffix| beside(path, suffix));
        files.iter().map(|file| fs::metadata(file).unwrap().permissions().mode() & 0o7777).collect()
    }

    #[test]
    fn a_new_history_is_for_its_owner_alone_and_one_that_is_there_keeps_its_mode() {
        let dir = tempdir().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let path = dir.path().join("history.db");
        let history = History::open(&path).unwrap();
        history.connection.execute_batch("BEGIN IMMEDIATE; CREATE TABLE t (x); COMMIT").unwrap();
        assert_eq!(modes(&path), [0o600; 3]);
        if rustix::process::geteuid().is_root() {
            for suffix in ["", "-wal", "-shm"] {
                let mut read = std::process::Command::new("cat");
                read.arg(beside(&path, suffix)).uid(65534).gid(65534);
                assert!(!read.output().unwrap().status.success(), "another user reads history.db{suffix}");
            }
        } else {
            eprintln!("skipped: reading as another user needs root");
        }
        drop(history);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let history = History::open(&path).unwrap();
        history.connection.execute_batch("BEGIN IMMEDIATE; DROP TABLE t; COMMIT").unwrap();
        assert_eq!(modes(&path), [0o640; 3]);
    }

    #[test]
    fn no_history_is_made_through_a_link() {
        let dir = tempdir().unwrap();
        let (path, elsewhere) = (dir.path().join("history.db"), dir.path().join("elsewhere"));
        std::os::unix::fs::symlink(&elsewhere, &path).unwrap();
        assert!(matches!(History::open(&path), Err(Error::NotAFile { .. })));
        assert!(!elsewhere.exists());
        drop(History::open(&elsewhere).unwrap());
        drop(History::open(&path).unwrap());
    }

    #[test]
    fn what_is_no_file_is_refused_at_once() {
        let dir = tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        for path in [dir.path(), &pipe] {
            assert!(matches!(History::open(path), Err(Error::NotAFile { .. })), "{}", path.display());
        }
    }

    #[test]
    fn a_database_of_others_is_refused_and_left_alone() {
        let dir = tempdir().unwrap();
        let path = dir.path().join("shop.db");
        let shop = Connection::open(&path).unwrap();
        shop.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE goods (name);").unwrap();
        shop.close().unwrap();
        let before = fs::read(&path).unwrap();
        assert!(matches!(History::open(&path), Err(Error::NotOurs { application_id: 0, .. })));
        assert_eq!(fs::read(&path).unwrap(), before);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing was put beside it");
    }

    #[test]
    fn a_newer_schema_is_refused_with_the_remedy() {
        let dir = tempdir().unwrap();
        let path = dir.path().join("history.db");
        let history = History::open(&path).unwrap();
        history.connection.pragma_update(None, "user_version", 99).unwrap();
        drop(history);
        let error = History::open(&path).unwrap_err();
        assert!(matches!(error, Error::NewerSchema { found: 99, .. }));
        assert!(error.remedy().unwrap().contains("upgrade Headroom"));
    }

    #[test]
    fn a_history_of_a_development_version_is_refused_and_left_alone() {
        let dir = tempdir().unwrap();
        let path = dir.path().join("history.db");
        let old = Connection::open(&path).unwrap();
        old.execute_batch(
            "PRAGMA application_id = 0x4864526d; PRAGMA user_version = 13; CREATE TABLE runs (id);",
        )
        .unwrap();
        old.close().unwrap();
        let before = fs::read(&path).unwrap();
        for opened in [History::open(&path), History::open_kept(&path)] {
            let error = opened.unwrap_err();
            assert!(matches!(error, Error::BeforeRelease { .. }));
            assert!(error.to_string().contains("development version"), "{error}");
            assert!(error.remedy().is_some());
        }
        assert_eq!(fs::read(&path).unwrap(), before);
    }

    #[test]
    fn a_name_may_hold_any_character() {
        let dir = tempdir().unwrap();
        let path = dir.path().join("100% of #1?mode=memory & \u{fc}.db");
        for _ in 0..2 {
            drop(History::open(&path).unwrap());
            assert!(path.is_file());
        }
    }

    #[test]
    fn an_empty_file_becomes_a_history() {
        let dir = tempdir().unwrap();
        let path = dir.path().join("deep/below/history.db");
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "").unwrap();
        drop(History::open(&path).unwrap());
        assert!(check_owner(&path).is_ok());
        assert!(History::open(&path).unwrap().test_files().unwrap().is_empty());
    }
}
