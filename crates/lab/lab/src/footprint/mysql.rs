use super::{Reads, empty_footprint};
use crate::Error;
use collect::mysql::Client;
use experiments::{Footprint, ObjectFootprint};
use filestats::{Figure, Reason};
use mysql::consts::ColumnType;
use mysql::prelude::Queryable;
use mysql::{Conn, Value};
use std::collections::BTreeMap;

/// Variables of the session, and InnoDB's, which count for the whole server.
const STATUS: &str = "SHOW SESSION STATUS WHERE Variable_name IN ('Bytes_sent', 'Rows_read', \
    'Innodb_buffer_pool_read_requests', 'Innodb_pages_read', 'Innodb_buffer_pool_read_ahead', 'Innodb_page_size', \
    'Handler_read_first', 'Handler_read_key', 'Handler_read_last', 'Handler_read_next', 'Handler_read_prev', \
    'Handler_read_rnd', 'Handler_read_rnd_next')";
const UNKNOWN: Figure<u64> = Figure::unknown(Reason::NotCounted);

type Status = BTreeMap<String, u64>;

pub(super) fn footprint(connection: &str, query: &str, database: Option<&str>) -> Result<Footprint, Error> {
    let mut client = Client::connect(connection)?;
    let wrong = |why: &str| Error::Query { on: "the server".into(), why: why.into() };
    if let Some(database) = database {
        client.run(|conn| conn.select_db(database))?;
    }
    // The server itself refuses writes.
    client.run(|conn| conn.query_drop("START TRANSACTION READ ONLY"))?;
    let statement = client.run(|conn| conn.prep(query))?;
    // SELECT ... INTO a file has none.
    if statement.columns().is_empty() {
        return Err(wrong("it is no SELECT"));
    }
    if statement.num_params() > 0 {
        return Err(wrong("it has parameters: give their values"));
    }
    let reads = Reads::begin(client.process);
    // Twice: the second one includes the bytes that the answer to the first sent.
    let (first, before) = (client.run(status)?, client.run(status)?);
    let (rows, column_bytes) = client.run(|conn| {
        let mut result = conn.query_iter(query)?;
        let (mut rows, mut bytes) = (0, 0);
        while let Some(set) = result.iter() {
            let kinds: Vec<ColumnType> =
                set.columns().as_ref().iter().map(mysql::Column::column_type).collect();
            for row in set {
                let values = row?.unwrap();
                rows += 1;
                bytes +=
                    kinds.iter().zip(&values).map(|(kind, value)| value_bytes(*kind, value)).sum::<u64>();
            }
        }
        Ok((rows, bytes))
    })?;
    let after = client.run(status)?;
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
    footprint.objects = client.run(|conn| objects(conn, query, footprint.page_bytes))?;
    client.run(|conn| conn.query_drop("ROLLBACK"))?;
    Ok(footprint)
}

fn status(conn: &mut Conn) -> Result<Status, mysql::Error> {
    let rows: Vec<(String, String)> = conn.query(STATUS)?;
    let number = |(name, value): (String, String)| Some((name.to_ascii_lowercase(), value.parse().ok()?));
    Ok(rows.into_iter().filter_map(number).collect())
}

/// Bytes of a value in a row ("Data Type Storage Requirements" of the manual); texts and decimals count as sent.
fn value_bytes(kind: ColumnType, value: &Value) -> u64 {
    let sent = match value {
        Value::NULL => return 0,
        Value::Bytes(bytes) => bytes.len() as u64,
        _ => 8,
    };
    match kind {
        ColumnType::MYSQL_TYPE_TINY | ColumnType::MYSQL_TYPE_YEAR => 1,
        ColumnType::MYSQL_TYPE_SHORT => 2,
        ColumnType::MYSQL_TYPE_INT24 | ColumnType::MYSQL_TYPE_DATE | ColumnType::MYSQL_TYPE_TIME => 3,
        ColumnType::MYSQL_TYPE_LONG | ColumnType::MYSQL_TYPE_FLOAT | ColumnType::MYSQL_TYPE_TIMESTAMP => 4,
        ColumnType::MYSQL_TYPE_DATETIME => 5,
        ColumnType::MYSQL_TYPE_LONGLONG | ColumnType::MYSQL_TYPE_DOUBLE => 8,
        _ => sent,
    }
}

/// The tables that EXPLAIN names, if the name is unambiguous, with the server's own statistics.
fn objects(conn: &mut Conn, query: &str, page_bytes: u64) -> Result<Vec<ObjectFootprint>, mysql::Error> {
    let explained: Vec<mysql::Row> = conn.query(format!("EXPLAIN {query}"))?;
    let mut names: Vec<String> = explained.iter().filter_map(|row| row.get_opt("table")?.ok()).collect();
    names.sort();
    names.dedup();
    let sized = "SELECT TABLE_SCHEMA, TABLE_ROWS, DATA_LENGTH FROM information_schema.TABLES WHERE TABLE_NAME = ? AND \
                 TABLE_TYPE = 'BASE TABLE' AND (TABLE_SCHEMA = DATABASE() OR DATABASE() IS NULL)";
    let mut objects = Vec::new();
    for name in names {
        let found: Vec<(String, Option<u64>, Option<u64>)> = conn.exec(sized, (&name,))?;
        if let [(schema, rows, bytes)] = found.as_slice() {
            let known = |figure: &Option<u64>| figure.map_or(UNKNOWN, Figure::Known);
            let bytes = known(bytes);
            objects.push(ObjectFootprint {
                name: format!("{schema}.{name}"),
                rows: known(rows),
                record_bytes: UNKNOWN,
                pages: bytes.map(|bytes| bytes / page_bytes.max(1)),
                bytes,
            });
        }
    }
    Ok(objects)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_has_the_bytes_of_its_type_and_a_text_its_length() {
        let text = |text: &str| Value::Bytes(text.into());
        assert_eq!(value_bytes(ColumnType::MYSQL_TYPE_LONG, &text("2500000")), 4);
        assert_eq!(value_bytes(ColumnType::MYSQL_TYPE_LONGLONG, &text("1")), 8);
        assert_eq!(value_bytes(ColumnType::MYSQL_TYPE_VAR_STRING, &text("four")), 4);
        assert_eq!(value_bytes(ColumnType::MYSQL_TYPE_LONG, &Value::NULL), 0);
    }
}
