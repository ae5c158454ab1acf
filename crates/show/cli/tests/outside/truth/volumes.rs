//! A PostgreSQL whose log and one tablespace lie on a second disk, which is slow at times: the answer names that volume and
//! why, and lists the data's volume as healthy. Needs root; says so elsewhere.

use super::engines::{Evicting, Sessions};
use programs::Headroom;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use testbed::{LoopDisk, PostgresServer};
use workload::CapKind;

/// Of the second disk while it is slow: far less than a loop device gives.
const CAP: u64 = 40;
/// Rows of nearly 8 KiB: more than the server's memory holds.
const ROWS: u32 = 8_192;
/// Its sessions tell what they did up to a second late: two stretches of four of these.
const WATCHED: &str = "9s";
/// Longer than it is watched; ended before.
const SECONDS: u32 = 60;

const COMMIT: &str = "INSERT INTO events (payload) VALUES (repeat('x', 100));\n";
const READ: &str = "\\set id random(1, 8192)\nSELECT length(payload) FROM items WHERE id = :id;\n";
const READ_SPACE: &str = "\\set id random(1, 8192)\nSELECT length(payload) FROM moved WHERE id = :id;\n";

struct Database {
    server: PostgresServer,
    scripts: tempfile::TempDir,
}

impl Database {
    /// With its data on one volume, its log and the table `moved` on the other.
    fn make(data: &Path, other: &Path) -> Option<Database> {
        let mut server = PostgresServer::start_in(15, data)?;
        server.set("track_io_timing", "on");
        server.set("track_wal_io_timing", "on");
        server.set("autovacuum", "off");
        server.sql("ALTER SYSTEM SET shared_buffers = '16MB'");
        server.stop();
        let (log, link) = (other.join("pg_wal"), server.data_directory().join("pg_wal"));
        command("mv", &[&link, &log]);
        std::os::unix::fs::symlink(&log, &link).unwrap();
        server.launch();
        let space = other.join("space");
        fs::create_dir(&space).unwrap();
        command("chown", &[&format!("--reference={}", log.display()).into(), &space]);
        server.sql(&format!("CREATE TABLESPACE space LOCATION '{}'", space.display()));
        let table = |name: &str, space: &str| {
            server.sql(&format!(
                "CREATE UNLOGGED TABLE {name} (id int PRIMARY KEY USING INDEX TABLESPACE {space}, payload text)
                     TABLESPACE {space};
                 ALTER TABLE {name} ALTER payload SET STORAGE PLAIN;
                 INSERT INTO {name} SELECT g, repeat('x', 7900) FROM generate_series(1, {ROWS}) g;"
            ));
            server.sql(&format!("VACUUM ANALYZE {name}"));
        };
        table("items", "pg_default");
        table("moved", "space");
        server.sql("CREATE TABLE events (id bigserial PRIMARY KEY, payload text); CHECKPOINT");
        let scripts = tempfile::tempdir().unwrap();
        for (name, text) in [("commit", COMMIT), ("read", READ), ("read-space", READ_SPACE)] {
            fs::write(scripts.path().join(name), text).unwrap();
        }
        Some(Database { server, scripts })
    }

    /// Clients that do what the script says, flat out or at a pace.
    fn clients(&self, script: &str, clients: u32, more: &[&str]) -> Sessions {
        let mut pgbench = self.server.pgbench_command();
        pgbench.args(["--no-vacuum", &format!("--client={clients}"), &format!("--time={SECONDS}")]);
        pgbench.arg(format!("--file={}", self.scripts.path().join(script).display())).args(more);
        pgbench.arg("postgres").stdout(Stdio::null()).stderr(Stdio::null());
        Sessions(vec![pgbench.spawn().unwrap()])
    }

    fn file_of(&self, table: &str) -> PathBuf {
        let name = self.server.sql(&format!("SELECT pg_relation_filepath('{table}')"));
        fs::canonicalize(self.server.data_directory().join(name)).unwrap()
    }
}

fn command(program: &str, arguments: &[&PathBuf]) {
    assert!(Command::new(program).args(arguments).status().unwrap().success(), "{program} {arguments:?}");
}

/// The answer is about the second volume, and says what holds it back; the first is healthy.
fn the_slow_volume_binds(answer: &Value, data: &Path, other: &Path, role: &str) {
    for volume in answer["volumes"].as_array().unwrap() {
        println!("{role}: {} {}: {}", volume["target_path"], volume["verdict"], volume["summary"]);
    }
    let verdict = answer["verdict"].as_str().unwrap();
    assert!(["throttled", "storage-degraded"].contains(&verdict), "{answer:#}");
    assert_eq!(answer["target_path"], other.to_str().unwrap(), "{answer:#}");
    let volumes = answer["volumes"].as_array().unwrap();
    assert_eq!(volumes.len(), 2, "{volumes:#?}");
    let summary = answer["summary"].as_str().unwrap();
    assert!(summary.starts_with(&format!("on {} (", other.display())), "{summary}");
    assert!(volumes[0]["roles"].as_array().unwrap().contains(&role.into()), "{volumes:#?}");
    assert!(volumes[0]["share_waited"].as_f64().unwrap() > 0.5, "{volumes:#?}");
    assert!(volumes[1]["target_path"].as_str().unwrap().starts_with(data.to_str().unwrap()), "{volumes:#?}");
    // A busy machine's own writes may be slow there, which nobody waits for.
    let fine = ["healthy", "nobody-waits"];
    assert!(fine.contains(&volumes[1]["verdict"].as_str().unwrap()), "{volumes:#?}");
    assert!(volumes[1]["roles"].as_array().unwrap().contains(&"data".into()), "{volumes:#?}");
    let room = |at: usize| volumes[at]["headroom"].as_f64().unwrap_or(f64::INFINITY);
    assert_eq!(answer["headroom"].as_f64().unwrap(), room(0).min(room(1)), "{answer:#}");
}

#[test]
fn of_a_database_on_two_volumes_the_slow_one_is_the_answer() {
    let (Some(mut first), Some(mut second)) = (LoopDisk::new(2 << 30), LoopDisk::new(2 << 30)) else {
        return;
    };
    let data = first.format_and_mount().to_owned();
    let other = second.format_and_mount().to_owned();
    let headroom = Headroom::new();
    // At the same time: what each gives alone is far from the caps below.
    std::thread::scope(|scope| {
        for dir in [&data, &other] {
            let measure = ["measure", "--quick", "--size", "256M", dir.to_str().unwrap()];
            let headroom = &headroom;
            scope.spawn(move || headroom.json(&measure));
        }
    });
    let Some(database) = Database::make(&data, &other) else { return };
    let source = format!("postgres:{}", database.server.connection());
    let check = || headroom.json(&["check", "--source", &source, "--duration", WATCHED]);

    if !second.throttle(CapKind::WriteIops, CAP) {
        return;
    }
    let commits = database.clients("commit", 4, &[]);
    let reads = database.clients("read", 2, &["--rate=400"]);
    let answer = check();
    drop((commits, reads));
    the_slow_volume_binds(&answer, &data, &other, "log");
    assert!(answer["summary"].as_str().unwrap().contains("commits take"), "{answer:#}");

    second.unthrottle();
    database.server.sql("CHECKPOINT");
    assert!(second.throttle(CapKind::ReadIops, CAP));
    let evicting = Evicting::begin(&database.file_of("moved"));
    let slow = database.clients("read-space", 8, &[]);
    let reads = database.clients("read", 2, &["--rate=400"]);
    let answer = check();
    drop((slow, reads, evicting));
    second.unthrottle();
    the_slow_volume_binds(&answer, &data, &other, "data");
    assert!(answer["summary"].as_str().unwrap().contains("reads from storage take"), "{answer:#}");
    let doubts = answer["doubts"].as_array().unwrap();
    assert!(doubts.iter().any(|doubt| doubt.as_str().unwrap().contains("tablespaces")), "{doubts:?}");

    let history = rusqlite::Connection::open(headroom.history()).unwrap();
    let query = "SELECT count(*) FROM verdicts WHERE target = ?";
    for target in [other.to_str().unwrap(), database.server.data_directory().to_str().unwrap()] {
        let kept: i64 = history.query_row(query, [target], |row| row.get(0)).unwrap();
        assert_eq!(kept, 2, "each volume's verdict is kept: {target}");
    }
}
