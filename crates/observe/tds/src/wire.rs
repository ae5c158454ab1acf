//! Messages over TCP, perhaps encrypted, each step of them within a deadline.

use crate::Fault;
use crate::packet::{
    ATTENTION, HEADER_BYTES, LAST, PACKET_BYTES_MAX, PACKET_BYTES_MIN, PRELOGIN, TABULAR_RESULT, packets,
};
use rustls::ClientConnection;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

/// The longest answer: 100,000 files take half of it.
const MESSAGE_BYTES_MAX: usize = 64 << 20;
/// The time to send an attention.
const ATTENTION_LIMIT: Duration = Duration::from_millis(50);

pub struct Wire {
    tcp: TcpStream,
    tls: Option<Box<ClientConnection>>,
    pub deadline: Instant,
    packet_bytes: usize,
}

/// A socket whose reads and writes end at a deadline.
struct Bounded<'a> {
    tcp: &'a TcpStream,
    deadline: Instant,
}

impl Wire {
    pub fn new(tcp: TcpStream, deadline: Instant) -> Wire {
        // A query is one write: with Nagle's algorithm every other small one would wait for an acknowledgement.
        let _ = tcp.set_nodelay(true);
        Wire { tcp, tls: None, deadline, packet_bytes: PACKET_BYTES_MAX }
    }

    pub fn set_packet_bytes(&mut self, bytes: usize) {
        self.packet_bytes = bytes.clamp(PACKET_BYTES_MIN, PACKET_BYTES_MAX);
    }

    /// Sends one message.
    pub fn send(&mut self, kind: u8, message: &[u8]) -> Result<(), Fault> {
        let bytes = packets(kind, message, self.packet_bytes);
        self.write_all(&bytes)
    }

    /// Receives one message; its payload.
    pub fn receive(&mut self) -> Result<Vec<u8>, Fault> {
        let mut message = Vec::new();
        loop {
            let (kind, status) = self.receive_packet(&mut message)?;
            if kind != TABULAR_RESULT {
                return Err(Fault::Protocol("it answers with a packet that is no answer"));
            }
            if status & LAST != 0 {
                return Ok(message);
            }
        }
    }

    /// Asks the server to cancel the query, if that can be sent without waiting, and closes the connection.
    pub fn send_attention_and_close(&mut self) {
        self.deadline = Instant::now() + ATTENTION_LIMIT;
        // A server that does not answer may not read either.
        let _ = self.send(ATTENTION, &[]);
        let _ = self.tcp.shutdown(Shutdown::Both);
    }

    /// Encrypts all that follows. The records of the handshake are in packets, those after it are not.
    pub fn encrypt(&mut self, mut tls: ClientConnection) -> Result<(), Fault> {
        match self.shake_hands(&mut tls) {
            // A server that has no cipher in common closes the connection.
            Err(Fault::Io(error)) => {
                Err(Fault::Encryption(format!("it ends the connection in the handshake: {error}")))
            }
            other => other,
        }?;
        self.tls = Some(Box::new(tls));
        Ok(())
    }

    fn shake_hands(&mut self, tls: &mut ClientConnection) -> Result<(), Fault> {
        while tls.is_handshaking() {
            while tls.wants_write() {
                let mut records = Vec::new();
                tls.write_tls(&mut records)?;
                self.send(PRELOGIN, &records)?;
            }
            if !tls.is_handshaking() {
                break;
            }
            let mut records = Vec::new();
            self.receive_packet(&mut records)?;
            let mut rest = records.as_slice();
            while !rest.is_empty() {
                tls.read_tls(&mut rest)?;
                tls.process_new_packets().map_err(Fault::Tls)?;
            }
        }
        Ok(())
    }

    /// Encrypts nothing of what follows: only the login was to be.
    pub fn decrypt(&mut self) {
        self.tls = None;
    }

    /// Appends the payload of one packet; its type and status.
    fn receive_packet(&mut self, message: &mut Vec<u8>) -> Result<(u8, u8), Fault> {
        let mut header = [0; HEADER_BYTES];
        self.read_exact(&mut header)?;
        let [kind, status, high, low, ..] = header;
        let payload_bytes = usize::from(u16::from_be_bytes([high, low])).checked_sub(HEADER_BYTES);
        let payload_bytes = payload_bytes.ok_or(Fault::Protocol("it does not speak TDS"))?;
        let before = message.len();
        if before + payload_bytes > MESSAGE_BYTES_MAX {
            return Err(Fault::Protocol("its answer is longer than 64 MiB"));
        }
        message.resize(before + payload_bytes, 0);
        self.read_exact(&mut message[before..])?;
        Ok((kind, status))
    }

    fn write_all(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        let mut tcp = Bounded { tcp: &self.tcp, deadline: self.deadline };
        match &mut self.tls {
            Some(tls) => {
                let mut stream = rustls::Stream::new(tls.as_mut(), &mut tcp);
                stream.write_all(bytes)?;
                stream.flush()?;
            }
            None => tcp.write_all(bytes)?,
        }
        Ok(())
    }

    fn read_exact(&mut self, buffer: &mut [u8]) -> Result<(), Fault> {
        let mut tcp = Bounded { tcp: &self.tcp, deadline: self.deadline };
        match &mut self.tls {
            Some(tls) => rustls::Stream::new(tls.as_mut(), &mut tcp).read_exact(buffer)?,
            None => tcp.read_exact(buffer)?,
        }
        Ok(())
    }
}

impl Bounded<'_> {
    fn time_left(&self) -> io::Result<Option<Duration>> {
        match self.deadline.checked_duration_since(Instant::now()) {
            Some(left) if !left.is_zero() => Ok(Some(left)),
            _ => Err(io::ErrorKind::TimedOut.into()),
        }
    }
}

impl Read for Bounded<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.tcp.set_read_timeout(self.time_left()?)?;
        self.tcp.read(buffer)
    }
}

impl Write for Bounded<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.tcp.set_write_timeout(self.time_left()?)?;
        self.tcp.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
