//! `mysql:[CONNECTION]`, `mysql://...`, and the same with `mariadb:`.

use super::Mysql;
use super::address::OPTIONS;
use crate::redaction::{NOT_SHOWN, password_is_exposed, printable};
use crate::source::{ArgumentError, Discovery, SourceArgument, SourceKind, SqlTarget};

/// A MySQL or MariaDB server.
pub static KIND: SourceKind = SourceKind {
    schemes: &["mysql", "mariadb"],
    help: "mysql:[CONNECTION]",
    forms: "mysql:CONNECTION",
    discovery: Discovery::Always,
    parse,
    find: super::discover::find,
};

fn parse(text: &str) -> Result<SourceArgument, ArgumentError> {
    let shown = printable(text, &OPTIONS);
    let exposed_password = shown.is_none().then(|| {
        password_is_exposed(
            "give mysql://USER@HOST:PORT, mysql://USER@/PATH/OF/SOCKET, or mysql: for what ~/.my.cnf says, and the \
             password in ~/.my.cnf with mode 0600 or in MYSQL_PWD",
        )
    });
    let (shown, connection) = (format!("mysql:{}", shown.unwrap_or(NOT_SHOWN)), text.to_owned());
    Ok(SourceArgument {
        exposed_password,
        sql_target: Some(SqlTarget::Mysql(connection.clone())),
        ..SourceArgument::new(shown, move |_, _| Mysql::open(&connection))
    })
}
