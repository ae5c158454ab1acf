//! SQLite behaves with the shim as it does without it.

use rusqlite::{Connection, OpenFlags, ffi};
use sqlite_vfs::{Publish, Registry, SqliteFunctions, VFS_NAME, register};
use std::ffi::CStr;
use std::path::Path;

fn shim() -> &'static Registry {
    let (find, register_vfs) = (ffi::sqlite3_vfs_find as _, ffi::sqlite3_vfs_register as _);
    // SAFETY: these are the two functions.
    let functions = unsafe { SqliteFunctions::from_addresses(find, register_vfs) };
    // SAFETY: they are those of the SQLite in this program.
    unsafe { register(functions, Publish::Private, false) }.unwrap()
}

fn open(path: &Path) -> Connection {
    shim();
    Connection::open_with_flags_and_vfs(path, OpenFlags::default(), VFS_NAME).unwrap()
}

fn text(database: &Connection, sql: &str) -> String {
    database.query_row(sql, [], |row| row.get(0)).unwrap()
}

#[test]
fn registering_again_gives_the_same_registry() {
    assert!(std::ptr::eq(shim(), shim()));
}

#[test]
fn the_vfs_name_shows_the_stack() {
    let dir = tempfile::tempdir().unwrap();
    let database = open(&dir.path().join("a.db"));
    database.execute_batch("CREATE TABLE a(x)").unwrap();
    let mut name: *mut std::ffi::c_char = std::ptr::null_mut();
    // SAFETY: the connection is open; SQLite returns a string to free with sqlite3_free.
    let name = unsafe {
        let out = (&raw mut name).cast();
        let code =
            ffi::sqlite3_file_control(database.handle(), c"main".as_ptr(), ffi::SQLITE_FCNTL_VFSNAME, out);
        assert_eq!(code, ffi::SQLITE_OK);
        let copy = CStr::from_ptr(name).to_owned();
        ffi::sqlite3_free(name.cast());
        copy
    };
    assert_eq!(name.to_str(), Ok("headroom/unix"));
}

#[test]
fn every_journal_mode_can_be_set_and_works() {
    for mode in ["delete", "truncate", "persist", "memory", "wal", "off"] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.db");
        let database = open(&path);
        assert_eq!(text(&database, &format!("PRAGMA journal_mode={mode}")), mode);
        database
            .execute_batch(
                "CREATE TABLE a(x); INSERT INTO a VALUES (zeroblob(90000));
                 BEGIN; INSERT INTO a VALUES (2); SAVEPOINT s; DELETE FROM a; RELEASE s; COMMIT",
            )
            .unwrap();
        assert_eq!(text(&database, "PRAGMA integrity_check"), "ok");
        drop(database);
        // One VFS reads what the other wrote.
        assert_eq!(text(&Connection::open(&path).unwrap(), "PRAGMA integrity_check"), "ok");
    }
}

#[test]
fn two_vfs_agree_on_locks_and_shared_memory() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.db");
    for mode in ["wal", "delete"] {
        let (counted, plain) = (open(&path), Connection::open(&path).unwrap());
        plain.busy_timeout(std::time::Duration::ZERO).unwrap();
        text(&counted, &format!("PRAGMA journal_mode={mode}"));
        counted
            .execute_batch("CREATE TABLE IF NOT EXISTS a(x); BEGIN IMMEDIATE; INSERT INTO a VALUES (1)")
            .unwrap();
        let refused = plain.execute("INSERT INTO a VALUES (2)", []).unwrap_err();
        assert_eq!(refused.sqlite_error_code(), Some(rusqlite::ErrorCode::DatabaseBusy));
        counted.execute_batch("COMMIT").unwrap();
        plain.execute("INSERT INTO a VALUES (2)", []).unwrap();
    }
}

#[test]
fn uri_parameters_pass_through() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a b.db");
    open(&path).execute_batch("CREATE TABLE a(x)").unwrap();
    let uri =
        format!("file:{}?mode=ro&vfs=headroom&immutable=1", path.display().to_string().replace(' ', "%20"));
    let database = Connection::open(uri).unwrap();
    assert_eq!(text(&database, "SELECT count(*) || '' FROM a"), "0");
    assert!(database.execute("INSERT INTO a VALUES (1)", []).is_err());
    let counted = shim().files().find(|file| file.path == path.canonicalize().unwrap()).unwrap();
    assert!(counted.counters.read.count > 0);
}

#[test]
fn a_database_without_a_name_is_temporary() {
    let registry = shim();
    let temp = || registry.files().next().unwrap().counters.write.bytes;
    let before = temp();
    let database = open(Path::new(""));
    database
        .execute_batch("PRAGMA cache_size=1; CREATE TABLE a(x); INSERT INTO a VALUES (zeroblob(3000000))")
        .unwrap();
    assert!(temp() >= before + 1_000_000);
}

#[test]
fn mapped_pages_are_counted_as_fetches() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.db");
    let database = open(&path);
    database
        .execute_batch(
            "CREATE TABLE a(x);
             WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)
             INSERT INTO a SELECT zeroblob(400) FROM n",
        )
        .unwrap();
    drop(database);
    let database = open(&path);
    database.execute_batch("PRAGMA mmap_size=10000000").unwrap();
    let file = || shim().files().find(|file| file.path == path.canonicalize().unwrap()).unwrap();
    let before = file();
    text(&database, "SELECT max(hex(x)) FROM a");
    let after = file();
    assert!(after.details.fetches > before.details.fetches + 90, "{after:?}");
}

#[test]
fn a_file_that_cannot_be_opened_fails_as_without_the_shim() {
    shim();
    let open = |vfs| {
        Connection::open_with_flags_and_vfs("/nowhere/a.db", OpenFlags::default(), vfs)
            .and_then(|database| database.execute_batch("CREATE TABLE a(x)"))
            .unwrap_err()
            .sqlite_error()
            .copied()
    };
    assert_eq!(open(VFS_NAME), open("unix"));
}
