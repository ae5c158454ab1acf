//! The server of the live page: each route, its figures against a load of a known rate and against the other outputs.

use super::{Agent, get};
use programs::Headroom;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use testbed::LoopDisk;

/// I/Os a second of the load, the bytes of each, and the share of writes.
const RATE: f64 = 200.0;
const BYTES: f64 = 8192.0;
const WRITES: f64 = 0.3;
/// A rate is met within this share: the load's own clock and the judged window are not the same seconds.
const RATE_WITHIN: f64 = 0.15;
const QUICK: [&str; 4] = ["--window", "10s", "--every", "1s"];

/// A program with a load of a known rate on a disk of its own; killed when dropped.
struct Load {
    child: Child,
    // After the program.
    disk: LoopDisk,
}

impl Load {
    fn begin(headroom: &Headroom, disk: LoopDisk) -> Load {
        let dir = disk.mount_point().to_str().unwrap().to_owned();
        let mut command =
            headroom.command(&["run", &dir, "--size", "64M", "--block", "8K", "--writes", "30"]);
        command.args(["--rate", &format!("{RATE}/s"), "--duration", "10m"]);
        Load { child: command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap(), disk }
    }

    fn source(&self) -> String {
        format!("process:{}", self.child.id())
    }

    fn mount(&self) -> &str {
        self.disk.mount_point().to_str().unwrap()
    }

    fn end(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.end();
    }
}

fn disk() -> Option<LoopDisk> {
    let mut disk = LoopDisk::new(512 << 20)?;
    disk.format_and_mount();
    Some(disk)
}

/// The answer to a request: its status, its head, its body.
fn ask(port: u16, method: &str, path: &str, headers: &str) -> (u16, String, String) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let request =
        format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), head.to_lowercase(), body.to_owned())
}

fn json(port: u16, path: &str) -> Value {
    let (status, _, body) = ask(port, "GET", &format!("/api/v1/{path}"), "");
    assert_eq!(status, 200, "{path}: {body}");
    serde_json::from_str(&body).unwrap()
}

#[track_caller]
fn wait_for<T>(what: &str, seconds: u64, mut look: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(began.elapsed() < Duration::from_secs(seconds), "not within {seconds} s: {what}");
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// The volume of the load, once something holds of it.
#[track_caller]
fn volume(agent: &Agent, mount: &str, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
    wait_for(what, 60, || {
        let state = json(agent.port, "state");
        let volumes = state["volumes"].as_array().unwrap();
        volumes.iter().find(|volume| volume["mount"] == mount && is_so(volume)).cloned()
    })
}

/// The volume of that id in a state.
fn of_id<'a>(state: &'a Value, id: &str) -> Option<&'a Value> {
    state["volumes"].as_array().unwrap().iter().find(|volume| volume["id"] == id)
}

fn is_near(value: &Value, wanted: f64) -> bool {
    value.as_f64().is_some_and(|value| (value / wanted - 1.0).abs() < RATE_WITHIN)
}

#[track_caller]
fn is_about(value: &Value, wanted: f64) {
    assert!(is_near(value, wanted), "{value} is not about {wanted}");
}

/// Events of a stream as they come, each with its data.
fn events(port: u16, path: &str) -> impl Iterator<Item = (String, Value)> + use<> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut name = String::new();
    BufReader::new(stream).lines().map_while(Result::ok).filter_map(move |line| {
        if let Some(event) = line.strip_prefix("event: ") {
            event.clone_into(&mut name);
        }
        let data = line.strip_prefix("data: ")?;
        Some((name.clone(), serde_json::from_str(data).unwrap()))
    })
}

fn numbers(values: &Value) -> Vec<f64> {
    values.as_array().unwrap().iter().filter_map(Value::as_f64).collect()
}

#[test]
fn every_figure_of_the_page_is_that_of_the_load_and_of_the_other_outputs() {
    let Some(disk) = disk() else { return };
    let headroom = Headroom::new();
    headroom.json(&["measure", "--quick", "--size", "128M", disk.mount_point().to_str().unwrap()]);
    let mut load = Load::begin(&headroom, disk);
    let (source, mount) = (load.source(), load.mount().to_owned());
    let agent = Agent::start(&headroom, &source, &QUICK.map(Into::into));
    let is_full = |volume: &Value| {
        let iops = volume["reads_per_second"].as_f64().unwrap_or(0.0)
            + volume["writes_per_second"].as_f64().unwrap_or(0.0);
        (iops / RATE - 1.0).abs() < RATE_WITHIN && volume["utilisation"].is_f64()
    };
    let state = volume(&agent, &mount, "the whole rate, judged", is_full);
    is_about(&state["reads_per_second"], RATE * (1.0 - WRITES));
    is_about(&state["written_bytes_per_second"], RATE * WRITES * BYTES);
    assert_eq!((&state["database"], &state["gap"]), (&source.as_str().into(), &Value::Null), "{state:#}");
    assert_eq!(state["capability"]["directory"], mount.as_str());
    assert!(
        state["latency_ns"].as_f64().unwrap() > 1_000.0 && state["sentence"].as_str().unwrap().len() > 10
    );
    let id = state["id"].as_str().unwrap();
    agrees_with_metrics(&agent, &source, &mount, id);
    over_time(&agent, id);
    files_and_devices(&agent, id, &mount);
    on_the_curve(&agent, id);
    what_is_kept(&agent, &headroom, id);
    a_stop_is_idle(&agent, id, &mut load);
    agent.kill();
    without_an_agent(&headroom, id);
}

/// Utilisation and outstanding I/Os are those of `/metrics`, of the same judgement.
fn agrees_with_metrics(agent: &Agent, source: &str, mount: &str, id: &str) {
    let series =
        |name: &str| agent.series(&format!("headroom_{name}{{mount=\"{mount}\",source=\"{source}\"}}"));
    wait_for("the state and the metrics of one judgement", 20, || {
        let before = series("utilisation_ratio")?;
        let state = json(agent.port, "state");
        let (outstanding, after) = (series("demand_outstanding")?, series("utilisation_ratio")?);
        let volume = of_id(&state, id)?;
        let of_state = |key: &str| volume[key].as_f64();
        (before == after
            && of_state("utilisation") == Some(before)
            && of_state("outstanding") == Some(outstanding))
        .then_some(())
    });
}

fn over_time(agent: &Agent, id: &str) {
    let series = wait_for("ten seconds", 30, || {
        let series = json(agent.port, &format!("series?volume={id}"));
        (numbers(&series["series"]["iops"]["mean"]).len() >= 10).then_some(series)
    });
    let (times, iops) = (numbers(&series["times_unix_s"]), &series["series"]["iops"]);
    assert!(
        series["step_ns"] == 1_000_000_000 && times.len() >= 900,
        "{} at {}",
        times.len(),
        series["step_ns"]
    );
    assert_eq!(iops["mean"].as_array().unwrap().len(), times.len());
    let known = numbers(&iops["mean"]);
    assert!(known.len() < 300, "{} seconds are known", known.len());
    let newest = &known[known.len() - 5..];
    is_about(&(newest.iter().sum::<f64>() / 5.0).into(), RATE);
    // The highest second is at every zoom.
    let highest = |path: &str| {
        let series = json(agent.port, &format!("series?volume={id}&{path}"));
        numbers(&series["series"]["outstanding"]["max"]).into_iter().fold(0.0, f64::max)
    };
    let to = json(agent.port, "state")["now_unix_ns"].as_u64().unwrap() / 1_000_000_000 * 1_000_000_000;
    let zooms = [900, 100, 7, 1]
        .map(|points| highest(&format!("from={}&to={to}&points={points}", to - 900_000_000_000)));
    assert!(zooms[0] > 0.0 && zooms.iter().all(|zoom| *zoom >= zooms[0]), "{zooms:?}");
    for wrong in ["points=0", "points=99999", "from=x", "from=5&to=4"] {
        let (status, _, body) = ask(agent.port, "GET", &format!("/api/v1/series?volume={id}&{wrong}"), "");
        assert!(status == 400 && body.contains("\"try\""), "{wrong}: {status} {body}");
    }
}

fn files_and_devices(agent: &Agent, id: &str, mount: &str) {
    let files = json(agent.port, &format!("files?volume={id}"));
    let file = &files["files"][0];
    assert!(Path::new(file["path"].as_str().unwrap()).starts_with(mount), "{file:#}");
    is_about(&file["writes_per_second"], RATE * WRITES);
    is_about(&file["read_bytes_per_second"], RATE * (1.0 - WRITES) * BYTES);
    assert_eq!(file["trail"].as_array().unwrap().len(), 60);
    let histogram = file["histogram"].as_array().unwrap();
    assert!(histogram.iter().map(|bucket| bucket["reads"].as_u64().unwrap()).sum::<u64>() > 500, "{file:#}");
    // Of one second, of which reads are a random part.
    let device = wait_for("the rate at the device", 30, || {
        let devices = json(agent.port, &format!("devices?volume={id}"));
        let device = devices["devices"][0].clone();
        assert_eq!(device["mount"], mount, "{devices:#}");
        is_near(&device["reads_per_second"], RATE * (1.0 - WRITES)).then_some(device)
    });
    assert!(device["busy"].as_f64().unwrap() <= 1.0, "{device:#}");
    assert!(json(agent.port, &format!("waits?volume={id}"))["waits"].is_array());
}

fn on_the_curve(agent: &Agent, id: &str) {
    let curve = wait_for("the rate on the curve", 30, || {
        let curve = json(agent.port, &format!("curve?volume={id}"));
        is_near(&curve["demand"]["iops"], RATE * (1.0 - WRITES)).then_some(curve)
    });
    let demand = &curve["demand"];
    let on = &curve["curves"][demand["curve"].as_u64().unwrap() as usize];
    assert!(
        on["points"].as_array().unwrap().len() > 1 && on["name"].as_str().unwrap().contains("random"),
        "{on:#}"
    );
    assert!(curve["trail"].as_array().unwrap().len() >= 3, "{curve:#}");
    assert_eq!(curve["service_level_ns"], 20_000_000);
}

/// Contents of the history equal those that the commands print.
fn what_is_kept(agent: &Agent, headroom: &Headroom, id: &str) {
    assert_eq!(json(agent.port, "incidents"), headroom.json(&["history", "incidents"]));
    assert_eq!(ask(agent.port, "GET", "/api/v1/incidents/4711", "").0, 404);
    let measured = json(agent.port, "capabilities");
    assert!(measured["capabilities"][0]["reads_per_second"].as_f64().unwrap() > RATE, "{measured:#}");
    wait_for("the verdict of now as the last stretch", 20, || {
        let verdicts = json(agent.port, &format!("verdicts?volume={id}&from=-60000000000"));
        let last = verdicts["stretches"].as_array().unwrap().last().unwrap().clone();
        (last["verdict"] == of_id(&json(agent.port, "state"), id)?["verdict"]).then_some(())
    });
}

/// A load that is held does nothing, which is known.
fn a_stop_is_idle(agent: &Agent, id: &str, load: &mut Load) {
    let mut events = events(agent.port, &format!("/api/v1/stream?volume={id}"));
    let (name, state) = events.next().unwrap();
    assert!(name == "state" && of_id(&state, id).is_some(), "{name}: {state:#}");
    let (_, moment) = events.find(|(name, _)| name == "moment").unwrap();
    assert!(moment["iops"].as_f64().unwrap() > 0.0 && moment["gap"].is_null(), "{moment}");
    assert!(Command::new("kill").args(["-STOP", &load.child.id().to_string()]).status().unwrap().success());
    let idle: Vec<Value> =
        events.by_ref().filter(|(name, _)| name == "moment").take(20).map(|(_, moment)| moment).collect();
    assert!(idle.iter().any(|moment| moment["iops"] == 0.0), "idle is known: {idle:#?}");
    load.end();
}

/// An incident is in the page's list, in the stretches of verdicts, and beside the limit that is its cause.
pub fn shows_incident(agent: &Agent, open: &Value) {
    let state = json(agent.port, "state");
    assert_eq!(state["incidents_open"], 1, "{state:#}");
    let id = state["volumes"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!(
        json(agent.port, &format!("incidents/{}", open["id"]))["started_unix_ns"],
        open["started_unix_ns"]
    );
    let is_same = |value: &Value| value["incident"] == open["id"];
    // The verdict on the whole window follows the one on its newest part.
    wait_for("a bad stretch with its incident", 40, || {
        let verdicts = json(agent.port, &format!("verdicts?volume={id}"));
        verdicts["stretches"].as_array().unwrap().iter().any(is_same).then_some(())
    });
    let series = json(agent.port, &format!("series?volume={id}"));
    let marks = series["marks"].as_array().unwrap();
    assert!(marks.iter().any(is_same) && marks.iter().any(|mark| mark["kind"] == "cap"), "{marks:#?}");
}

/// `headroom history page` shows the same volume of the history.
fn without_an_agent(headroom: &Headroom, id: &str) {
    let mut command = headroom.command(&["history", "page", "--listen", "127.0.0.1:0", "--duration", "1m"]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let port =
        line.split("127.0.0.1:").nth(1).and_then(|rest| rest.split('/').next()).unwrap().parse().unwrap();
    let state = json(port, "state");
    assert!(state["live"] == false && of_id(&state, id).is_some(), "{state:#}");
    let verdicts = json(port, &format!("verdicts?volume={id}"));
    assert!(!verdicts["stretches"].as_array().unwrap().is_empty());
    assert_eq!(json(port, "incidents"), headroom.json(&["history", "incidents"]));
    let _ = child.kill();
    let _ = child.wait();
}

#[test]
fn a_page_without_anything_measured_says_what_to_do_and_what_is_asked_wrongly_is_refused() {
    let Some(disk) = disk() else { return };
    let headroom = Headroom::new();
    let load = Load::begin(&Headroom::new(), disk);
    let agent = Agent::start(&headroom, &load.source(), &QUICK.map(Into::into));
    let state = volume(&agent, load.mount(), "judged", |volume| volume["judged_unix_ns"].is_u64());
    assert_eq!((&state["verdict"], &state["capability"]), (&"cannot-say".into(), &Value::Null));
    assert_eq!(state["measure_command"], format!("headroom measure {}", load.mount()));
    assert!(state["utilisation"].is_null() && state["headroom"].is_null());
    let id = state["id"].as_str().unwrap();
    let (status, _, body) = ask(agent.port, "GET", &format!("/api/v1/curve?volume={id}"), "");
    assert!(status == 404 && body.contains("headroom measure"), "{body}");

    let port = agent.port;
    let (status, head, page) = ask(port, "GET", "/", "");
    assert!(status == 200 && page.contains("<title>"), "{head}");
    for header in [
        "content-security-policy: default-src 'self'",
        "x-content-type-options: nosniff",
        "cache-control: no-cache",
    ] {
        assert!(head.contains(header), "{header}: {head}");
    }
    assert!(!head.contains("access-control"), "{head}");
    let etag = head.lines().find_map(|line| line.strip_prefix("etag: ")).unwrap();
    assert_eq!(ask(port, "GET", "/", &format!("If-None-Match: {etag}\r\n")).0, 304);
    assert_eq!((ask(port, "HEAD", "/", "").0, ask(port, "HEAD", "/", "").2), (200, String::new()));
    for path in ["/healthz", "/readyz"] {
        assert_eq!((ask(port, "GET", path, "").0, get(port, path).as_deref()), (200, Some("ok\n")), "{path}");
    }
    for method in ["POST", "PUT", "DELETE", "OPTIONS"] {
        assert_eq!(ask(port, method, "/api/v1/state", "").0, 405, "{method}");
    }
    for path in ["/api/v1/curve", "/api/v1/files"] {
        assert_eq!(ask(port, "GET", path, "").0, 400, "{path}");
    }
    for path in ["/api/v1/files?volume=0", "/api/v1/nothing", "/../Cargo.toml", "/uplot.LICENSE"] {
        assert_eq!(ask(port, "GET", path, "").0, 404, "{path}");
    }
}

#[test]
fn streams_are_bounded_and_take_no_place_of_a_scrape() {
    let headroom = Headroom::new();
    let dir = tempfile::tempdir().unwrap();
    let source = format!("sqlite:{}", dir.path().join("none.db").display());
    let agent = Agent::start(&headroom, &source, &QUICK.map(Into::into));
    let open = || {
        let mut stream = TcpStream::connect(("127.0.0.1", agent.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.write_all(b"GET /api/v1/stream HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        let mut first = [0; 12];
        stream.read_exact(&mut first).unwrap();
        (stream, String::from_utf8_lossy(&first[9..]).into_owned())
    };
    let streams: Vec<(TcpStream, String)> = (0..serve::STREAMS_MAX).map(|_| open()).collect();
    assert!(streams.iter().all(|(_, status)| status == "200"));
    assert_eq!(open().1, "503");
    let began = Instant::now();
    assert!(agent.metrics().contains("headroom_build_info"));
    assert!(began.elapsed() < Duration::from_secs(5), "a scrape took {:?}", began.elapsed());
    // Longer than a request may take: a stream may.
    std::thread::sleep(serve::PATIENCE + Duration::from_secs(2));
    let (mut stream, _) = streams.into_iter().next().unwrap();
    let mut more = [0; 64];
    assert!(stream.read(&mut more).unwrap() > 0);
    drop(stream);
    wait_for("a place that was given back", 20, || (open().1 == "200").then_some(()));
}

#[test]
fn a_history_is_shown_without_an_agent() {
    let headroom = Headroom::new();
    let none = headroom.run(&["history", "page", "--duration", "1s"]);
    assert_eq!(none.status.code(), Some(3), "{none:?}");
    let refused = headroom.run(&["history", "page", "--listen", "0.0.0.0:0"]);
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
}

#[test]
fn an_address_that_others_reach_is_refused_and_no_address_is_fine() {
    let headroom = Headroom::new();
    let refused =
        headroom.run(&["agent", "--source", "sqlite:none.db", "--listen", "0.0.0.0:0", "--duration", "1s"]);
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    let none = headroom.run(&["agent", "--source", "sqlite:none.db", "--listen", "none", "--duration", "1s"]);
    let said = String::from_utf8_lossy(&none.stderr);
    assert!(none.status.success() && !said.contains("page at"), "{said}");
}
