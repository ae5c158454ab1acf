//! PRELOGIN: the versions of both sides, and how much of the connection is encrypted.
//!
//! ```text
//! option | offset | length   (1, 2, 2 bytes, big-endian; from the message's start)
//! ...
//! 0xFF
//! values
//! ```

use super::Fault;
use super::reader::Reader;

const VERSION: u8 = 0;
const ENCRYPTION: u8 = 1;
const INSTANCE: u8 = 2;
const THREAD: u8 = 3;
const MARS: u8 = 4;
const END: u8 = 0xFF;

/// What a side may say of encryption.
const OFF: u8 = 0;
const ON: u8 = 1;
const NOT_SUPPORTED: u8 = 2;
const REQUIRED: u8 = 3;

/// How much of the connection this side wants encrypted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in super::super) enum Encryption {
    /// All of it.
    #[default]
    Mandatory,
    /// The login, and all of it where the server wants that.
    Optional,
    /// Nothing, the password included.
    Off,
}

/// What both do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Agreed {
    Everything,
    LoginOnly,
    Nothing,
}

/// The first message.
pub(super) fn request(encryption: Encryption) -> Vec<u8> {
    let wish = match encryption {
        Encryption::Mandatory => ON,
        Encryption::Optional => OFF,
        Encryption::Off => NOT_SUPPORTED,
    };
    message(&[0, 1, 0, 0, 0, 0], wish, 0, 0)
}

/// `version` of this program; the thread is for the server's traces; one result at a time.
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

/// What the server says of encryption.
pub(super) fn encryption_of(message: &[u8]) -> Result<u8, Fault> {
    let mut options = Reader::new(message);
    loop {
        let option = options.u8()?;
        if option == END {
            return Err(Fault::Form("it says nothing of encryption"));
        }
        let (offset, length) = (options.u16_be()?, options.u16_be()?);
        if option == ENCRYPTION {
            let value = message.get(usize::from(offset)).filter(|_| length > 0);
            return value.copied().ok_or(Fault::Form("it says nothing of encryption"));
        }
    }
}

/// The table of [MS-TDS] 2.2.6.5.
pub(super) fn agree(ours: Encryption, theirs: u8) -> Result<Agreed, Fault> {
    match (ours, theirs) {
        (Encryption::Mandatory, ON | REQUIRED) | (Encryption::Optional, ON | REQUIRED) => {
            Ok(Agreed::Everything)
        }
        (Encryption::Optional, OFF) => Ok(Agreed::LoginOnly),
        (Encryption::Off, NOT_SUPPORTED | OFF) => Ok(Agreed::Nothing),
        // Anybody on the way could say so, and read the password.
        (Encryption::Optional, NOT_SUPPORTED) => Err(Fault::Tls(
            "the server does not encrypt the login; encrypt=off sends the password readable".into(),
        )),
        (Encryption::Mandatory, OFF | NOT_SUPPORTED) => {
            Err(Fault::Tls("the server does not encrypt, and encrypt=mandatory is asked for".into()))
        }
        (Encryption::Off, ON | REQUIRED) => {
            Err(Fault::Tls("the server demands encryption, and encrypt=off is asked for".into()))
        }
        _ => Err(Fault::Form("it says something unknown of encryption")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::bytes_of;
    use super::*;

    #[test]
    fn the_first_message_is_that_of_the_specifications_example() {
        // [MS-TDS] 4.1, Pre-Login Request, behind its packet header.
        let example = bytes_of(
            "00 00 1A 00 06 01 00 20 00 01 02 00 21 00 01 03 00 22 00 04 04 00 26 00 01 FF
             09 00 00 00 00 00 01 00 B8 0D 00 00 01",
        );
        assert_eq!(message(&[9, 0, 0, 0, 0, 0], ON, 0x0DB8, 1), example);
        assert_eq!(encryption_of(&example).unwrap(), ON);
    }

    #[test]
    fn an_answer_of_a_server_is_read() {
        // As the request is laid out; a server leaves the thread empty.
        let example = bytes_of(
            "00 00 1A 00 06 01 00 20 00 01 02 00 21 00 01 03 00 22 00 00 04 00 22 00 01 FF
             09 00 00 00 00 00 01 00 01",
        );
        assert_eq!(encryption_of(&example).unwrap(), ON);
        for cut in 0..example.len() {
            let _ = encryption_of(&example[..cut]);
        }
        assert!(encryption_of(&[END]).is_err());
    }

    #[test]
    fn nothing_is_sent_in_the_clear_where_encryption_is_mandatory() {
        assert_eq!(agree(Encryption::default(), REQUIRED).unwrap(), Agreed::Everything);
        assert!(agree(Encryption::default(), NOT_SUPPORTED).is_err());
        assert!(agree(Encryption::default(), OFF).is_err());
        assert_eq!(agree(Encryption::Optional, OFF).unwrap(), Agreed::LoginOnly);
        assert!(agree(Encryption::Optional, NOT_SUPPORTED).is_err());
        assert_eq!(agree(Encryption::Optional, REQUIRED).unwrap(), Agreed::Everything);
        assert!(agree(Encryption::Off, REQUIRED).is_err());
    }
}
