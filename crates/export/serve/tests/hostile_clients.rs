//! Silent, slow and numerous clients on real sockets: none delays the answer to another.

use metrics::{AgentState, SourceState};
use page::{About, Api, Live};
use serve::{Access, CONNECTIONS_MAX, PATIENCE, Settings};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use testbed::CertificateAuthority;

/// More than the buffers of a connection's two sockets hold.
const ANSWER_BYTES: usize = 8 << 20;
/// A well-behaved client has its answer within this time, also from a program that is not optimised.
const PROMPT: Duration = Duration::from_secs(5);
const REQUEST: &[u8] = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

fn server(settings: Settings) -> SocketAddr {
    let mut state = AgentState::default();
    let name = "x".repeat(4096);
    // Each source is named in two series.
    for source in 0..ANSWER_BYTES / name.len() / 2 {
        let failing = SourceState { up: Some(false), failures: 1, ..SourceState::default() };
        state.sources.insert(format!("{source}{name}"), failing);
    }
    let about = About {
        host: String::new(),
        version: String::new(),
        started_unix_ns: 0,
        window_ns: 0,
        every_ns: 0,
        live: true,
    };
    let api = Api::new(Arc::new(Live::default()), about, "no-history".into(), None);
    let address = "127.0.0.1:0".parse().unwrap();
    let access = Access::new(settings, address, |reload| panic!("{reload:?}")).unwrap();
    serve::serve(address, access, Arc::new(Mutex::new(state)), Arc::new(api)).unwrap()
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
    let server = server(Settings::default());
    let _never_read = clients(server, REQUEST);
    is_answered_promptly(server);
}

#[test]
fn a_client_is_answered_beside_many_that_send_no_request_or_half_of_one() {
    let server = server(Settings::default());
    let _silent = clients(server, b"");
    let _half = clients(server, &REQUEST[..20]);
    is_answered_promptly(server);
}

/// Whether the server has disconnected; a reset is an end too.
fn is_disconnected(stream: &mut TcpStream) -> bool {
    stream.set_read_timeout(Some(PROMPT)).unwrap();
    match std::io::copy(stream, &mut std::io::sink()) {
        Ok(_) => true,
        Err(error) => error.kind() != std::io::ErrorKind::WouldBlock,
    }
}

#[test]
fn a_client_that_does_not_read_and_one_that_sends_its_request_slowly_are_disconnected() {
    let server = server(Settings::default());
    let mut unread = TcpStream::connect(server).unwrap();
    unread.write_all(REQUEST).unwrap();
    let mut slow = TcpStream::connect(server).unwrap();
    let began = Instant::now();
    // A byte each second: the whole request would take a minute.
    for byte in REQUEST.iter().take(PATIENCE.as_secs() as usize + 2) {
        let _ = slow.write_all(&[*byte]);
        std::thread::sleep(Duration::from_secs(1));
    }
    assert!(began.elapsed() > PATIENCE && is_disconnected(&mut slow), "the slow one is still connected");
    let mut answer = Vec::new();
    unread.set_read_timeout(Some(PROMPT)).unwrap();
    let ended = unread.read_to_end(&mut answer);
    assert!(!ended.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock), "still connected");
    assert!(answer.len() < ANSWER_BYTES, "all of the answer was sent");
}

#[test]
fn a_client_that_never_ends_its_handshake_is_disconnected() {
    let dir = tempfile::tempdir().unwrap();
    let Some(authority) = CertificateAuthority::new(dir.path(), "authority") else { return };
    authority.make_certificate("server");
    let config = dir.path().join("web.yml");
    std::fs::write(&config, "tls_server_config: {cert_file: server.crt, key_file: server.key}").unwrap();
    let server = server(Settings { web_config: Some(config), ..Settings::default() });
    let mut silent = TcpStream::connect(server).unwrap();
    let mut half = TcpStream::connect(server).unwrap();
    // The begin of a record of 512 bytes.
    half.write_all(&[0x16, 3, 1, 2, 0, 1]).unwrap();
    std::thread::sleep(PATIENCE + Duration::from_secs(1));
    assert!(is_disconnected(&mut silent) && is_disconnected(&mut half));
}
