//! Notifications reach real servers and programs, in order and once, also those that fail at first.

use incidents::{Clocks, Detail, Event, Incident, Judgement, Readings, Settings, Standing, Subject, Tracker};
use notify::{Happened, Notification, Notifier, Receiver, StateChange};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::sync::mpsc::{Receiver as Answers, channel};
use std::time::{Duration, Instant};
use verdict::{Confidence, VerdictKind};

const S: u64 = 1_000_000_000;
const PATIENCE: Duration = Duration::from_secs(20);

/// An incident that is open, and the same closed.
fn incident() -> [Incident; 2] {
    let subject = Subject { mount: "/data".into(), database: "postgres:".into() };
    let mut tracker = Tracker::new(subject, Settings::default());
    let mut incidents = Vec::new();
    for tick in 0..30 {
        let at = Clocks { unix_ns: (1_800_000_000 + tick * 5) * S, monotonic_ns: tick * 5 * S };
        let standing = if tick < 10 { Standing::Bad(VerdictKind::Throttled) } else { Standing::Fine };
        let detail = Detail {
            at_unix_ns: at.unix_ns,
            summary: "a cap holds the storage back".into(),
            cause: None,
            confidence: Confidence::High,
            readings: Readings::default(),
            evidence: vec![],
            next_step: "raise it".into(),
            files: vec![],
            processes: vec![],
            waits: vec![],
        };
        let event = tracker.judged(&Judgement { at, standing, fine_for: Duration::ZERO, detail });
        incidents.extend(event.as_ref().map(Event::incident).cloned());
    }
    incidents.try_into().unwrap()
}

fn notification(id: i64, happened: Happened) -> Notification {
    let [open, closed] = incident();
    let incident = if happened == Happened::Closed { closed } else { open };
    let document = json!({"event": happened.word(), "id": id});
    let labels = vec![("cluster".to_owned(), "east".to_owned()), ("severity".to_owned(), "none".to_owned())];
    Notification { id, happened, incident, instance: "db-1".into(), labels, document }
}

/// A server that gives these answers, then 204; what is posted to it comes out of the channel.
fn server(answers: &'static [&'static str]) -> (String, Answers<Value>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (to, posted) = channel();
    std::thread::spawn(move || {
        let answers = answers.iter().copied().chain(std::iter::repeat("204 No Content"));
        for (stream, answer) in listener.incoming().zip(answers) {
            let mut stream = BufReader::new(stream.unwrap());
            let (mut line, mut bytes) = (String::new(), 0);
            while stream.read_line(&mut line).unwrap() > 2 {
                if let Some(length) = line.to_lowercase().strip_prefix("content-length:") {
                    bytes = length.trim().parse().unwrap();
                }
                line.clear();
            }
            let mut body = vec![0; bytes];
            stream.read_exact(&mut body).unwrap();
            let _ = write!(stream.get_mut(), "HTTP/1.1 {answer}\r\nContent-Length: 0\r\n\r\n");
            if to.send(serde_json::from_slice(&body).unwrap()).is_err() {
                return;
            }
        }
    });
    (format!("http://{address}/hook"), posted)
}

/// The notifier, what was delivered, and the changes of its state.
fn start(receiver: Receiver) -> (Notifier, Answers<String>, Answers<StateChange>) {
    let ((taken, delivered), (change, changes)) = (channel(), channel());
    let notifier = Notifier::start(
        receiver,
        move |_, notification: &Notification| drop(taken.send(notification.stage())),
        move |_, state| drop(change.send(state.clone())),
    );
    (notifier, delivered, changes)
}

#[test]
fn what_a_server_cannot_take_now_is_sent_again_in_order_and_each_once() {
    let (url, posted) = server(&["503 Service Unavailable"]);
    let (notifier, delivered, changes) = start(Receiver::webhook(&url, None).unwrap());
    notifier.send(notification(7, Happened::Opened));
    notifier.send(notification(7, Happened::Closed));
    let events: Vec<Value> =
        (0..3).map(|_| posted.recv_timeout(PATIENCE).unwrap()["event"].clone()).collect();
    assert_eq!(events, ["opened", "opened", "closed"]);
    let stages: Vec<String> = (0..2).map(|_| delivered.recv_timeout(PATIENCE).unwrap()).collect();
    assert_eq!(stages, ["open, throttled, 0, 0", "closed, throttled, 0, 0"]);
    assert!(matches!(changes.recv().unwrap(), StateChange::Failing { .. }));
    assert_eq!(changes.recv().unwrap(), StateChange::Again);
    notifier.finish(PATIENCE);
    assert!(posted.try_recv().is_err(), "nothing more");
}

#[test]
fn what_a_server_refuses_is_dropped_and_the_next_one_is_sent() {
    let (url, posted) = server(&["400 Bad Request"]);
    let (notifier, delivered, changes) = start(Receiver::webhook(&url, None).unwrap());
    notifier.send(notification(1, Happened::Opened));
    notifier.send(notification(2, Happened::Opened));
    let ids: Vec<Value> = (0..2).map(|_| posted.recv_timeout(PATIENCE).unwrap()["id"].clone()).collect();
    assert_eq!(ids, [1, 2]);
    assert!(matches!(changes.recv().unwrap(), StateChange::Refused { why } if why.contains("400")));
    delivered.recv_timeout(PATIENCE).unwrap();
    assert!(delivered.try_recv().is_err());
}

#[test]
fn a_receiver_that_is_away_costs_bounded_memory_and_delays_no_one() {
    // No server listens on a port that was just given back.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("http://127.0.0.1:{port}/");
    let (notifier, delivered, changes) = start(Receiver::webhook(&url, None).unwrap());
    let one = notification(1, Happened::Opened);
    let began = Instant::now();
    (0..5_000).for_each(|_| notifier.send(one.clone()));
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    let began = Instant::now();
    while !changes.recv_timeout(PATIENCE).is_ok_and(|change| change == StateChange::Dropped) {
        assert!(began.elapsed() < PATIENCE);
    }
    let began = Instant::now();
    notifier.finish(Duration::from_secs(2));
    assert!(began.elapsed() < Duration::from_secs(4), "the end is not delayed: {:?}", began.elapsed());
    assert!(delivered.try_recv().is_err());
}

#[test]
fn an_alert_is_known_by_its_labels_and_ends_with_its_incident() {
    let (url, posted) = server(&[]);
    let base = url.trim_end_matches("/hook");
    let (notifier, delivered, _) = start(Receiver::alertmanager(base, None).unwrap());
    notifier.send(notification(7, Happened::Opened));
    notifier.send(notification(7, Happened::Closed));
    let [open, closed] = [(); 2].map(|()| posted.recv_timeout(PATIENCE).unwrap());
    assert_eq!(open[0]["labels"], closed[0]["labels"]);
    assert_eq!(open[0]["labels"]["alertname"], "HeadroomIncident");
    assert_eq!(open[0]["startsAt"], closed[0]["startsAt"]);
    assert!(open[0]["endsAt"].as_str() > closed[0]["endsAt"].as_str(), "{open} {closed}");
    assert_eq!((open.as_array().unwrap().len(), closed.as_array().unwrap().len()), (1, 1));
    (0..2).for_each(|_| drop(delivered.recv_timeout(PATIENCE).unwrap()));
    // Of another kind it has other labels: the alert before ends with it.
    let mut changed = notification(8, Happened::Opened);
    notifier.send(changed.clone());
    changed.happened = Happened::Changed;
    changed.incident.verdict = VerdictKind::StorageDegraded;
    notifier.send(changed);
    let [_, changed] = [(); 2].map(|()| posted.recv_timeout(PATIENCE).unwrap());
    let verdicts: Vec<&Value> =
        changed.as_array().unwrap().iter().map(|alert| &alert["labels"]["verdict"]).collect();
    assert_eq!(verdicts, ["storage-degraded", "throttled"]);
    // Once it can be saved it has another number: the alert without one ends.
    let mut saved = notification(9, Happened::Closed);
    saved.incident.verdict = VerdictKind::StorageDegraded;
    notifier.send(saved);
    let ended = posted.recv_timeout(PATIENCE).unwrap();
    let numbers: Vec<&Value> =
        ended.as_array().unwrap().iter().map(|alert| &alert["labels"]["incident"]).collect();
    assert_eq!(numbers, ["9", "8"]);
}

#[test]
fn a_program_reads_the_document_and_is_run_again_where_it_fails() {
    let dir = tempfile::tempdir().unwrap();
    let (program, out) = (dir.path().join("notify"), dir.path().join("out"));
    let script = format!(
        "#!/bin/sh\ntest -e {out} || {{ touch {out}; exit 3; }}\n\
         echo \"$HEADROOM_INCIDENT $HEADROOM_EVENT $(cat)\" >> {out}\n",
        out = out.display()
    );
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let (notifier, delivered, changes) = start(Receiver::Command(program));
    notifier.send(notification(7, Happened::Opened));
    delivered.recv_timeout(PATIENCE).unwrap();
    assert_eq!(std::fs::read_to_string(&out).unwrap(), "7 opened {\"event\":\"opened\",\"id\":7}\n");
    assert!(matches!(changes.recv().unwrap(), StateChange::Failing { why, .. } if why.contains('3')));
}
