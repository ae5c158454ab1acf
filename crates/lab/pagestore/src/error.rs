//! What can go wrong, as a caller tells the cases apart.

use crate::{Lsn, PageNo};
use std::io;
use std::sync::Arc;

/// Why something could not be done.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// The operating system refused or failed an I/O.
    #[error("{action} {file}: {source}")]
    Io {
        /// What was done: "read", "write", "sync", …
        action: &'static str,
        /// Which of the store's files.
        file: String,
        /// The operating system's answer.
        source: Arc<io::Error>,
    },
    /// An earlier I/O failed, so nothing is written any more. What was acknowledged can still be read.
    #[error(
        "the store is read-only since an I/O failed ({cause}); what was being committed then may or may not be there \
         after opening it again"
    )]
    ReadOnly {
        /// The first failure.
        cause: String,
    },
    /// Another process has it open.
    #[error("{path}: another process has this page store open")]
    Locked {
        /// The directory.
        path: String,
    },
    /// There is no page store at this place, or its creation did not finish.
    #[error("{path}: no page store here ({why})")]
    NotAStore {
        /// The directory.
        path: String,
        /// What is missing.
        why: String,
    },
    /// Creating would write over what is there.
    #[error(
        "{path}: there is something here already; a page store is created in an empty or new directory, or where its own \
         creation was interrupted"
    )]
    Exists {
        /// The directory.
        path: String,
    },
    /// A page of the data file is not what was written there.
    #[error("page {page} of the data file is damaged: {why}")]
    CorruptPage {
        /// Which page.
        page: PageNo,
        /// What does not fit.
        why: String,
    },
    /// A part of the log that was acknowledged is damaged.
    #[error(
        "the log is damaged at {lsn}: {why}; this is not a torn end, for what was there had been acknowledged. \
         Restore a copy, or look at what is left with `headroom log dump`"
    )]
    CorruptLog {
        /// The first place that is not as it was written.
        lsn: Lsn,
        /// The evidence.
        why: String,
    },
    /// A tree's pages contradict one another.
    #[error("page {page}: {why}")]
    CorruptTree {
        /// Which page.
        page: PageNo,
        /// What does not fit.
        why: &'static str,
    },
    /// The log has reached its largest size and nothing of it can be reused.
    #[error(
        "the log is full: {needed} more bytes are needed, {available} are left of {limit}; it is held by {holder}"
    )]
    LogFull {
        /// Bytes that the transaction still needs.
        needed: u64,
        /// Bytes that can be written.
        available: u64,
        /// The largest size of the log.
        limit: u64,
        /// What keeps its beginning from being reused.
        holder: String,
    },
    /// A change of this transaction failed halfway: only dropping it is left, of which nothing stays.
    #[error("this transaction can only be given up and begun again: a change of it failed halfway ({cause})")]
    TransactionBroken {
        /// Why that change failed.
        cause: String,
    },
    /// A page is not there any more as a reader's snapshot needs it: keeping it would have outgrown the cache, or a transaction
    /// larger than that has changed it and a checkpoint was written since.
    #[error(
        "the snapshot is too old: a page that it needs no longer fits in the cache, or was written over by a checkpoint; \
         begin a new one"
    )]
    SnapshotTooOld,
    /// A thread that has a transaction which writes began another.
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
    /// A handle of a table that is not there: dropped, rolled back, of another store, younger than the snapshot.
    #[error(
        "this handle of a table is stale: {why}; ask for it by its name, `table`, in the transaction that uses it"
    )]
    StaleTable {
        /// How that is known.
        why: &'static str,
    },
    /// There is such a table already.
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
    /// A page that is not there was asked for, or a free one to be changed.
    #[error("there is no page {page}")]
    NoSuchPage {
        /// Which page.
        page: PageNo,
    },
    /// A page that the engine keeps for itself was to be changed or given back.
    #[error(
        "page {page} is the engine's own: {what}; what `allocate` handed out can be changed and given back, tables are \
         changed by `put`, `delete` and `drop_table`"
    )]
    ReservedPage {
        /// Which page.
        page: PageNo,
        /// What it is for.
        what: &'static str,
    },
    /// An option is out of range.
    #[error("{option}: {why}")]
    BadOption {
        /// Which option.
        option: &'static str,
        /// What is accepted.
        why: String,
    },
}

impl Error {
    pub(crate) fn io(action: &'static str, file: impl std::fmt::Display, source: io::Error) -> Self {
        Self::Io { action, file: file.to_string(), source: Arc::new(source) }
    }
}

/// The result of an operation on a page store.
pub type Result<T> = std::result::Result<T, Error>;
