//! Runs a workload through the shim, then prints the shim's counters, one line per file:
//! `kind reads bytes writes bytes syncs truncates path`, separated by tabs.

use rusqlite::{Connection, OpenFlags, Result, ffi};
use sqlite_vfs::{Publish, Registry, SqliteFunctions, VFS_NAME, register};
use std::path::Path;

/// Runs in the child process. Modes: wal, delete, attached, threads, cut.
pub fn run(mode: &str, dir: &Path) -> Result<()> {
    let registry = shim();
    match mode {
        "wal" | "delete" => everyday(&open(&dir.join("main.db"), mode)?, 3_000)?,
        "attached" => attached(dir)?,
        "threads" => threads(dir)?,
        "cut" => cut(dir)?,
        other => panic!("'{other}' is not a mode"),
    }
    // The test harness may have printed part of a line.
    println!();
    for file in registry.files() {
        let (counters, details) = (&file.counters, &file.details);
        let syncs = counters.sync.known().map_or(0, |sync| sync.count);
        println!(
            "{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}",
            file.kind,
            counters.read.count,
            counters.read.bytes,
            counters.write.count,
            counters.write.bytes,
            syncs,
            details.truncates,
            file.path.display()
        );
    }
    Ok(())
}

fn shim() -> &'static Registry {
    let (find, register_vfs) = (ffi::sqlite3_vfs_find as _, ffi::sqlite3_vfs_register as _);
    // SAFETY: these are the two functions.
    let functions = unsafe { SqliteFunctions::from_addresses(find, register_vfs) };
    // SAFETY: they are those of the SQLite in this program.
    unsafe { register(functions, Publish::Private, false) }.expect("sqlite has a default vfs")
}

fn open(path: &Path, journal_mode: &str) -> Result<Connection> {
    let database = Connection::open_with_flags_and_vfs(path, OpenFlags::default(), VFS_NAME)?;
    database.busy_timeout(std::time::Duration::from_secs(60))?;
    // A small cache, so that reads and spills reach the files.
    database.execute_batch(&format!("PRAGMA journal_mode={journal_mode}; PRAGMA cache_size=40;"))?;
    Ok(database)
}

/// Small transactions, point reads, a sort that spills, an index built and rebuilt, a vacuum.
fn everyday(database: &Connection, operations: u32) -> Result<()> {
    database.execute_batch("CREATE TABLE sale(id INTEGER PRIMARY KEY, customer INTEGER, note TEXT)")?;
    for i in 0..operations {
        let customer = i.wrapping_mul(2_654_435_761) % 1_000;
        match i % 5 {
            0..=2 => database
                .execute("INSERT INTO sale(customer, note) VALUES (?1, hex(randomblob(200)))", [customer])?,
            3 => database.execute("UPDATE sale SET note = upper(note) WHERE id = ?1", [i / 2])?,
            _ => {
                let sql = "SELECT count(*) FROM sale WHERE id BETWEEN ?1 AND ?1 + 20";
                database.query_row(sql, [customer], |row| row.get::<_, usize>(0))?
            }
        };
    }
    database.execute_batch(
        "INSERT INTO sale(customer, note) SELECT customer, note FROM sale;
         CREATE INDEX sale_by_note ON sale(note, customer);
         REINDEX;
         CREATE TEMP TABLE sorted AS SELECT note FROM sale ORDER BY note DESC;
         DELETE FROM sale WHERE id % 3 = 0;
         PRAGMA wal_checkpoint(TRUNCATE);
         VACUUM;",
    )
}

/// Transactions over two databases, which need super-journals.
fn attached(dir: &Path) -> Result<()> {
    let database = open(&dir.join("main.db"), "delete")?;
    database.execute("ATTACH ?1 AS other", [dir.join("other.db").to_str()])?;
    database.execute_batch("CREATE TABLE main.a(x); CREATE TABLE other.b(x)")?;
    for i in 0..30 {
        database
            .execute_batch(&format!("BEGIN; INSERT INTO a VALUES({i}); INSERT INTO b VALUES({i}); COMMIT"))?;
    }
    Ok(())
}

/// Connections of one database in several threads.
fn threads(dir: &Path) -> Result<()> {
    let path = dir.join("main.db");
    open(&path, "wal")?.execute_batch("CREATE TABLE sale(id INTEGER PRIMARY KEY, note TEXT)")?;
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..4)
            .map(|worker| {
                let path = &path;
                scope.spawn(move || -> Result<()> {
                    let database = open(path, "wal")?;
                    for i in 0..300 {
                        database.execute("INSERT INTO sale(note) VALUES (hex(randomblob(500)))", [])?;
                        let id = i * (worker + 1);
                        let sql = "SELECT count(*) FROM sale WHERE id > ?1";
                        database.query_row(sql, [id], |row| row.get::<_, i64>(0))?;
                    }
                    Ok(())
                })
            })
            .collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("a worker panicked"))
    })
}

/// A database that was truncated within its last page: the read of that page is short.
fn cut(dir: &Path) -> Result<()> {
    let path = dir.join("main.db");
    let fill = "CREATE TABLE a(x); INSERT INTO a VALUES (zeroblob(400000))";
    open(&path, "delete")?.execute_batch(fill)?;
    let file = std::fs::File::options().write(true).open(&path).expect("it was just made");
    let length = file.metadata().expect("it is open").len();
    file.set_len(length - 1_000).expect("it is writable");
    let read = open(&path, "delete")?.query_row("SELECT hex(x) FROM a", [], |row| row.get::<_, String>(0));
    assert!(read.is_err(), "SQLite reports the short read of an overflow page");
    Ok(())
}
