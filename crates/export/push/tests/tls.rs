//! https, against OpenSSL's server with a certificate of our own.

use metrics::{AgentState, Identity};
use push::{Destination, Protocol, StateChange, start};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A certificate for 127.0.0.1 that signs itself; whether one can be had.
fn certificate(dir: &Path) -> bool {
    let mut command = Command::new("openssl");
    command.args([
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
        "-days",
        "2",
    ]);
    command.args(["-subj", "/CN=headroom test", "-addext", "subjectAltName=IP:127.0.0.1"]);
    command.args(["-addext", "basicConstraints=critical,CA:FALSE"]);
    command.arg("-keyout").arg(dir.join("key")).arg("-out").arg(dir.join("cert"));
    command.stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// It prints what it is sent, and sends what it is given.
fn serve(dir: &Path, port: u16) -> Child {
    let mut command = Command::new("openssl");
    command.args(["s_server", "-quiet", "-accept", &port.to_string()]);
    command.arg("-key").arg(dir.join("key")).arg("-cert").arg(dir.join("cert"));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
}

#[test]
fn a_certificate_is_checked_and_a_private_one_is_accepted_where_it_is_named() {
    let dir = tempfile::tempdir().unwrap();
    if !certificate(dir.path()) {
        println!("skipped: openssl makes no certificate here");
        return;
    }
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut server = serve(dir.path(), port);
    let (report, changes) = channel();
    let url = format!("https://127.0.0.1:{port}/api/v1/write");
    let to = Destination::new(Protocol::RemoteWrite, &url, Some("basic me:sesame".parse().unwrap())).unwrap();
    let every = Duration::from_millis(200);
    start(to, Arc::new(Mutex::new(AgentState::default())), every, Identity::default(), move |what| {
        drop(report.send(what.clone()));
    })
    .unwrap();
    let next = || changes.recv_timeout(Duration::from_secs(30)).unwrap();
    let mut told = next();
    let began = Instant::now();
    while !told.to_string().contains("certificate") {
        assert!(began.elapsed() < Duration::from_secs(20), "{told}");
        told = next();
    }
    assert!(matches!(&told, StateChange::Failing { why, .. } if why.contains("SSL_CERT_FILE")), "{told}");
    assert!(!told.to_string().contains("sesame"), "{told}");

    // SAFETY: the certificates are looked up by the push thread at its next try, in a second; no other thread of this
    // process reads or writes the environment now.
    unsafe { std::env::set_var("SSL_CERT_FILE", dir.path().join("cert")) };
    let mut request = Vec::new();
    let mut output = server.stdout.take().unwrap();
    let mut part = [0; 4096];
    while !request.windows(4).any(|four| four == b"\r\n\r\n") {
        let bytes = output.read(&mut part).unwrap();
        assert!(bytes > 0, "the server ended");
        request.extend(&part[..bytes]);
    }
    let head = String::from_utf8_lossy(&request).to_lowercase();
    assert!(head.contains("post /api/v1/write") && head.contains("authorization: basic "), "{head}");
    let answer = b"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n";
    server.stdin.as_mut().unwrap().write_all(answer).unwrap();
    let again = next();
    assert!(matches!(again, StateChange::Again { .. }), "{again}");
    server.kill().unwrap();
    server.wait().unwrap();
}
