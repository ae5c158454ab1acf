//! One connection: how it is made, and its queries.

use super::answer::{Table, tables};
use super::bounded::AnswerLimit;
use super::connection::Connection;
use super::dial::{DialError, Dialer, Driver};
use super::error::{PostgresError, RefusalCause, authentication_fault, describe};
use tokio_postgres::Client;
use tokio_postgres::config::SslMode;
use tokio_postgres::error::SqlState;

/// A live connection. Dropping it closes the socket at once, whatever the server does.
pub(super) struct Session {
    pub(super) client: Client,
    pub(super) driver: Driver,
    pub(super) place: String,
}

/// Before every query, in its transaction: no object of a user hides a system view, nothing is written, and the server
/// cancels a query that takes too long or waits for a lock. The settings end with the transaction, so that a pooler's
/// session is unchanged.
const BEFORE: &str = "
    SET LOCAL transaction_read_only = on;
    SET LOCAL search_path = pg_catalog;
    SET LOCAL statement_timeout = '2s';
    SET LOCAL lock_timeout = '200ms';
    SET LOCAL extra_float_digits = 1;";
const BEFORE_STATEMENTS: usize = 5;

impl Session {
    /// Connects, encrypted or not as the settings say. The caller limits the time.
    pub async fn connect(connection: &Connection, limit: AnswerLimit) -> Result<Session, PostgresError> {
        let (last, before) = connection.tls.tries.split_last().expect("there is always one");
        let mut refusals = Vec::new();
        for mode in before {
            match Session::connect_with(connection, limit, *mode).await {
                Err(
                    PostgresError::Tls { why, .. }
                    | PostgresError::Refused { why, cause: RefusalCause::Authorization, .. },
                ) => {
                    refusals.push((*mode, why));
                }
                // The next one is encrypted.
                Err(PostgresError::Authentication { fault, .. }) if *mode == SslMode::Disable => {
                    refusals.push((*mode, fault.to_string()));
                }
                connected => return connected,
            }
        }
        let mut connected = Session::connect_with(connection, limit, *last).await;
        // Either reason may be the one that helps: the message has both.
        if let Err(PostgresError::Refused { why, .. } | PostgresError::Tls { why, .. }) = &mut connected {
            refusals.retain(|(_, refusal)| refusal != why);
            for (mode, refusal) in refusals {
                let attempt = if mode == SslMode::Disable { "without encryption" } else { "encrypted" };
                *why = format!("{why}; {attempt}: {refusal}");
            }
        }
        connected
    }

    async fn connect_with(
        connection: &Connection,
        limit: AnswerLimit,
        mode: SslMode,
    ) -> Result<Session, PostgresError> {
        let place = || connection.place.clone();
        let refused = |why: &str, cause| PostgresError::Refused {
            place: place(),
            user: connection.user.clone(),
            why: why.into(),
            passfile: connection.passfile_ignored.clone(),
            cause,
        };
        let failed = |error: tokio_postgres::Error| match error.as_db_error() {
            Some(server) if *server.code() == SqlState::CANNOT_CONNECT_NOW => {
                PostgresError::Unreachable { place: place(), why: server.message().into() }
            }
            Some(server) => refused(server.message(), RefusalCause::from_code(server.code())),
            None if connection.config.get_password().is_none() && is_password_missing(&error) => {
                refused("a password is wanted and none is given", RefusalCause::Other)
            }
            None => match (authentication_fault(&error), super::tls::describe_tls_error(&error)) {
                (Some(fault), _) => PostgresError::Authentication { place: place(), fault },
                (None, Some(why)) => PostgresError::Tls { place: place(), why },
                (None, None) => PostgresError::Unreachable { place: place(), why: describe(&error) },
            },
        };
        let mut config = connection.config.clone();
        config.ssl_mode(mode);
        let (connector, peer) = (&connection.tls.connector, &connection.peer);
        let required_auth = connection.required_auth;
        let dialer = Dialer { config: &config, connector, peer, required_auth, limit };
        let (client, driver) = dialer.dial().await.map_err(|error| match error {
            DialError::Unreachable(why) => PostgresError::Unreachable { place: place(), why },
            DialError::Postgres(error) => failed(error),
        })?;
        Ok(Session { client, driver, place: connection.place.clone() })
    }

    /// Runs statements in one round trip and one transaction; a table for each.
    pub async fn query(&self, statements: &str) -> Result<Vec<Table>, PostgresError> {
        let tables = self.run(&format!("{BEFORE}{statements}")).await?;
        Ok(tables.into_iter().skip(BEFORE_STATEMENTS).collect())
    }

    /// Runs one small statement without the settings before others: for frequent ones.
    pub async fn query_often(&self, statement: &str) -> Result<Table, PostgresError> {
        Ok(self.run(statement).await?.pop().unwrap_or_default())
    }

    async fn run(&self, statements: &str) -> Result<Vec<Table>, PostgresError> {
        match self.client.simple_query(statements).await {
            Ok(messages) => Ok(tables(messages)),
            Err(error) => {
                let why = self.driver.failure().map_or_else(|| describe(&error), str::to_owned);
                Err(PostgresError::Failed { place: self.place.clone(), why })
            }
        }
    }

    /// The client, for a caller's own statements.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Whether the connection has ended.
    pub fn is_closed(&self) -> bool {
        self.client.is_closed()
    }
}

/// The client library has no type for this error.
fn is_password_missing(error: &tokio_postgres::Error) -> bool {
    describe(error).contains("password missing")
}
