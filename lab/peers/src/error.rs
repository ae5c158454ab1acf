use std::path::PathBuf;

/// Why an engine cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Its library is not on this machine.
    #[error("there is no {engine} on this machine: {why}")]
    NotInstalled {
        /// "LMDB".
        engine: &'static str,
        /// The loader's message on the first name that was tried.
        why: String,
        /// The Debian package that has it.
        package: &'static str,
    },
    /// The library lacks a function.
    #[error("the {engine} of this machine ({library}) cannot be used: it has no {function}")]
    NoFunction {
        /// "RocksDB".
        engine: &'static str,
        /// Its library.
        library: String,
        /// The missing function.
        function: &'static str,
    },
    /// The engine reports an error.
    #[error("{engine} cannot {doing} in {}: {why}", dir.display())]
    Engine {
        /// "redb".
        engine: &'static str,
        /// "commit".
        doing: &'static str,
        /// The database's directory.
        dir: PathBuf,
        /// Its message.
        why: String,
    },
}

impl Error {
    /// Remedy; `None` where none is known.
    pub fn remedy(&self) -> Option<String> {
        match self {
            Error::NotInstalled { package, .. } => Some(format!("apt-get install {package}")),
            Error::NoFunction { .. } => Some("install the version that Debian has".into()),
            Error::Engine { .. } => None,
        }
    }
}
