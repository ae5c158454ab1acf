//! The part of TDS 7.4 ([MS-TDS]) that asking a server a few questions takes.
//!
//! ```text
//! client                                                      server
//! PRELOGIN  version, wish for TLS              ──(0x12)──>
//!                                              <──(0x04)──    version, what of TLS it wants
//! TLS handshake, its records in packets        <─(0x12)──>    unless both do without
//! LOGIN7    user, password, database           ──(0x10)──>
//!                                              <──(0x04)──    LOGINACK, or ERROR; ENVCHANGE: go to another server
//! SQL batch                                    ──(0x01)──>
//!                                              <──(0x04)──    COLMETADATA, ROW..., DONE; ERROR
//! attention, when we wait no longer            ──(0x06)──>
//! ```
//!
//! Why not a crate: `tiberius` 0.13 brings two dozen crates and, for TLS on Linux, either OpenSSL or tokio-rustls with
//! its default features: a second cryptography library in C, which next to the one that is in the tree leaves rustls
//! without a provider to choose by itself, in the MySQL client too. `tds-protocol` is new and changes every few
//! weeks. This is the standard library and the rustls that is here anyway.
//!
//! Never: parameters, transactions, cursors, bulk copies, several results at once (MARS), Kerberos, TDS 8 (strict).

mod login;
mod prelogin;
mod reader;
mod tls;
mod token;
mod value;
mod wire;

pub(super) use login::Login;
pub(super) use prelogin::Encryption;
pub(super) use tls::Trust;
pub(super) use token::{Answer, Row, Said, Table};

use std::io;
use std::net::TcpStream;
use std::time::Instant;
use wire::Wire;

/// Packet types that this program sends.
const SQL_BATCH: u8 = 0x01;
const ATTENTION: u8 = 0x06;
const LOGIN7: u8 = 0x10;
const PRELOGIN: u8 = 0x12;
/// What all answers come in.
const TABULAR_RESULT: u8 = 0x04;

/// Characters that a text of LOGIN7 may have.
pub(super) const TEXT_MAX: usize = 128;

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum Fault {
    /// Not in the time that was given.
    TimedOut,
    /// The connection ended, or was never made.
    Io(io::Error),
    /// The two cannot agree how to encrypt, or the certificate is not accepted.
    Tls(String),
    /// The server speaks otherwise than the protocol says.
    Form(&'static str),
    /// It refuses the login.
    Refused(Said),
}

/// A connection that is logged in, or where the server sends us instead.
pub(super) enum Connected {
    Here(Box<Connection>),
    /// Azure SQL Database: host and port.
    Elsewhere(String, u16),
}

/// A connection that is logged in.
pub(super) struct Connection {
    wire: Wire,
}

/// How a connection is made.
pub(super) struct Way<'a> {
    pub encryption: Encryption,
    pub trust: &'a Trust,
    /// Whom the certificate must name.
    pub host: &'a str,
}

impl Connection {
    /// Logs in over a connection that was just made.
    pub fn begin(tcp: TcpStream, way: &Way, login: &Login, deadline: Instant) -> Result<Connected, Fault> {
        let mut wire = Wire::new(tcp, deadline);
        wire.send(PRELOGIN, &prelogin::request(way.encryption))?;
        let theirs = prelogin::encryption_of(&wire.receive()?)?;
        let agreed = prelogin::agree(way.encryption, theirs)?;
        if agreed != prelogin::Agreed::Nothing {
            wire.encrypt(way.trust, way.host)?;
        }
        wire.send(LOGIN7, &login.message())?;
        if agreed == prelogin::Agreed::LoginOnly {
            wire.decrypt();
        }
        let answer = Answer::read(&wire.receive()?)?;
        if let Some(said) = answer.error {
            return Err(Fault::Refused(said));
        }
        if let Some((host, port)) = answer.elsewhere {
            if host.encode_utf16().count() > TEXT_MAX || port == 0 {
                return Err(Fault::Form("it sends us to a server that cannot be"));
            }
            return Ok(Connected::Elsewhere(host, port));
        }
        if !answer.logged_in {
            return Err(Fault::Form("it answers a login without a word about it"));
        }
        if let Some(bytes) = answer.packet_bytes {
            wire.set_packet_bytes(bytes);
        }
        Ok(Connected::Here(Box::new(Connection { wire })))
    }

    /// Asks; an error of the server is in the answer. After a fault the connection is of no more use.
    pub fn ask(&mut self, sql: &str, deadline: Instant) -> Result<Answer, Fault> {
        self.wire.until(deadline);
        self.wire.send(SQL_BATCH, &batch(sql))?;
        let received = self.wire.receive();
        if matches!(received, Err(Fault::TimedOut)) {
            // So that the server ends the question too. It would notice the end of the connection as well, later.
            self.wire.send_at_once(ATTENTION);
        }
        Answer::read(&received?)
    }
}

/// The text behind the headers that every batch has: no transaction, one request at a time.
fn batch(sql: &str) -> Vec<u8> {
    const TRANSACTION_DESCRIPTOR: u16 = 2;
    let mut message = Vec::with_capacity(22 + 2 * sql.len());
    message.extend(22u32.to_le_bytes());
    message.extend(18u32.to_le_bytes());
    message.extend(TRANSACTION_DESCRIPTOR.to_le_bytes());
    message.extend(0u64.to_le_bytes());
    message.extend(1u32.to_le_bytes());
    message.extend(utf16(sql));
    message
}

fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Fault {
        match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Fault::TimedOut,
            // What rustls says of a record that it cannot accept.
            io::ErrorKind::InvalidData => Fault::Tls(error.to_string()),
            _ => Fault::Io(error),
        }
    }
}

/// The bytes of a hexadecimal dump, as the specification's examples are printed.
#[cfg(test)]
fn bytes_of(dump: &str) -> Vec<u8> {
    dump.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_that_of_the_specifications_example() {
        // [MC-SMP] 4.3 shows the packet of a batch of TDS; behind its header.
        let example = bytes_of(
            "16 00 00 00 12 00 00 00 02 00 00 00 00 00 00 00 00 00 01 00 00 00 53 00 45 00 54 00 20 00 51 00 55 00
             4F 00 54 00 45 00 44 00 5F 00 49 00 44 00 45 00 4E 00 54 00 49 00 46 00 49 00 45 00 52 00 20 00 4F 00
             46 00 46 00",
        );
        assert_eq!(batch("SET QUOTED_IDENTIFIER OFF"), example);
    }
}
