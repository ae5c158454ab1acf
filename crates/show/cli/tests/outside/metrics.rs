//! `/metrics`, `--remote-write` and `--otlp` of `headroom agent` with a real Prometheus and a real VictoriaMetrics.

use filestats::{Figure, Rules, Snapshot, intervals};
use history::{CaptureFilter, History};
use programs::{Headroom, Scenario};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A program that is ended with the test.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// The body of an answer, which closes the connection; `None` where no server answers.
fn get(port: u16, path: &str, accept: &str) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    let request =
        format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nAccept: {accept}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    head.starts_with("HTTP/1.1 200").then(|| body.to_owned())
}

/// The one value of a query, as both servers' API gives it.
fn query(port: u16, promql: &str) -> Option<f64> {
    let escaped: String =
        promql
            .bytes()
            .map(|byte| {
                if byte.is_ascii_alphanumeric() {
                    char::from(byte).to_string()
                } else {
                    format!("%{byte:02X}")
                }
            })
            .collect();
    let body = get(port, &format!("/api/v1/query?query={escaped}"), "application/json")?;
    // Chunked or not, the JSON is what stands between the braces.
    let json = &body[body.find('{')?..=body.rfind('}')?];
    let answer: Value = serde_json::from_str(json).ok()?;
    answer["data"]["result"][0]["value"][1].as_str()?.parse().ok()
}

fn start_agent(ours: &Headroom, source: &str, port: u16, pushed_to: &[String]) -> (Ended, u16) {
    let address = format!("127.0.0.1:{port}");
    let mut command = ours.command(&["agent", "--source", source, "--listen", &address]);
    command.args(["--every", "1s", "--window", "10s", "--push-every", "1s"]).args(pushed_to);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let line = lines.find(|line| line.contains("metrics at http://")).unwrap();
    std::thread::spawn(move || lines.for_each(drop));
    let port = line.rsplit(':').next().unwrap().trim_end_matches("/metrics").parse().unwrap();
    (Ended(child), port)
}

/// The latency of the log's syncs, of the series with those labels. OTLP has no suffix of counters.
fn quotient(labels: &str, suffix: &str) -> String {
    let rate = |name| {
        let labels = format!("kind=\"log\",op=\"sync\",layer=\"file\",{labels}");
        format!("rate(headroom_file_{name}{suffix}{{{labels}}}[10s])")
    };
    format!("{} / {}", rate("time_seconds"), rate("timed_operations"))
}

/// Mean time of a sync of the log in all known intervals of the last `seconds` seconds.
fn our_latency_s(history: &Path, seconds: u64) -> f64 {
    let history = History::open(history).unwrap();
    let mut captures = history.captures(&CaptureFilter::default()).unwrap();
    captures.truncate(seconds as usize + 1);
    captures.reverse();
    let snapshots: Vec<Snapshot> = captures.iter().map(|each| history.snapshot(each.id).unwrap()).collect();
    let rows = intervals(&snapshots[0], snapshots.last().unwrap(), Rules::default());
    let log = rows.iter().find(|row| row.file.path.ends_with("-wal")).unwrap();
    match log.interval.known().unwrap().sync_latency_ns() {
        Figure::Known(ns) => ns / 1e9,
        Figure::Unknown { unknown } => panic!("{unknown}"),
    }
}

/// Each of the queries gives our own latency, within a tenth, at some time.
#[track_caller]
fn their_quotients_are_ours(queries: &[(String, u16, String)], history: &Path) {
    let began = Instant::now();
    let mut left: Vec<_> = queries.iter().collect();
    let mut last = Vec::new();
    while began.elapsed() < Duration::from_secs(50) {
        std::thread::sleep(Duration::from_secs(1));
        if began.elapsed() < Duration::from_secs(12) {
            continue;
        }
        last.clear();
        left.retain(|(way, port, promql)| {
            let theirs = query(*port, promql);
            let ours = our_latency_s(history, 10);
            last.push((way.clone(), theirs, ours));
            !theirs.is_some_and(|theirs| (theirs / ours - 1.0).abs() < 0.1)
        });
        if left.is_empty() {
            return;
        }
    }
    panic!("their latency and ours never agreed within a tenth: {last:?}");
}

/// Starts a server that scrapes and is pushed to; `None` where it is not installed.
fn start_server(program: &str, dir: &Path, api: u16) -> Option<Ended> {
    let config = dir.join("prometheus.yml");
    let data = dir.join(program);
    let mut command = Command::new(program);
    match program {
        "prometheus" => command
            .arg("--web.enable-remote-write-receiver")
            .arg(format!("--config.file={}", config.display()))
            .arg(format!("--storage.tsdb.path={}", data.display()))
            .arg(format!("--web.listen-address=127.0.0.1:{api}")),
        // Without the offset it hides what is younger than 30 s.
        _ => command
            .arg("-search.latencyOffset=1s")
            .arg(format!("-promscrape.config={}", config.display()))
            .arg(format!("-storageDataPath={}", data.display()))
            .arg(format!("-httpListenAddr=127.0.0.1:{api}")),
    };
    match command.stdout(Stdio::null()).stderr(Stdio::null()).spawn() {
        Ok(child) => Some(Ended(child)),
        Err(error) => {
            println!("skipped: {program} cannot be started: {error}");
            None
        }
    }
}

/// Since version 1.92; Debian 12 has an older one, which knows no such path.
fn knows_otlp(api: u16) -> bool {
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(20) {
        if let Ok(mut stream) = TcpStream::connect(("127.0.0.1", api)) {
            let path = "/opentelemetry/v1/metrics";
            let request = format!(
                "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            );
            let mut answer = String::new();
            if stream.write_all(request.as_bytes()).is_ok() && stream.read_to_string(&mut answer).is_ok() {
                return answer.starts_with("HTTP/1.1 200");
            }
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    false
}

#[test]
fn prometheus_and_victoriametrics_compute_our_latency_scraped_and_pushed() {
    let ours = Headroom::new();
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let database = dir.path().join("shop.db");
    let _running = Scenario::prepare("commits", &database).start("commits", 120);
    let port = free_port();
    let yaml = format!(
        "global:\n  scrape_interval: 1s\nscrape_configs:\n  - job_name: scraped\n    static_configs:\n      \
         - targets: ['127.0.0.1:{port}']\n"
    );
    std::fs::write(dir.path().join("prometheus.yml"), yaml).unwrap();
    let mut servers = Vec::new();
    let (mut queries, mut pushed_to) = (Vec::new(), Vec::new());
    for program in ["prometheus", "victoria-metrics"] {
        let api = free_port();
        let Some(server) = start_server(program, dir.path(), api) else { continue };
        servers.push(server);
        queries.push((format!("{program} scrapes"), api, quotient("job=\"scraped\"", "_total")));
        queries.push((format!("remote-write to {program}"), api, quotient("job=\"headroom\"", "_total")));
        pushed_to.extend(["--remote-write".into(), format!("http://127.0.0.1:{api}/api/v1/write")]);
        if program == "prometheus" {
            continue;
        }
        if knows_otlp(api) {
            // A service in OTLP has no job.
            queries.push((format!("otlp to {program}"), api, quotient("job=\"\"", "")));
            pushed_to.extend(["--otlp".into(), format!("http://127.0.0.1:{api}/opentelemetry/v1/metrics")]);
        } else {
            println!("skipped: OTLP: this {program} does not know it");
        }
    }
    let source = format!("sqlite:{}", database.display());
    let (_agent, _) = start_agent(&ours, &source, port, &pushed_to);
    let mut record = ours.command(&["agent", "--record-only", "--source", &source, "--every", "1s"]);
    let _recording = Ended(record.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    their_quotients_are_ours(&queries, &ours.history());
    println!("{} ways gave our latency", queries.len());
}

#[test]
fn a_credential_comes_from_the_environment_or_a_file_and_is_in_no_argument_or_error() {
    let ours = Headroom::new();
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let file = dir.path().join("auth");
    let push = |url: &str, text: &str, mode: u32, environment: &str| {
        use std::os::unix::fs::PermissionsExt;
        std::fs::write(&file, text).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        let source = format!("sqlite:{}", dir.path().join("no.db").display());
        let mut command =
            ours.command(&["agent", "--source", &source, "--listen", "none", "--duration", "1s"]);
        command.args(["--remote-write", url, "--push-auth", file.to_str().unwrap()]);
        let output = command.env("HEADROOM_REMOTE_WRITE_AUTH", environment).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!said.contains("sesame"), "{said}");
        (output.status.code().unwrap(), said)
    };
    let url = format!("http://127.0.0.1:{}/write", free_port());
    let (code, said) = push(&url, "remote-write basic me:sesame\n", 0o644, "");
    assert!(code == 3 && said.contains("chmod 600"), "{said}");
    let (code, said) = push(&url, "remote-write sesame\n", 0o600, "");
    assert!(code == 2 && said.contains("line 1") && said.contains("basic USER:PASSWORD"), "{said}");
    let (code, said) = push(&url, "", 0o600, "sesame");
    assert!(code == 2 && said.contains("HEADROOM_REMOTE_WRITE_AUTH"), "{said}");
    let (code, said) = push("http://me:sesame@h/write", "", 0o600, "");
    assert!(code == 2 && said.contains("ps"), "{said}");
    let (code, said) = push(&url, "remote-write basic me:sesame\n", 0o600, "");
    assert!(code == 0 && said.contains("cannot connect"), "{said}");
}

#[test]
fn both_formats_are_given_as_they_are_asked_for() {
    let ours = Headroom::new();
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let database = dir.path().join("shop.db");
    let _running = Scenario::prepare("commits", &database).start("commits", 60);
    let (_agent, port) = start_agent(&ours, &format!("sqlite:{}", database.display()), 0, &[]);
    let began = Instant::now();
    let of_log = |family: &str| format!("headroom_file_{family}{{mount=");
    let open = loop {
        let open = get(port, "/metrics", "application/openmetrics-text; version=1.0.0").unwrap();
        if open.contains(&of_log("latency_seconds_bucket")) {
            break open;
        }
        assert!(began.elapsed() < Duration::from_secs(20), "{open}");
        std::thread::sleep(Duration::from_millis(200));
    };
    assert!(
        open.ends_with("# EOF\n") && open.contains("# UNIT headroom_file_time_seconds seconds"),
        "{open}"
    );
    for family in
        ["operations_total", "operations_created", "latency_seconds_count", "latency_seconds_created"]
    {
        assert!(open.contains(&of_log(family)), "{family}: {open}");
    }
    let syncs = |line: &&str| line.contains("kind=\"log\"") && line.contains("op=\"sync\"");
    let buckets = open.lines().filter(|line| line.starts_with(&of_log("latency_seconds_bucket")));
    assert_eq!(buckets.filter(syncs).count(), 16, "{open}");
    let old = get(port, "/metrics", "text/plain").unwrap();
    assert!(old.contains("# TYPE headroom_file_operations_total counter"), "{old}");
    assert!(!old.contains("# EOF") && !old.contains("_created"), "{old}");
    assert_eq!(get(port, "/elsewhere", "*/*"), None);
}
