//! The rows of `commits` in SQLite, through its C library: `commits_sqlite DIR one|bulk [ROWS]`, a line of JSON.
//! WAL, `synchronous=FULL`, one prepared statement, run once a row; `one` commits every row.

use rusqlite::{Connection, params};
use std::path::Path;
use std::time::Instant;

const ROW_BYTES: usize = 200;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [directory, what, rest @ ..] = &arguments[..] else {
        return Err("usage: commits_sqlite DIR one|bulk [ROWS]".into());
    };
    let rows: u32 = rest.first().map_or(Ok(15_000), |text| text.parse())?;
    let bulk = match what.as_str() {
        "one" => false,
        "bulk" => true,
        other => return Err(format!("there is no measurement '{other}'").into()),
    };
    let place = Path::new(directory).join(format!("commits-sqlite-{}", std::process::id()));
    std::fs::create_dir(&place)?;
    let seconds = measure(&place, bulk, rows)?;
    println!("{{\"what\": \"sqlite {what}\", \"rows\": {rows}, \"seconds\": {seconds:.6}}}");
    std::fs::remove_dir_all(&place)?;
    Ok(())
}

fn measure(place: &Path, bulk: bool, rows: u32) -> rusqlite::Result<f64> {
    let db = Connection::open(place.join("rows.db"))?;
    let mode: String = db.query_row("PRAGMA journal_mode=WAL", [], |row| row.get(0))?;
    assert_eq!(mode, "wal", "SQLite writes a log ahead");
    db.execute_batch(
        "PRAGMA synchronous=FULL; CREATE TABLE rows(key INTEGER PRIMARY KEY, value BLOB NOT NULL)",
    )?;
    let mut insert = db.prepare("INSERT INTO rows VALUES (?, ?)")?;
    let begun = Instant::now();
    if bulk {
        db.execute_batch("BEGIN")?;
    }
    for row in 0..rows {
        insert.execute(params![row, &[row as u8; ROW_BYTES][..]])?;
    }
    if bulk {
        db.execute_batch("COMMIT")?;
    }
    Ok(begun.elapsed().as_secs_f64())
}
