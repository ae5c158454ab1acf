//! The files that Headroom made to run load on: load that writes, and `headroom clean`, touch no others.

use crate::exact::Exact;
use crate::{Error, History, now_unix_ns};
use rusqlite::types::{FromSqlError, FromSqlResult, ToSqlOutput, Value, ValueRef};
use rusqlite::{OptionalExtension, ToSql, named_params, types::FromSql};
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
    /// that is recorded already gets its new size.
    ///
    /// # Errors
    /// Where the history cannot be written.
    pub fn record_test_file(&mut self, path: &Path, bytes: u64) -> Result<(), Error> {
        let recorded = self.connection.execute(
            "INSERT INTO test_files (path, bytes, created_unix_ns) VALUES (:path, :bytes, :now) \
             ON CONFLICT (path) WHERE removed_unix_ns IS NULL DO UPDATE SET bytes = excluded.bytes",
            named_params! {
                ":path": PathColumn(path.into()),
                ":bytes": Exact(bytes),
                ":now": Exact(now_unix_ns()),
            },
        );
        recorded.map(drop).map_err(|source| Error::sqlite("record a test file", &self.path, source))
    }

    /// Records a lasting file and its mark (of `storage`), for a file system without extended attributes: durably, before
    /// the file is written, and again whenever the mark changes.
    ///
    /// # Errors
    /// Where the history cannot be written.
    pub fn record_mark(&mut self, path: &Path, bytes: u64, mark: &str) -> Result<(), Error> {
        let recorded = self.connection.execute(
            "INSERT INTO test_files (path, bytes, created_unix_ns, mark) VALUES (:path, :bytes, :now, :mark) \
             ON CONFLICT (path) WHERE removed_unix_ns IS NULL \
             DO UPDATE SET bytes = excluded.bytes, mark = excluded.mark",
            named_params! {
                ":path": PathColumn(path.into()),
                ":bytes": Exact(bytes),
                ":now": Exact(now_unix_ns()),
                ":mark": mark,
            },
        );
        recorded.map(drop).map_err(|source| Error::sqlite("record a mark", &self.path, source))
    }

    /// The mark recorded for a path.
    ///
    /// # Errors
    /// Where the history cannot be read.
    pub fn mark_of(&self, path: &Path) -> Result<Option<String>, Error> {
        let query = "SELECT mark FROM test_files WHERE path = ? AND removed_unix_ns IS NULL";
        let found = self.connection.query_row(query, [PathColumn(path.into())], |row| row.get(0)).optional();
        found.map(Option::flatten).map_err(|source| Error::sqlite("look for a mark", &self.path, source))
    }

    /// Notes that a test file was removed. Returns whether it was recorded.
    ///
    /// # Errors
    /// Where the history cannot be written.
    pub fn forget_test_file(&mut self, path: &Path) -> Result<bool, Error> {
        let forgotten = self.connection.execute(
            "UPDATE test_files SET removed_unix_ns = :now WHERE path = :path AND removed_unix_ns IS NULL",
            named_params! { ":now": Exact(now_unix_ns()), ":path": PathColumn(path.into()) },
        );
        forgotten
            .map(|rows| rows > 0)
            .map_err(|source| Error::sqlite("forget a test file", &self.path, source))
    }

    /// The recorded test files that were not removed, in the order in which they were made.
    ///
    /// # Errors
    /// Where the history cannot be read.
    pub fn test_files(&self) -> Result<Vec<TestFile>, Error> {
        let read = || -> rusqlite::Result<Vec<_>> {
            let mut rows = self.connection.prepare_cached(
                "SELECT path, bytes, created_unix_ns FROM test_files \
                 WHERE removed_unix_ns IS NULL ORDER BY id",
            )?;
            let files = rows.query_map([], |row| {
                let PathColumn(path) = row.get(0)?;
                let (Exact(bytes), Exact(created_unix_ns)) = (row.get(1)?, row.get(2)?);
                Ok(TestFile { path, bytes, created_unix_ns })
            })?;
            files.collect()
        };
        read().map_err(|source| Error::sqlite("list test files", &self.path, source))
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
