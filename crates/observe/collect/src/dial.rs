//! Connections to a server, made within a deadline.

use host::SocketFile;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc;
use std::time::Instant;

/// Names that are being resolved at the same time: a name service that hangs keeps its thread beyond the deadline.
const RESOLVERS_MAX: usize = 32;

static RESOLVERS: AtomicUsize = AtomicUsize::new(0);

/// Connects to a name or address.
pub(crate) fn tcp(host: &str, port: u16, deadline: Instant) -> io::Result<TcpStream> {
    connect_tcp(resolve(host, port, deadline)?, deadline)
}

/// Connects to a Unix socket, within the deadline even where its server accepts no connection.
pub(crate) fn unix(path: &Path, deadline: Instant) -> io::Result<OwnedFd> {
    SocketFile::find(path)?.connect_within(deadline.saturating_duration_since(Instant::now()))
}

/// Whether the server on the other end of a Unix socket runs as that user.
pub(crate) fn require_peer(socket: &OwnedFd, user: u32) -> io::Result<()> {
    match host::peer_of(socket)?.user {
        found if found == user => Ok(()),
        found => {
            let why = format!("user {found} listens on it, and user {user} is required");
            Err(io::Error::new(io::ErrorKind::PermissionDenied, why))
        }
    }
}

/// Resolves a name on a thread of its own: the system's resolver has longer timeouts than a source.
fn resolve(host: &str, port: u16, deadline: Instant) -> io::Result<Vec<SocketAddr>> {
    if let Ok(ip) = host.parse::<IpAddr>() {
        return Ok(vec![(ip, port).into()]);
    }
    if RESOLVERS.fetch_add(1, Relaxed) >= RESOLVERS_MAX {
        RESOLVERS.fetch_sub(1, Relaxed);
        return Err(io::Error::other("the system's name service does not answer"));
    }
    let (send, receive) = mpsc::channel();
    let host = host.to_owned();
    let resolver = std::thread::Builder::new().name("resolver".into());
    let resolver = resolver.spawn(move || {
        let addresses = (host.as_str(), port).to_socket_addrs().map(Iterator::collect);
        RESOLVERS.fetch_sub(1, Relaxed);
        // After the deadline there is no receiver.
        let _ = send.send(addresses);
    });
    if let Err(error) = resolver {
        RESOLVERS.fetch_sub(1, Relaxed);
        return Err(error);
    }
    let left = deadline.saturating_duration_since(Instant::now());
    receive.recv_timeout(left).map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
}

/// Connects to the first address that answers; each gets its share of the time.
fn connect_tcp(addresses: Vec<SocketAddr>, deadline: Instant) -> io::Result<TcpStream> {
    let mut last = io::Error::other("its name has no address");
    let mut left_to_try = addresses.len();
    for address in addresses {
        let left = deadline.saturating_duration_since(Instant::now());
        let share = left / u32::try_from(left_to_try).unwrap_or(u32::MAX);
        left_to_try -= 1;
        if share.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        match TcpStream::connect_timeout(&address, share) {
            Ok(tcp) => return Ok(tcp),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// A connection to a server that sends these bytes behind the first, and what keeps the server's end open; if the first one
/// is odd, those of a login come before.
#[cfg(fuzzing)]
pub(crate) fn to_server_of(bytes: &[u8], login: &[u8]) -> Option<(TcpStream, OwnedFd)> {
    use rustix::net::{
        AddressFamily, SendFlags, Shutdown, SocketFlags, SocketType, send, shutdown, socketpair,
    };
    let (first, answers) = bytes.split_first()?;
    let pair = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None);
    let (ours, server) = pair.expect("a pair of sockets");
    let all = [if first % 2 == 1 { login } else { &[] }, answers].concat();
    // More than a socket holds is left out.
    let _ = send(&server, &all, SendFlags::DONTWAIT);
    shutdown(&server, Shutdown::Write).expect("a socket");
    Some((ours.into(), server))
}
