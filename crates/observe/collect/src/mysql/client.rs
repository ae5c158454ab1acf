//! A connection for statements of the caller's own, made as the source makes its: option files, passwords, TLS.

use super::address::Address;
use super::error::MysqlError;
use super::server::Server;
use super::session::{Login, from_client_error};
use mysql::Conn;

/// One connection. Nothing of it is bounded but the making: the statements are the caller's.
pub struct Client {
    login: Login,
    conn: Conn,
    server: Server,
}

impl Client {
    /// Connects; `connection` is read as by [`Mysql::open`](super::Mysql::open).
    ///
    /// # Errors
    /// As there.
    pub fn connect(connection: &str) -> Result<Client, MysqlError> {
        let login = Login::of(&Address::parse(connection)?)?;
        let (conn, server) = login.unbounded()?;
        Ok(Client { login, conn, server })
    }

    /// Works with the client itself.
    ///
    /// # Errors
    /// What the server said.
    pub fn run<T>(
        &mut self,
        work: impl FnOnce(&mut Conn) -> Result<T, mysql::Error>,
    ) -> Result<T, MysqlError> {
        work(&mut self.conn).map_err(|error| from_client_error(&self.login.name(), error))
    }

    /// MariaDB, not MySQL.
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
        f.debug_struct("Client").field("name", &self.login.name()).finish_non_exhaustive()
    }
}
