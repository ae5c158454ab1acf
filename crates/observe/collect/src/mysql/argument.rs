//! `mysql:[CONNECTION]`, `mysql://...`, and the same with `mariadb:`.

use super::Mysql;
use super::address::OPTIONS;
use crate::error::SourceError;
use crate::file_names::FileNames;
use crate::redaction::{NOT_SHOWN, password_is_exposed, printable};
use crate::source::{ArgumentError, Discovery, Source, SourceArgument, SourceKind, SqlTarget};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// A MySQL or MariaDB server.
pub static KIND: SourceKind = SourceKind {
    schemes: &["mysql", "mariadb"],
    help: "mysql:[CONNECTION]",
    forms: "mysql:CONNECTION",
    discovery: Discovery::Always,
    parse,
};

struct MysqlArgument {
    connection: String,
}

fn parse(text: &str) -> Result<Arc<dyn SourceArgument>, ArgumentError> {
    let connection = if text.starts_with("//") { format!("mysql:{text}") } else { text.into() };
    Ok(Arc::new(MysqlArgument { connection }))
}

impl SourceArgument for MysqlArgument {
    fn open(&self, _: &[PathBuf], _: &FileNames) -> Result<Box<dyn Source + Send>, SourceError> {
        Ok(Box::new(Mysql::open(&self.connection)?))
    }

    fn exposed_password(&self) -> Option<String> {
        printable(&self.connection, "mysql", &OPTIONS).is_none().then(|| {
            password_is_exposed(
                "give mysql://USER@HOST:PORT, mysql://USER@/PATH/OF/SOCKET, or mysql: for what ~/.my.cnf says, and the \
                 password in ~/.my.cnf with mode 0600 or in MYSQL_PWD",
            )
        })
    }

    fn sql_target(&self) -> Option<SqlTarget<'_>> {
        Some(SqlTarget::Mysql(&self.connection))
    }
}

impl fmt::Display for MysqlArgument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "mysql:{}", printable(&self.connection, "mysql", &OPTIONS).unwrap_or(NOT_SHOWN))
    }
}
