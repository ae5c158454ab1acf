//! `headroom lab footprint`: its figures of each level agree with the engines' own views, the files and strace.

use super::{directory, is_root};
use programs::Headroom;
use serde_json::Value;
use std::fmt::Write;
use std::path::Path;
use std::process::Command;
use testbed::{MariadbServer, PostgresServer};

const ROWS: u64 = 20_000;

fn footprint(source: &str, query: &str, more: &[&str]) -> Value {
    Headroom::new().json(&[&["lab", "footprint", query, "--source", source], more].concat())
}

fn refused(source: &str, query: &str, more: &[&str]) -> String {
    let output = Headroom::new().run(&[&["lab", "footprint", query, "--source", source], more].concat());
    assert_eq!(output.status.code(), Some(3), "{query}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[track_caller]
fn figure(footprint: &Value, key: &str) -> u64 {
    footprint[key].as_u64().unwrap_or_else(|| panic!("{key}: {footprint:#}"))
}

/// "INSERT INTO numbers VALUES (1),(2),..."
fn insert() -> String {
    let mut text = String::from("INSERT INTO numbers VALUES (1)");
    (2..=ROWS).for_each(|n| write!(text, ",({n})").unwrap());
    text
}

#[test]
fn a_file_that_is_no_database_is_refused_with_its_name_the_reason_and_what_to_do() {
    let dir = directory();
    let text = dir.path().join("notes.txt");
    std::fs::write(&text, "no database, but long enough to be looked at as the header of one would be")
        .unwrap();
    let missing = dir.path().join("missing.db");
    for (path, why) in [
        (missing.as_path(), "there is no such file"),
        (text.as_path(), "no SQLite database"),
        (dir.path(), "it is a directory"),
    ] {
        let said = refused(&format!("sqlite:{}", path.display()), "SELECT 1 FROM sqlite_schema", &[]);
        assert!(said.contains(&path.display().to_string()) && said.contains(why), "{said}");
        assert!(said.contains("try: give the path of a SQLite database"), "{said}");
    }
    assert!(!missing.exists());
}

#[test]
fn a_scan_of_sqlite_is_told_by_its_file_and_by_dbstat() {
    let dir = directory();
    let path = dir.path().join("numbers.db");
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection.execute_batch(&format!("CREATE TABLE numbers (n INTEGER); {}", insert())).unwrap();
    let pages: u64 = connection
        .query_row("SELECT count(*) FROM dbstat WHERE name = 'numbers'", [], |row| row.get(0))
        .unwrap();
    drop(connection);
    let cache = everyday::PageCache::open(&path).unwrap();
    cache.write_out().unwrap();
    cache.evict().unwrap();
    let source = format!("sqlite:{}", path.display());
    let scan = footprint(&source, "SELECT n FROM numbers;", &[]);
    assert_eq!(figure(&scan, "rows"), ROWS);
    // 0 and 1 take no byte, up to 127 one, up to 32,767 two.
    assert_eq!(figure(&scan, "column_bytes"), 126 + (ROWS - 127) * 2);
    let [table] = scan["objects"].as_array().unwrap().as_slice() else { panic!("{scan:#}") };
    assert_eq!(
        (&table["name"], figure(table, "rows"), figure(table, "pages")),
        (&"numbers".into(), ROWS, pages)
    );
    // Of each record a header of two bytes.
    assert_eq!(figure(table, "record_bytes"), figure(&scan, "column_bytes") + 2 * ROWS);
    // A page of the change counter besides.
    assert!((pages..pages + 4).contains(&figure(&scan, "pages_touched")), "{pages}: {scan:#}");
    assert!((pages..pages + 4).contains(&figure(&scan, "pages_read")), "{scan:#}");
    assert!(figure(&scan, "file_read_bytes") >= pages * 4096 && figure(&scan, "file_reads") >= pages);
    if is_root() {
        let (stored, ahead) = (figure(&scan, "storage_bytes"), figure(&scan, "storage_read_ahead_bytes"));
        let size = std::fs::metadata(&path).unwrap().len();
        assert!(ahead <= stored && stored <= size, "{stored} of {size}, {ahead} ahead");
        // Pages of the file that were read before the query began are few: those of the kernel's read-ahead.
        assert!(stored + (256 << 10) >= pages * 4096, "{stored} of {pages} pages");
    }
    let point = footprint(&source, "SELECT n FROM numbers WHERE rowid = 7", &[]);
    assert_eq!(figure(&point, "rows"), 1);
    assert!(figure(&point, "pages_touched") < 8, "{point:#}");
    assert_eq!(point["client_bytes"]["unknown"], "no-operations");
    let told = Headroom::new().run(&["lab", "footprint", "SELECT n FROM numbers", "--source", &source]);
    let told = String::from_utf8_lossy(&told.stdout);
    let sent = told.lines().find(|line| line.contains("sent to the client"));
    assert!(sent.is_some_and(|line| line.ends_with("nothing is sent")), "{told}");
    assert!(refused(&source, "DELETE FROM numbers", &[]).contains("it is no SELECT"));
    let missing = format!("sqlite:{}", dir.path().join("none.db").display());
    assert!(refused(&missing, "SELECT 1", &[]).contains("there is no such file"));
}

/// Bytes that psql receives for a query, its start included.
fn received_by_psql(server: &PostgresServer, query: &str) -> Option<u64> {
    let trace = tempfile::NamedTempFile::new().unwrap();
    let mut strace = Command::new("strace");
    strace.args(["-e", "trace=recvfrom", "-o"]).arg(trace.path());
    strace.args(["psql", "-XAtq", "-d", &server.connection(), "-c", query]);
    let done = strace.output().ok()?;
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let text = std::fs::read_to_string(trace.path()).unwrap();
    let returned = text.lines().filter_map(|line| line.rsplit_once(" = ")?.1.parse::<u64>().ok());
    Some(returned.sum())
}

#[test]
fn a_scan_of_postgres_is_told_by_its_relation_and_sent_as_psql_receives_it() {
    let Some(server) = PostgresServer::start(15) else { return };
    let series = format!("INSERT INTO numbers SELECT generate_series(1, {ROWS})");
    server.sql(&format!("CREATE TABLE numbers (n integer NOT NULL); {series}"));
    server.sql("VACUUM ANALYZE numbers");
    let pages: u64 = server.sql("SELECT pg_relation_size('numbers') / 8192").parse().unwrap();
    let source = format!("postgres:{}", server.connection());
    let (all, few) = ("SELECT n FROM numbers", "SELECT n, n AS again FROM numbers WHERE n <= 10");
    let scan = footprint(&source, all, &[]);
    assert_eq!((figure(&scan, "rows"), figure(&scan, "column_bytes")), (ROWS, 4 * ROWS));
    assert_eq!(figure(&scan, "rows_examined"), ROWS);
    assert_eq!(
        (figure(&scan, "pages_touched"), figure(&scan, "touched_bytes")),
        (pages, pages * 8192),
        "{scan:#}"
    );
    assert!(figure(&scan, "pages_read") <= pages);
    let [table] = scan["objects"].as_array().unwrap().as_slice() else { panic!("{scan:#}") };
    assert_eq!(
        (&table["name"], figure(table, "rows"), figure(table, "pages")),
        (&"public.numbers".into(), ROWS, pages)
    );
    let filtered = footprint(&source, few, &[]);
    assert_eq!((figure(&filtered, "rows"), figure(&filtered, "rows_examined")), (10, ROWS));
    assert_eq!(figure(&filtered, "column_bytes"), 80);
    match (received_by_psql(&server, all), received_by_psql(&server, few)) {
        (Some(all), Some(few)) => {
            assert_eq!(figure(&scan, "client_bytes") - figure(&filtered, "client_bytes"), all - few);
        }
        _ => println!("skipped: no strace here"),
    }
    if is_root() {
        assert!(figure(&scan, "storage_read_ahead_bytes") <= figure(&scan, "storage_bytes"));
    }
    for writing in ["DELETE FROM numbers RETURNING n", "SELECT 1; DROP TABLE numbers", "DROP TABLE numbers"] {
        refused(&source, writing, &[]);
    }
    assert_eq!(server.sql("SELECT count(*) FROM numbers"), ROWS.to_string());
}

#[test]
fn a_scan_of_mariadb_is_told_by_its_counters() {
    let Some(server) = MariadbServer::start(None, &[]) else { return };
    server.sql(&format!(
        "CREATE DATABASE shop; USE shop; CREATE TABLE numbers (n INT NOT NULL) ENGINE = InnoDB; \
         INSERT INTO numbers SELECT seq FROM seq_1_to_{ROWS}; ANALYZE TABLE numbers"
    ));
    let (source, database) = (server.url(), ["--database", "shop"]);
    let scan = footprint(&source, "SELECT n FROM numbers", &database);
    assert_eq!((figure(&scan, "rows"), figure(&scan, "column_bytes")), (ROWS, 4 * ROWS));
    assert!((ROWS..ROWS + 10).contains(&figure(&scan, "rows_examined")), "{scan:#}");
    let [table] = scan["objects"].as_array().unwrap().as_slice() else { panic!("{scan:#}") };
    assert_eq!(table["name"], "shop.numbers");
    assert!(figure(&scan, "pages_touched") > ROWS * 4 / figure(&scan, "page_bytes"), "{scan:#}");
    assert!(figure(&scan, "pages_read") <= figure(&scan, "pages_touched"));
    // A row is a packet of four bytes, and the digits of its number with their length.
    let digits: u64 = (1..=ROWS).map(|n| n.to_string().len() as u64).sum();
    let (sent, at_least) = (figure(&scan, "client_bytes"), digits + ROWS * 5);
    assert!((at_least..at_least + 300).contains(&sent), "{sent} of {at_least}");
    assert!(scan["notes"].to_string().contains("all sessions"));
    // Its files are open for direct I/O: what it reads in advance is its own doing, and not the kernel's.
    server.sql(
        "USE shop; CREATE TABLE wide (n INT NOT NULL, body VARBINARY(1000) NOT NULL) ENGINE = InnoDB; \
         INSERT INTO wide SELECT seq, REPEAT('x', 1000) FROM seq_1_to_40000; SET GLOBAL innodb_log_checkpoint_now = ON",
    );
    if is_root() && server.sql("SELECT @@innodb_flush_method").starts_with("O_DIRECT") {
        let larger = footprint(&source, "SELECT n FROM wide", &database);
        assert!(figure(&larger, "storage_bytes") > 16 << 20, "more than its cache holds: {larger:#}");
        assert_eq!(figure(&larger, "storage_read_ahead_bytes"), 0, "{larger:#}");
    }
    let out = format!("SELECT n FROM numbers INTO OUTFILE '{}/stolen'", server.data_directory().display());
    for writing in ["DELETE FROM numbers", "DROP TABLE numbers", &out] {
        refused(&source, writing, &database);
    }
    assert!(!Path::new(&format!("{}/stolen", server.data_directory().display())).exists());
    assert_eq!(server.sql("SELECT count(*) FROM shop.numbers"), ROWS.to_string());
}
