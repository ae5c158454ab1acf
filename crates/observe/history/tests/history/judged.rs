//! The agent's judgements: each incident is kept once, however often it is saved; the tables are bounded.

use history::{History, Judged};
use incidents::{
    Clocks, Detail, Event, Incident, Judgement, Mark, MarkKind, Readings, Settings, Standing, Subject,
    Tracker,
};
use tempfile::TempDir;
use verdict::{Confidence, VerdictKind};

const S: u64 = 1_000_000_000;

fn subject(mount: &str) -> Subject {
    Subject { mount: mount.into(), database: "postgres:".into() }
}

fn history() -> (TempDir, History) {
    let dir = tempfile::tempdir().unwrap();
    let history = History::open(&dir.path().join("history.db")).unwrap();
    (dir, history)
}

/// An incident that is open, and the same closed.
fn incident(subject: Subject, kind: VerdictKind, began_s: u64) -> (Incident, Incident) {
    let mut tracker = Tracker::new(subject, Settings::default());
    let mut incidents = Vec::new();
    for tick in 0..30 {
        let at = Clocks { unix_ns: (began_s + tick * 5) * S, monotonic_ns: tick * 5 * S };
        let standing = if tick < 10 { Standing::Bad(kind) } else { Standing::Fine };
        let detail = Detail {
            at_unix_ns: at.unix_ns,
            summary: "a cap holds the storage back".into(),
            cause: None,
            confidence: Confidence::High,
            readings: Readings { utilisation: Some(0.1 + 0.2), ..Readings::default() },
            evidence: vec![],
            next_step: "raise it".into(),
            files: vec![],
            processes: vec![],
            waits: vec![],
        };
        let event = tracker.judged(&Judgement { at, standing, fine_for: std::time::Duration::ZERO, detail });
        incidents.extend(event.as_ref().map(Event::incident).cloned());
    }
    let [open, closed] = <[Incident; 2]>::try_from(incidents).unwrap();
    (open, closed)
}

#[test]
fn an_incident_that_is_saved_again_is_still_one_and_comes_back_exactly() {
    let (_dir, mut history) = history();
    let (open, closed) = incident(subject("/data"), VerdictKind::Throttled, 1_000);
    let save = |history: &mut History, one: &Incident| {
        history.save_judged(&Judged { incidents: vec![one.clone()], ..Judged::default() }).unwrap()
    };
    let first = save(&mut history, &open);
    assert_eq!(history.open_incidents().unwrap(), [(first[0], open)]);
    let second = save(&mut history, &closed);
    assert_eq!(first, second);
    assert_eq!(history.incidents(10).unwrap(), [(first[0], closed.clone())]);
    assert_eq!(history.incident(first[0]).unwrap(), Some(closed));
    assert!(history.open_incidents().unwrap().is_empty());
    assert_eq!(history.incident(history::IncidentId(77)).unwrap(), None);
}

#[test]
fn the_last_burst_is_that_of_the_subject() {
    let (_dir, mut history) = history();
    let (_, old) = incident(subject("/data"), VerdictKind::Burst, 1_000);
    let (_, new) = incident(subject("/data"), VerdictKind::Burst, 5_000);
    let (_, other) = incident(subject("/log"), VerdictKind::Burst, 9_000);
    let (open, _) = incident(subject("/data"), VerdictKind::Burst, 9_500);
    let incidents = vec![new.clone(), old, other, open];
    history.save_judged(&Judged { incidents, ..Judged::default() }).unwrap();
    assert_eq!(history.last_burst(&subject("/data")).unwrap(), Some(new));
    assert_eq!(history.last_burst(&subject("/elsewhere")).unwrap(), None);
}

#[test]
fn minutes_and_changes_come_back_and_what_is_unknown_stays_so() {
    let (_dir, mut history) = history();
    let readings = Readings {
        utilisation: Some(0.25),
        outstanding: Some(f64::INFINITY),
        latency_ns: Some(1_500_000.0),
        expected_ns: None,
        iops: Some(1_234.5),
        read_bytes_per_second: Some(1e9),
        written_bytes_per_second: Some(0.0),
    };
    let data = subject("/data");
    let mark = |at_s: u64, kind, text: &str| Mark { at_unix_ns: at_s * S, kind, text: text.into() };
    let cap = mark(70, MarkKind::Cap, "limit set: 60 reads a second");
    let restart = mark(80, MarkKind::Restart, "the server restarted");
    let judged = Judged {
        changes: vec![(data.clone(), 60 * S, Some(VerdictKind::Healthy)), (data.clone(), 90 * S, None)],
        minutes: vec![(data.clone(), 1, readings), (data.clone(), 2, Readings::default())],
        marks: vec![
            (data.clone(), cap.clone()),
            (data.clone(), cap.clone()),
            (data.clone(), restart.clone()),
        ],
        ..Judged::default()
    };
    assert!(!judged.is_empty());
    history.save_judged(&judged).unwrap();
    let known = Readings { outstanding: None, ..readings };
    assert_eq!(history.judged_minutes(&data, (0, 1), 9).unwrap(), [(1, known)]);
    assert_eq!(history.judged_minutes(&data, (2, 9), 9).unwrap(), [(2, Readings::default())]);
    let changes = [(60 * S, Some(VerdictKind::Healthy)), (90 * S, None)];
    assert_eq!(history.verdict_changes(&data).unwrap(), changes);
    assert_eq!(history.marks(&data, 0, 81 * S).unwrap(), [cap.clone(), restart]);
    assert_eq!(history.marks(&data, 70 * S, 80 * S).unwrap(), [cap]);
    assert_eq!(history.marks(&subject("/log"), 0, 81 * S).unwrap(), []);
}

#[test]
fn a_month_is_kept_and_takes_little_space() {
    let (dir, mut history) = history();
    let path = dir.path().join("history.db");
    let bytes = || {
        let connection = rusqlite::Connection::open(&path).unwrap();
        connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
        std::fs::metadata(&path).unwrap().len()
    };
    let readings = |minute: u64| Readings {
        utilisation: Some((minute % 997) as f64 / 1e3),
        outstanding: Some((minute % 89) as f64 / 7.0),
        latency_ns: Some(350_000.0 + (minute % 1_009) as f64 * 977.0),
        expected_ns: Some(280_000.0),
        iops: Some(9_000.0 + (minute % 1_013) as f64 * 7.3),
        read_bytes_per_second: Some(7e7 + (minute % 1_019) as f64 * 8_192.0),
        written_bytes_per_second: Some(1e7 + (minute % 1_021) as f64 * 8_192.0),
    };
    let month = 31 * 24 * 60;
    let (before, mut a_month) = (bytes(), 0);
    let data = subject("/data");
    for day in 0..62 {
        let minutes = (day * 1_440..(day + 1) * 1_440).map(|at| (data.clone(), at, readings(at))).collect();
        // The verdict changes twice an hour; an incident a day, as large as one with all its evidence.
        let change = |half_hour: u64| {
            let verdict = [VerdictKind::Healthy, VerdictKind::Burst][half_hour as usize % 2];
            (data.clone(), (day * 86_400 + half_hour * 1_800) * S, Some(verdict))
        };
        let (_, mut closed) = incident(data.clone(), VerdictKind::Throttled, day * 86_400);
        closed.held.iter_mut().for_each(|held| held.worst.summary = "x".repeat(8_000));
        let (changes, incidents) = ((0..48).map(change).collect(), vec![closed]);
        history.save_judged(&Judged { changes, minutes, incidents, ..Judged::default() }).unwrap();
        history.remove_old_judged().unwrap();
        if day == 30 {
            a_month = bytes() - before;
        }
    }
    let kept = history.judged_minutes(&data, (0, u64::MAX >> 1), usize::MAX >> 1).unwrap();
    assert_eq!((kept.len(), kept[0].0), (month, month as u64));
    println!("a month of one subject: {} KiB", a_month >> 10);
    // 15 of them (5 volumes, 3 databases) in 40 MB.
    assert!(a_month < 40_000_000 / 15, "{a_month}");
}

#[test]
fn what_a_receiver_was_given_is_known_until_its_incident_goes() {
    let (_dir, mut history) = history();
    let (open, _) = incident(subject("/data"), VerdictKind::Throttled, 1);
    let id = history.save_judged(&Judged { incidents: vec![open], ..Judged::default() }).unwrap()[0];
    assert_eq!(history.notified("webhook", id).unwrap(), None);
    for stage in ["open", "closed"] {
        history.save_notified("webhook", id, stage).unwrap();
        history.save_notified("webhook", history::IncidentId(77), stage).unwrap();
        assert_eq!(history.notified("webhook", id).unwrap().as_deref(), Some(stage));
    }
    assert_eq!(history.notified("another", id).unwrap(), None);
    history.remove_old_judged().unwrap();
    assert_eq!(history.notified("webhook", history::IncidentId(77)).unwrap(), None);
    assert!(history.notified("webhook", id).unwrap().is_some());
}

#[test]
fn old_incidents_go_and_open_ones_stay() {
    let (_dir, mut history) = history();
    let (open, _) = incident(subject("/data"), VerdictKind::Throttled, 1);
    let (_, closed) = incident(subject("/data"), VerdictKind::Throttled, 2);
    let at = |number: u64| {
        let mut incident = closed.clone();
        incident.started_unix_ns = number * S;
        incident
    };
    let incidents = std::iter::once(open.clone()).chain((10..5_500).map(at)).collect();
    history.save_judged(&Judged { incidents, ..Judged::default() }).unwrap();
    history.remove_old_judged().unwrap();
    assert_eq!(history.incidents(10_000).unwrap().len(), 5_001);
    assert_eq!(history.open_incidents().unwrap()[0].1, open);
}

#[test]
fn what_a_clock_that_was_ahead_judged_hides_nothing_and_goes_first() {
    let (_dir, mut history) = history();
    let now_s = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let (ahead_s, year_s) = (now_s + 366 * 24 * 3600, 366 * 24 * 60);
    let data = subject("/data");
    let (_, ahead) = incident(data.clone(), VerdictKind::Burst, ahead_s);
    let (open, closed) = incident(data.clone(), VerdictKind::Burst, now_s - 600);
    let minute = now_s / 60;
    let judged = Judged {
        changes: vec![
            (data.clone(), ahead_s * S, Some(VerdictKind::Healthy)),
            (data.clone(), now_s * S, Some(VerdictKind::Burst)),
        ],
        minutes: vec![
            (data.clone(), minute + year_s, Readings::default()),
            (data.clone(), minute, Readings::default()),
        ],
        incidents: vec![ahead.clone(), open],
        ..Judged::default()
    };
    let ids = history.save_judged(&judged).unwrap();
    assert_eq!(history.open_incidents().unwrap().len(), 1);
    history.save_judged(&Judged { incidents: vec![closed.clone()], ..Judged::default() }).unwrap();
    assert!(history.open_incidents().unwrap().is_empty(), "it opens and closes");
    assert_eq!(history.incidents(1).unwrap(), [(ids[1], closed.clone())], "the newest that was recorded");
    assert_eq!(history.last_burst(&data).unwrap(), Some(closed));
    assert_eq!(history.last_judged_minute(&data).unwrap().unwrap().0, minute);
    assert_eq!(history.verdict_changes(&data).unwrap(), [(now_s * S, Some(VerdictKind::Burst))]);

    // A month of minutes beside those of the wrong clock.
    let month = 31 * 24 * 60;
    let minutes = (0..month).map(|at| (data.clone(), minute - at, Readings::default())).collect();
    history.save_judged(&Judged { minutes, ..Judged::default() }).unwrap();
    history.remove_old_judged().unwrap();
    assert!(history.judged_minutes(&data, (minute + 1, u64::MAX >> 1), 1).unwrap().is_empty());
    assert_eq!(history.judged_minutes(&data, (0, minute), usize::MAX).unwrap().len(), month as usize);
}
