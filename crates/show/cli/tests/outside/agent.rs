//! `headroom agent` with real servers on real block devices whose limits change at a known second.

mod abandoned;
mod page;
mod privileges;
mod soak;

use crate::truth::engines::{Evicting, Sessions};
use programs::Headroom;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use testbed::{LoopDisk, PostgresServer};
use workload::CapKind;

/// Rows of nearly 8 KiB: more than the server's memory holds.
const ROWS: u32 = 8_192;
/// Longer than it is watched; ended before.
const SECONDS: u32 = 600;
const READ: &str = "\\set id random(1, 8192)\nSELECT length(payload) FROM items WHERE id = :id;\n";
/// Reads a second: far from what a loop device gives.
const RATE: &str = "--rate=150";
/// Of the disk while it is limited: far below the rate.
const CAP: u64 = 30;
/// Shorter than the defaults, so that the test takes less time; `scripts/bench incidents` measures with the defaults.
const QUICK: [&str; 6] = ["--window", "40s", "--open-after", "15s", "--close-after", "20s"];

/// A PostgreSQL on a disk of its own that was measured, and clients that read at a pace.
struct Stage {
    headroom: Headroom,
    server: PostgresServer,
    scripts: tempfile::TempDir,
    _evicting: Evicting,
    // After the server.
    disk: LoopDisk,
}

impl Stage {
    fn set_up() -> Option<Stage> {
        let mut disk = LoopDisk::new(2 << 30)?;
        let dir = disk.format_and_mount().to_owned();
        let headroom = Headroom::new();
        headroom.json(&["measure", "--quick", "--size", "256M", dir.to_str().unwrap()]);
        let server = PostgresServer::start_in(15, &dir)?;
        server.set("track_io_timing", "on");
        server.set("track_wal_io_timing", "on");
        server.set("autovacuum", "off");
        server.sql("ALTER SYSTEM SET shared_buffers = '16MB'");
        server.sql(&format!(
            "CREATE UNLOGGED TABLE items (id int PRIMARY KEY, payload text);
             ALTER TABLE items ALTER payload SET STORAGE PLAIN;
             INSERT INTO items SELECT g, repeat('x', 7900) FROM generate_series(1, {ROWS}) g;"
        ));
        server.sql("VACUUM ANALYZE items");
        let mut server = server;
        server.restart();
        let scripts = tempfile::tempdir().unwrap();
        std::fs::write(scripts.path().join("read"), READ).unwrap();
        let table = server.data_directory().join(server.sql("SELECT pg_relation_filepath('items')"));
        let evicting = Evicting::begin(&table);
        Some(Stage { headroom, server, scripts, _evicting: evicting, disk })
    }

    fn source(&self) -> String {
        format!("postgres:{}", self.server.connection())
    }

    fn readers(&self) -> Sessions {
        let mut pgbench = self.server.pgbench_command();
        pgbench.args(["--no-vacuum", "--client=4", RATE, &format!("--time={SECONDS}")]);
        pgbench.arg(format!("--file={}", self.scripts.path().join("read").display()));
        pgbench.arg("postgres").stdout(Stdio::null()).stderr(Stdio::null());
        Sessions(vec![pgbench.spawn().unwrap()])
    }

    fn incidents(&self) -> Vec<Value> {
        let listed = self.headroom.json(&["history", "incidents"]);
        listed["incidents"].as_array().unwrap().clone()
    }

    /// Waits until the only incident is as wanted; fails after `seconds` seconds.
    #[track_caller]
    fn wait_for(&self, what: &str, seconds: u64, is_so: impl Fn(&Value) -> bool) -> Value {
        let began = Instant::now();
        loop {
            let found = self.incidents();
            assert!(found.len() < 2, "one cause, one incident: {found:#?}");
            if let Some(one) = found.into_iter().find(|one| is_so(one)) {
                println!("{what} after {:.0?}: {} {}", began.elapsed(), one["verdict"], one["summary"]);
                return one;
            }
            assert!(began.elapsed() < Duration::from_secs(seconds), "not {what}: {:#?}", self.incidents());
            std::thread::sleep(Duration::from_millis(500));
        }
    }
}

/// An agent that runs; killed when dropped.
struct Agent {
    child: Child,
    port: u16,
    /// The lines of its log, and when they came.
    log: Arc<Mutex<Vec<(Instant, String)>>>,
    /// Reads them; ends with it.
    reader: Option<JoinHandle<()>>,
}

impl Agent {
    fn start(headroom: &Headroom, source: &str, settings: &[String]) -> Agent {
        let mut command = headroom.command(&["agent", "--source", source, "--listen", "127.0.0.1:0"]);
        command.args(settings);
        Agent::begin(command)
    }

    fn begin(mut command: Command) -> Agent {
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
        let mut first = Vec::new();
        let line = lines.by_ref().inspect(|line| first.push((Instant::now(), line.clone())));
        let line = line.into_iter().find(|line| line.contains("metrics at http://"));
        let line = line.unwrap_or_else(|| panic!("it ended: {first:#?}"));
        let port = line.rsplit(':').next().unwrap().trim_end_matches("/metrics").parse().unwrap();
        let log = Arc::new(Mutex::new(first));
        let kept = Arc::clone(&log);
        let reader = std::thread::spawn(move || {
            for line in lines {
                println!("  {line}");
                kept.lock().unwrap().push((Instant::now(), line));
            }
        });
        Agent { child, port, log, reader: Some(reader) }
    }

    fn metrics(&self) -> String {
        get(self.port, "/metrics").unwrap()
    }

    /// The value of the series whose line begins so.
    fn series(&self, begin: &str) -> Option<f64> {
        let text = self.metrics();
        let line = text.lines().find(|line| line.starts_with(begin))?;
        line.rsplit(' ').next().unwrap().parse().ok()
    }

    #[track_caller]
    fn wait_for_verdict(&self, seconds: u64, verdicts: &[&str]) {
        let began = Instant::now();
        loop {
            let text = self.metrics();
            let holds = |verdict: &&str| {
                let end = format!("verdict=\"{verdict}\"}} 1");
                text.lines().any(|line| line.starts_with("headroom_verdict{") && line.ends_with(&end))
            };
            if let Some(verdict) = verdicts.iter().find(|verdict| holds(verdict)) {
                return println!("{verdict} after {:.0?}", began.elapsed());
            }
            assert!(began.elapsed() < Duration::from_secs(seconds), "none of {verdicts:?}: {text}");
            std::thread::sleep(Duration::from_millis(500));
        }
    }

    /// As a crash of it does.
    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The body of an answer; `None` where no server answers.
fn get(port: u16, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer.split_once("\r\n\r\n")?.1.to_owned())
}

/// Debian's Alertmanager, which notifies no one.
struct Alertmanager {
    child: Child,
    port: u16,
    _dir: tempfile::TempDir,
}

impl Alertmanager {
    /// `None`, after saying so, where it is not installed.
    fn start() -> Option<Alertmanager> {
        let dir = tempfile::tempdir().unwrap();
        let config = dir.path().join("alertmanager.yml");
        std::fs::write(&config, "route: {receiver: none}\nreceivers: [{name: none}]\n").unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut command = Command::new("prometheus-alertmanager");
        command.arg(format!("--config.file={}", config.display()));
        command.arg(format!("--storage.path={}", dir.path().join("data").display()));
        command.arg(format!("--web.listen-address=127.0.0.1:{port}")).arg("--cluster.listen-address=");
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let child =
            child.inspect_err(|error| eprintln!("skipped: no prometheus-alertmanager: {error}")).ok()?;
        let started = Alertmanager { child, port, _dir: dir };
        let began = Instant::now();
        while get(port, "/-/ready").is_none() {
            assert!(began.elapsed() < Duration::from_secs(30), "no Alertmanager");
            std::thread::sleep(Duration::from_millis(100));
        }
        Some(started)
    }

    /// The alerts that it knows as active.
    fn active(&self) -> Vec<Value> {
        let body = get(self.port, "/api/v2/alerts?active=true").unwrap();
        let json = &body[body.find('[').unwrap()..=body.rfind(']').unwrap()];
        serde_json::from_str(json).unwrap()
    }

    #[track_caller]
    fn wait_for_active(&self, count: usize) -> Vec<Value> {
        let began = Instant::now();
        while self.active().len() != count {
            assert!(began.elapsed() < Duration::from_secs(10), "{:#?}", self.active());
            std::thread::sleep(Duration::from_millis(200));
        }
        self.active()
    }
}

impl Drop for Alertmanager {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A server that keeps what is posted to it.
struct Webhook {
    port: u16,
    events: Arc<Mutex<Vec<Value>>>,
}

impl Webhook {
    fn start() -> Webhook {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (port, events) = (listener.local_addr().unwrap().port(), Arc::default());
        let kept: Arc<Mutex<Vec<Value>>> = Arc::clone(&events);
        std::thread::spawn(move || {
            // The first is answered as by a server that is down: it is sent again.
            for (number, stream) in listener.incoming().enumerate() {
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
                let status = if number == 0 { "503 Service Unavailable" } else { "204 No Content" };
                if number > 0 {
                    kept.lock().unwrap().push(serde_json::from_slice(&body).unwrap());
                }
                let _ = write!(stream.get_mut(), "HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n");
            }
        });
        Webhook { port, events }
    }

    fn events(&self) -> Vec<String> {
        let events = self.events.lock().unwrap();
        events.iter().map(|event| event["event"].as_str().unwrap().to_owned()).collect()
    }
}

fn unix_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64
}

/// Debian's own judge of what is exported says nothing.
fn promtool_is_content(text: &str) {
    let mut promtool = Command::new("promtool");
    promtool.args(["check", "metrics"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let Ok(mut child) = promtool.spawn() else { return eprintln!("skipped: no promtool") };
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    assert!(output.status.success() && said.is_empty(), "{}\n{text}", String::from_utf8_lossy(&said));
}

#[test]
fn a_cap_that_is_set_and_lifted_is_one_incident_also_of_an_agent_that_is_killed_meanwhile() {
    let Some(mut stage) = Stage::set_up() else { return };
    let (source, mount) = (stage.source(), stage.disk.mount_point().to_str().unwrap().to_owned());
    let _readers = stage.readers();
    let (alertmanager, webhook) = (Alertmanager::start(), Webhook::start());
    let mut settings: Vec<String> = QUICK.map(Into::into).into();
    settings.extend(["--webhook".into(), format!("http://127.0.0.1:{}/hook", webhook.port)]);
    if let Some(alertmanager) = &alertmanager {
        settings.extend(["--alertmanager".into(), format!("http://127.0.0.1:{}", alertmanager.port)]);
    }
    let agent = Agent::start(&stage.headroom, &source, &settings);
    agent.wait_for_verdict(40, &["healthy", "nobody-waits"]);
    assert!(stage.incidents().is_empty());
    promtool_is_content(&agent.metrics());

    let set = unix_ns();
    if !stage.disk.throttle(CapKind::ReadIops, CAP) {
        return;
    }
    let open = stage.wait_for("open", 60, |one| one["ended_unix_ns"].is_null());
    // The source in its canonical form.
    let database = open["database"].as_str().unwrap();
    assert!(
        database.starts_with("postgres:") && database.contains(&stage.server.port().to_string()),
        "{database}"
    );
    assert_eq!(open["mount"], mount.as_str());
    let began = open["started_unix_ns"].as_u64().unwrap();
    assert!(began.abs_diff(set) < 25_000_000_000, "{} s off", (began as f64 - set as f64) / 1e9);
    assert!(!open["worst"]["evidence"].as_array().unwrap().is_empty(), "{open:#}");
    let file = open["worst"]["files"][0]["path"].as_str().unwrap();
    assert!(!file.is_empty() && open["next_step"].as_str().unwrap().len() > 10, "{open:#}");
    let labels = format!("{{mount=\"{mount}\",source=\"{database}\"");
    assert_eq!(agent.series(&format!("headroom_incident_open{labels}}}")), Some(1.0));
    let cap = format!("headroom_cap_operations_per_second{labels},op=\"read\"}}");
    assert_eq!(agent.series(&cap), Some(CAP as f64));
    let reads = format!("headroom_file_operations_total{labels},kind=\"data\",layer=\"file\",op=\"read\"}}");
    assert!(agent.series(&reads) > Some(0.0), "{}", agent.metrics());
    assert!(agent.metrics().contains("type=\"loop\",parent=\""), "{}", agent.metrics());
    promtool_is_content(&agent.metrics());
    page::shows_incident(&agent, &open);

    if let Some(alertmanager) = &alertmanager {
        let labels = &alertmanager.wait_for_active(1)[0]["labels"];
        assert_eq!((&labels["mount"], &labels["alertname"]), (&open["mount"], &"HeadroomIncident".into()));
    }
    agent.kill();
    let agent = Agent::start(&stage.headroom, &source, &settings);
    agent.wait_for_verdict(40, &["throttled"]);
    assert_eq!(stage.wait_for("still open", 5, |one| one["ended_unix_ns"].is_null())["id"], open["id"]);

    stage.disk.unthrottle();
    let lifted = unix_ns();
    let closed = stage.wait_for("closed", 90, |one| one["ended_unix_ns"].is_u64());
    assert_eq!((&closed["id"], &closed["verdict"]), (&open["id"], &"throttled".into()), "{closed:#}");
    assert_eq!(closed["ending"], "recovered");
    let ended = closed["ended_unix_ns"].as_u64().unwrap();
    assert!(ended.abs_diff(lifted) < 25_000_000_000, "{} s off", (ended as f64 - lifted as f64) / 1e9);
    if let Some(alertmanager) = &alertmanager {
        alertmanager.wait_for_active(0);
    }
    let began = Instant::now();
    while webhook.events().last().is_none_or(|last| last != "closed") {
        assert!(began.elapsed() < Duration::from_secs(10), "{:?}", webhook.events());
        std::thread::sleep(Duration::from_millis(100));
    }
    let events = webhook.events();
    let count = |name: &str| events.iter().filter(|event| *event == name).count();
    assert_eq!(
        (count("opened"), count("closed")),
        (1, 1),
        "the agent that was killed repeats nothing: {events:?}"
    );
    let text = stage.headroom.run(&["history", "incidents", &closed["id"].to_string()]);
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(text.contains("THROTTLED") && text.contains("Next step"), "{text}");
    let page = stage.scripts.path().join("incident.html");
    let arguments = ["history", "incidents", &closed["id"].to_string(), "--html", page.to_str().unwrap()];
    assert!(stage.headroom.run(&arguments).status.success());
    let html = std::fs::read_to_string(&page).unwrap();
    assert!(html.contains("What happened") && html.contains("Next step"), "{html}");
    // The agent that was killed may have taken the minutes with it that were not over.
    assert!(html.contains("<svg") || html.contains("No minutes around it are kept"), "{html}");
}

#[test]
fn a_server_is_found_without_configuration_and_its_end_is_noticed() {
    let Some(mut server) = PostgresServer::start(15) else { return };
    let headroom = Headroom::new();
    let agent = Agent::begin(headroom.command(&["agent", "--listen", "127.0.0.1:0"]));
    let up = || {
        let text = agent.metrics();
        let own = |line: &&str| line.starts_with("headroom_source_up{") && line.ends_with(" 1");
        let port = server.port().to_string();
        text.lines().filter(own).any(|line| line.contains("postgres:") && line.contains(&port))
    };
    let began = Instant::now();
    while !up() {
        assert!(began.elapsed() < Duration::from_secs(30), "{}", agent.metrics());
        std::thread::sleep(Duration::from_millis(200));
    }
    let port = server.port().to_string();
    server.stop();
    let began = Instant::now();
    while agent.metrics().lines().any(|line| line.starts_with("headroom_source_up{") && line.contains(&port))
    {
        assert!(began.elapsed() < Duration::from_secs(60), "{}", agent.metrics());
        std::thread::sleep(Duration::from_millis(500));
    }
}

#[test]
fn wrong_usage_is_refused_before_anything_is_made() {
    let headroom = Headroom::new();
    for arguments in [
        &["agent", "--source", "devices:"][..],
        &["agent", "--source", "process:", "--source", "process:"],
        &["agent", "--source", "process:", "--window", "1s"],
        &["agent", "--source", "process:", "--every", "0s"],
        &["agent", "--source", "process:", "--webhook", "https://me:secret@h/"],
        &["agent", "--source", "process:", "--alertmanager", "localhost"],
    ] {
        let output = headroom.run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {output:?}");
        assert!(!String::from_utf8_lossy(&output.stderr).contains("secret"), "{output:?}");
    }
    assert!(!Path::new(&headroom.history()).exists());
    let none = headroom.run(&["history", "incidents"]);
    assert_eq!(none.status.code(), Some(3), "{none:?}");
}

#[test]
fn a_damaged_history_is_moved_aside_and_the_agent_begins_a_new_one() {
    let headroom = Headroom::new();
    headroom.json(&["history", "capture", "--source", "devices:"]);
    let path = headroom.history();
    let mut content = std::fs::read(&path).unwrap();
    content[4096..].fill(0x5a);
    std::fs::write(&path, &content).unwrap();
    let arguments = ["agent", "--source", "process:1", "--listen", "none", "--duration", "1s"];
    let output = headroom.command(&arguments).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("history.db.damaged-1"), "{said}");
    let aside = path.with_file_name("history.db.damaged-1");
    assert_eq!(std::fs::read(aside).unwrap(), content, "what can be saved of it stays");
    assert_eq!(headroom.json(&["history", "incidents"])["incidents"], serde_json::json!([]));
}

#[test]
fn a_configuration_is_checked_and_read_again_at_sighup() {
    let headroom = Headroom::new();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("agent.toml");
    let path = file.to_str().unwrap();
    let write = |text: &str| std::fs::write(&file, text).unwrap();
    let check = || headroom.run(&["agent", "--config", path, "--check-config"]);
    for (text, wanted) in [
        ("sources = ['postgres:']\nevery = 'soon'", "wrong every"),
        ("sources = ['postgres:']\n\nservice = 'oltp'", "line 3"),
        ("sources = ['oracle:x']", "wrong source"),
        ("sources = ['postgres:', 'postgres:']", "given twice"),
    ] {
        write(text);
        let output = check();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && said.contains(wanted), "{text}: {said}");
    }
    let (first, second) = (dir.path().join("first.db"), dir.path().join("second.db"));
    write(&format!("sources = ['sqlite:{}']\nlisten = '127.0.0.1:0'\n", first.display()));
    assert!(check().status.success());
    let agent = Agent::begin(headroom.command(&["agent", "--config", path]));
    let is_watched = |file: &Path| {
        agent.metrics().contains(&format!("headroom_source_up{{source=\"sqlite:{}\"}} 0", file.display()))
    };
    let wait_for = |file: &Path| {
        let began = Instant::now();
        while !is_watched(file) {
            assert!(began.elapsed() < Duration::from_secs(20), "{}", agent.metrics());
            std::thread::sleep(Duration::from_millis(100));
        }
    };
    let hang_up = || {
        let pid = agent.child.id().to_string();
        assert!(Command::new("kill").args(["-HUP", &pid]).status().unwrap().success());
    };
    wait_for(&first);
    write("sources = 7");
    hang_up();
    std::thread::sleep(Duration::from_secs(1));
    wait_for(&first);
    write(&format!("sources = ['sqlite:{}']\n", second.display()));
    hang_up();
    wait_for(&second);
    assert!(!is_watched(&first));
}
