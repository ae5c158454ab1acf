//! One connection: made once, bounded in all it does, given up at the first failure.

use super::SqlServerError;
use super::address::Address;
use super::server::Server;
use super::tds::{Answer, Connected, Connection, Fault, Login, Said, Table, Way};
use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// The longest that a snapshot takes, a new connection included.
pub(super) const SNAPSHOT_LIMIT: Duration = Duration::from_secs(5);
/// Azure sends a client on once.
const ROUTES_MAX: usize = 2;

/// Errors of the server that are told apart (sys.messages): an unknown database is 4060, Azure's firewall 40615 and
/// 40914, a server that is paused, starts or is upgraded 17142, 17187 and 18401, a database of Azure that moves 40613.
const LOGIN_REFUSED: [i32; 6] = [4060, 4064, 40532, 40615, 40914, 47073];
const LOGIN_FAILURES: std::ops::RangeInclusive<i32> = 18450..=18499;
const NOT_NOW: [i32; 7] = [17142, 17187, 18401, 40197, 40501, 40613, 49918];
/// VIEW SERVER STATE is missing: 300, or 297 in a function; a database's permission: 262; SELECT: 229.
const DENIED: [i32; 4] = [229, 262, 297, 300];
/// SET LOCK_TIMEOUT has passed.
const LOCKED: i32 = 1222;

/// Before all questions: waits for nobody's lock, gives way to everybody.
const SETTINGS: &str = "SET NOCOUNT ON; SET LOCK_TIMEOUT 1000; SET DEADLOCK_PRIORITY LOW; \
     SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED;";

/// A live connection and what is known of the server behind it.
pub(super) struct Session {
    connection: Box<Connection>,
    pub server: Server,
}

impl Session {
    /// Connects and asks what server it is.
    pub fn open(address: &Address, deadline: Instant) -> Result<Session, SqlServerError> {
        let name = address.name();
        let (mut host, mut port) = (address.host.clone(), address.port);
        for _ in 0..ROUTES_MAX {
            match connect(address, &host, port, deadline).map_err(|fault| told(&name, fault))? {
                Connected::Here(mut connection) => {
                    let sql = format!("{SETTINGS} {}", super::server::QUESTION);
                    let answer = connection.ask(&sql, deadline).map_err(|fault| told(&name, fault))?;
                    let table = only_table(&name, answer, "")?;
                    let server = table.rows().next().map(|row| Server::of(&row)).unwrap_or_default();
                    return Ok(Session { connection, server });
                }
                Connected::Elsewhere(other_host, other_port) => (host, port) = (other_host, other_port),
            }
        }
        Err(SqlServerError::Failed { name, said: "it sends us from server to server".into() })
    }

    /// The rows of one SELECT.
    pub fn ask(&mut self, name: &str, sql: &str, deadline: Instant) -> Result<Table, SqlServerError> {
        let answer = self.connection.ask(sql, deadline).map_err(|fault| told(name, fault))?;
        only_table(name, answer, &self.server.grant())
    }

    /// Whether the connection, not the question, is what failed: another may do better.
    pub fn is_lost(error: &SqlServerError) -> bool {
        matches!(error, SqlServerError::Unreachable { .. })
    }
}

fn connect(address: &Address, host: &str, port: u16, deadline: Instant) -> Result<Connected, Fault> {
    let tcp = connect_tcp(resolve(host, port, deadline)?, deadline)?;
    // At most 64 characters (uname(2)); the server shows it beside the session.
    let own_name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let login = Login {
        host: own_name.trim().into(),
        user: address.user.clone(),
        password: address.password.clone(),
        server: host.into(),
        database: address.database.clone(),
    };
    let way = Way { encryption: address.encryption, trust: &address.trust, host };
    Connection::begin(tcp, &way, &login, deadline)
}

/// The system's resolver has timeouts of its own, longer than ours: a thread waits for it.
fn resolve(host: &str, port: u16, deadline: Instant) -> Result<Vec<SocketAddr>, Fault> {
    if let Ok(ip) = host.parse::<IpAddr>() {
        return Ok(vec![(ip, port).into()]);
    }
    let (send, receive) = mpsc::channel();
    let host = host.to_owned();
    let resolver = std::thread::Builder::new().name("resolver".into());
    resolver.spawn(move || {
        let found = (host.as_str(), port).to_socket_addrs().map(Iterator::collect);
        // Nobody listens once the time is over.
        let _ = send.send(found);
    })?;
    let left = deadline.saturating_duration_since(Instant::now());
    let found: io::Result<Vec<_>> = receive.recv_timeout(left).map_err(|_| Fault::TimedOut)?;
    Ok(found?)
}

/// The first that answers; each gets its share of the time.
fn connect_tcp(addresses: Vec<SocketAddr>, deadline: Instant) -> Result<TcpStream, Fault> {
    let mut fault = Fault::Io(io::Error::other("its name has no address"));
    let mut left_to_try = addresses.len();
    for address in addresses {
        let left = deadline.saturating_duration_since(Instant::now());
        let share = left / u32::try_from(left_to_try).unwrap_or(u32::MAX);
        left_to_try -= 1;
        if share.is_zero() {
            return Err(Fault::TimedOut);
        }
        match TcpStream::connect_timeout(&address, share) {
            Ok(tcp) => return Ok(tcp),
            Err(error) => fault = error.into(),
        }
    }
    Err(fault)
}

fn only_table(name: &str, answer: Answer, grant: &str) -> Result<Table, SqlServerError> {
    if let Some(Said { number, text }) = answer.error {
        let name = name.to_owned();
        return Err(match number {
            _ if DENIED.contains(&number) => SqlServerError::Denied { name, said: text, grant: grant.into() },
            LOCKED => SqlServerError::TimedOut { name, seconds: 1 },
            _ if NOT_NOW.contains(&number) => SqlServerError::Unreachable { name, reason: text },
            _ => SqlServerError::Failed { name, said: format!("error {number}: {text}") },
        });
    }
    let no_table =
        || SqlServerError::Failed { name: name.into(), said: "it answers without the rows asked for".into() };
    let table = answer.tables.into_iter().next().ok_or_else(no_table)?;
    Ok(table)
}

/// A fault in words for people.
fn told(name: &str, fault: Fault) -> SqlServerError {
    let name = name.to_owned();
    match fault {
        Fault::TimedOut => SqlServerError::TimedOut { name, seconds: SNAPSHOT_LIMIT.as_secs() },
        Fault::Io(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            SqlServerError::Unreachable { name, reason: "it closed the connection".into() }
        }
        Fault::Io(error) => SqlServerError::Unreachable { name, reason: error.to_string() },
        Fault::Tls(said) => SqlServerError::Encryption { name, said },
        Fault::Form(said) => SqlServerError::NotUnderstood { name, said: said.into() },
        Fault::Refused(Said { number, text })
            if LOGIN_FAILURES.contains(&number) || LOGIN_REFUSED.contains(&number) =>
        {
            SqlServerError::Refused { name, said: text }
        }
        Fault::Refused(Said { number, text }) if NOT_NOW.contains(&number) => {
            SqlServerError::Unreachable { name, reason: text }
        }
        Fault::Refused(Said { number, text }) => {
            SqlServerError::Failed { name, said: format!("error {number}: {text}") }
        }
    }
}
