//! Examines the file at the path of a history without changing it. Files of other programs are refused; a file that an
//! interrupted checkpoint left is accepted.

use crate::Error;
use crate::paths::{beside, real_path, uri};
use crate::statements::retry_while;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, ffi};
use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

/// "Hdrm" in the application id of the header says that the database is a history of Headroom.
pub const APPLICATION_ID: u32 = 0x4864_726d;
/// "HdRm": a history that a development version made before the first release. Its schema had other versions.
const BEFORE_RELEASE_ID: u32 = 0x4864_526d;

/// State of the file at the path of a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileState {
    Missing,
    Whole,
    /// A file shorter than its header says, beside a WAL or a journal: a checkpoint or the making of the file was
    /// interrupted or is in progress, and SQLite completes it.
    CutOff,
}

/// Refuses a file that is not ours without touching it. `immutable` keeps SQLite from locking the file and
/// from putting a -wal and a -shm beside it. Reading the header ourselves would do for that, but closing our
/// descriptor would drop the locks of every other connection this process has to the file (POSIX).
pub(crate) fn check_owner(path: &Path) -> Result<FileState, Error> {
    let not_a_file = |found| Err(Error::NotAFile { path: path.into(), found });
    match fs::metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            // The owner of the link would choose where the file is made.
            return if path.is_symlink() { not_a_file("link to nothing") } else { Ok(FileState::Missing) };
        }
        Err(error) => return Err(Error::io("open the history", path, error)),
        // Opening a pipe would block until its other end is opened.
        Ok(metadata) if metadata.is_dir() => return not_a_file("directory"),
        Ok(metadata) if !metadata.is_file() => return not_a_file("pipe, socket or device"),
        Ok(metadata) if metadata.len() == 0 => return Ok(FileState::Whole),
        Ok(_) => {}
    }
    check_beside(path)?;
    match read_application_id(path) {
        // The header holds the number without a sign, the pragma shows it with one.
        Ok((id, state)) if id.cast_unsigned() == APPLICATION_ID => Ok(state),
        Ok((id, _)) if id.cast_unsigned() == BEFORE_RELEASE_ID => {
            Err(Error::BeforeRelease { path: path.into() })
        }
        Ok((id, _)) => Err(Error::NotOurs { path: path.into(), application_id: id.cast_unsigned() }),
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::NotADatabase) => {
            Err(Error::NotADatabase { path: path.into() })
        }
        Err(error) => Err(Error::sqlite("read the header", path, error)),
    }
}

/// Refuses a WAL, journal or WAL index that is no file: SQLite would wait for the other end of a pipe, without a limit.
fn check_beside(path: &Path) -> Result<(), Error> {
    for suffix in ["-wal", "-journal", "-shm"] {
        let file = beside(&real_path(path), suffix);
        match fs::symlink_metadata(&file) {
            Ok(metadata) if !metadata.is_file() => {
                return Err(Error::NotAFile { path: file, found: "pipe, link, directory or device" });
            }
            _ => {}
        }
    }
    Ok(())
}

/// Reads the application id from the first page, which an interrupted checkpoint does not change. While another process
/// makes the file, it may have its first page only, and looks truncated for a moment. A file that stays truncated, without a
/// WAL or journal that completes it, is damaged.
fn read_application_id(path: &Path) -> rusqlite::Result<(i32, FileState)> {
    const MAKING_TIMEOUT: Duration = Duration::from_secs(1);
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
    retry_while(ErrorCode::DatabaseCorrupt, MAKING_TIMEOUT, || {
        let connection = Connection::open_with_flags(uri(path, "mode=ro&immutable=1"), flags)?;
        let application_id = || connection.pragma_query_value(None, "application_id", |row| row.get(0));
        match application_id() {
            Err(error)
                if error.sqlite_error_code() == Some(ErrorCode::DatabaseCorrupt)
                    && may_be_completed(path) =>
            {
                // With this flag SQLite takes the length of the file for its size, not that of the header.
                connection.pragma_update(None, "writable_schema", true)?;
                Ok((application_id()?, FileState::CutOff))
            }
            id => Ok((id?, FileState::Whole)),
        }
    })
}

/// Whether a WAL or a journal lies beside the file. `immutable` ignores both.
fn may_be_completed(path: &Path) -> bool {
    let real = real_path(path);
    ["-wal", "-journal"]
        .iter()
        .any(|suffix| fs::metadata(beside(&real, suffix)).is_ok_and(|file| file.len() > 0))
}

/// Refuses a file whose missing pages are not in its WAL either. Until that is known nothing is copied from the WAL into
/// the file. It reads the whole file, which is why other files are not checked.
pub(crate) fn check_completed(connection: &Connection) -> rusqlite::Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    check_whole(connection)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false)?;
    Ok(())
}

/// Reads the whole file; an error of [`ErrorCode::DatabaseCorrupt`] where it is damaged.
pub(crate) fn check_whole(connection: &Connection) -> rusqlite::Result<()> {
    let found: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    if found == "ok" {
        return Ok(());
    }
    let damaged = ffi::Error::new(ffi::SQLITE_CORRUPT);
    Err(rusqlite::Error::SqliteFailure(damaged, Some(format!("the file is damaged: {found}"))))
}
