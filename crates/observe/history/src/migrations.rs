//! The versions of the schema: the script of each, and whether a file has it.

use crate::file_state::APPLICATION_ID;
use crate::schema::Schema;
use crate::{Error, schema};
use rusqlite::{Connection, TransactionBehavior};
use std::path::Path;
use std::sync::OnceLock;

/// The steps from one schema version to the next; a file's `user_version` counts the steps it has had.
pub(crate) const MIGRATIONS: &[&str] = &[
    include_str!("schema_1.sql"),
    include_str!("schema_2.sql"),
    include_str!("schema_3.sql"),
    include_str!("schema_4.sql"),
    include_str!("schema_5.sql"),
    include_str!("schema_6.sql"),
    include_str!("schema_7.sql"),
    include_str!("schema_8.sql"),
    include_str!("schema_9.sql"),
    include_str!("schema_10.sql"),
    include_str!("schema_11.sql"),
    include_str!("schema_12.sql"),
    include_str!("schema_13.sql"),
];

/// The schema that all migrations together make.
static NEWEST: OnceLock<Schema> = OnceLock::new();

/// Brings the schema up to date and returns the version the file then has; a newer file is left as it is.
///
/// A new file gets its application id and its tables in one transaction of a rollback journal, before it
/// is switched to WAL: so its header is complete as soon as the file is not empty, whenever a kill comes.
pub(crate) fn migrate(connection: &mut Connection, migrations: &[&str]) -> rusqlite::Result<i64> {
    let known = migrations.len() as i64;
    let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if version >= known {
        return Ok(version);
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another process may have been faster.
    let version: i64 = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if version >= known {
        return Ok(version);
    }
    if version == 0 {
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    }
    let done = usize::try_from(version).unwrap_or(0);
    for step in &migrations[done..] {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "user_version", known)?;
    transaction.commit()?;
    Ok(known)
}

/// Refuses a file whose tables and views are not those of its version. A new file has none, and a newer version is not known.
pub(crate) fn check_schema(connection: &Connection, path: &Path, migrations: &[&str]) -> Result<(), Error> {
    let find = || {
        let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
        match usize::try_from(version) {
            // A history that is up to date, as nearly all are.
            Ok(version) if version == MIGRATIONS.len() && std::ptr::eq(migrations, MIGRATIONS) => {
                if NEWEST.get().is_none() {
                    // Another thread may have been faster.
                    let _ = NEWEST.set(schema::made_by(MIGRATIONS)?);
                }
                NEWEST.get().map_or(Ok(None), |expected| schema::find_foreign(connection, expected))
            }
            Ok(version) if (1..=migrations.len()).contains(&version) => {
                schema::find_foreign(connection, &schema::made_by(&migrations[..version])?)
            }
            _ => Ok(None),
        }
    };
    match find().map_err(|source| Error::sqlite("read the tables' names", path, source))? {
        Some(why) => Err(Error::ForeignSchema { path: path.into(), why }),
        None => Ok(()),
    }
}
