//! `postgres:[CONNECTION]`, `postgres://...`, and the same with `postgresql:`.

use super::Postgres;
use super::settings::Settings;
use crate::error::SourceError;
use crate::file_names::FileNames;
use crate::redaction::password_is_exposed;
use crate::source::{ArgumentError, Discovery, Source, SourceArgument, SourceKind, SqlTarget};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// A PostgreSQL server.
pub static KIND: SourceKind = SourceKind {
    schemes: &["postgres", "postgresql"],
    help: "postgres:[CONNECTION]",
    forms: "postgres:CONNECTION",
    discovery: Discovery::Always,
    parse,
};

/// A URL, or name=value pairs.
struct PostgresArgument {
    connection: String,
}

fn parse(text: &str) -> Result<Arc<dyn SourceArgument>, ArgumentError> {
    let connection = if text.starts_with("//") { format!("postgresql:{text}") } else { text.into() };
    Ok(Arc::new(PostgresArgument { connection }))
}

impl SourceArgument for PostgresArgument {
    fn open(&self, _: &[PathBuf], names: &FileNames) -> Result<Box<dyn Source + Send>, SourceError> {
        Ok(Box::new(Postgres::open(&self.connection)?.publishing_names(names)))
    }

    fn exposed_password(&self) -> Option<String> {
        match Settings::parse(&self.connection) {
            Err(why) => Some(format!(
                "the connection string cannot be read: {why}; give postgres://USER@HOST:PORT/DATABASE or host=... \
                 user=... dbname=..."
            )),
            Ok(settings) => settings.may_hold_secrets().then(|| {
                password_is_exposed(
                    "give it in PGPASSWORD, in ~/.pgpass with mode 0600, or the source in a file with mode 0600 (record \
                     --sources)",
                )
            }),
        }
    }

    fn sql_target(&self) -> Option<SqlTarget<'_>> {
        Some(SqlTarget::Postgres(&self.connection))
    }
}

impl fmt::Display for PostgresArgument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "postgres:{}", super::connection::redacted(&self.connection))
    }
}
