//! A client of TDS 7.4 ([MS-TDS]), the protocol of SQL Server: it logs in and runs queries.
//!
//! ```text
//! client                                                      server
//! PRELOGIN  version, encryption                ──(0x12)──>
//!                                              <──(0x04)──    version, encryption
//! TLS handshake, its records in packets        <─(0x12)──>    unless both sides agree on none
//! LOGIN7    user, password, database           ──(0x10)──>
//!                                              <──(0x04)──    LOGINACK, or ERROR; ENVCHANGE: redirect to another server
//! SQL batch                                    ──(0x01)──>
//!                                              <──(0x04)──    COLMETADATA, ROW..., DONE; ERROR
//! attention, after a timeout                   ──(0x06)──>
//! ```
//!
//! Main path: [`Connection::log_in`] over a TCP connection that the caller made, [`Connection::query`], [`Table::rows`].
//! Every call has a deadline, and the size of an answer is bounded.
//!
//! Why not a crate from outside: `tiberius` 0.13 depends on two dozen crates and, for TLS on Linux, on OpenSSL or on
//! tokio-rustls with its default features, which adds a second cryptography library in C. `tds-protocol` is new and
//! changes every few weeks.
//!
//! Never: parameters, transactions, cursors, bulk copies, several results at once (MARS), Kerberos, TDS 8 (strict).
//! Certificates are the caller's: it supplies the TLS client.

mod fault;
mod login;
mod packet;
mod prelogin;
mod reader;
mod token;
mod value;
mod wire;

pub use fault::{Fault, ServerError};
pub use login::{Login, TEXT_CHARS_MAX};
pub use prelogin::Encryption;
pub use token::{Answer, Row, Table};

use rustls::{ClientConnection, SupportedProtocolVersion};
use std::net::TcpStream;
use std::time::Instant;
use wire::Wire;

/// TLS 1.2: SQL Server accepts 1.3 only in TDS 8.
pub static TLS_VERSIONS: &[&SupportedProtocolVersion] = &[&rustls::version::TLS12];

/// A connection that is logged in.
pub struct Connection {
    wire: Wire,
}

/// The result of a login that was not refused.
pub enum LoginOutcome {
    /// The server accepted it.
    Connected(Box<Connection>),
    /// The server named another one, as Azure SQL Database does.
    Redirected {
        /// Its name or address.
        host: String,
        /// Its port.
        port: u16,
    },
}

/// Encryption of a connection, and its TLS client.
pub struct Security<'a> {
    /// The encrypted part of the connection.
    pub encryption: Encryption,
    /// Makes the TLS client, which accepts or refuses the server's certificate. Called only if both sides agree to
    /// encrypt. The error is a text for people.
    pub tls_client: &'a dyn Fn() -> Result<ClientConnection, String>,
}

impl Connection {
    /// Logs in over a new TCP connection.
    ///
    /// # Errors
    /// [`Fault`].
    pub fn log_in(
        tcp: TcpStream,
        security: &Security,
        login: &Login,
        deadline: Instant,
    ) -> Result<LoginOutcome, Fault> {
        let mut wire = Wire::new(tcp, deadline);
        wire.send(packet::PRELOGIN, &prelogin::request(security.encryption))?;
        let offered = prelogin::parse_encryption(&wire.receive()?)?;
        let agreed = prelogin::agree(security.encryption, offered)?;
        if agreed != prelogin::Agreed::Nothing {
            wire.encrypt((security.tls_client)().map_err(Fault::Encryption)?)?;
        }
        wire.send(packet::LOGIN7, &login.message())?;
        if agreed == prelogin::Agreed::LoginOnly {
            wire.decrypt();
        }
        let answer = Answer::parse(&wire.receive()?)?;
        if let Some(error) = answer.error {
            return Err(Fault::LoginRefused(error));
        }
        if let Some((host, port)) = answer.redirect {
            if host.encode_utf16().count() > TEXT_CHARS_MAX || port == 0 {
                return Err(Fault::Protocol("it sends us to a server that cannot be"));
            }
            return Ok(LoginOutcome::Redirected { host, port });
        }
        if !answer.logged_in {
            return Err(Fault::Protocol("it answers a login without a word about it"));
        }
        if let Some(bytes) = answer.packet_bytes {
            wire.set_packet_bytes(bytes);
        }
        Ok(LoginOutcome::Connected(Box::new(Connection { wire })))
    }

    /// Runs a batch of statements. An error of the server is in the answer.
    ///
    /// # Errors
    /// [`Fault`]; the connection cannot be used afterwards.
    pub fn query(&mut self, sql: &str, deadline: Instant) -> Result<Answer, Fault> {
        self.wire.deadline = deadline;
        self.wire.send(packet::SQL_BATCH, &batch(sql))?;
        let received = self.wire.receive();
        if matches!(received, Err(Fault::TimedOut)) {
            // The server would notice the closed connection only later.
            self.wire.send_attention_and_close();
        }
        Answer::parse(&received?)
    }
}

/// The statements behind ALL_HEADERS: no transaction, one request at a time.
fn batch(sql: &str) -> Vec<u8> {
    const TRANSACTION_DESCRIPTOR: u16 = 2;
    let mut message = Vec::with_capacity(22 + 2 * sql.len());
    message.extend(22u32.to_le_bytes());
    message.extend(18u32.to_le_bytes());
    message.extend(TRANSACTION_DESCRIPTOR.to_le_bytes());
    message.extend(0u64.to_le_bytes());
    message.extend(1u32.to_le_bytes());
    message.extend(sql.encode_utf16().flat_map(u16::to_le_bytes));
    message
}

/// The bytes of a hexadecimal dump, as the specification prints its examples.
#[cfg(test)]
fn parse_hex(dump: &str) -> Vec<u8> {
    dump.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_equals_the_example_of_the_specification() {
        // [MC-SMP] 4.3 shows the packet of a batch of TDS; behind its header.
        let example = parse_hex(
            "16 00 00 00 12 00 00 00 02 00 00 00 00 00 00 00 00 00 01 00 00 00 53 00 45 00 54 00 20 00 51 00 55 00
             4F 00 54 00 45 00 44 00 5F 00 49 00 44 00 45 00 4E 00 54 00 49 00 46 00 49 00 45 00 52 00 20 00 4F 00
             46 00 46 00",
        );
        assert_eq!(batch("SET QUOTED_IDENTIFIER OFF"), example);
    }
}
