//! 32 sessions that commit flat out to a log that their database does not time, on a disk that a control group holds at 800 writes
//! a second, before it is measured. The limit counts each write and flush; the device below it counts merged requests, and
//! none of the wait.

use programs::Headroom;
use serde_json::Value;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use testbed::{LoopDisk, MariadbServer, PostgresServer};
use workload::CapKind;

const WRITES_A_SECOND: u64 = 800;
const CLIENTS: usize = 32;
/// As short as a sound answer allows.
const WATCHED: &str = "5s";

/// Ended when dropped.
struct Clients(Vec<Child>);

impl Drop for Clients {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn mariadb(dir: &Path) -> Option<MariadbServer> {
    let server = MariadbServer::start(Some(dir), &["performance_schema=ON", "innodb_log_file_size=256M"])?;
    server.sql(
        "CREATE DATABASE shop; USE shop;
         CREATE TABLE events (id BIGINT PRIMARY KEY AUTO_INCREMENT, payload VARCHAR(200)) ENGINE=InnoDB;
         DELIMITER //
         CREATE PROCEDURE commit_one() SQL SECURITY INVOKER BEGIN INSERT INTO events (payload) VALUES (REPEAT('x', 100)); END//
         CREATE PROCEDURE commits() SQL SECURITY INVOKER BEGIN WHILE TRUE DO CALL commit_one(); END WHILE; END//
         DELIMITER ;
         CREATE USER app@localhost; GRANT ALL ON shop.* TO app@localhost;",
    );
    Some(server)
}

fn postgres(dir: &Path) -> Option<PostgresServer> {
    let server = PostgresServer::start_in(15, dir)?;
    server.set("track_io_timing", "on");
    server.sql("CREATE TABLE events (id bigserial PRIMARY KEY, payload text)");
    Some(server)
}

fn quiet(command: &mut Command) -> Child {
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// The answer that a user without the right to load BPF programs would get; `None`, with a message, without `setpriv`.
fn without_bpf(headroom: &Headroom, arguments: &[&str]) -> Option<Value> {
    let command = headroom.command(arguments);
    let mut restricted = Command::new("setpriv");
    restricted.args(["--bounding-set=-bpf,-perfmon,-sys_admin", "--inh-caps=-all"]);
    restricted.arg(command.get_program()).args(command.get_args()).arg("--json");
    match restricted.output() {
        Ok(output) => Some(serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
            panic!("{error}: {}", String::from_utf8_lossy(&output.stderr));
        })),
        Err(error) => {
            eprintln!("skipped: setpriv: {error}");
            None
        }
    }
}

fn says_where_the_figures_come_from(answer: &Value) {
    let verdict = answer["verdict"].as_str().unwrap();
    assert!(["demand-exceeds-capability", "serialized"].contains(&verdict), "{answer:#}");
    assert_eq!(answer["log_timing"]["by"], "kernel", "{answer:#}");
    let files = answer["files"].as_array().unwrap();
    let of_kernel = |file: &&Value| file["instance"].as_str().unwrap().starts_with("the kernel");
    let log = files.iter().find(of_kernel).unwrap_or_else(|| panic!("{files:#?}"));
    assert_eq!(log["kind"], "log");
    assert!(log["syncs"].as_u64().unwrap() > 10 && log["sync_latency_ns"].as_f64().unwrap() > 0.0, "{log:#}");
    let evidence = answer["evidence"].as_array().unwrap();
    let value = |what: &str| {
        let fact = evidence.iter().find(|fact| fact["what"].as_str().unwrap().contains(what));
        fact.unwrap_or_else(|| panic!("no {what}: {evidence:#?}")).clone()
    };
    assert!(
        value("write and sync of a commit")["source"].as_str().unwrap().starts_with("the kernel's times")
    );
    let counted = value("that the cap counted")["value"].as_f64().unwrap();
    assert!((0.7..1.3).contains(&(counted / WRITES_A_SECOND as f64)), "{counted} writes a second");
    let moments = answer["moments"].as_array().unwrap();
    assert!(moments.iter().all(|moment| moment["stalled"].is_number()), "{moments:#?}");
}

#[test]
fn sessions_that_wait_for_a_log_that_nobody_times_are_not_healthy() {
    let Some(mut disk) = LoopDisk::new_in_memory(3 << 30) else { return };
    disk.format_and_mount();
    let dir = disk.mount_point().to_owned();
    let (mariadb, postgres) = (mariadb(&dir), postgres(&dir));
    if !disk.throttle(CapKind::WriteIops, WRITES_A_SECOND) {
        return;
    }
    let headroom = Headroom::new();
    let size = ["--size", "256M", dir.to_str().unwrap()];
    headroom.json(&[&["measure", "--quick"], &size[..]].concat());
    if let Some(server) = &mariadb {
        let session = |_| quiet(&mut server.session("app", "USE shop; CALL commits()"));
        let clients = Clients((0..CLIENTS).map(session).collect());
        let (url, check) = (server.url(), ["check", "--duration", WATCHED, "--source"]);
        let check = [&check[..], &[url.as_str()]].concat();
        says_where_the_figures_come_from(&headroom.json(&check));
        if let Some(answer) = without_bpf(&headroom, &check) {
            let why = answer["log_timing"]["why"].as_str().unwrap_or_else(|| panic!("{answer:#}"));
            assert!(why.contains("cap_bpf"), "{why}");
            let named = |key: &str| answer[key].to_string().contains("cap_bpf");
            assert!(named("doubts") || named("next_step"), "{answer:#}");
        }
        // Loops go on in the server when their client has gone.
        server.sql("KILL USER app");
        let running = "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE USER = 'app'";
        while server.sql(running) != "0" {
            std::thread::sleep(Duration::from_millis(50));
        }
        drop(clients);
    }
    if let Some(server) = &postgres {
        let script = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(script.path(), "INSERT INTO events (payload) VALUES (repeat('x', 100));\n").unwrap();
        let mut pgbench = server.pgbench_command();
        pgbench.args(["--no-vacuum", &format!("--client={CLIENTS}"), "--time=60", "--file"]);
        let clients = Clients(vec![quiet(pgbench.arg(script.path()).arg("postgres"))]);
        let source = format!("postgres:{}", server.connection());
        says_where_the_figures_come_from(&headroom.json(&[
            "check",
            "--duration",
            WATCHED,
            "--source",
            &source,
        ]));
        drop(clients);
    }
    drop((mariadb, postgres));
}
