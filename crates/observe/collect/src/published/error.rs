use crate::error::SourceFault;
use std::io;
use std::path::PathBuf;

/// Why a database of an engine that publishes counters cannot be observed.
#[derive(Debug, thiserror::Error)]
pub enum PublishedError {
    /// There is no such file or directory.
    #[error("cannot watch {path}: {error}")]
    DatabaseNotFound {
        /// The path as given.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// It exists, and no running program publishes counters of it.
    #[error("cannot watch {path}: no running program publishes counters of it")]
    NotPublished {
        /// The database.
        path: PathBuf,
        /// Where counters were searched for.
        dir: PathBuf,
    },
    /// No counters of it were found, and some files could not be read: its own may be among them.
    #[error("cannot watch {path}: {count} counters file(s) cannot be read")]
    Unreadable {
        /// The database.
        path: PathBuf,
        /// How many files cannot be read.
        count: usize,
        /// The error of the first one.
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

impl SourceFault for PublishedError {
    fn facts(&self) -> Vec<String> {
        match self {
            PublishedError::NotPublished { dir, .. } => {
                vec![format!("looked for counters in: {}", dir.display())]
            }
            PublishedError::Unreadable { first, .. } => vec![format!("the first one: {first}")],
            PublishedError::DatabaseNotFound { .. } | PublishedError::CountersDir { .. } => Vec::new(),
        }
    }

    fn remedy(&self) -> Option<&'static str> {
        Some(match self {
            PublishedError::DatabaseNotFound { .. } => "give the file or directory of an existing database",
            PublishedError::NotPublished { .. } => {
                "watch it while a program has it open, with the same HEADROOM_COUNTERS_DIR if that is set"
            }
            PublishedError::Unreadable { .. } => {
                "run headroom as the user whose program has the database open, or as root"
            }
            PublishedError::CountersDir { .. } => {
                "set HEADROOM_COUNTERS_DIR to the directory that the program publishes in"
            }
        })
    }
}
