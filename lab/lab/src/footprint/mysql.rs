use super::{Reads, empty_footprint};
use crate::Error;
use collect::mysql::Client;
use experiments::{Footprint, ObjectFootprint};
use filestats::{Figure, Reason};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Variables of the session, and InnoDB's, which count for the whole server.
const STATUS: &str = "SHOW SESSION STATUS WHERE Variable_name IN ('Bytes_sent', 'Rows_read', \
    'Innodb_buffer_pool_read_requests', 'Innodb_pages_read', 'Innodb_buffer_pool_read_ahead', 'Innodb_page_size', \
    'Handler_read_first', 'Handler_read_key', 'Handler_read_last', 'Handler_read_next', 'Handler_read_prev', \
    'Handler_read_rnd', 'Handler_read_rnd_next')";
const UNKNOWN: Figure<u64> = Figure::unknown(Reason::NotCounted);

const TINY: u8 = 1;
const SHORT: u8 = 2;
const LONG: u8 = 3;
const FLOAT: u8 = 4;
const DOUBLE: u8 = 5;
const TIMESTAMP: u8 = 7;
const LONGLONG: u8 = 8;
const INT24: u8 = 9;
const DATE: u8 = 10;
const TIME: u8 = 11;
const DATETIME: u8 = 12;
const YEAR: u8 = 13;

type Status = BTreeMap<String, u64>;

pub(super) fn footprint(connection: &str, query: &str, database: Option<&str>) -> Result<Footprint, Error> {
    let mut client = Client::connect(connection)?;
    let wrong = |why: &str| Error::Query { on: "the server".into(), why: why.into() };
    if let Some(database) = database {
        client.use_database(database)?;
    }
    // The server itself refuses writes.
    client.execute(&["START TRANSACTION READ ONLY"])?;
    let statement = client.prepare(query)?;
    // SELECT ... INTO a file has none.
    if statement.columns == 0 {
        return Err(wrong("it is no SELECT"));
    }
    if statement.parameters > 0 {
        return Err(wrong("it has parameters: give their values"));
    }
    let reads = Reads::begin(client.process);
    // Twice: the second one includes the bytes that the answer to the first sent.
    let (first, before) = (status(&mut client)?, status(&mut client)?);
    let (mut rows, mut column_bytes) = (0, 0);
    client.for_each_row(query, |columns, row| {
        rows += 1;
        let values = columns.iter().zip(row);
        column_bytes += values.map(|(column, value)| value_bytes(column.type_code, value)).sum::<u64>();
    })?;
    let after = status(&mut client)?;
    let grew = |name: &str, from: &Status, to: &Status| Some(to.get(name)?.saturating_sub(*from.get(name)?));
    let grown = |name: &str| grew(name, &before, &after).map_or(UNKNOWN, Figure::Known);
    let mut footprint = empty_footprint(query, after.get("innodb_page_size").copied().unwrap_or(16_384));
    reads.end(&mut footprint)?;
    footprint.rows = rows;
    footprint.column_bytes = Figure::Known(column_bytes);
    footprint.rows_examined = match grown("rows_read") {
        Figure::Known(rows) => Figure::Known(rows),
        // MySQL has no sum: rows requested from handlers, the end of each scan included.
        Figure::Unknown { .. } => {
            let names = after.keys().filter(|name| name.starts_with("handler_read_"));
            names.map(|name| grown(name)).reduce(|a, b| a.zip(b, u64::saturating_add)).unwrap_or(UNKNOWN)
        }
    };
    footprint.pages_touched = grown("innodb_buffer_pool_read_requests");
    footprint.pages_read = grown("innodb_pages_read");
    footprint.pages_read_ahead = grown("innodb_buffer_pool_read_ahead");
    let status_bytes = grew("bytes_sent", &first, &before).unwrap_or(0);
    footprint.client_bytes = grown("bytes_sent").map(|sent| sent.saturating_sub(status_bytes));
    footprint.notes.push(
        "pages are those of all sessions of the server in that time; bytes sent are right to a few bytes"
            .into(),
    );
    footprint.objects = objects(&mut client, query, footprint.page_bytes)?;
    client.execute(&["ROLLBACK"])?;
    Ok(footprint)
}

fn status(client: &mut Client) -> Result<Status, Error> {
    let number = |row: Vec<String>| Some((row[0].to_ascii_lowercase(), row[1].parse().ok()?));
    Ok(client.query(STATUS, 2)?.into_iter().filter_map(number).collect())
}

/// Bytes of a value in a row ("Data Type Storage Requirements" of the manual) of the type MYSQL_TYPE_... (field_types.h);
/// texts and decimals count as sent.
fn value_bytes(type_code: u8, value: Option<&[u8]>) -> u64 {
    let Some(sent) = value else { return 0 };
    match type_code {
        TINY | YEAR => 1,
        SHORT => 2,
        INT24 | DATE | TIME => 3,
        LONG | FLOAT | TIMESTAMP => 4,
        DATETIME => 5,
        LONGLONG | DOUBLE => 8,
        _ => sent.len() as u64,
    }
}

/// The tables that EXPLAIN names, if the name is unambiguous, with the server's own statistics.
fn objects(client: &mut Client, query: &str, page_bytes: u64) -> Result<Vec<ObjectFootprint>, Error> {
    let mut names = Vec::new();
    client.for_each_row(&format!("EXPLAIN {query}"), |columns, row| {
        let at = columns.iter().position(|column| column.name == "table");
        names.extend(at.and_then(|at| row[at]).map(|name| String::from_utf8_lossy(name).into_owned()));
    })?;
    names.sort();
    names.dedup();
    let mut objects = Vec::new();
    for name in names {
        let sized = format!(
            "SELECT TABLE_SCHEMA, TABLE_ROWS, DATA_LENGTH FROM information_schema.TABLES WHERE TABLE_NAME = {} AND \
             TABLE_TYPE = 'BASE TABLE' AND (TABLE_SCHEMA = DATABASE() OR DATABASE() IS NULL)",
            literal(&name)
        );
        if let [found] = client.query(&sized, 3)?.as_slice() {
            let known = |figure: &str| figure.parse().map_or(UNKNOWN, Figure::Known);
            let bytes = known(&found[2]);
            objects.push(ObjectFootprint {
                name: format!("{}.{name}", found[0]),
                rows: known(&found[1]),
                record_bytes: UNKNOWN,
                pages: bytes.map(|bytes| bytes / page_bytes.max(1)),
                bytes,
            });
        }
    }
    Ok(objects)
}

/// A text that is the same in every SQL mode.
fn literal(text: &str) -> String {
    text.bytes().fold("_utf8mb4 0x".into(), |mut literal, byte| {
        let _ = write!(literal, "{byte:02x}");
        literal
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const VAR_STRING: u8 = 253;

    #[test]
    fn a_number_has_the_bytes_of_its_type_and_a_text_its_length() {
        assert_eq!(value_bytes(LONG, Some(b"2500000")), 4);
        assert_eq!(value_bytes(LONGLONG, Some(b"1")), 8);
        assert_eq!(value_bytes(VAR_STRING, Some(b"four")), 4);
        assert_eq!(value_bytes(LONG, None), 0);
    }
}
