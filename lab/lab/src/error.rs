use std::path::{Path, PathBuf};

/// Why an experiment cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The system, SQLite or the page cache of an experiment.
    #[error(transparent)]
    Everyday(#[from] everyday::Error),
    /// A server that we start fails to.
    #[error(transparent)]
    Server(#[from] servers::Error),
    /// Another embedded engine.
    #[error(transparent)]
    Peer(#[from] peers::Error),
    /// Our page store.
    #[error("cannot {doing} in the page store {}: {source}", path.display())]
    Pagestore {
        /// The step that failed.
        doing: &'static str,
        /// The store's directory.
        path: PathBuf,
        /// Why not.
        source: pagestore::Error,
    },
    /// A server does not do what the experiment needs, or the counters of an experiment cannot be read.
    #[error(transparent)]
    Source(#[from] collect::SourceError),
    /// Something on a server has the name that the experiment uses.
    #[error("will not use {what} on that server: it has the experiment's name and no mark of Headroom's")]
    NotOursThere {
        /// "schema headroom_lab".
        what: &'static str,
    },
    /// Another experiment uses the server.
    #[error("another headroom lab is at work on that server")]
    InUse,
    /// The query cannot be run or measured.
    #[error("cannot run the query on {on}: {why}")]
    Query {
        /// Which engine or file.
        on: String,
        /// Its message.
        why: String,
    },
    /// An engine could not be crashed at work.
    #[error("{engine} {why}")]
    Writer {
        /// Which.
        engine: &'static str,
        /// "ended by itself: ...".
        why: String,
    },
    /// After recovery a page has not its content.
    #[error("{engine} came back wrong (recovery: {strategy}): {what}")]
    Wrong {
        /// Which engine.
        engine: &'static str,
        /// How it was recovered.
        strategy: &'static str,
        /// Which page, and what is wrong.
        what: String,
    },
    /// The emulated disk cannot be made.
    #[error(transparent)]
    Disk(#[from] luns::LunError),
    /// No file system can be made on it.
    #[error("cannot make a file system on {device}: {why}")]
    FileSystem {
        /// The device.
        device: String,
        /// The message of mkfs.
        why: String,
    },
    /// A source that names no database.
    #[error("cannot run the query in {}: {why}", path.display())]
    NoDatabase {
        /// The file that was named.
        path: PathBuf,
        /// "there is no such file".
        why: &'static str,
    },
}

impl Error {
    /// The system refused.
    pub(crate) fn io(doing: &'static str, path: &Path) -> impl Fn(std::io::Error) -> Error {
        move |source| everyday::Error::Io { doing, path: path.into(), source }.into()
    }

    /// SQLite refused.
    pub(crate) fn sqlite(doing: &'static str, path: &Path) -> impl Fn(rusqlite::Error) -> Error {
        move |source| everyday::Error::Sqlite { doing, path: path.into(), source }.into()
    }

    /// The page store refused.
    pub(crate) fn pagestore(doing: &'static str, path: &Path) -> impl Fn(pagestore::Error) -> Error {
        move |source| Error::Pagestore { doing, path: path.into(), source }
    }

    /// Remedy; `None` where none is known.
    pub fn remedy(&self) -> Option<String> {
        let known = match self {
            Error::Everyday(error) => error.remedy(),
            Error::Server(error) => return error.remedy(),
            Error::Peer(error) => return error.remedy(),
            Error::Source(error) => error.remedy(),
            Error::NotOursThere { .. } => Some("rename it, or name another server"),
            Error::NoDatabase { .. } => {
                Some("give the path of a SQLite database, as in --source sqlite:/data/shop.db")
            }
            Error::InUse => Some("wait until it has ended"),
            Error::Disk(error) => return error.remedy(),
            Error::FileSystem { .. } => Some("install e2fsprogs, which has mkfs.ext4"),
            Error::Wrong { .. } => {
                Some("run it again with the same --seed; where it stays, the engine lost data")
            }
            Error::Query { .. } | Error::Pagestore { .. } | Error::Writer { .. } => None,
        };
        known.map(str::to_owned)
    }

    /// Facts of the case, a line each.
    pub fn facts(&self) -> Vec<String> {
        match self {
            Error::Everyday(error) => error.facts(),
            Error::Source(error) => error.facts(),
            _ => Vec::new(),
        }
    }
}
