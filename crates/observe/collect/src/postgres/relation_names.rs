//! The names of relations by the numbers of their files.

use super::answer::{Columns, Table};
use crate::file_names::{FileLookup, LookupResult};
use std::path::PathBuf;
use tokio_postgres::SimpleQueryRow;

const DATABASES: &str =
    "SELECT oid, datname AS name, datname = current_database() AS connected FROM pg_database";
const TABLESPACES: &str =
    "SELECT oid, pg_tablespace_location(oid) AS location FROM pg_tablespace WHERE spcname NOT LIKE 'pg\\_%'";

/// The name of a row of pg_class (`c`, with `n` of pg_namespace).
const NAME: &str = "CASE WHEN c.relkind = 't' THEN
          coalesce((SELECT o.oid::regclass::text FROM pg_class o WHERE o.reltoastrelid = c.oid LIMIT 1),
                   c.relname) || ' (toast)'
          ELSE quote_ident(n.nspname) || '.' || quote_ident(c.relname) END";

/// The statements of a lookup. Both parts of the last one use pg_class's index of tablespace and node; the second finds
/// mapped relations. No function in them waits for a lock that TRUNCATE holds.
pub(super) fn statements(lookup: &FileLookup) -> String {
    let list = |numbers: &[u32]| numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
    let nodes = list(&lookup.nodes);
    // 0 is the database's default tablespace, 1663 pg_default, 1664 pg_global.
    let tablespaces = list(&[&[0, 1663, 1664], lookup.tablespaces.as_slice()].concat());
    let relations = format!(
        "SELECT pg_relation_filepath(c.oid) AS path, {NAME} AS name FROM (
            SELECT oid FROM pg_class WHERE reltablespace = ANY ('{{{tablespaces}}}'::oid[])
               AND relfilenode = ANY ('{{{nodes}}}'::oid[])
            UNION ALL
            SELECT oid FROM pg_class WHERE reltablespace = ANY ('{{0,1664}}'::oid[]) AND relfilenode = 0
               AND relkind IN ('r', 'i', 't') AND pg_relation_filenode(oid) = ANY ('{{{nodes}}}'::oid[])) found
          JOIN pg_class c USING (oid) JOIN pg_namespace n ON n.oid = c.relnamespace",
    );
    [DATABASES, TABLESPACES, &relations].join(";\n")
}

/// Parses the answers to [`statements`].
pub(super) fn parse(tables: &[Table]) -> LookupResult {
    let rows = |at: usize| tables.get(at).map_or(&[][..], Vec::as_slice);
    let oid = |row: &SimpleQueryRow| u32::try_from(row.count("oid")?).ok();
    let database = |row| Some((oid(row)?, Columns::text(row, "name")?.to_owned()));
    let tablespace = |row| {
        let place = PathBuf::from(Columns::text(row, "location").filter(|place| !place.is_empty())?);
        // Only the server's user may be able to resolve links in it.
        Some((std::fs::canonicalize(&place).unwrap_or(place), oid(row)?))
    };
    let name = |row: &SimpleQueryRow| Some((row.text("path")?.to_owned(), row.text("name")?.to_owned()));
    LookupResult {
        databases: rows(0).iter().filter_map(database).collect(),
        connected: rows(0).iter().find(|row| row.flag("connected") == Some(true)).and_then(oid),
        tablespaces: rows(1).iter().filter_map(tablespace).collect(),
        names: rows(2).iter().filter_map(name).collect(),
    }
}
