//! Situations of users besides the good case: wrong arguments, storage that is full, forbidden or broken, an end by
//! kill or Ctrl-C. Each time: the exit code, the lines that say what to do, and that nothing of the user's has changed
//! and nothing is left behind.

mod broken_storage;
mod clock;
mod ended;
mod hostile_text;
mod limits;
mod matrix;
mod others_data;
mod places;
mod running;
mod stalls;
mod streams;
mod targets;
mod usage;
mod watching;

use programs::{Finished, Headroom, Started, nothing_left, text, wait_until};

/// Runs it to its end with the pieces of a command line.
fn headroom(headroom: &Headroom, arguments: &[&str]) -> Finished {
    Finished::from_output(&headroom.run(arguments))
}

/// The history is whole; returns how many test files it says are still there.
#[track_caller]
fn test_files_on_record(headroom: &Headroom) -> i64 {
    let history = rusqlite::Connection::open(headroom.history()).unwrap();
    let check: String = history.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(check, "ok");
    let query = "SELECT count(*) FROM test_files WHERE removed_unix_ns IS NULL";
    history.query_row(query, [], |row| row.get(0)).unwrap()
}
