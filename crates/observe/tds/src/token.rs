//! The tokens of an answer that servers send to a client like this one.
//!
//! ```text
//! 0x81 COLMETADATA  columns, each: user type 4, flags 2, type, name
//! 0xD1 ROW          a value of each column
//! 0xD2 NBCROW       a bit of each column that is NULL, then the values of the others
//! 0xFD 0xFE 0xFF    DONE, DONEPROC, DONEINPROC: status 2, command 2, rows 8
//! 0xAA ERROR 0xAB INFO 0xAD LOGINACK 0xE3 ENVCHANGE 0xA9 ORDER: length 2, content
//! 0x79 RETURNSTATUS: 4 bytes    0xE4 SESSIONSTATE: length 4, content
//! ```

use crate::reader::Reader;
use crate::value::{Type, Value};
use crate::{Fault, ServerError};

/// Rows of one answer that are kept: several times the files of the largest servers.
const ROWS_MAX: usize = 100_000;
/// Memory for the rows of all tables: 50,000 files take this much. The message's size bounds nothing, since a NULL is one
/// bit in it.
const ROWS_BYTES_MAX: usize = 64 << 20;
/// No query of Headroom returns more columns.
const COLUMNS_MAX: u16 = 256;
const TABLES_MAX: usize = 16;
/// Types of ENVCHANGE that are used.
const PACKET_SIZE: u8 = 4;
const ROUTING: u8 = 20;
const TCP: u8 = 0;
/// The column count of a COLMETADATA without columns.
const NO_METADATA: u16 = 0xFFFF;

/// The answer to one request.
#[derive(Debug, Default)]
pub struct Answer {
    /// One for each SELECT.
    pub tables: Vec<Table>,
    /// The first error: later ones are its consequences.
    pub error: Option<ServerError>,
    /// It has a LOGINACK.
    pub(crate) logged_in: bool,
    /// Host and port of the server to connect to instead.
    pub(crate) redirect: Option<(String, u16)>,
    pub(crate) packet_bytes: Option<usize>,
    /// Of the rows of all tables.
    memory_bytes: usize,
}

/// The rows of one SELECT.
#[derive(Debug, Default)]
pub struct Table {
    columns: Vec<(String, Type)>,
    rows: Vec<Vec<Value>>,
    /// There are more rows than are kept.
    pub is_cut: bool,
}

/// A row, whose values are found by the names of their columns.
#[derive(Clone, Copy)]
pub struct Row<'a> {
    columns: &'a [(String, Type)],
    values: &'a [Value],
}

impl Answer {
    /// Parses the message, up to the end or to the first row that is too much.
    pub(crate) fn parse(message: &[u8]) -> Result<Answer, Fault> {
        let mut answer = Answer::default();
        let mut reader = Reader::new(message);
        while !reader.is_empty() && !answer.tables.last().is_some_and(|table| table.is_cut) {
            let token = reader.u8()?;
            answer.parse_token(token, &mut reader)?;
        }
        Ok(answer)
    }

    fn parse_token(&mut self, token: u8, reader: &mut Reader) -> Result<(), Fault> {
        match token {
            0x81 if self.tables.len() >= TABLES_MAX => {
                return Err(Fault::Protocol("it answers with more tables than were requested"));
            }
            0x81 => self.tables.push(Table { columns: columns(reader)?, ..Table::default() }),
            0xD1 | 0xD2 => {
                let table =
                    self.tables.last_mut().ok_or(Fault::Protocol("it answers rows without columns"))?;
                let row = row(&table.columns, reader, token == 0xD2)?;
                self.memory_bytes +=
                    row.iter().map(Value::memory_bytes).sum::<usize>() + size_of::<Vec<Value>>();
                table.is_cut = table.rows.len() >= ROWS_MAX || self.memory_bytes > ROWS_BYTES_MAX;
                if !table.is_cut {
                    table.rows.push(row);
                }
            }
            0xFD..=0xFF => drop(reader.take(12)?),
            0x79 => drop(reader.take(4)?),
            0xE4 => {
                let length = reader.u32()?;
                reader.take(length as usize)?;
            }
            0xAA | 0xAB | 0xAD | 0xE3 | 0xA9 => {
                let length = reader.u16()?;
                let mut content = Reader::new(reader.take(usize::from(length))?);
                match token {
                    0xAA if self.error.is_none() => self.error = Some(server_error(&mut content)?),
                    0xAD => self.logged_in = true,
                    0xE3 => self.change(&mut content)?,
                    _ => {}
                }
            }
            _ => return Err(Fault::Protocol("it answers in a form that is not understood")),
        }
        Ok(())
    }

    fn change(&mut self, content: &mut Reader) -> Result<(), Fault> {
        match content.u8()? {
            PACKET_SIZE => self.packet_bytes = content.short_text()?.parse().ok(),
            ROUTING => {
                content.u16()?;
                let protocol = content.u8()?;
                let (port, host) = (content.u16()?, content.long_text()?);
                self.redirect = (protocol == TCP).then_some((host, port));
            }
            _ => {}
        }
        Ok(())
    }
}

fn columns(reader: &mut Reader) -> Result<Vec<(String, Type)>, Fault> {
    let count = match reader.u16()? {
        NO_METADATA => 0,
        count if count > COLUMNS_MAX => return Err(Fault::Protocol("it answers with too many columns")),
        count => count,
    };
    let mut column = || {
        reader.take(6)?;
        let kind = Type::parse(reader)?;
        Ok((reader.short_text()?, kind))
    };
    (0..count).map(|_| column()).collect()
}

fn row(columns: &[(String, Type)], reader: &mut Reader, has_bitmap: bool) -> Result<Vec<Value>, Fault> {
    let bitmap = if has_bitmap { reader.take(columns.len().div_ceil(8))? } else { &[] };
    let is_null = |at: usize| bitmap.get(at / 8).is_some_and(|byte| byte >> (at % 8) & 1 == 1);
    let value = |(at, (_, kind)): (usize, &(String, Type))| match is_null(at) {
        true => Ok(Value::Null),
        false => kind.read_value(reader),
    };
    columns.iter().enumerate().map(value).collect()
}

fn server_error(content: &mut Reader) -> Result<ServerError, Fault> {
    let number = content.u32()?.cast_signed();
    // State and severity.
    content.take(2)?;
    Ok(ServerError { number, text: content.long_text()? })
}

impl Table {
    /// Its rows.
    pub fn rows(&self) -> impl Iterator<Item = Row<'_>> {
        self.rows.iter().map(|values| Row { columns: &self.columns, values })
    }
}

impl<'a> Row<'a> {
    /// Names are compared without case: the server's collation may be case-sensitive.
    fn value(&self, name: &str) -> Option<&'a Value> {
        let at = self.columns.iter().position(|(column, _)| column.eq_ignore_ascii_case(name))?;
        self.values.get(at)
    }

    /// An integer.
    pub fn int(&self, name: &str) -> Option<i64> {
        match self.value(name)? {
            Value::Int(int) => Some(*int),
            _ => None,
        }
    }

    /// An integer that is not negative.
    pub fn count(&self, name: &str) -> Option<u64> {
        self.int(name)?.try_into().ok()
    }

    /// A text.
    pub fn text(&self, name: &str) -> Option<&'a str> {
        match self.value(name)? {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Bytes.
    pub fn bytes(&self, name: &str) -> Option<&'a [u8]> {
        match self.value(name)? {
            Value::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse_hex;
    use proptest::prelude::*;

    #[test]
    fn the_answer_of_the_specifications_example_is_parsed() {
        // [MS-TDS] 4.7, SQL Batch Server Response, behind its packet header.
        let example = parse_hex(
            "81 01 00 00 00 00 00 20 00 A7 03 00 09 04 D0 00 34 03 62 00 61 00 72 00 D1 03 00 66 6F 6F
             FD 10 00 C1 00 01 00 00 00 00 00 00 00",
        );
        let answer = Answer::parse(&example).unwrap();
        let rows: Vec<_> = answer.tables[0].rows().map(|row| row.text("bar")).collect();
        assert_eq!(rows, [Some("foo")]);
        assert_eq!(answer.error, None);
    }

    #[test]
    fn a_login_acknowledgement_is_found_between_environment_changes() {
        // The database, the collation, LOGINACK of [MS-TDS] 2.2.7.14, the packet size.
        let example = parse_hex(
            "E3 1B 00 01 06 6D 00 61 00 73 00 74 00 65 00 72 00 06 6D 00 61 00 73 00 74 00 65 00 72 00
             E3 08 00 07 05 09 04 D0 00 34 00
             AD 36 00 01 72 09 00 02 16 4D 00 69 00 63 00 72 00 6F 00 73 00 6F 00 66 00 74 00 20 00 53 00 51
             00 4C 00 20 00 53 00 65 00 72 00 76 00 65 00 72 00 00 00 00 00 00 00 00 00
             E3 13 00 04 04 34 00 30 00 39 00 36 00 04 34 00 30 00 39 00 36 00
             FD 00 00 00 00 00 00 00 00 00 00 00 00",
        );
        let answer = Answer::parse(&example).unwrap();
        assert!(answer.logged_in && answer.error.is_none());
        assert_eq!(answer.packet_bytes, Some(4096));
    }

    #[test]
    fn values_that_are_null_in_the_bitmap_are_not_in_the_row() {
        // Three columns: nullable bigint, nvarchar(10), varbinary(max).
        let message = parse_hex(
            "81 03 00 00 00 00 00 01 00 26 08 01 61 00
             00 00 00 00 01 00 E7 14 00 00 00 00 00 00 01 62 00
             00 00 00 00 01 00 A5 FF FF 01 63 00
             D2 05 04 00 68 00 69 00
             D1 08 FF FF FF FF FF FF FF FF FF FF 03 00 00 00 00 00 00 00 02 00 00 00 01 02 01 00 00 00 03 00 00 00 00
             FD 10 00 C1 00 02 00 00 00 00 00 00 00",
        );
        let answer = Answer::parse(&message).unwrap();
        let rows: Vec<_> = answer.tables[0].rows().collect();
        assert_eq!((rows[0].int("a"), rows[0].text("b"), rows[0].bytes("c")), (None, Some("hi"), None));
        assert_eq!(
            (rows[1].int("A"), rows[1].text("b"), rows[1].bytes("c")),
            (Some(-1), None, Some([1, 2, 3].as_slice()))
        );
        assert_eq!(rows[1].count("a"), None, "a count is never negative");
    }

    /// COLMETADATA of columns of the type whose values take no bytes.
    fn columns_of_nothing(count: u16) -> Vec<u8> {
        let column = [0, 0, 0, 0, 0, 0, 0x1F, 0];
        [[0x81].as_slice(), &count.to_le_bytes(), &column.repeat(count.into())].concat()
    }

    #[test]
    fn a_small_message_that_would_be_a_huge_table_is_cut() {
        // A byte a row, 200 values in each: a megabyte would take 6 GB.
        let message = [columns_of_nothing(200), vec![0xD1; 1 << 20]].concat();
        let answer = Answer::parse(&message).unwrap();
        let table = &answer.tables[0];
        let taken = table.rows.len() * 200 * size_of::<Value>();
        assert!(table.is_cut && taken <= ROWS_BYTES_MAX && taken > ROWS_BYTES_MAX / 2, "{taken}");
    }

    #[test]
    fn too_many_tables_or_columns_are_refused() {
        assert!(Answer::parse(&columns_of_nothing(256)).is_ok());
        assert!(matches!(Answer::parse(&columns_of_nothing(257)), Err(Fault::Protocol(_))));
        let tables = |count| [0x81, 0xFF, 0xFF].repeat(count);
        assert_eq!(Answer::parse(&tables(16)).unwrap().tables.len(), 16);
        assert!(matches!(Answer::parse(&tables(17)), Err(Fault::Protocol(_))));
    }

    proptest! {
        #[test]
        fn any_message_is_parsed_or_refused(message in any::<Vec<u8>>(), kind in any::<u8>()) {
            let _ = Answer::parse(&message);
            let mut column = vec![0x81, 1, 0, 0, 0, 0, 0, 0, 0, kind];
            column.extend(message);
            let _ = Answer::parse(&column);
        }
    }
}
