use std::io;
use std::path::PathBuf;

/// Why a MySQL or MariaDB server gives nothing. No text of it ever holds a password.
#[derive(Debug, thiserror::Error)]
pub enum MysqlError {
    /// The connection text is not of the form.
    #[error("cannot watch a MySQL server: {0}")]
    BadConnection(String),
    /// An option file that was named cannot be read.
    #[error("cannot read {path}: {error}")]
    OptionFile {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// An option file holds a password that others can read.
    #[error("cannot use the password in {path}: everybody can read it")]
    OpenSecret {
        /// The file.
        path: PathBuf,
    },
    /// Nobody is there.
    #[error("cannot watch {name}: {reason}")]
    Unreachable {
        /// The server as it was asked for.
        name: String,
        /// What the system said.
        reason: String,
    },
    /// It is there and says nothing.
    #[error("cannot watch {name}: no answer within {seconds} s")]
    TimedOut {
        /// The server.
        name: String,
        /// How long was waited.
        seconds: u64,
    },
    /// It does not let this user in.
    #[error("cannot watch {name}: the server refuses the login: {said}")]
    Refused {
        /// The server.
        name: String,
        /// What it said.
        said: String,
    },
    /// Anything else that went wrong.
    #[error("cannot watch {name}: {said}")]
    Failed {
        /// The server.
        name: String,
        /// What went wrong.
        said: String,
    },
}

impl MysqlError {
    /// What is known about the case, a line each.
    pub fn facts(&self) -> Vec<String> {
        match self {
            MysqlError::Refused { .. } => vec![
                "a user that is enough: CREATE USER headroom@localhost IDENTIFIED BY '...'; GRANT SELECT ON \
                 performance_schema.* TO headroom@localhost;"
                    .into(),
            ],
            _ => Vec::new(),
        }
    }

    /// What the person can do about it.
    pub fn remedy(&self) -> Option<&'static str> {
        match self {
            MysqlError::BadConnection(_) => Some(
                "give mysql://USER@HOST:PORT, mysql://USER@/PATH/OF/SOCKET, or mysql: for what ~/.my.cnf says",
            ),
            MysqlError::OptionFile { .. } => Some("name an option file that this user can read"),
            MysqlError::OpenSecret { .. } => Some("chmod 600 that file"),
            MysqlError::Unreachable { .. } => Some("see that the server runs and listens there"),
            MysqlError::TimedOut { .. } => Some("see whether the server hangs, or its network"),
            MysqlError::Refused { .. } => Some(
                "give user and password in ~/.my.cnf under [client], mode 0600, or the password in MYSQL_PWD",
            ),
            MysqlError::Failed { .. } => None,
        }
    }
}
