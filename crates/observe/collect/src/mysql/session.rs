//! One connection: made once, given up at the first failure.

use super::address::{Address, Tls};
use super::bounded::Canceller;
use super::error::{ANSWER_TIMEOUT, MysqlError};
use super::option_file::{ClientOptions, Secret};
use super::server::{self, Place, Server};
use crate::environment;
use mysql::prelude::Queryable;
use mysql::{Conn, DriverError, Error, OptsBuilder, Row, SslOpts, Value};
use std::collections::BTreeMap;
use std::error::Error as _;
use std::io;
use std::path::Path;
use std::time::Duration;

/// Of one read. Shorter than [`ANSWER_TIMEOUT`], so that the thread of a server that hangs ends before it is abandoned.
const READ_TIMEOUT: Duration = Duration::from_millis(4500);
/// Rows of one answer that are kept.
pub(super) const ROWS_MAX: usize = 100_000;
/// Bytes of one answer: 100,000 files take a third of it.
const ANSWER_BYTES_MAX: usize = 64 << 20;
const PORT: u16 = 3306;
const SOCKETS: [&str; 3] = ["/run/mysqld/mysqld.sock", "/var/lib/mysql/mysql.sock", "/tmp/mysql.sock"];

/// Errors of the server that are handled apart (mysqld_error.h).
const LOGIN_REFUSED: [u16; 5] = [1044, 1045, 1129, 1130, 1698];
const TABLE_DENIED: [u16; 3] = [1142, 1143, 1227];
/// Shutting down, killed, idle for too long.
const CONNECTION_ENDED: [u16; 3] = [1053, 1927, 4031];
const STATEMENT_TOO_LONG: [u16; 2] = [1969, 3024];

/// Where a server is and how to log in.
#[derive(Clone, Debug)]
pub(super) struct Login {
    place: Place,
    options: ClientOptions,
    tls: Tls,
}

/// A live connection and what is known of the server behind it.
pub(super) struct Session {
    conn: Conn,
    pub server: Server,
    /// The user in the form that GRANT takes: 'headroom'@'localhost'.
    pub user: String,
}

impl Login {
    /// Combines the connection text and the option files; the text has precedence.
    pub fn new(connection: &str) -> Result<Login, MysqlError> {
        let address = Address::parse(connection).map_err(MysqlError::BadConnection)?;
        let mut options = ClientOptions::read(&address)?;
        if let Some(user) = &address.user {
            options.user = Some(user.clone());
        }
        if options.user.is_none() {
            options.user = std::env::var("USER").ok().filter(|user| !user.is_empty());
        }
        if options.password.is_none() {
            options.password = environment::of_process("MYSQL_PWD").map(Secret);
        }
        Ok(Login { place: place(&address, &options), options, tls: address.tls })
    }

    /// "mysql HOST:PORT" or "mysql /PATH/OF/SOCKET".
    pub fn name(&self) -> String {
        match &self.place {
            Place::Socket(path) => format!("mysql {}", path.display()),
            Place::Tcp { host, port } => format!("mysql {host}:{port}"),
        }
    }

    /// Warnings about the option files.
    pub fn notes(&self) -> &[String] {
        &self.options.notes
    }

    /// A connection without a limit on the time of statements, and its server.
    pub fn connect_without_timeout(&self) -> Result<(Conn, Server), MysqlError> {
        let mut conn = Conn::new(self.builder().read_timeout(None).write_timeout(None))?;
        let server = self.identify(&mut conn)?;
        Ok((conn, server))
    }

    fn identify(&self, conn: &mut Conn) -> Result<Server, Error> {
        let lowercase = |row: Vec<String>| {
            <[String; 2]>::try_from(row).ok().map(|[name, value]| (name.to_ascii_lowercase(), value))
        };
        let variables: BTreeMap<_, _> =
            rows(conn, server::VARIABLES, 2)?.into_iter().filter_map(lowercase).collect();
        Ok(Server::new(&variables, &self.place))
    }

    fn builder(&self) -> OptsBuilder {
        let builder = OptsBuilder::new()
            .user(self.options.user.clone())
            .pass(self.options.password.clone().map(|password| password.0))
            // The client library would change to a socket that the server names.
            .prefer_socket(false)
            .tcp_connect_timeout(Some(READ_TIMEOUT))
            .read_timeout(Some(READ_TIMEOUT))
            .write_timeout(Some(READ_TIMEOUT))
            .stmt_cache_size(0);
        let builder = match &self.place {
            Place::Socket(path) => builder.socket(Some(path.to_string_lossy())),
            Place::Tcp { host, port } => builder.ip_or_hostname(Some(host.clone())).tcp_port(*port),
        };
        builder.ssl_opts(match &self.tls {
            Tls::Disabled => None,
            Tls::Required => {
                let any = SslOpts::default().with_danger_accept_invalid_certs(true);
                Some(any.with_danger_skip_domain_validation(true))
            }
            Tls::VerifyCa(authority) => {
                let of_authority = SslOpts::default().with_root_cert_path(Some(authority.clone()));
                Some(of_authority.with_danger_skip_domain_validation(true))
            }
            Tls::VerifyIdentity(authority) => Some(SslOpts::default().with_root_cert_path(authority.clone())),
        })
    }
}

/// As the MySQL clients choose: the socket if one is named, or if the host is this one and no port is named.
fn place(address: &Address, options: &ClientOptions) -> Place {
    let host = address.host.as_ref().or(options.host.as_ref());
    let port = address.port.or(options.port);
    let socket = || {
        let usual =
            || SOCKETS.iter().map(Path::new).find(|path| path.exists()).unwrap_or(Path::new(SOCKETS[0]));
        options.socket.clone().unwrap_or_else(|| usual().into())
    };
    match (&address.socket, host) {
        (Some(socket), _) => Place::Socket(socket.clone()),
        (None, None) => Place::Socket(socket()),
        (None, Some(host)) if host == "localhost" && address.port.is_none() => Place::Socket(socket()),
        (None, Some(host)) => Place::Tcp { host: host.clone(), port: port.unwrap_or(PORT) },
    }
}

impl Session {
    /// Connects and finds out what server it is.
    pub fn open(login: &Login, canceller: &Canceller) -> Result<Session, MysqlError> {
        let mut conn = Conn::new(login.builder())?;
        canceller.watch(&conn);
        let server = login.identify(&mut conn)?;
        let user = rows(&mut conn, "SELECT CURRENT_USER()", 1)?;
        let user = user.first().map_or_else(String::new, |row| quoted(&row[0]));
        // The server ends a statement that hangs, too.
        let seconds = ANSWER_TIMEOUT.as_secs() - 1;
        let limit = match server.is_mariadb {
            true => format!("SET SESSION max_statement_time = {seconds}"),
            false => format!("SET SESSION max_execution_time = {}", seconds * 1000),
        };
        match conn.query_drop(limit) {
            Ok(()) | Err(Error::MySqlError(_)) => Ok(Session { conn, server, user }),
            Err(error) => Err(error.into()),
        }
    }

    /// Lets this canceller end what follows.
    pub fn use_canceller(&self, canceller: &Canceller) {
        canceller.watch(&self.conn);
    }

    /// Runs a query with `columns` columns, as texts; NULL is an empty text. `None` if the user lacks the privilege.
    pub fn query(&mut self, sql: &str, columns: usize) -> Result<Option<Vec<Vec<String>>>, MysqlError> {
        match rows(&mut self.conn, sql, columns) {
            Ok(rows) => Ok(Some(rows)),
            Err(Error::MySqlError(error)) if TABLE_DENIED.contains(&error.code) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether the connection failed, not the query: a new connection may work.
    pub fn is_lost(error: &MysqlError) -> bool {
        matches!(error, MysqlError::Unreachable(_))
    }
}

fn rows(conn: &mut Conn, sql: &str, columns: usize) -> Result<Vec<Vec<String>>, Error> {
    let (mut kept, mut bytes) = (Vec::new(), 0);
    for row in conn.query_iter(sql)? {
        let row = row?;
        if kept.len() < ROWS_MAX {
            let row: Vec<String> = (0..columns).map(|column| text(&row, column)).collect();
            bytes += row.iter().map(|text| size_of::<String>() + text.len()).sum::<usize>();
            if bytes > ANSWER_BYTES_MAX {
                let too_long = io::Error::new(io::ErrorKind::InvalidData, "its answer is longer than 64 MiB");
                return Err(Error::IoError(too_long));
            }
            kept.push(row);
        }
    }
    Ok(kept)
}

/// 'headroom'@'localhost' of headroom@localhost.
fn quoted(user: &str) -> String {
    let (name, host) = user.rsplit_once('@').unwrap_or((user, "%"));
    format!("'{}'@'{}'", name.replace('\'', "''"), host.replace('\'', "''"))
}

fn text(row: &Row, column: usize) -> String {
    match row.as_ref(column) {
        Some(Value::Bytes(bytes)) => String::from_utf8_lossy(bytes).into_owned(),
        Some(Value::Int(number)) => number.to_string(),
        Some(Value::UInt(number)) => number.to_string(),
        _ => String::new(),
    }
}

impl From<Error> for MysqlError {
    fn from(error: Error) -> MysqlError {
        let from_system = |kind: io::ErrorKind, why: String| match kind {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => MysqlError::TimedOut,
            // The TLS library reports a certificate that it does not accept so.
            io::ErrorKind::InvalidData => MysqlError::Failed(why),
            _ => MysqlError::Unreachable(why),
        };
        match error {
            Error::MySqlError(server) => match server.code {
                code if LOGIN_REFUSED.contains(&code) => MysqlError::Refused(server.message),
                code if STATEMENT_TOO_LONG.contains(&code) => MysqlError::TimedOut,
                code if CONNECTION_ENDED.contains(&code) => MysqlError::Unreachable(server.message),
                _ => MysqlError::Failed(server.message),
            },
            Error::IoError(error) => from_system(error.kind(), error.to_string()),
            Error::CodecError(error) => {
                match error.source().and_then(|source| source.downcast_ref::<io::Error>()) {
                    Some(error) => from_system(error.kind(), error.to_string()),
                    None => MysqlError::Failed(format!("it does not speak MySQL's protocol: {error}")),
                }
            }
            Error::DriverError(DriverError::ConnectTimeout) => MysqlError::TimedOut,
            Error::DriverError(DriverError::CouldNotConnect(Some((_, why, kind)))) => from_system(kind, why),
            Error::DriverError(DriverError::UnknownAuthPlugin(plugin)) => MysqlError::Refused(format!(
                "it wants the authentication plugin {plugin}, which Headroom does not have"
            )),
            Error::DriverError(error) => MysqlError::Failed(error.to_string()),
            Error::TlsError(error) => MysqlError::Failed(error.to_string()),
            Error::UrlError(_) | Error::FromValueError(_) | Error::FromRowError(_) => {
                MysqlError::Failed("it answers in a form that is not understood".into())
            }
        }
    }
}
