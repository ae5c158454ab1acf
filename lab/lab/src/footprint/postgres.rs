use super::{Reads, empty_footprint};
use crate::Error;
use collect::postgres::Client;
use experiments::{Footprint, ObjectFootprint};
use filestats::{Figure, Reason};
use serde_json::Value;
use tokio_postgres::SimpleQueryMessage;

/// Rows fetched at a time: their bytes are counted, they are not kept.
const ROWS_AT_ONCE: usize = 10_000;

pub(super) fn footprint(connection: &str, query: &str) -> Result<Footprint, Error> {
    let client = Client::connect(connection)?;
    let run = |statements: &str| client.run(async |client| client.batch_execute(statements).await);
    // A single process runs the query, so that its reads can be counted. The server itself refuses writes.
    run("BEGIN READ ONLY; SET LOCAL max_parallel_workers_per_gather = 0")?;
    let mut footprint = empty_footprint(query, client.block_bytes);

    // Only one statement can be prepared.
    let prepared = client.run(async |client| client.prepare(query).await)?;
    let columns: Vec<String> = prepared.columns().iter().map(|column| column.name().to_owned()).collect();
    if columns.is_empty() || !prepared.params().is_empty() {
        let why = if columns.is_empty() { "it is no SELECT" } else { "it has parameters: give their values" };
        return Err(Error::Query { on: "PostgreSQL".into(), why: why.into() });
    }
    let reads = Reads::begin(client.backend);
    // First, so that no earlier run has fetched its pages into the cache.
    let explained = format!("EXPLAIN (ANALYZE, BUFFERS, VERBOSE, TIMING OFF, FORMAT JSON) {query}");
    let answer = client.run(async |client| client.simple_query(&explained).await)?;
    reads.end(&mut footprint)?;
    let plan = parse_plan(&answer).unwrap_or(Value::Null);
    let blocks = |of: &str| {
        let kinds = ["Shared", "Local"].map(|kind| plan[format!("{kind} {of} Blocks")].as_u64());
        kinds.into_iter().flatten().reduce(u64::saturating_add).map_or(UNKNOWN, Figure::Known)
    };
    footprint.pages_read = blocks("Read");
    footprint.pages_touched = blocks("Hit").zip(footprint.pages_read, u64::saturating_add);
    let mut scans = Scans::default();
    scans.add(&plan, "");
    footprint.rows_examined = Figure::Known(scans.rows.round() as u64);
    for (schema, name) in scans.objects {
        footprint.objects.push(object(&client, &schema, &name, footprint.page_bytes)?);
    }

    let names: Vec<String> = (1..=columns.len()).map(|column| format!("c{column}")).collect();
    let sizes: Vec<String> =
        names.iter().map(|name| format!("coalesce(pg_column_size({name}), 0)")).collect();
    let sized = format!(
        "SELECT coalesce(sum({}), 0)::bigint FROM ({query}) AS q({})",
        sizes.join(" + "),
        names.join(", ")
    );
    let bytes = client.run(async |client| client.query_one(&sized, &[]).await?.try_get::<_, i64>(0))?;
    footprint.column_bytes = Figure::Known(bytes.unsigned_abs());

    run(&format!("DECLARE footprint NO SCROLL CURSOR FOR {query}"))?;
    let (mut rows, mut sent) = (0, 0);
    loop {
        let fetch = format!("FETCH {ROWS_AT_ONCE} FROM footprint");
        let messages = client.run(async |client| client.simple_query(&fetch).await)?;
        let fetched = messages.iter().filter_map(row_bytes).inspect(|bytes| sent += bytes).count();
        rows += fetched as u64;
        if fetched < ROWS_AT_ONCE {
            break;
        }
    }
    run("ROLLBACK")?;
    footprint.rows = rows;
    footprint.client_bytes = Figure::Known(sent + around_rows(&columns, rows));
    footprint.notes.push(
        "pages not in the server's cache may have been in the system's; the query ran three times, without parallel \
         workers: the first counted"
            .into(),
    );
    Ok(footprint)
}

const UNKNOWN: Figure<u64> = Figure::unknown(Reason::NotCounted);

/// The root of the plan in EXPLAIN's answer.
fn parse_plan(answer: &[SimpleQueryMessage]) -> Option<Value> {
    let row = answer.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.try_get(0).ok().flatten(),
        _ => None,
    })?;
    let mut explained: Value = serde_json::from_str(row).ok()?;
    Some(explained[0]["Plan"].take())
}

/// A DataRow of the protocol: a byte, its length, the number of columns, and for each a length and its text.
fn row_bytes(message: &SimpleQueryMessage) -> Option<u64> {
    let SimpleQueryMessage::Row(row) = message else { return None };
    let columns = (0..row.len()).map(|at| row.try_get(at).ok().flatten().map_or(0, str::len) as u64 + 4);
    Some(1 + 4 + 2 + columns.sum::<u64>())
}

/// RowDescription, CommandComplete ("SELECT 12") and ReadyForQuery (section 55.7 of PostgreSQL's manual).
fn around_rows(columns: &[String], rows: u64) -> u64 {
    let description = 1 + 4 + 2 + columns.iter().map(|name| name.len() as u64 + 1 + 18).sum::<u64>();
    let complete = 1 + 4 + format!("SELECT {rows}").len() as u64 + 1;
    description + complete + 1 + 4 + 1
}

/// Rows and objects that a plan's scans read.
#[derive(Default)]
struct Scans {
    rows: f64,
    /// Schema and name of tables and indexes.
    objects: Vec<(String, String)>,
}

impl Scans {
    fn add(&mut self, node: &Value, schema: &str) {
        let schema = node["Schema"].as_str().unwrap_or(schema);
        for name in ["Relation Name", "Index Name"].iter().filter_map(|key| node[*key].as_str()) {
            let object = (schema.to_owned(), name.to_owned());
            if !self.objects.contains(&object) {
                self.objects.push(object);
            }
        }
        // For a bitmap scan, only the scan of the heap examines rows.
        if node["Relation Name"].is_string() {
            let figure = |key: &str| node[key].as_f64().unwrap_or(0.0);
            let removed = figure("Rows Removed by Filter") + figure("Rows Removed by Index Recheck");
            self.rows += (figure("Actual Rows") + removed) * figure("Actual Loops");
        }
        for below in node["Plans"].as_array().into_iter().flatten() {
            self.add(below, schema);
        }
    }
}

fn object(client: &Client, schema: &str, name: &str, page_bytes: u64) -> Result<ObjectFootprint, Error> {
    let sized = "SELECT c.reltuples::bigint, pg_relation_size(c.oid) FROM pg_class c \
                 JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relname = $2";
    let row = client.run(async |client| client.query_opt(sized, &[&schema, &name]).await)?;
    let column = |at: usize| row.as_ref().and_then(|row| row.try_get::<_, i64>(at).ok());
    // -1 means unknown: never analysed.
    let count = |at: usize| column(at).and_then(|n| u64::try_from(n).ok()).map_or(UNKNOWN, Figure::Known);
    let bytes = count(1);
    Ok(ObjectFootprint {
        name: format!("{schema}.{name}"),
        rows: count(0),
        record_bytes: UNKNOWN,
        pages: bytes.map(|bytes| bytes / page_bytes.max(1)),
        bytes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_scan_examines_filtered_rows_too_in_each_loop() {
        let plan = json!({"Node Type": "Nested Loop", "Actual Rows": 4, "Actual Loops": 1, "Plans": [
            {"Node Type": "Seq Scan", "Relation Name": "orders", "Schema": "public", "Actual Rows": 2,
             "Rows Removed by Filter": 98, "Actual Loops": 1},
            {"Node Type": "Bitmap Heap Scan", "Relation Name": "lines", "Schema": "shop", "Actual Rows": 2.5,
             "Rows Removed by Index Recheck": 1, "Actual Loops": 2, "Plans": [
                {"Node Type": "Bitmap Index Scan", "Index Name": "lines_by_order", "Actual Rows": 3, "Actual Loops": 2}]}]});
        let mut scans = Scans::default();
        scans.add(&plan, "");
        assert_eq!(scans.rows, 107.0);
        let object = |schema: &str, name: &str| (schema.to_owned(), name.to_owned());
        assert_eq!(
            scans.objects,
            [object("public", "orders"), object("shop", "lines"), object("shop", "lines_by_order")]
        );
    }

    #[test]
    fn messages_around_the_rows_are_counted() {
        // T 4+2+(2+18) = 27, C 4+9 = 14 with "SELECT 7\0", Z 4+1 = 6.
        assert_eq!(around_rows(&["n".into()], 7), 27 + 14 + 6);
    }
}
