use crate::error::SourceFault;

/// Why a SQL Server gives no snapshot. No text of it holds a password. The server's name, if the connection text is right,
/// is in [`SourceError::Server`](crate::SourceError::Server).
#[derive(Debug, thiserror::Error)]
pub enum SqlServerError {
    /// The connection text is not of the form.
    #[error("cannot watch a SQL Server: {0}")]
    BadConnection(String),
    /// No server answers there: the system's error.
    #[error("{0}")]
    Unreachable(String),
    /// It does not answer within this many seconds.
    #[error("no answer within {0} s")]
    TimedOut(u64),
    /// The two sides cannot agree on encryption, or its certificate is not accepted: what is wrong.
    #[error("no encrypted connection: {0}")]
    Encryption(String),
    /// It refuses the login: its message.
    #[error("the server refuses the login: {0}")]
    Refused(String),
    /// It accepts the login but denies it the statistics.
    #[error("this login may not see what the files are asked: {why}")]
    Denied {
        /// Its message.
        why: String,
        /// The line that grants it.
        grant: String,
    },
    /// It violates the protocol, or speaks another one: what is wrong with its answer, of which nothing is used.
    #[error("{0}")]
    NotUnderstood(&'static str),
    /// Any other failure, with its cause.
    #[error("{0}")]
    Failed(String),
}

impl SourceFault for SqlServerError {
    fn facts(&self) -> Vec<String> {
        match self {
            SqlServerError::Refused(_) => vec![
                "a login that is enough: CREATE LOGIN headroom WITH PASSWORD = '...'; GRANT VIEW SERVER STATE TO \
                 headroom; GRANT VIEW ANY DEFINITION TO headroom;"
                    .into(),
            ],
            SqlServerError::Denied { grant, .. } => vec![format!("the line that grants it: {grant}")],
            _ => Vec::new(),
        }
    }

    fn remedy(&self) -> Option<&'static str> {
        match self {
            SqlServerError::BadConnection(_) => {
                Some("give sqlserver://USER@HOST:PORT, and the password in SQLCMDPASSWORD")
            }
            SqlServerError::Unreachable(_) => {
                Some("see that the server runs, has TCP switched on and listens on that port")
            }
            SqlServerError::TimedOut(_) => Some("see whether the server hangs, or its network"),
            SqlServerError::Encryption(_) => Some(
                "where the server made its certificate itself ?certificate=trust, or ?certificate=FILE of its authority; \
                 where it has no TLS ?encrypt=off",
            ),
            SqlServerError::Refused(_) => Some(
                "give the user as sqlserver://USER@HOST or in SQLCMDUSER, the password in SQLCMDPASSWORD or \
                     ?password-file=FILE",
            ),
            SqlServerError::Denied { .. } => Some("have an administrator run that line"),
            SqlServerError::NotUnderstood(_) | SqlServerError::Failed(_) => None,
        }
    }

    fn is_refusal(&self) -> bool {
        matches!(self, SqlServerError::Refused(_) | SqlServerError::Denied { .. })
    }
}
