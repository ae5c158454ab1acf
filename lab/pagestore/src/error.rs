//! The errors of the page store, by the cases that a caller distinguishes.

use crate::types::{Lsn, PageNo};
use pagestore_disk::FileId;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Why an operation failed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// An I/O failed.
    #[error("{action} {file}: {source}")]
    Io {
        /// The operation: "read", "write", "sync", …
        action: &'static str,
        /// Which of the store's files.
        file: String,
        /// The error of the operating system.
        source: Arc<io::Error>,
    },
    /// An earlier I/O failed, so the store does not write any more. What was acknowledged can still be read.
    #[error(
        "the store is read-only since an I/O failed ({cause}); what was being committed then may or may not be there \
         after opening it again"
    )]
    ReadOnly {
        /// The first failure.
        cause: String,
    },
    /// Another process has the store open.
    #[error("{path}: another process has this page store open")]
    Locked {
        /// The directory.
        path: String,
    },
    /// There is no page store in the directory, or its creation did not finish.
    #[error("{path}: no page store here ({why})")]
    NotAStore {
        /// The directory.
        path: String,
        /// The missing part.
        why: String,
    },
    /// Creating a store would overwrite existing files.
    #[error(
        "{path}: there is something here already; a page store is created in an empty or new directory, or where its own \
         creation was interrupted"
    )]
    Exists {
        /// The directory.
        path: String,
    },
    /// The content of a page in the data file is not what was written.
    #[error("page {page} of the data file is damaged: {why}")]
    CorruptPage {
        /// The page.
        page: PageNo,
        /// The defect.
        why: String,
    },
    /// A part of the log that was acknowledged is damaged.
    #[error(
        "the log is damaged at {lsn}: {why}; this is not a torn end, for what was there had been acknowledged. \
         Restore a copy, or look at what is left with `headroom log dump`"
    )]
    CorruptLog {
        /// The first damaged position.
        lsn: Lsn,
        /// The evidence.
        why: String,
    },
    /// The pages of a tree are inconsistent.
    #[error("page {page}: {why}")]
    CorruptTree {
        /// The page.
        page: PageNo,
        /// The defect.
        why: &'static str,
    },
    /// The log has its largest size and no part of it can be reused.
    #[error(
        "the log is full: {needed} more bytes are needed, {available} are left of {limit}; it is held by {holder}"
    )]
    LogFull {
        /// Bytes that the transaction still needs.
        needed: u64,
        /// Bytes that are available.
        available: u64,
        /// The largest size of the log.
        limit: u64,
        /// The holder that prevents its beginning from being reused.
        holder: String,
    },
    /// A change of this transaction failed halfway; it can only be dropped, which rolls it back.
    #[error("this transaction can only be given up and begun again: a change of it failed halfway ({cause})")]
    TransactionBroken {
        /// Why that change failed.
        cause: String,
    },
    /// A version of a page that the snapshot needs is lost: keeping it would have exceeded the cache, or a
    /// transaction larger than the cache changed the page and a checkpoint has overwritten it.
    #[error(
        "the snapshot is too old: a page that it needs no longer fits in the cache, or was written over by a checkpoint; \
         begin a new one"
    )]
    SnapshotTooOld,
    /// A thread with a writing transaction began another.
    #[error(
        "this thread has a transaction that writes, and a second one would wait for it for ever: commit it or drop it first"
    )]
    AlreadyWriting,
    /// There is no such table.
    #[error("there is no table '{name}'")]
    NoSuchTable {
        /// Its name.
        name: String,
    },
    /// A handle of a table that does not exist: dropped, rolled back, of another store, or newer than the snapshot.
    #[error(
        "this handle of a table is stale: {why}; ask for it by its name, `table`, in the transaction that uses it"
    )]
    StaleTable {
        /// How it was detected.
        why: &'static str,
    },
    /// A table of this name exists already.
    #[error("there is a table '{name}' already")]
    TableExists {
        /// Its name.
        name: String,
    },
    /// A key, a value or a name is longer than a page can hold.
    #[error("a {what} of {bytes} bytes is too long: at most {limit}")]
    TooLong {
        /// "key", "key and value", "table name".
        what: &'static str,
        /// Its length.
        bytes: usize,
        /// The largest length.
        limit: usize,
    },
    /// The page does not exist, or is free and was to be changed.
    #[error("there is no page {page}")]
    NoSuchPage {
        /// The page.
        page: PageNo,
    },
    /// A page that belongs to the engine was to be changed or freed.
    #[error(
        "page {page} is the engine's own: {what}; what `allocate` handed out can be changed and given back, tables are \
         changed by `put`, `delete` and `drop_table`"
    )]
    ReservedPage {
        /// The page.
        page: PageNo,
        /// Use of the number.
        what: &'static str,
    },
    /// An option is out of range.
    #[error("{option}: {why}")]
    BadOption {
        /// The option.
        option: &'static str,
        /// Accepted values.
        why: String,
    },
}

impl Error {
    pub(crate) fn io(action: &'static str, file: impl std::fmt::Display, source: io::Error) -> Self {
        Self::Io { action, file: file.to_string(), source: Arc::new(source) }
    }

    /// As `io`, for `map_err`.
    pub(crate) fn during(action: &'static str, file: FileId) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::io(action, file, source)
    }

    pub(crate) fn corrupt_log(lsn: Lsn, why: impl Into<String>) -> Self {
        Self::CorruptLog { lsn, why: why.into() }
    }

    pub(crate) fn not_a_store(directory: &Path, why: impl Into<String>) -> Self {
        Self::NotAStore { path: directory.display().to_string(), why: why.into() }
    }
}

/// Adds the directory to a `NotAStore` error.
pub(crate) fn in_directory(error: Error, directory: &Path) -> Error {
    match error {
        Error::NotAStore { why, .. } => Error::not_a_store(directory, why),
        other => other,
    }
}

/// The result of an operation on a page store.
pub type Result<T> = std::result::Result<T, Error>;
