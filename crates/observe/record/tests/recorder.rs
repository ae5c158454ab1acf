//! The recorder with sources that fail, hang and come back, and with a disk that fills up.

use collect::{Source, SourceError};
use filestats::*;
use history::{CaptureFilter, History, Retention};
use record::{Event, RecordedSource, Recorder, Settings};
use std::io::Write;
use std::net::TcpListener;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// An engine that answers, or does what its switch says.
struct Engine {
    name: String,
    switch: Arc<AtomicU64>,
    count: u64,
    began: Instant,
}

/// Prefix of the captures' source names, before the name that the recorder has: as with `process:`, whose captures are
/// `process`.
const SOURCE: &str = "engine:";
const ANSWERS: u64 = 0;
const FAILS: u64 = 1;
const HANGS: u64 = 2;
const PANICS: u64 = 3;

impl Source for Engine {
    fn name(&self) -> &str {
        &self.name
    }

    fn snapshot(&mut self) -> Result<Snapshot, SourceError> {
        while self.switch.load(Relaxed) == HANGS {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(self.switch.load(Relaxed) != PANICS, "a fault that a test makes");
        if self.switch.load(Relaxed) == FAILS {
            let error = std::io::Error::other("the engine is away");
            return Err(SourceError::System { path: self.name.clone().into(), error });
        }
        self.count += 1;
        let file = FileIdentity {
            instance: self.name.clone(),
            database: None,
            database_id: None,
            file_id: "1".into(),
            kind: FileKind::Data,
            path: "/data/file".into(),
            drive: None,
            handle: None,
            object: None,
        };
        let sample = Sample {
            file: file.into(),
            epoch: Epoch::for_run("1"),
            meaning: Meaning::REQUESTS,
            counters: Counters { read: Ops::timed(self.count, self.count, self.count), ..Counters::ZERO },
            size_bytes: Figure::Known(0),
            latencies: None,
        };
        let unix = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        Ok(Snapshot {
            source: format!("{SOURCE}{}", self.name),
            taken_unix_ns: unix.as_nanos() as u64,
            clock_ns: self.began.elapsed().as_nanos() as u64,
            complete: None,
            samples: vec![sample],
            waits: vec![],
            notes: vec![],
        })
    }
}

fn engine(name: &str) -> (RecordedSource, Arc<AtomicU64>) {
    let switch = Arc::new(AtomicU64::new(ANSWERS));
    let (held, name) = (switch.clone(), name.to_owned());
    let open = {
        let name = name.clone();
        move || -> Result<Box<dyn Source + Send>, SourceError> {
            let (name, switch) = (name.clone(), held.clone());
            Ok(Box::new(Engine { name, switch, count: 0, began: Instant::now() }))
        }
    };
    (RecordedSource { name, open: Box::new(open) }, switch)
}

const EVERY: Duration = Duration::from_millis(20);

/// A recorder that runs in a thread until it is dropped, and what it said.
struct Running {
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
    said: Arc<Mutex<Vec<String>>>,
}

impl Running {
    fn start(sources: Vec<RecordedSource>, history: &Path, reserve_bytes: u64) -> Running {
        let settings = Settings {
            every: EVERY,
            duration: None,
            retention: Retention::default(),
            reserve_bytes,
            silence: Duration::from_millis(500),
        };
        let recorder = Recorder { sources, history: History::open(history).unwrap(), settings };
        let (stop, said) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Vec::new())));
        let (stopping, saying) = (stop.clone(), said.clone());
        let thread = std::thread::spawn(move || {
            recorder.run(&stopping, &mut |event: Event<'_>| saying.lock().unwrap().push(event.to_string()));
        });
        Running { stop, thread: Some(thread), said }
    }

    #[track_caller]
    fn wait_for(&self, words: &str) {
        let began = Instant::now();
        while !self.said.lock().unwrap().iter().any(|said| said.contains(words)) {
            assert!(began.elapsed() < Duration::from_secs(20), "never said '{words}': {:?}", self.said);
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        self.thread.take().unwrap().join().unwrap();
    }
}

fn captures(history: &Path, source: &str) -> usize {
    let source = Some(format!("{SOURCE}{source}"));
    let filter = CaptureFilter { source, ..CaptureFilter::default() };
    History::open(history).unwrap().captures(&filter).unwrap().len()
}

#[test]
fn a_source_that_fails_has_a_gap_with_its_reason_and_comes_back() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("history.db");
    let (one, switch) = engine("one");
    let running = Running::start(vec![one], &path, 0);
    running.wait_for("one: recording, 1 files");
    switch.store(FAILS, Relaxed);
    running.wait_for("the engine is away; next try in");
    switch.store(ANSWERS, Relaxed);
    running.wait_for("one: recording again after");
    let said = running.said.lock().unwrap().clone();
    drop(running);
    assert_eq!(said.iter().filter(|said| said.contains("is away")).count(), 1, "once a reason: {said:?}");
    let history = History::open(&path).unwrap();
    let gaps = history.gaps().unwrap();
    assert_eq!(gaps.len(), 1);
    assert!(gaps[0].reason.contains("the engine is away") && gaps[0].source == "engine:one", "{gaps:?}");
    assert!(gaps[0].until_unix_ns.unwrap() > gaps[0].from_unix_ns);
}

#[test]
fn a_source_that_hangs_delays_nobody() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("history.db");
    let ((one, stuck), (other, _)) = (engine("one"), engine("other"));
    let running = Running::start(vec![one, other], &path, 0);
    running.wait_for("one: recording");
    stuck.store(HANGS, Relaxed);
    std::thread::sleep(EVERY * 3);
    let before = captures(&path, "other");
    let began = Instant::now();
    while captures(&path, "other") < before + 10 {
        assert!(began.elapsed() < Duration::from_secs(20), "the other one stands still");
        std::thread::sleep(EVERY);
    }
    running.wait_for("one: it has not answered for");
    stuck.store(ANSWERS, Relaxed);
    running.wait_for("one: recording again after");
    drop(running);
    let gaps = History::open(&path).unwrap().gaps().unwrap();
    let of_one: Vec<_> = gaps.iter().filter(|gap| gap.source == "engine:one").collect();
    assert!(of_one.len() == 1 && of_one[0].until_unix_ns.is_some(), "{gaps:?}");
}

/// The port of a server that sends these bytes to every client, and nothing more.
fn hostile_server(bytes: &'static [u8]) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let mut client = client.unwrap();
            std::thread::spawn(move || {
                client.write_all(bytes).and_then(|()| std::io::copy(&mut client, &mut std::io::sink()))
            });
        }
    });
    port
}

#[test]
fn hostile_servers_cost_their_own_sources_and_no_other() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("history.db");
    // An answer of 2 GiB to the login; the login, and 2^64 - 1 columns; silence.
    let postgres = hostile_server(b"R\x7f\xff\xff\xff");
    let columns = hostile_server(
        b"\x4a\0\0\0\x0a8.0.36\0\x01\0\0\0abcdefgh\0\x01\xa2\x2d\x02\0\x08\0\x15\0\0\0\0\0\0\0\0\0\0ijklmnopqrst\0\
          mysql_native_password\0\x07\0\0\x02\0\0\0\x02\0\0\0\x09\0\0\x01\xfe\xff\xff\xff\xff\xff\xff\xff\xff",
    );
    let silent = hostile_server(b"");
    let options = dir.path().join("my.cnf");
    std::fs::write(&options, "").unwrap();
    let mysql = |port| format!("mysql://a@127.0.0.1:{port}/?defaults-file={}", options.display());
    let texts = [
        format!("postgres:host=127.0.0.1 port={postgres} user=a dbname=b sslmode=disable"),
        mysql(columns),
        mysql(silent),
    ];
    let mut sources: Vec<_> = texts.into_iter().map(opened_by_text).collect();
    sources.push(engine("one").0);
    let running = Running::start(sources, &path, 0);
    running.wait_for("one: recording");
    for refusal in ["longer than any that was requested", "more than 4096 columns", "no answer within 5 s"] {
        running.wait_for(refusal);
        let before = captures(&path, "one");
        std::thread::sleep(EVERY * 10);
        assert!(captures(&path, "one") > before, "after {refusal}");
    }
}

fn opened_by_text(text: String) -> RecordedSource {
    let open = {
        let text = text.clone();
        move || collect::parse_source(&text).unwrap().open(&[], &collect::FileNames::default())
    };
    RecordedSource { name: text, open: Box::new(open) }
}

#[test]
fn a_fault_in_one_source_is_a_failure_of_it_and_passes() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("history.db");
    let ((one, broken), (other, _)) = (engine("one"), engine("other"));
    let running = Running::start(vec![one, other], &path, 0);
    running.wait_for("one: recording");
    broken.store(PANICS, Relaxed);
    running.wait_for("one: a fault of headroom's own");
    let before = captures(&path, "other");
    broken.store(ANSWERS, Relaxed);
    running.wait_for("one: recording again after");
    drop(running);
    assert!(captures(&path, "other") >= before);
}

/// Two servers of one kind are two sources: the I/O of one of them is known although the other was sampled in between.
#[test]
fn sources_do_not_end_each_others_intervals() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("history.db");
    let ((one, _), (other, _)) = (engine("mysql:one"), engine("mysql:other"));
    let running = Running::start(vec![one, other], &path, 0);
    running.wait_for("mysql:other: recording");
    std::thread::sleep(EVERY * 10);
    drop(running);
    let history = History::open(&path).unwrap();
    for source in ["mysql:one", "mysql:other"] {
        let filter = CaptureFilter { source: Some(format!("{SOURCE}{source}")), ..CaptureFilter::default() };
        let kept = history.captures(&filter).unwrap();
        let pair = [&kept[1], &kept[0]].map(|capture| history.snapshot(capture.id).unwrap());
        let rows = intervals(&pair[0], &pair[1], Rules::default());
        assert!(rows.len() == 1 && rows[0].interval.known().is_some(), "{source}: {rows:?}");
    }
}

#[test]
fn a_full_disk_stops_the_adding_and_loses_nothing() {
    let Some(mut disk) = testbed::LoopDisk::new(64 << 20) else { return };
    let dir = disk.format_and_mount().to_path_buf();
    let path = dir.join("history.db");
    let (one, _) = engine("one");
    let running = Running::start(vec![one], &path, 8 << 20);
    running.wait_for("one: recording");
    std::thread::sleep(EVERY * 10);
    let ballast = dir.join("ballast");
    let free = rustix::fs::statvfs(&dir).map(|found| found.f_bavail * found.f_frsize).unwrap();
    std::fs::write(&ballast, vec![7; (free - (4 << 20)) as usize]).unwrap();
    running.wait_for("nothing is added to the history: only");
    let held = captures(&path, "one");
    std::thread::sleep(EVERY * 10);
    assert_eq!(captures(&path, "one"), held, "the reserve is left alone");
    std::fs::remove_file(&ballast).unwrap();
    running.wait_for("the history takes snapshots again");
    std::thread::sleep(EVERY * 10);
    drop(running);
    assert!(captures(&path, "one") > held);
    let history = History::open(&path).unwrap();
    let mut all = history.captures(&CaptureFilter::default()).unwrap();
    all.reverse();
    let snapshots: Vec<Snapshot> = all.iter().map(|each| history.snapshot(each.id).unwrap()).collect();
    let between = intervals(&snapshots[0], snapshots.last().unwrap(), Rules::default());
    let whole = between[0].interval.known().unwrap().counters.read.count;
    let parts: u64 = snapshots
        .windows(2)
        .map(|pair| {
            intervals(&pair[0], &pair[1], Rules::default())[0].interval.known().unwrap().counters.read.count
        })
        .sum();
    assert_eq!(parts, whole, "the interval across the full disk holds what happened meanwhile");
    let connection = rusqlite::Connection::open(&path).unwrap();
    let check: String = connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(check, "ok");
}

#[test]
fn a_disk_that_stands_still_costs_snapshots_that_are_told_and_a_gap() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("history.db");
    let (one, _) = engine("one");
    let running = Running::start(vec![one], &path, 0);
    running.wait_for("one: recording");
    // As a disk that takes a second for a write.
    let blocker = rusqlite::Connection::open(&path).unwrap();
    blocker.execute_batch("BEGIN IMMEDIATE").unwrap();
    std::thread::sleep(EVERY * 130);
    blocker.execute_batch("ROLLBACK").unwrap();
    running.wait_for("snapshots were dropped within");
    drop(running);
    let gaps = History::open(&path).unwrap().gaps().unwrap();
    assert!(!gaps.is_empty() && gaps.iter().all(|gap| gap.reason.contains("disk is slow")), "{gaps:?}");
    assert!(
        // One snapshot alone that was dropped begins and ends its gap.
        gaps.iter().all(|gap| gap.source == "engine:one" && gap.until_unix_ns >= Some(gap.from_unix_ns)),
        "{gaps:?}"
    );
}
