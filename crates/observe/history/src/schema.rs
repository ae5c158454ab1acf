//! Makes the tables and views of a history, and checks that those of a file are the same: a view in the place of a table, or another
//! view of that name, could take for ever or return whatever its author likes.

use crate::Error;
use crate::file_state::APPLICATION_ID;
use crate::statements::rows;
use rusqlite::{Connection, Row, TransactionBehavior};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::OnceLock;

/// The statements that make the tables and views.
const SCHEMA: &str = include_str!("schema.sql");
/// Its version, in `user_version` of the header; 0 in a new file.
pub(crate) const VERSION: i64 = 1;
/// Tables and views that [`SCHEMA`] makes.
static EXPECTED: OnceLock<Schema> = OnceLock::new();

/// Makes the tables of a new file.
///
/// The file gets its application id and its tables in one transaction of a rollback journal, before it is switched to WAL: so its
/// header is complete as soon as the file is not empty, whenever a kill comes.
pub(crate) fn make_tables(connection: &mut Connection) -> rusqlite::Result<()> {
    if version(connection)? != 0 {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another process may have been faster.
    if version(&transaction)? != 0 {
        return Ok(());
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.execute_batch(SCHEMA)?;
    transaction.pragma_update(None, "user_version", VERSION)?;
    transaction.commit()
}

/// Refuses a file of another version, or whose tables and views are not those of this one.
pub(crate) fn check_schema(connection: &Connection, path: &Path) -> Result<(), Error> {
    let failed = |source| Error::sqlite("read the tables' names", path, source);
    match version(connection).map_err(failed)? {
        VERSION => match find_foreign(connection).map_err(failed)? {
            Some(why) => Err(Error::ForeignSchema { path: path.into(), why }),
            None => Ok(()),
        },
        found => Err(Error::NewerSchema { path: path.into(), found, known: VERSION }),
    }
}

fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// A table or view, as far as it is compared.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Definition {
    /// The names of its columns. Its text may differ: SQLite rewrites it when a table is altered.
    Table(Vec<String>),
    /// Its text without comments and line breaks.
    View(String),
    /// A virtual table, or one with generated columns.
    Unusual,
}

/// Tables and views by name.
type Schema = BTreeMap<String, Definition>;

/// Tables, views and indexes of a file that are looked at. Headroom makes 50; users may add their own.
const OBJECTS_MAX: i64 = 1_000;

/// The first difference of a file's tables and views from the expected ones; `None` without any.
fn find_foreign(connection: &Connection) -> rusqlite::Result<Option<String>> {
    let expected = match EXPECTED.get() {
        Some(expected) => expected,
        // Another thread may be faster: both make the same.
        None => {
            let made = made_tables()?;
            EXPECTED.get_or_init(|| made)
        }
    };
    let objects: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if objects > OBJECTS_MAX {
        return Ok(Some(format!("it has {objects} tables, views and indexes, more than {OBJECTS_MAX}")));
    }
    let found = schema(connection)?;
    Ok(expected.iter().find_map(|(name, definition)| match found.get(name) {
        Some(same) if same == definition => None,
        Some(_) => Some(format!("its {name} is not the table or view that Headroom makes")),
        None => Some(format!("it has no table or view {name}")),
    }))
}

fn made_tables() -> rusqlite::Result<Schema> {
    let connection = Connection::open_in_memory()?;
    connection.execute_batch(SCHEMA)?;
    schema(&connection)
}

fn schema(connection: &Connection) -> rusqlite::Result<Schema> {
    let query = "SELECT name, type, sql FROM sqlite_schema WHERE type IN ('table', 'view') \
         AND name NOT LIKE 'sqlite!_%' ESCAPE '!'";
    let text =
        |row: &Row<'_>| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?, row.get::<_, String>(2)?));
    let mut schema = Schema::new();
    for (name, kind, sql) in rows(connection, query, [], text)? {
        let sql = normalized(&sql);
        let definition = if kind == "view" {
            Definition::View(sql)
        } else if sql.to_lowercase().starts_with("create virtual") {
            // Its columns are those that its module says.
            Definition::Unusual
        } else {
            columns(connection, &name)?
        };
        schema.insert(name, definition);
    }
    Ok(schema)
}

fn columns(connection: &Connection, table: &str) -> rusqlite::Result<Definition> {
    let query = "SELECT name, hidden FROM pragma_table_xinfo(?)";
    let columns = rows(connection, query, [table], |row| Ok((row.get(0)?, row.get::<_, i64>(1)?)))?;
    Ok(match columns.iter().all(|(_, hidden)| *hidden == 0) {
        true => Definition::Table(columns.into_iter().map(|(name, _)| name).collect()),
        false => Definition::Unusual,
    })
}

/// A statement without its comments, with one space between words, so that a comment may be worded better.
fn normalized(sql: &str) -> String {
    let without_comments = sql.lines().map(|line| line.split("--").next().unwrap_or_default());
    without_comments.flat_map(str::split_whitespace).collect::<Vec<_>>().join(" ")
}
