//! Servers that give no answer, or not all of it.

use programs::Headroom;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

/// A server that gives each request the same answer, after a time.
fn server(answer: &'static str, after: Duration) -> String {
    server_by_headers(move |_| answer, after)
}

/// A server whose answer depends on the headers of a request, in lower case.
fn server_by_headers(
    answer: impl Fn(&str) -> &'static str + Copy + Send + 'static,
    after: Duration,
) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://127.0.0.1:{}", listener.local_addr().unwrap().port());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            std::thread::spawn(move || give(&stream.unwrap(), answer, after));
        }
    });
    url
}

fn give(mut stream: &TcpStream, answer: impl Fn(&str) -> &'static str, after: Duration) {
    let mut reader = BufReader::new(stream);
    let (mut headers, mut bytes) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) <= 2 {
            break;
        }
        let line = line.to_lowercase();
        if let Some(length) = line.strip_prefix("content-length:") {
            bytes = length.trim().parse().unwrap();
        }
        headers.push_str(&line);
    }
    let mut body = vec![0; bytes];
    let _ = reader.read_exact(&mut body);
    std::thread::sleep(after);
    let (status, body) = answer(&headers).split_once('\n').unwrap();
    let _ = write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
}

#[track_caller]
fn says(url: &str, further: &[&str], words: &[&str]) {
    let output = Headroom::new().run(&[&["fleet", "--prometheus", url], further].concat());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(3), "{said}");
    for word in words {
        assert!(said.contains(word), "no {word:?} in: {said}");
    }
    assert!(output.stdout.is_empty(), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn each_server_that_gives_no_answer_has_a_message_of_its_own() {
    let at_once = |answer| server(answer, Duration::ZERO);
    says(&at_once("429 Too Many Requests\nslow down"), &[], &["has too much to do (429)", "again later"]);
    says(&at_once("401 Unauthorized\n"), &[], &["401", "HEADROOM_PROMETHEUS_AUTH"]);
    says(&at_once("404 Not Found\n404 page not found"), &[], &["no API of Prometheus", "prefix"]);
    says(&at_once("200 OK\n<html>a page</html>"), &[], &["none of Prometheus' API", "<html>"]);
    says(&at_once("200 OK\n{\"status\":\"success\"}"), &[], &["no data"]);
    says(&at_once("302 Found\n"), &[], &["it answers 302"]);
    let refused = "422 Unprocessable\n{\"status\":\"error\",\"errorType\":\"execution\",\"error\":\"too many samples\"}";
    says(&at_once(refused), &[], &["cannot evaluate the query: too many samples", "query: "]);
    let slow = server("200 OK\n", Duration::from_secs(30));
    says(&slow, &["--timeout", "1s"], &["no answer within 1 s", "--timeout"]);
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    says(&format!("http://{gone}"), &[], &["cannot connect", "is it running"]);
}

#[test]
fn an_answer_of_a_part_of_a_cluster_is_incomplete_and_not_fine() {
    let partial = "200 OK\n{\"status\":\"success\",\"isPartial\":true,\"data\":{\"resultType\":\"vector\",\"result\":[]}}";
    let url = server(partial, Duration::ZERO);
    let output = Headroom::new().run(&["fleet", "--prometheus", &url, "--json"]);
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&answer["incomplete"], output.status.code()), (&true.into(), Some(3)));
}

#[test]
fn the_headers_of_the_arguments_are_in_each_request() {
    const EMPTY: &str = "200 OK\n{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[]}}";
    let of_the_tenant = |headers: &str| {
        let is_there = |line: &str| headers.lines().any(|one| one == line);
        match is_there("x-scope-orgid: team") && is_there("x-more: b") {
            true => EMPTY,
            false => "401 Unauthorized\nno org id",
        }
    };
    let url = server_by_headers(of_the_tenant, Duration::ZERO);
    says(&url, &["--header", "X-Scope-OrgID: others", "--header", "X-More: b"], &["401", "--header"]);
    for command in [&["fleet"][..], &["fleet", "incidents"]] {
        let headers = ["--header", "X-Scope-OrgID: team", "--header", "X-More: b"];
        let arguments = [command, &["--prometheus", &url, "--json"], &headers].concat();
        let output = Headroom::new().run(&arguments);
        let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(answer["incomplete"], false, "{}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn wrong_arguments_are_refused_without_a_credential_in_the_message() {
    let run = |arguments: &[&str], auth: &str| {
        let mut command = Headroom::new().command(arguments);
        let output = command.env("HEADROOM_PROMETHEUS_AUTH", auth).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && !said.contains("sesame"), "{said}");
        said
    };
    assert!(run(&["fleet"], "").contains("--prometheus"));
    assert!(run(&["fleet", "--prometheus", "http://me:sesame@h"], "").contains("HEADROOM_PROMETHEUS_AUTH"));
    assert!(run(&["fleet", "--prometheus", "h:9090"], "").contains("http://prometheus:9090"));
    assert!(run(&["fleet", "--prometheus", "http://h"], "sesame").contains("basic USER:PASSWORD"));
    assert!(run(&["fleet", "--prometheus", "http://h", "--label", "east"], "").contains("NAME=VALUE"));
    assert!(run(&["fleet", "--prometheus", "http://h", "--header", "east"], "").contains("NAME: VALUE"));
    assert!(run(&["fleet", "--prometheus", "http://h", "--cert", "x"], "").contains("--key"));
}
