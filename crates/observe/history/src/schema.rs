//! Checks that the tables and views of a file are those that Headroom makes: a view in the place of a table, or another view of that
//! name, could take for ever or return whatever its author likes.

use crate::statements::rows;
use rusqlite::{Connection, Row};
use std::collections::BTreeMap;

/// A table or view, as far as it is compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Definition {
    /// The names of its columns. Its text may differ: SQLite rewrites it when a table is altered.
    Table(Vec<String>),
    /// Its text without comments and line breaks.
    View(String),
    /// A virtual table, or one with generated columns.
    Unusual,
}

/// Tables and views by name.
pub(crate) type Schema = BTreeMap<String, Definition>;

/// Tables, views and indexes of a file that are looked at. Headroom makes 50; users may add their own.
const OBJECTS_MAX: i64 = 1_000;
/// The first difference of a file's tables and views from the expected ones; `None` without any.
pub(crate) fn find_foreign(connection: &Connection, expected: &Schema) -> rusqlite::Result<Option<String>> {
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

/// The schema that these migrations make.
pub(crate) fn made_by(migrations: &[&str]) -> rusqlite::Result<Schema> {
    let connection = Connection::open_in_memory()?;
    for step in migrations {
        connection.execute_batch(step)?;
    }
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
