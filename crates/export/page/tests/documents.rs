//! The page's documents from the data of an agent and a history, requested as a browser does.

use filestats::{
    Counters, Delta, Figure, FileIdentity, FileInterval, FileKind, Interval, Meaning, Ops, Reason,
};
use history::{History, Judged as Kept};
use incidents::{
    Clocks, Detail, Event, Judgement, Mark, MarkKind, Readings, Settings, Standing, Subject, Tracker,
};
use page::{About, Api, Details, Judged, Live, Wanted};
use serde_json::Value;
use std::sync::Arc;
use std::time::{Duration, Instant};
use verdict::{Confidence, Moment, Observation, Verdict, VerdictKind, judge};
use workload::{TargetFacts, TargetKind};

const SECOND: u64 = 1_000_000_000;
const MINUTE: u64 = 60 * SECOND;
const SOURCE: &str = "sqlite:/data/shop.db";

fn subject() -> Subject {
    Subject { mount: "/data".into(), database: SOURCE.into() }
}

fn facts() -> TargetFacts {
    TargetFacts {
        path: "/data".into(),
        kind: TargetKind::Directory,
        filesystem: Some("ext4".into()),
        mount: Some("/data".into()),
        free_bytes: 1 << 40,
        devices: Vec::new(),
        direct_align_bytes: None,
        memory_align_bytes: 512,
        caps: Vec::new(),
    }
}

/// A second of a file with `reads` reads of 8 KiB, each a millisecond long.
fn file(path: &str, ended_unix_ns: u64, reads: u64) -> FileInterval {
    let counters = Counters {
        read: Ops::timed(reads, reads * 8192, reads * 1_000_000),
        write: Ops::ZERO,
        sync: Figure::Known(Ops::ZERO),
        busy_ns: Figure::unknown(Reason::NotCounted),
    };
    FileInterval {
        file: FileIdentity { path: path.into(), kind: FileKind::Data, ..FileIdentity::default() }.into(),
        meaning: Meaning::REQUESTS,
        ended_unix_ns,
        interval: Interval::Known(Delta { elapsed_ns: SECOND, counters, latencies: None }),
    }
}

fn moment(ended_unix_ns: u64, files: Vec<FileInterval>) -> Moment {
    Moment { ended_unix_ns, files: files.into(), ..Moment::default() }
}

fn judged(at_unix_ns: u64, verdict: Verdict) -> Judged {
    let readings = Readings { outstanding: Some(0.5), ..Readings::default() };
    Judged { at_unix_ns, verdict, readings, capability: None, caps: Vec::new(), service_level_ns: 20_000_000 }
}

fn verdict(observation: &Observation) -> Verdict {
    judge(observation, None, &filestats::ServiceLevel::OLTP)
}

/// The page of a live agent, or of a history (with its end).
struct Page {
    live: Arc<Live>,
    api: Api,
    history: History,
    _dir: tempfile::TempDir,
}

impl Page {
    fn new(ended_unix_ns: Option<u64>) -> Page {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("history.db");
        let history = History::open(&path).unwrap();
        let live = Arc::new(Live::default());
        let about = About {
            host: "db1".into(),
            version: "1".into(),
            started_unix_ns: 0,
            window_ns: MINUTE,
            every_ns: 5 * SECOND,
            live: ended_unix_ns.is_none(),
        };
        live.began(SOURCE);
        Page { api: Api::new(live.clone(), about, path, ended_unix_ns), live, history, _dir: dir }
    }

    fn sample(&self, moment: &Moment) {
        self.live.sampled(&subject(), &facts(), moment, None);
    }

    fn judge(&self, moments: Vec<Moment>, details: bool) {
        let observation = Observation { moments, ..Observation::default() };
        let details = details.then(|| Details::new(&observation, &[]));
        let at_unix_ns = observation.ended_unix_ns();
        self.live.judged(&subject(), &facts(), judged(at_unix_ns, verdict(&observation)), details);
    }

    fn ask(&self, path: &str, query: &str) -> (u16, Value) {
        let answer = match self.api.question(path, query) {
            Ok(question) => {
                let began = Instant::now();
                while !self.api.has_figures_for(&question) && began.elapsed() < Duration::from_millis(200) {
                    std::thread::sleep(Duration::from_millis(20));
                }
                let wanted: Wanted = Arc::new(|| true);
                self.api.answer(&question, &wanted)
            }
            Err(refused) => refused,
        };
        (answer.status, serde_json::from_str(&answer.body).unwrap())
    }

    #[track_caller]
    fn get(&self, path: &str, query: &str) -> Value {
        let id = self.id();
        let (status, value) = self.ask(path, &format!("volume={id}&{query}"));
        assert_eq!(status, 200, "{value:#}");
        value
    }

    fn id(&self) -> String {
        let (_, state) = self.ask("state", "");
        state["volumes"][0]["id"].as_str().unwrap_or_default().to_owned()
    }

    fn keep(&mut self, kept: &Kept) {
        self.history.save_judged(kept).unwrap();
    }
}

fn minutes(from: u64, count: u64, outstanding: f64) -> Vec<(Subject, u64, Readings)> {
    let iops = Some(outstanding * 100.0);
    let readings = Readings { outstanding: Some(outstanding), iops, ..Readings::default() };
    (from..from + count).map(|minute| (subject(), minute, readings)).collect()
}

fn numbers(values: &Value) -> Vec<Option<f64>> {
    values.as_array().unwrap().iter().map(Value::as_f64).collect()
}

#[test]
fn the_newest_minutes_are_those_of_memory_and_older_ones_those_of_the_history() {
    let mut page = Page::new(None);
    let now = host::unix_ns() / MINUTE * MINUTE;
    // An agent ran from 60 to 30 minutes ago, and one since two minutes ago.
    let minute = now / MINUTE;
    page.keep(&Kept { minutes: minutes(minute - 59, 30, 3.0), ..Kept::default() });
    for second in 0..120 {
        let ended = now - 120 * SECOND + (second + 1) * SECOND;
        let reads = if second == 77 { 40_000 } else { 500 };
        page.sample(&moment(ended, vec![file("/data/shop.db", ended, reads)]));
    }
    let range = format!("from={}&to={now}", now - 60 * MINUTE);
    for points in [3_600, 600, 60, 4] {
        let series = page.get("series", &format!("{range}&points={points}"));
        let outstanding = &series["series"]["outstanding"];
        let highest = numbers(&outstanding["max"]).into_iter().flatten().fold(0.0, f64::max);
        assert_eq!(highest, 40.0, "one second of {points} points");
        assert_eq!(numbers(&outstanding["mean"])[0], Some(3.0));
        assert_eq!(numbers(&series["series"]["iops"]["mean"])[0], Some(300.0));
        assert_eq!(
            outstanding["min"].as_array().unwrap().len(),
            series["times_unix_s"].as_array().unwrap().len()
        );
        let gaps = series["gaps"].as_array().unwrap();
        // A first point that begins before the stretch begins with a gap.
        let is_within = |gap: &&Value| gap["to_unix_ns"].as_u64().unwrap() > now - 59 * MINUTE;
        let within: Vec<&Value> = gaps.iter().filter(is_within).collect();
        assert_eq!(within.len(), 1, "{gaps:#?}");
        assert_eq!(within[0]["from_unix_ns"], now - 30 * MINUTE, "{gaps:#?}");
    }
    let series = page.get("series", &format!("{range}&points=60"));
    let known: Vec<bool> =
        numbers(&series["series"]["outstanding"]["mean"]).iter().map(Option::is_some).collect();
    assert!(
        known[..30].iter().all(|known| *known)
            && !known[30..58].iter().any(|known| *known)
            && known[58]
            && known[59]
    );
}

#[test]
fn nothing_is_known_while_a_source_fails_and_the_reason_is_said() {
    let page = Page::new(None);
    let now = host::unix_ns();
    let moments: Vec<Moment> = (1..=60)
        .map(|second| now - 60 * SECOND + second * SECOND)
        .map(|ended| moment(ended, vec![file("/data/shop.db", ended, 100)]))
        .collect();
    moments.iter().for_each(|moment| page.sample(moment));
    page.judge(moments, false);
    let (_, before) = page.ask("state", "");
    let volume = &before["volumes"][0];
    assert_eq!((&volume["gap"], &volume["reads_per_second"]), (&Value::Null, &100.0.into()), "{volume:#}");
    assert_eq!((&volume["latency_ns"], &volume["outstanding"]), (&1e6.into(), &0.5.into()), "{volume:#}");
    let moments_after = |page: &Page, unix_ns: u64| -> Vec<Value> {
        let moments = page.api.moments(&page.id(), unix_ns).unwrap();
        moments.json.iter().map(|json| serde_json::from_str(json).unwrap()).collect()
    };
    let times_after = |unix_ns: u64| -> Vec<u64> {
        moments_after(&page, unix_ns).iter().map(|moment| moment["unix_ns"].as_u64().unwrap()).collect()
    };
    assert_eq!(moments_after(&page, 0)[0]["iops"], 100.0);
    assert_eq!(times_after(0), [now], "a stream begins with the newest");
    assert_eq!(times_after(now), [now], "which is sent again where there is no other");
    assert_eq!(times_after(now - 3 * SECOND), [now - 2 * SECOND, now - SECOND, now]);
    assert_eq!(times_after(now - 59 * SECOND).len(), 59);
    assert_eq!(times_after(1).len(), 60, "at most");
    assert_eq!(page.api.moments(&page.id(), 0).unwrap().newest_unix_ns, now);

    let began = Instant::now();
    page.ask("state", "");
    let (version, _) = page.api.shared_state();
    page.live.failed(SOURCE, now + SECOND, "<img src=x onerror=alert(1)>\u{1b}[31m");
    assert!(page.api.version() > version);
    let shared = page.api.shared_state().0;
    if began.elapsed() < Duration::from_millis(900) {
        assert_eq!(shared, version, "streams share a state for a second; a request does not");
    }
    let (_, state) = page.ask("state", "");
    let volume = &state["volumes"][0];
    assert_eq!(volume["gap"], "<img src=x onerror=alert(1)>\u{1b}[31m");
    assert_eq!(volume["verdict"], "cannot-say");
    for key in ["utilisation", "headroom", "outstanding", "reads_per_second", "latency_ns", "confidence"] {
        assert!(volume[key].is_null(), "{key}: {volume:#}");
    }
    let moments = moments_after(&page, now - 3 * SECOND);
    assert_eq!(moments.len(), 1);
    assert!(moments[0]["iops"].is_null() && moments[0]["gap"].is_string(), "{moments:?}");
    assert_eq!(page.api.moments(&page.id(), now).unwrap().newest_unix_ns, now);
    page.live.gone(SOURCE);
    assert_eq!(page.ask("state", "").1["volumes"], Value::Array(Vec::new()));
}

#[test]
fn files_have_their_rates_over_the_whole_window_and_are_reduced_only_while_someone_looks() {
    let page = Page::new(None);
    let now = host::unix_ns();
    let moments: Vec<Moment> = (1..=80_u64)
        .map(|second| {
            let ended = now - 80 * SECOND + second * SECOND;
            // Unused files are left out of a moment.
            let log = (second == 80).then(|| file("/data/<b>\u{7}.log", ended, 8_000));
            moment(ended, [file("/data/shop.db", ended, 10)].into_iter().chain(log).collect())
        })
        .collect();
    moments.iter().for_each(|moment| page.sample(moment));
    assert!(!page.live.is_looked_at(SOURCE));
    page.judge(moments.clone(), false);
    // A request waits a while for what is not there.
    let files = page.get("files", "");
    assert_eq!(files["files"], Value::Array(Vec::new()));
    assert!(page.live.is_looked_at(SOURCE) && page.live.is_waited_for(SOURCE));
    page.judge(moments, true);
    assert!(!page.live.is_waited_for(SOURCE));
    let files = page.get("files", "");
    let rows = files["files"].as_array().unwrap();
    assert_eq!((rows.len(), &files["total_files"]), (2, &2.into()));
    assert_eq!(rows[0]["path"], "/data/<b>\u{7}.log", "the one that is waited for longest is the first");
    assert_eq!((&rows[0]["reads_per_second"], &rows[0]["waited_share"]), (&100.0.into(), &0.1.into()));
    assert_eq!(rows[1]["reads_per_second"], 10.0);
    let trail = numbers(&rows[0]["trail"]);
    assert_eq!((trail.len(), trail[0], trail[59]), (60, Some(0.0), Some(8.0)));
    let one = page.get("files", "path=/data/shop.db");
    assert_eq!((one["files"].as_array().unwrap().len(), &one["total_files"]), (1, &2.into()));
}

#[test]
fn a_second_that_is_unknown_is_a_gap_with_its_reason_and_a_mark() {
    let mut page = Page::new(None);
    let now = host::unix_ns();
    let ended = |second: u64| now - 10 * SECOND + second * SECOND;
    page.sample(&moment(ended(1), vec![file("/data/shop.db", ended(1), 100)]));
    let unknown =
        FileInterval { interval: Interval::Unknown(Reason::Restart), ..file("/data/shop.db", ended(2), 0) };
    page.sample(&moment(ended(2), vec![unknown]));
    page.sample(&moment(ended(3), vec![file("/data/shop.db", ended(3), 100)]));
    let series = page.get("series", "from=-20000000000");
    let gaps = series["gaps"].as_array().unwrap();
    assert!(gaps.iter().any(|gap| gap["reason"] == "the engine restarted"), "{gaps:#?}");
    assert_eq!(series["marks"][0]["kind"], "restart", "{series:#}");
    // The agent keeps it, and it is drawn once.
    let marks = page.live.take_marks();
    assert_eq!((marks.len(), page.live.take_marks().len()), (1, 0));
    page.keep(&Kept { marks, ..Kept::default() });
    assert_eq!(page.get("series", "from=-20000000000")["marks"], series["marks"]);
}

/// An incident that was opened and closed.
fn incident(from_unix_ns: u64, until_unix_ns: u64) -> incidents::Incident {
    let settings = Settings {
        open_after: Duration::from_secs(30),
        close_after: Duration::from_secs(60),
        gap_after: Duration::from_secs(3_600),
    };
    let mut tracker = Tracker::new(subject(), settings);
    let mut last = None;
    let mut at = from_unix_ns;
    while at < until_unix_ns + 5 * MINUTE {
        let is_bad = at < until_unix_ns;
        let standing = if is_bad { Standing::Bad(VerdictKind::Throttled) } else { Standing::Fine };
        let detail = Detail {
            at_unix_ns: at,
            summary: "a limit adds the time".into(),
            cause: None,
            confidence: Confidence::High,
            readings: Readings::default(),
            evidence: Vec::new(),
            next_step: "raise it".into(),
            files: Vec::new(),
            processes: Vec::new(),
            waits: Vec::new(),
        };
        let judgement = Judgement {
            at: Clocks { unix_ns: at, monotonic_ns: at },
            standing,
            fine_for: Duration::ZERO,
            detail,
        };
        if let Some(Event::Closed(incident)) = tracker.judged(&judgement) {
            last = Some(incident);
        }
        at += 5 * SECOND;
    }
    last.unwrap()
}

#[test]
fn a_history_without_an_agent_shows_what_was_kept_and_where_no_agent_ran() {
    let end = 1_760_000_040 * SECOND;
    let mut page = Page::new(Some(end));
    let minute = end / MINUTE;
    let change = |minutes_ago: u64, kind| (subject(), end - minutes_ago * MINUTE, kind);
    let text = "limit set: 60 reads a second".to_owned();
    let cap = Mark { at_unix_ns: end - 51 * MINUTE, kind: MarkKind::Cap, text };
    page.keep(&Kept {
        changes: vec![
            change(60, Some(VerdictKind::Healthy)),
            change(50, Some(VerdictKind::Throttled)),
            change(40, Some(VerdictKind::Healthy)),
            change(10, Some(VerdictKind::Healthy)),
        ],
        // Between 30 and 10 minutes ago no agent ran.
        minutes: [minutes(minute - 59, 30, 1.0), minutes(minute - 9, 10, 2.0)].concat(),
        incidents: vec![incident(end - 50 * MINUTE, end - 40 * MINUTE)],
        marks: vec![(subject(), cap)],
        ..Kept::default()
    });
    let (live, ended) = Live::from_history(&page.history, 20_000_000).unwrap();
    assert_eq!(ended, Some(end / MINUTE * MINUTE));
    let about = About {
        host: "x".into(),
        version: "1".into(),
        started_unix_ns: 0,
        window_ns: MINUTE,
        every_ns: 0,
        live: false,
    };
    page.api = Api::new(Arc::new(live), about, page.history.path().to_owned(), ended);

    let (_, state) = page.ask("state", "");
    assert_eq!((&state["live"], &state["now_unix_ns"]), (&false.into(), &ended.into()), "{state:#}");
    let volume = &state["volumes"][0];
    assert_eq!((&volume["verdict"], &volume["outstanding"]), (&"healthy".into(), &2.0.into()), "{volume:#}");
    let verdicts = page.get("verdicts", &format!("from=-{}", 60 * MINUTE));
    let stretches = verdicts["stretches"].as_array().unwrap();
    let kinds: Vec<&str> = stretches.iter().map(|one| one["verdict"].as_str().unwrap_or("-")).collect();
    assert_eq!(kinds.iter().filter(|kind| **kind == "throttled").count(), 1, "{kinds:?}");
    let bad = stretches.iter().find(|one| one["verdict"] == "throttled").unwrap();
    assert_eq!((&bad["incident"], &bad["reason"]), (&1.into(), &Value::Null));
    let hole = stretches.iter().find(|one| one["reason"] == "no agent ran").unwrap();
    let length = hole["to_unix_ns"].as_u64().unwrap() - hole["from_unix_ns"].as_u64().unwrap();
    assert!(length.abs_diff(20 * MINUTE) <= MINUTE, "{hole:#}");
    let series = page.get("series", &format!("from=-{}&points=60", 60 * MINUTE));
    let marks = series["marks"].as_array().unwrap();
    assert_eq!((marks.len(), &marks[0]["kind"]), (2, &"cap".into()));
    assert_eq!((&marks[1]["kind"], &marks[1]["incident"]), (&"incident".into(), &1.into()));
    assert_eq!(page.ask("incidents/1", "").1["verdict"], "throttled");
    assert_eq!(page.get("files", "")["total_files"], 0, "nothing is waited for");
}

#[test]
fn what_a_storage_was_seen_to_give_has_its_bounds() {
    let mut page = Page::new(None);
    assert_eq!(page.ask("capabilities", "").1["seen"], serde_json::json!([]));
    let mut learner = seen::Learner::default();
    let side = |ios: f64| seen::Side { ios, bytes: ios * 8192.0, served_s: ios / 1e4, waited_s: 0.0 };
    for second in 1..=60 {
        let (reads, writes) = (side(9_000.0), side(500.0));
        let ended_unix_ns = second * SECOND;
        learner.observe(&seen::Second {
            ended_unix_ns,
            elapsed_s: 1.0,
            reads,
            writes,
            ..seen::Second::default()
        });
    }
    page.history.save_seen(&facts(), learner.seen()).unwrap();
    let (_, answer) = page.ask("capabilities", "");
    let seen = &answer["seen"][0];
    assert_eq!((&seen["target_path"], answer["seen"].as_array().unwrap().len()), (&"/data".into(), 1));
    let reads =
        seen["resources"].as_array().unwrap().iter().find(|one| one["name"] == "read-operations").unwrap();
    assert_eq!((&reads["value"], &reads["bound"]), (&9_000.0.into(), &"at-least".into()), "{seen:#}");
}

#[test]
fn what_is_asked_wrongly_is_refused_with_what_to_do() {
    let page = Page::new(None);
    for (path, query, status) in [
        ("series", "", 400),
        ("series", "volume=none", 404),
        ("nothing", "", 404),
        ("incidents/x", "", 400),
        ("incidents/7", "", 404),
        ("curve", "volume=", 404),
    ] {
        let (answered, body) = page.ask(path, query);
        assert_eq!(answered, status, "{path}?{query}: {body:#}");
        assert!(body["error"].is_string() && body["try"].is_string(), "{body:#}");
    }
}
