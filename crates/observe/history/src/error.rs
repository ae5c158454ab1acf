use crate::EntryKind;
use crate::bounds::cpu_max;
use rusqlite::{ErrorCode, ffi};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Errors of the history: its `Display`, and [`remedy`](Self::remedy) for the line below it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file is something else.
    #[error("cannot open the history {}: the file is no SQLite database", path.display())]
    NotADatabase {
        /// The file.
        path: PathBuf,
    },
    /// There is no history: the name is mistyped, or nothing was saved yet.
    #[error("there is no history at {}", path.display())]
    NotThere {
        /// The named path.
        path: PathBuf,
    },
    /// The path is something other than a regular file.
    #[error("cannot open the history {}: it is a {found}, not a file", path.display())]
    NotAFile {
        /// The named path.
        path: PathBuf,
        /// The kind of file found there.
        found: &'static str,
    },
    /// The file can be read but not written.
    #[error("cannot write to the history {}: {why}", path.display())]
    NotWritable {
        /// The history.
        path: PathBuf,
        /// The reason that the system or SQLite gives.
        why: String,
    },
    /// Another user owns the file.
    #[error(
        "cannot write to the history {}: it belongs to the user {owner}, and headroom runs as the user {user}",
        path.display()
    )]
    OfAnotherUser {
        /// The history.
        path: PathBuf,
        /// The name of its owner, or "number 1000".
        owner: String,
        /// The name of the user of this program.
        user: String,
    },
    /// SQLite reads the files beside a history into it, and other users can put some there.
    #[error("cannot open the history {}: {why}", path.display())]
    OpenPlace {
        /// The history.
        path: PathBuf,
        /// The directory or file that another user can write.
        why: String,
    },
    /// The file is a database of another program.
    #[error(
        "cannot open the history {}: it is an SQLite database that Headroom did not make (its application \
         id is {application_id:#010x})",
        path.display()
    )]
    NotOurs {
        /// The file.
        path: PathBuf,
        /// The application id in its header.
        application_id: u32,
    },
    /// A development version wrote the file, before the first release.
    #[error(
        "cannot open the history {}: a development version of Headroom made it, before the first release",
        path.display()
    )]
    BeforeRelease {
        /// The file.
        path: PathBuf,
    },
    /// A newer Headroom wrote the file.
    #[error(
        "cannot open the history {}: its schema is version {found} and this Headroom knows version {known}",
        path.display()
    )]
    NewerSchema {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: i64,
        /// Ours.
        known: i64,
    },
    /// No place for the default file.
    #[error("cannot tell where the history is kept: neither XDG_DATA_HOME nor HOME is set")]
    NoHome,
    /// The system refused.
    #[error("cannot {doing} {}: {source}", path.display())]
    Io {
        /// The failed action.
        doing: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// SQLite refused.
    #[error("cannot {doing} in the history {}: {source}", path.display())]
    Sqlite {
        /// The failed action.
        doing: &'static str,
        /// The history.
        path: PathBuf,
        /// Why not.
        source: rusqlite::Error,
    },
    /// The file has the mark of a history, and other tables or views than Headroom makes.
    #[error("cannot read the history {}: {why}", path.display())]
    ForeignSchema {
        /// The file.
        path: PathBuf,
        /// The table or view.
        why: String,
    },
    /// A statement takes more processor time, or returns more rows, than is possible for a sound file of this size.
    #[error(
        "cannot {doing} in the history {}: it has no end within {} s of processor time, or more rows than its file has room for",
        path.display(),
        cpu_max.as_secs()
    )]
    TooCostly {
        /// The stopped action.
        doing: &'static str,
        /// The history.
        path: PathBuf,
        /// The bound.
        cpu_max: Duration,
    },
    /// A value whose JSON would not read back as itself.
    #[error("cannot keep this {kind}: its JSON does not read back ({source})")]
    NotStorable {
        /// The kind of the entry.
        kind: EntryKind,
        /// Where the JSON breaks.
        source: serde_json::Error,
    },
    /// No such row.
    #[error("the history {} has no {kind} {id}", path.display())]
    NotFound {
        /// The kind of the row.
        kind: EntryKind,
        /// Its number.
        id: i64,
        /// The history.
        path: PathBuf,
    },
    /// No such matrix.
    #[error("the history {} has no matrix {id}", path.display())]
    NoMatrix {
        /// Its number.
        id: i64,
        /// The history.
        path: PathBuf,
    },
    /// The definition of a matrix yields other runs than before.
    #[error("cannot go on with matrix {id} of {}: this version of Headroom gives it other runs or seeds", path.display())]
    ForeignMatrix {
        /// Its number.
        id: i64,
        /// The history.
        path: PathBuf,
    },
    /// Another process runs a matrix.
    #[error("another headroom works at matrix {id} (boot, process, start: {owner})")]
    MatrixInUse {
        /// Its number.
        id: i64,
        /// The other process.
        owner: String,
    },
    /// A run of a matrix is not in the expected state: another process must have done it.
    #[error("run {} of point {} of matrix {id} was done by another process", key.repeat + 1, key.point + 1)]
    NotPlanned {
        /// The matrix.
        id: i64,
        /// The run.
        key: matrix::RunKey,
    },
    /// An interval between captures of two sources.
    #[error("there is no interval between capture {a} of {source_a} and capture {b} of {source_b}")]
    DifferentSources {
        /// One capture.
        a: i64,
        /// Its source.
        source_a: String,
        /// The other.
        b: i64,
        /// Its source.
        source_b: String,
    },
}

/// The remedy for a damaged file.
const RECOVER: &str = "copy the file and its -wal, then save what can be read: sqlite3 COPY .recover | sqlite3 NEW; \
     or name another file with --history";

impl Error {
    /// The remedy; `None` where none is known.
    pub fn remedy(&self) -> Option<&'static str> {
        match self {
            Error::NotADatabase { .. }
            | Error::NotOurs { .. }
            | Error::BeforeRelease { .. }
            | Error::ForeignSchema { .. } => Some("name another file with --history, or move this one away"),
            Error::NotThere { .. } => {
                Some("look at its name (--history); headroom check, measure, run and record begin one")
            }
            Error::NotAFile { .. } => Some("name a file with --history"),
            Error::NotWritable { .. } => {
                Some("name a file that this user may write to with --history, in a directory it can write to")
            }
            Error::OfAnotherUser { user, .. } if user == "root" => Some(
                "run headroom as the owner, or name a file of root with --history; where sudo keeps the user's HOME, sudo -H uses \
                 root's own history",
            ),
            Error::OfAnotherUser { .. } => {
                Some("name a file of this user with --history, or run headroom as the owner")
            }
            Error::OpenPlace { .. } => Some(
                "keep the history in a directory that its owner alone can write, and name it with --history",
            ),
            Error::NewerSchema { .. } => Some("upgrade Headroom, or name another file with --history"),
            Error::NoHome => Some("name a file with --history"),
            Error::NotStorable { .. } => Some("report this as a bug of Headroom"),
            Error::NotFound { .. } => Some("headroom history, which lists what there is"),
            Error::NoMatrix { .. } => Some("headroom history matrices, which lists what there is"),
            Error::ForeignMatrix { .. } => {
                Some("use the version that began it, or start a new one with headroom run --start-over")
            }
            Error::MatrixInUse { .. } => Some("wait until it is done, or end it with Ctrl-C"),
            Error::NotPlanned { .. } => Some("headroom run --resume, which continues with what is left"),
            Error::DifferentSources { .. } => Some("give two captures of one source"),
            Error::TooCostly { .. } => Some(RECOVER),
            Error::Io { .. } => Some("name another file with --history"),
            Error::Sqlite { source, .. } => match source.sqlite_error_code() {
                Some(ErrorCode::DiskFull) => {
                    Some("free some space, or name a file on another disk with --history")
                }
                Some(ErrorCode::DatabaseCorrupt) => Some(RECOVER),
                Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied | ErrorCode::ReadOnly) => {
                    Some("name a file that this user may write to with --history")
                }
                _ => None,
            },
        }
    }

    pub(crate) fn sqlite(doing: &'static str, path: &Path, source: rusqlite::Error) -> Error {
        let path: PathBuf = path.into();
        match &source {
            rusqlite::Error::SqliteFailure(error, _) if error.code == ErrorCode::OperationInterrupted => {
                Error::TooCostly { doing, cpu_max: cpu_max(&path), path }
            }
            // SQLite could not make its WAL index longer, and calls that an I/O error.
            rusqlite::Error::SqliteFailure(error, _) if error.extended_code == ffi::SQLITE_IOERR_SHMSIZE => {
                Error::full_disk(doing, &path)
            }
            _ => Error::Sqlite { doing, path, source },
        }
    }

    /// The disk has no room for the WAL index.
    pub(crate) fn full_disk(doing: &'static str, path: &Path) -> Error {
        let why = "the disk is full: it has no room for the index of the WAL".to_owned();
        let source = rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_FULL), Some(why));
        Error::Sqlite { doing, path: path.into(), source }
    }

    /// Whether SQLite could not open the file, or one that it puts beside it.
    pub(crate) fn is_cannot_open(&self) -> bool {
        matches!(self, Error::Sqlite { source, .. } if source.sqlite_error_code() == Some(ErrorCode::CannotOpen))
    }

    /// Whether the disk has no room for the action.
    pub(crate) fn is_full_disk(&self) -> bool {
        matches!(self, Error::Sqlite { source, .. } if source.sqlite_error_code() == Some(ErrorCode::DiskFull))
    }

    pub(crate) fn io(doing: &'static str, path: &Path, source: std::io::Error) -> Error {
        Error::Io { doing, path: path.into(), source }
    }
}
