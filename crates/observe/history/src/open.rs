//! Finding, checking and making the file.

use crate::bounds::{CpuBudget, bound};
use crate::file_state::{FileState, check_completed, check_owner};
use crate::migrations::{MIGRATIONS, check_schema, migrate};
use crate::ownership::{check_place, is_trusted};
use crate::read_only::{open_unchanged, open_without_wal_index, takes_no_file};
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
    /// Opens the history, or makes one where there is no file (or an empty one, as a kill while making it
    /// leaves behind). An older schema is brought up to date.
    ///
    /// # Errors
    /// A file that is no history of Headroom is refused and not touched: [`Error::NotADatabase`],
    /// [`Error::NotOurs`]. [`Error::NewerSchema`] where a newer Headroom wrote it.
    pub fn open(path: &Path) -> Result<History, Error> {
        History::open_with(path, MIGRATIONS).map_err(|error| {
            match error.is_cannot_open() && takes_no_file(path) {
                true => Error::full_disk("open the file", path),
                false => error,
            }
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

    fn open_with(path: &Path, migrations: &[&str]) -> Result<History, Error> {
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
        let (mut connection, budget) =
            opened.map_err(|source| Error::sqlite("open the file", path, source))?;
        check_schema(&connection, path, migrations)?;
        budget.begin();
        let migrated = migrate(&mut connection, migrations);
        let version = migrated.map_err(|source| Error::sqlite("set up the tables", path, source))?;
        let known = migrations.len() as i64;
        if version > known {
            return Err(Error::NewerSchema { path: path.into(), found: version, known });
        }
        switch_to_wal(&connection).map_err(|source| Error::sqlite("switch to WAL", path, source))?;
        Ok(History { connection, path: path.into(), budget, is_read_only: false })
    }
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
    use filestats::{Counters, Figure, Ops, Reason, Rules};
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
    fn a_file_of_version_1_is_migrated_and_keeps_its_rows() {
        let dir = tempdir().unwrap();
        let path = dir.path().join("history.db");
        let history = History::open_with(&path, &MIGRATIONS[..1]).unwrap();
        let rows = "INSERT INTO test_files (path, bytes, created_unix_ns) VALUES ('/data/headroom.test', 4096, 1); \
                   INSERT INTO runs (started_unix_ns, target, workload, outstanding, threads, elapsed_ns, ios, \
                   failed, iops, mib_per_s, interrupted, summary, json) \
                   VALUES (1, '/data', 'random read 8 KiB', 1, 1, 1, 1, 0, 1, 1, 0, 'of version 1', '{}')";
        history.connection.execute_batch(rows).unwrap();
        drop(history);
        let next =
            [MIGRATIONS[0], MIGRATIONS[1], "ALTER TABLE test_files ADD COLUMN owner TEXT DEFAULT 'nobody'"];
        for _ in 0..2 {
            let history = History::open_with(&path, &next).unwrap();
            assert_eq!(history.test_files().unwrap().len(), 1);
            let entries = history.entries(9).unwrap();
            assert_eq!((entries[0].summary.as_str(), entries[0].session), ("of version 1", None));
            let query = "SELECT owner FROM test_files";
            let owner: String = history.connection.query_row(query, [], |row| row.get(0)).unwrap();
            assert_eq!(owner, "nobody");
        }
        assert!(matches!(
            History::open_with(&path, &MIGRATIONS[..1]),
            Err(Error::NewerSchema { found: 3, known: 1, .. })
        ));
    }

    #[test]
    fn what_version_6_knew_to_begin_at_zero_still_does() {
        let dir = tempdir().unwrap();
        let path = dir.path().join("history.db");
        let history = History::open_with(&path, &MIGRATIONS[..6]).unwrap();
        // A file begins in the capture after each of these: promised to be new, promised by another epoch, not promised.
        let captured = "INSERT INTO captures (source, taken_unix_ns, clock_ns, files, files_changed, complete) VALUES \
                        ('p', 1, 1, 0, 0, '{\"run\":\"1\",\"reset\":\"\"}'), ('p', 2, 2, 1, 1, '{\"run\":\"1\",\"reset\":\"\"}'), \
                        ('p', 3, 3, 1, 1, '{\"run\":\"2\",\"reset\":\"\"}'), ('p', 4, 4, 1, 1, NULL), ('p', 5, 5, 1, 1, NULL); \
                        INSERT INTO files (id, source, first_capture_id, instance, file_id, kind, path, epoch) \
                        SELECT id, 'p', id, 'pid 1', id, 'data', '/data/' || id, 'run' FROM captures WHERE id > 1; \
                        INSERT INTO file_changes (file, capture_id, reads, read_bytes, read_stall_ns, writes, \
                        write_bytes, write_stall_ns, syncs_unknown, busy_unknown, size_bytes) \
                        SELECT id, id, 7, 7, 7, 0, 0, 0, 0, 0, 0 FROM files";
        history.connection.execute_batch(captured).unwrap();
        drop(history);
        let history = History::open(&path).unwrap();
        let series = history.series("p", 0, u64::MAX).unwrap();
        let added = |file: usize| {
            let course = history.file_course(&series, file, Rules::default()).unwrap().remove(0);
            course.steps[0].added.map(|added| added.read.count)
        };
        let first_sight = Figure::unknown(Reason::FirstSight);
        assert_eq!([0, 1, 2, 3].map(added), [Figure::Known(7), first_sight, first_sight, first_sight]);
    }

    #[test]
    fn counters_of_version_5_come_back_as_they_were() {
        let dir = tempdir().unwrap();
        let path = dir.path().join("history.db");
        let history = History::open_with(&path, &MIGRATIONS[..5]).unwrap();
        let captured = "INSERT INTO captures (source, taken_unix_ns, clock_ns, files, files_changed) \
                        VALUES ('sqlite', 5, 5, 1, 1); \
                        INSERT INTO files (source, first_capture_id, instance, file_id, kind, path, epoch) \
                        VALUES ('sqlite', 1, 'engine', '1', 'data', '/data/shop.db', 'run'); \
                        INSERT INTO file_changes (file, capture_id, reads, read_bytes, read_stall_unknown, writes, \
                        write_bytes, write_stall_ns, syncs_unknown, busy_unknown, size_bytes, latencies) \
                        VALUES (1, 1, 7, '18446744073709551615', 'timing-off', 2, 8192, 900, 'not-counted', \
                        'not-counted', 4096, '{\"read\":[],\"write\":[[9,2]],\"sync\":[]}')";
        history.connection.execute_batch(captured).unwrap();
        drop(history);
        let history = History::open(&path).unwrap();
        let snapshot = history.snapshot(crate::CaptureId(1)).unwrap();
        let sample = &snapshot.samples[0];
        let read = Ops { count: 7, bytes: u64::MAX, stall_ns: Figure::unknown(Reason::TimingOff) };
        let unknown = Figure::unknown(Reason::NotCounted);
        let write = Ops::timed(2, 8192, 900);
        assert_eq!(
            sample.counters,
            Counters { read, write, sync: Figure::unknown(Reason::NotCounted), busy_ns: unknown }
        );
        let written: Vec<_> = sample.latencies.as_ref().unwrap().write.filled().collect();
        assert_eq!(written, [(9, 2)]);
        let query = "SELECT read_stall_unknown || syncs_unknown FROM file_stats";
        let words: String = history.connection.query_row(query, [], |row| row.get(0)).unwrap();
        assert_eq!(words, "timing-offnot-counted", "people read words");
    }

    #[test]
    fn a_migration_that_fails_changes_nothing() {
        let dir = tempdir().unwrap();
        let path = dir.path().join("history.db");
        drop(History::open_with(&path, &MIGRATIONS[..1]).unwrap());
        let broken = [MIGRATIONS[0], "CREATE TABLE half (done); CREATE TABLE captures (again);"];
        assert!(matches!(History::open_with(&path, &broken), Err(Error::Sqlite { .. })));
        let history = History::open_with(&path, &MIGRATIONS[..1]).unwrap();
        let query = "SELECT count(*) FROM sqlite_schema WHERE name = 'half'";
        let tables: i64 = history.connection.query_row(query, [], |row| row.get(0)).unwrap();
        assert_eq!(tables, 0);
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
