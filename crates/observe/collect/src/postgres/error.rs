use crate::error::SourceFault;
use std::error::Error;
use std::time::Duration;

/// Why a PostgreSQL server gives nothing. Never has a password in it.
#[derive(Debug, thiserror::Error)]
pub enum PostgresError {
    /// The connection string, a service file or the environment cannot be meant.
    #[error("cannot read the PostgreSQL connection string: {why}")]
    Settings {
        /// What is wrong with it.
        why: String,
    },
    /// Nobody answers there.
    #[error("cannot connect to PostgreSQL at {place}: {why}")]
    Unreachable {
        /// "HOST:PORT".
        place: String,
        /// What the system said.
        why: String,
    },
    /// The server does not let this role in.
    #[error("PostgreSQL at {place} refuses {user}: {why}")]
    Refused {
        /// "HOST:PORT".
        place: String,
        /// The role.
        user: String,
        /// What the server said.
        why: String,
        /// Why a password file was passed over, if it was.
        passfile: Option<String>,
        /// There is no database of that name; the role is let in.
        is_for_the_database: bool,
        /// It may let this role in over a connection that is, or is not, encrypted.
        is_of_this_way: bool,
    },
    /// The two cannot agree how to encrypt, or the server's certificate is not accepted.
    #[error("no encrypted connection to PostgreSQL at {place}: {why}")]
    Tls {
        /// "HOST:PORT".
        place: String,
        /// What is wrong.
        why: String,
    },
    /// The server took too long: it hangs, or is too busy.
    #[error("PostgreSQL at {place} did not answer within {limit:?}")]
    TooSlow {
        /// "HOST:PORT".
        place: String,
        /// How long was waited.
        limit: Duration,
    },
    /// The connection broke, or the server did not do what was asked.
    #[error("PostgreSQL at {place}: {why}")]
    Failed {
        /// "HOST:PORT".
        place: String,
        /// What the server or the system said.
        why: String,
    },
    /// A server older than any that is maintained.
    #[error("PostgreSQL at {place} is version {version}; {oldest} is the oldest that can be watched")]
    TooOld {
        /// "HOST:PORT".
        place: String,
        /// Its major version.
        version: u32,
        /// The oldest that will do.
        oldest: u32,
    },
    /// The thread that talks to the server could not be started or has died.
    #[error("cannot watch PostgreSQL at {place}: {why}")]
    Thread {
        /// "HOST:PORT".
        place: String,
        /// What the system said.
        why: String,
    },
}

impl SourceFault for PostgresError {
    fn facts(&self) -> Vec<String> {
        match self {
            PostgresError::Refused { is_for_the_database: true, .. } => {
                vec!["every server has a database of the name postgres: add dbname=postgres".into()]
            }
            PostgresError::Refused { passfile, user, .. } => {
                let mut facts: Vec<String> = passfile.iter().cloned().collect();
                facts.push(format!("a role that is enough: {}", enough(user)));
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
            PostgresError::Settings { .. } => {
                Some("give postgres://USER@HOST:PORT/DATABASE or host=... user=... dbname=...")
            }
            PostgresError::Unreachable { .. } => {
                Some("start the server, or give its host (or socket directory) and port")
            }
            PostgresError::Tls { .. } => Some(
                "sslrootcert=FILE of the authority that signed the server's certificate, and the host by the name that \
                 it has; sslmode=require encrypts without looking: docs/source-postgres.md",
            ),
            PostgresError::Refused { is_for_the_database: true, .. } => {
                Some("give the database: postgres:dbname=DATABASE")
            }
            PostgresError::Refused { .. } => Some(
                "give a role that may log in (user=ROLE dbname=DATABASE), its password in PGPASSWORD or in \
                 ~/.pgpass with mode 0600: docs/source-postgres.md",
            ),
            _ => None,
        }
    }
}

/// The command that makes a role which may see all that is shown; a role that is there already keeps what it has.
fn enough(user: &str) -> String {
    let role = format!("\"{}\"", user.replace('"', "\"\"")).replace('\'', "'\\''");
    format!("sudo -u postgres psql -c 'CREATE ROLE {role} LOGIN' -c 'GRANT pg_monitor TO {role}'")
}

/// An error and its causes. tokio-postgres puts no setting into them.
pub(super) fn describe(error: &tokio_postgres::Error) -> String {
    if let Some(said) = error.as_db_error() {
        return said.message().to_owned();
    }
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(behind) = source {
        let more = behind.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        source = behind.source();
    }
    text
}
