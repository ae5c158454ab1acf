/// Why a SQL Server gives nothing. No text of it ever holds a password.
#[derive(Debug, thiserror::Error)]
pub enum SqlServerError {
    /// The connection text is not of the form.
    #[error("cannot watch a SQL Server: {0}")]
    BadConnection(String),
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
    /// The two cannot agree how to encrypt, or its certificate is not accepted.
    #[error("cannot watch {name}: no encrypted connection: {said}")]
    Encryption {
        /// The server.
        name: String,
        /// What is wrong.
        said: String,
    },
    /// It does not let this login in.
    #[error("cannot watch {name}: the server refuses the login: {said}")]
    Refused {
        /// The server.
        name: String,
        /// What it said.
        said: String,
    },
    /// It lets this login in and shows it nothing.
    #[error("cannot watch {name}: this login may not see what the files are asked: {said}")]
    Denied {
        /// The server.
        name: String,
        /// What it said.
        said: String,
        /// The line that grants it.
        grant: String,
    },
    /// It speaks otherwise than the protocol says, or another protocol: nothing that it says is used.
    #[error("cannot watch {name}: {said}")]
    NotUnderstood {
        /// The server.
        name: String,
        /// What is wrong with its answer.
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

impl SqlServerError {
    /// What is known about the case, a line each.
    pub fn facts(&self) -> Vec<String> {
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

    /// What the person can do about it.
    pub fn remedy(&self) -> Option<&'static str> {
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
