//! A connection for a caller's own statements, with the source's rules for option files, passwords and TLS.

use super::error::{ANSWER_TIMEOUT, MysqlError};
use super::protocol::{Column, Fault, Limits, Parameter, Row, Statement, Wire};
use super::session::Login;
use crate::error::SourceError;
use std::time::Instant;

/// One connection. Connecting has a time limit, statements have none, and neither has the size of an answer: this is for a
/// server that the caller chose for an experiment.
pub struct Client {
    name: String,
    wire: Wire,
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
        let connected = login.connect(Limits::EXPERIMENT, Instant::now() + ANSWER_TIMEOUT);
        let (mut wire, server) = connected.map_err(|fault| SourceError::of_server(&name, fault))?;
        wire.deadline = None;
        let process = server.process.map(|process| process.pid);
        Ok(Client { name, wire, is_mariadb: server.is_mariadb, process })
    }

    /// Runs statements that return no rows, one by one, up to the first error.
    ///
    /// # Errors
    /// The server's error.
    pub fn execute(&mut self, statements: &[&str]) -> Result<(), SourceError> {
        self.run(|wire| statements.iter().try_for_each(|statement| wire.execute(statement)))
    }

    /// The rows of a small answer with that many columns; NULL is an empty text.
    ///
    /// # Errors
    /// The server's error, or another number of columns.
    pub fn query(&mut self, sql: &str, columns: usize) -> Result<Vec<Vec<String>>, SourceError> {
        self.run(|wire| wire.query(sql, columns))
    }

    /// Hands over the rows of an answer one by one.
    ///
    /// # Errors
    /// The server's error.
    pub fn for_each_row(&mut self, sql: &str, each: impl FnMut(&[Column], Row)) -> Result<(), SourceError> {
        self.run(|wire| wire.for_each_row(sql, each))
    }

    /// Chooses the database of names without one.
    ///
    /// # Errors
    /// The server's error.
    pub fn use_database(&mut self, database: &str) -> Result<(), SourceError> {
        self.run(|wire| wire.use_database(database))
    }

    /// Prepares a statement; it is not run.
    ///
    /// # Errors
    /// The server's error.
    pub fn prepare(&mut self, sql: &str) -> Result<Statement, SourceError> {
        self.run(|wire| wire.prepare(sql))
    }

    /// Runs a statement that returns no rows.
    ///
    /// # Errors
    /// The server's error.
    pub fn execute_prepared(
        &mut self,
        statement: &Statement,
        parameters: &[Parameter],
    ) -> Result<(), SourceError> {
        self.run(|wire| wire.execute_prepared(statement, parameters))
    }

    /// Frees a statement.
    ///
    /// # Errors
    /// The connection is lost.
    pub fn close(&mut self, statement: Statement) -> Result<(), SourceError> {
        self.run(|wire| wire.close(statement))
    }

    fn run<T>(&mut self, work: impl FnOnce(&mut Wire) -> Result<T, Fault>) -> Result<T, SourceError> {
        work(&mut self.wire).map_err(|fault| SourceError::of_server(&self.name, MysqlError::from(fault)))
    }
}
