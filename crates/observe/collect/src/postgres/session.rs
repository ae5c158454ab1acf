//! One connection: made, asked, given up.

use super::answer::{Table, tables};
use super::connection::Connection;
use super::error::{PostgresError, describe};
use tokio::task::JoinHandle;
use tokio_postgres::Client;
use tokio_postgres::config::SslMode;
use tokio_postgres::error::SqlState;

/// A live connection. Dropping it closes the socket at once, whatever the server does.
pub(super) struct Session {
    client: Client,
    driver: JoinHandle<()>,
    place: String,
}

/// Before every question, in its transaction: no object of the server's users can stand in for a system view;
/// nothing is written; the server itself gives up what takes too long, and waits for nobody's lock. Nothing of it
/// outlives the transaction, so that a pooler hands on a clean session.
const BEFORE: &str = "
    SET LOCAL transaction_read_only = on;
    SET LOCAL search_path = pg_catalog;
    SET LOCAL statement_timeout = '2s';
    SET LOCAL lock_timeout = '200ms';
    SET LOCAL extra_float_digits = 1;";
const BEFORE_STATEMENTS: usize = 5;

impl Session {
    /// Connects, encrypted or not as the settings have it; the caller bounds the time.
    pub async fn connect(connection: &Connection) -> Result<Session, PostgresError> {
        let (last, before) = connection.tls.tries.split_last().expect("there is always one");
        let mut refusals = Vec::new();
        for mode in before {
            match Session::connect_by(connection, *mode).await {
                Err(
                    PostgresError::Tls { why, .. } | PostgresError::Refused { why, is_of_this_way: true, .. },
                ) => {
                    refusals.push((*mode, why));
                }
                connected => return connected,
            }
        }
        let mut connected = Session::connect_by(connection, *last).await;
        // The reason that helps may be either's: both are told.
        if let Err(PostgresError::Refused { why, .. } | PostgresError::Tls { why, .. }) = &mut connected {
            refusals.retain(|(_, refusal)| refusal != why);
            for (mode, refusal) in refusals {
                let way = if mode == SslMode::Disable { "without encryption" } else { "encrypted" };
                *why = format!("{why}; {way}: {refusal}");
            }
        }
        connected
    }

    async fn connect_by(connection: &Connection, mode: SslMode) -> Result<Session, PostgresError> {
        let refused = |error: tokio_postgres::Error| match error.as_db_error() {
            Some(said) if *said.code() == SqlState::CANNOT_CONNECT_NOW => {
                PostgresError::Unreachable { place: connection.place.clone(), why: said.message().into() }
            }
            Some(said) => PostgresError::Refused {
                place: connection.place.clone(),
                user: connection.user.clone(),
                why: said.message().into(),
                passfile: connection.passfile_ignored.clone(),
                is_for_the_database: *said.code() == SqlState::INVALID_CATALOG_NAME,
                is_of_this_way: *said.code() == SqlState::INVALID_AUTHORIZATION_SPECIFICATION,
            },
            None if connection.config.get_password().is_none() && is_about_a_password(&error) => {
                PostgresError::Refused {
                    place: connection.place.clone(),
                    user: connection.user.clone(),
                    why: "a password is wanted and none is given".into(),
                    passfile: connection.passfile_ignored.clone(),
                    is_for_the_database: false,
                    is_of_this_way: false,
                }
            }
            None => {
                let place = connection.place.clone();
                match super::tls::said(&error) {
                    Some(why) => PostgresError::Tls { place, why },
                    None => PostgresError::Unreachable { place, why: describe(&error) },
                }
            }
        };
        let mut config = connection.config.clone();
        config.ssl_mode(mode);
        let connected = config.connect(connection.tls.connector.clone()).await;
        let (client, driver) = connected.map_err(refused)?;
        let driver = tokio::spawn(async move {
            // Its end shows in the next question.
            let _ = driver.await;
        });
        Ok(Session { client, driver, place: connection.place.clone() })
    }

    /// The tables that a batch of statements answers, in one round trip and one transaction.
    pub async fn query(&self, statements: &str) -> Result<Vec<Table>, PostgresError> {
        match self.client.simple_query(&format!("{BEFORE}{statements}")).await {
            Ok(messages) => Ok(tables(messages).into_iter().skip(BEFORE_STATEMENTS).collect()),
            Err(error) => Err(PostgresError::Failed { place: self.place.clone(), why: describe(&error) }),
        }
    }

    /// The same of one small statement that is asked often, without what goes before others.
    pub async fn query_often(&self, statement: &str) -> Result<Table, PostgresError> {
        match self.client.simple_query(statement).await {
            Ok(messages) => Ok(tables(messages).pop().unwrap_or_default()),
            Err(error) => Err(PostgresError::Failed { place: self.place.clone(), why: describe(&error) }),
        }
    }

    /// For statements of others than this source.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Whether the connection has ended.
    pub fn is_over(&self) -> bool {
        self.client.is_closed()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

fn is_about_a_password(error: &tokio_postgres::Error) -> bool {
    describe(error).contains("password missing")
}
