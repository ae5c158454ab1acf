use crate::error::SourceFault;

/// Why a SQL Server gives no snapshot. No text of it holds a password.
#[derive(Debug, thiserror::Error)]
pub enum SqlServerError {
    /// The connection text is not of the form.
    #[error("cannot watch a SQL Server: {0}")]
    BadConnection(String),
    /// No server answers there.
    #[error("cannot watch {name}: {why}")]
    Unreachable {
        /// The server as it was named.
        name: String,
        /// The system's error.
        why: String,
    },
    /// It does not answer in time.
    #[error("cannot watch {name}: no answer within {seconds} s")]
    TimedOut {
        /// The server.
        name: String,
        /// The limit.
        seconds: u64,
    },
    /// The two sides cannot agree on encryption, or its certificate is not accepted.
    #[error("cannot watch {name}: no encrypted connection: {why}")]
    Encryption {
        /// The server.
        name: String,
        /// What is wrong.
        why: String,
    },
    /// It refuses the login.
    #[error("cannot watch {name}: the server refuses the login: {why}")]
    Refused {
        /// The server.
        name: String,
        /// Its message.
        why: String,
    },
    /// It accepts the login but denies it the statistics.
    #[error("cannot watch {name}: this login may not see what the files are asked: {why}")]
    Denied {
        /// The server.
        name: String,
        /// Its message.
        why: String,
        /// The line that grants it.
        grant: String,
    },
    /// It violates the protocol, or speaks another one. Nothing of its answer is used.
    #[error("cannot watch {name}: {why}")]
    NotUnderstood {
        /// The server.
        name: String,
        /// What is wrong with its answer.
        why: String,
    },
    /// Any other failure.
    #[error("cannot watch {name}: {why}")]
    Failed {
        /// The server.
        name: String,
        /// What went wrong.
        why: String,
    },
}

impl SourceFault for SqlServerError {
    fn facts(&self) -> Vec<String> {
        match self {
            SqlServerError::Refused { .. } => vec![
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
            SqlServerError::Unreachable { .. } => {
                Some("see that the server runs, has TCP switched on and listens on that port")
            }
            SqlServerError::TimedOut { .. } => Some("see whether the server hangs, or its network"),
            SqlServerError::Encryption { .. } => Some(
                "where the server made its certificate itself ?certificate=trust, or ?certificate=FILE of its authority; \
                 where it has no TLS ?encrypt=off; see docs/source-sqlserver.md",
            ),
            SqlServerError::Refused { .. } => Some(
                "give the user as sqlserver://USER@HOST or in SQLCMDUSER, the password in SQLCMDPASSWORD or \
                     ?password-file=FILE",
            ),
            SqlServerError::Denied { .. } => Some("have an administrator run that line"),
            SqlServerError::NotUnderstood { .. } | SqlServerError::Failed { .. } => None,
        }
    }
}
