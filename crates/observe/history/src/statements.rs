//! Recurring forms of statements: all rows of a query, its first row, an insert, a transaction, a retry.

use crate::bounds::too_costly;
use crate::{Error, History};
use rusqlite::{
    Connection, ErrorCode, OptionalExtension, Params, Row, ToSql, Transaction, TransactionBehavior,
};
use std::time::{Duration, Instant};

/// Pause between two attempts.
const PAUSE: Duration = Duration::from_millis(5);

impl History {
    /// Executes statements. `doing` names the action in an error.
    pub(crate) fn execute<T>(
        &self,
        doing: &'static str,
        statements: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, Error> {
        self.budget.begin();
        statements(&self.connection).map_err(|source| Error::sqlite(doing, &self.path, source))
    }

    /// All rows of a query.
    pub(crate) fn rows<T>(
        &self,
        doing: &'static str,
        query: &str,
        parameters: impl Params,
        mut read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, Error> {
        let mut left = self.budget.rows_max();
        self.execute(doing, |connection| {
            rows(connection, query, parameters, |row| {
                left = left.checked_sub(1).ok_or_else(too_costly)?;
                read(row)
            })
        })
    }

    /// The first row of a query; `None` where it has none.
    pub(crate) fn first_row<T>(
        &self,
        doing: &'static str,
        query: &str,
        parameters: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>, Error> {
        self.execute(doing, |connection| first_row(connection, query, parameters, read))
    }

    /// Executes statements in one transaction: all of them or none. It locks out other writers from its begin, so that
    /// the values that the statements read are still true when they write.
    pub(crate) fn transact<T>(
        &mut self,
        doing: &'static str,
        statements: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, Error> {
        self.budget.begin();
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate);
        let done = transaction.and_then(|transaction| {
            let value = statements(&transaction)?;
            transaction.commit()?;
            Ok(value)
        });
        done.map_err(|source| Error::sqlite(doing, &self.path, source))
    }
}

/// All rows of a query.
pub(crate) fn rows<T>(
    connection: &Connection,
    query: &str,
    parameters: impl Params,
    read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Vec<T>> {
    connection.prepare_cached(query)?.query_map(parameters, read)?.collect()
}

/// The first row of a query; `None` where it has none.
pub(crate) fn first_row<T>(
    connection: &Connection,
    query: &str,
    parameters: impl Params,
    read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Option<T>> {
    connection.prepare_cached(query)?.query_row(parameters, read).optional()
}

/// Adds a row with these values, each under the name of its column. Returns the number of the row.
pub(crate) fn insert(
    connection: &Connection,
    table: &str,
    values: &[(&str, &dyn ToSql)],
) -> rusqlite::Result<i64> {
    let columns: Vec<&str> = values.iter().map(|(column, _)| *column).collect();
    let places = vec!["?"; values.len()].join(", ");
    let statement = format!("INSERT INTO {table} ({}) VALUES ({places})", columns.join(", "));
    let values = rusqlite::params_from_iter(values.iter().map(|(_, value)| value));
    connection.prepare_cached(&statement)?.insert(values)
}

/// Tries again while SQLite fails with that code, for a limited time.
pub(crate) fn retry_while<T>(
    code: ErrorCode,
    limit: Duration,
    attempt: impl Fn() -> rusqlite::Result<T>,
) -> rusqlite::Result<T> {
    let started = Instant::now();
    loop {
        match attempt() {
            Err(error) if error.sqlite_error_code() == Some(code) && started.elapsed() < limit => {
                std::thread::sleep(PAUSE);
            }
            done => return done,
        }
    }
}
