//! Queries, and their answers as texts.
//!
//! ```text
//! count of columns | definition ... | EOF | row ... | EOF         or OK, or ERR at any place
//! ```

use super::{Fault, Reader, Wire};

const QUERY: u8 = 0x03;
const USE_DATABASE: u8 = 0x02;
const OK: u8 = 0x00;
const EOF: u8 = 0xFE;
/// A longer packet that begins so is a row.
const EOF_BYTES_MAX: usize = 8;
/// The most that MySQL and MariaDB have in a table or an answer.
const COLUMNS_MAX: u64 = 4096;
/// Rows of one answer that are kept.
pub const ROWS_MAX: usize = 100_000;
/// Memory for the rows of one answer: 100,000 files take a third of it.
const ROWS_BYTES_MAX: usize = 64 << 20;

/// A column of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// As the statement names it.
    pub name: String,
    /// MYSQL_TYPE_... of field_types.h.
    pub type_code: u8,
}

/// The values of a row as the server prints them; `None` for NULL.
pub type Row<'a> = Vec<Option<&'a [u8]>>;

impl Wire {
    /// Runs a statement that returns no rows.
    ///
    /// # Errors
    /// [`Fault`].
    pub fn execute(&mut self, sql: &str) -> Result<(), Fault> {
        self.command(QUERY, sql.as_bytes())?;
        self.receive_ok()
    }

    /// Runs a query with `columns` columns; NULL is an empty text. Rows beyond [`ROWS_MAX`] are left out.
    ///
    /// # Errors
    /// [`Fault`].
    pub fn query(&mut self, sql: &str, columns: usize) -> Result<Vec<Vec<String>>, Fault> {
        self.command(QUERY, sql.as_bytes())?;
        if self.receive_columns()?.len() != columns {
            return Err(Fault::Protocol("it answers with other columns than were requested"));
        }
        let (mut rows, mut bytes) = (Vec::new(), 0);
        self.receive_rows(columns, |row| {
            if rows.len() < ROWS_MAX {
                let text =
                    |value: Option<&[u8]>| String::from_utf8_lossy(value.unwrap_or_default()).into_owned();
                let row: Vec<String> = row.into_iter().map(text).collect();
                bytes += row.iter().map(|text| size_of::<String>() + text.len()).sum::<usize>();
                rows.push(row);
            }
            match bytes > ROWS_BYTES_MAX {
                true => Err(Fault::Protocol("its answer is longer than 64 MiB")),
                false => Ok(()),
            }
        })?;
        Ok(rows)
    }

    /// Runs a query of any columns, and hands over row by row.
    ///
    /// # Errors
    /// [`Fault`].
    pub fn for_each_row(&mut self, sql: &str, mut each: impl FnMut(&[Column], Row)) -> Result<(), Fault> {
        self.command(QUERY, sql.as_bytes())?;
        let columns = self.receive_columns()?;
        match columns.is_empty() {
            true => Ok(()),
            false => self.receive_rows(columns.len(), |row| {
                each(&columns, row);
                Ok(())
            }),
        }
    }

    /// Chooses the database of names without one.
    ///
    /// # Errors
    /// [`Fault`].
    pub fn use_database(&mut self, database: &str) -> Result<(), Fault> {
        self.command(USE_DATABASE, database.as_bytes())?;
        self.receive_ok()
    }

    pub(super) fn receive_ok(&mut self) -> Result<(), Fault> {
        match self.receive()?.first() {
            Some(&OK) => Ok(()),
            _ => Err(Fault::Protocol("it answers with rows where none were requested")),
        }
    }

    /// The columns of an answer; none if it has no rows.
    fn receive_columns(&mut self) -> Result<Vec<Column>, Fault> {
        let head = self.receive()?;
        match Reader(&head).length()? {
            Some(0) => Ok(Vec::new()),
            Some(count @ 1..=COLUMNS_MAX) => self.receive_definitions(count as usize),
            Some(_) => Err(Fault::Protocol("it answers with more than 4096 columns")),
            None => Err(Fault::Protocol("it wants a file of this machine")),
        }
    }

    /// The definitions of `count` columns, and their end.
    pub(super) fn receive_definitions(&mut self, count: usize) -> Result<Vec<Column>, Fault> {
        let mut columns = Vec::new();
        for _ in 0..count {
            columns.push(Column::parse(&self.receive()?)?);
        }
        match is_end(&self.receive()?) {
            true => Ok(columns),
            false => Err(Fault::Protocol("it answers with more columns than it announced")),
        }
    }

    fn receive_rows(
        &mut self,
        columns: usize,
        mut each: impl FnMut(Row) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        loop {
            let packet = self.receive()?;
            if is_end(&packet) {
                return Ok(());
            }
            let mut reader = Reader(&packet);
            let row = (0..columns).map(|_| reader.value()).collect::<Result<Row, Fault>>()?;
            if !reader.0.is_empty() {
                return Err(Fault::Protocol("a row of its answer is too long"));
            }
            each(row)?;
        }
    }
}

impl Column {
    /// Catalog, schema, table, table of origin, name, name of origin; a length; character set 2, display length 4, type 1.
    fn parse(packet: &[u8]) -> Result<Column, Fault> {
        let mut reader = Reader(packet);
        for _catalog_schema_table_and_origin in 0..4 {
            reader.value()?;
        }
        let name = String::from_utf8_lossy(reader.value()?.unwrap_or_default()).into_owned();
        let _origin = reader.value()?;
        let _length_character_set_and_display = reader.take(1 + 2 + 4)?;
        Ok(Column { name, type_code: reader.int(1)? as u8 })
    }
}

fn is_end(packet: &[u8]) -> bool {
    packet.first() == Some(&EOF) && packet.len() <= EOF_BYTES_MAX
}
