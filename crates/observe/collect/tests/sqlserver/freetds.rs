use super::*;
use std::io::Write;
use std::process::{Command, Stdio};

/// FreeTDS' client reads the same from the responder as the source: the source does not only match its own test server.
#[test]
fn another_client_reads_the_same_figures_from_the_responder() {
    let responder = server(Version::V2014);
    take_snapshot(&mut open(&responder));
    let requests = responder.state().requests.clone();
    let files = requests.iter().find(|sql| sql.contains("virtual_file_stats")).unwrap();
    let client = Command::new("tsql")
        .args([
            "-H",
            "127.0.0.1",
            "-p",
            &responder.port.to_string(),
            "-U",
            "watcher",
            "-P",
            PASSWORD,
            "-o",
            "q",
        ])
        .env("TDSVER", "7.4")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut client) = client else { return println!("skipped: no tsql (Debian: freetds-bin)") };
    let mut input = client.stdin.take().unwrap();
    writeln!(input, "{files}\nGO\nquit").unwrap();
    drop(input);
    let done = client.wait_with_output().unwrap();
    let out = String::from_utf8_lossy(&done.stdout);
    let rows: Vec<Vec<&str>> = out.lines().map(|line| line.split('\t').collect()).collect();
    let text = format!("{out}{}", String::from_utf8_lossy(&done.stderr));
    let header = rows.iter().find(|row| row.contains(&"num_of_reads")).unwrap_or_else(|| panic!("{text}"));
    let row = |end: &str| rows.iter().find(|row| row.iter().any(|cell| cell.ends_with(end))).expect(&text);
    let cell = |end: &str, column: &str| {
        row(end)[header.iter().position(|name| *name == column).unwrap()].to_owned()
    };
    let expected = [
        ("database_id", "5"),
        ("sample_ms", "90000000"),
        ("num_of_reads", "1000"),
        ("num_of_bytes_read", "8192000"),
        ("io_stall_read_ms", "2500"),
        ("size_on_disk_bytes", "5000000000000"),
        ("io_stall_queued_read_ms", "300"),
        ("started", "2026-11-20T08:00:00.123"),
        ("file_guid", "6F9619FF-8B86-D011-B42D-00C04FC964FF"),
        ("physical_name", "D:\\data\\shop.mdf"),
    ];
    for (column, value) in expected {
        assert_eq!(cell("shop.mdf", column), value, "{column}");
    }
    // The second row comes as NBCROW.
    assert_eq!(
        (cell("shop.ldf", "num_of_writes"), cell("shop.ldf", "file_guid")),
        ("90".into(), "NULL".into())
    );
    let login = responder.state().logins.pop().unwrap();
    assert_eq!((login.user.as_str(), login.password.as_str()), ("watcher", PASSWORD));
}
