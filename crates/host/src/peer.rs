//! The process at the other end of a socket of the file system, as the kernel knows it.

use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use std::io;
use std::os::fd::AsFd;

/// The process at the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its number when it began to listen or connected; `None` where it is not visible in this pid namespace.
    pub pid: Option<u32>,
    /// The user that it ran as then.
    pub user: u32,
}

/// Returns the process at the other end of a connection over a socket of the file system.
///
/// # Errors
/// If it is no such connection.
pub fn peer_of(socket: &impl AsFd) -> io::Result<Peer> {
    let credentials = getsockopt(socket, PeerCredentials)?;
    let pid = u32::try_from(credentials.pid()).ok().filter(|pid| *pid > 0);
    Ok(Peer { pid, user: credentials.uid() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peer_at;
    use std::os::unix::net::UnixListener;

    #[test]
    fn this_process_is_the_peer_of_its_own_socket() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("socket");
        let _listener = UnixListener::bind(&path).unwrap();
        let own = Peer { pid: Some(std::process::id()), user: rustix::process::geteuid().as_raw() };
        assert_eq!(peer_at(&path).unwrap(), own);
        assert!(peer_at(&place.path().join("none")).is_err());
        assert!(peer_of(&std::fs::File::open("/dev/null").unwrap()).is_err());
    }
}
