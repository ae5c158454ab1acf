//! A connection for a caller's own statements, with the source's rules for settings, password files and TLS.

use super::bounded::AnswerLimit;
use super::connection::Connection;
use super::error::{PostgresError, SNAPSHOT_LIMIT, describe};
use super::local::Local;
use super::server::{self, Server};
use super::session::Session;
use crate::environment;
use crate::error::SourceError;
use tokio::runtime::{Builder, Runtime};

/// One connection. Connecting has a time limit, statements have none, and neither has the size of an answer: this is for a
/// server that the caller chose for an experiment.
pub struct Client {
    runtime: Runtime,
    session: Session,
    place: String,
    /// Bytes of a page.
    pub block_bytes: u64,
    /// The server's process for this connection, if the server runs on this machine.
    pub backend: Option<u32>,
    /// The postmaster, if the server runs on this machine.
    pub postmaster: Option<u32>,
}

impl Client {
    /// Connects; `connection` is parsed as by [`Postgres::open`](super::Postgres::open).
    ///
    /// # Errors
    /// As for [`Postgres::open`](super::Postgres::open).
    pub fn connect(connection: &str) -> Result<Client, SourceError> {
        let settings = Connection::parse(connection, &environment::of_process);
        let settings = settings.map_err(PostgresError::Settings)?;
        let place = settings.place.clone();
        let failed =
            |error: std::io::Error| PostgresError::Thread { place: place.clone(), why: error.to_string() };
        let runtime = Builder::new_current_thread().enable_io().enable_time().build().map_err(failed)?;
        let connected = async {
            let connect = async {
                let session = Session::connect(&settings, AnswerLimit::None).await?;
                let tables = session.query(server::SERVER_QUERY).await?;
                let server = Server::from_row(&settings, tables.first().and_then(|rows| rows.first()), None)?;
                let postmaster = Local::find(&settings, &server).postmaster;
                Ok::<_, PostgresError>((session, server, postmaster))
            };
            tokio::time::timeout(SNAPSHOT_LIMIT, connect).await
        };
        let too_slow = |_| PostgresError::TooSlow { place: place.clone() };
        let (session, server, postmaster) = runtime.block_on(connected).map_err(too_slow)??;
        let backend = server.pid.filter(|_| postmaster.is_some());
        Ok(Client { runtime, session, place, block_bytes: server.block_bytes, backend, postmaster })
    }

    /// Works with the client library's connection.
    ///
    /// # Errors
    /// [`PostgresError::Failed`] with the server's message.
    pub fn run<T>(
        &self,
        work: impl AsyncFnOnce(&tokio_postgres::Client) -> Result<T, tokio_postgres::Error>,
    ) -> Result<T, SourceError> {
        let done = self.runtime.block_on(work(self.session.client()));
        Ok(done.map_err(|error| PostgresError::Failed { place: self.place.clone(), why: describe(&error) })?)
    }
}
