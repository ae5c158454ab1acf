use super::*;
use crate::access::Settings;
use crate::connections::STREAMS_MAX;
use http_body_util::BodyExt;
use hyper::body::Frame;
use std::convert::Infallible;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::pin::Pin;
use std::task::Context;
use std::time::Instant;

/// A stream of events that begins and never ends.
struct Endless(bool);

impl Body for Endless {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match std::mem::replace(&mut self.0, true) {
            false => Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b": begun\n"))))),
            true => Poll::Pending,
        }
    }
}

fn server(settings: Settings) -> SocketAddr {
    server_at("127.0.0.1:0", settings)
}

fn server_at(address: &str, settings: Settings) -> SocketAddr {
    let listener = TcpListener::bind(address).unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    let access = Access::new(settings, address, |_| {}).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    std::thread::spawn(move || {
        let answer = |request: Request<Incoming>| {
            let body = match request.uri().path() {
                "/api/v1/stream" => Endless(false).boxed_unsync(),
                path => Full::new(Bytes::from(format!("this is {path}\n").repeat(200))).boxed_unsync(),
            };
            let mut response = Response::new(body);
            response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
            std::future::ready(response)
        };
        runtime.block_on(accept(listener, access, answer)).unwrap();
    });
    address
}

/// Says when it is dropped.
struct Dropped(std::sync::mpsc::Sender<()>);

impl Drop for Dropped {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}

#[test]
fn an_answer_is_given_up_when_its_client_is_gone_also_behind_bytes_that_were_not_read() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    let access = Access::new(Settings::default(), address, |_| {}).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (begun, begins) = std::sync::mpsc::channel();
    let (dropped, drops) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let answer = move |_: Request<Incoming>| {
            let (begun, dropped) = (begun.clone(), Dropped(dropped.clone()));
            async move {
                let _dropped = dropped;
                begun.send(()).unwrap();
                std::future::pending::<()>().await;
                Response::new(Full::new(Bytes::new()))
            }
        };
        runtime.block_on(accept(listener, access, answer)).unwrap();
    });
    let request = ["GET /api/v1/series HTTP/1.1", "Host: localhost"];
    for behind in [&[][..], &["GET / HTTP/1.1", "Host: localhost"][..], &["x"; 20_000]] {
        let mut client = connect(address);
        send(&mut client, &request);
        begins.recv_timeout(Duration::from_secs(5)).unwrap();
        if !behind.is_empty() {
            send(&mut client, behind);
        }
        drop(client);
        assert!(drops.recv_timeout(Duration::from_secs(2)).is_ok(), "{} lines behind", behind.len());
    }
}

/// Sends these lines and an empty one.
fn send(stream: &mut TcpStream, lines: &[&str]) {
    stream.write_all(format!("{}\r\n\r\n", lines.join("\r\n")).as_bytes()).unwrap();
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream
}

/// Reads until the end of a head.
fn read_head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        assert_eq!(stream.read(&mut byte).unwrap(), 1, "{}", String::from_utf8_lossy(&head));
        head.push(byte[0]);
    }
    String::from_utf8(head).unwrap()
}

/// The head of an answer in lower case, and its body.
fn ask(address: SocketAddr, lines: &[&str]) -> (String, Vec<u8>) {
    let mut stream = connect(address);
    send(&mut stream, &[lines, &["Connection: close"]].concat());
    let head = read_head(&mut stream).to_lowercase();
    let mut body = Vec::new();
    stream.read_to_end(&mut body).unwrap();
    (head, body)
}

#[test]
fn a_scrape_and_a_page_are_answered_beside_all_streams_and_the_next_stream_is_refused() {
    let address = server(Settings::default());
    let stream = || {
        let mut stream = connect(address);
        send(&mut stream, &["GET /api/v1/stream HTTP/1.1", "Host: localhost"]);
        let head = read_head(&mut stream);
        (stream, head)
    };
    let open: Vec<_> = (0..STREAMS_MAX).map(|_| stream()).collect();
    assert!(open.iter().all(|(_, head)| head.starts_with("HTTP/1.1 200")));
    let (_, refused) = stream();
    assert!(refused.starts_with("HTTP/1.1 503") && refused.contains("retry-after: 10"), "{refused}");
    for path in ["/metrics", "/"] {
        let began = Instant::now();
        let (head, body) = ask(address, &[&format!("GET {path} HTTP/1.1"), "Host: localhost"]);
        assert!(head.starts_with("http/1.1 200") && body.len() > 1024, "{head}");
        assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    }
    drop(open);
    let began = Instant::now();
    while !stream().1.starts_with("HTTP/1.1 200") {
        assert!(began.elapsed() < Duration::from_secs(10), "places of closed streams are not free again");
    }
}

#[test]
fn a_connection_serves_many_requests() {
    let address = server(Settings::default());
    let mut stream = connect(address);
    for number in 0..20 {
        send(&mut stream, &[&format!("GET /{number} HTTP/1.1"), "Host: localhost"]);
        let head = read_head(&mut stream);
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
        let mut body = vec![0; length.parse().unwrap()];
        stream.read_exact(&mut body).unwrap();
        assert!(body.starts_with(format!("this is /{number}\n").as_bytes()));
    }
}

#[test]
fn only_get_and_only_for_this_host() {
    let address = server(Settings { host_names: vec!["db.example".into()], ..Settings::default() });
    let status = |lines: &[&str]| {
        let (head, _) = ask(address, lines);
        for (name, value) in HEADERS {
            assert!(head.contains(&format!("{name}: {value}\r\n")), "{name}: {head}");
        }
        assert_eq!(head.contains("allow: get, head\r\n"), head.contains(" 405 "), "{head}");
        head[9..12].parse::<u16>().unwrap()
    };
    let ip = address.to_string();
    for (lines, expected) in [
        (&["GET / HTTP/1.1", "Host: localhost"][..], 200),
        (&["GET / HTTP/1.1", &format!("Host: {ip}")], 200),
        (&["GET / HTTP/1.1", "Host: db.example:80"], 200),
        (&["GET / HTTP/1.0"], 200),
        (&["HEAD / HTTP/1.1", "Host: localhost"], 200),
        (&["GET / HTTP/1.1", "Host: evil.example"], 421),
        (&["GET /healthz HTTP/1.1", "Host: evil.example"], 421),
        (&["GET http://evil.example/ HTTP/1.1", "Host: localhost"], 421),
        (&["GET / HTTP/1.1", "Host: localhost", "Host: evil.example"], 421),
        (&["GET / HTTP/1.1"], 421),
        (&["POST / HTTP/1.1", "Host: localhost", "Content-Length: 0"], 405),
        (&["OPTIONS / HTTP/1.1", "Host: localhost"], 405),
        (&["DELETE /metrics HTTP/1.1", "Host: localhost"], 405),
        (&["GET /api/v1/state HTTP/1.1", "Host: localhost", "Sec-Fetch-Site: cross-site"], 403),
        (&["GET /healthz HTTP/1.1", "Host: localhost:1", "Sec-Fetch-Site: same-site"], 403),
        (&["GET / HTTP/1.1", "Host: localhost", "Origin: http://evil.example"], 403),
        (&["GET / HTTP/1.1", "Host: localhost:1", "Origin: http://localhost:1"], 200),
        // A proxy that changes the header Host.
        (&["GET / HTTP/1.1", &format!("Host: {ip}"), "Origin: https://db.example"], 200),
        (&["GET /api/v1/state HTTP/1.1", "Host: localhost", "Sec-Fetch-Site: same-origin"], 200),
    ] {
        assert_eq!(status(lines), expected, "{lines:?}");
    }
}

#[test]
fn without_authentication_a_page_of_another_site_has_no_name_that_leads_to_this_host() {
    let settings = Settings {
        host_names: vec!["db.example".into()],
        without_authentication: true,
        ..Settings::default()
    };
    let address = SocketAddr::from(([127, 0, 0, 1], server_at("0.0.0.0:0", settings).port()));
    let own = host::hostname();
    for (name, expected) in [
        ("192.0.2.7:9187", " 200 "),
        ("[2001:db8::7]:9187", " 200 "),
        ("localhost:9187", " 200 "),
        ("db.example:9187", " 200 "),
        (own.as_str(), " 200 "),
        ("evil.example:9187", " 421 "),
        ("192.0.2.7.evil.example", " 421 "),
    ] {
        let (head, body) = ask(address, &["GET /metrics HTTP/1.1", &format!("Host: {name}")]);
        assert!(head.contains(expected), "{name}: {head}");
        let body = String::from_utf8(body).unwrap();
        assert_eq!(body.contains("--host-name NAME"), expected == " 421 ", "{name}: {body}");
    }
}
