//! The files that Headroom made to run load on: load that writes, and `headroom storage clean`, touch no others.

use crate::exact::{Exact, exact};
use crate::{Error, History};
use host::unix_ns;
use rusqlite::ToSql;
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSqlOutput, Value, ValueRef};
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// A file that Headroom made and has not removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestFile {
    /// Where.
    pub path: PathBuf,
    /// How large it was made.
    pub bytes: u64,
    /// When it was recorded, nanoseconds since 1970.
    pub created_unix_ns: u64,
}

/// A path as TEXT, or as a BLOB where it is not UTF-8, because a lossy conversion would name another file.
struct PathColumn(PathBuf);

impl History {
    /// Records a test file durably. Call it before the file is made, so that a kill leaves no unrecorded file. A file
    /// that is recorded already gets its new size. `mark` is that of a lasting file (of `storage`) on a file system
    /// without extended attributes: it is recorded again whenever it changes.
    ///
    /// # Errors
    /// Where the history cannot be written.
    pub fn record_test_file(&mut self, path: &Path, bytes: u64, mark: Option<&str>) -> Result<(), Error> {
        let record = "INSERT INTO test_files (path, bytes, created_unix_ns, mark) VALUES (?, ?, ?, ?) \
             ON CONFLICT (path) WHERE removed_unix_ns IS NULL \
             DO UPDATE SET bytes = excluded.bytes, mark = coalesce(excluded.mark, mark)";
        let values = (PathColumn(path.into()), Exact(bytes), Exact(unix_ns()), mark);
        self.execute("record a test file", |connection| connection.execute(record, values).map(drop))
    }

    /// The mark recorded for a path; `None` also where another user can have recorded it.
    ///
    /// # Errors
    /// Where the history cannot be read.
    pub fn mark_of(&self, path: &Path) -> Result<Option<String>, Error> {
        if !self.is_of_this_user_alone() {
            return Ok(None);
        }
        let query = "SELECT mark FROM test_files WHERE path = ? AND removed_unix_ns IS NULL";
        self.first_row("look for a mark", query, [PathColumn(path.into())], |row| row.get(0))
            .map(Option::flatten)
    }

    /// Notes that a test file was removed. Returns whether it was recorded.
    ///
    /// # Errors
    /// Where the history cannot be written.
    pub fn forget_test_file(&mut self, path: &Path) -> Result<bool, Error> {
        let forget = "UPDATE test_files SET removed_unix_ns = ? WHERE path = ? AND removed_unix_ns IS NULL";
        let values = (Exact(unix_ns()), PathColumn(path.into()));
        self.execute("forget a test file", |connection| Ok(connection.execute(forget, values)? > 0))
    }

    /// The recorded test files that were not removed, in the order in which they were made.
    ///
    /// # Errors
    /// Where the history cannot be read.
    pub fn test_files(&self) -> Result<Vec<TestFile>, Error> {
        let query =
            "SELECT path, bytes, created_unix_ns FROM test_files WHERE removed_unix_ns IS NULL ORDER BY id";
        self.rows("list test files", query, [], |row| {
            let PathColumn(path) = row.get(0)?;
            Ok(TestFile { path, bytes: exact(row, 1)?, created_unix_ns: exact(row, 2)? })
        })
    }
}

impl ToSql for PathColumn {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Owned(match self.0.to_str() {
            Some(text) => Value::Text(text.into()),
            None => Value::Blob(self.0.as_os_str().as_bytes().into()),
        }))
    }
}

impl FromSql for PathColumn {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        match value {
            ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
                Ok(PathColumn(OsString::from_vec(bytes.into()).into()))
            }
            _ => Err(FromSqlError::InvalidType),
        }
    }
}
