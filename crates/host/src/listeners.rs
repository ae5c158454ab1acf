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

/// Where a process listens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listeners {
    /// Sockets of the file system, by the name that they were bound to: in the mount namespace of the process, and where it
    /// is relative, in the directory that it worked in.
    pub unix: Vec<PathBuf>,
    /// TCP, in the network namespace of the process.
    pub tcp: Vec<SocketAddr>,
}

/// Finds where a process listens; nothing where there is no such process, or it is another user's and this process is not
/// root. A name with a line break may forge lines of the table: [`peer_at`](crate::peer_at) knows who listens on a name.
pub fn listeners_of(pid: u32) -> Listeners {
    let inodes: BTreeSet<u64> = sockets_in(pid).map(|(_, inode)| inode).collect();
    if inodes.is_empty() {
        return Listeners::default();
    }
    let table = |name: &str| {
        read_bounded(Path::new(&format!("/proc/{pid}/net/{name}")), TABLE_BYTES_MAX).unwrap_or_default()
    };
    let table_of_unix = table("unix");
    let unix = parse_unix(&table_of_unix).filter(|(inode, _)| inodes.contains(inode)).map(|(_, path)| path);
    let tables = ["tcp", "tcp6"].map(|name| String::from_utf8_lossy(&table(name)).into_owned());
    let tcp = tables.iter().flat_map(|table| parse_tcp(table)).filter(|(inode, _)| inodes.contains(inode));
    Listeners { unix: unix.collect(), tcp: tcp.map(|(_, address)| address).collect() }
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
        let found = listeners_of(std::process::id());
        assert!(found.unix.contains(&path), "{found:?}");
        assert!(found.tcp.contains(&tcp.local_addr().unwrap()), "{found:?}");
        assert_eq!(listeners_of(u32::MAX), Listeners::default());
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
