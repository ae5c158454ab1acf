//! The two ends of a connection over a socket of the file system: the user that runs the server, and the user that connects.

use crate::{dial, environment};
use host::SocketFile;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;

/// libpq's `requirepeer`, and how root treats it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PeerRule {
    /// The user that must run the server.
    pub required: Option<u32>,
    /// The user and group that connect, where that is not the user of this program: root connects as the server's own user,
    /// as `sudo -u postgres psql` does, if `requirepeer` and `user` have that name.
    pub connects_as: Option<(u32, u32)>,
}

impl PeerRule {
    /// From the name in `requirepeer` and the role.
    pub fn new(required: Option<String>, role: &str, is_socket: bool) -> Result<PeerRule, String> {
        let Some(name) = required.filter(|_| is_socket) else { return Ok(PeerRule::default()) };
        let required = environment::user_id(&name).ok_or("requirepeer names no user of this host")?;
        let is_switched = role == name && environment::own_user() == 0 && required != 0;
        let group = environment::group_id(&name).filter(|_| is_switched);
        Ok(PeerRule { required: Some(required), connects_as: group.map(|group| (required, group)) })
    }

    /// Connects without waiting, and checks who listens.
    pub fn connect(&self, path: &Path) -> io::Result<UnixStream> {
        let socket = match self.connects_as {
            Some((user, group)) => SocketFile::find(path)?.connect_as(user, group)?,
            None => SocketFile::find(path)?.connect_at_once()?,
        };
        if let Some(user) = self.required {
            dial::require_peer(&socket, user)?;
        }
        Ok(socket.into())
    }
}
