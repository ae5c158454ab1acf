//! Clients that ask the page of a large history for months, and leave.

use history::{History, MINUTES_MAX};
use programs::Headroom;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Databases whose month is kept.
const SOURCES: u64 = 3;
/// Requests that are abandoned; `scripts/bench abandoned` sends 100,000.
const ABANDONED: u64 = 400;
/// Threads that send them.
const CLIENTS: u64 = 2;
/// The time of an answer afterwards, and what the memory may grow.
const PROMPT: Duration = Duration::from_secs(1);
const GROWS_KIB_MAX: u64 = 30 << 10;
const MONTH_NS: u64 = 30 * 86_400_000_000_000;

/// The newest minutes of each database, as an agent keeps them; faster than it would.
fn fill(path: &Path, minutes: usize) {
    drop(History::open(path).unwrap());
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() / 60;
    let connection = rusqlite::Connection::open(path).unwrap();
    let mut rows = String::from("BEGIN;");
    for source in 1..=SOURCES {
        rows += &format!(
            "INSERT INTO subjects (id, mount, database_name) VALUES ({source}, '/data{source}', 'sqlite:/data{source}/a.db');
             WITH RECURSIVE m (at) AS (SELECT {now} - {minutes} + 1 UNION ALL SELECT at + 1 FROM m WHERE at < {now})
             INSERT INTO judged_minutes SELECT {source}, at, at % 1000000, 1500000, 900000, 800000, 250000, 2048000, 512000 FROM m;"
        );
    }
    connection.execute_batch(&(rows + "COMMIT;")).unwrap();
}

/// `headroom history page`; killed when dropped.
struct Page {
    child: Child,
    port: u16,
}

impl Page {
    /// Starts the page on a history of `minutes` minutes.
    fn start(headroom: &Headroom, minutes: usize) -> Page {
        fill(&headroom.history(), minutes);
        let mut command = headroom.command(&["history", "page", "--listen", "127.0.0.1:0"]);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let port = line.split("127.0.0.1:").nth(1).and_then(|rest| rest.split('/').next());
        Page { port: port.unwrap().parse().unwrap(), child }
    }

    fn send(&self, path: &str, headers: &str) -> TcpStream {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        stream
            .write_all(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n").as_bytes())
            .unwrap();
        stream
    }

    /// The head and the body of an answer.
    fn get(&self, path: &str, headers: &str) -> (String, String) {
        let mut answer = String::new();
        self.send(path, &format!("Connection: close\r\n{headers}")).read_to_string(&mut answer).unwrap();
        let (head, body) =
            answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer to {path}: {answer}"));
        (head.to_lowercase(), body.to_owned())
    }

    fn volumes(&self) -> Vec<String> {
        let state: serde_json::Value = serde_json::from_str(&self.get("/api/v1/state", "").1).unwrap();
        let volumes = state["volumes"].as_array().unwrap().iter();
        volumes.map(|volume| volume["id"].as_str().unwrap().to_owned()).collect()
    }

    fn resident_kib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }

    fn ticks(&self) -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
        fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A month that no other request asks for.
fn month(volume: &str, number: u64) -> String {
    format!("/api/v1/series?volume={volume}&points=4000&from=-{}", MONTH_NS + number * 4_000_000_000)
}

#[test]
fn a_page_answers_and_rests_after_many_requests_for_months_that_were_abandoned() {
    let headroom = Headroom::new();
    let page = Page::start(&headroom, MINUTES_MAX);
    let volumes = page.volumes();
    assert_eq!(volumes.len() as u64, SOURCES);
    // For a tenth of a second requests whose client is gone take places in the queue, and the page itself requests again then.
    let answered = |path: &str| {
        let began = Instant::now();
        let (head, body) = loop {
            let (head, body) = page.get(path, "");
            if !head.contains("retry-after") || began.elapsed() > PROMPT {
                break (head, body);
            }
            std::thread::sleep(Duration::from_millis(50));
        };
        assert!(head.starts_with("http/1.1 200") && !body.is_empty(), "{path}: {head}");
        began.elapsed()
    };
    let paths = ["/", "/api/v1/state", "/metrics"];
    for path in paths {
        answered(path);
    }
    let month_before = answered(&month(&volumes[0], 0));
    let before_kib = page.resident_kib();
    let began = Instant::now();
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (page, volumes) = (&page, &volumes);
            scope.spawn(move || {
                for number in (client..ABANDONED).step_by(CLIENTS as usize) {
                    let path = month(&volumes[number as usize % volumes.len()], 1_000 + number * 1_000);
                    let mut stream = page.send(&path, "Accept-Encoding: gzip\r\n");
                    // Every other one has sent more than is read.
                    if number % 2 == 0 {
                        let _ = stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
                    }
                    let _ = stream.shutdown(Shutdown::Both);
                }
            });
        }
    });
    println!("{ABANDONED} requests in {:?}", began.elapsed());
    for path in paths {
        let took = answered(path);
        assert!(took < PROMPT, "{path} took {took:?}");
    }
    // Another month: the first one is kept. A program that is not optimised takes most of a second for it on a busy machine.
    let month_after = answered(&month(&volumes[0], 500));
    assert!(month_after < PROMPT + 2 * month_before, "{month_after:?}, before {month_before:?}");
    let grew_kib = page.resident_kib().saturating_sub(before_kib);
    assert!(grew_kib < GROWS_KIB_MAX, "{grew_kib} KiB");
    // Nothing that was abandoned is worked at: no more than a tenth of a processor.
    std::thread::sleep(Duration::from_millis(300));
    let ticks = page.ticks();
    std::thread::sleep(Duration::from_millis(500));
    assert!(page.ticks() - ticks <= 5, "{} ticks in half a second", page.ticks() - ticks);
}

#[test]
fn a_page_of_another_site_gets_no_answer_and_each_answer_says_what_a_browser_may_do_with_it() {
    let headroom = Headroom::new();
    let page = Page::start(&headroom, 2);
    let link = "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: document\r\n";
    for (path, headers, status) in [
        ("/api/v1/state", "Sec-Fetch-Site: same-origin\r\n", 200),
        ("/api/v1/state", "", 200),
        ("/metrics", "", 200),
        ("/", link, 200),
        ("/api/v1/state", link, 403),
        ("/api/v1/stream", "Sec-Fetch-Site: cross-site\r\n", 403),
        ("/metrics", "Sec-Fetch-Site: same-site\r\n", 403),
        ("/", "Origin: http://localhost:3000\r\n", 403),
        ("/nothing", "", 404),
        ("/api/v1/nothing", "", 404),
        ("/api/v1/series?volume=0&points=5000", "", 400),
    ] {
        let (head, body) = page.get(path, headers);
        assert!(
            head.starts_with(&format!("http/1.1 {status} ")) && !body.is_empty(),
            "{path} {headers}: {head}"
        );
        for header in [
            "content-security-policy: default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
            "cross-origin-resource-policy: same-origin",
            "referrer-policy: same-origin",
            "x-content-type-options: nosniff",
        ] {
            assert!(head.contains(header), "{path}: {header}: {head}");
        }
    }
}
