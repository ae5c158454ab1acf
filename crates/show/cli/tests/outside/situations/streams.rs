//! stdout is for the answer, stderr for what must not be missed.

use programs::{Headroom, built};
use std::process::{Command, Stdio};

#[test]
fn no_reader_is_no_panic() {
    let ours = Headroom::new();
    drop(history::History::open(&ours.history()).unwrap());
    let binary = built().join("headroom");
    for line in ["history", "history --json", "measure /no/where", "sources sqlite-extension"] {
        let script = format!(
            "{} --history {} {line} 2>&1 | true; echo ${{PIPESTATUS[0]}}",
            binary.display(),
            ours.history().display()
        );
        // Ten times, since the reader is gone before the writing only mostly.
        for _ in 0..10 {
            let output = Command::new("bash").args(["-c", &script]).output().unwrap();
            let code = String::from_utf8_lossy(&output.stdout).trim().to_string();
            assert!(code == "0" || code == "3", "{line}: {code}");
        }
    }
}

#[test]
fn an_answer_that_could_not_be_written_is_an_error() {
    let ours = Headroom::new();
    drop(history::History::open(&ours.history()).unwrap());
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = ours.command(&["history"]).stdout(full).stderr(Stdio::piped()).output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.starts_with("error: cannot write the answer to stdout: No space left"), "{stderr}");
}
