//! A connection for statements of the caller's own, made as the source makes its: settings, password file, TLS.

use super::connection::Connection;
use super::environment;
use super::error::{PostgresError, describe};
use super::local::Local;
use super::server::{self, Server};
use super::session::Session;
use super::worker::SNAPSHOT_LIMIT;
use tokio::runtime::{Builder, Runtime};

/// One connection. Nothing of it is bounded but the making: the statements are the caller's.
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
    /// Connects; `connection` is read as by [`Postgres::open`](super::Postgres::open).
    ///
    /// # Errors
    /// As there.
    pub fn connect(connection: &str) -> Result<Client, PostgresError> {
        let settings = Connection::parse(connection, &environment::of_process);
        let settings = settings.map_err(|why| PostgresError::Settings { why })?;
        let place = settings.place.clone();
        let failed =
            |error: std::io::Error| PostgresError::Thread { place: place.clone(), why: error.to_string() };
        let runtime = Builder::new_current_thread().enable_io().enable_time().build().map_err(failed)?;
        let begun = async {
            let begin = async {
                let session = Session::connect(&settings).await?;
                let tables = session.query(server::SERVER_QUERY).await?;
                let server = Server::read(&settings, tables.first().and_then(|rows| rows.first()), None)?;
                let processes = Local::find(&settings, &server).processes();
                Ok((session, server, processes))
            };
            tokio::time::timeout(SNAPSHOT_LIMIT, begin).await
        };
        let too_slow = |_| PostgresError::TooSlow { place: place.clone(), limit: SNAPSHOT_LIMIT };
        let (session, server, processes) = runtime.block_on(begun).map_err(too_slow)??;
        let Server { version, block_bytes, pid: backend, .. } = server;
        Ok(Client { runtime, session, place, version, block_bytes, backend, processes })
    }

    /// Works with the client itself.
    ///
    /// # Errors
    /// [`PostgresError::Failed`] with what the server said.
    pub fn run<T>(
        &self,
        work: impl AsyncFnOnce(&tokio_postgres::Client) -> Result<T, tokio_postgres::Error>,
    ) -> Result<T, PostgresError> {
        let done = self.runtime.block_on(work(self.session.client()));
        done.map_err(|error| PostgresError::Failed { place: self.place.clone(), why: describe(&error) })
    }

    /// Major version.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// Bytes of a page.
    pub fn block_bytes(&self) -> u64 {
        self.block_bytes
    }

    /// The server's process of this connection, where the server runs on this machine.
    pub fn backend(&self) -> Option<u32> {
        self.backend.filter(|_| !self.processes.is_empty())
    }

    /// The server's first process, where it runs on this machine.
    pub fn postmaster(&self) -> Option<u32> {
        self.processes.first().copied()
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("place", &self.place).finish_non_exhaustive()
    }
}
