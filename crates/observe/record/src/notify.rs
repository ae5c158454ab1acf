//! Words for systemd, in the protocol of sd_notify(3): lines of NAME=VALUE in a datagram to `$NOTIFY_SOCKET`.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

/// Who started this process and wants to hear of it; nobody where `NOTIFY_SOCKET` is not set.
#[derive(Debug)]
pub struct Supervisor {
    socket: Option<UnixDatagram>,
    watchdog: Option<Duration>,
}

impl Supervisor {
    /// As the environment says.
    pub fn from_environment() -> Supervisor {
        let name = std::env::var("NOTIFY_SOCKET").ok().filter(|name| !name.is_empty());
        let watchdog = std::env::var("WATCHDOG_USEC").ok().and_then(|text| text.parse().ok());
        Supervisor {
            socket: name.and_then(|name| connect(&name)),
            watchdog: watchdog.map(Duration::from_micros),
        }
    }

    /// How often [`Supervisor::alive`] is wanted at least: twice as often as systemd waits.
    pub fn watchdog(&self) -> Option<Duration> {
        self.watchdog.map(|most| most / 2)
    }

    /// It works.
    pub fn ready(&self) {
        self.tell("READY=1");
    }

    /// It still does.
    pub fn alive(&self) {
        self.tell("WATCHDOG=1");
    }

    /// It is about to end.
    pub fn stopping(&self) {
        self.tell("STOPPING=1");
    }

    /// What `systemctl status` shows.
    pub fn status(&self, text: &str) {
        self.tell(&format!("STATUS={}", text.replace('\n', " ")));
    }

    fn tell(&self, line: &str) {
        if let Some(socket) = &self.socket {
            // A supervisor that is gone is no reason to stop.
            let _ = socket.send(line.as_bytes());
        }
    }
}

/// A path, or "@name" for a socket without one.
fn connect(name: &str) -> Option<UnixDatagram> {
    let address = match name.strip_prefix('@') {
        Some(name) => SocketAddr::from_abstract_name(name).ok()?,
        None => SocketAddr::from_pathname(name).ok()?,
    };
    let socket = UnixDatagram::unbound().ok()?;
    socket.connect_addr(&address).ok()?;
    Some(socket)
}

#[cfg(test)]
impl Supervisor {
    /// One that listens there.
    pub(crate) fn at(path: &str) -> Supervisor {
        Supervisor { socket: connect(path), watchdog: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_supervisor_hears_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notify");
        let listener = UnixDatagram::bind(&path).unwrap();
        let supervisor = Supervisor { socket: connect(path.to_str().unwrap()), watchdog: None };
        supervisor.ready();
        supervisor.status("2 sources\nwell");
        let mut heard = [0; 64];
        let mut hear = || {
            let bytes = listener.recv(&mut heard).unwrap();
            String::from_utf8_lossy(&heard[..bytes]).into_owned()
        };
        assert_eq!([hear(), hear()], ["READY=1", "STATUS=2 sources well"]);
    }

    #[test]
    fn nobody_to_hear_is_fine() {
        let nobody = Supervisor { socket: connect("/no/such/socket"), watchdog: None };
        nobody.ready();
        assert_eq!(nobody.watchdog(), None);
    }
}
