//! A connection for a caller's own statements, with the source's rules for option files, passwords and TLS.

use super::error::MysqlError;
use super::server::Server;
use super::session::Login;
use crate::error::SourceError;
use mysql::Conn;

/// One connection. Connecting has a time limit, statements have none.
pub struct Client {
    name: String,
    conn: Conn,
    server: Server,
}

impl Client {
    /// Connects; `connection` is parsed as by [`Mysql::open`](super::Mysql::open).
    ///
    /// # Errors
    /// As for [`Mysql::open`](super::Mysql::open).
    pub fn connect(connection: &str) -> Result<Client, SourceError> {
        let login = Login::new(connection)?;
        let name = login.name();
        let (conn, server) =
            login.connect_without_timeout().map_err(|fault| SourceError::of_server(&name, fault))?;
        Ok(Client { name, conn, server })
    }

    /// Works with the client library's connection.
    ///
    /// # Errors
    /// The server's error.
    pub fn run<T>(
        &mut self,
        work: impl FnOnce(&mut Conn) -> Result<T, mysql::Error>,
    ) -> Result<T, SourceError> {
        work(&mut self.conn).map_err(|error| SourceError::of_server(&self.name, MysqlError::from(error)))
    }

    /// Whether it is MariaDB, not MySQL.
    pub fn is_mariadb(&self) -> bool {
        self.server.is_mariadb
    }

    /// The server's process, where it runs on this machine.
    pub fn process(&self) -> Option<u32> {
        self.server.process.as_ref().map(|process| process.pid)
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("name", &self.name).finish_non_exhaustive()
    }
}
