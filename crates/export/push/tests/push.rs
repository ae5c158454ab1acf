//! Pushing to a server whose responses the test sets.

use metrics::{AgentState, Format, Identity, SourceState};
use push::{Destination, Endpoint, Outcome, Protocol, Pushing, StateChange, finish, post, start};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A server that gives those answers, one a request, and the last one for ever; it passes on what it was sent.
fn server(answers: &'static [&'static str]) -> (u16, Receiver<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (to, requests) = channel();
    std::thread::spawn(move || {
        let mut answers = answers.iter().chain(std::iter::repeat(answers.last().unwrap()));
        for number in 0.. {
            let Ok((stream, _)) = listener.accept() else { return };
            answer(stream, answers.next().unwrap(), number, &to);
        }
    });
    (port, requests)
}

fn answer(mut stream: impl Read + Write, answer: &str, number: u32, to: &Sender<Vec<u8>>) {
    let mut request = Vec::new();
    let mut part = [0; 4096];
    let whole = |request: &[u8]| {
        let end = request.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
        let head = String::from_utf8_lossy(&request[..end]).to_lowercase();
        let length = head.split("content-length: ").nth(1)?.lines().next()?.parse::<usize>().ok()?;
        (request.len() >= end + length).then_some(())
    };
    while whole(&request).is_none() {
        match stream.read(&mut part).unwrap() {
            0 => return,
            bytes => request.extend(&part[..bytes]),
        }
    }
    let why = format!("why, request {number}\n");
    let head = format!("HTTP/1.1 {answer}\r\nContent-Length: {}\r\nConnection: close", why.len());
    let _ = write!(stream, "{head}\r\n\r\n{why}");
    let _ = to.send(request);
}

struct Pushed {
    requests: Receiver<Vec<u8>>,
    changes: Receiver<StateChange>,
    state: Arc<Mutex<AgentState>>,
    pushing: Pushing,
}

/// A source that is read.
fn begin(state: &Mutex<AgentState>, source: &str) {
    let read = SourceState { up: Some(true), ..SourceState::default() };
    state.lock().unwrap().sources.insert(source.into(), read);
}

fn push(protocol: Protocol, answers: &'static [&'static str]) -> Pushed {
    push_every(protocol, answers, Duration::from_millis(100))
}

fn push_every(protocol: Protocol, answers: &'static [&'static str], every: Duration) -> Pushed {
    let (port, requests) = server(answers);
    let credential = "bearer sesame".parse().unwrap();
    let url = format!("http://127.0.0.1:{port}/in?x=y");
    let to = Destination::new(protocol, &url, Some(credential)).unwrap();
    let state = Arc::new(Mutex::new(AgentState::default()));
    begin(&state, "engine");
    let (report, changes) = channel();
    let report = move |what: &StateChange| drop(report.send(what.clone()));
    let pushing = start(
        to,
        state.clone(),
        every,
        Identity { instance: "host-1".into(), ..Identity::default() },
        report,
    )
    .unwrap();
    Pushed { requests, changes, state, pushing }
}

impl Pushed {
    fn next_change(&self) -> StateChange {
        self.changes.recv_timeout(Duration::from_secs(30)).unwrap()
    }

    /// The head and the body of the next request.
    fn request(&self) -> (String, Vec<u8>) {
        let request = self.requests.recv_timeout(Duration::from_secs(30)).unwrap();
        let end = request.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
        (String::from_utf8_lossy(&request[..end]).to_lowercase(), request[end..].to_vec())
    }
}

fn holds(body: &[u8], text: &str) -> bool {
    body.windows(text.len()).any(|part| part == text.as_bytes())
}

#[test]
fn a_remote_write_request_says_what_it_is_and_who_sends_it() {
    let pushed = push(Protocol::RemoteWrite, &["204 No Content"]);
    let (head, body) = pushed.request();
    assert!(head.starts_with("post /in?x=y http/1.1\r\n"), "{head}");
    for line in [
        "content-encoding: snappy\r\n",
        "content-type: application/x-protobuf\r\n",
        "x-prometheus-remote-write-version: 0.1.0\r\n",
        "authorization: bearer sesame\r\n",
    ] {
        assert!(head.contains(line), "{line}{head}");
    }
    let body = snap::raw::Decoder::new().decompress_vec(&body).unwrap();
    assert!(holds(&body, "headroom_source_up") && holds(&body, "host-1"));
    assert_eq!(pushed.next_change(), StateChange::Pushing);
}

#[test]
fn an_otlp_request_is_not_compressed() {
    let pushed = push(Protocol::Otlp, &["200 OK"]);
    let (head, body) = pushed.request();
    assert!(!head.contains("content-encoding") && head.contains("application/x-protobuf"), "{head}");
    assert!(holds(&body, "headroom_source_up") && holds(&body, "service.instance.id"));
}

#[test]
fn what_failed_is_sent_again_in_order_and_each_change_is_told_once() {
    let answers = &["429 Slow Down\r\nRetry-After: 2", "503 Busy", "200 OK"];
    let pushed = push(Protocol::RemoteWrite, answers);
    let first = pushed.request().1;
    assert_eq!(pushed.request().1, first);
    let slow = pushed.next_change();
    assert!(
        matches!(&slow, StateChange::Failing { why, retry_in } if why.contains("429") && retry_in.as_secs() == 2),
        "{slow}"
    );
    let busy = pushed.next_change();
    assert!(matches!(&busy, StateChange::Failing { why, .. } if why.ends_with("why, request 1")), "{busy}");
    assert_eq!(pushed.request().1, first, "taken at last");
    assert_ne!(pushed.request().1, first, "then the next one");
    let again = pushed.next_change();
    assert!(matches!(again, StateChange::Again { dropped: 0, after } if after.as_secs() >= 3), "{again}");
}

#[test]
fn what_is_refused_is_gone_and_counted() {
    let pushed = push(Protocol::RemoteWrite, &["400 No", "400 No", "200 OK"]);
    let bodies = [pushed.request().1, pushed.request().1, pushed.request().1];
    assert!(bodies[0] != bodies[1] && bodies[1] != bodies[2], "none is sent twice");
    let refused = pushed.next_change();
    assert!(matches!(&refused, StateChange::Refused { why } if why.contains("400")), "{refused}");
    let again = pushed.next_change();
    assert!(matches!(again, StateChange::Again { dropped: 2, .. }), "{again}");
    let text = pushed.state.lock().unwrap().text(Format::OpenMetrics);
    let counted = text.lines().find(|line| line.contains("pushes_dropped") && line.contains("refused"));
    assert!(counted.is_some_and(|line| line.ends_with("/in\",reason=\"refused\"} 2")), "{text}");
    assert!(!text.contains("x=y") && !text.contains("sesame"), "{text}");
}

#[test]
fn a_server_that_is_not_there_hinders_nobody() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let to = Destination::new(Protocol::Otlp, &format!("http://127.0.0.1:{port}/"), None).unwrap();
    let (report, changes) = channel();
    let state = Arc::new(Mutex::new(AgentState::default()));
    start(to, state.clone(), Duration::from_millis(10), Identity::default(), move |what| {
        drop(report.send(what.clone()));
    })
    .unwrap();
    let failing = changes.recv_timeout(Duration::from_secs(30)).unwrap();
    assert!(
        matches!(&failing, StateChange::Failing { why, .. } if why.contains("cannot connect")),
        "{failing}"
    );
    assert!(state.try_lock().is_ok() || state.lock().is_ok());
}

#[test]
fn an_answer_counts_that_comes_before_the_body_is_sent() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://127.0.0.1:{}/", listener.local_addr().unwrap().port());
    let (keep, kept) = channel::<()>();
    std::thread::spawn(move || {
        let mut stream = listener.accept().unwrap().0;
        stream.read_exact(&mut [0; 4]).unwrap();
        stream.write_all(b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\n\r\n").unwrap();
        // It reads nothing more, and does not close.
        let _ = kept.recv();
    });
    let to = Endpoint::new(&url, None, "http://h/", "HEADROOM_AUTH").unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let began = Instant::now();
    // More than the buffers of both sockets hold.
    let outcome = runtime.block_on(post(&to, &[], vec![0; 32 << 20]));
    assert!(matches!(&outcome, Outcome::Refused(why) if why.contains("413")), "{outcome:?}");
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    drop(keep);
}

const DAY: Duration = Duration::from_secs(24 * 3600);

#[test]
fn at_the_end_what_came_since_the_last_tick_is_sent() {
    let pushed = push_every(Protocol::Otlp, &["200 OK"], DAY);
    assert_eq!(pushed.next_change(), StateChange::Pushing);
    drop(pushed.request());
    begin(&pushed.state, "the-last-one");
    let Pushed { requests, changes, pushing, .. } = pushed;
    finish(vec![pushing], Duration::from_secs(20));
    let last = requests.try_recv().expect("it was sent before the end");
    assert!(holds(&last, "the-last-one"));
    assert_eq!(changes.try_recv().ok(), None, "nothing is wrong");
}

#[test]
fn a_server_that_is_away_or_hangs_keeps_nobody_from_the_end_and_what_it_misses_is_told() {
    let away = push(Protocol::RemoteWrite, &["503 Service Unavailable"]);
    assert!(matches!(away.next_change(), StateChange::Failing { .. }));
    // It takes the request and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://127.0.0.1:{}/", silent.local_addr().unwrap().port());
    let (report, changes) = channel();
    let report = move |what: &StateChange| drop(report.send(what.clone()));
    let to = Destination::new(Protocol::Otlp, &url, None).unwrap();
    let hangs = start(
        to,
        away.state.clone(),
        DAY,
        Identity { instance: "host-1".into(), ..Identity::default() },
        report,
    )
    .unwrap();
    drop(silent.accept().unwrap());
    let _held = silent;
    let began = Instant::now();
    finish(vec![away.pushing, hangs], Duration::from_millis(500));
    assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
    let not_sent = |changes: Receiver<StateChange>| {
        let last = changes.try_iter().last();
        let Some(StateChange::NotSent { requests, why }) = last else { panic!("{last:?}") };
        (requests, why)
    };
    let (requests, why) = not_sent(away.changes);
    assert!(requests >= 2 && why.contains("503"), "{requests} {why}");
    let (requests, why) = not_sent(changes);
    assert!(requests >= 1, "{requests} {why}");
}

#[test]
fn an_ended_sender_marks_its_series_as_ended() {
    let pushed = push_every(Protocol::RemoteWrite, &["200 OK"], DAY);
    assert_eq!(pushed.next_change(), StateChange::Pushing);
    drop(pushed.request());
    let Pushed { requests, pushing, .. } = pushed;
    finish(vec![pushing], Duration::from_secs(20));
    let bodies: Vec<Vec<u8>> = requests.try_iter().collect();
    let end = bodies.last().unwrap().windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
    let last = snap::raw::Decoder::new().decompress_vec(&bodies.last().unwrap()[end..]).unwrap();
    // The value that Prometheus takes for the end of a series.
    let marker = 0x7ff0_0000_0000_0002_u64.to_le_bytes();
    assert!(holds(&last, "headroom_source_up") && last.windows(8).any(|part| part == marker));
}
