use crate::EntryKind;
use std::path::{Path, PathBuf};

/// What can go wrong with the history.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file is something else.
    #[error(
        "cannot open the history {}: the file is no SQLite database; name another file, or move this one away",
        path.display()
    )]
    NotADatabase {
        /// The file.
        path: PathBuf,
    },
    /// The file is somebody else's database.
    #[error(
        "cannot open the history {}: it is an SQLite database that Headroom did not make (its application \
         id is {application_id:#010x}); name another file, or move this one away",
        path.display()
    )]
    NotOurs {
        /// The file.
        path: PathBuf,
        /// What its header says.
        application_id: u32,
    },
    /// A newer Headroom wrote the file.
    #[error(
        "cannot open the history {}: its schema is version {found} and this Headroom knows versions up to \
         {known}; upgrade Headroom, or name another file",
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
    #[error("cannot tell where the history is kept: neither XDG_DATA_HOME nor HOME is set; name a file")]
    NoHome,
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
    #[error("cannot {doing} in the history {}: {source}", path.display())]
    Sqlite {
        /// What was tried.
        doing: &'static str,
        /// The history.
        path: PathBuf,
        /// Why not.
        source: rusqlite::Error,
    },
    /// A value whose JSON would not read back as itself.
    #[error("cannot keep this {kind}: its JSON does not read back ({source}); please report this as a bug")]
    NotStorable {
        /// What it is.
        kind: EntryKind,
        /// Where the JSON breaks.
        source: serde_json::Error,
    },
    /// No such row.
    #[error("the history {} has no {kind} {id}; `headroom history` lists what there is", path.display())]
    NotFound {
        /// What was asked for.
        kind: EntryKind,
        /// Its number.
        id: i64,
        /// The history.
        path: PathBuf,
    },
    /// An interval between captures of two sources.
    #[error(
        "there is no interval between capture {a} of {source_a} and capture {b} of {source_b}; give two \
         captures of one source"
    )]
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

impl Error {
    pub(crate) fn sqlite(doing: &'static str, path: &Path, source: rusqlite::Error) -> Error {
        Error::Sqlite { doing, path: path.into(), source }
    }

    pub(crate) fn io(doing: &'static str, path: &Path, source: std::io::Error) -> Error {
        Error::Io { doing, path: path.into(), source }
    }
}
