//! A connection for a caller's own statements, with the source's rules for settings, password files and TLS.

use super::connection::Connection;
use super::environment;
use super::error::{PostgresError, describe};
use super::local::Local;
use super::server::{self, Server};
use super::session::Session;
use super::worker::SNAPSHOT_LIMIT;
use crate::error::SourceError;
use tokio::runtime::{Builder, Runtime};

/// One connection. Connecting has a time limit, statements have none.
pub struct Client {
    runtime: Runtime,
    session: Session,
    place: String,
    version: u32,
    block_bytes: u64,
    backend: Option<u32>,
    processes: Vec<u32>,
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
                let session = Session::connect(&settings).await?;
                let tables = session.query(server::SERVER_QUERY).await?;
                let server = Server::from_row(&settings, tables.first().and_then(|rows| rows.first()), None)?;
                let processes = Local::find(&settings, &server).processes();
                Ok::<_, PostgresError>((session, server, processes))
            };
            tokio::time::timeout(SNAPSHOT_LIMIT, connect).await
        };
        let too_slow = |_| PostgresError::TooSlow { place: place.clone() };
        let (session, server, processes) = runtime.block_on(connected).map_err(too_slow)??;
        let Server { version, block_bytes, pid: backend, .. } = server;
        Ok(Client { runtime, session, place, version, block_bytes, backend, processes })
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

    /// Major version.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// Bytes of a page.
    pub fn block_bytes(&self) -> u64 {
        self.block_bytes
    }

    /// The server's process for this connection, if the server runs on this machine.
    pub fn backend(&self) -> Option<u32> {
        self.backend.filter(|_| !self.processes.is_empty())
    }

    /// The postmaster, if the server runs on this machine.
    pub fn postmaster(&self) -> Option<u32> {
        self.processes.first().copied()
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("place", &self.place).finish_non_exhaustive()
    }
}
