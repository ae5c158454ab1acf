//! Where results are to go: found out before a minute of measuring, not after.

use super::{headroom, nothing_left, text};
use programs::Headroom;
use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

#[test]
fn a_history_that_is_not_ours_is_refused_and_unchanged() {
    let ours = Headroom::new();
    let dir = tempfile::tempdir().unwrap();
    let notes = dir.path().join("notes.txt");
    fs::write(&notes, "my notes").unwrap();
    let shop = dir.path().join("shop.db");
    rusqlite::Connection::open(&shop).unwrap().execute_batch("CREATE TABLE goods (name)").unwrap();
    let before = fs::read(&shop).unwrap();
    let pipe = dir.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let cases = [
        (&notes, "the file is no SQLite database", "or move this one away"),
        (&shop, "that Headroom did not make", "or move this one away"),
        (&pipe, "it is a pipe", "name a file with --history"),
        (&dir.path().to_path_buf(), "it is a directory, not a file", "name a file with --history"),
        (&notes.join("history.db"), "Not a directory", "name another file with --history"),
    ];
    for (history, why, remedy) in cases {
        for arguments in [&["measure", text(dir.path())][..], &["check", text(dir.path())], &["history"]] {
            let mut command = Command::new(ours.command(&[]).get_program());
            let output = command.arg("--history").arg(history).args(arguments).output().unwrap();
            super::Finished::from_output(&output)
                .refused(3, &[text(history), why, &format!("  try: {remedy}")[..7], remedy]);
        }
    }
    assert_eq!(fs::read_to_string(&notes).unwrap(), "my notes");
    assert_eq!(fs::read(&shop).unwrap(), before);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 3, "nothing was put beside them");
}

#[test]
fn a_page_that_cannot_be_written_is_refused_before_measuring() {
    let ours = Headroom::new();
    let dir = tempfile::tempdir().unwrap();
    let notes = dir.path().join("notes.html");
    fs::write(&notes, "<p>my notes").unwrap();
    let cases = [
        (notes.clone(), "the file is not one of Headroom's"),
        (dir.path().to_path_buf(), "it is a directory"),
        (dir.path().join("no/where.html"), "No such file or directory"),
        (notes.join("below.html"), "Not a directory"),
        ("/proc/page.html".into(), "page.html: "),
    ];
    for (page, why) in &cases {
        for command in ["measure", "check"] {
            let began = Instant::now();
            let said = headroom(&ours, &[command, text(dir.path()), "--html", text(page)]);
            said.refused(3, &["cannot write the page", why, "\n  try: name "]);
            assert!(began.elapsed() < Duration::from_secs(2));
        }
    }
    assert_eq!(fs::read_to_string(&notes).unwrap(), "<p>my notes");
    nothing_left(dir.path());
}
