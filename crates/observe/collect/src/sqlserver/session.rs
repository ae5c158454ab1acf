//! One connection: made once, bounded in time, given up at the first failure.

use super::address::Address;
use super::error::SqlServerError;
use super::server::{self, Server};
use super::tls;
use crate::dial;
use std::io;
use std::time::{Duration, Instant};
use tds::{Answer, Connection, Fault, Login, LoginOutcome, Security, ServerError, Table};

/// The longest that a snapshot takes, a new connection included.
pub(super) const SNAPSHOT_LIMIT: Duration = Duration::from_secs(5);
/// Azure redirects a client once.
const ROUTES_MAX: usize = 2;

/// Errors of the server that are handled apart (sys.messages): an unknown database is 4060, Azure's firewall 40615 and
/// 40914, a server that is paused, starts or is upgraded 17142, 17187 and 18401, a database of Azure that moves 40613.
const LOGIN_REFUSED: [i32; 6] = [4060, 4064, 40532, 40615, 40914, 47073];
const LOGIN_FAILURES: std::ops::RangeInclusive<i32> = 18450..=18499;
const NOT_NOW: [i32; 7] = [17142, 17187, 18401, 40197, 40501, 40613, 49918];
/// VIEW SERVER STATE is missing: 300, or 297 in a function; a database's permission: 262; SELECT: 229.
const DENIED: [i32; 4] = [229, 262, 297, 300];
/// SET LOCK_TIMEOUT has passed.
const LOCKED: i32 = 1222;

/// Before all queries: no query waits long for a lock, and none wins a deadlock.
const SETTINGS: &str = "SET NOCOUNT ON; SET LOCK_TIMEOUT 1000; SET DEADLOCK_PRIORITY LOW; \
     SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED;";

/// A live connection and what is known of the server behind it.
pub(super) struct Session {
    connection: Box<Connection>,
    pub server: Server,
}

impl Session {
    /// Connects and finds out what server it is.
    pub fn open(address: &Address, deadline: Instant) -> Result<Session, SqlServerError> {
        let (mut host, mut port) = (address.host.clone(), address.port);
        for _ in 0..ROUTES_MAX {
            match connect(address, &host, port, deadline)? {
                LoginOutcome::Connected(connection) => return Session::begin(connection, deadline),
                LoginOutcome::Redirected { host: to_host, port: to_port } => {
                    (host, port) = (to_host, to_port);
                }
            }
        }
        Err(SqlServerError::Failed("it sends us from server to server".into()))
    }

    pub(super) fn begin(
        mut connection: Box<Connection>,
        deadline: Instant,
    ) -> Result<Session, SqlServerError> {
        let answer = connection.query(&format!("{SETTINGS} {}", server::QUERY), deadline)?;
        let table = only_table(answer, "")?;
        let server = table.rows().next().map(|row| Server::from_row(&row)).unwrap_or_default();
        Ok(Session { connection, server })
    }

    /// The rows of one SELECT.
    pub fn query(&mut self, sql: &str, deadline: Instant) -> Result<Table, SqlServerError> {
        only_table(self.connection.query(sql, deadline)?, &self.server.grant())
    }

    /// Whether the connection failed, not the query: a new connection may work.
    pub fn is_lost(error: &SqlServerError) -> bool {
        matches!(error, SqlServerError::Unreachable(_))
    }
}

fn connect(address: &Address, host: &str, port: u16, deadline: Instant) -> Result<LoginOutcome, Fault> {
    let tcp = dial::tcp(host, port, deadline)?;
    // At most 64 characters (uname(2)); the server shows it beside the session.
    let login = Login {
        host: host::hostname(),
        user: address.user.clone(),
        password: address.password.clone(),
        server: host.into(),
        database: address.database.clone(),
    };
    let tls_client = || tls::client(&address.trust, host);
    let security = Security { encryption: address.encryption, tls_client: &tls_client };
    Connection::log_in(tcp, &security, &login, deadline)
}

fn only_table(answer: Answer, grant: &str) -> Result<Table, SqlServerError> {
    if let Some(ServerError { number, text }) = answer.error {
        return Err(match number {
            _ if DENIED.contains(&number) => SqlServerError::Denied { why: text, grant: grant.into() },
            LOCKED => SqlServerError::TimedOut(1),
            _ => from_server_error(number, text),
        });
    }
    let no_table = || SqlServerError::Failed("it answers without the requested rows".into());
    answer.tables.into_iter().next().ok_or_else(no_table)
}

fn from_server_error(number: i32, text: String) -> SqlServerError {
    match NOT_NOW.contains(&number) {
        true => SqlServerError::Unreachable(text),
        false => SqlServerError::Failed(format!("error {number}: {text}")),
    }
}

impl From<Fault> for SqlServerError {
    fn from(fault: Fault) -> SqlServerError {
        match fault {
            Fault::TimedOut => SqlServerError::TimedOut(SNAPSHOT_LIMIT.as_secs()),
            Fault::Io(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                SqlServerError::Unreachable("it closed the connection".into())
            }
            Fault::Io(error) => SqlServerError::Unreachable(error.to_string()),
            Fault::Tls(error) => SqlServerError::Encryption(crate::tls::describe_error(&error)),
            Fault::Encryption(why) => SqlServerError::Encryption(why),
            Fault::Protocol(why) => SqlServerError::NotUnderstood(why),
            Fault::LoginRefused(ServerError { number, text })
                if LOGIN_FAILURES.contains(&number) || LOGIN_REFUSED.contains(&number) =>
            {
                SqlServerError::Refused(text)
            }
            Fault::LoginRefused(ServerError { number, text }) => from_server_error(number, text),
        }
    }
}
