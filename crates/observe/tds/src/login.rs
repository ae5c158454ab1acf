//! LOGIN7: user, password and database. A fixed part that points to the texts behind it.
//!
//! ```text
//!  0  length of all      4  TDS version    8  packet size   12  program version   16  process   20  connection
//! 24  options (4 bytes)  28 time zone     32  locale
//! 36  offset, characters: host 36, user 40, password 44, program 48, server 52, (extension 56), library 60,
//!     language 64, database 68
//! 72  6 bytes of the client   78  offset, length: SSPI 78, file 82, new password 86   90  long SSPI   94  texts
//! ```

use crate::packet::PACKET_BYTES_MAX;

/// Characters that a text of LOGIN7 may have.
pub const TEXT_CHARS_MAX: usize = 128;

const FIXED_BYTES: usize = 94;
const TDS_7_4: u32 = 0x7400_0004;
/// Fail if the database does not exist; report the language.
const OPTIONS_1: u8 = 0xE0;
/// Fail if the language does not exist; use ODBC's settings.
const OPTIONS_2: u8 = 0x03;
/// English (United States): the language of the messages that this program reports.
const LOCALE: u32 = 0x0409;
const LIBRARY: &str = "headroom";

/// The user who logs in. It has no `Debug`, so that the password cannot be printed by mistake. No text may be longer
/// than [`TEXT_CHARS_MAX`].
pub struct Login {
    /// The client's host name, which the server shows beside the session.
    pub host: String,
    /// The login's name.
    pub user: String,
    /// The login's password.
    pub password: String,
    /// The server's name as it was given: Azure finds the database's server by it.
    pub server: String,
    /// Empty for the login's default database.
    pub database: String,
}

/// The fields that differ between this program and the specification's example.
struct Client<'a> {
    tds_version: u32,
    version: u32,
    process: u32,
    program: &'a str,
    library: &'a str,
    id: [u8; 6],
}

impl Login {
    pub(crate) fn message(&self) -> Vec<u8> {
        let client = Client {
            tds_version: TDS_7_4,
            version: 0x0001_0000,
            process: std::process::id(),
            program: "headroom",
            library: LIBRARY,
            id: [0; 6],
        };
        self.message_from(&client)
    }

    fn message_from(&self, client: &Client) -> Vec<u8> {
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
        message.extend((PACKET_BYTES_MAX as u32).to_le_bytes());
        message.extend(client.version.to_le_bytes());
        message.extend(client.process.to_le_bytes());
        message.extend(0u32.to_le_bytes());
        message.extend([OPTIONS_1, OPTIONS_2, 0, 0]);
        message.extend(0u32.to_le_bytes());
        message.extend(LOCALE.to_le_bytes());
        debug_assert!(texts.iter().all(|text| text.len() <= 2 * TEXT_CHARS_MAX), "so that all offsets fit");
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

fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

/// Swaps the nibbles and flips every other bit, as [MS-TDS] 2.2.6.4 requires. It keeps nothing secret.
fn obfuscated(mut password: Vec<u8>) -> Vec<u8> {
    password.iter_mut().for_each(|byte| *byte = byte.rotate_left(4) ^ 0xA5);
    password
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse_hex;

    #[test]
    fn a_login_equals_the_example_of_the_specification() {
        // [MS-TDS] 4.2, Login Request, behind its packet header. It points to 0 for the extension and for nothing
        // else that is empty.
        let mut example = parse_hex(
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
        let message = login.message_from(&client);
        assert_eq!(message, std::mem::take(&mut example));
    }

    #[test]
    fn a_password_is_obfuscated_as_the_protocol_requires() {
        // 'a' is 61 00; with swapped nibbles 16 00; XOR A5.
        assert_eq!(obfuscated(utf16("a")), [0xB3, 0xA5]);
    }
}
