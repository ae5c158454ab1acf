use std::io;
use std::path::PathBuf;

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It is not installed.
    #[error("there is no {what} on this machine")]
    NotInstalled {
        /// "PostgreSQL", "MariaDB".
        what: &'static str,
        /// The package that has it.
        package: &'static str,
    },
    /// Root may not run it, and there is nobody else.
    #[error("{what} refuses to run as root, and there is no user {user} to run it as")]
    NoUser {
        /// Which server.
        what: &'static str,
        /// Whom its package makes.
        user: &'static str,
    },
    /// The directory's name leaves no room for a socket's.
    #[error("cannot start a server in {}: a socket there would have a name of more than 107 bytes", home.display())]
    LongName {
        /// The directory.
        home: PathBuf,
    },
    /// A program did not do what it should.
    #[error("{program}: {said}")]
    Program {
        /// Its name.
        program: String,
        /// The last that it said.
        said: String,
    },
    /// It ended, or was not ready in time.
    #[error("{what} in {} {why}: {said}", home.display())]
    NotReady {
        /// Which server.
        what: &'static str,
        /// Where.
        home: PathBuf,
        /// "ended" or "was not ready within 120 s".
        why: String,
        /// The end of its log.
        said: String,
    },
    /// The system refused.
    #[error("cannot {doing} {}: {source}", path.display())]
    Io {
        /// What was tried.
        doing: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

impl Error {
    /// What the person can do about it; `None` where that is not known.
    pub fn remedy(&self) -> Option<String> {
        match self {
            Error::NotInstalled { package, .. } => Some(format!("install it (Debian: {package})")),
            Error::NoUser { .. } => Some("run as another user than root".into()),
            Error::LongName { .. } => Some("a directory with a shorter name".into()),
            Error::Program { said, .. } | Error::NotReady { said, .. } if said.contains("ermission denied") => {
                Some("the server's user must get to the directory: chmod o+x it and those above, or run as that user".into())
            }
            Error::Program { .. } | Error::NotReady { .. } | Error::Io { .. } => None,
        }
    }
}
