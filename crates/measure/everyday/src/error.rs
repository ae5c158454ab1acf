use sqlite_vfs::path_of_descriptor;
use std::path::{Path, PathBuf};

/// Why the workload cannot be run or observed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file exists already.
    #[error("cannot make the experiment's database {}: {} exists already", shown(path), shown(existing))]
    Exists {
        /// The database.
        path: PathBuf,
        /// The file in the way: the database itself or a journal of its name.
        existing: PathBuf,
    },
    /// The file was not made here, or was not finished.
    #[error("will not use {}: it is no finished database of a Headroom experiment", shown(path))]
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
        /// The accepted values.
        accepted: &'static str,
    },
    /// The counting VFS cannot be registered.
    #[error("cannot count the I/Os of the workload: {0}")]
    Counting(String),
    /// The counters cannot be read.
    #[error(transparent)]
    Source(#[from] collect::SourceError),
    /// The system refused.
    #[error("cannot {doing} {}: {source}", shown(path))]
    Io {
        /// The step that failed.
        doing: &'static str,
        /// Its file or directory.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// SQLite refused.
    #[error("cannot {doing} in {}: {source}", shown(path))]
    Sqlite {
        /// The step that failed.
        doing: &'static str,
        /// The database.
        path: PathBuf,
        /// Why not.
        source: rusqlite::Error,
    },
}

impl Error {
    /// Remedy for the reader; `None` where none is known.
    pub fn remedy(&self) -> Option<&'static str> {
        match self {
            Error::Exists { .. } => Some("name a file that does not exist, or remove that one"),
            Error::NotOurs { .. } => Some("prepare one under another name"),
            Error::Source(error) => error.remedy(),
            Error::Sqlite { source, .. } => sqlite_remedy(source),
            Error::Plan { .. } | Error::Counting(_) | Error::Io { .. } => None,
        }
    }

    /// Known facts of the case, a line each.
    pub fn facts(&self) -> Vec<String> {
        match self {
            Error::Source(error) => error.facts(),
            _ => Vec::new(),
        }
    }
}

/// A path that a reader can look for: a name below a descriptor means nothing outside of this process.
fn shown(path: &Path) -> String {
    path_of_descriptor(path).unwrap_or_else(|| path.into()).display().to_string()
}

/// Remedy where SQLite fails; `None` where none is known.
fn sqlite_remedy(error: &rusqlite::Error) -> Option<&'static str> {
    match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::DiskFull) => Some("free some space, or name another directory"),
        Some(rusqlite::ErrorCode::SystemIoFailure) => {
            Some("the storage itself may be failing: read the kernel's log (dmesg)")
        }
        _ => None,
    }
}
