//! `postgres:[CONNECTION]`, `postgres://...`, and the same with `postgresql:`.

use super::Postgres;
use super::settings::Settings;
use crate::redaction::password_is_exposed;
use crate::source::{ArgumentError, Discovery, SourceArgument, SourceKind, SqlTarget};

/// A PostgreSQL server.
pub static KIND: SourceKind = SourceKind {
    schemes: &["postgres", "postgresql"],
    help: "postgres:[CONNECTION]",
    forms: "postgres:CONNECTION",
    discovery: Discovery::Always,
    parse,
    find: super::discover::find,
};

/// A URL, or name=value pairs.
fn parse(text: &str) -> Result<SourceArgument, ArgumentError> {
    let connection = if text.starts_with("//") { format!("postgresql:{text}") } else { text.into() };
    let exposed_password = match Settings::parse(&connection) {
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
    };
    let shown = format!("postgres:{}", super::connection::redacted(&connection));
    Ok(SourceArgument {
        exposed_password,
        sql_target: Some(SqlTarget::Postgres(connection.clone())),
        ..SourceArgument::new(shown, move |_, names| Ok(Postgres::open(&connection)?.publishing_names(names)))
    })
}
