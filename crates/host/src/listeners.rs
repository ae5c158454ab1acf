//! The sockets that a process listens on.

use crate::bounded_read::read_bounded;
use crate::local_clients::{parse_address, sockets_in};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// A table of sockets has a line of some 200 bytes for each: more of it is not read.
const TABLE_BYTES_MAX: u64 = 16 << 20;
/// `__SO_ACCEPTCON`: the socket listens.
const LISTENS: u32 = 1 << 16;
/// The state `TCP_LISTEN`.
const TCP_LISTEN: &str = "0A";

/// The sockets of the file system that a process listens on, by the name that they were bound to: in the mount namespace of the
/// process, and where it is relative, in the directory that it worked in. Nothing where there is no such process, or it is
/// another user's and this process is not root. A name with a line break may forge lines of the table:
/// [`peer_at`](crate::peer_at) knows who listens on a name.
pub fn unix_listeners_of(pid: u32) -> Vec<PathBuf> {
    let inodes = inodes_of(pid);
    if inodes.is_empty() {
        return Vec::new();
    }
    let table = table(pid, "unix");
    parse_unix(&table).filter(|(inode, _)| inodes.contains(inode)).map(|(_, path)| path).collect()
}

/// The addresses of TCP that a process listens on, in its network namespace. The kernel searches its whole table of connections
/// for each reader, which takes up to 0.2 s on a host with much memory: only for a process that is worth that.
pub fn tcp_listeners_of(pid: u32) -> Vec<SocketAddr> {
    let inodes = inodes_of(pid);
    if inodes.is_empty() {
        return Vec::new();
    }
    let tables = ["tcp", "tcp6"].map(|name| String::from_utf8_lossy(&table(pid, name)).into_owned());
    let found = tables.iter().flat_map(|table| parse_tcp(table)).filter(|(inode, _)| inodes.contains(inode));
    found.map(|(_, address)| address).collect()
}

fn inodes_of(pid: u32) -> BTreeSet<u64> {
    sockets_in(pid).map(|(_, inode)| inode).collect()
}

fn table(pid: u32, name: &str) -> Vec<u8> {
    read_bounded(Path::new(&format!("/proc/{pid}/net/{name}")), TABLE_BYTES_MAX).unwrap_or_default()
}

/// Inode and name of each listening stream socket of the file system (proc_pid_net(5)).
///
/// ```text
/// Num       RefCount Protocol Flags    Type St Inode Path
/// 00000000: 00000002 00000000 00010000 0001 01 22784 /run/postgresql/.s.PGSQL.5432
/// ```
fn parse_unix(table: &[u8]) -> impl Iterator<Item = (u64, PathBuf)> {
    table.split(|byte| *byte == b'\n').skip(1).filter_map(|line| {
        // The inode is padded with blanks, and the name may hold some.
        let at = line.iter().position(|byte| matches!(byte, b'/' | b'.' | b'@'))?;
        let (words, path) = line.split_at(at);
        let mut words = std::str::from_utf8(words).ok()?.split_ascii_whitespace();
        let flags = u32::from_str_radix(words.nth(3)?, 16).ok()?;
        let inode = words.nth(2)?.parse().ok()?;
        // An abstract name begins with "@" and has no file.
        let has_file = flags & LISTENS != 0 && path.first() != Some(&b'@') && words.next().is_none();
        has_file.then(|| (inode, OsString::from_vec(path.to_vec()).into()))
    })
}

/// Inode and address of each listening socket.
fn parse_tcp(text: &str) -> impl Iterator<Item = (u64, SocketAddr)> {
    text.lines().skip(1).filter_map(|line| {
        let mut words = line.split_ascii_whitespace();
        let (local, state) = (words.nth(1)?, words.nth(1)?);
        let inode = words.nth(5)?.parse().ok()?;
        (state == TCP_LISTEN).then(|| Some((inode, parse_address(local)?)))?
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::net::TcpListener;
    use std::os::unix::net::UnixListener;

    #[test]
    fn own_listeners_are_found() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("a b.sock");
        let _unix = UnixListener::bind(&path).unwrap();
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let own = std::process::id();
        assert!(unix_listeners_of(own).contains(&path), "{:?}", unix_listeners_of(own));
        assert!(tcp_listeners_of(own).contains(&tcp.local_addr().unwrap()), "{:?}", tcp_listeners_of(own));
        assert!(unix_listeners_of(u32::MAX).is_empty() && tcp_listeners_of(u32::MAX).is_empty());
    }

    #[test]
    fn only_listening_sockets_with_a_file_are_taken() {
        let table = b"Num       RefCount Protocol Flags    Type St Inode Path\n\
            0: 00000002 00000000 00010000 0001 01 22784 /run/pg/.s.PGSQL.5432\n\
            0: 00000003 00000000 00000000 0001 03 22785 /run/pg/.s.PGSQL.5432\n\
            0: 00000002 00000000 00010000 0001 01   786 @/tmp/abstract\n\
            0: 00000002 00000000 00010000 0001 01    12 ./relative name\n\
            0: 00000003 00000000 00000000 0001 03  1680\nbroken /x\n";
        let rows: Vec<_> = parse_unix(table).collect();
        assert_eq!(rows, [(22784, "/run/pg/.s.PGSQL.5432".into()), (12, "./relative name".into())]);
    }

    proptest! {
        #[test]
        fn any_table_is_parsed(bytes in any::<Vec<u8>>(), text in any::<String>()) {
            parse_unix(&bytes).count();
            parse_tcp(&text).count();
            let table = [b"head\n0: 2 0 00010000 0001 01 7 ", &bytes[..]].concat();
            parse_unix(&table).count();
        }
    }
}
