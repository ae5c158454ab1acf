//! A client of the protocol of MySQL and MariaDB that trusts no server: it logs in and runs queries.
//!
//! ```text
//! server                                                          client
//! greeting: version, capabilities, nonce, plugin      ──────>
//!                                                     <──────     request for TLS, TLS handshake, if configured
//!                                                     <──────     user, proof of the password
//! switch of the plugin, its key; OK or ERR            <─────>     proof of the password
//!                                                     <──────     COM_QUERY
//! columns, their definitions, EOF, rows, EOF; ERR     ──────>
//! ```
//!
//! Every call ends at the deadline. A packet, an answer and the number of columns have limits, which are checked before
//! memory is allocated.
//!
//! Why not the crate `mysql`: 28.0 reserves memory for as many columns as the server announces, which ends the process, and
//! panics at packets that are empty and at keys that are malformed.
//!
//! Never: several results, compression, local files, a password in clear over a network that is not encrypted.

mod answer;
mod fault;
mod key;
mod login;
mod proof;
mod statement;
mod wire;

pub use answer::{Column, ROWS_MAX, Row};
pub use fault::Fault;
pub use login::{Credentials, Protection, log_in};
pub use statement::{Parameter, Statement};
pub use wire::{Limits, Wire};

/// Reads numbers and texts from a packet that may end anywhere.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, bytes: usize) -> Result<&'a [u8], Fault> {
        let (taken, rest) =
            self.0.split_at_checked(bytes).ok_or(Fault::Protocol("its answer ends too early"))?;
        self.0 = rest;
        Ok(taken)
    }

    /// Little-endian, of at most 8 bytes.
    fn int(&mut self, bytes: usize) -> Result<u64, Fault> {
        Ok(self.take(bytes)?.iter().rev().fold(0, |int, byte| int << 8 | u64::from(*byte)))
    }

    /// Up to a byte of zero, which may be missing at the end.
    fn text(&mut self) -> &'a [u8] {
        let end = self.0.iter().position(|byte| *byte == 0).unwrap_or(self.0.len());
        let (text, rest) = self.0.split_at(end);
        self.0 = rest.get(1..).unwrap_or_default();
        text
    }

    /// A number that says how long it is; `None` for NULL.
    fn length(&mut self) -> Result<Option<u64>, Fault> {
        Ok(Some(match self.int(1)? {
            0xFB => return Ok(None),
            0xFC => self.int(2)?,
            0xFD => self.int(3)?,
            0xFE => self.int(8)?,
            0xFF => return Err(Fault::Protocol("a length in its answer is none")),
            small => small,
        }))
    }

    /// A text behind its length; `None` for NULL.
    fn value(&mut self) -> Result<Option<&'a [u8]>, Fault> {
        let Some(length) = self.length()? else { return Ok(None) };
        self.take(usize::try_from(length).unwrap_or(usize::MAX)).map(Some)
    }
}
