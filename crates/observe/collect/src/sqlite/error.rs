use crate::error::SourceFault;
use std::io;
use std::path::PathBuf;

/// Why a SQLite database cannot be observed.
#[derive(Debug, thiserror::Error)]
pub enum SqliteError {
    /// There is no such database file.
    #[error("cannot watch {path}: {error}")]
    DatabaseNotFound {
        /// The path as given.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// The database exists, but no running program publishes counters for it.
    #[error("cannot watch {path}: no running program publishes counters for it")]
    NotPublished {
        /// The database.
        path: PathBuf,
        /// Where counters were searched for.
        dir: PathBuf,
    },
    /// No counters for the database were found, and some that may be its could not be read.
    #[error("cannot watch {path}: {count} counters file(s) cannot be read")]
    CountersUnreadable {
        /// The database.
        path: PathBuf,
        /// Number of files that cannot be read.
        count: usize,
        /// The reason for the first one.
        first: String,
    },
    /// The directory of counters cannot be listed.
    #[error("cannot look for counters in {dir}: {error}")]
    CountersDir {
        /// The directory.
        dir: PathBuf,
        /// The system's error.
        error: io::Error,
    },
}

impl SourceFault for SqliteError {
    fn facts(&self) -> Vec<String> {
        match self {
            SqliteError::NotPublished { dir, .. } => vec![
                format!("looked for counters in: {}", dir.display()),
                "how a program publishes them: headroom sources sqlite-extension".into(),
            ],
            SqliteError::CountersUnreadable { first, .. } => vec![format!("the first one: {first}")],
            SqliteError::DatabaseNotFound { .. } | SqliteError::CountersDir { .. } => Vec::new(),
        }
    }

    fn remedy(&self) -> Option<&'static str> {
        Some(match self {
            SqliteError::DatabaseNotFound { .. } => "give the path of an existing database file",
            SqliteError::NotPublished { .. } => {
                "load the extension in the program before it opens the database: headroom sources sqlite-extension \
                 says how"
            }
            SqliteError::CountersUnreadable { .. } => {
                "run headroom as the user whose program has the database open, or as root"
            }
            SqliteError::CountersDir { .. } => {
                "set HEADROOM_COUNTERS_DIR to the directory that the program publishes in"
            }
        })
    }
}
