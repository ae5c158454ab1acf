use super::authentication::AuthenticationFault;
use crate::error::SourceFault;
use std::error::Error;
use std::io;
use std::time::Duration;
use tokio_postgres::error::SqlState;

/// The longest that a snapshot takes, a new connection included; then it is an error.
pub const SNAPSHOT_LIMIT: Duration = Duration::from_secs(5);
/// The oldest version whose views are known.
pub(super) const OLDEST_VERSION: u32 = 14;

/// Why a PostgreSQL server gives no snapshot. No text of it holds a password.
#[derive(Debug, thiserror::Error)]
pub enum PostgresError {
    /// The defect of the connection string, a service file or the environment.
    #[error("cannot read the PostgreSQL connection string: {0}")]
    Settings(String),
    /// No server answers there.
    #[error("cannot connect to PostgreSQL at {place}: {why}")]
    Unreachable {
        /// "HOST:PORT".
        place: String,
        /// The system's error.
        why: String,
    },
    /// The server refuses the role.
    #[error("PostgreSQL at {place} refuses {user}: {why}")]
    Refused {
        /// "HOST:PORT".
        place: String,
        /// The role.
        user: String,
        /// The server's message.
        why: String,
        /// Why a password file was ignored, if it was.
        passfile: Option<String>,
        /// The kind of refusal.
        cause: RefusalCause,
    },
    /// The server requests an authentication that the settings do not accept. It got no password.
    #[error("no login to PostgreSQL at {place}: {fault}")]
    Authentication {
        /// "HOST:PORT".
        place: String,
        /// Why not.
        fault: AuthenticationFault,
    },
    /// The two sides cannot agree on encryption, or the server's certificate is not accepted.
    #[error("no encrypted connection to PostgreSQL at {place}: {why}")]
    Tls {
        /// "HOST:PORT".
        place: String,
        /// The reason.
        why: String,
    },
    /// The server took too long: it hangs, or is too busy.
    #[error("PostgreSQL at {place} did not answer within {SNAPSHOT_LIMIT:?}")]
    TooSlow {
        /// "HOST:PORT".
        place: String,
    },
    /// The connection broke, or the server rejected a query.
    #[error("PostgreSQL at {place}: {why}")]
    Failed {
        /// "HOST:PORT".
        place: String,
        /// The server's or the system's message.
        why: String,
    },
    /// A server older than any that is maintained.
    #[error("PostgreSQL at {place} is version {version}; {OLDEST_VERSION} is the oldest that can be watched")]
    TooOld {
        /// "HOST:PORT".
        place: String,
        /// Its major version.
        version: u32,
    },
    /// The thread that talks to the server could not be started or has died.
    #[error("cannot watch PostgreSQL at {place}: {why}")]
    Thread {
        /// "HOST:PORT".
        place: String,
        /// The system's error.
        why: String,
    },
}

/// Why a role is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalCause {
    /// The role is accepted, but the database does not exist.
    Database,
    /// pg_hba.conf rejects the connection: it may accept one that is, or is not, encrypted.
    Authorization,
    /// All its connections are in use.
    NoConnection,
    /// It cannot take a session now: its disk or memory is full or fails, or it is ending.
    Trouble,
    /// Another reason, such as a wrong password.
    Other,
}

impl RefusalCause {
    pub(super) fn from_code(code: &SqlState) -> RefusalCause {
        match *code {
            SqlState::INVALID_CATALOG_NAME => RefusalCause::Database,
            SqlState::INVALID_AUTHORIZATION_SPECIFICATION => RefusalCause::Authorization,
            SqlState::TOO_MANY_CONNECTIONS => RefusalCause::NoConnection,
            // Insufficient resources, operator intervention, system error, internal error.
            _ if ["53", "57", "58", "XX"].iter().any(|class| code.code().starts_with(class)) => {
                RefusalCause::Trouble
            }
            _ => RefusalCause::Other,
        }
    }
}

impl SourceFault for PostgresError {
    fn facts(&self) -> Vec<String> {
        match self {
            PostgresError::Refused { cause: RefusalCause::Database, .. } => {
                vec!["every server has a database of the name postgres: add dbname=postgres".into()]
            }
            PostgresError::Refused { cause: RefusalCause::NoConnection | RefusalCause::Trouble, .. } => {
                Vec::new()
            }
            PostgresError::Refused { passfile, user, .. } => {
                let mut facts: Vec<String> = passfile.iter().cloned().collect();
                facts.push(format!("a role that is enough: {}", sufficient_role(user)));
                facts.push(
                    "without a new role: run headroom as the server's own user, sudo -u postgres".into(),
                );
                facts
            }
            _ => Vec::new(),
        }
    }

    fn remedy(&self) -> Option<&'static str> {
        match self {
            PostgresError::Settings(_) => {
                Some("give postgres://USER@HOST:PORT/DATABASE or host=... user=... dbname=...")
            }
            PostgresError::Unreachable { .. } => {
                Some("start the server, or give its host (or socket directory) and port")
            }
            PostgresError::Authentication { fault, .. } => Some(fault.remedy()),
            PostgresError::Tls { .. } => Some(
                "sslrootcert=FILE of the authority that signed the server's certificate, and the host by the name that \
                 it has; sslmode=require encrypts without verifying it",
            ),
            PostgresError::Refused { cause: RefusalCause::Database, .. } => {
                Some("give the database: postgres:dbname=DATABASE")
            }
            PostgresError::Refused { cause: RefusalCause::Trouble, .. } => None,
            PostgresError::Refused { cause: RefusalCause::NoConnection, .. } => Some(
                "end a session, raise max_connections, or GRANT pg_use_reserved_connections (PostgreSQL 16)",
            ),
            PostgresError::Refused { .. } => Some(
                "give a role that may log in (user=ROLE dbname=DATABASE), its password in PGPASSWORD or in \
                 ~/.pgpass with mode 0600",
            ),
            _ => None,
        }
    }

    fn is_refusal(&self) -> bool {
        let is_temporary =
            |cause: RefusalCause| matches!(cause, RefusalCause::NoConnection | RefusalCause::Trouble);
        match self {
            PostgresError::Refused { cause, .. } => !is_temporary(*cause),
            PostgresError::Authentication { .. } => true,
            _ => false,
        }
    }
}

/// The command that creates a sufficient role; an existing role keeps its attributes.
fn sufficient_role(user: &str) -> String {
    let role = format!("\"{}\"", user.replace('"', "\"\"")).replace('\'', "'\\''");
    format!("sudo -u postgres psql -c 'CREATE ROLE {role} LOGIN' -c 'GRANT pg_monitor TO {role}'")
}

/// Why an authentication was refused, if that is what ended the connection.
pub(super) fn authentication_fault(error: &tokio_postgres::Error) -> Option<AuthenticationFault> {
    let stream = error.source()?.downcast_ref::<io::Error>()?;
    stream.get_ref()?.downcast_ref().copied()
}

/// An error and its causes. tokio-postgres puts no setting into them.
pub(super) fn describe(error: &tokio_postgres::Error) -> String {
    if let Some(server) = error.as_db_error() {
        return server.message().to_owned();
    }
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let more = cause.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_in_trouble_does_not_refuse_for_good() {
        let refused = |code: &str| {
            let cause = RefusalCause::from_code(&SqlState::from_code(code));
            let error = PostgresError::Refused {
                place: "db:5432".into(),
                user: "headroom".into(),
                why: String::new(),
                passfile: None,
                cause,
            };
            (error.is_refusal(), error.remedy().is_some_and(|remedy| remedy.contains("max_connections")))
        };
        // No connection left; disk full, out of memory, shutting down, I/O error.
        assert_eq!(refused("53300"), (false, true));
        for code in ["53100", "53200", "57P01", "58030"] {
            assert_eq!(refused(code), (false, false), "{code}");
        }
        // A wrong password, pg_hba.conf, no such database, no permission.
        for code in ["28P01", "28000", "3D000", "42501"] {
            assert_eq!(refused(code), (true, false), "{code}");
        }
    }
}
