use std::io;
use std::path::PathBuf;

/// Why a server could not be started.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It is not installed.
    #[error("there is no {what} on this machine")]
    NotInstalled {
        /// "PostgreSQL", "MariaDB".
        what: &'static str,
        /// Its package.
        package: &'static str,
    },
    /// It refuses to run as root, and its user does not exist.
    #[error("{what} refuses to run as root, and there is no user {user} to run it as")]
    NoUser {
        /// Which server.
        what: &'static str,
        /// The user that its package creates.
        user: &'static str,
    },
    /// The name of a socket in the directory would be too long.
    #[error("cannot start a server in {}: a socket there would have a name of more than 107 bytes", home.display())]
    LongName {
        /// The directory.
        home: PathBuf,
    },
    /// A program failed.
    #[error("{program}: {output}")]
    Program {
        /// Its name.
        program: String,
        /// The end of its output.
        output: String,
    },
    /// It ended, or was not ready in time.
    #[error("{what} in {} {why}: {output}", home.display())]
    NotReady {
        /// Which server.
        what: &'static str,
        /// Its directory.
        home: PathBuf,
        /// "ended" or "was not ready within 120 s".
        why: String,
        /// The end of its log.
        output: String,
    },
    /// The system refused a step.
    #[error("cannot {doing} {}: {source}", path.display())]
    Io {
        /// "make".
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
}

impl Error {
    /// Remedy for the user, where one is known.
    pub fn remedy(&self) -> Option<String> {
        match self {
            Error::NotInstalled { package, .. } => Some(format!("install it (Debian: {package})")),
            Error::NoUser { .. } => Some("run as another user than root".into()),
            Error::LongName { .. } => Some("a directory with a shorter name".into()),
            // The only sign is the text of another program.
            Error::Program { output, .. } | Error::NotReady { output, .. } if output.contains("ermission denied") => {
                Some("the server's user must get to the directory: chmod o+x it and those above, or run as that user".into())
            }
            Error::Program { .. } | Error::NotReady { .. } | Error::Io { .. } => None,
        }
    }
}
