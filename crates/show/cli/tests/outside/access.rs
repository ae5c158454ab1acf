//! Access to the agent: with a real Prometheus and curl, over TLS, with passwords, tokens and certificates.

use programs::Headroom;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use testbed::CertificateAuthority;

/// Of "sesame".
const HASH: &str = "$2b$04$abcdefghijklmnopqrstuuinwY/tkBVrn3xrxQI/TgnMHhkvl85RW";
/// Files are looked at each second.
const RELOADED_WITHIN: Duration = Duration::from_secs(30);

/// A program that is ended with the test.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// An agent over TLS, with a user and a token.
struct Agent {
    dir: tempfile::TempDir,
    authority: CertificateAuthority,
    url: String,
    _headroom: Headroom,
    _running: Ended,
}

impl Agent {
    /// `None` where OpenSSL or curl is not installed. `tls` are further lines of the TLS server's configuration.
    fn start(tls: &str) -> Option<Agent> {
        if Command::new("curl").arg("--version").stdout(Stdio::null()).status().is_err() {
            println!("skipped: curl is not installed");
            return None;
        }
        let dir = tempfile::tempdir().unwrap();
        let authority = CertificateAuthority::new(dir.path(), "authority")?;
        authority.make_certificate("server");
        let config = format!(
            "tls_server_config:\n  cert_file: server.crt\n  key_file: server.key\n{tls}\
             basic_auth_users:\n  prometheus: {HASH}\n"
        );
        std::fs::write(dir.path().join("web.yml"), config).unwrap();
        std::fs::write(dir.path().join("tokens"), "# of the tests\nabc123\n").unwrap();
        std::fs::set_permissions(dir.path().join("tokens"), PermissionsExt::from_mode(0o600)).unwrap();
        // Options in the file count as those of the command.
        let toml = format!(
            "sources = [\"sqlite:{dir}/none.db\"]\nlisten = \"127.0.0.1:0\"\nweb-config = \"{dir}/web.yml\"\n",
            dir = dir.path().display()
        );
        std::fs::write(dir.path().join("agent.toml"), toml).unwrap();
        let headroom = Headroom::new();
        let mut command = headroom.command(&["agent"]);
        command.arg("--config").arg(dir.path().join("agent.toml"));
        command.arg("--bearer-token-file").arg(dir.path().join("tokens"));
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
        let running = Ended(child);
        let line = lines.find(|line| line.contains("metrics at https://")).unwrap();
        std::thread::spawn(move || lines.for_each(|line| println!("  {line}")));
        let url = line.rsplit(' ').next().unwrap().trim_end_matches("/metrics").to_owned();
        Some(Agent { dir, authority, url, _headroom: headroom, _running: running })
    }

    fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The HTTP status that curl gets for a path, and what it prints; 0 where there is no answer.
    fn curl(&self, path: &str, arguments: &[&str]) -> (u16, String) {
        let mut command = Command::new("curl");
        command.args(["--silent", "--max-time", "20", "--write-out", "\n%{http_code}", "--cacert"]);
        command.arg(self.authority.file()).args(arguments).arg(format!("{}{path}", self.url));
        let printed = String::from_utf8_lossy(&command.output().unwrap().stdout).into_owned();
        let (text, status) = printed.rsplit_once('\n').unwrap();
        (status.parse().unwrap(), text.to_owned())
    }

    fn status(&self, arguments: &[&str]) -> u16 {
        self.curl("/metrics", arguments).0
    }

    #[track_caller]
    fn wait_for_status(&self, status: u16, arguments: &[&str]) {
        let began = Instant::now();
        while self.status(arguments) != status {
            assert!(began.elapsed() < RELOADED_WITHIN, "{} for {arguments:?}", self.status(arguments));
            std::thread::sleep(Duration::from_millis(200));
        }
    }
}

/// A file that takes the place of another one at once, as tools that renew certificates do.
fn replace(file: &Path, by: &Path) {
    std::fs::rename(by, file).unwrap();
}

#[test]
fn only_clients_with_the_password_or_a_token_are_answered() {
    let Some(agent) = Agent::start("  min_version: TLS13\n") else { return };
    let refused = agent.curl("/metrics", &["--include"]).1;
    for part in ["HTTP/1.1 401", "www-authenticate: Basic realm=", "www-authenticate: Bearer realm="] {
        assert!(refused.contains(part), "{part}: {refused}");
    }
    for (arguments, expected) in [
        (&["--user", "prometheus:sesame"][..], 200),
        (&["--oauth2-bearer", "abc123"], 200),
        (&["--user", "prometheus:open"], 401),
        (&["--user", "nobody:sesame"], 401),
        (&["--user", "prometheus:"], 401),
        (&["--oauth2-bearer", "abc12"], 401),
        (&["--oauth2-bearer", "# of the tests"], 401),
        (&["--user", "prometheus:sesame", "--header", "Host: evil.example"], 421),
        (&["--user", "prometheus:sesame", "--data", "x"], 405),
        // An older protocol than is allowed.
        (&["--user", "prometheus:sesame", "--tls-max", "1.2"], 0),
    ] {
        assert_eq!(agent.status(arguments), expected, "{arguments:?}");
    }
    assert_eq!(agent.curl("/healthz", &[]), (200, "ok\n".into()));
    assert_eq!(agent.curl("/", &[]).0, 401);
    let (status, text) = agent.curl("/metrics", &["--oauth2-bearer", "abc123", "--compressed", "--include"]);
    assert!(status == 200 && text.contains("headroom_build_info"), "{text}");

    // Passwords, tokens and certificates change while it runs.
    let config = std::fs::read_to_string(agent.file("web.yml")).unwrap();
    std::fs::write(agent.file("new"), config.replace("prometheus:", "grafana:")).unwrap();
    replace(&agent.file("web.yml"), &agent.file("new"));
    agent.wait_for_status(200, &["--user", "grafana:sesame"]);
    assert_eq!(agent.status(&["--user", "prometheus:sesame"]), 401);
    std::fs::write(agent.file("tokens"), "def456\n").unwrap();
    agent.wait_for_status(200, &["--oauth2-bearer", "def456"]);
    assert_eq!(agent.status(&["--oauth2-bearer", "abc123"]), 401);
    // A wrong file leaves the one before.
    std::fs::OpenOptions::new()
        .append(true)
        .open(agent.file("web.yml"))
        .unwrap()
        .write_all(b"what: 1\n")
        .unwrap();
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(agent.status(&["--user", "grafana:sesame"]), 200);
}

#[test]
fn a_renewed_certificate_counts_without_a_restart() {
    let Some(agent) = Agent::start("") else { return };
    let password = ["--user", "prometheus:sesame"];
    assert_eq!(agent.status(&password), 200);
    let other = CertificateAuthority::new(agent.dir.path(), "other").unwrap();
    let other_file = other.file();
    let trusting = ["--user", "prometheus:sesame", "--cacert", other_file.to_str().unwrap()];
    assert_eq!(agent.status(&trusting), 0);
    let renewed = other.make_certificate("renewed");
    // First the certificate, which does not belong to the key that is still there.
    replace(&agent.file("server.crt"), &renewed.file);
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(agent.status(&password), 200);
    replace(&agent.file("server.key"), &renewed.key);
    agent.wait_for_status(200, &trusting);
    assert_eq!(agent.status(&password), 0);
}

#[test]
fn a_client_without_a_certificate_is_refused_where_one_is_required() {
    let lines = "  client_auth_type: RequireAndVerifyClientCert\n  client_ca_file: authority.crt\n";
    let Some(agent) = Agent::start(lines) else { return };
    let with = |file: &Path, key: &Path| {
        let (file, key) = (file.to_str().unwrap(), key.to_str().unwrap());
        agent.status(&["--user", "prometheus:sesame", "--cert", file, "--key", key])
    };
    let client = agent.authority.make_certificate("client");
    assert_eq!(with(&client.file, &client.key), 200);
    assert_eq!(agent.status(&["--user", "prometheus:sesame"]), 0);
    let stranger =
        CertificateAuthority::new(agent.dir.path(), "stranger").unwrap().make_certificate("theirs");
    assert_eq!(with(&stranger.file, &stranger.key), 0);
}

/// A job of Prometheus' configuration.
fn job(name: &str, agent: &Agent, credentials: &str) -> String {
    let authority = agent.authority.file();
    format!(
        "- job_name: {name}\n  scheme: https\n  tls_config: {{ca_file: {}}}\n{credentials}  static_configs:\n  \
         - targets: ['{}']\n",
        authority.display(),
        agent.url.trim_start_matches("https://"),
    )
}

#[test]
fn prometheus_scrapes_with_a_password_or_a_token_and_not_without() {
    let Some(agent) = Agent::start("") else { return };
    let jobs = [
        ("password", job("password", &agent, "  basic_auth: {username: prometheus, password: sesame}\n"), 1),
        ("token", job("token", &agent, "  authorization: {credentials: abc123}\n"), 1),
        ("wrong", job("wrong", &agent, "  basic_auth: {username: prometheus, password: open}\n"), 0),
        ("nothing", job("nothing", &agent, ""), 0),
    ];
    let mut config = "global: {scrape_interval: 1s, scrape_timeout: 1s}\nscrape_configs:\n".to_owned();
    jobs.iter().for_each(|(_, job, _)| config.push_str(job));
    std::fs::write(agent.file("prometheus.yml"), config).unwrap();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut command = Command::new("prometheus");
    command.arg(format!("--config.file={}", agent.file("prometheus.yml").display()));
    command.arg(format!("--storage.tsdb.path={}", agent.file("data").display()));
    command.arg(format!("--web.listen-address=127.0.0.1:{port}")).stdout(Stdio::null()).stderr(Stdio::null());
    let Ok(prometheus) = command.spawn() else {
        println!("skipped: prometheus is not installed");
        return;
    };
    let _prometheus = Ended(prometheus);
    let value = |query: &str| {
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--max-time", "20", "--get", "--data-urlencode", &format!("query={query}")]);
        let output = curl.arg(format!("http://127.0.0.1:{port}/api/v1/query")).output().unwrap();
        let answer: serde_json::Value = serde_json::from_slice(&output.stdout).ok()?;
        answer["data"]["result"][0]["value"][1].as_str()?.parse::<u64>().ok()
    };
    let began = Instant::now();
    let expected: Vec<_> = jobs.iter().map(|(name, _, up)| (*name, Some(*up))).collect();
    loop {
        let found: Vec<_> =
            jobs.iter().map(|(name, ..)| (*name, value(&format!("up{{job=\"{name}\"}}")))).collect();
        let scraped = value("count(headroom_build_info)");
        if found == expected && scraped == Some(2) {
            return;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "{found:?}, {scraped:?} builds");
        std::thread::sleep(Duration::from_millis(500));
    }
}

#[test]
fn an_address_that_others_reach_is_refused_without_authentication() {
    let headroom = Headroom::new();
    let refused = |arguments: &[&str], expected: &[&str]| {
        let output = headroom.run(arguments);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {error}");
        expected.iter().for_each(|part| assert!(error.contains(part), "{part}: {error}"));
    };
    let remedies =
        ["--web-config", "--bearer-token-file", "--listen-without-authentication", "127.0.0.1:9999"];
    refused(&["agent", "--listen", "0.0.0.0:9999", "--check-config"], &remedies);
    refused(&["agent", "--listen", "[::]:9999", "--check-config"], &remedies);
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let tokens = file("tokens", "abc123\n");
    let listen = ["agent", "--check-config", "--listen", "127.0.0.1:0"];
    refused(&[&listen[..], &["--bearer-token-file", &tokens]].concat(), &["others may read it", "chmod 600"]);
    let web = file("web.yml", "basic_auth_user: {}\n");
    refused(&[&listen[..], &["--web-config", &web]].concat(), &["web.yml: unknown field `basic_auth_user`"]);
    refused(
        &["agent", "--check-config", "--listen", "none", "--web-config", &web],
        &["no address to listen on", "--listen"],
    );
    let open = ["agent", "--check-config", "--listen", "0.0.0.0:0", "--listen-without-authentication"];
    assert!(headroom.run(&open).status.success());
}
