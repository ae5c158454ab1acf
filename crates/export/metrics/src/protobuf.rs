//! The part of the Protocol Buffers wire format (<https://protobuf.dev/programming-guides/encoding/>) that two requests
//! with a dozen message types need. A code generator would add more build time than this file saves.

use filestats::varint;

const VARINT: u32 = 0;
const FIXED_64: u32 = 1;
const LENGTH: u32 = 2;

/// A message, written field by field.
#[derive(Debug, Default)]
pub(crate) struct Message(Vec<u8>);

impl Message {
    /// `uint64`, non-negative `int64`, `enum`, `bool`.
    pub fn number(&mut self, field: u32, value: u64) {
        self.key(field, VARINT);
        varint::push(&mut self.0, value);
    }

    /// `fixed64`, `sfixed64`.
    pub fn fixed(&mut self, field: u32, value: u64) {
        self.key(field, FIXED_64);
        self.0.extend(value.to_le_bytes());
    }

    /// `repeated fixed64`, and `repeated double` as bits.
    pub fn packed(&mut self, field: u32, values: impl Iterator<Item = u64>) {
        let bytes: Vec<u8> = values.flat_map(u64::to_le_bytes).collect();
        self.bytes(field, &bytes);
    }

    pub fn double(&mut self, field: u32, value: f64) {
        self.fixed(field, value.to_bits());
    }

    /// An empty string is not written: readers take an absent field for an empty one.
    pub fn text(&mut self, field: u32, value: &str) {
        if !value.is_empty() {
            self.bytes(field, value.as_bytes());
        }
    }

    /// A nested message.
    pub fn message(&mut self, field: u32, write: impl FnOnce(&mut Message)) {
        let mut inner = Message::default();
        write(&mut inner);
        self.bytes(field, &inner.0);
    }

    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    fn bytes(&mut self, field: u32, value: &[u8]) {
        self.key(field, LENGTH);
        varint::push(&mut self.0, value.len() as u64);
        self.0.extend(value);
    }

    fn key(&mut self, field: u32, wire: u32) {
        varint::push(&mut self.0, u64::from(field << 3 | wire));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_specification_come_out() {
        let mut message = Message::default();
        message.number(1, 150);
        message.text(2, "testing");
        message.message(3, |inner| inner.number(1, 150));
        let expected = [&[0x08, 0x96, 0x01, 0x12, 0x07][..], b"testing", &[0x1a, 0x03, 0x08, 0x96, 0x01]];
        assert_eq!(message.into_bytes(), expected.concat());
        let mut largest = Message::default();
        largest.number(1, u64::MAX);
        assert_eq!(largest.into_bytes(), [&[0x08][..], &[0xff; 9], &[0x01]].concat());
    }
}
