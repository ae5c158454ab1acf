//! Sources: a kind in the list of sources, an argument that names one, and the open source itself.

use crate::discovery::{Instance, Programs};
use crate::error::SourceError;
use crate::file_names::FileNames;
use filestats::Snapshot;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A kind of source, as its folder describes it: one line of [`SOURCES`](crate::SOURCES).
pub struct SourceKind {
    /// Words before the colon of its arguments. The first is the one that is printed.
    pub schemes: &'static [&'static str],
    /// The forms of its arguments, for `--help`.
    pub help: &'static str,
    /// The most common of them, for error messages.
    pub forms: &'static str,
    /// Whether `doctor` tries it where no source is named.
    pub discovery: Discovery,
    /// Parses the text after the colon.
    pub parse: fn(&str) -> Result<SourceArgument, ArgumentError>,
    /// Finds databases on this host that it can observe.
    pub find: fn(&Programs) -> Vec<Instance>,
}

/// Where a source may be found with an empty argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Discovery {
    /// On every host.
    Always,
    /// Where one of these environment variables is set.
    WhereSet(&'static [&'static str]),
    /// Nowhere: it needs an argument.
    Never,
}

/// Why the text after the colon is no argument. No text of it repeats a possible password.
#[derive(Debug, PartialEq, Eq)]
pub enum ArgumentError {
    /// This kind of source needs an argument, and there is none.
    Missing,
    /// The argument's defect.
    Invalid(String),
}

/// The argument of a source, parsed: which server, which files, which processes. `Display` writes it in the form that is
/// parsed, without what is, or may be, a password.
pub struct SourceArgument {
    pub(crate) shown: String,
    pub(crate) open: Box<Open>,
    /// Why the text must not be a command-line argument, which every user of the machine can read: it holds a password,
    /// or what may be one. Says where the password belongs.
    pub exposed_password: Option<String>,
    /// Whether it counts only while it is open, so that two captures by two commands have nothing between them.
    pub counts_only_while_open: bool,
    /// Whether it counts block devices and no files.
    pub counts_only_devices: bool,
    /// Where to run queries on the database that it observes.
    pub sql_target: Option<SqlTarget>,
}

type Open = dyn Fn(&[PathBuf], &FileNames) -> Result<Box<dyn Source + Send>, SourceError> + Send + Sync;

impl SourceArgument {
    /// An argument that is printed as `shown`.
    pub(crate) fn new<S: Source + Send + 'static>(
        shown: String,
        open: impl Fn(&[PathBuf], &FileNames) -> Result<S, SourceError> + Send + Sync + 'static,
    ) -> SourceArgument {
        SourceArgument {
            shown,
            open: Box::new(move |files, names| Ok(Box::new(open(files, names)?))),
            exposed_password: None,
            counts_only_while_open: false,
            counts_only_devices: false,
            sql_target: None,
        }
    }

    /// Opens the source. Sources that can choose count only `files`, if any are given. Servers publish in `names` what
    /// their files hold, and sources that see only files use it.
    ///
    /// # Errors
    /// [`SourceError`]: the cause and the remedy.
    pub fn open(&self, files: &[PathBuf], names: &FileNames) -> Result<Box<dyn Source + Send>, SourceError> {
        (self.open)(files, names)
    }
}

impl fmt::Display for SourceArgument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

/// A database that can run queries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SqlTarget {
    /// A SQLite file.
    Sqlite(PathBuf),
    /// A connection for [`postgres::Client`](crate::postgres::Client).
    Postgres(String),
    /// A connection for [`mysql::Client`](crate::mysql::Client).
    Mysql(String),
}

/// I/Os that ended with an error of storage, such as EIO.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IoFailures {
    /// The process that requested them: "pid 812 (postgres)".
    pub process: String,
    /// Of this file.
    pub path: String,
    /// Where its file system is mounted, if that is known.
    pub drive: Option<String>,
    /// Number of failed I/Os.
    pub count: u64,
}

impl fmt::Display for IoFailures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} I/Os of {} on {} failed", self.count, self.process, self.path)
    }
}

/// Something that keeps cumulative counters of files.
pub trait Source {
    /// Its kind and its subject, for people ("sqlite /data/shop.db").
    fn name(&self) -> &str;

    /// The processes whose I/O was in the last snapshot that had a file: the limits on them are those that matter. Empty
    /// where there are no particular ones.
    fn processes(&self) -> &[u32] {
        &[]
    }

    /// The directory on this host with most of its files, where it knows one.
    fn directory(&self) -> Option<&Path> {
        None
    }

    /// Further mount points with data or temporary files, which the samples of those in `directory` contain: the source
    /// does not count them apart.
    fn undivided_mounts(&self) -> &[String] {
        &[]
    }

    /// How old I/O may be that a snapshot does not contain yet.
    fn reporting_delay(&self) -> Duration {
        Duration::ZERO
    }

    /// Whether one session at a time can commit, so that commits cannot share a write of the log.
    fn commits_one_by_one(&self) -> bool {
        false
    }

    /// How long transactions have had the only turn to write since it started, in nanoseconds; `None` where several can write at a
    /// time, or that is not counted.
    fn writer_ns(&self) -> Option<u64> {
        None
    }

    /// Bytes of the log's records since it started, without the padding of blocks; `None` where the bytes of its writes tell as
    /// much, or that is not counted.
    fn log_record_bytes(&self) -> Option<u64> {
        None
    }

    /// Transactions that it had committed since it started, at the last snapshot. Those that only read may be among them.
    fn commits(&self) -> Option<u64> {
        None
    }

    /// The notes of the last snapshot that only explain the figures: nothing could be switched on, granted or repaired.
    fn remarks(&self) -> &[String] {
        &[]
    }

    /// The version of the server, as it was when the source connected to it: "10.11".
    fn version(&self) -> Option<String> {
        None
    }

    /// The I/Os that storage failed since the source was opened, at the last snapshot. Empty where they are not counted.
    fn failures(&self) -> &[IoFailures] {
        &[]
    }

    /// From now on, a snapshot may name only the `files` busiest files, and sum the others by their use: for programs that watch
    /// all the time. Sources for which that saves little name all.
    fn name_busiest(&mut self, _files: usize) {}

    /// The counters of all files at this instant.
    ///
    /// # Errors
    /// [`SourceError`]; the next call may succeed.
    fn snapshot(&mut self) -> Result<Snapshot, SourceError>;
}
