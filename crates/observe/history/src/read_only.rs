//! Reading a history on a full disk, or of another user.
//!
//! | beside the file | how it is read |
//! |---|---|
//! | a WAL index, without blocks | SQLite makes one of the WAL in memory; as soon as another process has one on the disk, it reads that |
//! | a WAL only | alone: a lock keeps others out, and the WAL index is in memory |
//! | nothing | as a file that does not change: a writer would need a WAL |

use crate::bounds::bound;
use crate::file_state::{FileState, check_owner, check_whole};
use crate::paths::{beside, real_path, uri};
use crate::schema::check_schema;
use crate::{Error, History, guard_wal_index};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;
use std::fs;
use std::path::Path;
use std::time::Duration;

const UNCHANGED: &str = "mode=ro&immutable=1";
/// Longest wait for another Headroom that is making the WAL index.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// Whether the directory of a history takes no further file because the disk is full. SQLite says only that it cannot open one.
pub(crate) fn takes_no_file(path: &Path) -> bool {
    let real = real_path(path);
    let Some(dir) = real.parent() else { return false };
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    matches!(openat(CWD, dir, flags, Mode::RUSR), Err(Errno::NOSPC | Errno::DQUOT))
}

/// Opens a history for reading where the disk has no room for the WAL index.
pub(crate) fn open_without_wal_index(path: &Path) -> Result<History, Error> {
    let bytes = |suffix| fs::metadata(beside(&real_path(path), suffix)).ok().map(|found| found.len());
    let is_alone = bytes("-shm").is_none() && bytes("-wal") > Some(0);
    let parameters = match bytes("-shm") {
        Some(_) => "mode=ro&readonly_shm=1",
        None if is_alone => "mode=rw",
        None => UNCHANGED,
    };
    open_to_read(path, parameters, is_alone)
}

/// Opens a history of another user for reading, as the file is: without its WAL, its journal and any lock. Data that its owner
/// is just writing may be missing or make the file look damaged.
pub(crate) fn open_unchanged(path: &Path) -> Result<History, Error> {
    open_to_read(path, UNCHANGED, false)
}

fn open_to_read(path: &Path, parameters: &str, is_alone: bool) -> Result<History, Error> {
    let state = check_owner(path)?;
    let open = || {
        let flags =
            OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(uri(path, parameters), flags)?;
        guard_wal_index(&connection);
        let budget = bound(&connection, path)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        connection.pragma_update(None, "query_only", true)?;
        if is_alone {
            connection.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
        }
        if state == FileState::CutOff {
            check_whole(&connection)?;
        }
        Ok((connection, budget))
    };
    let opened = open().map_err(|source| Error::sqlite("open the file", path, source));
    let (connection, budget) = opened?;
    check_schema(&connection, path)?;
    Ok(History { connection, path: path.into(), budget, is_read_only: true })
}
