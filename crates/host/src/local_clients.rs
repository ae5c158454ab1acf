//! Processes of this host that are connected to a server: unix(7) sockets by the credentials of their peer, TCP by the
//! other end of the connection in /proc/PID/net/tcp.

use crate::peer::peer_of;
use crate::process::{numbers_in, pids};
use rustix::net::{AddressFamily, SocketAddrAny, getpeername, getsockname, sockopt};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};
use std::collections::BTreeSet;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::path::Path;

/// Sockets of a server that are looked at: more sessions than any server of one host serves well.
const SOCKETS_MAX: usize = 4096;

/// The processes that are connected to one of `servers` from this host, these themselves left out. Needs the permission to
/// trace them (ptrace(2)); without it there are none.
pub fn local_clients(servers: &[u32]) -> BTreeSet<u32> {
    let (mut clients, mut tcp_clients) = (BTreeSet::new(), BTreeSet::new());
    for socket in servers.iter().flat_map(|server| sockets_of(*server)).take(SOCKETS_MAX) {
        match sockopt::socket_domain(&socket) {
            Ok(AddressFamily::UNIX) => {
                clients.extend(peer_of(&socket).ok().and_then(|peer| peer.pid));
            }
            Ok(AddressFamily::INET | AddressFamily::INET6) => tcp_clients.extend(connection_of(&socket)),
            _ => {}
        }
    }
    clients.extend(owners_of(servers, &tcp_clients));
    clients.retain(|client| !servers.contains(client));
    clients
}

/// Its sockets, as descriptors of this process.
fn sockets_of(pid: u32) -> Vec<OwnedFd> {
    let process = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let Some(process) = process.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok()) else {
        return Vec::new();
    };
    let copy = |fd: u32| pidfd_getfd(&process, i32::try_from(fd).ok()?, PidfdGetfdFlags::empty()).ok();
    sockets_in(pid).map(|(fd, _)| fd).take(SOCKETS_MAX).filter_map(copy).collect()
}

/// The numbers of a process's descriptors that are sockets, with their inodes.
pub(crate) fn sockets_in(pid: u32) -> impl Iterator<Item = (u32, u64)> {
    let directory = format!("/proc/{pid}/fd");
    let numbers = numbers_in(Path::new(&directory)).unwrap_or_default().into_iter();
    numbers.filter_map(move |fd| {
        let link = fs::read_link(format!("{directory}/{fd}")).ok()?;
        let inode = link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()?;
        Some((fd, inode))
    })
}

/// The two ends of a connection, the client's first; `None` where it does not come from this host.
fn connection_of(socket: &OwnedFd) -> Option<(SocketAddr, SocketAddr)> {
    let address = |any: SocketAddrAny| SocketAddr::try_from(any).ok().map(as_v4);
    let (server, client) = (address(getsockname(socket).ok()?)?, address(getpeername(socket).ok()??)?);
    (client.ip().is_loopback() || client.ip() == server.ip()).then_some((client, server))
}

/// IPv4 that a socket of IPv6 serves, as IPv4.
fn as_v4(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// The processes that have the client's end of one of the connections open.
fn owners_of(servers: &[u32], connections: &BTreeSet<(SocketAddr, SocketAddr)>) -> BTreeSet<u32> {
    let Some(server) = servers.first().filter(|_| !connections.is_empty()) else { return BTreeSet::new() };
    let mut inodes = BTreeSet::new();
    // In the network namespace of the server.
    for table in ["tcp", "tcp6"] {
        let text = fs::read_to_string(format!("/proc/{server}/net/{table}")).unwrap_or_default();
        inodes.extend(parse_tcp(&text).filter(|row| connections.contains(&(row.0, row.1))).map(|row| row.2));
    }
    let is_owner = |pid: &u32| sockets_in(*pid).any(|(_, inode)| inodes.contains(&inode));
    pids().unwrap_or_default().into_iter().filter(is_owner).collect()
}

/// Local address, remote address and inode of each socket (proc_pid_net(5)).
///
/// ```text
///   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
///    0: 0100007F:1538 0100007F:C1A4 01 00000000:00000000 00:00000000 00000000   999        0 31337 1 ...
/// ```
fn parse_tcp(text: &str) -> impl Iterator<Item = (SocketAddr, SocketAddr, u64)> {
    text.lines().skip(1).filter_map(|line| {
        let mut words = line.split_ascii_whitespace();
        let (local, remote) = (words.nth(1)?, words.next()?);
        Some((parse_address(local)?, parse_address(remote)?, words.nth(6)?.parse().ok()?))
    })
}

/// An address as 32-bit words in the byte order of the machine, and a port, all in hexadecimal.
pub(crate) fn parse_address(text: &str) -> Option<SocketAddr> {
    let (words, port) = text.split_once(':')?;
    let mut bytes = [0_u8; 16];
    let length = words.len() / 2;
    if !words.is_ascii() || !matches!(words.len(), 8 | 32) {
        return None;
    }
    for (at, word) in bytes.chunks_mut(4).take(length / 4).enumerate() {
        let value = u32::from_str_radix(&words[at * 8..at * 8 + 8], 16).ok()?;
        word.copy_from_slice(&value.to_ne_bytes());
    }
    let ip = match length {
        4 => IpAddr::V4(Ipv4Addr::new(bytes[0], bytes[1], bytes[2], bytes[3])),
        _ => IpAddr::V6(Ipv6Addr::from(bytes)),
    };
    Some(as_v4(SocketAddr::new(ip, u16::from_str_radix(port, 16).ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::net::{UnixListener, UnixStream};
    use std::process::{Child, Command, Stdio};

    #[test]
    #[cfg(target_endian = "little")]
    fn addresses_are_words_in_the_machines_byte_order() {
        let text = "  sl  local_address rem_address   st\n   0: 0100007F:1538 0100007F:C1A4 01 00000000:00000000 \
            00:00000000 00000000   999        0 31337 1 0\n   1: 0000000000000000FFFF00000100007F:C1A4 \
            00000000000000000000000001000000:1538 01 0:0 0:0 0 0 0 7 1\nbroken\n";
        let rows: Vec<_> = parse_tcp(text).collect();
        let address = |text: &str| text.parse::<SocketAddr>().unwrap();
        assert_eq!(rows[0], (address("127.0.0.1:5432"), address("127.0.0.1:49572"), 31337));
        assert_eq!(rows[1], (address("127.0.0.1:49572"), address("[::1]:5432"), 7));
        assert_eq!(rows.len(), 2);
    }

    /// A process that is connected to this one, and stays.
    fn client(script: &str) -> Child {
        let python = Command::new("/usr/bin/python3").args(["-c", script]).stdin(Stdio::piped()).spawn();
        python.expect("python3 is there")
    }

    fn is_found(mut client: Child) -> bool {
        let found = local_clients(&[std::process::id()]).contains(&client.id());
        client.kill().unwrap();
        client.wait().unwrap();
        found
    }

    #[test]
    fn a_client_over_tcp_is_found() {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = server.local_addr().unwrap().port();
        let client = client(&format!(
            "import socket, sys; s = socket.create_connection((\"127.0.0.1\", {port})); sys.stdin.read()"
        ));
        let _session: TcpStream = server.accept().unwrap().0;
        assert!(is_found(client));
    }

    #[test]
    fn a_client_over_a_unix_socket_is_found() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("socket");
        let server = UnixListener::bind(&path).unwrap();
        let script = format!(
            "import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect({path:?}); sys.stdin.read()"
        );
        let client = client(&script);
        let _session: UnixStream = server.accept().unwrap().0;
        assert!(is_found(client));
    }
}
