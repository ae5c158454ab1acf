use crate::error::SourceFault;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// The longest that an answer takes, and that opening or a snapshot takes in all.
pub(super) const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// Why a MySQL or MariaDB server gives no snapshot. No text of it holds a password. The server's name, if the settings are
/// right, is in [`SourceError::Server`](crate::SourceError::Server).
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
        /// The system's error.
        error: io::Error,
    },
    /// An option file holds a password that others can read.
    #[error("cannot use the password in {path}: everybody can read it")]
    OpenSecret {
        /// The file.
        path: PathBuf,
    },
    /// No server answers there: the system's error.
    #[error("{0}")]
    Unreachable(String),
    /// It does not answer in time.
    #[error("no answer within {} s", ANSWER_TIMEOUT.as_secs())]
    TimedOut,
    /// It refuses the login: its message.
    #[error("the server refuses the login: {0}")]
    Refused(String),
    /// It requests the password itself (caching_sha2_password) without TLS.
    #[error("the server requests the password itself, but offers no encryption that keeps it from others")]
    PasswordInClear,
    /// Any other failure, with its cause.
    #[error("{0}")]
    Failed(String),
}

impl SourceFault for MysqlError {
    fn facts(&self) -> Vec<String> {
        match self {
            MysqlError::Refused(_) => vec![
                "a user that is enough: CREATE USER headroom@localhost IDENTIFIED BY '...'; GRANT SELECT ON \
                 performance_schema.* TO headroom@localhost;"
                    .into(),
            ],
            _ => Vec::new(),
        }
    }

    fn remedy(&self) -> Option<&'static str> {
        match self {
            MysqlError::BadConnection(_) => Some(
                "give mysql://USER@HOST:PORT, mysql://USER@/PATH/OF/SOCKET, or mysql: for what ~/.my.cnf says",
            ),
            MysqlError::OptionFile { .. } => Some("name an option file that this user can read"),
            MysqlError::OpenSecret { .. } => Some("chmod 600 that file"),
            MysqlError::Unreachable(_) => Some("see that the server runs and listens there"),
            MysqlError::TimedOut => Some("see whether the server hangs, or its network"),
            MysqlError::Refused(_) => Some(
                "give user and password in ~/.my.cnf under [client], mode 0600, or the password in MYSQL_PWD",
            ),
            MysqlError::PasswordInClear => Some(
                "let the server have a certificate, and give ssl-mode=verify_identity, or connect by its socket; \
                 get-server-public-key=true sends the password encrypted with the key of any server that answers there",
            ),
            MysqlError::Failed(_) => None,
        }
    }

    fn is_refusal(&self) -> bool {
        matches!(self, MysqlError::Refused(_) | MysqlError::PasswordInClear)
    }
}
