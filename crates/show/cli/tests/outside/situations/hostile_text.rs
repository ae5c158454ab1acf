//! Texts of servers and names of files that would act on the terminal they are printed on.

use super::headroom;
use programs::Headroom;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;

/// Sets the terminal's title, goes to the line's start, clears the screen and reverses what follows.
const HOSTILE: &str = "x\x1b]0;owned\x07\r\u{9b}2J\u{202e}y";
const ESCAPED: &str = r"x\u001b]0;owned\u0007\u000d\u009b2J\u202ey";

#[track_caller]
fn is_harmless(text: &str) {
    let harmful = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
    assert!(!text.contains(harmful), "{text:?}");
}

/// A PostgreSQL server that answers every login with an error of this text; its port.
fn refusing_server(text: String) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut client in listener.incoming().map_while(Result::ok) {
            let mut request = [0; 1024];
            let mut read = client.read(&mut request).unwrap_or(0);
            // Eight bytes ask for TLS, which this server has not.
            if read == 8 {
                let _ = client.write_all(b"N");
                read = client.read(&mut request).unwrap_or(0);
            }
            let fields = format!("SFATAL\0C28000\0M{text}\0\0");
            let mut answer = vec![b'E'];
            answer.extend((fields.len() as u32 + 4).to_be_bytes());
            answer.extend(fields.as_bytes());
            if read > 0 {
                let _ = client.write_all(&answer);
            }
        }
    });
    port
}

#[test]
fn an_error_of_a_server_is_printed_without_what_a_terminal_executes() {
    let ours = Headroom::new();
    let port = refusing_server(format!("{HOSTILE}\nerror: forged\n  try: sh"));
    let source = format!("postgres:host=127.0.0.1 port={port} user=u dbname=d sslmode=disable");
    let said = headroom(&ours, &["history", "capture", "--source", &source]);
    said.refused(3, &[ESCAPED]);
    is_harmless(&said.stderr);
    assert!(!said.stderr.contains("\nerror: forged"), "{}", said.stderr);
    let said = headroom(&ours, &["agent", "--record-only", "--source", &source, "--duration", "1s"]);
    assert!(said.stderr.contains(ESCAPED), "{}", said.stderr);
    is_harmless(&said.stderr);
}

#[test]
fn a_name_of_a_file_is_printed_without_what_a_terminal_executes() {
    let ours = Headroom::new();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join(HOSTILE);
    fs::write(&file, "block =".repeat(1000)).unwrap();
    let file = file.to_str().unwrap();
    for arguments in [
        &["run", "--file", file][..],
        &["history", "import", file],
        &["measure", file],
        &["storage", "clean", file],
    ] {
        let said = headroom(&ours, arguments);
        assert!(said.stderr.contains(ESCAPED), "{arguments:?}: {}", said.stderr);
        is_harmless(&said.stderr);
    }
    // As `headroom check *` passes it on.
    for arguments in [&["check", "a", HOSTILE][..], &["measure", "--size", HOSTILE], &[HOSTILE]] {
        let said = headroom(&ours, arguments);
        assert_eq!(said.code, Some(2), "{}", said.stderr);
        is_harmless(&said.stderr);
    }
    for arguments in
        [&["run", file, "--block", "512", "--duration", "100ms", "--warm-up", "0s"][..], &["history"]]
    {
        let said = headroom(&ours, arguments);
        assert_eq!(said.code, Some(0), "{}", said.stderr);
        is_harmless(&said.stdout);
    }
    // JSON has the name too, harmless in a terminal.
    let json = headroom(&ours, &["history", "--json"]);
    is_harmless(&json.stdout);
    assert!(json.stdout.contains(r"\u202e"), "{}", json.stdout);
    assert!(ours.json(&["history"]).to_string().contains('\u{202e}'));
}
