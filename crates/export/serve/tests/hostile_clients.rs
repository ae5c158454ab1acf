//! Silent, slow and numerous clients on real sockets: none delays the answer to another.

use metrics::Totals;
use serve::{CONNECTIONS_MAX, PATIENCE};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// More than the buffers of a connection's two sockets hold.
const ANSWER_BYTES: usize = 8 << 20;
/// A well-behaved client has its answer within this time, also from a program that is not optimised.
const PROMPT: Duration = Duration::from_secs(5);
const REQUEST: &[u8] = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n";

fn server() -> SocketAddr {
    let mut totals = Totals::default();
    let name = "x".repeat(4096);
    // Each source is named in two series.
    for source in 0..ANSWER_BYTES / name.len() / 2 {
        totals.failed(&format!("{source}{name}"));
    }
    serve::metrics("127.0.0.1:0".parse().unwrap(), Arc::new(Mutex::new(totals))).unwrap()
}

/// Many clients that send this and nothing more, and read nothing.
fn clients(server: SocketAddr, sent: &[u8]) -> Vec<TcpStream> {
    let client = |_| {
        let mut stream = TcpStream::connect(server).unwrap();
        stream.write_all(sent).unwrap();
        stream
    };
    (0..CONNECTIONS_MAX + 8).map(client).collect()
}

#[track_caller]
fn is_answered_promptly(server: SocketAddr) {
    let began = Instant::now();
    let mut stream = TcpStream::connect(server).unwrap();
    stream.set_read_timeout(Some(PROMPT)).unwrap();
    stream.write_all(REQUEST).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    assert!(answer.starts_with(b"HTTP/1.1 200") && answer.len() > ANSWER_BYTES, "{} bytes", answer.len());
    assert!(began.elapsed() < PROMPT, "answered after {:?}", began.elapsed());
}

#[test]
fn a_client_is_answered_beside_many_that_never_read() {
    let server = server();
    let _never_read = clients(server, REQUEST);
    is_answered_promptly(server);
}

#[test]
fn a_client_is_answered_beside_many_that_send_no_request_or_half_of_one() {
    let server = server();
    let _silent = clients(server, b"");
    let _half = clients(server, &REQUEST[..20]);
    is_answered_promptly(server);
}

#[test]
fn a_client_that_does_not_read_is_disconnected() {
    let server = server();
    let mut stream = TcpStream::connect(server).unwrap();
    stream.write_all(REQUEST).unwrap();
    std::thread::sleep(PATIENCE + Duration::from_secs(1));
    stream.set_read_timeout(Some(PROMPT)).unwrap();
    let mut answer = Vec::new();
    // A reset is an end too.
    let ended = stream.read_to_end(&mut answer);
    assert!(!ended.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock), "still connected");
    assert!(answer.len() < ANSWER_BYTES, "all of the answer was sent");
}
