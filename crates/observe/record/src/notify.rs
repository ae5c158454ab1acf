//! Notifications to systemd by the protocol of sd_notify(3): lines of NAME=VALUE in a datagram to `$NOTIFY_SOCKET`.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

/// The service manager that started this process; none where `NOTIFY_SOCKET` is not set.
#[derive(Debug)]
pub struct Supervisor {
    socket: Option<UnixDatagram>,
    watchdog: Option<Duration>,
}

impl Supervisor {
    /// The service manager that the environment names.
    pub fn from_environment() -> Supervisor {
        let name = std::env::var("NOTIFY_SOCKET").ok().filter(|name| !name.is_empty());
        let watchdog = std::env::var("WATCHDOG_USEC").ok().and_then(|text| text.parse().ok());
        Supervisor {
            socket: name.and_then(|name| connect(&name)),
            watchdog: watchdog.map(Duration::from_micros),
        }
    }

    /// The longest time between two calls of [`Supervisor::alive`]: half of systemd's limit.
    pub fn watchdog(&self) -> Option<Duration> {
        self.watchdog.map(|most| most / 2)
    }

    /// Reports that the service is ready.
    pub fn ready(&self) {
        self.send("READY=1");
    }

    /// Reports that the service is alive.
    pub fn alive(&self) {
        self.send("WATCHDOG=1");
    }

    /// Reports that the service is stopping.
    pub fn stopping(&self) {
        self.send("STOPPING=1");
    }

    /// Sets the text that `systemctl status` shows.
    pub fn status(&self, text: &str) {
        self.send(&format!("STATUS={}", text.replace('\n', " ")));
    }

    fn send(&self, line: &str) {
        if let Some(socket) = &self.socket {
            // Recording goes on without a service manager.
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
    /// A service manager that listens at `path`.
    pub(crate) fn at(path: &str) -> Supervisor {
        Supervisor { socket: connect(path), watchdog: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notifications_reach_the_service_manager() {
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
    fn without_a_service_manager_nothing_fails() {
        let absent = Supervisor { socket: connect("/no/such/socket"), watchdog: None };
        absent.ready();
        assert_eq!(absent.watchdog(), None);
    }
}
