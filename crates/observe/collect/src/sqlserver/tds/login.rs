//! LOGIN7: who logs in, into which database. A fixed part that points into the texts behind it.
//!
//! ```text
//!  0  length of all      4  TDS version    8  packet size   12  program version   16  process   20  connection
//! 24  options (4 bytes)  28 time zone     32  locale
//! 36  offset, characters: host 36, user 40, password 44, program 48, server 52, (extension 56), library 60,
//!     language 64, database 68
//! 72  6 bytes of the client   78  offset, length: SSPI 78, file 82, new password 86   90  long SSPI   94  texts
//! ```

use super::wire::PACKET_BYTES;
use super::{TEXT_MAX, utf16};

const FIXED_BYTES: usize = 94;
const TDS_7_4: u32 = 0x7400_0004;
/// The database that is named, or an error; a word about the language.
const OPTIONS_1: u8 = 0xE0;
/// A language that is not there is an error; the settings that ODBC has.
const OPTIONS_2: u8 = 0x03;
/// English (United States): the language of the server's own default messages.
const LOCALE: u32 = 0x0409;
const LIBRARY: &str = "headroom";

/// Who logs in. Its password is in no `Debug` text.
pub(in super::super) struct Login {
    pub host: String,
    pub user: String,
    pub password: String,
    /// As asked for: Azure finds the database's server by it.
    pub server: String,
    /// Empty: the user's own.
    pub database: String,
}

/// What differs between this program and the specification's example.
struct Client<'a> {
    tds_version: u32,
    version: u32,
    process: u32,
    program: &'a str,
    library: &'a str,
    id: [u8; 6],
}

impl Login {
    pub fn message(&self) -> Vec<u8> {
        let process = std::process::id();
        let client = Client {
            tds_version: TDS_7_4,
            version: 0x0001_0000,
            process,
            program: "headroom",
            library: LIBRARY,
            id: [0; 6],
        };
        self.message_of(&client)
    }

    fn message_of(&self, client: &Client) -> Vec<u8> {
        let texts = [
            utf16(&self.host),
            utf16(&self.user),
            obfuscated(utf16(&self.password)),
            utf16(client.program),
            utf16(&self.server),
            Vec::new(),
            utf16(client.library),
            Vec::new(),
            utf16(&self.database),
        ];
        let length = FIXED_BYTES + texts.iter().map(Vec::len).sum::<usize>();
        let mut message = Vec::with_capacity(length);
        message.extend((length as u32).to_le_bytes());
        message.extend(client.tds_version.to_le_bytes());
        message.extend((PACKET_BYTES as u32).to_le_bytes());
        message.extend(client.version.to_le_bytes());
        message.extend(client.process.to_le_bytes());
        message.extend(0u32.to_le_bytes());
        message.extend([OPTIONS_1, OPTIONS_2, 0, 0]);
        message.extend(0u32.to_le_bytes());
        message.extend(LOCALE.to_le_bytes());
        debug_assert!(texts.iter().all(|text| text.len() <= 2 * TEXT_MAX), "so that all offsets fit");
        let mut offset = FIXED_BYTES as u16;
        let mut point = |message: &mut Vec<u8>, bytes: usize| {
            message.extend(offset.to_le_bytes());
            message.extend((bytes as u16 / 2).to_le_bytes());
            offset += bytes as u16;
        };
        texts.iter().for_each(|text| point(&mut message, text.len()));
        message.extend(client.id);
        (0..3).for_each(|_| point(&mut message, 0));
        message.extend(0u32.to_le_bytes());
        texts.iter().for_each(|text| message.extend_from_slice(text));
        message
    }
}

/// Nibbles exchanged, then every other bit turned: no secret, but what the protocol wants.
fn obfuscated(mut password: Vec<u8>) -> Vec<u8> {
    password.iter_mut().for_each(|byte| *byte = byte.rotate_left(4) ^ 0xA5);
    password
}

#[cfg(test)]
mod tests {
    use super::super::bytes_of;
    use super::*;

    #[test]
    fn a_login_is_that_of_the_specifications_example() {
        // [MS-TDS] 4.2, Login Request, behind its packet header. It points to 0 for the extension and for nothing
        // else that is empty.
        let mut example = bytes_of(
            "88 00 00 00 02 00 09 72 00 10 00 00 00 00 00 07 00 01 00 00 00 00 00 00 E0 03 00 00 00 00 00 00
             09 04 00 00 5E 00 08 00 6E 00 02 00 72 00 00 00 72 00 07 00 80 00 00 00 80 00 00 00 80 00 04 00
             88 00 00 00 88 00 00 00 00 50 8B E2 B7 8F 88 00 00 00 88 00 00 00 88 00 00 00 00 00 00 00
             73 00 6B 00 6F 00 73 00 74 00 6F 00 76 00 31 00 73 00 61 00 4F 00 53 00 51 00 4C 00 2D 00 33 00
             32 00 4F 00 44 00 42 00 43 00",
        );
        let login = Login {
            host: "skostov1".into(),
            user: "sa".into(),
            password: String::new(),
            server: String::new(),
            database: String::new(),
        };
        let client = Client {
            tds_version: 0x7209_0002,
            version: 0x0700_0000,
            process: 0x0100,
            program: "OSQL-32",
            library: "ODBC",
            id: [0x00, 0x50, 0x8B, 0xE2, 0xB7, 0x8F],
        };
        let message = login.message_of(&client);
        assert_eq!(message, std::mem::take(&mut example));
    }

    #[test]
    fn a_password_is_turned_as_the_protocol_wants() {
        // 'a' is 61 00: nibbles exchanged 16 00, and A5.
        assert_eq!(obfuscated(utf16("a")), [0xB3, 0xA5]);
    }
}
