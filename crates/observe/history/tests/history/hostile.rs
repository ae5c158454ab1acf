//! Histories that an untrusted user made: each is refused or read within a bound, and nothing in it is executed.

use crate::life::{Event, S, snapshots};
use history::{CaptureFilter, Error, History};
use rusqlite::Connection;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Longest time that a hostile file may take: the bound of a read is 2 s of processor time, and the tests share it.
const LONGEST: Duration = Duration::from_secs(20);
const CAPTURES: usize = 3;

/// A sound history, without a WAL.
fn sound() -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("history.db");
    let mut history = History::open(&path).unwrap();
    for snapshot in snapshots(&vec![(15 * S, true, vec![Event::Work(7); 3]); CAPTURES]) {
        history.save_snapshot(&snapshot, None).unwrap();
    }
    (dir, path)
}

/// Reads what `headroom history`, `intervals`, `analyze` and `incidents` read. A file that hangs its reader fails the test.
#[track_caller]
fn read(path: &Path) -> Result<(), Error> {
    let (sender, receiver) = mpsc::channel();
    let path = path.to_owned();
    let read = move || {
        let history = History::open_kept(&path)?;
        history.entries(100)?;
        for capture in history.captures(&CaptureFilter::default())?.iter().take(CAPTURES) {
            history.snapshot(capture.id)?;
        }
        history.sources()?;
        history.incidents(100)?;
        history.gaps()?;
        Ok(())
    };
    std::thread::spawn(move || drop(sender.send(read())));
    receiver.recv_timeout(LONGEST).expect("a read that ends")
}

#[track_caller]
fn change(path: &Path, statements: &str) {
    Connection::open(path).unwrap().execute_batch(statements).unwrap();
}

const ENDLESS: &str = "WITH RECURSIVE endless (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM endless)";

#[test]
fn tables_and_views_that_headroom_did_not_make_are_refused() {
    let endless_entries = format!(
        "DROP VIEW entries; CREATE VIEW entries AS {ENDLESS} SELECT 'run' AS kind, n AS id, n AS at_unix_ns, \
         'x' AS target, 'y' AS summary, NULL AS session FROM endless"
    );
    let endless_captures = format!(
        "PRAGMA foreign_keys = OFF; DROP TABLE captures; CREATE VIEW captures AS {ENDLESS} SELECT n AS id, 'x' AS source, \
         n AS taken_unix_ns, n AS clock_ns, NULL AS label, 0 AS files, 0 AS files_changed, '[]' AS notes, NULL AS complete \
         FROM endless"
    );
    let virtual_gaps = "DROP TABLE gaps; PRAGMA writable_schema = ON; INSERT INTO sqlite_schema (type, name, tbl_name, \
         rootpage, sql) VALUES ('table', 'gaps', 'gaps', 0, 'CREATE VIRTUAL TABLE gaps USING dbstat(main)')";
    let many: String = (0..2_000).map(|number| format!("CREATE TABLE t{number} (x);")).collect();
    let cases = [
        (&*endless_entries, "its entries is not"),
        (&*endless_captures, "its captures is not"),
        ("ALTER TABLE gaps ADD COLUMN x GENERATED ALWAYS AS (hex(zeroblob(1000000)))", "its gaps is not"),
        (virtual_gaps, "its gaps is not"),
        ("DROP VIEW entries", "it has no table or view entries"),
        (&*format!("BEGIN; {many} COMMIT"), "tables, views and indexes, more than"),
    ];
    for (statements, why) in cases {
        let (_dir, path) = sound();
        change(&path, statements);
        let before = fs::read(&path).unwrap();
        let began = Instant::now();
        let error = read(&path).unwrap_err();
        assert!(matches!(error, Error::ForeignSchema { .. }), "{error}");
        assert!(error.to_string().contains(why) && error.to_string().contains("history.db"), "{error}");
        assert!(error.remedy().unwrap().contains("--history"), "{error}");
        assert!(began.elapsed() < LONGEST / 2, "{:?}", began.elapsed());
        assert_eq!(fs::read(&path).unwrap(), before, "it is not written to");
    }
}

#[test]
fn a_table_or_view_that_a_user_added_hides_nothing() {
    let (_dir, path) = sound();
    change(&path, "CREATE TABLE notes (text); CREATE VIEW latest AS SELECT max(id) AS id FROM captures");
    read(&path).unwrap();
}

#[test]
fn a_trigger_of_a_file_does_nothing() {
    let (_dir, path) = sound();
    let trigger = format!(
        "CREATE TABLE filled (n); CREATE TRIGGER fill AFTER INSERT ON captures BEGIN \
         INSERT INTO filled SELECT * FROM ({ENDLESS} SELECT n FROM endless); END"
    );
    change(&path, &trigger);
    let mut history = History::open(&path).unwrap();
    let next = snapshots(&[(15 * S, true, vec![Event::Work(9); 3])]);
    history.save_snapshot(&next[0], None).unwrap();
    drop(history);
    let filled = "SELECT count(*) FROM filled";
    let filled: i64 = Connection::open(&path).unwrap().query_row(filled, [], |row| row.get(0)).unwrap();
    assert_eq!(filled, 0);
}

#[test]
fn pages_that_lead_to_each_other_over_and_over_are_cut() {
    let (_dir, path) = sound();
    let connection = Connection::open(&path).unwrap();
    let number = |query: &str| connection.query_row(query, [], |row| row.get::<_, i64>(0)).unwrap();
    let page_bytes = number("PRAGMA page_size") as u64;
    let root = number("SELECT rootpage FROM sqlite_schema WHERE name = 'captures'") as u64;
    // The content of two pages of a table of our own is replaced below.
    connection.execute_batch("CREATE TABLE spare (x); INSERT INTO spare VALUES (zeroblob(20000))").unwrap();
    let last = number("PRAGMA page_count") as u32;
    drop(connection);
    let file = File::options().read(true).write(true).open(&path).unwrap();
    let mut leaf = vec![0; page_bytes as usize];
    file.read_exact_at(&mut leaf, (root - 1) * page_bytes).unwrap();
    // Each page but the last has 121 children, which are all the next one: 200 million reads of the last.
    let levels = [root as u32, last - 3, last - 2, last - 1, last];
    for pair in levels.windows(2) {
        let page = interior_page(page_bytes as usize, pair[1]);
        file.write_all_at(&page, u64::from(pair[0] - 1) * page_bytes).unwrap();
    }
    file.write_all_at(&leaf, u64::from(last - 1) * page_bytes).unwrap();
    drop(file);
    let error = read(&path).unwrap_err();
    assert!(matches!(error, Error::TooCostly { .. }), "{error}");
    assert!(error.to_string().contains("history.db") && error.remedy().is_some(), "{error}");
}

/// An interior page of a table whose children are all one page (SQLite's file format, 1.6).
fn interior_page(bytes: usize, child: u32) -> Vec<u8> {
    const CELLS: usize = 120;
    let cell_bytes = 5;
    let mut page = vec![0; bytes];
    let begin = bytes - CELLS * cell_bytes;
    page[0] = 0x05;
    page[3..5].copy_from_slice(&(CELLS as u16).to_be_bytes());
    page[5..7].copy_from_slice(&(begin as u16).to_be_bytes());
    page[8..12].copy_from_slice(&child.to_be_bytes());
    for number in 0..CELLS {
        let at = begin + number * cell_bytes;
        page[12 + 2 * number..][..2].copy_from_slice(&(at as u16).to_be_bytes());
        page[at..at + 4].copy_from_slice(&child.to_be_bytes());
        page[at + 4] = number as u8 + 1;
    }
    page
}

#[test]
fn a_value_larger_than_any_of_ours_is_refused() {
    let (_dir, path) = sound();
    change(&path, "UPDATE captures SET label = CAST(zeroblob(70000000) AS TEXT) WHERE id = 1");
    let error = read(&path).unwrap_err();
    assert!(error.to_string().contains("too big"), "{error}");
}

#[test]
fn a_pipe_or_link_in_the_place_of_a_wal_or_journal_is_refused_at_once() {
    for suffix in ["-wal", "-journal", "-shm"] {
        let (dir, path) = sound();
        let beside = PathBuf::from(format!("{}{suffix}", path.display()));
        assert!(Command::new("mkfifo").arg(&beside).status().unwrap().success());
        let began = Instant::now();
        let error = read(&path).unwrap_err();
        assert!(matches!(&error, Error::NotAFile { path, .. } if *path == beside), "{error}");
        fs::remove_file(&beside).unwrap();
        let elsewhere = dir.path().join("elsewhere");
        fs::write(&elsewhere, "a file of mine").unwrap();
        std::os::unix::fs::symlink(&elsewhere, &beside).unwrap();
        assert!(matches!(read(&path).unwrap_err(), Error::NotAFile { .. }));
        assert_eq!(fs::read(&elsewhere).unwrap(), b"a file of mine");
        assert!(began.elapsed() < LONGEST / 2);
    }
}
