//! Columns for values that SQLite has no type for: exact, and readable.

use filestats::Reason;
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSqlOutput, Value, ValueRef};
use rusqlite::{Row, RowIndex, ToSql};
use serde::{Serialize, de::DeserializeOwned};

/// An unsigned number in a column without a declared type: INTEGER where it fits, otherwise 20 digits of
/// TEXT. It is neither refused (the summed stall of a busy server exceeds 2^63 ns: 100 outstanding I/Os for three
/// years) nor rounded, and it sorts as a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Exact(pub u64);

/// An enum value (a file's kind, a reason) as its name in JSON, without the quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Word<T>(pub T);

/// Why a figure is unknown, in the tables of changes, which have many rows: its number in the table `reasons`. The views
/// have the word. Both are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Why(pub Reason);

/// In the order of their numbers in `reasons`, which never change. A new one is appended, and a migration adds it to the table.
/// `BelowResolution` is of latencies, which are computed and not kept.
const REASONS: [Reason; 13] = [
    Reason::NotCounted,
    Reason::TimingOff,
    Reason::FirstSight,
    Reason::Restart,
    Reason::StatsReset,
    Reason::Reopened,
    Reason::Lost,
    Reason::CounterFell,
    Reason::IdentityChanged,
    Reason::GapTooLong,
    Reason::NoOperations,
    Reason::Gone,
    Reason::NoTimePassed,
];

/// A value as JSON text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Json<T>(pub T);

/// The unsigned number in a column.
pub(crate) fn exact(row: &Row<'_>, column: impl RowIndex) -> rusqlite::Result<u64> {
    row.get(column).map(|Exact(value)| value)
}

impl ToSql for Exact {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Owned(self.value()))
    }
}

impl Exact {
    /// As a value of SQLite.
    pub fn value(self) -> Value {
        match i64::try_from(self.0) {
            Ok(number) => Value::Integer(number),
            Err(_) => Value::Text(format!("{:020}", self.0)),
        }
    }
}

impl FromSql for Exact {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        match value {
            ValueRef::Integer(number) => {
                u64::try_from(number).map(Exact).map_err(|_| FromSqlError::OutOfRange(number))
            }
            ValueRef::Text(_) => value.as_str()?.parse().map(Exact).map_err(FromSqlError::other),
            _ => Err(FromSqlError::InvalidType),
        }
    }
}

impl<T: Serialize> ToSql for Word<T> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        let fail = |source| rusqlite::Error::ToSqlConversionFailure(source);
        match serde_json::to_value(&self.0).map_err(|error| fail(error.into()))? {
            serde_json::Value::String(word) => Ok(ToSqlOutput::Owned(Value::Text(word))),
            other => Err(fail(format!("{other} is not a single word").into())),
        }
    }
}

impl<T: DeserializeOwned> FromSql for Word<T> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let word = serde_json::Value::String(value.as_str()?.into());
        serde_json::from_value(word).map(Word).map_err(FromSqlError::other)
    }
}

impl ToSql for Why {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Owned(self.value()))
    }
}

impl Why {
    /// As a value of SQLite: its number in `reasons`.
    pub fn value(self) -> Value {
        let found = REASONS.iter().position(|reason| *reason == self.0);
        Value::Integer(found.expect("every reason has a number in `reasons`") as i64)
    }
}

impl FromSql for Why {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        match value {
            ValueRef::Integer(number) => {
                let reason = usize::try_from(number).ok().and_then(|number| REASONS.get(number));
                reason.copied().map(Why).ok_or(FromSqlError::OutOfRange(number))
            }
            word => Word::column_result(word).map(|Word(reason)| Why(reason)),
        }
    }
}

impl<T: Serialize> ToSql for Json<T> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        let text = serde_json::to_string(&self.0);
        let text = text.map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
        Ok(ToSqlOutput::Owned(Value::Text(text)))
    }
}

impl<T: DeserializeOwned> FromSql for Json<T> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        serde_json::from_str(value.as_str()?).map(Json).map_err(FromSqlError::other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rusqlite::Connection;

    const EXTREMES: [u64; 6] =
        [0, 1, i64::MAX as u64, i64::MAX as u64 + 1, 10_000_000_000_000_000_000, u64::MAX];

    fn table_of_extremes() -> Connection {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute("CREATE TABLE t (v NOT NULL)", []).unwrap();
        for value in EXTREMES {
            connection.execute("INSERT INTO t VALUES (?)", [Exact(value)]).unwrap();
        }
        connection
    }

    #[test]
    fn every_u64_comes_back_as_itself_and_sorts_as_a_number() {
        let connection = table_of_extremes();
        let mut rows = connection.prepare("SELECT v FROM t ORDER BY v DESC").unwrap();
        let read: Vec<u64> =
            rows.query_map([], |row| row.get(0)).unwrap().map(|v| v.map(|Exact(v)| v).unwrap()).collect();
        let mut expected = EXTREMES;
        expected.reverse();
        assert_eq!(read, expected);
    }

    #[test]
    fn people_can_calculate_with_the_largest_ones() {
        let connection = table_of_extremes();
        let largest: f64 = connection.query_row("SELECT max(v) / 1.0 FROM t", [], |row| row.get(0)).unwrap();
        assert_eq!(largest, u64::MAX as f64);
    }

    #[test]
    fn the_table_of_reasons_has_each_under_its_number() {
        let dir = tempfile::tempdir().unwrap();
        let history = crate::History::open(&dir.path().join("history.db")).unwrap();
        let mut rows = history.connection.prepare("SELECT id, word FROM reasons ORDER BY id").unwrap();
        let pair = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
        let kept: Vec<(Why, Word<Reason>)> = rows.query_map([], pair).unwrap().map(Result::unwrap).collect();
        assert_eq!(kept.len(), REASONS.len());
        assert!(kept.iter().all(|(number, word)| number.0 == word.0), "{kept:?}");
    }

    #[test]
    fn what_is_no_unsigned_number_is_refused() {
        let connection = Connection::open_in_memory().unwrap();
        for wrong in ["-1", "1.5", "'x'", "NULL", "x'00'"] {
            let read = connection.query_row(&format!("SELECT {wrong}"), [], |row| row.get::<_, Exact>(0));
            assert!(read.is_err(), "{wrong}");
        }
    }
}
