//! Connects to the first of the hosts that accepts the login, over a stream whose messages are bounded.

use super::authentication::{RequestCheck, RequiredAuth};
use super::bounded::{AnswerLimit, Bounded, Socket, StreamRules};
use super::error::describe;
use super::peer::PeerRule;
use super::tls::Connector;
use std::io;
use std::sync::{Arc, OnceLock};
use tokio::net::{TcpStream, UnixStream, lookup_host};
use tokio::task::JoinHandle;
use tokio_postgres::config::{Host, SslMode, SslNegotiation, TargetSessionAttrs};
use tokio_postgres::{Client, Config, SimpleQueryMessage};

/// Why there is no connection.
pub(super) enum DialError {
    /// The system's error, or the defect of the settings.
    Unreachable(String),
    /// The server's, or one of the protocol.
    Postgres(tokio_postgres::Error),
}

impl From<io::Error> for DialError {
    fn from(error: io::Error) -> DialError {
        DialError::Unreachable(format!("error connecting to server: {error}"))
    }
}

/// The task that drives a connection; dropping it closes the socket.
pub(super) struct Driver {
    task: JoinHandle<()>,
    failure: Arc<OnceLock<String>>,
}

impl Driver {
    fn start(connection: impl Future<Output = Result<(), tokio_postgres::Error>> + Send + 'static) -> Driver {
        let failure = Arc::new(OnceLock::new());
        let shared = Arc::clone(&failure);
        let task = tokio::spawn(async move {
            if let Err(error) = connection.await {
                let _ = shared.set(describe(&error));
            }
        });
        Driver { task, failure }
    }

    /// Why the connection has ended, if it failed. The client reports only that it has.
    pub fn failure(&self) -> Option<&str> {
        self.failure.get().map(String::as_str)
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// How to log in.
#[derive(Clone, Copy)]
pub(super) struct Dialer<'a> {
    pub config: &'a Config,
    pub connector: &'a Connector,
    pub peer: &'a PeerRule,
    pub required_auth: RequiredAuth,
    pub limit: AnswerLimit,
}

impl Dialer<'_> {
    /// A connection, and the task that drives it. The caller limits the time.
    pub async fn dial(self) -> Result<(Client, Driver), DialError> {
        let config = self.config;
        let (hosts, ports, addresses) = (config.get_hosts(), config.get_ports(), config.get_hostaddrs());
        let is_one_each = (addresses.is_empty() || addresses.len() == hosts.len())
            && (ports.len() == 1 || ports.len() == hosts.len());
        if !is_one_each {
            return Err(DialError::Unreachable("there are not as many ports or addresses as hosts".into()));
        }
        let mut last = DialError::Unreachable("no host is given".into());
        for (at, host) in hosts.iter().enumerate() {
            let port = *ports.get(at).unwrap_or(&ports[0]);
            let connected = match host {
                Host::Unix(directory) => {
                    let path = directory.join(format!(".s.PGSQL.{port}"));
                    let connected = self.peer.connect(&path).and_then(UnixStream::from_std);
                    match connected.map(|socket| Box::new(socket) as Socket) {
                        Ok(socket) => {
                            let requests = RequestCheck::unreadable(self.required_auth);
                            self.log_in(socket, "localhost", requests).await
                        }
                        Err(error) => Err(error.into()),
                    }
                }
                Host::Tcp(name) => {
                    let address = addresses.get(at).map_or_else(|| name.clone(), ToString::to_string);
                    self.dial_tcp((&address, port), name).await
                }
            };
            match connected {
                Ok(connected) => return Ok(connected),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// Tries all addresses of a name.
    async fn dial_tcp(self, place: (&str, u16), name: &str) -> Result<(Client, Driver), DialError> {
        let mut last = DialError::Unreachable("could not resolve any addresses".into());
        for address in lookup_host(place).await? {
            let connected = match TcpStream::connect(address).await {
                Ok(tcp) => {
                    tcp.set_nodelay(true)?;
                    // On this host too: while the server is stopped, any user may listen on its port.
                    self.log_in(Box::new(tcp), name, RequestCheck::readable(self.required_auth)).await
                }
                Err(error) => Err(error.into()),
            };
            match connected {
                Ok(connected) => return Ok(connected),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// Logs in over a connection to the host of this name. The server may make these requests before it is encrypted.
    pub async fn log_in(
        self,
        socket: Socket,
        name: &str,
        requests: RequestCheck,
    ) -> Result<(Client, Driver), DialError> {
        let config = self.config;
        let is_tls_requested = config.get_ssl_mode() != SslMode::Disable
            && config.get_ssl_negotiation() == SslNegotiation::Postgres;
        let rules = StreamRules { limit: self.limit, requests };
        let stream = match is_tls_requested {
            true => Bounded::awaiting_tls_answer(socket, rules),
            false => Bounded::new(socket, rules),
        };
        let handshake = self.connector.handshake(name).map_err(DialError::Unreachable)?;
        let (client, driver) = config.connect_raw(stream, handshake).await.map_err(DialError::Postgres)?;
        let driver = Driver::start(driver);
        check_session(config.get_target_session_attrs(), &client).await?;
        Ok((client, driver))
    }
}

/// Whether the server accepts writes, or does not, as the settings want.
async fn check_session(wanted: TargetSessionAttrs, client: &Client) -> Result<(), DialError> {
    if wanted == TargetSessionAttrs::Any {
        return Ok(());
    }
    let answer = client.simple_query("SHOW transaction_read_only").await.map_err(DialError::Postgres)?;
    let read_only = answer.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.try_get(0).ok().flatten(),
        _ => None,
    });
    match (wanted, read_only) {
        (TargetSessionAttrs::ReadWrite, Some("on")) => {
            Err(DialError::Unreachable("database does not allow writes".into()))
        }
        (TargetSessionAttrs::ReadOnly, Some("off")) => {
            Err(DialError::Unreachable("database is not read only".into()))
        }
        _ => Ok(()),
    }
}
