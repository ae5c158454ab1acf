//! Packets over a socket, perhaps encrypted, each step of them within a deadline.
//!
//! ```text
//! 0        3         4
//! length | number | payload ...        the number counts the packets of an exchange, of both sides
//! ```
//!
//! A payload of 2^24 - 1 bytes goes on in the next packet.

use super::{Fault, Reader};
use rustls::ClientConnection;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

const HEADER_BYTES: usize = 4;
const PACKET_BYTES_MAX: usize = 0xFF_FFFF;
/// Of all packets of a login: a server sends 1 KiB.
const LOGIN_BYTES_MAX: usize = 64 << 10;
/// The time to take leave.
const QUIT_LIMIT: Duration = Duration::from_millis(50);
const ERR: u8 = 0xFF;
const QUIT: u8 = 0x01;

/// Bounds on the data accepted from the server.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Of one payload, a row for one.
    pub payload_bytes: usize,
    /// Of one answer, as it is received.
    pub answer_bytes: usize,
}

impl Limits {
    /// The row of a file takes 5 KiB, and 100,000 files take a third of an answer.
    pub const RECORDING: Limits = Limits { payload_bytes: 1 << 20, answer_bytes: 64 << 20 };
    /// For the statements of a person, on a server of that person's choice: the longest row that MySQL has.
    pub const EXPERIMENT: Limits = Limits { payload_bytes: 1 << 30, answer_bytes: usize::MAX };
}

/// A connection.
pub struct Wire {
    socket: TcpStream,
    tls: Option<Box<ClientConnection>>,
    /// A Unix socket: its bytes do not leave this machine.
    is_local: bool,
    is_logged_in: bool,
    limits: Limits,
    /// Bytes that the server may still send in this exchange.
    allowance: usize,
    /// When the operation in progress ends; `None` if nothing ends it.
    pub deadline: Option<Instant>,
    /// Number of the next packet.
    number: u8,
}

/// A socket whose reads and writes end at a deadline.
struct Bounded<'a> {
    socket: &'a TcpStream,
    deadline: Option<Instant>,
}

impl Wire {
    pub fn over_tcp(socket: TcpStream, deadline: Instant) -> Wire {
        // A query is one write.
        let _ = socket.set_nodelay(true);
        Wire::new(socket, false, deadline)
    }

    /// All that is used of `TcpStream` is there for any socket.
    pub fn over_unix_socket(socket: OwnedFd, deadline: Instant) -> Wire {
        Wire::new(socket.into(), true, deadline)
    }

    fn new(socket: TcpStream, is_local: bool, deadline: Instant) -> Wire {
        let (limits, allowance) = (Limits::RECORDING, LOGIN_BYTES_MAX);
        let (tls, is_logged_in) = (None, false);
        Wire { socket, tls, is_local, is_logged_in, limits, allowance, deadline: Some(deadline), number: 0 }
    }

    /// Whether no process between the two sides can read the bytes.
    pub fn is_private(&self) -> bool {
        self.is_local || self.tls.is_some()
    }

    /// The login is complete; answers have these limits.
    pub fn set_logged_in(&mut self, limits: Limits) {
        self.is_logged_in = true;
        self.limits = limits;
    }

    /// Begins an exchange with this command.
    pub fn command(&mut self, command: u8, arguments: &[u8]) -> Result<(), Fault> {
        self.number = 0;
        self.allowance = self.limits.answer_bytes;
        self.send(&[&[command], arguments].concat())
    }

    pub fn send(&mut self, payload: &[u8]) -> Result<(), Fault> {
        if payload.len() >= PACKET_BYTES_MAX {
            let why = "a statement or a password of 16 MiB is too long";
            return Err(Fault::Io(io::Error::new(io::ErrorKind::InvalidInput, why)));
        }
        let [a, b, c, _] = (payload.len() as u32).to_le_bytes();
        let packet = [&[a, b, c, self.number], payload].concat();
        self.number = self.number.wrapping_add(1);
        let mut socket = Bounded { socket: &self.socket, deadline: self.deadline };
        match &mut self.tls {
            Some(tls) => {
                let mut stream = rustls::Stream::new(tls.as_mut(), &mut socket);
                stream.write_all(&packet)?;
                stream.flush()?;
            }
            None => socket.write_all(&packet)?,
        }
        Ok(())
    }

    /// Receives a payload, which has at least a byte. One that reports an error is that error.
    pub fn receive(&mut self) -> Result<Vec<u8>, Fault> {
        let mut payload = Vec::new();
        let mut is_in_order = true;
        loop {
            let mut header = [0; HEADER_BYTES];
            self.read_exact(&mut header)?;
            let [a, b, c, number] = header;
            is_in_order &= number == self.number;
            self.number = number.wrapping_add(1);
            let (before, length) = (payload.len(), u32::from_le_bytes([a, b, c, 0]) as usize);
            let allowed = self.allowance.checked_sub(HEADER_BYTES + length);
            self.allowance = allowed.filter(|_| before + length <= self.limits.payload_bytes).ok_or(
                Fault::Protocol("it sends a packet or an answer that is longer than any that was requested"),
            )?;
            payload.resize(before + length, 0);
            self.read_exact(&mut payload[before..])?;
            if length < PACKET_BYTES_MAX {
                break;
            }
        }
        match payload.first() {
            None => Err(Fault::Protocol("it sends an empty packet")),
            // The server reports on its own that it shuts down: such a packet has no number of this exchange.
            Some(&ERR) => Err(server_error(&payload[1..])),
            Some(_) if !is_in_order => Err(Fault::Protocol("its packets are out of order")),
            Some(_) => Ok(payload),
        }
    }

    /// Encrypts all that follows.
    pub fn encrypt(&mut self, mut tls: ClientConnection) -> Result<(), Fault> {
        let mut socket = Bounded { socket: &self.socket, deadline: self.deadline };
        while tls.is_handshaking() {
            tls.complete_io(&mut socket)?;
        }
        self.tls = Some(Box::new(tls));
        Ok(())
    }

    fn read_exact(&mut self, buffer: &mut [u8]) -> Result<(), Fault> {
        let mut socket = Bounded { socket: &self.socket, deadline: self.deadline };
        match &mut self.tls {
            Some(tls) => rustls::Stream::new(tls.as_mut(), &mut socket).read_exact(buffer)?,
            None => socket.read_exact(buffer)?,
        }
        Ok(())
    }
}

impl Drop for Wire {
    /// Without leave the server would count, and log, an aborted connection.
    fn drop(&mut self) {
        if self.is_logged_in {
            self.deadline = Some(Instant::now() + QUIT_LIMIT);
            let _ = self.command(QUIT, &[]);
        }
    }
}

/// Code, perhaps '#' and an SQL state of five letters, message.
fn server_error(payload: &[u8]) -> Fault {
    let mut reader = Reader(payload);
    let Ok(code) = reader.int(2) else { return Fault::Protocol("its answer ends too early") };
    let message = match reader.0 {
        [b'#', _, _, _, _, _, message @ ..] => message,
        message => message,
    };
    let message = String::from_utf8_lossy(message).into_owned();
    Fault::Server { code: code as u16, message }
}

impl Bounded<'_> {
    fn time_left(&self) -> io::Result<Option<Duration>> {
        let Some(deadline) = self.deadline else { return Ok(None) };
        match deadline.checked_duration_since(Instant::now()) {
            Some(left) if !left.is_zero() => Ok(Some(left)),
            _ => Err(io::ErrorKind::TimedOut.into()),
        }
    }
}

impl Read for Bounded<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.socket.set_read_timeout(self.time_left()?)?;
        self.socket.read(buffer)
    }
}

impl Write for Bounded<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.socket.set_write_timeout(self.time_left()?)?;
        self.socket.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
