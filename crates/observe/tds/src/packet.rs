//! Packets: how messages are cut, and the types of messages.
//!
//! ```text
//! 0      1       2        4      6         7       8
//! type | status | length | SPID | packet | window | payload ...
//!        1: last packet of the message    (length and SPID are big-endian; the length includes these 8 bytes)
//! ```

/// Types of messages that this client sends.
pub const SQL_BATCH: u8 = 0x01;
pub const ATTENTION: u8 = 0x06;
pub const LOGIN7: u8 = 0x10;
pub const PRELOGIN: u8 = 0x12;
/// The type of every answer.
pub const TABULAR_RESULT: u8 = 0x04;

pub const HEADER_BYTES: usize = 8;
/// The status of the last packet of a message.
pub const LAST: u8 = 0x01;
/// The size that LOGIN7 requests; the server may choose a smaller one.
pub const PACKET_BYTES_MAX: usize = 4096;
pub const PACKET_BYTES_MIN: usize = 512;

/// A message cut into packets.
pub fn packets(kind: u8, message: &[u8], packet_bytes: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(message.len() + HEADER_BYTES * (message.len() / packet_bytes + 1));
    let payloads: Vec<&[u8]> = match message.is_empty() {
        true => vec![&[]],
        false => message.chunks(packet_bytes - HEADER_BYTES).collect(),
    };
    for (at, payload) in payloads.iter().enumerate() {
        let status = if at + 1 == payloads.len() { LAST } else { 0 };
        // At most PACKET_BYTES_MAX. The packet's number is one byte: it wraps.
        let length = (HEADER_BYTES + payload.len()) as u16;
        let [high, low] = length.to_be_bytes();
        bytes.extend([kind, status, high, low, 0, 0, (at + 1) as u8, 0]);
        bytes.extend_from_slice(payload);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attention_is_a_header_without_payload() {
        assert_eq!(packets(ATTENTION, &[], PACKET_BYTES_MAX), crate::parse_hex("06 01 00 08 00 00 01 00"));
    }

    #[test]
    fn only_the_last_packet_of_a_long_message_is_marked_as_last() {
        let bytes = packets(1, &[7; 1010], 512);
        assert_eq!(bytes[..8], [1, 0, 2, 0, 0, 0, 1, 0]);
        assert_eq!(bytes[512..520], [1, 0, 2, 0, 0, 0, 2, 0]);
        assert_eq!(bytes[1024..1032], [1, 1, 0, 10, 0, 0, 3, 0]);
        assert_eq!(bytes.len(), 3 * 8 + 1010);
    }
}
