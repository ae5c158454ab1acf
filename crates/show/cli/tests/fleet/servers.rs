//! The servers, each on a free port with a directory of its own.

use serde_json::Value;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A server that is ended with the test.
pub struct Server {
    child: Child,
    pub port: u16,
    pub dir: TempDir,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Ready as soon as it accepts connections.
const CONNECTED: &str = "";
/// Long on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(60);

impl Server {
    /// Starts it and waits until `ready` answers; `None`, after saying so, where it is not installed.
    fn start(mut command: Command, port: u16, dir: TempDir, ready: &str) -> Option<Server> {
        command.current_dir(dir.path()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = match command.spawn() {
            Ok(child) => child,
            Err(error) => {
                println!("skipped: {:?} cannot be started: {error}", command.get_program());
                return None;
            }
        };
        let server = Server { child, port, dir };
        let began = Instant::now();
        let is_ready = || match ready {
            CONNECTED => TcpStream::connect(("127.0.0.1", port)).is_ok(),
            path => request(port, &format!("GET {path}"), "").is_some(),
        };
        while !is_ready() {
            assert!(began.elapsed() < PATIENCE, "{:?} does not answer", command.get_program());
            std::thread::sleep(Duration::from_millis(50));
        }
        Some(server)
    }

    /// A Prometheus with the blocks and the configuration in its directory.
    pub fn prometheus(dir: TempDir, config: &str) -> Option<Server> {
        std::fs::write(dir.path().join("prometheus.yml"), config).unwrap();
        let port = free_port();
        let mut command = Command::new("prometheus");
        command.args(["--config.file=prometheus.yml", "--storage.tsdb.path=data"]);
        command.args(["--storage.tsdb.retention.time=400d", "--web.enable-remote-write-receiver"]);
        command.arg(format!("--web.listen-address=127.0.0.1:{port}"));
        Server::start(command, port, dir, "/-/ready")
    }

    /// A Prometheus that speaks TLS, and accepts clients with a certificate of its authority only.
    pub fn prometheus_with_tls(dir: TempDir) -> Option<Server> {
        let tls = "tls_server_config:\n  cert_file: server.pem\n  key_file: server.key\n  client_ca_file: ca.pem\n  \
                   client_auth_type: RequireAndVerifyClientCert\n";
        std::fs::write(dir.path().join("web.yml"), tls).unwrap();
        std::fs::write(dir.path().join("prometheus.yml"), "global: {}\n").unwrap();
        let port = free_port();
        let mut command = Command::new("prometheus");
        command.args([
            "--config.file=prometheus.yml",
            "--storage.tsdb.path=data",
            "--web.config.file=web.yml",
        ]);
        command.arg(format!("--web.listen-address=127.0.0.1:{port}"));
        Server::start(command, port, dir, CONNECTED)
    }

    /// A VictoriaMetrics whose API is below a prefix, as a cluster's is.
    pub fn victoria_metrics(prefix: &str) -> Option<Server> {
        let port = free_port();
        let mut command = Command::new("victoria-metrics");
        command.args(["-storageDataPath=data", "-search.latencyOffset=1s", "-retentionPeriod=10y"]);
        command.arg(format!("-http.pathPrefix={prefix}")).arg(format!("-httpListenAddr=127.0.0.1:{port}"));
        Server::start(command, port, tempfile::tempdir().unwrap(), &format!("{prefix}/health"))
    }

    /// A VictoriaMetrics that scrapes as the configuration says.
    pub fn victoria_metrics_that_scrapes(config: &str) -> Option<Server> {
        let (port, dir) = (free_port(), tempfile::tempdir().unwrap());
        std::fs::write(dir.path().join("scrape.yml"), config).unwrap();
        let mut command = Command::new("victoria-metrics");
        command.args(["-storageDataPath=data", "-search.latencyOffset=1s", "-promscrape.config=scrape.yml"]);
        command.arg(format!("-httpListenAddr=127.0.0.1:{port}"));
        Server::start(command, port, dir, "/health")
    }

    /// A vmauth with that configuration.
    pub fn vmauth(config: &str) -> Option<Server> {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("auth.yml"), config).unwrap();
        let port = free_port();
        let mut command = Command::new("vmauth");
        command.arg("-auth.config=auth.yml").arg(format!("-httpListenAddr=127.0.0.1:{port}"));
        Server::start(command, port, dir, "/metrics")
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// CPU time that it has used, seconds.
    pub fn cpu_s(&self) -> f64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        // utime and stime, in ticks of 10 ms; the name before them may have spaces.
        let fields: Vec<&str> = stat.rsplit(") ").next().unwrap().split(' ').collect();
        [11, 12].iter().map(|at| fields[*at].parse::<f64>().unwrap() / 100.0).sum()
    }

    /// Memory that it has, bytes.
    pub fn resident_bytes(&self) -> u64 {
        let statm = std::fs::read_to_string(format!("/proc/{}/statm", self.child.id())).unwrap();
        statm.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
    }

    /// The answer to an instant query.
    pub fn answer(&self, expression: &str, at_unix_s: u64) -> Option<String> {
        self.answer_over(expression, at_unix_s, None)
    }

    /// The answer to a query; for several times where it is given how long before they begin, and their distance, seconds.
    pub fn answer_over(&self, expression: &str, at_unix_s: u64, range: Option<(u64, u64)>) -> Option<String> {
        let query = escaped(expression);
        match range {
            None => request(self.port, "POST /api/v1/query", &format!("query={query}&time={at_unix_s}")),
            Some((back_s, step_s)) => {
                let start = at_unix_s - back_s;
                let body = format!("query={query}&start={start}&end={at_unix_s}&step={step_s}");
                request(self.port, "POST /api/v1/query_range", &body)
            }
        }
    }

    /// The result of an instant query.
    pub fn query(&self, expression: &str, at_unix_s: u64) -> Vec<Value> {
        let answer = self.answer(expression, at_unix_s);
        let answer = answer.unwrap_or_else(|| panic!("{expression} is refused"));
        let answer: Value = serde_json::from_str(&answer).unwrap();
        answer["data"]["result"].as_array().unwrap().clone()
    }
}

/// The body of an answer with a status of success.
pub fn request(port: u16, line: &str, body: &str) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let kind = "Content-Type: application/x-www-form-urlencoded";
    let head = format!("{line} HTTP/1.0\r\nHost: x\r\n{kind}\r\nContent-Length: {}\r\n\r\n", body.len());
    stream.write_all(head.as_bytes()).ok()?;
    stream.write_all(body.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?;
    if !status.starts_with('2') {
        println!("{line}: {status} {body}");
        return None;
    }
    Some(body.to_owned())
}

fn escaped(text: &str) -> String {
    let escape = |byte: u8| match byte {
        byte if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    text.bytes().map(escape).collect()
}

/// Fills the storage of a Prometheus that is yet to be started.
pub fn fill(dir: &Path, openmetrics: &str) {
    let file = dir.join("samples.txt");
    std::fs::write(&file, openmetrics).unwrap();
    let mut command = Command::new("promtool");
    command.args(["tsdb", "create-blocks-from", "openmetrics"]).arg(&file).arg(dir.join("data"));
    // With blocks of 2 h the file is read again for each of the months of a trend.
    command.arg("--max-block-duration=744h");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    std::fs::remove_file(file).unwrap();
}

/// Whether Debian's prometheus is there; says so where it is not.
pub fn has_prometheus() -> bool {
    let there = Command::new("promtool").arg("--version").output().is_ok();
    if !there {
        println!("skipped: prometheus is not installed");
    }
    there
}
