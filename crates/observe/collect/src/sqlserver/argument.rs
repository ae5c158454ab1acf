//! `sqlserver:[CONNECTION]`, `sqlserver://...`, and the same with `mssql:`.

use super::SqlServer;
use super::address::OPTIONS;
use crate::redaction::{NOT_SHOWN, password_is_exposed, printable};
use crate::source::{ArgumentError, Discovery, SourceArgument, SourceKind};

/// A SQL Server, or a database of Azure.
pub static KIND: SourceKind = SourceKind {
    schemes: &["sqlserver", "mssql"],
    help: "sqlserver:[CONNECTION]",
    forms: "sqlserver:CONNECTION",
    // A login needs a name.
    discovery: Discovery::WhereSet(&["SQLCMDSERVER", "SQLCMDUSER"]),
    parse,
    find: super::discover::find,
};

fn parse(text: &str) -> Result<SourceArgument, ArgumentError> {
    let shown = printable(text, &OPTIONS);
    let exposed_password = shown
        .is_none()
        .then(|| password_is_exposed("give sqlserver://USER@HOST:PORT, and the password in SQLCMDPASSWORD"));
    let (shown, connection) = (format!("sqlserver:{}", shown.unwrap_or(NOT_SHOWN)), text.to_owned());
    Ok(SourceArgument {
        exposed_password,
        ..SourceArgument::new(shown, move |_, _| SqlServer::open(&connection))
    })
}
