//! Where file statistics come from: every source gives a `filestats::Snapshot` on demand.
//!
//! ```text
//! sqlite::InProcess   the counters of this process            ─┐
//! sqlite::Live        of every process that has a database open, ─┼─> snapshot() -> Snapshot
//!                     through the files they publish           │
//! diskstats::Disk     one block device, the layer below        ─┘
//! ```
//!
//! Main path: open a source once, call [`Source::snapshot`] now and then, give two snapshots to
//! `filestats::intervals`.
//!
//! A source reports cumulative counters as they are, with the epoch they belong to; it never
//! subtracts, averages or fills gaps. What it cannot know is unknown with a reason. It only looks: the
//! one thing it removes are counters files of processes that have ended.

pub mod diskstats;
mod mounts;
pub mod sqlite;
mod time;

use filestats::Snapshot;
use std::io;
use std::path::PathBuf;

/// Something that keeps cumulative counters of files.
pub trait Source {
    /// What it is and of what, for people ("sqlite /data/shop.db").
    fn name(&self) -> &str;

    /// Processes whose I/O the last snapshot with any file counted: the limits that act on them are those that
    /// matter. Empty where it is nobody's in particular.
    fn processes(&self) -> &[u32] {
        &[]
    }

    /// The counters of all files at this instant.
    ///
    /// # Errors
    /// [`SourceError`]; the next call may succeed.
    fn snapshot(&mut self) -> Result<Snapshot, SourceError>;
}

/// Why a source gives nothing. The first line is its `Display`; [`facts`](Self::facts) and
/// [`remedy`](Self::remedy) are the lines below it.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// There is no such database file.
    #[error("cannot watch {path}: {error}")]
    DatabaseNotFound {
        /// The path as given.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// The database exists, and no running program shows counters for it.
    #[error("cannot watch {path}: no running program publishes counters for it")]
    NobodyPublishes {
        /// The database.
        path: PathBuf,
        /// Where counters were looked for.
        dir: PathBuf,
    },
    /// No counters for the database were found, and some could not be read: they may be those.
    #[error("cannot watch {path}: {count} counters file(s) cannot be read")]
    CountersUnreadable {
        /// The database.
        path: PathBuf,
        /// How many files cannot be read.
        count: usize,
        /// What is wrong with the first one.
        first: String,
    },
    /// The directory of counters cannot be listed.
    #[error("cannot look for counters in {dir}: {error}")]
    CountersDir {
        /// The directory.
        dir: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// A device number that is none.
    #[error("'{0}' is no device number; give MAJOR:MINOR as lsblk prints it, such as 254:0")]
    NotADeviceNumber(String),
    /// The kernel keeps no statistics of the device.
    #[error("cannot watch device {number}: /proc/diskstats has no line for it")]
    NoSuchDevice {
        /// Its number.
        number: String,
    },
    /// Something of the system that is always there cannot be read.
    #[error("cannot read {path}: {error}")]
    System {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
}

impl SourceError {
    /// What is known about the case, a line each.
    pub fn facts(&self) -> Vec<String> {
        match self {
            SourceError::NobodyPublishes { dir, .. } => vec![
                format!("looked for counters in: {}", dir.display()),
                "how a program publishes them: docs/source-sqlite.md".into(),
            ],
            SourceError::CountersUnreadable { first, .. } => vec![format!("the first one: {first}")],
            _ => Vec::new(),
        }
    }

    /// What the person can do about it; `None` where that is not known.
    pub fn remedy(&self) -> Option<&'static str> {
        match self {
            SourceError::DatabaseNotFound { .. } => Some("give the path of an existing database file"),
            SourceError::NobodyPublishes { .. } => Some(
                "load the extension in the program before it opens the database: headroom sqlite-extension \
                 says how",
            ),
            SourceError::CountersUnreadable { .. } => {
                Some("run headroom as the user whose program has the database open, or as root")
            }
            SourceError::CountersDir { .. } => {
                Some("set HEADROOM_COUNTERS_DIR to the directory that the program publishes in")
            }
            SourceError::NoSuchDevice { .. } => Some("lsblk -o NAME,MAJ:MIN for the devices there are"),
            SourceError::NotADeviceNumber(_) | SourceError::System { .. } => None,
        }
    }
}
