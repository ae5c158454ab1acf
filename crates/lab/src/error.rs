use std::path::PathBuf;

/// Why an experiment cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is a file already.
    #[error(
        "cannot make the experiment's database {}: {} exists already",
        path.display(), existing.display()
    )]
    Exists {
        /// The database that was asked for.
        path: PathBuf,
        /// What is in the way: the file itself or a journal of its name.
        existing: PathBuf,
    },
    /// The file is not one that was made here, or the making did not come to its end.
    #[error(
        "will not use {}: it is no finished database of a Headroom experiment",
        path.display()
    )]
    NotOurs {
        /// The file.
        path: PathBuf,
    },
    /// A plan that cannot be carried out.
    #[error("cannot run the everyday workload with {what} {value}: give {accepted}")]
    Plan {
        /// The field.
        what: &'static str,
        /// Its value.
        value: String,
        /// What it may be.
        accepted: &'static str,
    },
    /// The system refused.
    #[error("cannot {doing} {}: {source}", path.display())]
    Io {
        /// What was tried.
        doing: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// SQLite refused.
    #[error("cannot {doing} in {}: {source}", path.display())]
    Sqlite {
        /// What was tried.
        doing: &'static str,
        /// The database.
        path: PathBuf,
        /// Why not.
        source: rusqlite::Error,
    },
}

impl Error {
    /// What the person can do about it; `None` where that is not known.
    pub fn remedy(&self) -> Option<&'static str> {
        match self {
            Error::Exists { .. } => Some("name a file that does not exist, or remove that one"),
            Error::NotOurs { .. } => Some("prepare one under another name"),
            Error::Plan { .. } | Error::Io { .. } => None,
            Error::Sqlite { source, .. } => match source.sqlite_error_code() {
                Some(rusqlite::ErrorCode::DiskFull) => Some("free some space, or name another directory"),
                Some(rusqlite::ErrorCode::SystemIoFailure) => {
                    Some("the storage itself may be failing: read the kernel's log (dmesg)")
                }
                _ => None,
            },
        }
    }
}
