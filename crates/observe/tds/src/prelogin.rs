//! PRELOGIN: the two sides report their versions and agree on encryption.
//!
//! ```text
//! option | offset | length   (1, 2, 2 bytes, big-endian; from the message's start)
//! ...
//! 0xFF
//! values
//! ```

use crate::Fault;
use crate::reader::Reader;

const VERSION: u8 = 0;
const ENCRYPTION: u8 = 1;
const INSTANCE: u8 = 2;
const THREAD: u8 = 3;
const MARS: u8 = 4;
const END: u8 = 0xFF;

/// The values of the encryption option.
const OFF: u8 = 0;
const ON: u8 = 1;
const NOT_SUPPORTED: u8 = 2;
const REQUIRED: u8 = 3;

/// Part of the connection that the client wants encrypted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encryption {
    /// All of it.
    #[default]
    Mandatory,
    /// The login; all of it if the server wants that.
    Optional,
    /// Nothing: the password is sent readable.
    Off,
}

/// Encryption that both sides agreed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Agreed {
    Everything,
    LoginOnly,
    Nothing,
}

/// The message that the client begins with.
pub fn request(encryption: Encryption) -> Vec<u8> {
    let wish = match encryption {
        Encryption::Mandatory => ON,
        Encryption::Optional => OFF,
        Encryption::Off => NOT_SUPPORTED,
    };
    message(&[0, 1, 0, 0, 0, 0], wish, 0, 0)
}

/// The message of a client of that version. The thread is for the server's traces; `mars` is 0 for one result at a time.
fn message(version: &[u8; 6], encryption: u8, thread: u32, mars: u8) -> Vec<u8> {
    let thread = thread.to_le_bytes();
    let options: [(u8, &[u8]); 5] = [
        (VERSION, version),
        (ENCRYPTION, &[encryption]),
        (INSTANCE, &[0]),
        (THREAD, &thread),
        (MARS, std::slice::from_ref(&mars)),
    ];
    let mut offset = 5 * options.len() as u16 + 1;
    let mut message = Vec::new();
    for (option, value) in options {
        let length = value.len() as u16;
        message.push(option);
        message.extend(offset.to_be_bytes());
        message.extend(length.to_be_bytes());
        offset += length;
    }
    message.push(END);
    options.iter().for_each(|(_, value)| message.extend_from_slice(value));
    message
}

/// The server's encryption option.
pub fn parse_encryption(message: &[u8]) -> Result<u8, Fault> {
    let mut options = Reader::new(message);
    loop {
        let option = options.u8()?;
        if option == END {
            return Err(Fault::Protocol("it says nothing of encryption"));
        }
        let (offset, length) = (options.u16_be()?, options.u16_be()?);
        if option == ENCRYPTION {
            let value = message.get(usize::from(offset)).filter(|_| length > 0);
            return value.copied().ok_or(Fault::Protocol("it says nothing of encryption"));
        }
    }
}

/// The table of [MS-TDS] 2.2.6.5.
pub fn agree(ours: Encryption, theirs: u8) -> Result<Agreed, Fault> {
    match (ours, theirs) {
        (Encryption::Mandatory, ON | REQUIRED) | (Encryption::Optional, ON | REQUIRED) => {
            Ok(Agreed::Everything)
        }
        (Encryption::Optional, OFF) => Ok(Agreed::LoginOnly),
        (Encryption::Off, NOT_SUPPORTED | OFF) => Ok(Agreed::Nothing),
        // An attacker between the two could send this to read the password.
        (Encryption::Optional, NOT_SUPPORTED) => Err(Fault::Encryption(
            "the server does not encrypt the login; encrypt=off sends the password readable".into(),
        )),
        (Encryption::Mandatory, OFF | NOT_SUPPORTED) => {
            Err(Fault::Encryption("the server does not encrypt, and encrypt=mandatory is given".into()))
        }
        (Encryption::Off, ON | REQUIRED) => {
            Err(Fault::Encryption("the server demands encryption, and encrypt=off is given".into()))
        }
        _ => Err(Fault::Protocol("it says something unknown of encryption")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse_hex;

    #[test]
    fn the_request_equals_the_example_of_the_specification() {
        // [MS-TDS] 4.1, Pre-Login Request, behind its packet header.
        let example = parse_hex(
            "00 00 1A 00 06 01 00 20 00 01 02 00 21 00 01 03 00 22 00 04 04 00 26 00 01 FF
             09 00 00 00 00 00 01 00 B8 0D 00 00 01",
        );
        assert_eq!(message(&[9, 0, 0, 0, 0, 0], ON, 0x0DB8, 1), example);
        assert_eq!(parse_encryption(&example).unwrap(), ON);
    }

    #[test]
    fn the_encryption_of_an_answer_is_parsed() {
        // The layout of the request; a server leaves the thread empty.
        let example = parse_hex(
            "00 00 1A 00 06 01 00 20 00 01 02 00 21 00 01 03 00 22 00 00 04 00 22 00 01 FF
             09 00 00 00 00 00 01 00 01",
        );
        assert_eq!(parse_encryption(&example).unwrap(), ON);
        for cut in 0..example.len() {
            let _ = parse_encryption(&example[..cut]);
        }
        assert!(parse_encryption(&[END]).is_err());
    }

    #[test]
    fn mandatory_encryption_refuses_a_server_that_does_not_encrypt() {
        assert_eq!(agree(Encryption::default(), REQUIRED).unwrap(), Agreed::Everything);
        assert!(agree(Encryption::default(), NOT_SUPPORTED).is_err());
        assert!(agree(Encryption::default(), OFF).is_err());
        assert_eq!(agree(Encryption::Optional, OFF).unwrap(), Agreed::LoginOnly);
        assert!(agree(Encryption::Optional, NOT_SUPPORTED).is_err());
        assert_eq!(agree(Encryption::Optional, REQUIRED).unwrap(), Agreed::Everything);
        assert!(agree(Encryption::Off, REQUIRED).is_err());
    }
}
