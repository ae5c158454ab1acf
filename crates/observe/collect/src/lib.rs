//! Where file statistics come from: every source gives a `filestats::Snapshot` on demand.
//!
//! ```text
//! process::Process     any Linux process, file by file, counted in the kernel by BPF ─┐
//! postgres::Postgres   a PostgreSQL server, by its statistics and sampled waits       │
//! mysql::Mysql         a MySQL or MariaDB server, by its Performance Schema           ├─> snapshot() -> Snapshot
//! sqlserver::SqlServer a SQL Server or Azure SQL Database, by its views               │
//! sqlite::Live         SQLite programs, through the counters that they publish        │
//! sqlite::InProcess    the SQLite of this process                                     │
//! pagestore::Live      a page store, through the counters that its program publishes  │
//! devices::Devices     block devices of this host, the layer below                    │
//! diskstats::Disk      one of them                                                    ─┘
//! ```
//!
//! [`process::trace`] is no source: it tells the I/Os of processes one by one.
//!
//! Main path: open a source once, call [`Source::snapshot`] now and then, give two snapshots to
//! `filestats::intervals`.
//!
//! A source reports cumulative counters as they are, with the epoch they belong to; it never
//! subtracts, averages or fills gaps. What it cannot know is unknown with a reason. It only looks: the
//! one thing it removes are counters files of processes that have ended.

pub mod devices;
pub mod diskstats;
mod file_names;
mod mounts;
pub mod mysql;
pub mod pagestore;
mod percent;
pub mod postgres;
pub mod process;
pub mod sqlite;
pub mod sqlserver;
mod time;
mod tls;

pub use file_names::FileNames;

use filestats::Snapshot;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Something that keeps cumulative counters of files.
pub trait Source {
    /// What it is and of what, for people ("sqlite /data/shop.db").
    fn name(&self) -> &str;

    /// Processes whose I/O the last snapshot with any file counted: the limits that act on them are those that
    /// matter. Empty where it is nobody's in particular.
    fn processes(&self) -> &[u32] {
        &[]
    }

    /// The directory on this host that most of its files lie in, where it knows one: whose storage is asked.
    fn directory(&self) -> Option<&Path> {
        None
    }

    /// How late it may tell what was done: the counters of a snapshot may lack so much of the last time.
    fn told_late(&self) -> Duration {
        Duration::ZERO
    }

    /// Whether a note of its snapshots only says what the figures are good for: there is nothing that could be switched on,
    /// granted or repaired.
    fn is_remark(&self, _note: &str) -> bool {
        false
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
    /// It hangs.
    #[error("it has not answered for {} s", .0.as_secs())]
    NoAnswer(Duration),
    /// A panic of ours.
    #[error("a fault of headroom's own: what it printed says where")]
    Fault,
    /// A device number that is none.
    #[error("'{0}' is no device number; give MAJOR:MINOR as lsblk prints it, such as 254:0")]
    NotADeviceNumber(String),
    /// The kernel keeps no statistics of the device.
    #[error("cannot watch device {number}: /proc/diskstats has no line for it")]
    NoSuchDevice {
        /// Its number.
        number: String,
    },
    /// Processes cannot be watched.
    #[error(transparent)]
    Process(#[from] process::OpenError),
    /// A PostgreSQL server gives nothing.
    #[error(transparent)]
    Postgres(#[from] postgres::PostgresError),
    /// A MySQL or MariaDB server.
    #[error(transparent)]
    Mysql(#[from] mysql::MysqlError),
    /// A SQL Server.
    #[error(transparent)]
    SqlServer(#[from] sqlserver::SqlServerError),
    /// A page store, or whoever has it open.
    #[error(transparent)]
    Pagestore(#[from] pagestore_counters::ReadError),
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
            SourceError::Pagestore(error) => error.facts(),
            SourceError::Postgres(error) => error.facts(),
            SourceError::Mysql(error) => error.facts(),
            SourceError::SqlServer(error) => error.facts(),
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
            SourceError::Process(error) => error.remedy(),
            SourceError::Pagestore(error) => Some(error.remedy()),
            SourceError::Postgres(error) => error.remedy(),
            SourceError::Mysql(error) => error.remedy(),
            SourceError::SqlServer(error) => error.remedy(),
            SourceError::Fault => Some("report it, with what was printed"),
            SourceError::NotADeviceNumber(_) | SourceError::System { .. } | SourceError::NoAnswer(_) => None,
        }
    }
}
