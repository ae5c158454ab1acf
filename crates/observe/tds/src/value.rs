//! TYPE_INFO and the values of a row, for the types that columns of system views have.

use crate::Fault;
use crate::reader::{Reader, decode_utf16};

/// A value of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    Null,
    Int(i64),
    Text(String),
    /// varbinary, and every type that is not decoded.
    Bytes(Vec<u8>),
}

impl Value {
    /// Its size in memory.
    pub fn memory_bytes(&self) -> usize {
        let content = match self {
            Value::Null | Value::Int(_) => 0,
            Value::Text(text) => text.len(),
            Value::Bytes(bytes) => bytes.len(),
        };
        size_of::<Value>() + content
    }
}

/// How the values of a column are encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Type {
    length: Length,
    content: Content,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Length {
    Fixed(u8),
    /// A byte; 0 is NULL.
    Byte,
    /// Two bytes; 0xFFFF is NULL.
    Short,
    /// The total length in eight bytes, all ones for NULL; then pieces, each behind its length in four bytes.
    Pieces,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Content {
    Int,
    Wide,
    Narrow,
    Bytes,
}

/// The length of a (max) type, whose values come in pieces.
const UNLIMITED: u16 = 0xFFFF;

impl Type {
    pub fn parse(reader: &mut Reader) -> Result<Type, Fault> {
        use Content::{Bytes, Int};
        let found = |length, content| Ok(Type { length, content });
        match reader.u8()? {
            0x1F => found(Length::Fixed(0), Bytes),
            0x30 | 0x32 => found(Length::Fixed(1), Int),
            0x34 => found(Length::Fixed(2), Int),
            0x38 => found(Length::Fixed(4), Int),
            0x7F => found(Length::Fixed(8), Int),
            // Real, smalldatetime, smallmoney; float, datetime, money.
            0x3B | 0x3A | 0x7A => found(Length::Fixed(4), Bytes),
            0x3C..=0x3E => found(Length::Fixed(8), Bytes),
            // Integers and bits, nullable.
            0x26 | 0x68 => reader.take(1).and_then(|_| found(Length::Byte, Int)),
            // Uniqueidentifier, float, money, datetime; time, datetime2, datetimeoffset with their scale.
            0x24 | 0x6D | 0x6E | 0x6F | 0x29 | 0x2A | 0x2B => {
                reader.take(1).and_then(|_| found(Length::Byte, Bytes))
            }
            0x28 => found(Length::Byte, Bytes),
            // Decimal and numeric: length, precision, scale.
            0x6A | 0x6C => reader.take(3).and_then(|_| found(Length::Byte, Bytes)),
            kind @ (0xA5 | 0xAD | 0xA7 | 0xAF | 0xE7 | 0xEF) => {
                let length_max = reader.u16()?;
                let content = match kind {
                    0xA5 | 0xAD => Bytes,
                    0xE7 | 0xEF => Content::Wide,
                    _ => Content::Narrow,
                };
                if content != Bytes {
                    // Collation.
                    reader.take(5)?;
                }
                found(if length_max == UNLIMITED { Length::Pieces } else { Length::Short }, content)
            }
            _ => Err(Fault::Protocol("it answers with a column of a type that is not understood")),
        }
    }

    pub fn read_value(self, reader: &mut Reader) -> Result<Value, Fault> {
        let bytes = match self.length {
            Length::Fixed(0) => return Ok(Value::Null),
            Length::Fixed(length) => reader.take(usize::from(length))?,
            Length::Byte => match reader.u8()? {
                0 => return Ok(Value::Null),
                length => reader.take(usize::from(length))?,
            },
            Length::Short => match reader.u16()? {
                0xFFFF => return Ok(Value::Null),
                length => reader.take(usize::from(length))?,
            },
            Length::Pieces => {
                return Ok(pieces(reader)?.map_or(Value::Null, |bytes| self.content.value(&bytes)));
            }
        };
        Ok(self.content.value(bytes))
    }
}

fn pieces(reader: &mut Reader) -> Result<Option<Vec<u8>>, Fault> {
    if reader.u64()? == u64::MAX {
        return Ok(None);
    }
    let mut all = Vec::new();
    loop {
        match reader.u32()? {
            0 => return Ok(Some(all)),
            // A piece is at most as long as the message, which is bounded.
            length => all.extend_from_slice(reader.take(length as usize)?),
        }
    }
}

impl Content {
    fn value(self, bytes: &[u8]) -> Value {
        match (self, bytes) {
            // tinyint and bit are unsigned.
            (Content::Int, [byte]) => Value::Int((*byte).into()),
            (Content::Int, [a, b]) => Value::Int(i16::from_le_bytes([*a, *b]).into()),
            (Content::Int, [a, b, c, d]) => Value::Int(i32::from_le_bytes([*a, *b, *c, *d]).into()),
            (Content::Int, _) => match bytes.try_into() {
                Ok(bytes) => Value::Int(i64::from_le_bytes(bytes)),
                Err(_) => Value::Bytes(bytes.into()),
            },
            (Content::Wide, _) => Value::Text(decode_utf16(bytes)),
            (Content::Narrow, _) => Value::Text(String::from_utf8_lossy(bytes).into_owned()),
            (Content::Bytes, _) => Value::Bytes(bytes.into()),
        }
    }
}
