//! One connection: made once, given up at the first failure.

#[cfg(fuzzing)]
mod fuzzing;

use super::address::{Address, Tls};
use super::error::{ANSWER_TIMEOUT, MysqlError};
use super::option_file::{ClientOptions, Secret};
use super::protocol::{self, Credentials, Fault, Limits, Protection, Wire};
use super::server::{self, Place, Server};
use crate::tls::{self, Authorities, Names, Trust};
use crate::{dial, environment};
use rustls::ClientConnection;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

#[cfg(fuzzing)]
pub use fuzzing::read_answers;

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
    accepts_server_key: bool,
    /// The user that must run the server that listens on a socket.
    required_peer: Option<u32>,
}

/// A live connection and the known facts of its server.
pub(super) struct Session {
    wire: Wire,
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
            options.user = environment::of_variable("USER").or_else(environment::user_name);
        }
        if options.password.is_none() {
            options.password = environment::of_process("MYSQL_PWD").map(Secret);
        }
        let required_peer = address.required_peer.as_deref().map(|name| {
            let unknown = || MysqlError::BadConnection("require-peer names no user of this host".into());
            environment::user_id(name).ok_or_else(unknown)
        });
        let required_peer = required_peer.transpose()?;
        let place = place(&address, &options);
        let accepts_server_key = address.accepts_server_key;
        Ok(Login { place, options, tls: address.tls, accepts_server_key, required_peer })
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

    /// The user; empty if none is known.
    fn user(&self) -> &str {
        self.options.user.as_deref().unwrap_or_default()
    }

    /// A connection that is logged in, and its server. The next statements have the same deadline.
    pub fn connect(&self, limits: Limits, deadline: Instant) -> Result<(Wire, Server), MysqlError> {
        let (mut wire, tls) = match &self.place {
            Place::Socket(path) => {
                let socket = dial::unix(path, deadline)?;
                if let Some(user) = self.required_peer {
                    dial::require_peer(&socket, user)?;
                }
                (Wire::over_unix_socket(socket, deadline), None)
            }
            Place::Tcp { host, port } => {
                let tls = tls_client(&self.tls, host).map_err(Fault::Encryption)?;
                (Wire::over_tcp(dial::tcp(host, *port, deadline)?, deadline), tls)
            }
        };
        let password = self.options.password.as_ref().map_or("", |password| password.0.as_str());
        let protection = Protection {
            requires_tls: tls.is_some() && self.tls != Tls::Preferred,
            tls,
            accepts_server_key: self.accepts_server_key,
        };
        let credentials = Credentials { user: self.user(), password };
        protocol::log_in(&mut wire, protection, &credentials, limits).map_err(|fault| match fault {
            // Such as TLS 1.1 of an old server, for an encryption that was not requested.
            Fault::Tls(error) if self.tls == Tls::Preferred => {
                let why = tls::describe_error(&error);
                Fault::Encryption(format!("{why}; ssl-mode=disabled connects without encryption"))
            }
            fault => fault,
        })?;
        let server = self.identify(&mut wire)?;
        Ok((wire, server))
    }

    fn identify(&self, wire: &mut Wire) -> Result<Server, MysqlError> {
        let lowercase = |row: Vec<String>| {
            <[String; 2]>::try_from(row).ok().map(|[name, value]| (name.to_ascii_lowercase(), value))
        };
        let variables: BTreeMap<_, _> =
            wire.query(server::VARIABLES, 2)?.into_iter().filter_map(lowercase).collect();
        Ok(Server::new(&variables, &self.place))
    }
}

/// The TLS client; `None` where nothing is encrypted. The error is a text for people.
fn tls_client(wanted: &Tls, host: &str) -> Result<Option<ClientConnection>, String> {
    let trust = match wanted {
        Tls::Disabled => return Ok(None),
        Tls::Preferred | Tls::Required => Trust::Any,
        Tls::VerifyCa(file) => Trust::Signed(Authorities::from_file(file)?, Names::Ignored),
        Tls::VerifyIdentity(Some(file)) => Trust::Signed(Authorities::from_file(file)?, Names::Checked),
        Tls::VerifyIdentity(None) => Trust::Signed(Authorities::public(), Names::Checked),
    };
    let config = Arc::new(tls::config(trust, rustls::ALL_VERSIONS, None)?);
    let client = ClientConnection::new(config, tls::server_name(host)?);
    client.map(Some).map_err(|error| tls::describe_error(&error))
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
    /// Connects and identifies the server.
    pub fn open(login: &Login, deadline: Instant) -> Result<Session, MysqlError> {
        let (wire, server) = login.connect(Limits::RECORDING, deadline)?;
        Session::begin(wire, server)
    }

    fn begin(mut wire: Wire, server: Server) -> Result<Session, MysqlError> {
        let user = wire.query("SELECT CURRENT_USER()", 1)?;
        let user = user.first().map_or_else(String::new, |row| quoted(&row[0]));
        // The server ends a statement that hangs, too.
        let seconds = ANSWER_TIMEOUT.as_secs() - 1;
        let limit = match server.is_mariadb {
            true => format!("SET SESSION max_statement_time = {seconds}"),
            false => format!("SET SESSION max_execution_time = {}", seconds * 1000),
        };
        match wire.execute(&limit) {
            Ok(()) | Err(Fault::Server { .. }) => Ok(Session { wire, server, user }),
            Err(fault) => Err(fault.into()),
        }
    }

    /// When all that follows ends.
    pub fn set_deadline(&mut self, deadline: Instant) {
        self.wire.deadline = Some(deadline);
    }

    /// Runs a query with `columns` columns, as texts; NULL is an empty text. `None` if the user lacks the privilege.
    pub fn query(&mut self, sql: &str, columns: usize) -> Result<Option<Vec<Vec<String>>>, MysqlError> {
        match self.wire.query(sql, columns) {
            Ok(rows) => Ok(Some(rows)),
            Err(Fault::Server { code, .. }) if TABLE_DENIED.contains(&code) => Ok(None),
            Err(fault) => Err(fault.into()),
        }
    }

    /// Whether the connection failed, not the query: a new connection may work.
    pub fn is_lost(error: &MysqlError) -> bool {
        matches!(error, MysqlError::Unreachable(_))
    }
}

/// 'headroom'@'localhost' of headroom@localhost.
fn quoted(user: &str) -> String {
    let (name, host) = user.rsplit_once('@').unwrap_or((user, "%"));
    format!("'{}'@'{}'", name.replace('\'', "''"), host.replace('\'', "''"))
}

impl From<io::Error> for MysqlError {
    fn from(error: io::Error) -> MysqlError {
        Fault::from(error).into()
    }
}

impl From<Fault> for MysqlError {
    fn from(fault: Fault) -> MysqlError {
        match fault {
            Fault::Server { code, message } => match code {
                code if LOGIN_REFUSED.contains(&code) => MysqlError::Refused(message),
                code if STATEMENT_TOO_LONG.contains(&code) => MysqlError::TimedOut,
                code if CONNECTION_ENDED.contains(&code) => MysqlError::Unreachable(message),
                _ => MysqlError::Failed(message),
            },
            Fault::Io(error) => match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => MysqlError::TimedOut,
                io::ErrorKind::UnexpectedEof => MysqlError::Unreachable("it closed the connection".into()),
                _ => MysqlError::Unreachable(error.to_string()),
            },
            Fault::Tls(error) => MysqlError::Failed(tls::describe_error(&error)),
            Fault::Encryption(why) => MysqlError::Failed(format!("no encrypted connection: {why}")),
            Fault::PasswordInClear => MysqlError::PasswordInClear,
            Fault::Protocol(why) => MysqlError::Failed(why.into()),
            Fault::UnknownPlugin(plugin) => MysqlError::Refused(format!(
                "it wants the authentication plugin {plugin}, which Headroom does not have"
            )),
        }
    }
}
