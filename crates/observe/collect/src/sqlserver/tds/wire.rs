//! Packets, perhaps encrypted, every step of them within a deadline.
//!
//! ```text
//! 0      1       2        4      6         7       8
//! type | status | length | SPID | packet | window | payload ...
//!        1: last packet of the message    (length and SPID big-endian; the length has these 8 bytes in it)
//! ```

use super::tls::{self, Trust};
use super::{ATTENTION, Fault, PRELOGIN, TABULAR_RESULT};
use rustls::ClientConnection;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

const HEADER_BYTES: usize = 8;
const LAST: u8 = 0x01;
/// What LOGIN7 asks for; the server may have it smaller.
pub(super) const PACKET_BYTES: usize = 4096;
const PACKET_BYTES_LEAST: usize = 512;
/// Of one answer: of 100,000 files it is half of that; what is larger is none of ours.
const MESSAGE_BYTES_MAX: usize = 64 << 20;
/// How long a farewell may take.
const FAREWELL: Duration = Duration::from_millis(50);

pub(super) struct Wire {
    tcp: TcpStream,
    tls: Option<Box<ClientConnection>>,
    deadline: Instant,
    packet_bytes: usize,
}

/// The socket, for as long as the deadline allows.
struct Bounded<'a> {
    tcp: &'a TcpStream,
    deadline: Instant,
}

impl Wire {
    pub fn new(tcp: TcpStream, deadline: Instant) -> Wire {
        // A question is one write; without it every other small one would wait for an acknowledgement.
        let _ = tcp.set_nodelay(true);
        Wire { tcp, tls: None, deadline, packet_bytes: PACKET_BYTES }
    }

    /// What follows must be done by then.
    pub fn until(&mut self, deadline: Instant) {
        self.deadline = deadline;
    }

    pub fn set_packet_bytes(&mut self, bytes: usize) {
        self.packet_bytes = bytes.clamp(PACKET_BYTES_LEAST, PACKET_BYTES);
    }

    /// Sends one message.
    pub fn send(&mut self, kind: u8, message: &[u8]) -> Result<(), Fault> {
        let bytes = packets(kind, message, self.packet_bytes);
        self.write_all(&bytes)
    }

    /// The payload of one message.
    pub fn receive(&mut self) -> Result<Vec<u8>, Fault> {
        let mut message = Vec::new();
        loop {
            let (kind, status) = self.receive_packet(&mut message)?;
            if kind != TABULAR_RESULT {
                return Err(Fault::Form("it answers with a packet that is no answer"));
            }
            if status & LAST != 0 {
                return Ok(message);
            }
        }
    }

    /// Sends a message without payload, if that can be done now, and ends the connection.
    pub fn send_at_once(&mut self, kind: u8) {
        debug_assert_eq!(kind, ATTENTION);
        self.deadline = Instant::now() + FAREWELL;
        // Whoever does not answer may not read either.
        let _ = self.send(kind, &[]);
        let _ = self.tcp.shutdown(Shutdown::Both);
    }

    /// From here on all is encrypted. The records of the handshake travel in packets, those after it do not.
    pub fn encrypt(&mut self, trust: &Trust, host: &str) -> Result<(), Fault> {
        let mut tls = tls::client(trust, host)?;
        match self.shake_hands(&mut tls) {
            // So ends a server that knows no cipher of ours.
            Err(Fault::Io(error)) => {
                Err(Fault::Tls(format!("it ends the connection in the handshake: {error}")))
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
                tls.process_new_packets().map_err(|error| Fault::Tls(crate::tls::said(&error)))?;
            }
        }
        Ok(())
    }

    /// From here on nothing is: the login was all that should be.
    pub fn decrypt(&mut self) {
        self.tls = None;
    }

    /// Appends the payload of one packet; its type and status.
    fn receive_packet(&mut self, message: &mut Vec<u8>) -> Result<(u8, u8), Fault> {
        let mut header = [0; HEADER_BYTES];
        self.read_exact(&mut header)?;
        let [kind, status, high, low, ..] = header;
        let payload_bytes = usize::from(u16::from_be_bytes([high, low])).checked_sub(HEADER_BYTES);
        let payload_bytes = payload_bytes.ok_or(Fault::Form("it does not speak TDS"))?;
        let before = message.len();
        if before + payload_bytes > MESSAGE_BYTES_MAX {
            return Err(Fault::Form("its answer is longer than 64 MiB"));
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

/// A message cut into packets.
fn packets(kind: u8, message: &[u8], packet_bytes: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(message.len() + HEADER_BYTES * (message.len() / packet_bytes + 1));
    let payloads: Vec<&[u8]> = match message.is_empty() {
        true => vec![&[]],
        false => message.chunks(packet_bytes - HEADER_BYTES).collect(),
    };
    for (at, payload) in payloads.iter().enumerate() {
        let status = if at + 1 == payloads.len() { LAST } else { 0 };
        // At most PACKET_BYTES; the number of the packet is kept in one byte, modulo 256.
        let length = (HEADER_BYTES + payload.len()) as u16;
        let [high, low] = length.to_be_bytes();
        bytes.extend([kind, status, high, low, 0, 0, (at + 1) as u8, 0]);
        bytes.extend_from_slice(payload);
    }
    bytes
}

impl Bounded<'_> {
    fn left(&self) -> io::Result<Option<Duration>> {
        match self.deadline.checked_duration_since(Instant::now()) {
            Some(left) if !left.is_zero() => Ok(Some(left)),
            _ => Err(io::ErrorKind::TimedOut.into()),
        }
    }
}

impl Read for Bounded<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.tcp.set_read_timeout(self.left()?)?;
        self.tcp.read(buffer)
    }
}

impl Write for Bounded<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.tcp.set_write_timeout(self.left()?)?;
        self.tcp.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::bytes_of;
    use super::*;

    #[test]
    fn an_attention_is_a_header_and_nothing_else() {
        assert_eq!(packets(ATTENTION, &[], PACKET_BYTES), bytes_of("06 01 00 08 00 00 01 00"));
    }

    #[test]
    fn a_long_message_is_cut_and_only_its_last_packet_says_so() {
        let bytes = packets(1, &[7; 1010], 512);
        assert_eq!(bytes[..8], [1, 0, 2, 0, 0, 0, 1, 0]);
        assert_eq!(bytes[512..520], [1, 0, 2, 0, 0, 0, 2, 0]);
        assert_eq!(bytes[1024..1032], [1, 1, 0, 10, 0, 0, 3, 0]);
        assert_eq!(bytes.len(), 3 * 8 + 1010);
    }
}
