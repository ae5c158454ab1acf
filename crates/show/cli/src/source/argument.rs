//! `--source` as an argument: everybody on the machine can read it in the list of processes, so that it takes no password,
//! and what is refused is not repeated.

use super::SourceName;
use clap::error::{ContextKind, ContextValue};

/// Reads it; refuses a text that holds a password, or may hold one because it cannot be read.
pub fn source(text: &str) -> Result<SourceName, String> {
    let name: SourceName = text.parse()?;
    if !name.has_password() {
        return Ok(name);
    }
    let instead = match &name {
        SourceName::Postgres(connection) => {
            if let Some(why) = collect::postgres::unreadable(connection) {
                return Err(format!(
                    "the connection string cannot be read: {why}; give postgres://USER@HOST:PORT/DATABASE or host=... \
                     user=... dbname=..."
                ));
            }
            "give it in PGPASSWORD, in ~/.pgpass with mode 0600, or the source in a file with mode 0600 (record --sources)"
        }
        SourceName::Mysql(_) => {
            "give mysql://USER@HOST:PORT, mysql://USER@/PATH/OF/SOCKET, or mysql: for what ~/.my.cnf says, and the password in \
             ~/.my.cnf with mode 0600 or in MYSQL_PWD"
        }
        _ => "give sqlserver://USER@HOST:PORT, and the password in SQLCMDPASSWORD",
    };
    Err(format!(
        "it holds a password, or what may be one, and everybody on this machine can read arguments; {instead}"
    ))
}

/// What clap says of wrong arguments, without the text of a `--source`: it may hold a password, whatever is wrong with it.
pub fn without_passwords(mut error: clap::Error) -> clap::Error {
    let is_source = matches!(error.get(ContextKind::InvalidArg),
        Some(ContextValue::String(name)) if name.starts_with("--source "));
    let kind = match error.get(ContextKind::InvalidValue) {
        Some(ContextValue::String(text)) if is_source => {
            text.split_once(':').map_or("...".into(), |(kind, _)| format!("{kind}:..."))
        }
        _ => return error,
    };
    error.insert(ContextKind::InvalidValue, ContextValue::String(kind));
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_refused_with_the_place_where_it_belongs() {
        for (text, place) in [
            ("postgres://ann:hunter2@db/shop", "PGPASSWORD"),
            ("postgres:host=db password=hunter2", "~/.pgpass"),
            ("postgres:host=db hunter2", "has no '='"),
            ("mysql://ann:hunter2@db/", "~/.my.cnf"),
            ("mysql:host=db password = hunter2", "MYSQL_PWD"),
            ("mysql:socket=/run/m.sock user=ann hunter2", "MYSQL_PWD"),
            ("mysql:socket=/run/m.sock password=hunter2", "MYSQL_PWD"),
            ("sqlserver://ann:hunter2@db/", "SQLCMDPASSWORD"),
        ] {
            let why = source(text).unwrap_err();
            assert!(why.contains(place) && !why.contains("hunter2"), "{text}: {why}");
        }
        for fine in [
            "process:",
            "postgres:host=db user=ann",
            "mysql:",
            "mysql:socket=/run/m.sock user=ann",
            "sqlserver://ann@db/",
            "sqlite:/shop.db",
        ] {
            assert!(source(fine).is_ok(), "{fine}");
        }
    }
}
