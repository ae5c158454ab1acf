//! `sqlserver:[CONNECTION]`, `sqlserver://...`, and the same with `mssql:`.

use super::SqlServer;
use super::address::OPTIONS;
use crate::error::SourceError;
use crate::file_names::FileNames;
use crate::redaction::{NOT_SHOWN, password_is_exposed, printable};
use crate::source::{ArgumentError, Discovery, Source, SourceArgument, SourceKind};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// A SQL Server, or a database of Azure.
pub static KIND: SourceKind = SourceKind {
    schemes: &["sqlserver", "mssql"],
    help: "sqlserver:[CONNECTION]",
    forms: "sqlserver:CONNECTION",
    // A login needs a name.
    discovery: Discovery::WhereSet(&["SQLCMDSERVER", "SQLCMDUSER"]),
    parse,
};

struct SqlServerArgument {
    connection: String,
}

fn parse(text: &str) -> Result<Arc<dyn SourceArgument>, ArgumentError> {
    let connection = if text.starts_with("//") { format!("sqlserver:{text}") } else { text.into() };
    Ok(Arc::new(SqlServerArgument { connection }))
}

impl SourceArgument for SqlServerArgument {
    fn open(&self, _: &[PathBuf], _: &FileNames) -> Result<Box<dyn Source + Send>, SourceError> {
        Ok(Box::new(SqlServer::open(&self.connection)?))
    }

    fn exposed_password(&self) -> Option<String> {
        printable(&self.connection, "sqlserver", &OPTIONS).is_none().then(|| {
            password_is_exposed("give sqlserver://USER@HOST:PORT, and the password in SQLCMDPASSWORD")
        })
    }
}

impl fmt::Display for SqlServerArgument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sqlserver:{}", printable(&self.connection, "sqlserver", &OPTIONS).unwrap_or(NOT_SHOWN))
    }
}
