//! A connection for a caller's own statements, with the source's rules for option files, passwords and TLS.

use super::error::MysqlError;
use super::session::Login;
use crate::error::SourceError;
use mysql::Conn;

/// One connection. Connecting has a time limit, statements have none.
pub struct Client {
    name: String,
    conn: Conn,
    /// Whether it is MariaDB, not MySQL.
    pub is_mariadb: bool,
    /// The server's process, where it runs on this machine.
    pub process: Option<u32>,
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
        let process = server.process.map(|process| process.pid);
        Ok(Client { name, conn, is_mariadb: server.is_mariadb, process })
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
}
